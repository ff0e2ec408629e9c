//! The questions that are asked back, and what keys do to them.

use safepoint_authority::{Choice, Envelope};

use super::App;
use crate::rows::{Page, Tone};
use crate::told::Told;
use crate::{Effect, Key};

/// The longest reason that can be typed.
const LONGEST: usize = 400;

/// More keys than this at once were not typed by a hand.
const TYPED_AT_ONCE: usize = 4;

/// A question that is asked back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dialog {
    /// Why not? An answer is welcome, but not needed.
    Reason {
        /// To deny, or to halt.
        choice: Choice,
        /// What was typed.
        typed: String,
    },
    /// Is this what you mean? To be read to the end.
    Terms {
        /// With an envelope, or step by step.
        choice: Choice,
        /// The envelope.
        envelope: Option<Box<Envelope>>,
        /// What is to be read.
        page: Page,
        /// The first line of it that is visible.
        top: usize,
    },
    /// The second confirmation.
    Word {
        /// What is confirmed.
        choice: Choice,
        /// The envelope.
        envelope: Option<Box<Envelope>>,
        /// The word to type.
        word: String,
        /// What was typed.
        typed: String,
    },
}

impl Dialog {
    pub(super) fn reason(choice: Choice) -> Self {
        Self::Reason {
            choice,
            typed: String::new(),
        }
    }

    pub(super) fn per_step() -> Self {
        let mut page = Page::default();
        page.heading("Approve this, and ask at every further step");
        page.sentence(
            Tone::Plain,
            Told::ours("This action may run once. From then on the session asks before everything it does, whatever it was allowed so far."),
        );
        Self::Terms {
            choice: Choice::PerStep,
            envelope: None,
            page,
            top: 0,
        }
    }

    pub(super) fn envelope(envelope: Envelope, page: Page) -> Self {
        Self::Terms {
            choice: Choice::Modify,
            envelope: Some(Box::new(envelope)),
            page,
            top: 0,
        }
    }

    pub(super) fn word(choice: Choice, envelope: Option<Envelope>, word: &str) -> Self {
        Self::Word {
            choice,
            envelope: envelope.map(Box::new),
            word: word.to_owned(),
            typed: String::new(),
        }
    }

    /// Whether a burst of keys is too much to have been typed into it.
    pub(super) fn is_too_fast(&self, keys: usize) -> bool {
        matches!(self, Self::Word { .. }) && keys > TYPED_AT_ONCE
    }
}

impl App {
    /// A key while a question is open. `alone` says whether it came by itself.
    pub(super) fn dialog_key(&mut self, key: Key, alone: bool) -> Vec<Effect> {
        if key == Key::Escape {
            self.dialog = None;
            self.say("Nothing was decided.");
            return Vec::new();
        }
        match self.dialog.take() {
            Some(Dialog::Reason { choice, typed }) => self.reason_key(choice, typed, key, alone),
            Some(Dialog::Word {
                choice,
                envelope,
                word,
                typed,
            }) => self.word_key(choice, envelope, (word, typed), key, alone),
            Some(dialog @ Dialog::Terms { .. }) => self.terms_key(dialog, key, alone),
            None => Vec::new(),
        }
    }

    fn reason_key(
        &mut self,
        choice: Choice,
        mut typed: String,
        key: Key,
        alone: bool,
    ) -> Vec<Effect> {
        match key {
            Key::Enter if alone => {
                let reason = Some(typed.trim().to_owned()).filter(|reason| !reason.is_empty());
                return self.hand_in(choice, |verdict| verdict.reason = reason);
            }
            Key::Enter => self.say("Several keys came at once: press Enter alone."),
            key => edit(&mut typed, key),
        }
        self.dialog = Some(Dialog::Reason { choice, typed });
        Vec::new()
    }

    fn word_key(
        &mut self,
        choice: Choice,
        envelope: Option<Box<Envelope>>,
        (word, mut typed): (String, String),
        key: Key,
        alone: bool,
    ) -> Vec<Effect> {
        match key {
            Key::Enter if !alone => self.say("Several keys came at once: press Enter alone."),
            Key::Enter if typed == word => {
                return self.hand_in(choice, |verdict| {
                    verdict.envelope = envelope.map(|envelope| *envelope);
                    verdict.confirm = Some(typed);
                });
            }
            Key::Enter => {
                self.say("That is not the word. Type it as it is shown, or leave with Esc.");
                typed.clear();
            }
            key => edit(&mut typed, key),
        }
        self.dialog = Some(Dialog::Word {
            choice,
            envelope,
            word,
            typed,
        });
        Vec::new()
    }

    fn terms_key(&mut self, mut dialog: Dialog, key: Key, alone: bool) -> Vec<Effect> {
        let Dialog::Terms {
            choice,
            envelope,
            top,
            ..
        } = &mut dialog
        else {
            return Vec::new();
        };
        match key {
            Key::Char('y') if !alone => self.say("Several keys came at once: press y alone."),
            Key::Char('y') if !self.drawn.dialog_end => {
                self.say("Not read to the end yet: ↓ goes on.");
            }
            Key::Char('y') => {
                let envelope = envelope.take().map(|envelope| *envelope);
                return self.approve(*choice, envelope);
            }
            Key::Down | Key::Char('j' | ' ') | Key::PageDown => *top = top.saturating_add(1),
            Key::Up | Key::Char('k') | Key::PageUp => *top = top.saturating_sub(1),
            _ => {}
        }
        self.dialog = Some(dialog);
        Vec::new()
    }
}

/// Types into a line.
fn edit(typed: &mut String, key: Key) {
    match key {
        Key::Char(c) if typed.chars().count() < LONGEST => typed.push(c),
        Key::Backspace => {
            typed.pop();
        }
        Key::Clear => typed.clear(),
        _ => {}
    }
}
