//! The state of the terminal, and what happens to it. Pure: time, keys, holds and what was
//! drawn are handed in, and what is wanted outside is handed back.

mod brief;
mod decide;
mod dialog;
mod keys;
mod queue;

pub(crate) use brief::Brief;
pub(crate) use dialog::Dialog;

use safepoint_authority::Pending;
use safepoint_model::{HoldId, Timestamp};

use crate::page::{self, Tab};
use crate::rows::{Page, Tone};
use crate::run::Until;
use crate::told::Told;
use crate::{Drawn, Effect, Ended, Event, Moment};

/// The state of the terminal.
#[derive(Debug)]
pub struct App {
    pub(crate) operator: Option<Told>,
    until: Until,
    pub(crate) now: Timestamp,
    /// What waits, the oldest first. `None` before it was read for the first time.
    pub(crate) queue: Option<Vec<Pending>>,
    /// What each of them would do, cut to what a line can show.
    pub(crate) briefs: Vec<Brief>,
    /// Why it could not be read lately.
    pub(crate) trouble: Option<Told>,
    pub(crate) selected: Option<HoldId>,
    pub(crate) tab: Tab,
    /// Whether the page has the screen for itself.
    pub(crate) expanded: bool,
    pub(crate) page: Page,
    /// Whether it must be made anew.
    stale: bool,
    /// Why nobody should say yes to the hold, if something is wrong with what we were given.
    fault: Option<String>,
    /// Goes up whenever the page changes.
    pub(crate) page_number: u64,
    pub(crate) top: usize,
    /// Whether the timeline stays at its end, where the newest is.
    follows: bool,
    /// Whether the end of the canonical form was on screen since it last changed.
    pub(crate) seen: bool,
    /// Since when the hold is on screen as it is now.
    shown_since: Option<Timestamp>,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) help: bool,
    pub(crate) notice: Option<(Tone, Told)>,
    /// Whether a decision was handed in and the queue not read since.
    settling: bool,
    drawn: Drawn,
    preview: Option<(HoldId, Timestamp, Result<Vec<String>, String>)>,
    timeline: Option<(HoldId, Result<Vec<Moment>, String>)>,
}

impl App {
    /// A terminal that knows of nothing yet. `operator` is only shown.
    pub fn new(operator: Option<&str>, until: Until, now: Timestamp) -> Self {
        Self {
            operator: operator.map(Told::theirs),
            until,
            now,
            queue: None,
            briefs: Vec::new(),
            trouble: None,
            selected: None,
            tab: Tab::Detail,
            expanded: false,
            page: Page::default(),
            stale: false,
            fault: None,
            page_number: 0,
            top: 0,
            follows: true,
            seen: false,
            shown_since: None,
            dialog: None,
            help: false,
            notice: None,
            settling: false,
            drawn: Drawn::default(),
            preview: None,
            timeline: None,
        }
    }

    /// Takes what happened at `now`, and says what is wanted.
    pub fn update(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        self.now = now;
        let effects = match event {
            Event::Keys(keys) => self.keys(keys),
            Event::Paste => {
                self.say("A paste is not a key: nothing was done.");
                Vec::new()
            }
            Event::Tick => {
                self.drop_what_expired();
                Vec::new()
            }
            Event::Queue(read) => self.take_queue(read),
            Event::Preview(hold, read) => {
                self.stale = true;
                self.preview = Some((hold, now, read));
                Vec::new()
            }
            Event::Timeline(hold, read) => {
                self.stale = true;
                if self.tab == Tab::Timeline && self.follows {
                    self.top = usize::MAX;
                }
                self.timeline = Some((hold, read));
                Vec::new()
            }
            Event::Decided(Ok(what)) => {
                self.notice = Some((Tone::Plain, Told::ours("✓ ").and_theirs(&what)));
                vec![Effect::Refresh]
            }
            Event::Decided(Err(why)) => {
                self.notice = Some((Tone::Warning, Told::ours("✗ ").and_theirs(&why)));
                vec![Effect::Refresh]
            }
            Event::Drawn(drawn) => {
                self.take_drawn(drawn);
                return Vec::new(); // the page is the one that was drawn
            }
        };
        if std::mem::take(&mut self.stale) {
            self.rebuild();
        }
        effects
    }

