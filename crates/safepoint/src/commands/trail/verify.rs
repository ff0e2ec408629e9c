//! `safepoint trail verify`.

use safepoint_model::{Exit, text};
use safepoint_trail::{Bad, Copy, TrailError, Verification};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{BAD, FAINT, GOOD, count};
use crate::context::Context;
use crate::error::CliError;

/// What `trail verify` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Verdict {
    /// Whether everything is as it was written.
    valid: bool,
    /// How many entries were checked and found good.
    checked: u64,
    /// How many of them the head outside the database covers.
    witnessed: u64,
    /// `kept`, or `made_anew` where it was missing once and vouches for nothing from before.
    outside_copy: &'static str,
    /// How many entries there were when the copy was made anew: it vouches for none of them.
    outside_copy_since: Option<u64>,
    /// The first entry that is not what it was.
    first_bad: Option<FirstBad>,
}

/// The first entry that is not what it was.
#[derive(Serialize, JsonSchema)]
struct FirstBad {
    /// Its place in the trail.
    seq: u64,
    /// Its id, if it can still be told.
    id: Option<String>,
    /// What is wrong.
    reason: String,
}

impl From<Verification> for Verdict {
    fn from(found: Verification) -> Self {
        Self {
            valid: found.first_bad.is_none(),
            checked: found.checked,
            witnessed: found.witnessed,
            outside_copy: match found.copy {
                Copy::Kept => "kept",
                Copy::MadeAnew { .. } => "made_anew",
            },
            outside_copy_since: match found.copy {
                Copy::Kept => None,
                Copy::MadeAnew { since } => Some(since),
            },
            first_bad: found.first_bad.map(|bad| FirstBad {
                seq: bad.seq,
                id: bad.id,
                reason: bad.reason,
            }),
        }
    }
}

pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let verdict: Verdict = match verify(context) {
        Ok(found) => found.into(),
        // Some tampering is already seen when the trail is opened.
        Err(CliError::Trail(TrailError::Tampered(bad))) => nothing_but(bad).into(),
        Err(CliError::Trail(TrailError::StoreLost { origin, size, .. })) => nothing_but(Bad::at(
            0,
            format!("the trail `{origin}` with {size} entries is gone from the store"),
        ))
        .into(),
        Err(error) => return Err(error),
    };
    context.console.value(&verdict, show)?;
    Ok(if verdict.valid {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn verify(context: &Context) -> Result<Verification, CliError> {
    let trail = context.trail()?;
    let bar = context.console.progress(
        trail.head().map_or(0, |head| head.size()),
        "{wide_bar} {human_pos}/{human_len} entries, {per_sec}",
    );
    let found = trail.verify(|checked| bar.set_position(checked));
    bar.finish_and_clear();
    Ok(found?)
}

fn nothing_but(bad: Bad) -> Verification {
    Verification {
        checked: 0,
        witnessed: 0,
        copy: Copy::Kept,
        first_bad: Some(bad),
    }
}

fn show(verdict: &Verdict) -> String {
    let entries = |number| count(number, "entry", "entries");
    match &verdict.first_bad {
        None => {
            let checked = entries(verdict.checked);
            let copy = match verdict.outside_copy_since {
                None => format!("the copy outside the database covers {}", verdict.witnessed),
                Some(since) => format!(
                    "the copy outside the database was missing once; it was made anew when there were {}, and vouches for nothing from before",
                    entries(since)
                ),
            };
            format!(
                "{GOOD}good{GOOD:#}  {checked}: content, chains, tree and signed head\n{FAINT}      {copy}{FAINT:#}\n"
            )
        }
        Some(bad) => {
            let id = bad
                .id
                .as_ref()
                .map(|id| format!(" ({id})"))
                .unwrap_or_default();
            let before = entries(verdict.checked.min(bad.seq));
            let reason = text::line(&bad.reason).text;
            format!(
                "{BAD}bad{BAD:#}   entry {}{id}: {reason}\n{FAINT}      before it: {before}, as written{FAINT:#}\n",
                bad.seq
            )
        }
    }
}
