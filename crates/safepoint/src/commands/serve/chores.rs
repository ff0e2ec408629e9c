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
use serde_json::{Map, Value};

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
                let mut before = None;
                let mut number = 0;
                while let Err(RecvTimeoutError::Timeout) = gone.recv_timeout(PAUSE) {
                    number += 1;
                    let wrong = round(&offered.program, &leases, number).err();
                    let wrong = wrong.map(|error| error.to_string());
                    // A database that is away for an hour is told of once.
                    if wrong != before {
                        offered.log.tell(line(wrong.as_deref()));
                    }
                    before = wrong;
                }
                // Another need not wait for its end.
                if let Ok(Some(lease)) = leases.take(WORK.0, WORK.1) {
                    let _ = leases.give_back(&lease);
                }
            })?;
        Ok(Self { _going: going })
    }
}

fn round(program: &Program, leases: &Leases, number: u64) -> Result<(), CliError> {
    if leases.take(WORK.0, WORK.1)?.is_none() {
        return Ok(());
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
    notify::deliver::round(&context, &program.control)?;
    if number.is_multiple_of(ROUNDS_OF_WAITING) {
        program.control.forget_visits()?;
        program.trail.publish()?;
    }
    Ok(())
}

fn line(wrong: Option<&str>) -> Map<String, Value> {
    let (event, detail) = match wrong {
        Some(wrong) => ("chores_failed", wrong.into()),
        None => ("chores_work_again", Value::Null),
    };
    let mut line = Map::new();
    line.insert("event".to_owned(), event.into());
    line.insert("detail".to_owned(), detail);
    line
}
