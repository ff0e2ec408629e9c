//! `safepoint schema`: the JSON Schema of what each command prints under `--json`.

use safepoint_model::Exit;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::{
    atlas, audit, checkpoint, diff, doctor, du, exec, gc, hold, init, install, judge, list, log,
    mutate, notify, operator, passing, permit, pin, restoring, run, session, show, state, status,
    task, token, trail, trust, verify, watch, workspace,
};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `schema`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which command, such as `trail-list`; all of them without it
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(names()))]
    name: Option<String>,
}

/// An error, as every command prints it under `--json`.
#[derive(Serialize, JsonSchema)]
struct ErrorDocument {
    error: ErrorFields,
}

/// What is known of the error.
#[derive(Serialize, JsonSchema)]
struct ErrorFields {
    /// Its short code.
    code: String,
    /// Its name.
    name: String,
    /// What happened, and why.
    message: String,
    /// Where, if there is a place.
    location: Option<String>,
    /// What to do next.
    suggestion: Option<String>,
}

/// How a schema is made. Every command names them all for its help: only this one makes any.
type Make = fn() -> Schema;

macro_rules! schema_for {
    ($document:ty) => {
        (|| schemars::schema_for!($document)) as Make
    };
}

/// Every published schema, by name.
pub(crate) fn schemas() -> Vec<(&'static str, Make)> {
    vec![
        ("atlas-check", schema_for!(atlas::check::CheckReply)),
        ("atlas-init", schema_for!(atlas::init::InitReply)),
        ("atlas-replay", schema_for!(atlas::replay::ReplayReply)),
        ("atlas-suggest", schema_for!(atlas::suggest::SuggestReply)),
        ("atlas-show", schema_for!(atlas::show::ShowReply)),
        ("atlas-sign", schema_for!(atlas::sign::SignReply)),
        ("atlas-test", schema_for!(atlas::test::TestReply)),
        ("audit", schema_for!(audit::AuditReply)),
        ("checkpoint", schema_for!(checkpoint::CheckpointReply)),
        ("denial", schema_for!(passing::DenialReply)),
        ("diff", schema_for!(diff::DiffReply)),
        ("doctor", schema_for!(doctor::DoctorReply)),
        ("du", schema_for!(du::Usage)),
        ("error", schema_for!(ErrorDocument)),
        ("exec", schema_for!(exec::ExecReply)),
        ("exec-dry-run", schema_for!(exec::RehearsalReply)),
        ("gc", schema_for!(gc::GcReply)),
        ("hold", schema_for!(safepoint_authority::Pending)),
        ("hold-decision", schema_for!(hold::decide::DecisionReply)),
        ("hold-list", schema_for!(hold::list::HoldList)),
        ("init", schema_for!(init::Initialised)),
        ("install", schema_for!(install::InstallReply)),
        ("judge-end", schema_for!(safepoint_control::pass::Heard)),
        ("judge-enter", schema_for!(safepoint_control::pass::Entered)),
        ("judge-hold", schema_for!(judge::HoldStanding)),
        (
            "judge-propose",
            schema_for!(safepoint_control::pass::Settlement),
        ),
        (
            "judge-rehearse",
            schema_for!(safepoint_control::pass::Foretold),
        ),
        ("list", schema_for!(list::CheckpointList)),
        ("log", schema_for!(log::ActionLog)),
        ("mutate", schema_for!(mutate::MutateReply)),
        ("notify-deliver", schema_for!(notify::deliver::DeliverReply)),
        (
            "notify-event",
            schema_for!(notify::watch::EventDocument<'static>),
        ),
        ("notify-list", schema_for!(notify::TargetList)),
        ("notify-target", schema_for!(notify::TargetDocument)),
        ("notify-test", schema_for!(notify::TestReply)),
        ("operator", schema_for!(safepoint_authority::Operator)),
        ("operator-list", schema_for!(operator::OperatorList)),
        ("permit", schema_for!(safepoint_authority::Permit)),
        ("permit-list", schema_for!(permit::PermitList)),
        ("pin", schema_for!(pin::PinReply)),
        ("rollback", schema_for!(restoring::RestoreReply)),
        ("rollback-plan", schema_for!(restoring::PlanReply)),
        ("run", schema_for!(run::workflow::RunReply)),
        ("run-agent", schema_for!(run::agent::AgentReply)),
        ("session-list", schema_for!(session::list::SessionList)),
        ("session-show", schema_for!(session::step::SessionDocument)),
        ("session-start", schema_for!(session::start::SessionStarted)),
        ("session-step", schema_for!(session::step::SessionStep)),
        ("show", schema_for!(show::CheckpointDocument)),
        ("state", schema_for!(state::StateReply)),
        ("status", schema_for!(status::Status)),
        ("signature", schema_for!(operator::sign::SignatureReply)),
        ("task", schema_for!(task::TaskReply)),
        ("task-list", schema_for!(task::TaskList)),
        ("token", schema_for!(token::TokenReply)),
        ("token-list", schema_for!(token::TokenList)),
        ("trail-bundle", schema_for!(trail::bundle::BundleReply)),
        (
            "trail-check-bundle",
            schema_for!(trail::check_bundle::CheckReply),
        ),
        (
            "trail-check-proof",
            schema_for!(trail::check_proof::Checked),
        ),
        ("trail-entry", schema_for!(trail::EntryDocument)),
        ("trail-export", schema_for!(trail::export::ExportReply)),
        ("trail-head", schema_for!(trail::head::HeadDocument)),
        ("trail-list", schema_for!(trail::list::Page)),
        ("trail-prove", schema_for!(trail::prove::Proof)),
        ("trail-publish", schema_for!(trail::publish::PublishReply)),
        ("trail-tiles", schema_for!(trail::tiles::TilesReply)),
        ("trail-verify", schema_for!(trail::verify::Verdict)),
        ("trail-witness", schema_for!(trail::witness::WitnessReply)),
        ("trust", schema_for!(safepoint_authority::Trust)),
        ("trust-list", schema_for!(trust::TrustList)),
        ("verify", schema_for!(verify::VerifyReply)),
        ("watch", schema_for!(watch::WatchReply)),
        ("workspace-chain", schema_for!(workspace::chain::ChainReply)),
        (
            "workspace-checkpoint",
            schema_for!(workspace::checkpoint::CheckpointReply),
        ),
        (
            "workspace-create",
            schema_for!(workspace::create::CreateReply),
        ),
        (
            "workspace-integration",
            schema_for!(workspace::integration::IntegrationReply),
        ),
        (
            "workspace-list",
            schema_for!(workspace::list::WorkspaceList),
        ),
        ("workspace-log", schema_for!(workspace::log::ChainLog)),
        ("workspace-meter", schema_for!(workspace::meter::MeterReply)),
        (
            "workspace-recover",
            schema_for!(workspace::recover::RecoverReply),
        ),
        (
            "workspace-show",
            schema_for!(workspace::show::WorkspaceReply),
        ),
        (
            "workspace-signal",
            schema_for!(workspace::signal::SignalReply),
        ),
        (
            "workspace-signals",
            schema_for!(workspace::signal::SignalList),
        ),
        (
            "workspace-remove",
            schema_for!(workspace::decline::RemoveReply),
        ),
        ("workspace-state", schema_for!(workspace::state::StateReply)),
        (
            "workspace-verify",
            schema_for!(workspace::verify::VerifyReply),
        ),
        (
            "workspace-watch",
            schema_for!(workspace::document::SignalDocument),
        ),
        (
            "workspace-watch-once",
            schema_for!(workspace::watch::SignalsArrived),
        ),
    ]
}

fn names() -> Vec<&'static str> {
    schemas().into_iter().map(|(name, _)| name).collect()
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let known = schemas();
    let document = match &arguments.name {
        Some(name) => known
            .into_iter()
            .find(|(known, _)| known == name)
            .map(|(_, make)| serde_json::to_value(make()))
            .transpose()?
            .unwrap_or_default(),
        None => serde_json::to_value(
            known
                .into_iter()
                .map(|(name, make)| (name, make()))
                .collect::<std::collections::BTreeMap<_, _>>(),
        )?,
    };
    context
        .console
        .print(&format!("{}\n", serde_json::to_string_pretty(&document)?))?;
    Ok(Exit::Done)
}
