//! The operator's terminal: what waits, what exactly it is, and the operator's answer.
//!
//! It shows what a [`Desk`] gives it and hands back what the operator decided. It never
//! knows stores, keys or the control plane, never derives what is at stake, and never lets
//! text from outside draw on the screen: every such text passes `safepoint_model::text`.
//!
//! Three parts, so that two of them can be tested without a terminal: [`App`] is the state
//! and what keys do to it, [`View`] draws it, and [`run`] connects both to a real terminal.

mod app;
mod bell;
mod desk;
mod event;
mod page;
mod rows;
mod run;
mod suggest;
mod told;
mod view;
mod words;
mod wrap;

pub use app::App;
pub use bell::bell;
pub use desk::{Desk, Moment, Verdict};
pub use event::{Drawn, Effect, Ended, Event, Key};
pub use run::{Options, Until, give_back, run};
pub use suggest::suggest;
pub use view::{Palette, View};
