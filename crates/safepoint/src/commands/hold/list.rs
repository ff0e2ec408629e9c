//! `safepoint hold list` and `safepoint hold show`.

use std::collections::BTreeMap;

use safepoint_authority::{Hold, HoldState, Pending};
use safepoint_control::pass::Desk;
use safepoint_control::{Control, ControlError};
use safepoint_model::{Exit, HoldId, SessionId, text};
use schemars::JsonSchema;
use serde::Serialize;

use super::show;
use crate::commands::operator;
use crate::console::{FAINT, Mode, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `hold list`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Those that are settled too, the newest first
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only those after this one, as `next` names it
    #[arg(long, value_name = "ID")]
    after: Option<String>,
}

/// Arguments of `hold show`
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The hold; the beginning of its id is enough
    hold: String,
}

/// What `hold list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HoldList {
    /// The oldest first.
    holds: Vec<Pending>,
    /// How many there are in all, listed here or not.
    total: u64,
    /// What `--after` takes for the rest of them; nothing when these are the last.
    next: Option<String>,
}

/// Who looks.
enum Reader {
    /// A person, who sees everything.
    Person,
    /// An agent, with the session it works in if that is known. It sees what that one wants.
    Agent(Option<String>),
}

impl Reader {
    fn here(context: &Context, control: &Control) -> Result<Self, CliError> {
        // Which action has started us is known; what a variable says an agent can change.
        if let Some(session) = control.session_above()? {
            return Ok(Self::Agent(Some(session.to_string())));
        }
        Ok(match operator::is_marked(context) {
            true => Self::Agent(context.environment.text("SAFEPOINT_SESSION")),
            false => Self::Person,
        })
    }

