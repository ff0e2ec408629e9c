//! `safepoint notify deliver`: one round of everything that is due, for cron and for servers.

use safepoint_control::notify::{Telling, TellingReport};
use safepoint_control::{Control, Delivered, Https};
use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use super::vault;
use crate::context::Context;
use crate::error::CliError;

/// What `notify deliver` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DeliverReply {
    /// How many messages arrived.
    arrived: u64,
    /// How many targets and stewards are to be tried again.
    waiting: u64,
    /// How many messages were given up; the trail tells which.
    given_up: u64,
    /// Holds that nobody decided in time, and that are denied now.
    expired: Vec<String>,
    /// Targets that cannot be told from this machine.
    unusable: Vec<Unusable>,
}

/// A target that cannot be told.
#[derive(Serialize, JsonSchema)]
struct Unusable {
    target: String,
    reason: String,
}

/// One round: silence is made a denial, stewards get their notices, targets are told.
pub(crate) fn round(
    context: &Context,
    control: &Control,
) -> Result<(Vec<String>, Delivered, TellingReport), CliError> {
    let expired = context.desk(control).sweep()?;
    let expired = expired.iter().map(ToString::to_string).collect();
    let https = Https::new();
    let delivered = control.deliver(&https)?;
    let vault = vault(context, control);
    let report = control.tell(&Telling {
        vault: &vault,
        carrier: &https,
        page: context.settings.public_url.value.as_deref(),
    })?;
    Ok((expired, delivered, report))
}

pub(super) fn run(context: &mut Context, control: &Control) -> Result<Exit, CliError> {
    let (expired, delivered, report) = round(context, control)?;
    let unusable = report.unusable.into_iter();
    let reply = DeliverReply {
        arrived: delivered.arrived + report.arrived,
        waiting: delivered.waiting + report.waiting,
        given_up: delivered.given_up + report.given_up,
        expired,
        unusable: unusable
            .map(|(target, reason)| Unusable { target, reason })
            .collect(),
    };
    context.console.value(&reply, |reply| {
        let mut shown = format!(
            "{} arrived, {} to be tried again, {} given up\n",
            reply.arrived, reply.waiting, reply.given_up
        );
        for hold in &reply.expired {
            shown.push_str(&format!("{hold}: nobody decided in time, denied\n"));
        }
        for it in &reply.unusable {
            let (target, reason) = (text::line(&it.target).text, text::line(&it.reason).text);
            shown.push_str(&format!("{target}: {reason}\n"));
        }
        shown
    })?;
    Ok(match reply.unusable.is_empty() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}
