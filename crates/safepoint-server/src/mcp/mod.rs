//! An MCP server, over standard input and output or over HTTP.
//!
//! It speaks the protocol of 2026-07-28, where every request says all there is to know, and
//! those before it, which begin with `initialize`. What the tools are and do, a [`Tools`]
//! says; here nothing is known of them.

mod handler;
mod http;
mod stdio;
mod tools;

use std::io;
use std::net::SocketAddr;

pub use http::serve_http;
pub use stdio::serve_stdio;
pub use tools::{About, Caller, Hints, PromptNote, Refused, ToolAnswer, ToolNote, Tools};

/// The longest message, in bytes.
const LONGEST_MESSAGE: usize = 16 << 20;

/// Why a server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is one that others can reach.
    #[error("`{0}` is no address of this machine alone")]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("`{address}` cannot be listened on")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// It broke down.
    #[error("the server has broken down")]
    Broken(#[source] io::Error),
}

/// Everything runs on one thread, in the order in which it came; what takes long runs beside
/// it, on threads for blocking work.
fn runtime() -> Result<tokio::runtime::Runtime, ServeError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Broken)
}
