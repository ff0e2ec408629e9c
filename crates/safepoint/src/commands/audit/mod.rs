//! `safepoint audit`: what was done here, by whom, why and with what outcome, in
//! the form that the capability standard gives an audit.
//!
//! Everything is read from the trail; what changed is read from the states
//! before and after each action. Failed actions are told like all others.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use safepoint_control::Control;
use safepoint_control::pass::ActionEffect;
use safepoint_model::Exit;
use safepoint_state::scope::{Cover, Scope};
use safepoint_state::tree::{Change, Entry as TreeEntry, Node};
use safepoint_state::{Action, State, StateError, Subject, path};
use safepoint_store::Flow;
use safepoint_trail::{Entry, Query};
use serde_json::Value;

use super::outside;
use super::trail::filter::moment;
use crate::context::Context;
use crate::error::CliError;

mod document;

pub(crate) use document::AuditReply;
use document::{
    AuditRecord, ChangeRecord, EffectRecord, FailureRecord, Provenance, ToolUsage, show,
};

/// Arguments of `audit`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only what concerns these files, directories, patterns, states or databases
    #[arg(long, value_name = "PATH", num_args = 1..)]
    scope: Vec<OsString>,
    /// Only since then: an RFC 3339 time, or how long ago (90s, 24h, 7d)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only before then
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only by this actor
    #[arg(long, value_name = "ACTOR")]
    actor: Option<String>,
}

/// One action, as the trail tells it.
#[derive(Default)]
struct Told {
    actor: String,
    time: String,
    tools: Vec<String>,
    targets: Vec<String>,
    reasons: Vec<String>,
    outcome: Option<String>,
    why: Option<String>,
    entries: Vec<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let workspace = context.workspace()?;
    let chosen = outside::split(context, &arguments.scope)?;
    let wanted = Chosen {
        files: match chosen.paths.is_empty() && !chosen.subjects.is_empty() {
            true => Scope::nothing(),
            false => Scope::parse(&workspace.root, &outside::here(context), &chosen.paths)?,
        },
        parts: chosen.subjects.iter().map(Subject::name).collect(),
    };
    let (control, state) = context.control_and_state()?;
    let query = Query {
        streams: state.streams(&workspace.root)?,
        actor: arguments.actor.clone(),
        since: arguments.since.as_deref().map(moment).transpose()?,
        until: arguments.until.as_deref().map(moment).transpose()?,
        ..Query::default()
    };
    let mut actions: BTreeMap<String, Told> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    state.trail().entries(&query, |entry| {
        if let Some(id) = of_action(&entry) {
            if !actions.contains_key(&id) {
                order.push(id.clone());
            }
            read(actions.entry(id).or_default(), &entry);
        }
        Ok::<_, CliError>(Flow::More)
    })?;
    let mut audit = Audit::default();
    for id in &order {
        if let Some(told) = actions.get(id) {
            audit.add(&state, &control, id, told, &wanted)?;
        }
    }
    let reply = audit.reply(&state)?;
    context.console.value(&reply, show)?;
    Ok(Exit::Done)
}

/// The action that an entry tells of. That a change was taken back is told of the change.
fn of_action(entry: &Entry) -> Option<String> {
    if entry.kind.to_string() == "mutation_rolled_back" {
        let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
        if let Some(undoes) = body.get("undoes").and_then(Value::as_str) {
            return Some(undoes.to_owned());
        }
    }
    entry.action_id.as_ref().map(ToString::to_string)
}

/// What is asked about.
struct Chosen {
    files: Scope,
    /// States and databases, by their names.
    parts: Vec<String>,
}

impl Chosen {
    fn is_everything(&self) -> bool {
        self.files.is_everything()
    }

    /// Whether a target that an action named is meant.
    fn concerns(&self, target: &str) -> bool {
        self.parts.iter().any(|part| part == target)
            || self.files.cover(target.as_bytes()) == Cover::Everything
    }
}

