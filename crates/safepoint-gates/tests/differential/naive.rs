//! An evaluator that is too simple to be wrong: all that ever happened is kept
//! in one list, and every question is answered by reading it from the start.
//!
//! It is written from `docs/gates.md`, not from the engine, and uses nothing of
//! the crate but its data types.

use safepoint_gates::{
    AtlasManifest, CheckpointMode, CheckpointTrigger, Decision, GateStatus, RiskTier,
    StewardCheckpointDef,
};
use serde_json::Value;

use crate::matching::{any_fits, fits, trigger_patterns};
use crate::short::short_gates;

/// What comes out of one step: only what is compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) refused: Option<&'static str>,
    pub(crate) decision: Option<Decision>,
    pub(crate) hold: bool,
    pub(crate) checkpoints: Vec<(String, GateStatus)>,
    pub(crate) questions: Vec<(String, String)>,
    pub(crate) contexts: Vec<String>,
    pub(crate) guidance: Vec<String>,
    pub(crate) unlocked: Vec<String>,
    pub(crate) locked: Vec<String>,
    pub(crate) allowed: Vec<String>,
    pub(crate) denied: Vec<String>,
    pub(crate) dropped: Vec<(String, Option<String>)>,
    pub(crate) validation: Option<(bool, Vec<(String, String)>)>,
    pub(crate) records: Vec<&'static str>,
    pub(crate) ended: bool,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) enum Happened {
    Counted,
    /// A time gate or a count gate was raised in this interval.
    Raised(usize, u64),
    /// A gate was passed for the session.
    Passed(usize),
    Shut(usize, Option<String>),
    Unlocked(usize, String),
    Locked(usize, String),
    Allowed(usize, String),
    Denied(String),
    Given(usize, String),
    Guided(usize),
    Unguided(usize),
    /// A limit was used at this second.
    Used(String, u64),
    Ended,
}

/// What raised gates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cause {
    Start,
    Input,
    Request {
        number: usize,
        action: String,
        parameters: Value,
        risk: RiskTier,
    },
    Access,
    Ask,
    Report {
        action: String,
    },
    End,
}

impl Cause {
    pub(crate) fn action(&self) -> Option<&str> {
        match self {
            Self::Request { action, .. } | Self::Report { action } => Some(action),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) number: usize,
    pub(crate) cause: Cause,
    pub(crate) waits: Vec<Wait>,
}

#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) gate: usize,
    pub(crate) everything: bool,
    pub(crate) passed: bool,
    pub(crate) answered: Vec<String>,
    /// The questions that were answered badly, once for each time.
    pub(crate) failed: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) atlas: usize,
    pub(crate) shown: String,
    pub(crate) def: StewardCheckpointDef,
}

pub(crate) struct Naive {
    pub(crate) atlases: Vec<AtlasManifest>,
    pub(crate) gates: Vec<Gate>,
    pub(crate) history: Vec<Happened>,
    pub(crate) holds: Vec<Hold>,
    pub(crate) now: u64,
    pub(crate) next_hold: usize,
    pub(crate) next_request: usize,
    /// The request that this step is about.
    pub(crate) request_number: Option<usize>,
    /// The request that a report is about.
    pub(crate) reported: Option<usize>,
    /// Bytes of context in this step, by atlas.
    pub(crate) bytes: Vec<(usize, usize)>,
    /// The gates of this step, and how they stand.
    pub(crate) noted: Vec<(usize, GateStatus)>,
    /// The hold of this step.
    pub(crate) own: Option<usize>,
    pub(crate) out: Outcome,
}

