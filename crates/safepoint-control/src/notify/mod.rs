//! What operators are told, and where: webhooks, chat rooms, the bell of a terminal.
//!
//! The trail is the outbox. What is to be told was written there in the transaction in which
//! it happened, so nothing is lost, and each target only remembers how far it was told.
//! Nothing here decides anything, and nothing that comes back from a target is believed.

mod deliver;
mod letter;
mod retry;
mod secret;
mod slack;
mod target;
mod told;
mod vault;
mod webhook;

pub use deliver::{Telling, TellingReport};
pub use letter::{Again, Carrier, Letter, NotTaken};
pub use secret::{Secret, SecretError};
pub use target::{Channel, NewTarget, Standing as TargetStanding, Target, Topic};
pub use told::{Fact, Told, follow};
pub use vault::Vault;

/// The fault points of a delivery, in the order in which it passes them.
pub const FAULT_POINTS: [&str; 3] = ["notify.claimed", "notify.sent", "notify.marked"];
