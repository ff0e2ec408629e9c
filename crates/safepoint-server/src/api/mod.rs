//! The API over HTTP, and what every server needs besides: who asks, whether they may, how
//! often, how much and how slowly, and what becomes of it.
//!
//! What the endpoints are and do, an [`Api`] says; here nothing is known of them. Nothing is
//! let through that no role is named for.

mod answer;
mod endpoint;
mod events;
mod guard;
mod host;
mod limit;
mod listen;
mod metrics;
#[cfg(test)]
mod nobody;
mod own;
mod patience;
mod people;
mod problem;
mod query;
mod share;
mod shared;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use safepoint_model::Digest;
use serde_json::{Map, Value};

use crate::commands::{Answer, Caller, Commands, Role, Unavailable};

pub use host::{Host, HostError};
pub use listen::serve;
pub use own::PATHS;
pub use people::Page;
pub use problem::{STATUSES, status_of};

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Looks.
    Get,
    /// Has something done.
    Post,
}

/// How a text in a path or a query is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As it is.
    Text,
    /// As a number.
    Count,
    /// As `true` or `false`.
    Flag,
    /// As one of several.
    Texts,
}

/// One endpoint.
#[derive(Clone, Debug)]
pub struct EndpointNote {
    /// Its name.
    pub name: &'static str,
    /// What a client does.
    pub method: Method,
    /// Where, with `{names}` in it.
    pub path: &'static str,
    /// Who may. Nobody else may.
    pub roles: &'static [Role],
    /// What may stand in the path and in the query, and how it is read.
    pub parameters: Vec<(&'static str, Reading)>,
}

/// In which form something is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// As one JSON document.
    Document,
    /// As the command shows it to people, without colours.
    Text,
}

/// What an endpoint gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// What came of the command.
    pub answer: Answer,
    /// What it showed, where that was wanted.
    pub text: Option<String>,
    /// Where the next page begins.
    pub next: Option<String>,
    /// Whether anything of it is in the trail, also if it failed after that.
    pub recorded: bool,
}

/// What is given cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// An answer that was given before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The status.
    pub status: u16,
    /// The document.
    pub body: String,
}

/// What is known of an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nothing: it is taken now.
    New,
    /// It was answered so.
    Answered(Kept),
    /// Somebody took it, and has not answered yet.
    Taken,
    /// It was taken for another request.
    Other,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place in the trail.
    pub place: u64,
    /// What happened.
    pub kind: String,
    /// The entry, as JSON on one line.
    pub data: String,
}

/// What happened from some place on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// What the caller may see of it.
    pub events: Vec<Event>,
    /// The first place that was not looked at.
    pub next: u64,
}

/// What is measured in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// How many holds wait.
    pub holds_open: u64,
    /// How many entries the trail has.
    pub trail_size: u64,
}

/// Whoever answers. Synchronous: everything runs on threads for blocking work.
pub trait Api: Commands {
    /// All endpoints.
    fn endpoints(&self) -> Vec<EndpointNote>;

    /// The OpenAPI document.
    fn description(&self) -> Value;

    /// Does what an endpoint does.
    fn call(
        &self,
        caller: &Caller,
        endpoint: &str,
        given: &Map<String, Value>,
        output: Output,
    ) -> Result<Called, Refused>;

    /// Takes an idempotency key, or says what came of it before.
    fn begin(&self, caller: &Caller, key: &str, request: Digest) -> Result<Begun, Unavailable>;

    /// Keeps what was answered under a key.
    fn keep(&self, caller: &Caller, key: &str, kept: &Kept) -> Result<(), Unavailable>;

    /// Gives a key back: nothing was done.
    fn give_back(&self, caller: &Caller, key: &str) -> Result<(), Unavailable>;

    /// The whole id of a workspace of an agent, if there is one that begins so.
    fn workspace(&self, named: &str) -> Result<Option<String>, Unavailable>;

    /// What has happened from a place on, in one workspace or anywhere, as far as the caller
    /// may see it.
    fn events(
        &self,
        caller: &Caller,
        workspace: Option<&str>,
        from: u64,
        most: usize,
    ) -> Result<Events, Unavailable>;

    /// How many entries the trail has. What cannot say is not ready.
    fn size(&self) -> Result<u64, Unavailable>;

    /// Waits until something was written by whichever server, or `most` is over. It blocks.
    fn wait(&self, most: Duration) -> Result<(), Unavailable>;

    /// What is measured.
    fn gauges(&self) -> Result<Gauges, Unavailable>;

    /// Writes a line for whoever runs the server.
    fn log(&self, line: Map<String, Value>);
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls {
    /// The certificate and those above it, as PEM.
    pub certificates: Vec<u8>,
    /// The private key, as PEM.
    pub key: Vec<u8>,
}

/// How a server serves.
#[derive(Clone)]
pub struct Options {
    /// Where it listens.
    pub address: SocketAddr,
    /// Names under which it is known, besides that address.
    pub hosts: Vec<Host>,
    /// The certificate; plain HTTP without it.
    pub tls: Option<Tls>,
    /// What every id of a request begins with.
    pub instance: String,
    /// The most bytes in the body of a request.
    pub largest_body: usize,
    /// How long a request may take to come in.
    pub patience: Duration,
    /// How long what runs is waited for at the end.
    pub grace: Duration,
    /// How many commands run at once.
    pub jobs: usize,
    /// Requests a second for one token. An address may have ten times as many.
    pub rate: u32,
}

/// Why a server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("`{address}` cannot be listened on")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("the certificate or its key cannot be used: {0}")]
    Tls(String),
    /// It broke down.
    #[error("the server has broken down")]
    Broken(#[source] io::Error),
}
