//! Gates: what a steward wrote down about an agent's actions, enforced.
//!
//! ```text
//! text ── load ──▶ AtlasManifest ── Engine::new ──▶ Engine
//!                                                     │  judge(session, event, facts)
//!                            Session ◀────────────────┤
//!                                                     ▼
//!                               Judgement: resolution, and what to record
//! ```
//!
//! Everything here is a pure function of atlas, session, event and facts. No
//! file is read, no clock, no network: what an answer depends on is handed in,
//! so that the same history can be judged again, under this atlas or another.

pub mod answer;
pub mod atlas;
pub mod cedar;
mod engine;
mod event;
mod judge;
pub mod keyword;
pub mod load;
mod nesting;
pub mod pattern;
mod resolution;
pub mod sandbox;
mod schema;
mod session;
mod simulate;
mod specification;
mod trace;
mod trial;

pub use atlas::*;
pub use engine::{Engine, Loaded};
pub use event::{Answers, Callback, Event, Facts, Outcome, Rate, Request};
pub use judge::{Refusal, Verdict};
pub use resolution::*;
pub use schema::Schema;
pub use session::*;
pub use simulate::Simulation;
pub use specification::{
    CheckpointEvaluator, CheckpointResponse, CheckpointValidator, TriggeredCheckpoint,
};
pub use trace::{EventType, TRACEEvent, UnknownEventType};
pub use trial::Mismatch;
