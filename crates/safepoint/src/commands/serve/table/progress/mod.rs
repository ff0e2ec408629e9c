//! Workspaces of agents, their chains, and tasks: what their endpoints have in common.

pub(super) mod integration;
pub(super) mod tasks;
pub(super) mod workspaces;

use safepoint_server::api::Method;

use crate::commands::form::{Field, Form, Place, Session, Shape, field};
use crate::commands::serve::endpoint::{Endpoint, LOOKERS, List, OPERATOR};

const WORKSPACE_ID: Field = field(
    &["workspace_id"],
    Shape::Id,
    Place::Word,
    "The workspace; the beginning of its id is enough",
);
const TASK_ID: Field = field(
    &["task_id"],
    Shape::Id,
    Place::Word,
    "The task; the beginning of its id is enough",
);
const TOKEN: Field = field(
    &["token"],
    Shape::Id,
    Place::Option("--token"),
    "The token of the workspace's agent, as it was shown when the workspace was made",
);
const REASON: Field = field(&["reason"], Shape::Text, Place::Option("--reason"), "Why");

const fn option(
    names: &'static [&'static str],
    shape: Shape,
    place: &'static str,
    about: &'static str,
) -> Field {
    field(names, shape, Place::Option(place), about)
}

type Needs = &'static [&'static [&'static str]];

/// What only looks.
const fn look(
    path: &'static str,
    summary: &'static str,
    name: &'static str,
    fields: &'static [Field],
    command: &'static [&'static str],
    replies: &'static [&'static str],
) -> Endpoint {
    Endpoint {
        method: Method::Get,
        path,
        summary,
        roles: LOOKERS,
        list: List::No,
        form: Form {
            name,
            fields,
            needs: &[],
            command,
            replies,
            session: Session::None,
        },
    }
}

/// What the one who coordinates does.
const fn lead(
    path: &'static str,
    summary: &'static str,
    name: &'static str,
    fields: &'static [Field],
    needs: Needs,
    command: &'static [&'static str],
    replies: &'static [&'static str],
) -> Endpoint {
    Endpoint {
        method: Method::Post,
        path,
        summary,
        roles: OPERATOR,
        list: List::No,
        form: Form {
            name,
            fields,
            needs,
            command,
            replies,
            session: Session::None,
        },
    }
}

/// What is about one task, and takes nothing else.
const fn of_task(
    path: &'static str,
    summary: &'static str,
    name: &'static str,
    command: &'static [&'static str],
) -> Endpoint {
    lead(
        path,
        summary,
        name,
        &[TASK_ID],
        &[&["task_id"]],
        command,
        &["task"],
    )
}

/// The same for others.
const fn by(roles: &'static [safepoint_server::commands::Role], endpoint: Endpoint) -> Endpoint {
    Endpoint {
        method: endpoint.method,
        path: endpoint.path,
        summary: endpoint.summary,
        roles,
        list: endpoint.list,
        form: endpoint.form,
    }
}
