//! `safepoint hold list` and `safepoint hold show`.

use safepoint_authority::{Hold, HoldState, Pending};
use safepoint_control::{Control, ControlError};
use safepoint_model::{Exit, text};
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
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: u32,
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
    let mut holds = match arguments.all {
        true => desk.holds(arguments.limit)?,
        false => desk.waiting()?,
    };
    let reader = Reader::here(context, &control)?;
    holds.retain(|hold| reader.may_see(hold));
    let shown = holds.iter().take(arguments.limit as usize);
    let reply = HoldList {
        holds: shown.map(Hold::pending).collect(),
    };
    if context.console.mode == Mode::Ndjson {
        for hold in &reply.holds {
            context.console.json(hold)?;
        }
        return Ok(Exit::Done);
    }
    let width = context.console.width();
    context.console.value(&reply, |reply| {
        if reply.holds.is_empty() {
            return "Nothing waits.\n".to_owned();
        }
        lines(&reply.holds, width)
    })?;
    Ok(Exit::Done)
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
    if !Reader::here(context, &control)?.may_see(&hold) {
        return Err(CliError::Control(ControlError::NotFound {
            what: "hold",
            name: arguments.hold.clone(),
        }));
    }
    context.console.value(&hold.pending(), show::page)?;
    Ok(Exit::Done)
}
