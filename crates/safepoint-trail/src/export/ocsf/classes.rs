//! Which class of OCSF an entry is of, and the numbers that go with it.

use serde::Serialize;

use super::super::story::{Body, Change, Part, is_success};

/// The classes that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Nothing that OCSF has a class for.
    Base,
    /// Something that is administered was changed.
    EntityManagement,
    /// Somebody showed who they are.
    Authentication,
    /// An agent asked for something, was answered, or did it.
    ApiActivity,
}

/// What was done, in the numbers of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Activity<'a> {
    pub(super) id: u32,
    pub(super) name: &'a str,
}

impl Activity<'_> {
    /// What OCSF calls it, whatever the event calls it.
    pub(super) fn caption(self) -> String {
        match self.id {
            OTHER => "Other".to_owned(),
            _ => self.name.to_owned(),
        }
    }
}

/// What fits no number.
const OTHER: u32 = 99;

impl Class {
    pub(super) fn of(part: Part) -> Self {
        match part {
            Part::Proposal
            | Part::Leave
            | Part::Denial
            | Part::Hold
            | Part::Decision
            | Part::Intent
            | Part::Outcome
            | Part::Checkpoint
            | Part::Return
            | Part::Session => Self::ApiActivity,
            Part::Change(_) => Self::EntityManagement,
            Part::Stranger => Self::Authentication,
            Part::Digest | Part::Other => Self::Base,
        }
    }

    pub(super) fn uid(self) -> u32 {
        match self {
            Self::Base => 0,
            Self::EntityManagement => 3004,
            Self::Authentication => 3002,
            Self::ApiActivity => 6003,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Base => "Base Event",
            Self::EntityManagement => "Entity Management",
            Self::Authentication => "Authentication",
            Self::ApiActivity => "API Activity",
        }
    }

    pub(super) fn category(self) -> (u32, &'static str) {
        match self {
            Self::Base => (0, "Uncategorized"),
            Self::EntityManagement | Self::Authentication => (3, "Identity & Access Management"),
            Self::ApiActivity => (6, "Application Activity"),
        }
    }

    /// What was done. `operation` is its name where there is no number for it.
    pub(super) fn activity<'a>(
        self,
        part: Part,
        kind: &'a str,
        operation: &'a str,
    ) -> Activity<'a> {
        let [create, read, update, delete, logon] = [
            (1, "Create"),
            (2, "Read"),
            (3, "Update"),
            (4, "Delete"),
            (1, "Logon"),
        ]
        .map(|(id, name)| Activity { id, name });
        let other = |name| Activity { id: OTHER, name };
        match (self, part) {
            (Self::Base, _) => other(kind),
            (Self::Authentication, _) => logon,
            (_, Part::Change(Change::Made)) | (_, Part::Checkpoint) => create,
            (_, Part::Change(Change::Changed)) | (_, Part::Return) => update,
            (_, Part::Change(Change::Removed)) => delete,
            (_, Part::Session) => other(kind),
            _ => match operation {
                "file.write" | "file.move" | "file.chmod" | "db.write" => update,
                "file.delete" | "db.drop" => delete,
                "file.read" | "git.read" | "net.fetch" | "db.read" | "secret.read" => read,
                other_operation => other(other_operation),
            },
        }
    }
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) id: u32,
    pub(super) name: &'static str,
}

impl Standing {
    pub(super) fn of(part: Part, body: &Body) -> Self {
        let [unknown, success, failure] =
            [(0, "Unknown"), (1, "Success"), (2, "Failure")].map(|(id, name)| Self { id, name });
        match part {
            Part::Denial | Part::Stranger => failure,
            Part::Outcome => match body.text("outcome") {
                Some("unknown") | None => unknown,
                Some(outcome) if is_success(outcome) => success,
                Some(_) => failure,
            },
            Part::Proposal | Part::Hold | Part::Intent | Part::Digest | Part::Other => unknown,
            Part::Leave
            | Part::Decision
            | Part::Checkpoint
            | Part::Return
            | Part::Change(_)
            | Part::Session => success,
        }
    }
}

/// What the gate said: OCSF's profile `security_control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Ruling {
    action_id: u32,
    action: &'static str,
    disposition_id: u32,
    disposition: &'static str,
    is_alert: bool,
}

impl Ruling {
    pub(super) fn of(part: Part, body: &Body, severity: u32) -> Option<Self> {
        let state = body.text("state").unwrap_or_default();
        let (action_id, action, disposition_id, disposition) = match part {
            Part::Leave => (1, "Allowed", 1, "Allowed"),
            Part::Denial => (2, "Denied", 2, "Blocked"),
            Part::Hold => (0, "Unknown", 14, "Delayed"),
            Part::Decision => match state {
                "approved" => (1, "Allowed", 8, "Approved"),
                "denied" | "halted" => (2, "Denied", 25, "Rejected"),
                _ => (0, "Unknown", 14, "Delayed"),
            },
            Part::Return => (1, "Allowed", 9, "Restored"),
            _ => return None,
        };
        Some(Self {
            action_id,
            action,
            disposition_id,
            disposition,
            is_alert: severity >= 4,
        })
    }
}

/// How much it matters to somebody who watches.
pub(super) fn severity(part: Part, body: &Body) -> (u32, &'static str) {
    let informational = (1, "Informational");
    let (low, medium, high) = ((2, "Low"), (3, "Medium"), (4, "High"));
    match part {
        // Whoever reaches for the safeguard itself is looked at first.
        Part::Denial if body.text("code") == Some("CONTROL_FORBIDDEN") => high,
        Part::Denial | Part::Stranger => medium,
        Part::Hold => low,
        Part::Outcome => match body.text("outcome") {
            Some("unknown") => medium,
            Some(outcome) if !is_success(outcome) => low,
            _ => informational,
        },
        _ => informational,
    }
}
