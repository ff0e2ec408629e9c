//! Tasks, as endpoints. Who reads sees them, and the operator says what is to be done.

use super::{TASK_ID, WORKSPACE_ID, by, lead, look, of_task, option};
use crate::commands::form::{Place, Shape, field};
use crate::commands::serve::endpoint::{Endpoint, READERS};

pub(in super::super) const ENDPOINTS: &[Endpoint] = &[
    by(
        READERS,
        look(
            "/v1/tasks",
            "List tasks, the oldest first",
            "task_list",
            &[option(
                &["status"],
                Shape::Text,
                "--status",
                "Only those that are so far: draft, pending, assigned, in_progress …",
            )],
            &["task", "list"],
            &["task-list"],
        ),
    ),
    lead(
        "/v1/tasks",
        "Write down what is to be done",
        "task_create",
        &[
            field(
                &["title"],
                Shape::Text,
                Place::Word,
                "What is to be done, in a sentence",
            ),
            field(
                &["after"],
                Shape::Texts,
                Place::Each("--after"),
                "Tasks that must be completed first",
            ),
            field(
                &["draft"],
                Shape::Flag,
                Place::Switch("--draft"),
                "Only propose it: it waits until it is approved",
            ),
        ],
        &[&["title"]],
        &["task", "create"],
        &["task"],
    ),
    by(
        READERS,
        look(
            "/v1/tasks/{task_id}",
            "Show one task",
            "task_show",
            &[TASK_ID],
            &["task", "show"],
            &["task"],
        ),
    ),
    lead(
        "/v1/tasks/{task_id}/assign",
        "Give a task to a workspace",
        "task_assign",
        &[TASK_ID, WORKSPACE_ID],
        &[&["task_id", "workspace_id"]],
        &["task", "assign"],
        &["task"],
    ),
    of_task(
        "/v1/tasks/{task_id}/approve",
        "Let a draft be done",
        "task_approve",
        &["task", "approve"],
    ),
    of_task(
        "/v1/tasks/{task_id}/retry",
        "Have a task that failed tried again",
        "task_retry",
        &["task", "retry"],
    ),
    of_task(
        "/v1/tasks/{task_id}/cancel",
        "Want a task no longer",
        "task_cancel",
        &["task", "cancel"],
    ),
];
