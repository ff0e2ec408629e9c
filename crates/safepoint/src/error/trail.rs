//! Errors of the trail and of its witnesses, explained.

use safepoint_model::Code;
use safepoint_trail::TrailError;
use safepoint_trail::cosign::WitnessError;

use super::{Explanation, store};

pub(super) fn explain(error: &TrailError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        TrailError::Store(error) => store::explain(error),
        TrailError::Tampered(bad) => (
            Code::TrailTampered,
            Some(
                bad.id
                    .clone()
                    .unwrap_or_else(|| format!("entry {}", bad.seq)),
            ),
            hint(
                "`safepoint trail verify` checks all of it; nothing is signed on top of an end that cannot be trusted",
            ),
        ),
        TrailError::KeyMissing { path, .. } => (
            Code::KeyMissing,
            Some(path.display().to_string()),
            hint("copy the key file from the machine that began this trail"),
        ),
        TrailError::KeyUnreadable { path, .. } => (
            Code::KeyMissing,
            Some(path.display().to_string()),
            hint("make it readable for yourself, and for nobody else"),
        ),
        TrailError::KeyInvalid { path, .. } => (
            Code::KeyInvalid,
            Some(path.display().to_string()),
            hint("restore the key file from a backup"),
        ),
        TrailError::KeyOther { path, .. } => (
            Code::KeyInvalid,
            Some(path.display().to_string()),
            hint(
                "nothing was changed: all machines that share a store need the same key file in `SAFEPOINT_KEY`",
            ),
        ),
        TrailError::StoreLost { place, .. } => (
            Code::StoreLost,
            Some(place.clone()),
            hint(
                "restore it from a backup, or run `safepoint init --start-anew` to begin a new trail that records the loss",
            ),
        ),
        TrailError::Tiles { path, .. } => (
            Code::InvalidInput,
            Some(path.display().to_string()),
            hint("name an empty directory, or one that holds tiles of this trail"),
        ),
        TrailError::Body(_) => (
            Code::InvalidInput,
            None,
            hint("numbers must be finite and integers within ±(2^53 − 1)"),
        ),
        TrailError::ReservedField => (
            Code::InvalidInput,
            None,
            hint("give the field another name"),
        ),
        TrailError::Head(_) => (
            Code::TrailTampered,
            None,
            hint("`safepoint trail verify` says what is wrong"),
        ),
        TrailError::NotFound(what) => (
            Code::NotFound,
            Some(what.clone()),
            hint("`safepoint trail list` shows what there is"),
        ),
        TrailError::Ambiguous { prefix, .. } => (
            Code::Ambiguous,
            Some(prefix.clone()),
            hint("give more of its characters"),
        ),
        TrailError::Entropy(_) => (Code::Internal, None, None),
    }
}

pub(super) fn explain_witness(error: &WitnessError) -> &'static str {
    match error {
        WitnessError::OtherSize(_) => {
            "it is more than this trail has, or changes all the time: `safepoint trail verify` checks the trail"
        }
        WitnessError::Fork | WitnessError::NotConsistent => {
            "`safepoint trail verify` checks this trail; ask the witness's operator what it has seen"
        }
        WitnessError::UnknownLog | WitnessError::UnknownKey => {
            "`safepoint trail head --json` prints the key that its operator needs"
        }
        WitnessError::Status(_) | WitnessError::Shape(_) => {
            "check that the address is the one below which the witness has `add-checkpoint`"
        }
        WitnessError::Unsigned(_) => "check that `--key` is the key of this witness",
    }
}
