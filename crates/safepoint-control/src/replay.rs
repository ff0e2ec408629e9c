//! What another atlas would have said: recorded sessions, judged again.
//!
//! Each session is played from its beginning: what the agent read, asked for
//! and answered comes from the trail, the verdicts from the new atlas. An
//! answer counts where the new atlas asks the same question. Secrets are not in the
//! trail: an answer that had one may be refused here although it was good then.

use std::collections::{BTreeSet, HashMap};

use safepoint_gates::{Engine, Event, Outcome, Pinned, Request, RiskTier, Simulation};
use safepoint_model::{HoldId, Timestamp};
use safepoint_store::Flow;
use safepoint_trail::{Entry, Query, Stream, TrailError};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::session::engine;
use crate::{AtlasFile, Control, ControlError};

/// A request, and what was and would be decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The session.
    pub session_id: String,
    /// The request.
    pub request_id: String,
    /// When it was made.
    pub time: Timestamp,
    /// The action.
    pub action: String,
    /// What was decided.
    pub before: String,
    /// What would be.
    pub after: String,
    /// Why.
    pub reason: String,
}

/// What came of judging again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// How many sessions were played.
    pub sessions: usize,
    /// How many were left out, since they were under other atlases.
    pub skipped: usize,
    /// How many requests were judged.
    pub requests: usize,
    /// Those that would be judged otherwise, the oldest first.
    pub changes: Vec<Change>,
}

/// The fields of recorded events that matter here.
#[derive(Deserialize)]
struct Recorded {
    #[serde(default)]
    goal: Option<String>,
    #[serde(default)]
    principal: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    request_id: String,
    #[serde(default)]
    action_id: String,
    #[serde(default)]
    parameters: Value,
    #[serde(default)]
    risk: Option<RiskTier>,
    #[serde(default)]
    conditions: std::collections::BTreeSet<safepoint_gates::Condition>,
    #[serde(default)]
    decision: String,
    #[serde(default)]
    capability_id: String,
    #[serde(default)]
    topic: Option<String>,
    #[serde(default)]
    checkpoint_id: Option<String>,
    #[serde(default)]
    answers: Map<String, Value>,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    hold_id: Option<HoldId>,
    #[serde(default)]
    atlases: Vec<Pinned>,
}

/// Which recorded sessions are judged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Played {
    /// Those that were under an atlas with the same id.
    SameAtlas,
    /// All of them.
    All,
}

/// A request in the middle of being compared: what was asked, and what would be decided.
struct Asked {
    time: Timestamp,
    recorded: Recorded,
    after: String,
    reason: String,
}

impl Control {
    /// Judges what was asked for since `since` again, under other atlases.
    pub fn replay(
        &self,
        atlases: &[AtlasFile],
        since: Option<Timestamp>,
        played: Played,
    ) -> Result<Replay, ControlError> {
        let engine = engine(atlases.iter().map(AtlasFile::loaded).collect())?;
        let mut replay = Replay::default();
        for stream in self.streams_since(since)? {
            self.play(&engine, &stream, since, played, &mut replay)?;
        }
        Ok(replay)
    }

    /// The sessions in which something was asked for since then.
    fn streams_since(&self, since: Option<Timestamp>) -> Result<BTreeSet<Stream>, ControlError> {
        let query = Query {
            kind: Some("ActionRequested".to_owned()),
            since,
            ..Query::default()
        };
        let mut streams = BTreeSet::new();
        self.trail
            .entries(&query, |entry| -> Result<Flow, TrailError> {
                streams.insert(entry.stream);
                Ok(Flow::More)
            })?;
        Ok(streams)
    }

