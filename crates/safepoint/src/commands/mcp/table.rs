//! The tools, as a table: the command of each, and where what it is given goes.
//!
//! What only an operator or a person does is not here.

use safepoint_server::mcp::Hints;

use crate::commands::form::{Field, Form, OUTCOME, Place, RESULT, Session, Shape, field};

/// One tool, and the command behind it.
pub(super) struct Tool {
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) hints: Hints,
    pub(super) form: Form,
}

const CHECKPOINT_ID: &[&str] = &["checkpoint_id", "checkpoint", "id"];
const ACTION_ID: &[&str] = &["action_id", "action"];
const SESSION_ID: Field = field(
    &["session_id", "session"],
    Shape::Id,
    Place::Session,
    "Another session than that of this connection, such as the one a denial names",
);
const DRY_RUN: Field = field(
    &["dry_run"],
    Shape::Flag,
    Place::Switch("--dry-run"),
    "Show what would be done, and do nothing",
);

const READS: Hints = Hints {
    read_only: true,
    destructive: false,
    idempotent: true,
    open_world: false,
};
const ADDS: Hints = Hints {
    read_only: false,
    destructive: false,
    idempotent: false,
    open_world: false,
};
const CHANGES: Hints = Hints {
    read_only: false,
    destructive: true,
    idempotent: false,
    open_world: false,
};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        title: "Make a checkpoint",
        description: "Capture files, git state, databases and states exactly, so that they can be restored. Do it before changing anything; `mutate` needs one.",
        hints: ADDS,
        form: Form {
            name: "checkpoint",
            fields: &[
                field(
                    &["scope"],
                    Shape::Texts,
                    Place::Word,
                    "Files, directories, patterns, `state:NAME` or databases; the whole workspace without any",
                ),
                field(
                    &["reason"],
                    Shape::Text,
                    Place::Option("--reason"),
                    "Why it is made",
                ),
                field(
                    &["checkpoint_type", "type"],
                    Shape::Choice(&[
                        "git_stash",
                        "file_backup",
                        "state_snapshot",
                        "database_savepoint",
                    ]),
                    Place::Option("--type"),
                    "How it is kept; by default what fits the workspace",
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
            needs: &[],
            command: &["checkpoint"],
            replies: &["checkpoint"],
            session: Session::None,
        },
    },
    Tool {
        title: "Change something under a checkpoint",
        description: "Apply an operation to a file, a state or a database that a checkpoint covers; check it, and keep it or roll it back. A checkpoint allows one change. What the rules do not let through is an error that says how to go on.",
        hints: CHANGES,
        form: Form {
            name: "mutate",
            fields: &[
                field(
                    &["target"],
                    Shape::Text,
                    Place::Word,
                    "What to change: a path, `state:NAME` or a database; operations in a batch may name their own",
                ),
                field(
                    &["operation"],
                    Shape::Objects,
                    Place::Input("--operation"),
                    r#"What to do, such as {"type": "edit", "changes": [{"old": "a", "new": "b"}]} or {"type": "write", "content": "…"}; an array is a batch"#,
                ),
                field(
                    CHECKPOINT_ID,
                    Shape::Id,
                    Place::Option("--checkpoint"),
                    "The checkpoint that allows it; the beginning of its id is enough",
                ),
                field(
                    &["auto_checkpoint"],
                    Shape::Flag,
                    Place::Switch("--auto-checkpoint"),
                    "Make a checkpoint of the workspace first, instead of naming one",
                ),
                field(
                    &["verify"],
                    Shape::Text,
                    Place::Option("--verify"),
                    "A line for the shell that must succeed, or the change is rolled back",
                ),
                field(
                    &["strict"],
                    Shape::Flag,
                    Place::Switch("--strict"),
                    "Fail, and roll back, when anything but the target changes",
                ),
            ],
            needs: &[&["operation"]],
            command: &["mutate"],
            replies: &["mutate"],
            session: Session::Within,
        },
    },
    Tool {
        title: "Verify a checkpoint or a change",
        description: "Tell whether a checkpoint can be restored, or whether a change still holds.",
        hints: READS,
        form: Form {
            name: "verify",
            fields: &[
                field(
                    CHECKPOINT_ID,
                    Shape::Id,
                    Place::Word,
                    "Which checkpoint; the beginning of its id is enough",
                ),
                field(ACTION_ID, Shape::Id, Place::Word, "Or which action"),
            ],
            needs: &[&["checkpoint_id"], &["action_id"]],
            command: &["verify"],
            replies: &["verify"],
            session: Session::None,
        },
    },
    Tool {
        title: "Roll back to a checkpoint",
        description: "Make the workspace, or a part of it, identical to a checkpoint. What is there now is kept as a checkpoint first; `undo` takes the roll back back.",
        hints: Hints {
            idempotent: true,
            ..CHANGES
        },
        form: Form {
            name: "rollback",
            fields: &[
                field(
                    CHECKPOINT_ID,
                    Shape::Id,
                    Place::Word,
                    "Which checkpoint; the beginning of its id is enough",
                ),
                field(
                    &["paths", "scope"],
                    Shape::Texts,
                    Place::Word,
                    "Only these files, directories or patterns",
                ),
                DRY_RUN,
                field(
                    &["expired"],
                    Shape::Flag,
                    Place::Switch("--expired"),
                    "Restore it although it has expired",
                ),
            ],
            needs: &[&["checkpoint_id"]],
            command: &["rollback"],
            replies: &["rollback", "rollback-plan"],
            session: Session::Within,
        },
    },
    Tool {
        title: "Undo one action",
        description: "Take back what one action did, and keep what came later. `log` lists actions.",
        hints: CHANGES,
        form: Form {
            name: "undo",
            fields: &[
                field(
                    ACTION_ID,
                    Shape::Id,
                    Place::Word,
                    "Which action; the last one without it",
                ),
                DRY_RUN,
            ],
            needs: &[],
            command: &["undo"],
            replies: &["rollback", "rollback-plan"],
            session: Session::Within,
        },
    },
    Tool {
        title: "Take the last roll back or undo back",
        description: "Bring back what the last `rollback` or `undo` took away.",
        hints: CHANGES,
        form: Form {
            name: "redo",
            fields: &[DRY_RUN],
            needs: &[],
            command: &["redo"],
            replies: &["rollback", "rollback-plan"],
            session: Session::Within,
        },
    },
    Tool {
        title: "Show one checkpoint",
        description: "Show what a checkpoint holds, what it does not cover, and the command that restores it.",
        hints: READS,
        form: Form {
            name: "show",
            fields: &[field(
                CHECKPOINT_ID,
                Shape::Id,
                Place::Word,
                "Which checkpoint; the beginning of its id is enough",
            )],
            needs: &[&["checkpoint_id"]],
            command: &["show"],
            replies: &["show"],
            session: Session::None,
        },
    },
    Tool {
        title: "Show what changed",
        description: "Show what changed since a checkpoint, or between two.",
        hints: READS,
        form: Form {
            name: "diff",
            fields: &[
                field(
                    CHECKPOINT_ID,
                    Shape::Id,
                    Place::Before,
                    "The checkpoint to compare; the beginning of its id is enough",
                ),
                field(
                    &["other_checkpoint_id", "other"],
                    Shape::Id,
                    Place::Before,
                    "Another one to compare it with; the present without it",
                ),
                field(
                    &["paths", "scope"],
                    Shape::Texts,
                    Place::Word,
                    "Only these files, directories or patterns",
                ),
                field(
                    &["name_only"],
                    Shape::Flag,
                    Place::Switch("--name-only"),
                    "Names alone",
                ),
                field(
                    &["stat"],
                    Shape::Flag,
                    Place::Switch("--stat"),
                    "How many lines changed in each file",
                ),
            ],
            needs: &[&["checkpoint_id"]],
            command: &["diff"],
            replies: &["diff"],
            session: Session::None,
        },
    },
    Tool {
        title: "Ask whether an action may be done",
        description: "Put an action that you do yourself before the rules. Done only if the decision is `allow`; otherwise an error lists the questions to `answer`, or says who must decide. Report the end with `record`.",
        hints: ADDS,
        form: Form {
            name: "request",
            fields: &[
                field(
                    ACTION_ID,
                    Shape::Text,
                    Place::Word,
                    "The action, such as `ticket.delete`",
                ),
                field(
                    &["parameters", "params"],
                    Shape::Anything,
                    Place::Input("--params"),
                    "Its parameters",
                ),
                field(
                    &["risk_tier", "risk"],
                    Shape::Choice(&["low", "medium", "high", "critical"]),
                    Place::Option("--risk"),
                    "The risk that you see in it; that of the rules can be raised, never lowered",
                ),
                field(
                    &["wait"],
                    Shape::Text,
                    Place::Option("--wait"),
                    "Wait so long for a person to decide, such as `5m`; at most `10m`",
                ),
                SESSION_ID,
            ],
            needs: &[&["action_id"]],
            command: &["session", "request"],
            replies: &["session-step"],
            session: Session::Word,
        },
    },
    Tool {
        title: "Answer the questions of a gate",
        description: "Answer the questions that keep an action waiting, then ask for the action again.",
        hints: ADDS,
        form: Form {
            name: "answer",
            fields: &[
                field(
                    CHECKPOINT_ID,
                    Shape::Text,
                    Place::Word,
                    "The gate that asks, as `checkpoint_id` in the question",
                ),
                field(
                    &["answers"],
                    Shape::Object,
                    Place::Input("--answers"),
                    r#"The answers by question, such as {"agree": true}"#,
                ),
                field(
                    &["hold_id", "hold"],
                    Shape::Id,
                    Place::Option("--hold"),
                    "The hold, where the gate waits in several",
                ),
                SESSION_ID,
            ],
            needs: &[&["checkpoint_id", "answers"]],
            command: &["session", "answer"],
            replies: &["session-step"],
            session: Session::Word,
        },
    },
    Tool {
        title: "Record how something ended, or what was produced",
        description: "With `request_id` and `outcome`: tell how a requested action ended. With `intent` and `workspace`: add what you produced or noticed to the chain of your workspace, for good; `parent` is the last checkpoint there. With `intent` alone: note it in the trail.",
        hints: ADDS,
        form: Form {
            name: "record",
            fields: &[
                field(
                    &["request_id"],
                    Shape::Id,
                    Place::Word,
                    "The request, as `request` named it",
                ),
                OUTCOME,
                RESULT,
                field(
                    &["intent", "text"],
                    Shape::Text,
                    Place::Note,
                    "Why this is recorded, in your words",
                ),
                field(
                    &["workspace", "workspace_id"],
                    Shape::Id,
                    Place::Word,
                    "Your workspace",
                ),
                field(
                    &["token"],
                    Shape::Id,
                    Place::Option("--token"),
                    "The token of your workspace, where it is not in `SAFEPOINT_TOKEN`",
                ),
                field(
                    &["request_key"],
                    Shape::Text,
                    Place::Option("--request-key"),
                    "The same key with the same fields gives the first result again",
                ),
                field(
                    &["type"],
                    Shape::Text,
                    Place::Note,
                    "`artifact` for what was produced, `observation` for what was noticed, or a type of the run",
                ),
                field(
                    &["parent"],
                    Shape::Text,
                    Place::Note,
                    "The checkpoint that it builds upon: the head of the chain; none for the first",
                ),
                field(
                    &["resource_usage"],
                    Shape::Object,
                    Place::Note,
                    "What it took since then: `tokens_consumed`, `wall_time`, `cost`",
                ),
                field(
                    &["payload"],
                    Shape::Object,
                    Place::Note,
                    "What it is: `content`, `files_changed`, `artifacts`",
                ),
                field(
                    &["status"],
                    Shape::Choice(&["provisional", "final"]),
                    Place::Note,
                    "Whether it is complete",
                ),
                field(
                    &["confidence"],
                    Shape::Choice(&["high", "medium", "low"]),
                    Place::Note,
                    "How sure you are of it",
                ),
                field(
                    ACTION_ID,
                    Shape::Id,
                    Place::Option("--action"),
                    "The action that a record with `intent` belongs to",
                ),
                SESSION_ID,
            ],
            needs: &[&["request_id", "outcome"], &["intent"]],
            command: &["session", "report"],
            replies: &["session-step", "trail-entry", "workspace-checkpoint"],
            session: Session::Word,
        },
    },
    Tool {
        title: "Show how everything stands",
        description: "Show where everything is kept, how the trail stands, and the settings in force.",
        hints: READS,
        form: Form {
            name: "status",
            fields: &[],
            needs: &[],
            command: &["status"],
            replies: &["status"],
            session: Session::None,
        },
    },
    Tool {
        title: "List what happened",
        description: "List actions, the newest first, with what each changed. `undo` takes one back.",
        hints: READS,
        form: Form {
            name: "log",
            fields: &[field(
                &["limit"],
                Shape::Count,
                Place::Option("--limit"),
                "At most so many",
            )],
            needs: &[],
            command: &["log"],
            replies: &["log"],
            session: Session::None,
        },
    },
    Tool {
        title: "Audit what was done",
        description: "Tell what was done here, by whom, why and with what outcome, from the verified trail.",
        hints: READS,
        form: Form {
            name: "audit",
            fields: &[
                field(
                    &["scope"],
                    Shape::Texts,
                    Place::Each("--scope"),
                    "Only what concerns these files, directories, patterns, states or databases",
                ),
                field(
                    &["since"],
                    Shape::Text,
                    Place::Option("--since"),
                    "Only since then: an RFC 3339 time, or how long ago (90s, 24h, 7d)",
                ),
            ],
            needs: &[],
            command: &["audit"],
            replies: &["audit"],
            session: Session::None,
        },
    },
    Tool {
        title: "List checkpoints",
        description: "List checkpoints of this workspace, the newest first.",
        hints: READS,
        form: Form {
            name: "list",
            fields: &[
                field(
                    &["limit"],
                    Shape::Count,
                    Place::Option("--limit"),
                    "At most so many",
                ),
                field(
                    &["automatic"],
                    Shape::Flag,
                    Place::Switch("--automatic"),
                    "Those too that were made by themselves, around roll backs and actions",
                ),
            ],
            needs: &[],
            command: &["list"],
            replies: &["list"],
            session: Session::None,
        },
    },
];
