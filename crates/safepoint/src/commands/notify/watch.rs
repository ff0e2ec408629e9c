//! `safepoint notify watch`: what happens, as it happens, with the bell of this terminal.
//!
//! It also makes silence a denial while it runs. It never decides anything else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use safepoint_control::Control;
use safepoint_control::notify::{Told, Topic, follow};
use safepoint_model::{Exit, text};
use safepoint_trail::end;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::operator;
use crate::console::{FAINT, Mode, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// How often to look whether anything has happened.
const LOOK: Duration = Duration::from_millis(500);

/// Arguments of `notify watch`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What this target is told about; without it, everything but permits
    name: Option<String>,
    /// Begin with this place in the trail instead of now
    #[arg(long, value_name = "SEQ")]
    from: Option<u64>,
    /// Print what has happened so far, and end
    #[arg(long)]
    once: bool,
}

/// What `notify watch` prints of each event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EventDocument<'a> {
    /// What happened, such as `hold.opened`.
    event: &'a str,
    topic: Topic,
    time: String,
    /// The same for people.
    title: &'a str,
    hold_id: Option<&'a str>,
    /// When it is denied, if nobody decides.
    expires_at: Option<String>,
    /// The entry of the trail that tells of it.
    entry: &'a str,
}

pub(super) fn run(
    context: &mut Context,
    control: &Control,
    arguments: &Arguments,
) -> Result<Exit, CliError> {
    // To an agent, what others do is not there.
    operator::refuse_agents(context, control)?;
    let topics: BTreeSet<Topic> = match &arguments.name {
        Some(name) => control.target(name)?.on,
        None => Topic::usual(),
    };
    let store = control.trail().store();
    let mut next = match arguments.from {
        Some(from) => from,
        None if arguments.once => 0,
        None => store.read(end)?,
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let wanted = |topic| topics.contains(&topic);
    while !interrupted.load(Ordering::Relaxed) && context.console.is_heard() {
        context.desk(control).sweep()?;
        let (told, behind) = store.read(|sql| follow(sql, control.trail(), next, &wanted))?;
        next = behind;
        match told {
            Some(told) => {
                print(context, &told)?;
                super::ring(told.title);
            }
            None if arguments.once => return Ok(Exit::Done),
            None => std::thread::sleep(LOOK),
        }
    }
    Ok(context.console.followed())
}

fn print(context: &mut Context, told: &Told) -> Result<(), CliError> {
    let reply = EventDocument {
        event: told.event,
        topic: told.topic,
        time: told.entry.time.to_string(),
        title: told.title,
        hold_id: told.hold.as_deref(),
        expires_at: told.expires.map(|time| time.to_string()),
        entry: told.entry.id.as_str(),
    };
    match context.console.mode {
        Mode::Text => {
            let what = told.facts.iter().find(|(label, _)| *label == "What");
            let what = what.map_or_else(String::new, |(_, value)| text::line(value).text);
            let hold = told.hold.as_deref().map(|it| text::line(it).text);
            let shown = format!(
                "{FAINT}{}{FAINT:#}  {STRONG}{}{STRONG:#}  {}  {what}\n",
                reply.time,
                told.title,
                hold.unwrap_or_default()
            );
            context.console.print(&shown)?;
        }
        Mode::Json | Mode::Ndjson => context.console.json(&reply)?,
    }
    context.console.flush()
}
