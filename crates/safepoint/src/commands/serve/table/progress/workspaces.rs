//! Workspaces of agents and their chains, as endpoints.
//!
//! An agent writes into a chain with the token of that workspace besides its own, and looks.
//! Everything else is the operator's, who coordinates.

use super::{REASON, TOKEN, WORKSPACE_ID, by, lead, look, option};
use crate::commands::form::{Place, Shape, field};
use crate::commands::serve::endpoint::{AGENT, Endpoint, WORKSPACE};

pub(in super::super) const ENDPOINTS: &[Endpoint] = &[
    look(
        "/v1/workspaces",
        "List workspaces of agents, each after its parent",
        "workspace_list",
        &[
            option(
                &["confidence"],
                Shape::Choice(&["high", "medium", "low"]),
                "--confidence",
                "Only those whose agent is so sure of its newest checkpoint",
            ),
            option(
                &["state"],
                Shape::Text,
                "--state",
                "Only those that stand so",
            ),
            option(
                &["run"],
                Shape::Id,
                "--run",
                "Only those of one run: its root, or any workspace in it",
            ),
        ],
        &["workspace", "list"],
        &["workspace-list"],
    ),
    lead(
        "/v1/workspaces",
        "Make a workspace, and the token of its agent, which is shown once",
        "workspace_create",
        &[
            option(
                &["parent"],
                Shape::Id,
                "--parent",
                "The workspace it is below; without one a run begins",
            ),
            option(
                &["role"],
                Shape::Text,
                "--role",
                "What its agent is: `coordinator` for the root, `worker`, `observer`, or a role of the run",
            ),
            field(
                &["directive"],
                Shape::Long,
                Place::Text("--directive"),
                "What it is to do, which makes it active at once",
            ),
            field(
                &["isolated"],
                Shape::Flag,
                Place::Switch("--isolated"),
                "Give it a directory of its own",
            ),
            option(&["task"], Shape::Id, "--task", "The task that it is for"),
            option(
                &["taxonomy"],
                Shape::Long,
                "--taxonomy-text",
                "The roles and types of the run, as a text in YAML or JSON; only for the root",
            ),
            option(
                &["timeout"],
                Shape::Text,
                "--timeout",
                "How long it may be at work before it fails: `90s`, `2h`",
            ),
            option(
                &["budget_tokens"],
                Shape::Count,
                "--budget-tokens",
                "The most tokens that it may take",
            ),
            option(
                &["budget_cost"],
                Shape::Text,
                "--budget-cost",
                "The most that it may cost, such as `2.50`",
            ),
            option(
                &["budget_time"],
                Shape::Text,
                "--budget-time",
                "The longest time that it may be at work",
            ),
            option(
                &["budget_bytes"],
                Shape::Count,
                "--budget-bytes",
                "The most bytes that its checkpoints may have",
            ),
            WORKSPACE,
        ],
        &[&["role"]],
        &["workspace", "create"],
        &["workspace-create"],
    ),
    look(
        "/v1/workspaces/{workspace_id}",
        "Show one workspace of an agent",
        "workspace_show",
        &[WORKSPACE_ID],
        &["workspace", "show"],
        &["workspace-show"],
    ),
    lead(
        "/v1/workspaces/{workspace_id}/state",
        "Move a workspace to another state",
        "workspace_state",
        &[
            WORKSPACE_ID,
            field(
                &["state"],
                Shape::Text,
                Place::Word,
                "Where it is to go: active, blocked, suspended or failed; integrations do the rest",
            ),
            REASON,
        ],
        &[&["workspace_id", "state"]],
        &["workspace", "state"],
        &["workspace-state"],
    ),
    lead(
        "/v1/workspaces/{workspace_id}/migrate",
        "Give a workspace to another agent: the old token stops counting",
        "workspace_migrate",
        &[WORKSPACE_ID],
        &[&["workspace_id"]],
        &["workspace", "migrate"],
        &["workspace-create"],
    ),
    by(
        AGENT,
        lead(
            "/v1/workspaces/{workspace_id}/checkpoint",
            "Add a checkpoint to the chain of a workspace, as its agent",
            "workspace_checkpoint",
            &[
                WORKSPACE_ID,
                TOKEN,
                field(
                    &["body"],
                    Shape::Object,
                    Place::Input("--body"),
                    "The checkpoint: type, payload, intent, parent, status, confidence",
                ),
                option(
                    &["request_key"],
                    Shape::Text,
                    "--request-key",
                    "The same key with the same body gives the first result again",
                ),
            ],
            &[&["workspace_id", "token", "body"]],
            &["workspace", "checkpoint"],
            &["workspace-checkpoint"],
        ),
    ),
    look(
        "/v1/workspaces/{workspace_id}/head",
        "Show the end of a chain",
        "workspace_head",
        &[WORKSPACE_ID],
        &["workspace", "head"],
        &["workspace-chain"],
    ),
    look(
        "/v1/workspaces/{workspace_id}/final",
        "Show the newest final checkpoint of a chain: what would be integrated",
        "workspace_final",
        &[WORKSPACE_ID],
        &["workspace", "final"],
        &["workspace-chain"],
    ),
    look(
        "/v1/workspaces/{workspace_id}/log",
        "Show a whole chain, the first checkpoint first",
        "workspace_log",
        &[WORKSPACE_ID],
        &["workspace", "log"],
        &["workspace-log"],
    ),
    look(
        "/v1/workspaces/{workspace_id}/verify",
        "Check a chain against its own proofs and against the trail",
        "workspace_verify",
        &[WORKSPACE_ID],
        &["workspace", "verify"],
        &["workspace-verify"],
    ),
    look(
        "/v1/workspaces/{workspace_id}/signals",
        "List what a workspace said and was told; `/v1/events?workspace=` has it live",
        "workspace_signals",
        &[WORKSPACE_ID],
        &["workspace", "signals"],
        &["workspace-signals"],
    ),
    by(
        AGENT,
        lead(
            "/v1/workspaces/{workspace_id}/signal",
            "Tell the parent something, as the agent of a workspace",
            "workspace_signal",
            &[
                WORKSPACE_ID,
                field(
                    &["type"],
                    Shape::Text,
                    Place::Word,
                    "What to say: ready, started, blocked, complete, failed, escalation …",
                ),
                TOKEN,
                field(
                    &["reason"],
                    Shape::Text,
                    Place::Option("--reason"),
                    "Why; blocked, failed and escalation need it",
                ),
                option(
                    &["ref"],
                    Shape::Id,
                    "--ref",
                    "What it is about, such as the id of a checkpoint",
                ),
            ],
            &[&["workspace_id", "type", "token"]],
            &["workspace", "signal"],
            &["workspace-signal"],
        ),
    ),
    lead(
        "/v1/workspaces/{workspace_id}/meter",
        "Show what a workspace took by our own account, or add to it",
        "workspace_meter",
        &[
            WORKSPACE_ID,
            option(
                &["tokens"],
                Shape::Count,
                "--tokens",
                "Add so many tokens, which whoever runs the agent has counted",
            ),
            option(
                &["cost"],
                Shape::Text,
                "--cost",
                "Add so much money, such as `0.25`",
            ),
        ],
        &[&["workspace_id"]],
        &["workspace", "meter"],
        &["workspace-meter"],
    ),
];
