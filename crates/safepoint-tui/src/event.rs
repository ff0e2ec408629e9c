//! What happens to the terminal, and what it wants done.

use safepoint_authority::Pending;
use safepoint_model::HoldId;

use crate::{Moment, Verdict};

/// A key, as far as the terminal knows keys. Nothing with a modifier is a plain key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// The return key.
    Enter,
    /// The escape key.
    Escape,
    /// Takes back a character.
    Backspace,
    /// Takes back the whole line: control and `u`.
    Clear,
    /// Arrow.
    Up,
    /// Arrow.
    Down,
    /// Arrow.
    Left,
    /// Arrow.
    Right,
    /// A page back.
    PageUp,
    /// A page on.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// The next hold.
    Tab,
    /// The hold before.
    BackTab,
    /// Control and `c`.
    Interrupt,
    /// Control and `l`: everything is drawn anew.
    Redraw,
    /// Some other key: it does nothing, but it was pressed.
    Other,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Keys that arrived together. More than one at once was hardly typed.
    Keys(Vec<Key>),
    /// A text was pasted. It is never taken for keys.
    Paste,
    /// Time has passed.
    Tick,
    /// The queue, or why it could not be read.
    Queue(Result<Vec<Pending>, String>),
    /// What a hold would change.
    Preview(HoldId, Result<Vec<String>, String>),
    /// What happened in the session of a hold.
    Timeline(HoldId, Result<Vec<Moment>, String>),
    /// What came of a decision.
    Decided(Result<String, String>),
    /// Something was drawn.
    Drawn(Drawn),
}

/// What was truly on screen. By this the terminal knows what the operator can have read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Which page, by its number.
    pub page: u64,
    /// The first line of it that is visible.
    pub top: usize,
    /// How many lines there is room for.
    pub height: usize,
    /// How many lines it has.
    pub total: usize,
    /// Whether the end of the canonical form is visible.
    pub form_end: bool,
    /// Whether the end of the open dialog is visible.
    pub dialog_end: bool,
    /// Whether the window is too small to decide anything.
    pub too_small: bool,
}

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Read the queue.
    Refresh,
    /// Find out what a hold would change.
    Preview(HoldId),
    /// Find out what happened.
    Timeline(HoldId),
    /// Hand in a decision.
    Decide(Box<Verdict>),
    /// Draw everything anew.
    Redraw,
    /// Call the operator: something new waits.
    Ring,
    /// Leave.
    Leave(Ended),
}

/// Why the terminal was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The operator left.
    Left,
    /// Nothing waits any more.
    Empty,
    /// The process was asked to end.
    Stopped,
}
