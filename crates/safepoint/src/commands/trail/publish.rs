//! `safepoint trail publish`.

use std::time::Duration;

use safepoint_model::{Entropy, Exit, text};
use safepoint_store::Leases;
use safepoint_trail::TrailError;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, count};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemEntropy;

/// The work that one of several processes does.
const WORK: &str = "publish";
/// How long it may take before another does it.
const LIFE: Duration = Duration::from_secs(60);

/// What `trail publish` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PublishReply {
    /// Where heads are published.
    place: String,
    /// How many entries the published head covers; null when another process publishes now.
    size: Option<u64>,
    /// How many entries the one before it covered.
    before: Option<u64>,
}

pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let Some(depot) = trail.depot() else {
        return Err(CliError::Invalid {
            message: "there is nowhere to publish to: no objects are shared".into(),
            suggestion: "set `SAFEPOINT_OBJECTS`, or write tiles with `safepoint trail tiles`",
        });
    };
    let mut random = [0; 8];
    SystemEntropy.fill(&mut random).map_err(TrailError::from)?;
    let holder = format!("{:016x}", u64::from_be_bytes(random));
    let leases = Leases::open(trail.store().clone(), holder)?;
    let lease = leases.take(WORK, LIFE)?;
    let published = match &lease {
        Some(_) => trail.publish(),
        None => Ok(None),
    };
    if let Some(lease) = &lease {
        leases.give_back(lease)?;
    }
    let published = published?;
    let reply = PublishReply {
        place: depot.place().to_owned(),
        size: published.as_ref().map(|published| published.size),
        before: published.as_ref().map(|published| published.before),
    };
    context.console.value(&reply, show)?;
    Ok(Exit::Done)
}

fn show(reply: &PublishReply) -> String {
    let place = text::line(&reply.place).text;
    match (reply.size, reply.before) {
        (Some(size), Some(before)) => format!(
            "{} published in {place}\n{FAINT}{before} before{FAINT:#}\n",
            count(size, "entry", "entries"),
        ),
        _ => format!("another process publishes in {place} now\n"),
    }
}
