//! `safepoint trail list`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use safepoint_model::Exit;
use safepoint_store::Flow;
use safepoint_trail::{Entry, Query, Trail};
use schemars::JsonSchema;
use serde::Serialize;

use super::{EntryDocument, filter::Filter, line};
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;

/// How many entries make a page, where nothing else is asked for.
const PAGE: u64 = 1_000;

/// Arguments of `trail list`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,
    /// At most so many entries [default: 1000; no limit with --output ndjson]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Go on where the page before ended: its `next`
    #[arg(long, value_name = "NEXT", default_value_t = 0)]
    from: u64,
    /// Only the newest N
    #[arg(long, value_name = "N", conflicts_with_all = ["limit", "from"])]
    last: Option<usize>,
    /// Go on printing entries as they are made
    #[arg(long, short)]
    follow: bool,
}

/// What `trail list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Page {
    /// The entries, oldest first.
    entries: Vec<EntryDocument>,
    /// What to give to `--from` for the next page; null on the last one.
    next: Option<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let mut query = arguments.filter.query()?;
    query.from = arguments.from;
    if let Some(last) = arguments.last {
        query.from = trail.newest(&query, last)?;
    }
    let streaming = arguments.follow || context.console.mode == Mode::Ndjson;
    let limit = match arguments.limit {
        Some(limit) => limit,
        None if streaming => u64::MAX,
        None => PAGE,
    };
    if !streaming && context.console.mode == Mode::Json {
        return print_page(context, &trail, &query, limit);
    }
    let mut next = print_entries(context, &trail, &query, limit)?;
    if arguments.follow {
        return follow(context, &trail, query, next);
    }
    if let Some(next) = next.take_if(|_| !streaming) {
        context
            .console
            .say(&format!("there is more: add `--from {next}`"));
    }
    Ok(Exit::Done)
}

/// Prints `{"entries": […], "next": …}` without holding the entries in memory.
fn print_page(
    context: &mut Context,
    trail: &Trail,
    query: &Query,
    limit: u64,
) -> Result<Exit, CliError> {
    let console = &mut context.console;
    console.print("{\"entries\":[")?;
    let mut first = true;
    let next = each_up_to(trail, query, limit, |entry| {
        console.print(if first { "" } else { "," })?;
        first = false;
        console.print(&serde_json::to_string(&entry)?)
    })?;
    let next = next.map(|seq| seq.to_string());
    console.print(&format!("],\"next\":{}}}\n", serde_json::to_string(&next)?))?;
    Ok(Exit::Done)
}

/// Prints entries line by line, and tells where the next page would begin.
fn print_entries(
    context: &mut Context,
    trail: &Trail,
    query: &Query,
    limit: u64,
) -> Result<Option<u64>, CliError> {
    let width = context.console.width();
    let console = &mut context.console;
    each_up_to(trail, query, limit, |entry| match console.mode {
        Mode::Text => console.print(&line(&entry, width)),
        Mode::Json | Mode::Ndjson => console.json(&entry),
    })
}

/// Hands at most `limit` entries over, and tells where the rest begins if there is any.
fn each_up_to(
    trail: &Trail,
    query: &Query,
    limit: u64,
    mut each: impl FnMut(Entry) -> Result<(), CliError>,
) -> Result<Option<u64>, CliError> {
    let (mut count, mut next) = (0, None);
    trail.entries(query, |entry| -> Result<Flow, CliError> {
        if count == limit {
            next = Some(entry.seq);
            return Ok(Flow::Enough);
        }
        count += 1;
        each(entry)?;
        Ok(Flow::More)
    })?;
    Ok(next)
}

/// Prints what is added, until interrupted.
fn follow(
    context: &mut Context,
    trail: &Trail,
    mut query: Query,
    next: Option<u64>,
) -> Result<Exit, CliError> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    query.from = next.unwrap_or(query.from);
    let mut seen = trail.head()?.size();
    if next.is_none() {
        query.from = seen;
    }
    while !interrupted.load(Ordering::Relaxed) {
        context.console.flush()?;
        std::thread::sleep(Duration::from_millis(100));
        let size = trail.head()?.size();
        if size > seen {
            print_entries(context, trail, &query, u64::MAX)?;
            query.from = size;
            seen = size;
        }
    }
    Ok(Exit::Interrupted)
}
