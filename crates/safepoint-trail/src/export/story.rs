//! What entries say, as far as readers elsewhere want to know it: which part an entry
//! plays in an action, and the few words of its body that every format has a place for.
//!
//! Bodies are looked at, never believed: what is missing or of another shape is left out.

use safepoint_model::ActionId;
use serde_json::Value;

use crate::Entry;

/// The part that an entry plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Somebody wants to do something.
    Proposal,
    /// It may be done.
    Leave,
    /// It may not.
    Denial,
    /// It waits for answers or a decision.
    Hold,
    /// An operator has decided.
    Decision,
    /// It is about to be done.
    Intent,
    /// How it ended.
    Outcome,
    /// A state that can be gone back to.
    Checkpoint,
    /// Something was taken back, or put in place again.
    Return,
    /// Something that is administered was made, changed or taken away.
    Change(Change),
    /// Somebody was not who they said.
    Stranger,
    /// A digest of what is kept elsewhere: evidence, not an event.
    Digest,
    /// A session began or ended.
    Session,
    /// Anything else.
    Other,
}

/// What happened to something that is administered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Made,
    Changed,
    Removed,
}

/// The part that entries of this kind play.
pub(crate) fn part(kind: &str) -> Part {
    match kind {
        "ActionRequested" | "mutation_started" => Part::Proposal,
        "ActionAllowed" => Part::Leave,
        "ActionDenied"
        | "action_denied"
        | "permission_denied"
        | "checkpoint_rejected"
        | "CheckpointBlocked"
        | "RateLimitExceeded"
        | "EventRefused" => Part::Denial,
        "ActionHeld" | "ApprovalRequired" | "checkpoint_pending" => Part::Hold,
        "approval_decision" => Part::Decision,
        "action_intended" => Part::Intent,
        "action_ended" | "action_done" | "ActionReported" | "mutation_done" | "mutation_failed"
        | "mutation_unknown" | "agent_ended" => Part::Outcome,
        "checkpoint_created" => Part::Checkpoint,
        "undone" | "redone" | "rolled_back" | "mutation_rolled_back" | "roll_back_failed" => {
            Part::Return
        }
        "permit_issued" | "operator_added" | "workspace_created" => Part::Change(Change::Made),
        "permit_revoked" | "operator_removed" => Part::Change(Change::Removed),
        "trust_changed"
        | "checkpoint_pinned"
        | "checkpoint_unpinned"
        | "workspace_state_changed" => Part::Change(Change::Changed),
        "authentication_failed" => Part::Stranger,
        "SessionState" | "DocumentState" => Part::Digest,
        "SessionStarted" | "SessionEnded" => Part::Session,
        _ => Part::Other,
    }
}

/// The body of an entry, for looking things up in.
pub(crate) struct Body(Value);

impl Body {
    pub(crate) fn of(entry: &Entry) -> Self {
        Self(serde_json::from_str(&entry.body).unwrap_or_default())
    }

    /// A text under this name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    /// A whole number under this name.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    /// Whether something is said to be so.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool) == Some(true)
    }

    /// The texts in a list under this name.
    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// What was to be done, as rules name it: `file.delete`.
    pub(crate) fn operation(&self) -> Option<&str> {
        let first = || self.texts("actions").next();
        let operations = || {
            let list = self.0.get("operations").and_then(Value::as_array)?;
            list.first()?.get("type").and_then(Value::as_str)
        };
        self.text("action_id").or_else(first).or_else(operations)
    }

    /// What it is about, in words: the command, or a summary.
    pub(crate) fn summary(&self) -> Option<&str> {
        let parameters = self.0.get("parameters");
        let command = parameters.and_then(|given| given.get("command"));
        self.text("summary")
            .or_else(|| command.and_then(Value::as_str))
            .or_else(|| self.text("text"))
    }

    /// Why, in the words of whoever decided.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.text("reason").or_else(|| self.text("why"))
    }

    /// The parameters of what is proposed.
    pub(crate) fn parameters(&self) -> Option<&Value> {
        self.0.get("parameters").filter(|given| given.is_object())
    }

    /// The paths that it names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let named = self.parameters().and_then(|given| given.get("paths"));
        let named = named.and_then(Value::as_array).into_iter().flatten();
        self.texts("paths").chain(named.filter_map(Value::as_str))
    }
}

/// The action that an entry belongs to: its own, or the one that a checkpoint was made around.
pub(crate) fn action_of(entry: &Entry) -> Option<ActionId> {
    if entry.action_id.is_some() || part(entry.kind.as_str()) != Part::Checkpoint {
        return entry.action_id.clone();
    }
    let body = Body::of(entry);
    // Only what we wrote ourselves: people give reasons of their own.
    if body.text("origin") != Some("automatic") {
        return None;
    }
    let (when, action) = body.text("reason")?.split_once(' ')?;
    matches!(when, "before" | "after")
        .then(|| action.parse().ok())
        .flatten()
}

/// Whether an outcome, as bodies name them, is one that was wished for.
pub(crate) fn is_success(outcome: &str) -> bool {
    matches!(outcome, "ok" | "success" | "done")
}
