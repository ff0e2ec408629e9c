//! The endpoints, as a table: what each does is a command, so that the API means what the
//! command line means.

mod actions;
mod authority;
mod progress;
mod sessions;
mod state;
mod trail;

use super::endpoint::Endpoint;

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
