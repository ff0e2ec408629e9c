//! Sessions, and the rules they are judged under.

use safepoint_server::api::Method;

use crate::commands::form::{Field, Form, OUTCOME, Place, RESULT, Session, Shape, field};
use crate::commands::serve::endpoint::{
    AGENT, CURSOR, ENDERS, Endpoint, LIMIT, List, SESSION_ID, SESSIONS, STATUS, STEWARDS, WORKSPACE,
};

const TEXT: Field = field(
    &["text"],
    Shape::Long,
    Place::TextWord,
    "The atlas, word for word",
);

/// A step that an agent takes in a session of its own.
const fn step(
    path: &'static str,
    summary: &'static str,
    name: &'static str,
    fields: &'static [Field],
    needs: &'static [&'static [&'static str]],
    command: &'static [&'static str],
) -> Endpoint {
    Endpoint {
        method: Method::Post,
        path,
        summary,
        roles: AGENT,
        list: List::No,
        form: Form {
            name,
            fields,
            needs,
            command,
            replies: &["session-step"],
            session: Session::Word,
        },
    }
}

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Post,
        path: "/v1/sessions",
        summary: "Begin a session, under the atlases of a workspace or of the server",
        roles: AGENT,
        list: List::No,
        form: Form {
            name: "session_start",
            fields: &[
                field(
                    &["goal"],
                    Shape::Text,
                    Place::Option("--goal"),
                    "What it is for",
                ),
                WORKSPACE,
            ],
            needs: &[],
            command: &["session", "start"],
            replies: &["session-start"],
            session: Session::None,
        },
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/sessions",
        summary: "List sessions, the newest first; an agent sees its own",
        roles: SESSIONS,
        list: List::Cut("sessions", "session_id"),
        form: Form {
            name: "session_list",
            fields: &[LIMIT, CURSOR],
            needs: &[],
            command: &["session", "list"],
            replies: &["session-list"],
            session: Session::None,
        },
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/sessions/{session_id}",
        summary: "Show how a session stands",
        roles: SESSIONS,
        list: List::No,
        form: Form {
            name: "session_show",
            fields: &[SESSION_ID],
            needs: &[&["session_id"]],
            command: &["session", "show"],
            replies: &["session-show"],
            session: Session::Word,
        },
    },
    step(
        "/v1/sessions/{session_id}/input",
        "Tell what the agent reads: keywords and intervals",
        "session_input",
        &[
            SESSION_ID,
            field(
                &["text"],
                Shape::Long,
                Place::TextWord,
                "What the agent reads",
            ),
        ],
        &[&["session_id", "text"]],
        &["session", "input"],
    ),
    step(
        "/v1/sessions/{session_id}/request",
        "Ask whether an action may be done",
        "session_request",
        &[
            SESSION_ID,
            field(
                &["action"],
                Shape::Text,
                Place::Word,
                "The action, such as `ticket.delete`",
            ),
            field(
                &["parameters"],
                Shape::Anything,
                Place::Input("--params"),
                "Its parameters",
            ),
            field(
                &["risk"],
                Shape::Choice(&["low", "medium", "high", "critical"]),
                Place::Option("--risk"),
                "The risk that is seen in it; that of the rules can be raised, never lowered",
            ),
        ],
        &[&["session_id", "action"]],
        &["session", "request"],
    ),
    step(
        "/v1/sessions/{session_id}/access",
        "Ask for a capability",
        "session_access",
        &[
            SESSION_ID,
            field(&["capability"], Shape::Text, Place::Word, "Which one"),
        ],
        &[&["session_id", "capability"]],
        &["session", "access"],
    ),
    step(
        "/v1/sessions/{session_id}/ask",
        "Ask for help, or raise a checkpoint by name",
        "session_ask",
        &[
            SESSION_ID,
            field(&["topic"], Shape::Text, Place::Word, "What about"),
            field(
                &["checkpoint"],
                Shape::Text,
                Place::Option("--checkpoint"),
                "Raise this checkpoint",
            ),
        ],
        &[&["session_id"]],
        &["session", "ask"],
    ),
    step(
        "/v1/sessions/{session_id}/answer",
        "Answer the questions of a checkpoint",
        "session_answer",
        &[
            SESSION_ID,
            field(
                &["checkpoint_id"],
                Shape::Text,
                Place::Word,
                "The checkpoint that asks",
            ),
            field(
                &["answers"],
                Shape::Object,
                Place::Input("--answers"),
                "The answers by question",
            ),
            field(
                &["hold_id"],
                Shape::Id,
                Place::Option("--hold"),
                "The hold, where the checkpoint waits in several",
            ),
        ],
        &[&["session_id", "checkpoint_id", "answers"]],
        &["session", "answer"],
    ),
    step(
        "/v1/sessions/{session_id}/report",
        "Tell how an action ended",
        "session_report",
        &[
            SESSION_ID,
            field(
                &["request_id"],
                Shape::Id,
                Place::Word,
                "The request, as the answer to it named it",
            ),
            OUTCOME,
            RESULT,
        ],
        &[&["session_id", "request_id", "outcome"]],
        &["session", "report"],
    ),
    Endpoint {
        method: Method::Post,
        path: "/v1/sessions/{session_id}/end",
        summary: "End a session; what still waits is denied",
        roles: ENDERS,
        list: List::No,
        form: Form {
            name: "session_end",
            fields: &[
                SESSION_ID,
                field(
                    &["abandon"],
                    Shape::Flag,
                    Place::Switch("--abandon"),
                    "End it even if what is asked at its end is not answered",
                ),
            ],
            needs: &[&["session_id"]],
            command: &["session", "end"],
            replies: &["session-step"],
            session: Session::Word,
        },
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/atlases",
        summary: "Show the rules that apply in a workspace, as they are read",
        roles: STATUS,
        list: List::No,
        form: Form {
            name: "atlas_show",
            fields: &[WORKSPACE],
            needs: &[],
            command: &["atlas", "show"],
            replies: &["atlas-show"],
            session: Session::None,
        },
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/atlases/check",
        summary: "List everything that is wrong with an atlas",
        roles: STEWARDS,
        list: List::No,
        form: Form {
            name: "atlas_check",
            fields: &[
                TEXT,
                field(
                    &["strict"],
                    Shape::Flag,
                    Place::Switch("--strict"),
                    "Take warnings for errors",
                ),
            ],
            needs: &[&["text"]],
            command: &["atlas", "check"],
            replies: &["atlas-check"],
            session: Session::None,
        },
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/atlases/test",
        summary: "Run the examples that an atlas has in it",
        roles: STEWARDS,
        list: List::No,
        form: Form {
            name: "atlas_test",
            fields: &[TEXT],
            needs: &[&["text"]],
            command: &["atlas", "test"],
            replies: &["atlas-test"],
            session: Session::None,
        },
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/status",
        summary: "Show how the server stands",
        roles: STATUS,
        list: List::No,
        form: Form {
            name: "status",
            fields: &[],
            needs: &[],
            command: &["status"],
            replies: &["status"],
            session: Session::None,
        },
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/status/usage",
        summary: "Show how much the store holds",
        roles: STATUS,
        list: List::No,
        form: Form {
            name: "usage",
            fields: &[],
            needs: &[],
            command: &["du"],
            replies: &["du"],
            session: Session::None,
        },
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/status/doctor",
        summary: "Prove that each hook that is installed beside the server really denies",
        roles: STATUS,
        list: List::No,
        form: Form {
            name: "doctor",
            fields: &[],
            needs: &[],
            command: &["doctor"],
            replies: &["doctor"],
            session: Session::None,
        },
    },
];
