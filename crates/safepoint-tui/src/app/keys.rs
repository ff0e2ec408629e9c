//! What keys do. A key that decides counts only when it came alone.

use safepoint_authority::Choice;

use super::App;
use crate::page::Tab;
use crate::{Effect, Key};

/// What has the keyboard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Focus {
    Page,
    Help,
    Dialog(u8),
}

impl App {
    /// Keys that arrived together.
    pub(super) fn keys(&mut self, keys: Vec<Key>) -> Vec<Effect> {
        if keys.is_empty() {
            return Vec::new();
        }
        self.notice = None;
        let too_fast = |dialog: &super::Dialog| dialog.is_too_fast(keys.len());
        if self.dialog.as_ref().is_some_and(too_fast) {
            self.say("That came too fast to be typed. The word is typed, not pasted.");
            return Vec::new();
        }
        let alone = keys.len() == 1;
        let decides = |key: &Key| matches!(key, Key::Char(c) if choice(*c).is_some());
        if self.focus() == Focus::Page && !alone && keys.iter().any(decides) {
            self.say("Several keys came at once, so none of them counts.");
            return Vec::new();
        }
        let mut effects = Vec::new();
        for key in keys {
            let before = self.focus();
            effects.extend(self.key(key, alone));
            // What came along with a key that opened a question was not meant as the answer.
            if self.focus() != before {
                break;
            }
        }
        effects
    }

    fn focus(&self) -> Focus {
        use super::Dialog::{Reason, Terms, Word};
        match (&self.dialog, self.help) {
            (Some(Reason { .. }), _) => Focus::Dialog(0),
            (Some(Terms { .. }), _) => Focus::Dialog(1),
            (Some(Word { .. }), _) => Focus::Dialog(2),
            (None, true) => Focus::Help,
            (None, false) => Focus::Page,
        }
    }

    fn key(&mut self, key: Key, alone: bool) -> Vec<Effect> {
        match (key, self.focus()) {
            (Key::Interrupt, _) => self.leave(),
            (Key::Redraw, _) => vec![Effect::Redraw],
            (_, Focus::Dialog(_)) => self.dialog_key(key, alone),
            (_, Focus::Help) => {
                self.help = false;
                Vec::new()
            }
            (Key::Char(c), Focus::Page) => match choice(c) {
                Some(choice) => self.ask(choice),
                None => self.command(c),
            },
            (key, Focus::Page) => self.motion(key),
        }
    }

    fn command(&mut self, c: char) -> Vec<Effect> {
        match c {
            'd' if self.tab == Tab::Detail => self.expanded = !self.expanded,
            'd' => return self.open(Tab::Detail),
            'c' => return self.open(Tab::Change),
            't' => return self.open(Tab::Timeline),
            'i' => return self.open(Tab::Context),
            'r' => {
                self.preview = None;
                self.stale = true;
                return vec![Effect::Refresh]; // what the page needs is asked for behind it
            }
            'o' => {
                let older = self.older();
                self.select(older);
            }
            'q' => return self.leave(),
            '?' => self.help = true,
            'j' => return self.motion(Key::Down),
            'k' => return self.motion(Key::Up),
            ' ' => return self.motion(Key::PageDown),
            'b' => return self.motion(Key::PageUp),
            'g' => return self.motion(Key::Home),
            'G' => return self.motion(Key::End),
            _ => {}
        }
        Vec::new()
    }

    fn motion(&mut self, key: Key) -> Vec<Effect> {
        // Two lines of the page before stay, so that nobody loses their place.
        let page = self.drawn.height.saturating_sub(2).max(1);
        match key {
            Key::Up | Key::PageUp | Key::Home => self.follows = false,
            Key::End => self.follows = true,
            _ => {}
        }
        match key {
            Key::Up => self.top = self.top.saturating_sub(1),
            Key::Down => self.top = self.top.saturating_add(1),
            Key::PageUp => self.top = self.top.saturating_sub(page),
            Key::PageDown => self.top = self.top.saturating_add(page),
            Key::Home => self.top = 0,
            Key::End => self.top = usize::MAX,
            Key::Right => return self.open(self.tab.moved(1)),
            Key::Left => return self.open(self.tab.moved(Tab::ALL.len() - 1)),
            Key::Tab => self.step(1),
            Key::BackTab => self.step(-1),
            _ => {}
        }
        // Never further than the end, so that several keys at once do not overshoot.
        let last = self.drawn.total.saturating_sub(self.drawn.height);
        if self.drawn.page == self.page_number {
            self.top = self.top.min(last);
        }
        Vec::new()
    }

    /// Turns to another page about the same hold.
    fn open(&mut self, tab: Tab) -> Vec<Effect> {
        if self.selected.is_none() || self.tab == tab {
            return Vec::new();
        }
        self.tab = tab;
        self.top = 0;
        self.follows = true;
        self.preview = None;
        self.stale = true;
        self.wanted()
    }

    /// Looks at the next hold, or the one before.
    fn step(&mut self, by: isize) {
        let queue = self.queue.as_deref().unwrap_or_default();
        let here = queue
            .iter()
            .position(|pending| Some(&pending.hold_id) == self.selected.as_ref());
        let there = here
            .unwrap_or(0)
            .saturating_add_signed(by)
            .min(queue.len().saturating_sub(1));
        let hold = queue.get(there).map(|pending| pending.hold_id.clone());
        self.select(hold);
    }
}

/// What a key decides, if it decides anything.
const fn choice(c: char) -> Option<Choice> {
    Some(match c {
        'y' => Choice::Continue,
        'e' => Choice::Modify,
        's' => Choice::PerStep,
        'n' => Choice::Deny,
        'h' => Choice::Halt,
        _ => return None,
    })
}
