//! `safepoint session deliver`: what stewards and operators are told is delivered in a
//! process of its own, so that no agent waits for a webhook.

use std::ffi::OsString;
use std::time::Duration;

use safepoint_control::pass::HoldListener;
use safepoint_control::{Control, Delivered, start_beside};
use safepoint_model::{Clock, Exit, Timestamp};
use safepoint_store::{Location, durable};

use crate::commands::notify;
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// How long a notice that is to be tried again is waited for before it is left to the next step.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Delivers until nothing is left, or what is left is to be tried much later. One process
/// at a time does.
pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let place = context.paths.runtime.join("deliver.lock");
    durable::create_directory(&context.paths.runtime)?;
    if place.symlink_metadata().is_err() {
        durable::create_empty(&place)?;
    }
    let lock = std::fs::File::open(&place).map_err(|error| CliError::File {
        action: "open",
        path: place,
        error,
    })?;
    if lock.try_lock().is_err() {
        return Ok(Exit::Done); // somebody is at it
    }
    let control = context.control()?;
    context.desk(&control).sweep()?;
    while let Some(due) = next(&control)? {
        let wait = due.as_micros() - SystemClock.now().as_micros();
        let wait = Duration::from_micros(u64::try_from(wait).unwrap_or(0));
        if wait > LONGEST_WAIT {
            break;
        }
        std::thread::sleep(wait);
        let (_, delivered, told) = notify::deliver::round(context, &control)?;
        let done = delivered != Delivered::default()
            || (told.arrived, told.waiting, told.given_up) != (0, 0, 0);
        if !done {
            break; // it cannot be delivered from here, or somebody else is at it
        }
    }
    Ok(Exit::Done)
}

/// When the next message is due, to a steward or to a target of operators.
fn next(control: &Control) -> Result<Option<Timestamp>, CliError> {
    let due = [control.next_notice()?, control.next_telling()?];
    Ok(due.into_iter().flatten().min())
}

/// How the delivery is started.
pub(crate) struct Delivery {
    store: OsString,
}

impl Delivery {
    pub(crate) fn of(context: &Context) -> Self {
        let mut store = OsString::new();
        match &context.settings.store.value {
            Location::Sqlite(path) => {
                store.push("sqlite:");
                store.push(path);
            }
            Location::Postgres(address) => store.push(address),
        }
        Self { store }
    }

    /// Starts the delivery beside us, if there is anything to deliver. That it cannot be
    /// started is no reason to fail: what waits is in the store, and the next step tries again.
    fn start(&self, control: &Control) {
        let due = control.has_due_notices().unwrap_or(false)
            || control.has_something_to_tell().unwrap_or(false);
        let Ok(program) = std::env::current_exe() else {
            return;
        };
        if due {
            // By the environment: an address may have a password in it.
            let variables = [("SAFEPOINT_STORE", self.store.clone())];
            let _ = start_beside(&program, &["session", "deliver"], &variables);
        }
    }
}

impl HoldListener for Delivery {
    fn hold_was_made(&self, control: &Control) {
        self.start(control);
    }
}

/// Starts the delivery beside us, if there is anything to deliver.
pub(crate) fn start(context: &Context, control: &Control) {
    Delivery::of(context).start(control);
}