/// Adds what one entry says.
fn read(told: &mut Told, entry: &Entry) {
    let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
    told.actor = entry.actor.to_string();
    told.time = entry.time.to_string();
    told.entries.push(entry.id.to_string());
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    for operation in body
        .get("operations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        told.tools.extend(text(operation, "type"));
        told.targets.extend(text(operation, "target"));
        told.reasons.extend(text(operation, "description"));
    }
    let kind = entry.kind.to_string();
    let (tool, outcome) = match kind.as_str() {
        "mutation_started" => return,
        "mutation_done" => (
            None,
            text(&body, "outcome").unwrap_or_else(|| "ok".to_owned()),
        ),
        "mutation_failed" => (None, "failed".to_owned()),
        "mutation_unknown" => (None, "unknown".to_owned()),
        "action_observed" => (Some("workspace"), "observed".to_owned()),
        "undone" => (Some("undo"), "ok".to_owned()),
        "redone" => (Some("redo"), "ok".to_owned()),
        "mutation_rolled_back" => (None, "failed".to_owned()),
        "rolled_back" => (Some("rollback"), "ok".to_owned()),
        other => (Some(other), "ok".to_owned()),
    };
    told.why = text(&body, "why").or(told.why.take());
    told.tools.extend(tool.map(str::to_owned));
    told.reasons.extend(text(&body, "summary"));
    told.outcome = Some(outcome);
}

/// How much of what an action changed can be shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    All,
    /// The states before and after it are no longer kept.
    Nothing,
    /// What is kept of it is not what the trail tells.
    Tampered,
}

const TAMPERED: &str =
    "what the store keeps of it is not what the trail tells, so its changes cannot be shown";

/// What an action did or wanted outside, if anything.
fn effect_record(id: &str, told: &Told, effect: ActionEffect) -> Option<EffectRecord> {
    let measured = effect.measured;
    let lasts = measured.as_ref().is_some_and(|it| !it.remainder.is_empty());
    (lasts || !effect.record.is_empty()).then(|| EffectRecord {
        action_id: id.to_owned(),
        timestamp: told.time.clone(),
        reversibility: measured.as_ref().map(|it| it.reversibility.as_str()),
        remainder: measured.map_or_else(Vec::new, |it| it.remainder.into_iter().collect()),
        reached: effect.record.reached,
        refused: effect.record.refused,
    })
}

#[derive(Default)]
struct Audit {
    changes: Vec<ChangeRecord>,
    failures: Vec<FailureRecord>,
    effects: Vec<EffectRecord>,
    actors: BTreeSet<String>,
    kinds: BTreeSet<String>,
    targets: BTreeSet<String>,
    tools: BTreeMap<String, (u64, u64)>,
    reasons: Vec<String>,
    inputs: BTreeSet<String>,
    outputs: BTreeSet<String>,
    dependencies: BTreeSet<String>,
    entries: Vec<String>,
    total: u64,
    /// Actions whose outcome is known and whose changes can be shown.
    clear: u64,
}

impl Audit {
    fn add(
        &mut self,
        state: &State,
        control: &Control,
        id: &str,
        told: &Told,
        wanted: &Chosen,
    ) -> Result<(), CliError> {
        let known = self.changes.len();
        let (action, shown) = match state.find_action(id) {
            Ok(action) => {
                let shown = self.add_changes(state, &action, told, wanted)?;
                (Some(action), shown)
            }
            // It failed, or was never recorded: there is nothing to show.
            Err(StateError::NotFound { .. }) => (None, Shown::All),
            Err(StateError::Tampered { .. }) => (None, Shown::Tampered),
            Err(error) => return Err(error.into()),
        };
        let named = told.targets.iter().any(|target| wanted.concerns(target));
        // Of what was tampered with nobody can say that it is about something else.
        let concerns = named || self.changes.len() > known || shown == Shown::Tampered;
        if !wanted.is_everything() && !concerns {
            return Ok(());
        }
        let outcome = told.outcome.clone().unwrap_or_else(|| "unknown".to_owned());
        let fine = matches!(outcome.as_str(), "ok" | "observed");
        self.total += 1;
        let failure = match shown {
            Shown::Tampered => Some(("tampered", Some(TAMPERED.to_owned()))),
            _ if !fine => Some((outcome.as_str(), told.why.clone())),
            _ => None,
        };
        self.failures
            .extend(failure.map(|(outcome, why)| FailureRecord {
                action_id: id.to_owned(),
                timestamp: told.time.clone(),
                targets: told.targets.clone(),
                outcome: outcome.to_owned(),
                why,
            }));
        if let Ok(action) = id.parse()
            && let Some(effect) = control.effect_of(&action)?
        {
            self.effects.extend(effect_record(id, told, effect));
        }
        self.clear += u64::from(shown == Shown::All && outcome != "unknown");
        self.actors.insert(told.actor.clone());
        if let Some(action) = action.as_ref().filter(|_| shown == Shown::All) {
            self.inputs.insert(action.before.to_string());
            self.outputs.insert(action.after.to_string());
        }
        self.kinds
            .insert(action.map_or_else(|| "mutation".to_owned(), |one| one.action));
        self.targets.extend(told.targets.iter().cloned());
        for tool in &told.tools {
            let (used, worked) = self.tools.entry(tool.clone()).or_default();
            *used += 1;
            *worked += u64::from(fine);
        }
        self.reasons.extend(told.reasons.iter().cloned());
        self.entries.extend(told.entries.iter().cloned());
        Ok(())
    }

