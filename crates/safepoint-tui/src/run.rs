//! The loop on a real terminal: draws, waits for keys, asks the desk. It is thin, and
//! whatever happens it gives the terminal back as it was.

mod input;
mod screen;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{Event as Input, poll, read};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use safepoint_model::{Clock, Timestamp};

use crate::{App, Desk, Drawn, Effect, Ended, Event, Palette, View};
use screen::Screen;
pub use screen::give_back;

/// How often the queue is read, in microseconds.
const REFRESH: i64 = 1_000_000;

/// How long to wait for a key before the time on screen moves on.
const WAIT: Duration = Duration::from_millis(250);

/// When to leave without being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never.
    Left,
    /// As soon as nothing waits for a decision.
    Empty,
}

/// How the terminal is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The colours there are. Whoever reads the environment knows.
    pub palette: Palette,
    /// When to leave without being told.
    pub until: Until,
    /// Who decides, to be shown.
    pub operator: Option<String>,
    /// Set when the process is asked to end.
    pub stop: Arc<AtomicBool>,
}

/// Runs the terminal until it is left. Standard input and output must be a terminal; one that goes
/// away ends it, as if the process had been asked to end.
pub fn run(desk: &mut dyn Desk, clock: &dyn Clock, options: &Options) -> io::Result<Ended> {
    match run_loop(desk, clock, options) {
        Err(_) if is_hung_up() => Ok(Ended::Stopped),
        ended => ended,
    }
}

fn run_loop(desk: &mut dyn Desk, clock: &dyn Clock, options: &Options) -> io::Result<Ended> {
    let mut screen = Screen::open()?;
    let mut app = App::new(options.operator.as_deref(), options.until, clock.now());
    let mut view = View::new(options.palette);
    let mut last_read: Option<Timestamp> = None;
    let mut todo = Vec::new();
    loop {
        if options.stop.load(Ordering::Relaxed) {
            return Ok(Ended::Stopped);
        }
        let now = clock.now();
        let since = |last: Timestamp| now.as_micros().saturating_sub(last.as_micros());
        // Also when the clock went back.
        if !last_read.is_some_and(|last| (0..REFRESH).contains(&since(last))) {
            todo.push(Effect::Refresh);
        }
        while let Some(effect) = pop(&mut todo) {
            if effect == Effect::Refresh {
                last_read = Some(now);
            }
            match perform(effect, desk, &mut screen)? {
                Done::Nothing => {}
                Done::Happened(event) => todo.extend(app.update(*event, clock.now())),
                Done::Ended(ended) => return Ok(ended),
            }
        }
        show(&mut screen, &mut view, &mut app, clock)?;
        if wait_for_input()? == Terminal::HungUp {
            return Ok(Ended::Stopped);
        }
        match events(&mut todo, &mut app, clock)? {
            true => {}
            false => todo.extend(app.update(Event::Tick, clock.now())),
        }
    }
}

/// The effect that is due first.
fn pop(todo: &mut Vec<Effect>) -> Option<Effect> {
    match todo.is_empty() {
        true => None,
        false => Some(todo.remove(0)),
    }
}

/// What came of an effect.
enum Done {
    Nothing,
    Happened(Box<Event>),
    Ended(Ended),
}

fn perform(effect: Effect, desk: &mut dyn Desk, screen: &mut Screen) -> io::Result<Done> {
    let event = match effect {
        Effect::Refresh => Event::Queue(desk.queue()),
        Effect::Preview(hold) => {
            let read = desk.preview(&hold);
            Event::Preview(hold, read)
        }
        Effect::Timeline(hold) => {
            let read = desk.timeline(&hold);
            Event::Timeline(hold, read)
        }
        Effect::Decide(verdict) => Event::Decided(desk.decide(&verdict)),
        Effect::Redraw => {
            screen.terminal.clear()?;
            return Ok(Done::Nothing);
        }
        Effect::Ring => {
            screen.ring()?;
            return Ok(Done::Nothing);
        }
        Effect::Leave(ended) => return Ok(Done::Ended(ended)),
    };
    Ok(Done::Happened(Box::new(event)))
}

/// Draws, and lets the state know what was on screen. If that changes how things stand
/// (the end was reached) it is drawn once more.
fn show(screen: &mut Screen, view: &mut View, app: &mut App, clock: &dyn Clock) -> io::Result<()> {
    let mut drawn = Drawn::default();
    for _ in 0..2 {
        screen
            .terminal
            .draw(|frame| drawn = view.draw(app, frame))?;
        app.update(Event::Drawn(drawn), clock.now());
    }
    Ok(())
}

/// How the terminal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terminal {
    There,
    /// Its window was closed, or its server has ended.
    HungUp,
}

/// Waits for keys. The library would read the end of a terminal that is gone for ever, so it only
/// looks at one that is there.
fn wait_for_input() -> io::Result<Terminal> {
    let timeout = Timespec::try_from(WAIT).map_err(io::Error::other)?;
    look(Some(&timeout))
}

fn is_hung_up() -> bool {
    look(Some(&Timespec::default())).is_ok_and(|it| it == Terminal::HungUp)
}

fn look(timeout: Option<&Timespec>) -> io::Result<Terminal> {
    let input = io::stdin();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    match rustix::event::poll(&mut polled, timeout) {
        // Such as for another size of the window, of which the library knows.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    let is_gone = polled.iter().any(|it| it.revents().intersects(gone));
    Ok(match is_gone {
        true => Terminal::HungUp,
        false => Terminal::There,
    })
}

/// Takes all keys that arrived together. Whether there were any.
fn events(todo: &mut Vec<Effect>, app: &mut App, clock: &dyn Clock) -> io::Result<bool> {
    if !poll(Duration::ZERO)? {
        return Ok(false);
    }
    let mut keys = Vec::new();
    let mut pasted = false;
    loop {
        match read()? {
            Input::Key(event) => keys.extend(input::key(event)),
            Input::Paste(_) => pasted = true,
            _ => {}
        }
        if !poll(Duration::ZERO)? {
            break;
        }
    }
    // What came together with a paste is part of it.
    let event = match pasted {
        true => Event::Paste,
        false => Event::Keys(keys),
    };
    todo.extend(app.update(event, clock.now()));
    Ok(true)
}
