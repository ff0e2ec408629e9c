//! The record of everything, and what proves it. Nothing here writes to it.

use safepoint_server::api::Method;

use super::look;
use crate::commands::form::{Field, Form, Place, Session, Shape, field};
use crate::commands::serve::endpoint::{CURSOR, Endpoint, LIMIT, List, READERS};

const ENTRY: Field = field(
    &["entry"],
    Shape::Id,
    Place::Word,
    "Its id, the beginning of it, or its place in the trail",
);

const fn filter(name: &'static [&'static str], option: &'static str, about: &'static str) -> Field {
    field(name, Shape::Text, Place::Option(option), about)
}

pub(super) const ENDPOINTS: &[Endpoint] = &[
    look(
        "/v1/trail/entries",
        "List entries, the oldest first",
        List::Places,
        "trail_list",
        &[
            LIMIT,
            CURSOR,
            filter(&["session"], "--session", "Only of this session"),
            filter(
                &["workspace_id"],
                "--workspace",
                "Only of this workspace of an agent, and of sessions in its directory",
            ),
            filter(&["action"], "--action", "Only of this action"),
            filter(&["kind"], "--kind", "Only of this kind"),
            filter(
                &["subject"],
                "--subject",
                "Only checkpoints of this: `state` or `record`",
            ),
            filter(&["actor"], "--actor", "Only by this actor"),
            filter(
                &["since"],
                "--since",
                "Only since then: an RFC 3339 time, or how long ago (90s, 24h, 7d)",
            ),
            filter(&["until"], "--until", "Only before then"),
            field(
                &["where"],
                Shape::Texts,
                Place::Each("--where"),
                "Only with this in the body: FIELD=VALUE",
            ),
        ],
        &["trail", "list"],
        &["trail-list"],
    ),
    look(
        "/v1/trail/entries/{entry}",
        "Show one entry whole",
        List::No,
        "trail_show",
        &[ENTRY],
        &["trail", "show"],
        &["trail-entry"],
    ),
    look(
        "/v1/trail/entries/{entry}/proof",
        "Prove that the trail has an entry, to somebody who has nothing but its key",
        List::No,
        "trail_prove",
        &[ENTRY],
        &["trail", "prove"],
        &["trail-prove"],
    ),
    Endpoint {
        method: Method::Get,
        path: "/v1/trail/consistency",
        summary: "Prove that the trail still begins with an older one",
        roles: READERS,
        list: List::No,
        form: Form {
            name: "trail_consistency",
            fields: &[field(
                &["size"],
                Shape::Count,
                Place::Option("--consistency"),
                "The size of the older one",
            )],
            needs: &[&["size"]],
            command: &["trail", "prove"],
            replies: &["trail-prove"],
            session: Session::None,
        },
    },
    look(
        "/v1/trail/bundles/{session}",
        "Everything about one session that somebody needs who has nothing but the key",
        List::No,
        "trail_bundle",
        &[field(
            &["session"],
            Shape::Id,
            Place::Word,
            "The session; the beginning of its id is enough",
        )],
        &["trail", "bundle"],
        &[],
    ),
    look(
        "/v1/trail/head",
        "The signed head",
        List::No,
        "trail_head",
        &[],
        &["trail", "head"],
        &["trail-head"],
    ),
    look(
        "/v1/trail/verify",
        "Check every entry, chain, hash and signature, and name the first bad one",
        List::No,
        "trail_verify",
        &[],
        &["trail", "verify"],
        &["trail-verify"],
    ),
];
