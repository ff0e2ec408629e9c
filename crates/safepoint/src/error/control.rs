//! Errors of sessions and atlases, explained.

use safepoint_authority::HoldError;
use safepoint_control::ControlError;
use safepoint_gates::Refusal;
use safepoint_gates::load::Problem;
use safepoint_model::Code;

use super::{Explanation, file, store, trail};

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
            _ => file::explain(path, error),
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
        ControlError::NotFound { what, name } => (
            Code::NotFound,
            Some(name.clone()),
            hint(match *what {
                "hold" => "`safepoint hold list --all` shows the holds",
                "permit" => "`safepoint permit list` shows the permits",
                "operator" => "`safepoint operator add NAME` makes one",
                "token" => "`safepoint token list` shows the tokens",
                "target" => "`safepoint notify list` shows the targets",
                _ => "`safepoint session list` shows the sessions",
            }),
        ),
        ControlError::Ambiguous { prefix, .. } => (
            Code::Ambiguous,
            Some(prefix.clone()),
            hint("give more of its characters"),
        ),
        ControlError::Refused(refusal) => explain_refusal(refusal),
        ControlError::NotReportable { id, .. } => (Code::SessionState, Some(id.to_string()), None),
        ControlError::Tampered { id, .. } => (
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
        ControlError::State(error) => super::state::explain(error),
        ControlError::Proposal { .. } => (Code::InvalidInput, None, None),
        ControlError::Canonical(_) => (
            Code::InvalidInput,
            None,
            hint("docs/formats/action.md tells what it looks like"),
        ),
        ControlError::Decision(_) => (
            Code::SignatureInvalid,
            None,
            hint("somebody else's key, or a changed decision: decide again"),
        ),
        ControlError::Hold(error) => explain_hold(error),
        ControlError::Permit { id, .. } => (Code::Conflict, Some(id.clone()), None),
        ControlError::Operator { .. } => (
            Code::AccessDenied,
            None,
            hint("`safepoint operator list` shows who decides"),
        ),
        ControlError::Target { name, .. } => (
            Code::InvalidInput,
            Some(name.clone()),
            hint("docs/notifications.md tells how targets are added"),
        ),
        ControlError::Weaker { atlas, .. } => (
            Code::ConstraintViolated,
            Some(atlas.clone()),
            hint("leave `--session` out, or begin the session under the atlases of this workspace"),
        ),
        ControlError::OutOfTurn { first } => (
            Code::Conflict,
            Some(first.to_string()),
            hint("decide that one first"),
        ),
        ControlError::AgentDecides => (
            Code::AccessDenied,
            None,
            hint("an operator decides, in a terminal of their own"),
        ),
        ControlError::Meanwhile(_) => (Code::Conflict, None, hint("look again, and decide anew")),
        ControlError::Start { program, error } => (
            match error.kind() {
                std::io::ErrorKind::NotFound => Code::NotFound,
                _ => Code::CommandFailed,
            },
            Some(program.clone()),
            None,
        ),
        ControlError::Unreachable { .. } => (
            Code::StoreUnreachable,
            None,
            hint(
                "nothing was run: look whether the server runs, and at `SAFEPOINT_STORE`, `SAFEPOINT_SERVER_TOKEN_FILE` and `SAFEPOINT_SERVER_CA`",
            ),
        ),
        ControlError::Elsewhere { .. } => (
            Code::ServiceFailed,
            None,
            hint("nothing was run: the server and this machine need the same version of Safepoint"),
        ),
        ControlError::Refuses {
            code,
            location,
            suggestion,
            ..
        } => {
            let known = Code::ALL.iter().copied().find(|it| it.code() == code);
            (
                known.unwrap_or(Code::ServiceFailed),
                location.clone(),
                suggestion.clone(),
            )
        }
        ControlError::Store(error) => store::explain(error),
        ControlError::Trail(error) => trail::explain(error),
        ControlError::TokenExists { name } => (
            Code::Conflict,
            Some(name.clone()),
            hint("give it another name, or exchange it: `safepoint token rotate NAME`"),
        ),
        ControlError::SignedElse { .. } => (
            Code::SignatureInvalid,
            None,
            hint("sign what is there now: `safepoint hold sign` makes such a signature"),
        ),
        ControlError::Entropy(_) => (Code::Internal, None, None),
    }
}

fn explain_hold(error: &HoldError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        HoldError::Fingerprint => (
            Code::Conflict,
            None,
            hint("look at it again: `safepoint hold show ID` prints the fingerprint"),
        ),
        HoldError::Settled(_) | HoldError::Expired => {
            (Code::Conflict, None, hint("whoever wants it asks again"))
        }
        HoldError::Confirm(word) => (
            Code::Usage,
            None,
            Some(format!("say so with `--confirm {word}`")),
        ),
        HoldError::Disagrees(_) => (
            Code::Conflict,
            None,
            hint("agree about the envelope, or deny it and let it be asked anew"),
        ),
        HoldError::Scope => (
            Code::InvalidInput,
            None,
            hint("leave out `--for`; `--envelope` lets a session do more than this once"),
        ),
        HoldError::ScopeOfSeveral(_) => (Code::InvalidInput, None, hint("leave out `--for`")),
        HoldError::Again(_) => (
            Code::Conflict,
            None,
            hint("another operator decides as well"),
        ),
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
