//! Agent clients: what each of them says in its hooks, how each of them is answered, and
//! where each of them keeps its settings.
//!
//! Everything here is a function from text to text. It reads no file, judges nothing, and
//! knows nothing of stores and sessions.

mod answer;
mod canary;
mod client;
mod hear;
mod heard;
pub mod settings;
mod shell_prefix;
pub mod skills;

pub use answer::{Reply, Wire, answer, refuse};
pub use canary::{canary, is_refusal};
pub use client::Client;
pub use hear::{Unheard, hear};
pub use heard::{Call, Ended, Event, FileChange, Heard, Tool};
pub use shell_prefix::{
    ConfiguredCommand, SHELL_PREFIX, agent_lines, configured_commands, named_settings,
    shell_prefix, shell_prefix_program, words,
};
