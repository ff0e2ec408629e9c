//! What waits for a person, what was decided, and who decides.
//!
//! Whatever decides takes a signature that was made elsewhere: no key of an operator is here.

use safepoint_server::api::Method;

use super::look;
use crate::commands::form::{Field, Form, Place, Session, Shape, field};
use crate::commands::serve::endpoint::{CURSOR, Endpoint, LIMIT, List, OPERATOR, SIGNATURE};

const HOLD_ID: Field = field(
    &["hold_id"],
    Shape::Id,
    Place::Word,
    "The hold; the beginning of its id is enough",
);
const PERMIT_ID: Field = field(
    &["permit_id"],
    Shape::Id,
    Place::Word,
    "The permit; the beginning of its id is enough",
);
const BOUNDARY: Field = field(
    &["boundary"],
    Shape::Text,
    Place::Word,
    "Which one: `tool:/usr/bin/git`, `path:/srv/site`, `provider:acme` …",
);
const REASON: Field = field(&["reason"], Shape::Text, Place::Option("--reason"), "Why");

const fn decide(
    path: &'static str,
    summary: &'static str,
    name: &'static str,
    fields: &'static [Field],
    needs: &'static [&'static [&'static str]],
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

pub(super) const ENDPOINTS: &[Endpoint] = &[
    look(
        "/v1/holds",
        "List what waits, the oldest first",
        List::Cut("holds", "hold_id"),
        "hold_list",
        &[
            LIMIT,
            CURSOR,
            field(
                &["all"],
                Shape::Flag,
                Place::Switch("--all"),
                "Those that are settled too, the newest first",
            ),
        ],
        &["hold", "list"],
        &["hold-list"],
    ),
    look(
        "/v1/holds/{hold_id}",
        "Show exactly what would be done, and what a yes would mean",
        List::No,
        "hold_show",
        &[HOLD_ID],
        &["hold", "show"],
        &["hold"],
    ),
    decide(
        "/v1/holds/{hold_id}/approve",
        "Let it run, once: with a decision that the operator has signed",
        "hold_approve",
        &[
            HOLD_ID,
            field(
                &["fingerprint"],
                Shape::Text,
                Place::Option("--fingerprint"),
                "The fingerprint that was displayed",
            ),
            SIGNATURE,
        ],
        &[&["hold_id", "fingerprint", "signature"]],
        &["hold", "approve"],
        &["hold-decision"],
    ),
    decide(
        "/v1/holds/{hold_id}/deny",
        "Do not let it run: with a decision that the operator has signed",
        "hold_deny",
        &[HOLD_ID, SIGNATURE],
        &[&["hold_id", "signature"]],
        &["hold", "deny"],
        &["hold-decision"],
    ),
    decide(
        "/v1/holds/{hold_id}/halt",
        "Stop the whole session: with a decision that the operator has signed",
        "hold_halt",
        &[HOLD_ID, SIGNATURE],
        &[&["hold_id", "signature"]],
        &["hold", "halt"],
        &["hold-decision"],
    ),
    look(
        "/v1/permits",
        "List permits, the newest first",
        List::Cut("permits", "permit_id"),
        "permit_list",
        &[LIMIT, CURSOR],
        &["permit", "list"],
        &["permit-list"],
    ),
    look(
        "/v1/permits/{permit_id}",
        "Show one permit",
        List::No,
        "permit_show",
        &[PERMIT_ID],
        &["permit", "show"],
        &["permit"],
    ),
    decide(
        "/v1/permits/{permit_id}/revoke",
        "Take a permit back: the word that is signed is `permit revoke ID`",
        "permit_revoke",
        &[PERMIT_ID, SIGNATURE],
        &[&["permit_id", "signature"]],
        &["permit", "revoke"],
        &["permit"],
    ),
    look(
        "/v1/trust",
        "List what is known of boundaries",
        List::No,
        "trust_list",
        &[],
        &["trust", "list"],
        &["trust-list"],
    ),
    decide(
        "/v1/trust/grant",
        "Trust a boundary: the word that is signed is `trust BOUNDARY LEVEL`",
        "trust_grant",
        &[
            BOUNDARY,
            field(
                &["level"],
                Shape::Choice(&["trusted", "elevated"]),
                Place::Option("--level"),
                "How much",
            ),
            REASON,
            SIGNATURE,
        ],
        &[&["boundary", "signature"]],
        &["trust", "grant"],
        &["trust"],
    ),
    decide(
        "/v1/trust/revoke",
        "Trust a boundary no more: the word that is signed is `trust BOUNDARY untrusted`",
        "trust_revoke",
        &[BOUNDARY, REASON, SIGNATURE],
        &[&["boundary", "signature"]],
        &["trust", "revoke"],
        &["trust"],
    ),
    look(
        "/v1/operators",
        "List those who decide",
        List::No,
        "operator_list",
        &[],
        &["operator", "list"],
        &["operator-list"],
    ),
    decide(
        "/v1/operators",
        "Let somebody decide: the word that is signed is `operator add NAME KEY`",
        "operator_add",
        &[
            field(&["name"], Shape::Text, Place::Word, "Their name"),
            field(
                &["key"],
                Shape::Text,
                Place::Option("--public"),
                "Their public key, in the verifier-key form",
            ),
            SIGNATURE,
        ],
        &[&["name", "key", "signature"]],
        &["operator", "add"],
        &["operator"],
    ),
    decide(
        "/v1/operators/{name}/remove",
        "Let somebody decide no longer: the word that is signed is `operator remove NAME`",
        "operator_remove",
        &[
            field(&["name"], Shape::Text, Place::Word, "Whom"),
            SIGNATURE,
        ],
        &[&["name", "signature"]],
        &["operator", "remove"],
        &["operator"],
    ),
];
