//! `safepoint hold approve`, `deny` and `halt`.

use safepoint_authority::{Choice, DecisionScope, Envelope, Hold, HoldState, Permit};
use safepoint_control::pass::{Elsewhere, Verdict};
use safepoint_model::{Digest, Exit};
use schemars::JsonSchema;
use serde::Serialize;

use super::afar::{self, Deciding};
use crate::commands::session::deliver;
use crate::commands::{operator, outside};
use crate::console::{BAD, FAINT, GOOD, STRONG};
use crate::context::Context;
use crate::error::CliError;
use crate::far::Server;

/// Arguments of `hold approve`
#[derive(Debug, clap::Args)]
pub(crate) struct Approve {
    /// The hold; the beginning of its id is enough
    hold: String,
    /// The fingerprint that `hold show` displayed
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint)]
    fingerprint: Digest,
    /// The word that `hold show` asks for, where it cannot be undone
    #[arg(long, value_name = "WORD")]
    confirm: Option<String>,
    /// Let the session do this much without asking: JSON or YAML, or `@FILE`
    #[arg(
        long,
        value_name = "JSON",
        conflicts_with = "per_step",
        allow_hyphen_values = true
    )]
    envelope: Option<String>,
    /// Ask before every further step of the session
    #[arg(long)]
    per_step: bool,
    /// How long it lasts, for a host, a socket or a file outside the fence
    #[arg(
        long = "for",
        value_name = "SCOPE",
        default_value = "once",
        conflicts_with_all = ["per_step", "envelope"]
    )]
    lasts: Lasting,
    #[command(flatten)]
    who: operator::Who,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// How long a yes lasts
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Lasting {
    /// Once
    Once,
    /// As long as the session
    Session,
    /// In every session of this workspace, until `trust revoke` takes it back
    Project,
}

impl Lasting {
    pub(super) fn scope(self) -> Option<DecisionScope> {
        match self {
            Self::Once => None,
            Self::Session => Some(DecisionScope::Session),
            Self::Project => Some(DecisionScope::Project),
        }
    }
}

/// Arguments of `hold deny` and `hold halt`
#[derive(Debug, clap::Args)]
pub(crate) struct Deny {
    /// The hold; the beginning of its id is enough
    hold: String,
    #[command(flatten)]
    who: operator::Who,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// What a decision prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DecisionReply {
    hold_id: String,
    action_id: String,
    /// What was decided.
    choice: Choice,
    /// How long it lasts: `session` or `project`; once without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<DecisionScope>,
    /// What it opens outside the fence, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    opens: Option<String>,
    /// Where the hold stands now.
    state: HoldState,
    /// Who decided.
    operator: String,
    /// The permit that follows from it.
    permit: Option<Permit>,
    /// The signed decision.
    decision: Option<String>,
}

pub(super) fn fingerprint(text: &str) -> Result<Digest, String> {
    text.parse()
        .map_err(|_| "a fingerprint has 64 hexadecimal digits, in lower case".to_owned())
}

pub(crate) fn approve(context: &mut Context, arguments: &Approve) -> Result<Exit, CliError> {
    let envelope = match &arguments.envelope {
        None => None,
        Some(given) => Some(read_envelope(context, given)?),
    };
    if let Some(note) = arguments.who.note(context)? {
        let elsewhere = arguments.confirm.is_some() || arguments.reason.is_some();
        let is_longer = arguments.lasts != Lasting::Once;
        if elsewhere || envelope.is_some() || arguments.per_step || is_longer {
            return Err(CliError::Invalid {
                message: "what was signed elsewhere says everything itself".to_owned(),
                suggestion: "leave out `--confirm`, `--envelope`, `--per-step`, `--for` and `--reason`",
            });
        }
        let yes = [Choice::Continue, Choice::Modify, Choice::PerStep];
        let fingerprint = Some(arguments.fingerprint);
        let (hold, who) = (&arguments.hold, &arguments.who);
        return take_signed(context, hold, who, &note, fingerprint, &yes);
    }
    let choice = match (&envelope, arguments.per_step) {
        (Some(_), _) => Choice::Modify,
        (None, true) => Choice::PerStep,
        (None, false) => Choice::Continue,
    };
    if let Some(server) = Server::of(context)? {
        let deciding = Deciding {
            hold: &arguments.hold,
            who: &arguments.who,
            fingerprint: Some(arguments.fingerprint),
            choice,
            envelope,
            scope: arguments.lasts.scope(),
            confirm: arguments.confirm.clone(),
            reason: arguments.reason.clone(),
        };
        return afar::decide(context, &server, deciding);
    }
    decide(context, &arguments.hold, &arguments.who, |hold| Verdict {
        hold_id: hold.hold_id.clone(),
        fingerprint: arguments.fingerprint,
        choice,
        envelope,
        scope: arguments.lasts.scope(),
        confirm: arguments.confirm.clone(),
        reason: arguments.reason.clone(),
    })
}

pub(crate) fn deny(context: &mut Context, arguments: &Deny) -> Result<Exit, CliError> {
    no(context, arguments, Choice::Deny)
}

pub(crate) fn halt(context: &mut Context, arguments: &Deny) -> Result<Exit, CliError> {
    no(context, arguments, Choice::Halt)
}