    fn play(
        &self,
        engine: &Engine,
        stream: &Stream,
        since: Option<Timestamp>,
        played: Played,
        replay: &mut Replay,
    ) -> Result<(), ControlError> {
        let query = Query {
            streams: vec![stream.clone()],
            ..Query::default()
        };
        let mut entries = Vec::new();
        self.trail
            .entries(&query, |entry| -> Result<Flow, TrailError> {
                entries.push(entry);
                Ok(Flow::More)
            })?;
        let mut simulation: Option<Simulation<'_>> = None;
        let mut asked: Option<Asked> = None;
        // The holds that were, and those of the simulation that stand for them.
        let mut holds: HashMap<HoldId, HoldId> = HashMap::new();
        let mut last_hold = None;
        for entry in entries {
            let body = self.trail.body(&entry)?;
            let Ok(recorded) = serde_json::from_str::<Recorded>(&body) else {
                continue;
            };
            if entry.kind.as_str() == "SessionStarted" {
                if played == Played::SameAtlas && !shares_atlas(engine, &recorded) {
                    replay.skipped += 1;
                    return Ok(());
                }
                let goal = recorded.goal.clone();
                let principal = recorded.principal.as_str();
                let mut begun = Simulation::new(engine, principal, goal, entry.time)?;
                let started = begun.step(&Event::Start);
                last_hold = started.ok().and_then(|it| it.resolution.hold_id);
                simulation = Some(begun);
                replay.sessions += 1;
                continue;
            }
            let Some(simulation) = simulation.as_mut() else {
                continue;
            };
            simulation.now = entry.time;
            let answers = entry.kind.as_str() == "CheckpointResponse";
            if let (Some(was), Some(is), false) = (&recorded.hold_id, &last_hold, answers) {
                holds.entry(was.clone()).or_insert_with(|| is.clone());
            }
            if decides(entry.kind.as_str()) {
                let same = |it: &Asked| it.recorded.request_id == recorded.request_id;
                if let Some(asked) = asked.take().filter(same)
                    && since.is_none_or(|since| asked.time >= since)
                {
                    replay.compare(stream, asked, recorded.decision);
                }
                continue;
            }
            let Some(event) = event(&entry, &recorded, &holds, simulation) else {
                continue;
            };
            let (after, reason) = match simulation.step(&event) {
                Ok(judgement) => {
                    last_hold = judgement.resolution.hold_id.clone();
                    let decision = judgement.resolution.decision.as_str();
                    (decision.to_owned(), judgement.resolution.reason)
                }
                // What is refused here changes nothing, as it did then.
                Err(refusal) => ("deny".to_owned(), refusal.to_string()),
            };
            if let Event::Request(_) = event {
                asked = Some(Asked {
                    time: entry.time,
                    recorded,
                    after,
                    reason,
                });
            }
        }
        Ok(())
    }
}

impl Replay {
    fn compare(&mut self, stream: &Stream, asked: Asked, before: String) {
        self.requests += 1;
        if before != asked.after {
            self.changes.push(Change {
                session_id: stream.to_string(),
                request_id: asked.recorded.request_id,
                time: asked.time,
                action: asked.recorded.action_id,
                before,
                after: asked.after,
                reason: asked.reason,
            });
        }
    }
}

/// Whether a session was under one of the atlases that it is judged under now.
fn shares_atlas(engine: &Engine, started: &Recorded) -> bool {
    let ids: Vec<&str> = engine.manifests().map(|it| it.atlas_id.as_str()).collect();
    let mut recorded = started.atlases.iter();
    recorded.any(|pin| ids.contains(&pin.atlas_id.as_str()))
}

/// Whether an entry tells what was decided about a request.
fn decides(kind: &str) -> bool {
    matches!(
        kind,
        "ActionAllowed" | "ActionDenied" | "ActionHeld" | "ApprovalRequired"
    )
}

/// The event that an entry tells of.
fn event(
    entry: &Entry,
    recorded: &Recorded,
    holds: &HashMap<HoldId, HoldId>,
    simulation: &Simulation<'_>,
) -> Option<Event> {
    Some(match entry.kind.as_str() {
        "InputReceived" => Event::Input {
            text: recorded.text.clone(),
        },
        "ActionRequested" => Event::Request(Request {
            action: recorded.action_id.clone(),
            parameters: recorded.parameters.clone(),
            risk: recorded.risk,
            conditions: recorded.conditions.clone(),
        }),
        "CapabilityRequested" => Event::Access {
            capability: recorded.capability_id.clone(),
        },
        "HelpRequested" => Event::Ask {
            topic: recorded.topic.clone(),
            gate: recorded.checkpoint_id.clone(),
        },
        "CheckpointResponse" => Event::Answer {
            gate: recorded.checkpoint_id.clone()?,
            hold: recorded
                .hold_id
                .as_ref()
                .and_then(|hold| holds.get(hold).cloned()),
            answers: recorded.answers.clone(),
        },
        "ActionReported" => Event::Report {
            request_id: reported(recorded, simulation)?,
            action: recorded.action_id.clone(),
            outcome: match recorded.outcome.as_str() {
                "ok" => Outcome::Ok,
                _ => Outcome::Error,
            },
            result: None,
        },
        "SessionEnded" => Event::End { abandon: true },
        _ => return None,
    })
}

/// The request that was reported, under the name it has in the simulation.
fn reported(recorded: &Recorded, simulation: &Simulation<'_>) -> Option<safepoint_model::ActionId> {
    let held = simulation
        .session
        .holds
        .iter()
        .find_map(|hold| match &hold.cause {
            safepoint_gates::Cause::Request {
                request_id, action, ..
            } if *action == recorded.action_id && hold.is_cleared() => Some(request_id.clone()),
            _ => None,
        });
    held.or_else(|| recorded.request_id.parse().ok())
}