impl Naive {
    pub(crate) fn new(atlases: Vec<AtlasManifest>) -> Self {
        let mut all = Vec::new();
        for (number, atlas) in atlases.iter().enumerate() {
            let written = atlas.checkpoints.iter().cloned();
            for def in written.chain(short_gates(atlas).into_iter().filter(|it| it.enabled)) {
                all.push((number, def));
            }
        }
        let gates = all
            .iter()
            .filter(|(_, def)| def.enabled)
            .map(|(atlas, def)| {
                let twice = all.iter().any(|(other, theirs)| {
                    other != atlas && theirs.checkpoint_id == def.checkpoint_id
                });
                Gate {
                    atlas: *atlas,
                    shown: shown(&atlases[*atlas].atlas_id, &def.checkpoint_id, twice),
                    def: def.clone(),
                }
            })
            .collect();
        Self {
            atlases,
            gates,
            history: Vec::new(),
            holds: Vec::new(),
            now: 0,
            next_hold: 0,
            next_request: 0,
            request_number: None,
            reported: None,
            bytes: Vec::new(),
            noted: Vec::new(),
            own: None,
            out: Outcome::new(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.history
            .iter()
            .any(|happened| matches!(happened, Happened::Ended))
    }

    /// Whether a pass of the gate lasts for the session.
    pub(crate) fn lasts(&self, gate: usize) -> bool {
        matches!(
            self.gates[gate].def.trigger,
            CheckpointTrigger::SessionStart {}
                | CheckpointTrigger::Interactive {}
                | CheckpointTrigger::CapabilityAccess { .. }
                | CheckpointTrigger::CapabilityGate { .. }
        )
    }

    pub(crate) fn is_passed(&self, gate: usize) -> bool {
        self.history
            .iter()
            .any(|happened| matches!(happened, Happened::Passed(it) if *it == gate))
    }

    pub(crate) fn is_shut(&self, gate: usize, action: Option<&str>) -> bool {
        self.history.iter().any(|happened| match happened {
            Happened::Shut(it, None) => *it == gate,
            Happened::Shut(it, Some(which)) => *it == gate && Some(which.as_str()) == action,
            _ => false,
        })
    }

    /// The gates everything waits for: hold, gate, and whether it is shut.
    pub(crate) fn in_the_way(&self) -> Vec<(usize, usize, bool)> {
        let mut found = Vec::new();
        for hold in &self.holds {
            for wait in &hold.waits {
                if wait.everything && !wait.passed {
                    let shut = self.is_shut(wait.gate, hold.cause.action());
                    found.push((hold.number, wait.gate, shut));
                }
            }
        }
        found
    }

    pub(crate) fn show_capability(&self, atlas: usize, id: &str) -> String {
        let twice = self.atlases.iter().enumerate().any(|(other, theirs)| {
            other != atlas && theirs.capabilities.iter().any(|it| it.capability_id == id)
        });
        shown(&self.atlases[atlas].atlas_id, id, twice)
    }

    pub(crate) fn show_context(&self, atlas: usize, id: &str) -> String {
        let twice = self.atlases.iter().enumerate().any(|(other, theirs)| {
            other != atlas && theirs.context_blocks.iter().any(|it| it.context_id == id)
        });
        shown(&self.atlases[atlas].atlas_id, id, twice)
    }

    pub(crate) fn is_open(&self, atlas: usize, capability: &str) -> bool {
        let mut open = !self.gates.iter().any(|gate| {
            gate.atlas == atlas
                && gate
                    .def
                    .unlock_capabilities
                    .iter()
                    .any(|id| id == capability)
        });
        for happened in &self.history {
            match happened {
                Happened::Unlocked(of, id) if *of == atlas && id == capability => open = true,
                Happened::Locked(of, id) if *of == atlas && id == capability => open = false,
                _ => {}
            }
        }
        open
    }

    /// Whether an atlas knows the action.
    pub(crate) fn knows(&self, atlas: usize, action: &str) -> bool {
        let atlas_number = atlas;
        let atlas = &self.atlases[atlas];
        let names = |patterns: &[String]| patterns.iter().any(|pattern| pattern == action);
        atlas.actions.iter().any(|it| it.action_id == action)
            || atlas
                .capabilities
                .iter()
                .any(|it| any_fits(&it.actions, action))
            || atlas.policies.iter().any(|it| {
                use safepoint_gates::PolicyType::{Deny, RateLimit, Risk};
                match it.policy_type {
                    Deny | RateLimit | Risk => names(&it.actions),
                    _ => any_fits(&it.actions, action),
                }
            })
            || self
                .gates
                .iter()
                .filter(|gate| gate.atlas == atlas_number)
                .any(|gate| {
                    names(trigger_patterns(&gate.def.trigger))
                        || names(&gate.def.deny_actions)
                        || any_fits(&gate.def.allow_actions, action)
                })
    }

    pub(crate) fn risk(&self, action: &str, stated: Option<RiskTier>) -> RiskTier {
        let given = self.atlases.iter().flat_map(|atlas| {
            atlas
                .actions
                .iter()
                .filter(|it| it.action_id == action)
                .map(|it| it.risk_tier)
        });
        given.chain(stated).max().unwrap_or(RiskTier::Low)
    }

    /// Gives the gates of a kind.
    pub(crate) fn gates_where(&self, wanted: impl Fn(&Gate) -> bool) -> Vec<usize> {
        (0..self.gates.len())
            .filter(|&gate| wanted(&self.gates[gate]))
            .collect()
    }

    /// The time gates and count gates that are due, with their interval.
    pub(crate) fn due(&self, gate: usize) -> Option<u64> {
        let interval = match self.gates[gate].def.trigger {
            CheckpointTrigger::TimeInterval { seconds } => self.now / seconds,
            CheckpointTrigger::CountInterval { actions } => {
                let counted = self
                    .history
                    .iter()
                    .filter(|happened| matches!(happened, Happened::Counted));
                counted.count() as u64 / actions
            }
            _ => return None,
        };
        let last = self
            .history
            .iter()
            .rev()
            .find_map(|happened| match happened {
                Happened::Raised(it, interval) if *it == gate => Some(*interval),
                _ => None,
            });
        (interval > last.unwrap_or(0)).then_some(interval)
    }

    /// Whether gates that were passed deny the action.
    pub(crate) fn denied_by_gates(&self, action: &str) -> bool {
        self.history
            .iter()
            .any(|happened| matches!(happened, Happened::Denied(pattern) if fits(pattern, action)))
    }

    /// What comes first: by priority, then as written.
    pub(crate) fn order(&self, gate: usize) -> (i64, usize) {
        (-self.gates[gate].def.effective_priority(), gate)
    }

    pub(crate) fn required(&self, gate: usize) -> bool {
        self.gates[gate].def.questions.iter().any(|it| it.required)
    }

    pub(crate) fn asks(&self, gate: usize) -> bool {
        self.gates[gate].def.mode == CheckpointMode::Blocking && self.required(gate)
    }
}

impl Outcome {
    pub(crate) fn new() -> Self {
        Self {
            refused: None,
            decision: None,
            hold: false,
            checkpoints: Vec::new(),
            questions: Vec::new(),
            contexts: Vec::new(),
            guidance: Vec::new(),
            unlocked: Vec::new(),
            locked: Vec::new(),
            allowed: Vec::new(),
            denied: Vec::new(),
            dropped: Vec::new(),
            validation: None,
            records: Vec::new(),
            ended: false,
        }
    }
}

impl Outcome {
    /// Everything in it, by name.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, String)> {
        [
            ("refused", format!("{:?}", self.refused)),
            ("decision", format!("{:?}", self.decision)),
            ("hold", format!("{:?}", self.hold)),
            ("checkpoints", format!("{:?}", self.checkpoints)),
            ("questions", format!("{:?}", self.questions)),
            ("contexts", format!("{:?}", self.contexts)),
            ("guidance", format!("{:?}", self.guidance)),
            ("unlocked", format!("{:?}", self.unlocked)),
            ("locked", format!("{:?}", self.locked)),
            ("allowed", format!("{:?}", self.allowed)),
            ("denied", format!("{:?}", self.denied)),
            ("dropped", format!("{:?}", self.dropped)),
            ("validation", format!("{:?}", self.validation)),
            ("records", format!("{:?}", self.records)),
            ("ended", format!("{:?}", self.ended)),
        ]
        .into_iter()
    }
}

fn shown(atlas: &str, id: &str, twice: bool) -> String {
    if twice {
        format!("{atlas}/{id}")
    } else {
        id.to_owned()
    }
}