fn no(context: &mut Context, arguments: &Deny, choice: Choice) -> Result<Exit, CliError> {
    if let Some(note) = arguments.who.note(context)? {
        if arguments.reason.is_some() {
            return Err(CliError::Invalid {
                message: "what was signed elsewhere says its reason itself".to_owned(),
                suggestion: "leave out `--reason`",
            });
        }
        let (hold, who) = (&arguments.hold, &arguments.who);
        return take_signed(context, hold, who, &note, None, &[choice]);
    }
    if let Some(server) = Server::of(context)? {
        let deciding = Deciding {
            hold: &arguments.hold,
            who: &arguments.who,
            fingerprint: None,
            choice,
            envelope: None,
            scope: None,
            confirm: None,
            reason: arguments.reason.clone(),
        };
        return afar::decide(context, &server, deciding);
    }
    decide(context, &arguments.hold, &arguments.who, |hold| Verdict {
        hold_id: hold.hold_id.clone(),
        // A no needs no look at the form: it lets nothing happen.
        fingerprint: hold.fingerprint,
        choice,
        envelope: None,
        scope: None,
        confirm: None,
        reason: arguments.reason.clone(),
    })
}

fn decide(
    context: &mut Context,
    prefix: &str,
    who: &operator::Who,
    verdict: impl FnOnce(&Hold) -> Verdict,
) -> Result<Exit, CliError> {
    let control = context.control()?;
    operator::refuse_agents(context, &control)?;
    let desk = context.desk(&control);
    let hold = desk.hold(prefix)?;
    let (operator, signing) = operator::choose(context, &desk, who)?;
    let verdict = verdict(&hold);
    let (decided, permit) = desk.decide(&verdict, &operator, &*signing)?;
    deliver::start(context, &control);
    let reply = DecisionReply::new(&decided, permit, verdict.choice, operator.name);
    print(context, &reply)
}

/// Takes a decision that was signed elsewhere.
fn take_signed(
    context: &mut Context,
    prefix: &str,
    who: &operator::Who,
    note: &str,
    fingerprint: Option<Digest>,
    choices: &[Choice],
) -> Result<Exit, CliError> {
    let control = context.control()?;
    operator::refuse_agents(context, &control)?;
    let desk = context.desk(&control);
    let hold = desk.hold(prefix)?;
    let operator = who.must_be(context);
    let (decided, permit, choice, operator) = desk.decide_signed(&Elsewhere {
        hold: &hold,
        fingerprint: fingerprint.unwrap_or(hold.fingerprint),
        choices,
        operator: operator.as_deref(),
        note,
    })?;
    deliver::start(context, &control);
    let reply = DecisionReply::new(&decided, permit, choice, operator);
    print(context, &reply)
}

impl DecisionReply {
    fn new(decided: &Hold, permit: Option<Permit>, choice: Choice, operator: String) -> Self {
        let said = decided.decisions.last().and_then(|it| it.claimed().ok());
        let scope = said.and_then(|it| it.scope);
        let target = decided.canonical.outside_target();
        let is_open = decided.state == HoldState::Approved;
        Self {
            scope,
            opens: target.filter(|_| is_open).map(|it| it.opening(scope)),
            hold_id: decided.hold_id.to_string(),
            action_id: decided.action_id.to_string(),
            choice,
            state: decided.state,
            operator,
            permit,
            decision: decided.decisions.last().map(|it| it.note().to_owned()),
        }
    }
}

fn print(context: &mut Context, reply: &DecisionReply) -> Result<Exit, CliError> {
    context.console.value(reply, |reply| {
        let is_settled = reply.state == HoldState::Approved;
        let word = match (reply.choice.is_yes(), is_settled) {
            (true, true) => format!("{GOOD}approved{GOOD:#}"),
            (true, false) => format!("{GOOD}noted{GOOD:#}, another operator is needed"),
            (false, _) => format!("{BAD}{}{BAD:#}", reply.choice.as_str()),
        };
        let mut shown = format!(
            "{word}  {STRONG}{}{STRONG:#}  by {}\n",
            reply.hold_id, reply.operator
        );
        if let Some(opens) = &reply.opens {
            let opens = safepoint_model::text::line(opens).text;
            shown.push_str(&format!("{FAINT}this{FAINT:#}      {opens}\n"));
        }
        if let Some(permit) = &reply.permit {
            shown.push_str(&format!(
                "{FAINT}permit{FAINT:#}    {}, once, until {}\n",
                permit.permit_id, permit.expires_at
            ));
        }
        shown
    })?;
    Ok(Exit::Done)
}

pub(super) fn read_envelope(context: &Context, given: &str) -> Result<Envelope, CliError> {
    let bytes = outside::json_or_yaml(context, given)?;
    let text = String::from_utf8_lossy(&bytes);
    Envelope::read(&text).map_err(|error| {
        let source = std::error::Error::source(&error).map(|it| format!(": {it}"));
        CliError::Invalid {
            message: format!("`--envelope`: {error}{}", source.unwrap_or_default()),
            suggestion: "for example `{\"actions\": [\"file.*\"], \"paths\": [\"/srv/site\"], \"side_effects\": [\"read\", \"write\"], \"uses\": 20}`",
        }
    })
}