    /// The hold on screen.
    pub(crate) fn pending(&self) -> Option<&Pending> {
        let selected = self.selected.as_ref()?;
        let queue = self.queue.as_deref().unwrap_or_default();
        queue.iter().find(|pending| pending.hold_id == *selected)
    }

    /// What the hold on screen would do, in a line.
    pub(crate) fn brief(&self) -> Option<&Brief> {
        let selected = self.selected.as_ref()?;
        let queue = self.queue.as_deref().unwrap_or_default();
        let place = queue
            .iter()
            .position(|pending| pending.hold_id == *selected)?;
        self.briefs.get(place)
    }

    /// Tells the operator something, in our own words.
    fn say(&mut self, words: &str) {
        self.notice = Some((Tone::Plain, Told::ours(words)));
    }

    /// Tells the operator something that needs their eye.
    fn warn(&mut self, words: &str) {
        self.notice = Some((Tone::Warning, Told::ours(words)));
    }

    /// Remembers what was truly on screen.
    fn take_drawn(&mut self, drawn: Drawn) {
        self.drawn = drawn;
        if drawn.page != self.page_number || drawn.too_small {
            return;
        }
        self.top = drawn.top;
        if self.dialog.is_some() || self.help || self.pending().is_none() {
            return; // something lies over it
        }
        self.shown_since.get_or_insert(self.now);
        if self.tab == Tab::Detail && drawn.form_end {
            self.seen = true;
        }
    }

    /// Forgets that anything was read: what is on screen is new.
    fn unread(&mut self) {
        self.seen = false;
        self.shown_since = None;
        self.dialog = None;
        self.stale = true;
    }

    /// Puts another hold on screen.
    fn select(&mut self, hold: Option<HoldId>) {
        if self.selected == hold {
            return;
        }
        self.selected = hold;
        self.top = 0;
        self.preview = None;
        self.timeline = None;
        self.tab = Tab::Detail;
        self.unread();
    }

    /// Makes the page that belongs on screen.
    fn rebuild(&mut self) {
        let page = match self.pending() {
            Some(pending) => match self.tab {
                Tab::Detail => page::detail(pending),
                Tab::Context => page::context(pending),
                Tab::Change => self.change_page(),
                Tab::Timeline => self.timeline_page(),
            },
            None => Page::default(),
        };
        if self.tab == Tab::Detail {
            self.fault.clone_from(&page.fault);
        }
        if page != self.page {
            self.page = page;
            self.page_number += 1;
        }
    }

    fn change_page(&self) -> Page {
        match &self.preview {
            Some((_, read_at, Ok(lines))) => page::change(lines, *read_at),
            Some((_, _, Err(why))) => failed(why),
            None => waiting(),
        }
    }

    fn timeline_page(&self) -> Page {
        match &self.timeline {
            Some((_, Ok(moments))) => page::timeline(moments),
            Some((_, Err(why))) => failed(why),
            None => waiting(),
        }
    }

    /// What the page on screen still needs from outside.
    fn wanted(&self) -> Vec<Effect> {
        let Some(hold) = self.selected.clone() else {
            return Vec::new();
        };
        match self.tab {
            Tab::Change if self.preview.is_none() => vec![Effect::Preview(hold)],
            Tab::Timeline => vec![Effect::Timeline(hold)],
            _ => Vec::new(),
        }
    }

    /// Leaves.
    fn leave(&self) -> Vec<Effect> {
        vec![Effect::Leave(Ended::Left)]
    }
}

fn failed(why: &str) -> Page {
    let mut page = Page::default();
    let told = Told::ours("⚠ This could not be read: ").and_theirs(why);
    page.sentence(Tone::Warning, told);
    page
}

fn waiting() -> Page {
    let mut page = Page::default();
    page.sentence(Tone::Faint, Told::ours("Reading …"));
    page
}
