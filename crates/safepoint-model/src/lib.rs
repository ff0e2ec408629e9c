//! The words everything else is written in: identifiers, times, digests,
//! strict JSON, exit codes and the safe display of hostile text.
//!
//! Nothing here does I/O, reads a clock or draws randomness: both come in
//! through [`Clock`] and [`Entropy`].

mod clock;
mod code;
mod digest;
mod frame;
mod id;
pub mod json;
mod keys;
mod span;
pub mod text;
mod time;
pub mod yaml;

pub use clock::{Clock, Entropy, EntropyError, next_after};
pub use code::{Code, Exit};
pub use digest::{Digest, DigestError};
pub use frame::{Frame, split_frame};
pub use id::{
    ActionId, EntryId, HoldId, IdError, LogId, PermitId, RecordId, SessionId, SignalId, TaskId,
    WorkspaceId,
};
pub use span::{Expiry, ExpiryError, Span, SpanError};
pub use time::{Timestamp, TimestampError};
