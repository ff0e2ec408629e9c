//! Actions of machines elsewhere: judged here, done there.

use safepoint_server::api::Method;

use crate::commands::form::{Field, Form, Place, Session, Shape, field};
use crate::commands::serve::endpoint::{AGENT, Endpoint, List};

const fn ask(
    (method, path): (Method, &'static str),
    summary: &'static str,
    name: &'static str,
    fields: &'static [Field],
    needs: &'static [&'static [&'static str]],
    command: &'static [&'static str],
    replies: &'static [&'static str],
) -> Endpoint {
    Endpoint {
        method,
        path,
        summary,
        roles: AGENT,
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

const fn body(names: &'static [&'static str], about: &'static str) -> Field {
    field(names, Shape::Object, Place::Input("--body"), about)
}

pub(super) const ENDPOINTS: &[Endpoint] = &[
    ask(
        (Method::Post, "/v1/actions/enter"),
        "Find the session in which something on another machine is judged, and its rules",
        "action_enter",
        &[body(&["entering"], "Who comes, and where to")],
        &[&["entering"]],
        &["judge", "enter"],
        &["judge-enter"],
    ),
    ask(
        (Method::Post, "/v1/actions"),
        "Ask whether something may be done on another machine: leave, once, or a denial",
        "action_propose",
        &[body(
            &["proposal"],
            "What the machine saw, in its canonical form, and what it could take back",
        )],
        &[&["proposal"]],
        &["judge", "propose"],
        &["judge-propose"],
    ),
    ask(
        (Method::Post, "/v1/actions/rehearse"),
        "Tell what would be said; nothing is written",
        "action_rehearse",
        &[body(&["proposal"], "Who comes, and what the machine saw")],
        &[&["proposal"]],
        &["judge", "rehearse"],
        &["judge-rehearse"],
    ),
    ask(
        (Method::Post, "/v1/actions/{action_id}/outcome"),
        "Tell how something ended on another machine; told twice, it is written once",
        "action_outcome",
        &[
            field(&["action_id"], Shape::Id, Place::Word, "The action"),
            body(&["outcome"], "How it ended, and what it changed"),
        ],
        &[&["action_id", "outcome"]],
        &["judge", "end"],
        &["judge-end"],
    ),
    ask(
        (Method::Get, "/v1/actions/holds/{hold_id}"),
        "Tell how a hold of one's own stands",
        "action_hold",
        &[field(&["hold_id"], Shape::Id, Place::Word, "The hold")],
        &[&["hold_id"]],
        &["judge", "hold"],
        &["judge-hold"],
    ),
];