    /// Adds what an action changed, as far as it can be shown.
    fn add_changes(
        &mut self,
        state: &State,
        action: &Action,
        told: &Told,
        wanted: &Chosen,
    ) -> Result<Shown, CliError> {
        let sides = state
            .find(action.before.as_str())
            .and_then(|before| Ok((before, state.find(action.after.as_str())?)));
        let (before, after) = match sides {
            Ok(sides) => sides,
            Err(StateError::NotFound { .. }) => return Ok(Shown::Nothing),
            Err(StateError::Tampered { .. }) => return Ok(Shown::Tampered),
            Err(error) => return Err(error.into()),
        };
        for change in state.changes_of(action, &before, &after)? {
            if wanted.files.cover(&change.path) == Cover::Everything {
                self.changes.push(record(&change, action, told));
            }
        }
        for part in state.part_changes_between(&before, &after)? {
            let name = part.to.subject.name();
            if !wanted.is_everything() && !wanted.parts.contains(&name) {
                continue;
            }
            self.dependencies.insert(name.clone());
            self.changes.push(ChangeRecord {
                kind: "modify",
                before: Some(format!("sha256:{}", part.from.hash)),
                after: Some(format!("sha256:{}", part.to.hash)),
                location: name,
                timestamp: action.time.to_string(),
                action_id: action.id.to_string(),
                outcome: action.outcome.clone(),
            });
        }
        Ok(Shown::All)
    }

    fn reply(self, state: &State) -> Result<AuditReply, CliError> {
        let head = state.trail().head()?;
        let now = state.now();
        let joined = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(", ");
        let mut targets = self.targets;
        targets.extend(self.changes.iter().map(|change| change.location.clone()));
        let mut anchors: Vec<String> = self
            .entries
            .iter()
            .map(|entry| format!("trail:{entry}"))
            .collect();
        anchors.push("tool:bash:safepoint trail verify".to_owned());
        Ok(AuditReply {
            audit_record: AuditRecord {
                id: format!("audit_{}_{}", now.as_micros(), head.size()),
                timestamp: now.to_string(),
                actor: joined(self.actors),
                action_type: joined(self.kinds),
                targets: targets.into_iter().collect(),
                outcome: match (self.failures.len() as u64, self.total) {
                    (0, _) => "success",
                    (failed, total) if failed == total => "failure",
                    _ => "partial",
                },
                actions: self.total,
            },
            changes: self.changes,
            failures: self.failures,
            effects: self.effects,
            tool_usage: self
                .tools
                .into_iter()
                .map(|(tool, (used, worked))| ToolUsage {
                    tool,
                    invocation_count: used,
                    success_rate: (worked as f64 / used as f64 * 1000.0).round() / 1000.0,
                })
                .collect(),
            decision_rationale: self.reasons.join("; "),
            provenance: Provenance {
                inputs: self.inputs.into_iter().collect(),
                outputs: self.outputs.into_iter().collect(),
                dependencies: self.dependencies.into_iter().collect(),
            },
            confidence: match self.total {
                0 => 1.0,
                total => (self.clear as f64 / total as f64 * 1000.0).floor() / 1000.0,
            },
            evidence_anchors: anchors,
            assumptions: vec![
                "what happened between two checkpoints without Safepoint is told as one action"
                    .to_owned(),
            ],
        })
    }
}

fn record(change: &Change, action: &Action, told: &Told) -> ChangeRecord {
    ChangeRecord {
        kind: match (&change.from, &change.to) {
            _ if told.tools.iter().any(|tool| tool == "command") => "execute",
            (None, _) => "create",
            (_, None) => "delete",
            _ => "modify",
        },
        before: change.from.as_ref().map(describe),
        after: change.to.as_ref().map(describe),
        location: path::display(&change.path),
        timestamp: action.time.to_string(),
        action_id: action.id.to_string(),
        outcome: action.outcome.clone(),
    }
}

fn describe(entry: &TreeEntry) -> String {
    match &entry.node {
        Node::File { size, content, .. } => {
            format!("blake3:{content}, {size} bytes, mode {:04o}", entry.mode)
        }
        Node::Directory(_) => format!("directory, mode {:04o}", entry.mode),
        Node::Symlink { target } => format!("link to {}", path::display(target)),
        Node::Special { kind, .. } => kind.as_str().to_owned(),
    }
}
