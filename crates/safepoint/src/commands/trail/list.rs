//! `safepoint trail list`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use safepoint_model::Exit;
use safepoint_store::Flow;
use safepoint_trail::{Entry, FieldFilter, Query, Trail};
use schemars::JsonSchema;
use serde::Serialize;

use super::past;
use super::{EntryDocument, filter::Filter, line};
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;

/// How many entries make a page, where nothing else is asked for.
const PAGE: u64 = 1_000;

/// The kinds of entries that name the action they undo, or do again.
const UNDOING: [&str; 3] = ["undone", "redone", "mutation_rolled_back"];

/// Arguments of `trail list`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,
    /// At most so many entries [default: 1000; no limit with --output ndjson]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Go on where the page before ended: its `next`
    #[arg(long, value_name = "NEXT", default_value_t = 0)]
    from: u64,
    /// Only the newest N
    #[arg(long, value_name = "N", conflicts_with_all = ["limit", "from"])]
    last: Option<usize>,
    /// Go on printing entries as they are made
    #[arg(long, short, conflicts_with = "limit")]
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
    let mut query = arguments.filter.query(&trail)?;
    query.from = arguments.from;
    if let Some(last) = arguments.last {
        query.from = newest(&trail, &query, last)?;
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
    let end = print_entries(context, &trail, &query, limit)?;
    if arguments.follow {
        return follow(context, &trail, query, end);
    }
    if let Some(next) = end.next.filter(|_| !streaming) {
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
    let end = each_up_to(trail, query, limit, |entry| {
        console.print(if first { "" } else { "," })?;
        first = false;
        console.print(&serde_json::to_string(&entry)?)?;
        Ok(Flow::More)
    })?;
    let next = end.next.map(|seq| seq.to_string());
    console.print(&format!("],\"next\":{}}}\n", serde_json::to_string(&next)?))?;
    Ok(Exit::Done)
}

/// Where a page ended.
struct End {
    /// The last entry that was handed over.
    last: Option<u64>,
    /// The first that was not, if there is one.
    next: Option<u64>,
}

/// Prints entries line by line.
fn print_entries(
    context: &mut Context,
    trail: &Trail,
    query: &Query,
    limit: u64,
) -> Result<End, CliError> {
    let width = context.console.width();
    let console = &mut context.console;
    each_up_to(trail, query, limit, |entry| {
        match console.mode {
            Mode::Text => console.print(&line(&entry, width))?,
            Mode::Json | Mode::Ndjson => console.json(&entry)?,
        }
        Ok(match console.is_heard() {
            true => Flow::More,
            false => Flow::Enough,
        })
    })
}

/// Hands at most `limit` entries over: those of the query, and those that undo its action.
fn each_up_to(
    trail: &Trail,
    query: &Query,
    limit: u64,
    mut each: impl FnMut(Entry) -> Result<Flow, CliError>,
) -> Result<End, CliError> {
    let mut count = 0;
    let mut end = End {
        last: None,
        next: None,
    };
    let mut hand_over = |entry: Entry| -> Result<Flow, CliError> {
        if count == limit {
            end.next = Some(entry.seq);
            return Ok(Flow::Enough);
        }
        count += 1;
        end.last = Some(entry.seq);
        each(entry)
    };
    let mut undoing = undoing(trail, query)?.into_values().peekable();
    let mut flow = Flow::More;
    trail.entries(query, |entry| -> Result<Flow, CliError> {
        while flow == Flow::More
            && let Some(other) = undoing.next_if(|other| other.seq < entry.seq)
        {
            flow = hand_over(other)?;
        }
        if flow == Flow::More {
            flow = hand_over(entry)?;
        }
        Ok(flow)
    })?;
    while flow == Flow::More
        && let Some(other) = undoing.next()
    {
        flow = hand_over(other)?;
    }
    Ok(end)
}

/// The entries that undo the action that is asked for, or do it again: they belong to actions
/// of their own.
fn undoing(trail: &Trail, query: &Query) -> Result<BTreeMap<u64, Entry>, CliError> {
    let mut found = BTreeMap::new();
    let mut waiting: Vec<String> = query.action.iter().cloned().collect();
    while let Some(action) = waiting.pop() {
        for entry in past::roll_backs(trail, &action)? {
            if let Some(id) = &entry.action_id
                && !found.contains_key(&entry.seq)
            {
                waiting.push(id.to_string());
                found.insert(entry.seq, entry);
            }
        }
        let undoes = FieldFilter {
            path: vec!["undoes".to_owned()],
            value: action,
        };
        for kind in UNDOING {
            let all = Query {
                action: None,
                kind: Some(kind.to_owned()),
                fields: vec![undoes.clone()],
                from: 0,
                ..Query::default()
            };
            trail.entries(&all, |entry| -> Result<Flow, CliError> {
                if let Some(id) = &entry.action_id
                    && !found.contains_key(&entry.seq)
                {
                    waiting.push(id.to_string());
                    found.insert(entry.seq, entry);
                }
                Ok(Flow::More)
            })?;
        }
    }
    let fits = |entry: &Entry| {
        entry.seq >= query.from
            && (query.streams.is_empty() || query.streams.contains(&entry.stream))
            && query
                .kind
                .as_ref()
                .is_none_or(|kind| entry.kind.as_str() == kind)
            && query
                .actor
                .as_ref()
                .is_none_or(|actor| entry.actor.as_str() == actor)
            && query.since.is_none_or(|since| entry.time >= since)
            && query.until.is_none_or(|until| entry.time < until)
            && query.fits_fields(entry)
    };
    found.retain(|_, entry| fits(entry));
    Ok(found)
}

/// The place from which exactly the newest `count` entries are listed.
fn newest(trail: &Trail, query: &Query, count: usize) -> Result<u64, CliError> {
    let from = trail.newest(query, count)?;
    let mut places: BTreeSet<u64> = undoing(trail, query)?.into_keys().collect();
    if places.is_empty() {
        return Ok(from);
    }
    let newest = Query {
        from,
        ..query.clone()
    };
    trail.entries(&newest, |entry| -> Result<Flow, CliError> {
        places.insert(entry.seq);
        Ok(Flow::More)
    })?;
    let older = places.len().saturating_sub(count);
    Ok(places.into_iter().nth(older).unwrap_or(from))
}

/// Prints what is added, until interrupted.
fn follow(
    context: &mut Context,
    trail: &Trail,
    mut query: Query,
    mut end: End,
) -> Result<Exit, CliError> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut seen = None;
    while !interrupted.load(Ordering::Relaxed) && context.console.is_heard() {
        // Everything up to the last one printed has been looked at; nothing is skipped or told twice.
        query.from = end.last.map_or(query.from, |last| last + 1);
        let size = trail.head()?.size();
        if seen != Some(size) {
            end = print_entries(context, trail, &query, u64::MAX)?;
            context.console.flush()?;
            seen = Some(size);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(context.console.followed())
}
