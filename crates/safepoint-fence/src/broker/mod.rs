//! How a program inside a fence asks for something to be done outside.
//!
//! The process outside serves a Unix socket in a directory of its user. A
//! program inside sends one request: arguments, working directory, variables,
//! and with `SCM_RIGHTS` its three standard streams. It waits for one answer, an
//! exit code. While it waits the connection stands for it: when it is killed,
//! the other side sees so.
//!
//! What is asked for comes from inside the fence and is believed in nothing.
//! Who asks is taken from the kernel. What is done about it is the handler's
//! part; this module runs nothing.

mod call;
mod client;
mod listener;
mod socket;
mod wire;

pub use call::{Call, Peer};
pub use client::{Streams, hand_over, hand_over_streams};
pub use listener::Listener;
pub use wire::CallRefusal;
