//! What an endpoint is: a command with fields, a path, and the roles that may use it. No
//! endpoint is named here.

use safepoint_server::api::{EndpointNote, Method, Reading};
use safepoint_server::commands::Role;

use crate::commands::form::{Field, Form, Place, Shape, field};

/// One endpoint, and the command behind it.
pub(super) struct Endpoint {
    pub(super) method: Method,
    /// With `{names}` of fields in it.
    pub(super) path: &'static str,
    /// What it does, in a sentence.
    pub(super) summary: &'static str,
    /// Who may. There is none without.
    pub(super) roles: &'static [Role],
    pub(super) list: List,
    pub(super) form: Form,
}

/// Whether what it gives comes in pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// It is one thing.
    No,
    /// The command gives all of it up to a limit: the field that has them, and what each is
    /// known by.
    Cut(&'static str, &'static str),
    /// The command has pages itself, by places in the trail.
    Places,
}

/// Works: in sessions of its own.
pub(super) const AGENT: &[Role] = &[Role::Agent];
/// Sees sessions: agents their own.
pub(super) const SESSIONS: &[Role] = &[Role::Agent, Role::Operator, Role::Auditor];
/// Ends a session.
pub(super) const ENDERS: &[Role] = &[Role::Agent, Role::Operator];
/// Sees what is decided, and what was recorded.
pub(super) const READERS: &[Role] = &[Role::Operator, Role::Auditor];
/// Decides.
pub(super) const OPERATOR: &[Role] = &[Role::Operator];
/// Sees checkpoints: agents those of the workspaces that their token names.
pub(super) const LOOKERS: &[Role] = &[Role::Agent, Role::Operator, Role::Auditor];
/// Changes workspaces: agents those that their token names.
pub(super) const CHANGERS: &[Role] = &[Role::Agent, Role::Operator];
/// Tries out rules.
pub(super) const STEWARDS: &[Role] = &[Role::Steward, Role::Operator];
/// Sees how the server stands.
pub(super) const STATUS: &[Role] = &[Role::Operator, Role::Steward, Role::Auditor];

/// Which workspace: the same field everywhere.
pub(super) const WORKSPACE: Field = field(
    &["workspace"],
    Shape::Text,
    Place::Apart,
    "The workspace: its path below a root of the server; the only root itself without it",
);
pub(super) const LIMIT: Field = field(
    &["limit"],
    Shape::Limit,
    Place::Apart,
    "At most so many; 100 without it",
);
pub(super) const CURSOR: Field = field(
    &["cursor"],
    Shape::Cursor,
    Place::Apart,
    "Where the page before ended, as its `Link` header says",
);
pub(super) const SESSION_ID: Field = field(
    &["session_id"],
    Shape::Id,
    Place::Session,
    "The session; the beginning of its id is enough",
);
pub(super) const SIGNATURE: Field = field(
    &["signature"],
    Shape::Long,
    Place::Text("--signature"),
    "The signed note of the operator whose token this is",
);
pub(super) const DRY_RUN: Field = field(
    &["dry_run"],
    Shape::Flag,
    Place::Switch("--dry-run"),
    "Show what would be done, and do nothing",
);

impl Endpoint {
    /// Whether it has a field of this name.
    pub(super) fn takes(&self, name: &str) -> bool {
        self.form.fields.iter().any(|field| field.name() == name)
    }

    /// Whether a field stands in the path.
    pub(super) fn is_in_path(&self, name: &str) -> bool {
        self.path
            .split('/')
            .any(|piece| piece.strip_prefix('{').and_then(|it| it.strip_suffix('}')) == Some(name))
    }

    /// What the server must know of it.
    pub(super) fn note(&self) -> EndpointNote {
        let outside = |field: &&Field| match self.method {
            Method::Get => true,
            Method::Post => self.is_in_path(field.name()),
        };
        let fields = self.form.fields.iter().filter(outside);
        EndpointNote {
            name: self.form.name,
            method: self.method,
            path: self.path,
            roles: self.roles,
            parameters: fields
                .map(|field| (field.name(), reading(field.shape)))
                .collect(),
        }
    }
}

fn reading(shape: Shape) -> Reading {
    match shape {
        Shape::Count | Shape::Limit => Reading::Count,
        Shape::Flag => Reading::Flag,
        Shape::Texts | Shape::Paths => Reading::Texts,
        Shape::Text
        | Shape::Long
        | Shape::Id
        | Shape::Cursor
        | Shape::Choice(_)
        | Shape::Object
        | Shape::Named
        | Shape::Objects
        | Shape::Anything => Reading::Text,
    }
}
