//! A decision where the store is a server: signed here, where the key is, and handed in there.

use safepoint_authority::{Choice, DecisionScope, Envelope};
use safepoint_control::ControlError;
use safepoint_model::{Digest, Exit};
use serde_json::{Map, Value};

use super::sign::{self, Asked};
use crate::commands::operator::{self, Who};
use crate::context::Context;
use crate::error::CliError;
use crate::far::{Server, forward};

/// What is decided about a hold.
pub(super) struct Deciding<'a> {
    pub(super) hold: &'a str,
    pub(super) who: &'a Who,
    /// The fingerprint that was displayed, for a yes.
    pub(super) fingerprint: Option<Digest>,
    pub(super) choice: Choice,
    pub(super) envelope: Option<Envelope>,
    pub(super) scope: Option<DecisionScope>,
    pub(super) confirm: Option<String>,
    pub(super) reason: Option<String>,
}

/// Signs a decision about what the server shows now, and hands it in.
pub(super) fn decide(
    context: &mut Context,
    server: &Server,
    deciding: Deciding<'_>,
) -> Result<Exit, CliError> {
    if operator::is_marked(context) {
        return Err(CliError::Control(ControlError::AgentDecides));
    }
    let name = deciding.who.of_a_key_here(context)?;
    let mut fields = Map::from_iter([("hold_id".to_owned(), Value::from(deciding.hold))]);
    let document = server.document("hold_show", fields.clone())?;
    let asked = Asked {
        operator: &name,
        key: deciding.who.key(),
        fingerprint: deciding.fingerprint,
        choice: deciding.choice,
        envelope: deciding.envelope,
        scope: deciding.scope,
        confirm: deciding.confirm,
        reason: deciding.reason,
    };
    let signature = sign::signed(context, document.to_string().as_bytes(), asked)?;
    fields.insert("signature".to_owned(), signature.into());
    if let Some(fingerprint) = deciding.fingerprint {
        fields.insert("fingerprint".to_owned(), fingerprint.to_string().into());
    }
    let endpoint = match deciding.choice {
        Choice::Continue | Choice::Modify | Choice::PerStep => "hold_approve",
        Choice::Deny => "hold_deny",
        Choice::Halt => "hold_halt",
    };
    forward::run_there(context, server, endpoint, &fields)
}
