//! Checkpoints of the workspaces below the roots of the server, and the way back.

use safepoint_server::api::Method;
use safepoint_server::commands::Role;

use crate::commands::form::{Field, Form, Place, Session, Shape, field};
use crate::commands::serve::endpoint::{
    CHANGERS, CURSOR, DRY_RUN, Endpoint, LIMIT, LOOKERS, List, READERS, WORKSPACE,
};

const CHECKPOINT_ID: Field = field(
    &["checkpoint_id"],
    Shape::Id,
    Place::Word,
    "The checkpoint; the beginning of its id is enough",
);
/// The same before the `--`.
const COMPARED: Field = field(
    &["checkpoint_id"],
    Shape::Id,
    Place::Before,
    "The checkpoint to compare; the beginning of its id is enough",
);
const PATHS: Field = field(
    &["paths"],
    Shape::Paths,
    Place::Word,
    "Only these files, directories or patterns of the workspace",
);

const fn endpoint(
    (method, path): (Method, &'static str),
    summary: &'static str,
    roles: &'static [Role],
    list: List,
    form: Form,
) -> Endpoint {
    Endpoint {
        method,
        path,
        summary,
        roles,
        list,
        form,
    }
}

const fn form(
    name: &'static str,
    fields: &'static [Field],
    command: &'static [&'static str],
    replies: &'static [&'static str],
) -> Form {
    Form {
        name,
        fields,
        needs: &[],
        command,
        replies,
        session: Session::None,
    }
}

pub(super) const ENDPOINTS: &[Endpoint] = &[
    endpoint(
        (Method::Get, "/v1/checkpoints"),
        "List checkpoints of a workspace, the newest first",
        LOOKERS,
        List::Cut("checkpoints", "id"),
        form(
            "checkpoint_list",
            &[
                WORKSPACE,
                LIMIT,
                CURSOR,
                field(
                    &["automatic"],
                    Shape::Flag,
                    Place::Switch("--automatic"),
                    "Those too that were made by themselves, around roll backs and actions",
                ),
            ],
            &["list"],
            &["list"],
        ),
    ),
    endpoint(
        (Method::Post, "/v1/checkpoints"),
        "Capture files, git state and states exactly, so that they can be restored",
        CHANGERS,
        List::No,
        form(
            "checkpoint_create",
            &[
                WORKSPACE,
                field(
                    &["scope"],
                    Shape::Paths,
                    Place::Word,
                    "Files, directories or patterns of the workspace; all of it without any",
                ),
                field(
                    &["reason"],
                    Shape::Text,
                    Place::Option("--reason"),
                    "Why it is made",
                ),
                field(
                    &["expiry"],
                    Shape::Text,
                    Place::Option("--expiry"),
                    "When it ceases to authorise changes: `24h`, `7d`, an RFC 3339 time or `never`",
                ),
                field(
                    &["state"],
                    Shape::Named,
                    Place::Pairs("--state"),
                    "Named states and their values",
                ),
            ],
            &["checkpoint"],
            &["checkpoint"],
        ),
    ),
    endpoint(
        (Method::Get, "/v1/checkpoints/{checkpoint_id}"),
        "Show one checkpoint",
        LOOKERS,
        List::No,
        form(
            "checkpoint_show",
            &[CHECKPOINT_ID, WORKSPACE],
            &["show"],
            &["show"],
        ),
    ),
    endpoint(
        (Method::Get, "/v1/checkpoints/{checkpoint_id}/diff"),
        "Show what changed since a checkpoint, or between two",
        LOOKERS,
        List::No,
        form(
            "checkpoint_diff",
            &[
                COMPARED,
                field(
                    &["other"],
                    Shape::Id,
                    Place::Before,
                    "Another one to compare it with; the present without it",
                ),
                WORKSPACE,
                PATHS,
                field(
                    &["name_only"],
                    Shape::Flag,
                    Place::Switch("--name-only"),
                    "Names alone",
                ),
            ],
            &["diff"],
            &["diff"],
        ),
    ),
    endpoint(
        (Method::Get, "/v1/checkpoints/{checkpoint_id}/verify"),
        "Tell whether a checkpoint can be restored",
        LOOKERS,
        List::No,
        form(
            "checkpoint_verify",
            &[CHECKPOINT_ID, WORKSPACE],
            &["verify"],
            &["verify"],
        ),
    ),
    endpoint(
        (Method::Post, "/v1/checkpoints/{checkpoint_id}/rollback"),
        "Make the workspace, or a part of it, identical to a checkpoint",
        CHANGERS,
        List::No,
        form(
            "checkpoint_rollback",
            &[
                CHECKPOINT_ID,
                WORKSPACE,
                PATHS,
                DRY_RUN,
                field(
                    &["expired"],
                    Shape::Flag,
                    Place::Switch("--expired"),
                    "Restore it although it has expired",
                ),
            ],
            &["rollback"],
            &["rollback", "rollback-plan"],
        ),
    ),
    endpoint(
        (Method::Post, "/v1/undo"),
        "Take back what one action did, and keep what came later",
        CHANGERS,
        List::No,
        form(
            "undo",
            &[
                field(
                    &["action_id"],
                    Shape::Id,
                    Place::Word,
                    "Which action; the last one without it",
                ),
                WORKSPACE,
                DRY_RUN,
            ],
            &["undo"],
            &["rollback", "rollback-plan"],
        ),
    ),
    endpoint(
        (Method::Post, "/v1/redo"),
        "Take back the last roll back or undo",
        CHANGERS,
        List::No,
        form(
            "redo",
            &[WORKSPACE, DRY_RUN],
            &["redo"],
            &["rollback", "rollback-plan"],
        ),
    ),
    endpoint(
        (Method::Get, "/v1/actions"),
        "List what happened in a workspace, the newest first",
        LOOKERS,
        List::Cut("actions", "action_id"),
        form(
            "action_list",
            &[WORKSPACE, LIMIT, CURSOR],
            &["log"],
            &["log"],
        ),
    ),
    endpoint(
        (Method::Get, "/v1/audit"),
        "Tell what was done in a workspace, by whom, why and with what outcome",
        READERS,
        List::No,
        form(
            "audit",
            &[
                WORKSPACE,
                field(
                    &["scope"],
                    Shape::Paths,
                    Place::Each("--scope"),
                    "Only what concerns these files, directories or patterns",
                ),
                field(
                    &["since"],
                    Shape::Text,
                    Place::Option("--since"),
                    "Only since then: an RFC 3339 time, or how long ago (90s, 24h, 7d)",
                ),
                field(
                    &["until"],
                    Shape::Text,
                    Place::Option("--until"),
                    "Only before then",
                ),
                field(
                    &["actor"],
                    Shape::Text,
                    Place::Option("--actor"),
                    "Only by this actor",
                ),
            ],
            &["audit"],
            &["audit"],
        ),
    ),
];
