//! A terminal without a terminal: the state, the view, and a screen in memory.

use crate::holds;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use safepoint_authority::Hold;
use safepoint_model::Timestamp;
use safepoint_tui::{App, Drawn, Effect, Event, Key, Palette, Until, Verdict, View};

/// An operator in front of a screen.
pub(crate) struct Bench {
    pub(crate) app: App,
    view: View,
    pub(crate) terminal: Terminal<TestBackend>,
    pub(crate) now: Timestamp,
    pub(crate) drawn: Drawn,
}

/// When everything begins.
pub(crate) fn start() -> Timestamp {
    Timestamp::parse("2026-11-15T07:00:00Z").unwrap()
}

/// So many seconds before everything begins.
pub(crate) fn before(seconds: i64) -> Timestamp {
    start().saturating_add_micros(-seconds * 1_000_000)
}

/// A hold that can be undone.
pub(crate) fn plain(number: u32, age: i64) -> Hold {
    holds::hold(
        number,
        before(age),
        &["git", "commit", "-m", "Tidy the page"],
    )
}

impl Bench {
    /// An operator in front of these holds, who has had time to look at them.
    pub(crate) fn new(size: (u16, u16), holds: &[Hold]) -> Self {
        let mut bench = Self {
            app: App::new(Some("ana"), Until::Left, start()),
            view: View::new(Palette::Sixteen),
            terminal: Terminal::new(TestBackend::new(size.0, size.1)).unwrap(),
            now: start(),
            drawn: Drawn::default(),
        };
        bench.queue(holds);
        bench.wait(2_000);
        bench
    }

    /// Lets something happen, and draws.
    pub(crate) fn happen(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.app.update(event, self.now);
        self.draw();
        effects
    }

    pub(crate) fn draw(&mut self) {
        for _ in 0..2 {
            let (view, app) = (&mut self.view, &self.app);
            let mut drawn = Drawn::default();
            self.terminal
                .draw(|frame| drawn = view.draw(app, frame))
                .unwrap();
            self.app.update(Event::Drawn(drawn), self.now);
            if self.drawn == drawn {
                break;
            }
            self.drawn = drawn;
        }
    }

    /// The queue is read again.
    pub(crate) fn queue(&mut self, holds: &[Hold]) -> Vec<Effect> {
        let pending = holds.iter().map(Hold::pending).collect();
        self.happen(Event::Queue(Ok(pending)))
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, milliseconds: i64) {
        self.now = self.now.saturating_add_micros(milliseconds * 1_000);
        self.happen(Event::Tick);
    }

    /// A key, alone.
    pub(crate) fn press(&mut self, key: Key) -> Vec<Effect> {
        self.happen(Event::Keys(vec![key]))
    }

    /// A character, alone.
    pub(crate) fn key(&mut self, c: char) -> Vec<Effect> {
        self.press(Key::Char(c))
    }

    /// A text, typed by hand.
    pub(crate) fn type_in(&mut self, text: &str) -> Vec<Effect> {
        text.chars().flat_map(|c| self.key(c)).collect()
    }

    /// Reads to the end.
    pub(crate) fn read_all(&mut self) {
        while self.drawn.top + self.drawn.height < self.drawn.total {
            self.key(' ');
        }
    }

    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        self.terminal.backend_mut().resize(width, height);
        self.draw();
    }

    /// What is on screen, without blanks at the ends of lines.
    pub(crate) fn screen(&self) -> String {
        let buffer = self.terminal.backend().buffer();
        let mut screen = String::new();
        for y in 0..buffer.area.height {
            let mut line = String::new();
            let mut hidden = 0;
            for x in 0..buffer.area.width {
                let symbol = buffer[(x, y)].symbol();
                if hidden == 0 {
                    line.push_str(symbol);
                    hidden = ratatui::text::Span::raw(symbol).width().max(1);
                }
                hidden -= 1;
            }
            screen.push_str(line.trim_end());
            screen.push('\n');
        }
        screen
    }

    /// Whether something is on screen.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.screen().contains(text)
    }
}

/// The verdict that was handed in, if one was.
pub(crate) fn verdict(effects: &[Effect]) -> Option<Verdict> {
    effects.iter().find_map(|effect| match effect {
        Effect::Decide(verdict) => Some((**verdict).clone()),
        _ => None,
    })
}
