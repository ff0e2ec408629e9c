//! `safepoint tui`: the operator's terminal, connected to what waits.

mod preview;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use safepoint_authority::{Hold, Operator};
use safepoint_control::Control;
use safepoint_control::pass::{Desk, Signing};
use safepoint_model::{Exit, HoldId};
use safepoint_trail::{Query, Stream, TrailError};
use safepoint_tui::{Ended, Moment, Options, Palette, Until, Verdict};

use super::operator::{self, Who};
use super::passing::Flags;
use super::waiting::StopSignals;
use crate::commands::session::deliver;
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// Arguments of `tui`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    who: Who,
}

/// How long the loop on the terminal has to end by itself.
const STUCK_AFTER: Duration = Duration::from_secs(2);
/// How often to look whether it has.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How many entries of a session are shown.
const MOST_MOMENTS: usize = 500;

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let control = context.control()?;
    operator::refuse_agents(context, &control)?;
    open(context, &control, &arguments.who, Until::Left, None)?;
    Ok(Exit::Done)
}

/// Whether the operator's terminal can be opened here.
fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Lets an operator decide here and now, where that is possible: on a terminal, with a key,
/// and not for an agent. What waits in other workspaces is decided there. Whether it was
/// possible.
pub(super) fn decide_in_place(
    context: &Context,
    control: &Control,
    flags: &Flags,
    who: &Who,
    hold: &HoldId,
) -> Result<bool, CliError> {
    let asked = !flags.no_tui && context.console.mode == Mode::Text && is_possible();
    if !asked || operator::refuse_agents(context, control).is_err() {
        return Ok(false);
    }
    let hold = context.desk(control).hold(hold.as_str())?;
    let workspace = hold.canonical.workspace.path;
    open(context, control, who, Until::Empty, Some(workspace))?;
    Ok(true)
}

/// Opens the operator's terminal, until it is left or nothing waits.
pub(super) fn open(
    context: &Context,
    control: &Control,
    who: &Who,
    until: Until,
    workspace: Option<String>,
) -> Result<(), CliError> {
    let stop = StopSignals::listen()?;
    let desk = context.desk(control);
    let (operator, signing) = operator::choose(context, &desk, who)?;
    let no_color = context.environment.path("NO_COLOR").is_some();
    let options = Options {
        palette: match no_color {
            true => Palette::None,
            false => Palette::Sixteen,
        },
        until,
        operator: Some(operator.name.clone()),
        stop: stop.flag(),
    };
    let mut terminal = Terminal {
        control,
        desk,
        operator,
        signing,
        workspace,
    };
    let over = Arc::new(AtomicBool::new(false));
    end_when_stuck(stop.flag(), Arc::clone(&over));
    let ended = safepoint_tui::run(&mut terminal, &SystemClock, &options);
    over.store(true, Ordering::Relaxed);
    // Whatever ended it: what was decided there may be something to tell.
    deliver::start(context, control);
    // A terminal that is gone fails in other ways, too.
    stop.check()?;
    let ended = ended.map_err(|error| CliError::Invalid {
        message: format!("the operator's terminal cannot be opened: {error}"),
        suggestion: "`safepoint hold list` and `safepoint hold approve` work without one",
    })?;
    match ended {
        Ended::Stopped => Err(CliError::Interrupted),
        Ended::Left | Ended::Empty => Ok(()),
    }
}

/// Ends the process soon after it was asked to end, where the loop on the terminal does not: it may
/// hang in a terminal that is gone. What is decided is in the store, or is not.
fn end_when_stuck(stop: Arc<AtomicBool>, over: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut left = STUCK_AFTER;
        while !over.load(Ordering::Relaxed) && !left.is_zero() {
            std::thread::sleep(POLL_INTERVAL);
            if stop.load(Ordering::Relaxed) {
                left = left.saturating_sub(POLL_INTERVAL);
            }
        }
        if !over.load(Ordering::Relaxed) {
            safepoint_tui::give_back();
            #[expect(
                clippy::disallowed_methods,
                reason = "the loop does not come back, so nothing else can end it"
            )]
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
    });
}

/// What waits, and where decisions go.
struct Terminal<'a> {
    control: &'a Control,
    desk: Desk<'a>,
    operator: Operator,
    signing: Box<dyn Signing>,
    /// The only workspace whose holds are shown, if it is one.
    workspace: Option<String>,
}

impl safepoint_tui::Desk for Terminal<'_> {
    fn queue(&mut self) -> Result<Vec<safepoint_authority::Pending>, String> {
        self.desk.sweep().map_err(told)?;
        let waiting = self.desk.waiting().map_err(told)?;
        let here = |hold: &&Hold| match &self.workspace {
            Some(workspace) => hold.canonical.workspace.path == *workspace,
            None => true,
        };
        Ok(waiting.iter().filter(here).map(Hold::pending).collect())
    }

    fn preview(&mut self, hold: &HoldId) -> Result<Vec<String>, String> {
        let hold = self.desk.hold(hold.as_str()).map_err(told)?;
        Ok(preview::of(&hold.canonical))
    }

    fn timeline(&mut self, hold: &HoldId) -> Result<Vec<Moment>, String> {
        let hold = self.desk.hold(hold.as_str()).map_err(told)?;
        let query = Query {
            streams: vec![Stream::from(&hold.canonical.session_id)],
            ..Query::default()
        };
        let mut moments = Vec::new();
        self.control
            .trail()
            .entries(&query, |entry| -> Result<_, TrailError> {
                if entry.kind.as_str() != "SessionState" {
                    moments.push(Moment {
                        time: entry.time,
                        kind: entry.kind.to_string(),
                        text: entry.body.clone(),
                    });
                }
                Ok(safepoint_store::Flow::More)
            })
            .map_err(told)?;
        let first = moments.len().saturating_sub(MOST_MOMENTS);
        Ok(moments.split_off(first))
    }

    fn decide(&mut self, verdict: &Verdict) -> Result<String, String> {
        let verdict = safepoint_control::pass::Verdict {
            hold_id: verdict.hold_id.clone(),
            fingerprint: verdict.fingerprint,
            choice: verdict.choice,
            envelope: verdict.envelope.clone(),
            scope: None,
            confirm: verdict.confirm.clone(),
            reason: verdict.reason.clone(),
        };
        let (hold, permit) = self
            .desk
            .decide(&verdict, &self.operator, &*self.signing)
            .map_err(told)?;
        Ok(match permit {
            Some(permit) => format!(
                "{}: approved, good until {}",
                hold.hold_id, permit.expires_at
            ),
            None if verdict.choice.is_yes() => {
                format!("{}: noted, another operator is needed", hold.hold_id)
            }
            None => format!("{}: {}", hold.hold_id, verdict.choice.as_str()),
        })
    }
}

/// An error with its causes, in one sentence.
fn told(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
