//! The endpoints, as a table: what each does is a command, so that the API means what the
//! command line means.

mod actions;
mod authority;
mod progress;
mod sessions;
mod state;
mod trail;

use safepoint_server::api::Method;

use super::endpoint::{Endpoint, List, READERS};
use crate::commands::form::{Field, Form, Session};

/// All of them, in the order in which they are shown.
pub(crate) fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    [
        sessions::ENDPOINTS,
        actions::ENDPOINTS,
        authority::ENDPOINTS,
        state::ENDPOINTS,
        progress::workspaces::ENDPOINTS,
        progress::integration::ENDPOINTS,
        progress::tasks::ENDPOINTS,
        trail::ENDPOINTS,
    ]
    .into_iter()
    .flatten()
}

/// What only looks, for everybody who may see all of it.
const fn look(
    path: &'static str,
    summary: &'static str,
    list: List,
    name: &'static str,
    fields: &'static [Field],
    command: &'static [&'static str],
    replies: &'static [&'static str],
) -> Endpoint {
    Endpoint {
        method: Method::Get,
        path,
        summary,
        roles: READERS,
        list,
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
