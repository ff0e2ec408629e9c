//! What a server does without being asked: silence becomes a denial, those who want to know
//! are told, what waits for a workspace is delivered, and what is over its time fails.
//!
//! Commands do the same for whoever comes next; with a server nobody need come. Of several
//! servers one has the lease. It may be cut off anywhere, and another may begin before it is
//! done: every step is taken once, by whoever is first.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use safepoint_store::Leases;
use safepoint_trail::Actor;
use serde_json::{Map, Value, json};

use super::api::Offered;
use super::program::Program;
use crate::commands::notify;
use crate::console::{Mode, Printed};
use crate::context::{Context, Served};
use crate::error::CliError;

/// How long there is nothing to do between two rounds.
const PAUSE: Duration = Duration::from_secs(2);

/// What can wait is done once in so many rounds: publishing the head of the trail, forgetting
/// the visits that are over.
const ROUNDS_OF_WAITING: u64 = 15;

/// The work that one of several servers does, and how long the others leave it to a server
/// that has stopped.
const WORK: (&str, Duration) = ("chores", Duration::from_secs(10));

/// The rounds, for as long as this is kept.
pub(super) struct Chores {
    /// Hangs up when it goes, and nothing new is begun.
    _going: Sender<Infallible>,
}

impl Chores {
    pub(super) fn begin(offered: &Arc<Offered>, leases: Leases) -> io::Result<Self> {
        let offered = Arc::clone(offered);
        let (going, gone) = channel::<Infallible>();
        std::thread::Builder::new()
            .name("chores".to_owned())
            .spawn(move || {
                let mut told = Told::default();
                let mut number = 0;
                while let Err(RecvTimeoutError::Timeout) = gone.recv_timeout(PAUSE) {
                    number += 1;
                    let round = round(&offered.program, &leases, number);
                    for line in told.lines(round) {
                        offered.log.tell(line);
                    }
                }
                // Another need not wait for its end.
                if let Ok(Some(lease)) = leases.take(WORK.0, WORK.1) {
                    let _ = leases.give_back(&lease);
                }
            })?;
        Ok(Self { _going: going })
    }
}

/// Those who cannot be told from here, and why.
type Untold = Vec<(String, String)>;

/// One round, if it is ours.
fn round(program: &Program, leases: &Leases, number: u64) -> Result<Option<Untold>, CliError> {
    if leases.take(WORK.0, WORK.1)?.is_none() {
        return Ok(None);
    }
    let served = Served {
        trail: program.trail.clone(),
        actor: Actor::safepoint(),
        operator: None,
        input: Vec::new(),
        mode: Mode::Json,
    };
    let context = Context::of_server(
        &program.global,
        program.environment.for_server(None),
        program.places.none(),
        served,
        Printed::default(),
    )?;
    program.progress.deliver()?;
    program.progress.tick()?;
    let (_, _, report) = notify::deliver::round(&context, &program.control)?;
    if number.is_multiple_of(ROUNDS_OF_WAITING) {
        program.control.forget_visits()?;
        program.trail.publish()?;
    }
    Ok(Some(report.unusable))
}

/// What the log has of the rounds so far: a database that is away for an hour is told of
/// once, and not with every round.
#[derive(Default)]
struct Told {
    wrong: Option<String>,
    untold: Untold,
}

impl Told {
    /// What is new after a round.
    fn lines(&mut self, round: Result<Option<Untold>, CliError>) -> Vec<Map<String, Value>> {
        let (wrong, untold) = match round {
            Ok(untold) => (None, untold),
            Err(error) => (Some(error.to_string()), None),
        };
        let mut lines = Vec::new();
        if wrong != self.wrong {
            lines.push(match &wrong {
                Some(wrong) => line("chores_failed", json!(wrong)),
                None => line("chores_work_again", Value::Null),
            });
            self.wrong = wrong;
        }
        // A round that was not ours, or was cut off, says nothing about them.
        if let Some(untold) = untold.filter(|untold| *untold != self.untold) {
            let each = untold.iter();
            let each = each.map(|(target, reason)| json!({ "target": target, "reason": reason }));
            lines.push(match untold.is_empty() {
                false => line("targets_untold", each.collect()),
                true => line("targets_told_again", Value::Null),
            });
            self.untold = untold;
        }
        lines
    }
}

fn line(event: &str, detail: Value) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("event".to_owned(), event.into());
    line.insert("detail".to_owned(), detail);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_10_what_a_server_cannot_do_is_logged_once_and_its_end_too() {
        let mut told = Told::default();
        let mut events = |round| -> Vec<Value> {
            let lines = told.lines(round).into_iter();
            lines.map(|mut line| line["event"].take()).collect()
        };
        let away = || Err(CliError::Usage("it is away".to_owned()));
        let without = |name: &str| Ok(Some(vec![(name.to_owned(), "no file".to_owned())]));
        let nothing = || Ok(Some(Vec::new()));
        assert_eq!(events(nothing()), [""; 0]);
        assert_eq!(events(without("ops")), ["targets_untold"]);
        assert_eq!(events(without("ops")), [""; 0]);
        assert_eq!(events(Ok(None)), [""; 0]);
        assert_eq!(events(away()), ["chores_failed"]);
        assert_eq!(events(away()), [""; 0]);
        assert_eq!(events(without("ops")), ["chores_work_again"]);
        assert_eq!(events(without("room")), ["targets_untold"]);
        assert_eq!(events(nothing()), ["targets_told_again"]);
        assert_eq!(events(nothing()), [""; 0]);
    }
}
