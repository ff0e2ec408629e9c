//! Workspaces of agents, their chains, and tasks.
//!
//! An agent writes into a chain with the token of that workspace besides its own, and looks.
//! Everything else is the operator's, who coordinates.

use safepoint_server::api::Method;

use crate::commands::form::{Field, Form, Place, Session, Shape, field};
use crate::commands::serve::endpoint::{
    AGENT, Endpoint, LOOKERS, List, OPERATOR, READERS, WORKSPACE,
};

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

pub(super) const WORKSPACES: &[Endpoint] = &[
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
                "Where it is to go: active, blocked, suspended, integrating, closed, failed …",
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

pub(super) const TAKEN_OVER: &[Endpoint] = &[
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

pub(super) const TASKS: &[Endpoint] = &[
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
