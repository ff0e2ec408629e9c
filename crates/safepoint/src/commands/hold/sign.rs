//! `safepoint hold sign`: a decision, signed where the key is, about a hold that somebody
//! else's store has. It opens no store.
//!
//! The fingerprint is not believed: it is computed anew from the form that the document
//! shows, so a server cannot show one thing and have another signed.

use std::path::PathBuf;

use safepoint_authority::{Canonical, Choice, Decision, DecisionScope, Envelope};
use safepoint_model::{ActionId, Clock, Digest, Exit, HoldId, json, text};
use serde::Deserialize;

use super::decide::{Lasting, read_envelope};
use crate::commands::operator::sign::{SignatureReply, signer};
use crate::commands::outside;
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// Arguments of `hold sign`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What `hold show --json` printed: `@FILE`, or `-` for standard input
    document: String,
    /// Who decides
    #[arg(long, value_name = "NAME", env = "SAFEPOINT_OPERATOR")]
    operator: String,
    /// Their key, where it lies elsewhere
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The fingerprint that was displayed
    #[arg(long, value_name = "FINGERPRINT", value_parser = super::decide::fingerprint)]
    fingerprint: Digest,
    /// What is decided
    #[arg(long, value_enum, value_name = "CHOICE", default_value = "approve")]
    choice: Wanted,
    /// The word that `hold show` asks for, where it cannot be undone
    #[arg(long, value_name = "WORD")]
    confirm: Option<String>,
    /// Let the session do this much without asking: JSON or YAML, or `@FILE`
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    envelope: Option<String>,
    /// How long a yes lasts, for a host, a socket or a file outside the fence
    #[arg(long = "for", value_name = "SCOPE", default_value = "once")]
    lasts: Lasting,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// What can be decided
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Wanted {
    /// Let it run, once
    Approve,
    /// The same, and ask before every further step
    PerStep,
    /// Do not let it run
    Deny,
    /// Stop the whole session
    Halt,
}

/// What a decision rests on. The rest of the document is for people.
#[derive(Deserialize)]
struct Shown {
    hold_id: HoldId,
    action_id: ActionId,
    fingerprint: Digest,
    canonical_form: Canonical,
    confirm: Option<String>,
}

/// What is decided, and by whom.
pub(super) struct Asked<'a> {
    pub(super) operator: &'a str,
    pub(super) key: Option<&'a PathBuf>,
    /// The fingerprint that was displayed; a no needs no look at the form.
    pub(super) fingerprint: Option<Digest>,
    pub(super) choice: Choice,
    pub(super) envelope: Option<Envelope>,
    pub(super) scope: Option<DecisionScope>,
    pub(super) confirm: Option<String>,
    pub(super) reason: Option<String>,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let document = outside::text_or_file(context, &arguments.document)?;
    let envelope = match &arguments.envelope {
        None => None,
        Some(given) => Some(read_envelope(context, given)?),
    };
    let choice = match (arguments.choice, &envelope) {
        (Wanted::Approve, Some(_)) => Choice::Modify,
        (Wanted::Approve, None) => Choice::Continue,
        (Wanted::PerStep, None) => Choice::PerStep,
        (Wanted::Deny, None) => Choice::Deny,
        (Wanted::Halt, None) => Choice::Halt,
        (_, Some(_)) => {
            return Err(invalid(
                "an envelope goes with a yes only",
                "leave out `--envelope`, or `--choice`",
            ));
        }
    };
    let scope = arguments.lasts.scope();
    if scope.is_some() && choice != Choice::Continue {
        return Err(invalid(
            "`--for` goes with a plain yes only",
            "leave out `--for`, or the envelope and the other choice",
        ));
    }
    let asked = Asked {
        scope,
        operator: &arguments.operator,
        key: arguments.key.as_ref(),
        fingerprint: Some(arguments.fingerprint),
        choice,
        envelope,
        confirm: arguments.confirm.clone(),
        reason: arguments.reason.clone(),
    };
    let reply = SignatureReply {
        signature: signed(context, &document, asked)?,
    };
    context.console.value(&reply, |it| it.signature.clone())?;
    Ok(Exit::Done)
}

/// A decision about the hold that a document shows, signed with a key that is here.
pub(super) fn signed(
    context: &mut Context,
    document: &[u8],
    asked: Asked<'_>,
) -> Result<String, CliError> {
    let shown: Shown =
        json::read_as(document, json::Limits::default()).map_err(|error| CliError::Invalid {
            message: format!("this is not what `hold show --json` prints: {error}"),
            suggestion: "give it whole, as `@FILE` or on standard input",
        })?;
    let made = shown.canonical_form.fingerprint();
    if !made.is_ok_and(|made| made == shown.fingerprint) {
        return Err(invalid(
            "the fingerprint is not that of the form which is shown",
            "sign nothing: whoever made this document shows one thing and means another",
        ));
    }
    if asked.fingerprint.is_some_and(|it| it != shown.fingerprint) {
        return Err(invalid(
            "the document has another fingerprint",
            "look at it again, and name the fingerprint that it shows",
        ));
    }
    let choice = asked.choice;
    if choice.is_yes() && shown.confirm.is_some() && asked.confirm != shown.confirm {
        return Err(invalid(
            "it cannot be taken back: a second confirmation is needed",
            "say so with `--confirm` and the word that the document shows",
        ));
    }
    let signer = signer(context, asked.operator, asked.key)?;
    let decision = Decision {
        statement: Decision::purpose(),
        hold_id: shown.hold_id,
        action_id: shown.action_id,
        fingerprint: shown.fingerprint,
        choice,
        envelope: asked.envelope,
        scope: asked.scope,
        confirm: asked.confirm,
        reason: asked.reason,
        operator: asked.operator.to_owned(),
        time: SystemClock.now(),
    };
    let text = decision
        .to_text()
        .map_err(|error| CliError::Control(error.into()))?;
    context.console.say(&format!(
        "signs `{}` for: {}",
        choice.as_str(),
        text::line(&shown.canonical_form.summary()).text
    ));
    Ok(signer.sign(&text))
}

fn invalid(message: &str, suggestion: &'static str) -> CliError {
    CliError::Invalid {
        message: message.to_owned(),
        suggestion,
    }
}
