//! Errors of sessions and atlases, explained.

use safepoint_control::ControlError;
use safepoint_gates::Refusal;
use safepoint_gates::load::Problem;
use safepoint_model::Code;

use super::{Explanation, explain_file, explain_store, explain_trail};

pub(super) fn explain(error: &ControlError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        ControlError::File { path, error } => match error.kind() {
            std::io::ErrorKind::NotFound => (
                Code::NotFound,
                Some(path.display().to_string()),
                hint("check the path; a module lies beside its atlas"),
            ),
            std::io::ErrorKind::InvalidData => (
                Code::AtlasInvalid,
                Some(path.display().to_string()),
                hint("an atlas is UTF-8 text"),
            ),
            _ => explain_file(path, error),
        },
        ControlError::Atlas { path, problems, .. } => {
            let place = problems.first().and_then(|problem| problem.place);
            (
                Code::AtlasInvalid,
                Some(match place {
                    Some(place) => format!("{}:{}:{}", path.display(), place.line, place.column),
                    None => path.display().to_string(),
                }),
                problems
                    .first()
                    .and_then(suggestion)
                    .or_else(|| hint("`safepoint atlas check` lists everything that is wrong")),
            )
        }
        ControlError::Module { path, .. } => (
            Code::AtlasInvalid,
            Some(path.display().to_string()),
            hint("docs/extensions.md tells what code looks like"),
        ),
        ControlError::AtlasChanged { path } => (
            Code::AtlasChanged,
            Some(path.display().to_string()),
            hint("put the file back, or end this session and start another"),
        ),
        ControlError::Signature { path, .. } => (
            Code::SignatureInvalid,
            Some(path.display().to_string()),
            hint("ask the steward to sign it: `safepoint atlas sign FILE --key KEY`"),
        ),
        ControlError::Key { path, .. } => (
            Code::KeyInvalid,
            Some(path.display().to_string()),
            hint("`safepoint atlas sign FILE --key KEY --new-key` makes one"),
        ),
        ControlError::Access { atlas_id, .. } => (
            Code::AccessDenied,
            Some(atlas_id.clone()),
            hint("set `SAFEPOINT_ATLAS_KEY` to the key that its steward gave you"),
        ),
        ControlError::TooManySessions { atlas_id, .. } => (
            Code::RateLimited,
            Some(atlas_id.clone()),
            hint("end sessions instead of starting new ones, or wait"),
        ),
        ControlError::NotFound { name, .. } => (
            Code::NotFound,
            Some(name.clone()),
            hint("`safepoint session list` shows the sessions"),
        ),
        ControlError::Ambiguous { prefix, .. } => (
            Code::Ambiguous,
            Some(prefix.clone()),
            hint("give more of its characters"),
        ),
        ControlError::Refused(refusal) => explain_refusal(refusal),
        ControlError::NotReportable { id, .. } => (Code::SessionState, Some(id.to_string()), None),
        ControlError::Tampered { id } => (
            Code::SessionTampered,
            Some(id.to_string()),
            hint(
                "nothing is allowed in it any more; start another, and find out who writes to the store",
            ),
        ),
        ControlError::Endless(_) => (
            Code::SessionState,
            None,
            hint("ask the steward: the services of the atlas contradict each other"),
        ),
        ControlError::Unreadable { id, .. } => (
            Code::StoreCorrupted,
            Some(id.clone()),
            hint("start another session"),
        ),
        ControlError::Store(error) => explain_store(error),
        ControlError::Trail(error) => explain_trail(error),
        ControlError::Entropy(_) => (Code::Internal, None, None),
    }
}

fn suggestion(problem: &Problem) -> Option<String> {
    problem.hint.clone()
}

fn explain_refusal(refusal: &Refusal) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match refusal {
        Refusal::Ended => (
            Code::SessionState,
            None,
            hint("start another with `safepoint session start`"),
        ),
        Refusal::UnknownGate(id) | Refusal::UnknownCapability(id) => (
            Code::NotFound,
            Some(id.clone()),
            hint("`safepoint session show` tells what there is"),
        ),
        Refusal::Ambiguous { id, .. } => (
            Code::Ambiguous,
            Some(id.clone()),
            hint("give the full name: `ATLAS_ID/ID`"),
        ),
        Refusal::NotWaiting(id) => (
            Code::SessionState,
            Some(id.clone()),
            hint("answers count while their questions are open; ask for the action again"),
        ),
        Refusal::SeveralHolds { gate, .. } => (
            Code::SessionState,
            Some(gate.clone()),
            hint("say which one with `--hold ID`"),
        ),
        Refusal::NotRaisedByAsking(id) => (
            Code::SessionState,
            Some(id.clone()),
            hint("only `interactive` and `explicit_request` checkpoints are"),
        ),
    }
}