    fn may_see(&self, hold: &Hold) -> bool {
        match self {
            Self::Person => true,
            Self::Agent(session) => session.as_deref() == Some(hold.canonical.session_id.as_str()),
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let control = context.control()?;
    let desk = context.desk(&control);
    desk.sweep()?;
    let reader = Reader::here(context, &control)?;
    let reply = match arguments.all {
        true => all(&desk, arguments, &reader)?,
        false => waiting(&desk, arguments, &reader)?,
    };
    if context.console.mode == Mode::Ndjson {
        for hold in &reply.holds {
            context.console.json(hold)?;
        }
        return Ok(Exit::Done);
    }
    let width = context.console.width();
    context.console.value(&reply, |reply| {
        if reply.holds.is_empty() && reply.total == 0 {
            return "Nothing waits.\n".to_owned();
        }
        let mut shown = lines(&reply.holds, width);
        if let Some(next) = &reply.next {
            let of = reply.total;
            let all = if arguments.all { " --all" } else { "" };
            let more = match arguments.after {
                None => format!("{} more", of.saturating_sub(reply.holds.len() as u64)),
                Some(_) => format!("more of {of}"),
            };
            shown.push_str(&format!(
                "{FAINT}{more}: safepoint hold list{all} --after {next}{FAINT:#}\n"
            ));
        }
        shown
    })?;
    Ok(Exit::Done)
}

/// What waits: a page of it, with whatever must be decided before each.
fn waiting(desk: &Desk<'_>, arguments: &Arguments, reader: &Reader) -> Result<HoldList, CliError> {
    let mut holds = desk.waiting()?;
    holds.retain(|hold| reader.may_see(hold));
    let mut first: BTreeMap<SessionId, HoldId> = BTreeMap::new();
    let in_turn =
        |hold: &Hold| hold.state == HoldState::Pending && hold.canonical.outside_target().is_none();
    for hold in holds.iter().filter(|hold| in_turn(hold)) {
        let session = hold.canonical.session_id.clone();
        first.entry(session).or_insert_with(|| hold.hold_id.clone());
    }
    let total = holds.len() as u64;
    if let Some(after) = &arguments.after {
        // It may have been decided since: its place in the order stays.
        let last = desk.hold(after)?;
        let place = (last.since, last.hold_id);
        holds.retain(|hold| (hold.since, hold.hold_id.clone()) > place);
    }
    let limit = arguments.limit as usize;
    let is_cut = holds.len() > limit;
    let holds: Vec<Pending> = holds
        .iter()
        .take(limit)
        .map(|hold| {
            let before = first.get(&hold.canonical.session_id);
            let waits = in_turn(hold);
            Pending {
                waits_for: before
                    .filter(|first| waits && **first != hold.hold_id)
                    .cloned(),
                ..hold.pending()
            }
        })
        .collect();
    Ok(HoldList {
        next: next_of(&holds, is_cut),
        holds,
        total,
    })
}

/// A page of holds of any state.
fn all(desk: &Desk<'_>, arguments: &Arguments, reader: &Reader) -> Result<HoldList, CliError> {
    let after = arguments.after.as_deref();
    let after = after.map(|after| desk.hold(after)).transpose()?;
    let mut holds = desk.holds(after.as_ref(), arguments.limit.saturating_add(1))?;
    let is_cut = holds.len() > arguments.limit as usize;
    holds.truncate(arguments.limit as usize);
    holds.retain(|hold| reader.may_see(hold));
    let holds: Vec<Pending> = holds.iter().map(Hold::pending).collect();
    Ok(HoldList {
        total: match reader {
            Reader::Person => desk.count_holds()?,
            Reader::Agent(_) => holds.len() as u64,
        },
        next: next_of(&holds, is_cut),
        holds,
    })
}

fn next_of(holds: &[Pending], is_cut: bool) -> Option<String> {
    let last = holds.last().filter(|_| is_cut);
    last.map(|hold| hold.hold_id.to_string())
}

/// A line each. Where they are from several workspaces, each is under the name of its own.
fn lines(holds: &[Pending], width: usize) -> String {
    let place = |hold: &Pending| hold.canonical_form.workspace.path.clone();
    let is_mixed = holds.windows(2).any(|two| match two {
        [one, other] => place(one) != place(other),
        _ => false,
    });
    let mut shown = String::new();
    let mut last = None;
    for hold in holds {
        if is_mixed && last != Some(place(hold)) {
            let place = match place(hold) {
                none if none.is_empty() => "in no directory".to_owned(),
                place => format!("in {}", text::line(&place).text),
            };
            shown.push_str(&format!("{FAINT}{place}{FAINT:#}\n"));
        }
        last = Some(place(hold));
        shown.push_str(&line(hold, width));
    }
    shown
}

fn line(hold: &Pending, width: usize) -> String {
    let state = match hold.state {
        HoldState::Pending => "waits",
        HoldState::Approved => "approved",
        HoldState::Denied => "denied",
        HoldState::Halted => "halted",
        HoldState::Expired => "expired",
        HoldState::Closed => "closed",
    };
    let since = hold.since.to_string();
    let summary = text::line(&hold.canonical_request_summary).text;
    let head = format!(
        "{}  {}  {state:<8}  {:<12}  ",
        hold.hold_id,
        since.get(..19).unwrap_or(&since),
        hold.reversibility_class.as_str()
    );
    let room = width.saturating_sub(head.chars().count()).max(20);
    format!(
        "{STRONG}{}{STRONG:#}  {FAINT}{}{FAINT:#}  {state:<8}  {:<12}  {}\n",
        hold.hold_id,
        since.get(..19).unwrap_or(&since),
        hold.reversibility_class.as_str(),
        text::shorten(&summary, room)
    )
}

pub(crate) fn show(context: &mut Context, arguments: &One) -> Result<Exit, CliError> {
    let control = context.control()?;
    let desk = context.desk(&control);
    desk.sweep()?;
    let hold = desk.hold(&arguments.hold)?;
    // To an agent, what others want to do is not there.
    let reader = Reader::here(context, &control)?;
    if !reader.may_see(&hold) {
        return Err(CliError::Control(ControlError::NotFound {
            what: "hold",
            name: arguments.hold.clone(),
        }));
    }
    let pending = Pending {
        waits_for: desk.turn_before(&hold)?,
        ..hold.pending()
    };
    let reader = match reader {
        Reader::Person => show::Audience::Operator,
        Reader::Agent(_) => show::Audience::Agent,
    };
    context
        .console
        .value(&pending, |pending| show::page(pending, reader))?;
    Ok(Exit::Done)
}
