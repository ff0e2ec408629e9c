//! What becomes of the work of a workspace, as endpoints. All of it is the operator's.

use super::{WORKSPACE_ID, lead, option};
use crate::commands::form::{Place, Shape, field};
use crate::commands::serve::endpoint::Endpoint;

pub(in super::super) const ENDPOINTS: &[Endpoint] = &[
    lead(
        "/v1/workspaces/{workspace_id}/integrate",
        "Take over the work of a workspace whose agent is done, or salvage a failed one",
        "workspace_integrate",
        &[
            WORKSPACE_ID,
            option(
                &["strategy"],
                Shape::Choice(&["direct", "layered", "evaluated"]),
                "--strategy",
                "How closely is looked",
            ),
            field(
                &["salvage"],
                Shape::Flag,
                Place::Switch("--salvage"),
                "Use what can be used of a workspace that has failed",
            ),
            option(
                &["checkpoint"],
                Shape::Id,
                "--checkpoint",
                "Which checkpoint to salvage",
            ),
            field(
                &["finding"],
                Shape::Texts,
                Place::Each("--finding"),
                "Something that only a mind finds, with `evaluated`: `semantic_contradiction=TEXT` …",
            ),
        ],
        &[&["workspace_id"]],
        // Nobody sits at a terminal here.
        &["workspace", "integrate", "--no-tui"],
        &["workspace-integration"],
    ),
    lead(
        "/v1/workspaces/{workspace_id}/resolve",
        "Decide a conflict of an integration; after the last one it goes on",
        "workspace_resolve",
        &[
            WORKSPACE_ID,
            field(
                &["conflict"],
                Shape::Id,
                Place::Word,
                "Which conflict, such as `c1`; without one, all are shown, and what is decided goes on",
            ),
            option(
                &["use"],
                Shape::Choice(&["ours", "theirs", "merged"]),
                "--use",
                "What becomes of it",
            ),
            field(
                &["content"],
                Shape::Long,
                Place::Text("--content"),
                "This is to be in its place",
            ),
            field(
                &["rework"],
                Shape::Flag,
                Place::Switch("--rework"),
                "The agent has to do it again: the workspace fails",
            ),
            field(
                &["human"],
                Shape::Flag,
                Place::Switch("--human"),
                "A person has decided, and not the coordinator",
            ),
        ],
        &[&["workspace_id"]],
        &["workspace", "resolve", "--no-tui"],
        &["workspace-integration"],
    ),
    lead(
        "/v1/workspaces/{workspace_id}/decline",
        "Refuse the work of a workspace whose agent is done: it fails",
        "workspace_decline",
        &[
            WORKSPACE_ID,
            field(
                &["revise"],
                Shape::Flag,
                Place::Switch("--revise"),
                "It is to be done again, in a new workspace",
            ),
        ],
        &[&["workspace_id"]],
        &["workspace", "decline"],
        &["workspace-state"],
    ),
];
