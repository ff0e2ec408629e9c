//! What Safepoint offers over a connection: an MCP server, an API over HTTP, and a page for
//! people.
//!
//! The only asynchronous crate. It translates between a protocol and whoever answers; it
//! knows no command, opens no store, and decides nothing.

pub mod api;
pub mod commands;
pub mod mcp;
pub mod page;
