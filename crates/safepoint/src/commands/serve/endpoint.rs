//! What an endpoint is: a command with fields, a path, and the roles that may use it. No
//! endpoint is named here.

use safepoint_server::api::{EndpointNote, Method, Reading};
use safepoint_server::commands::Role;

use crate::commands::form::{Field, Form, Place, Shape, field};

/// One endpoint, and the command behind it.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// With `{names}` of fields in it.
    pub(crate) path: &'static str,
    /// What it does, in a sentence.
    pub(crate) summary: &'static str,
    /// Who may. There is none without.
    pub(crate) roles: &'static [Role],
    pub(crate) list: List,
    pub(crate) form: Form,
}

/// Whether what it gives comes in pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// It is one thing.
    No,
    /// The command gives all of it up to a limit: the field that has them, and what each is
    /// known by.
    Cut(&'static str, &'static str),
    /// The command has pages itself, by places in the trail.
    Places,
}

/// Works: in sessions of its own.
pub(crate) const AGENT: &[Role] = &[Role::Agent];
/// Sees sessions: agents their own.
pub(crate) const SESSIONS: &[Role] = &[Role::Agent, Role::Operator, Role::Auditor];
/// Ends a session.
pub(crate) const ENDERS: &[Role] = &[Role::Agent, Role::Operator];
/// Sees what is decided, and what was recorded.
pub(crate) const READERS: &[Role] = &[Role::Operator, Role::Auditor];
/// Decides.
pub(crate) const OPERATOR: &[Role] = &[Role::Operator];
/// Sees checkpoints: agents those of the workspaces that their token names.
pub(crate) const LOOKERS: &[Role] = &[Role::Agent, Role::Operator, Role::Auditor];
/// Changes workspaces: agents those that their token names.
pub(crate) const CHANGERS: &[Role] = &[Role::Agent, Role::Operator];
/// Tries out rules.
pub(crate) const STEWARDS: &[Role] = &[Role::Steward, Role::Operator];
/// Sees how the server stands.
pub(crate) const STATUS: &[Role] = &[Role::Operator, Role::Steward, Role::Auditor];

/// Which workspace: the same field everywhere.
pub(crate) const WORKSPACE: Field = field(
    &["workspace"],
    Shape::Text,
    Place::Apart,
    "The workspace: its path below a root of the server; the only root itself without it",
);
pub(crate) const LIMIT: Field = field(
    &["limit"],
    Shape::Limit,
    Place::Apart,
    "At most so many; 100 without it",
);
pub(crate) const CURSOR: Field = field(
    &["cursor"],
    Shape::Cursor,
    Place::Apart,
    "Where the page before ended, as its `Link` header says",
);
pub(crate) const SESSION_ID: Field = field(
    &["session_id"],
    Shape::Id,
    Place::Session,
    "The session; the beginning of its id is enough",
);
pub(crate) const SIGNATURE: Field = field(
    &["signature"],
    Shape::Long,
    Place::Text("--signature"),
    "The signed note of the operator whose token this is",
);
pub(crate) const DRY_RUN: Field = field(
    &["dry_run"],
    Shape::Flag,
    Place::Switch("--dry-run"),
    "Show what would be done, and do nothing",
);

impl Endpoint {
    /// Whether it has a field of this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.form.fields.iter().any(|field| field.name() == name)
    }

    /// Whether a field stands in the path.
    pub(crate) fn is_in_path(&self, name: &str) -> bool {
        self.path
            .split('/')
            .any(|piece| piece.strip_prefix('{').and_then(|it| it.strip_suffix('}')) == Some(name))
    }

    /// What the server must know of it.
    pub(crate) fn note(&self) -> EndpointNote {
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
