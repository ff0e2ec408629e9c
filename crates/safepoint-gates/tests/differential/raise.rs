//! The naive evaluator: gates are raised, passed, and bring what they bring.

use safepoint_gates::{
    CheckpointMode, CheckpointTrigger, ContextBlock, GateStatus, InjectMode, MatchMode, RiskTier,
};

use crate::matching::{any_fits, words_fit};
use crate::naive::{Cause, Happened, Hold, Naive, Wait};

/// What came of raising gates.
#[derive(Default)]
pub(crate) struct Raised {
    /// The hold that came of it.
    pub(crate) hold: Option<usize>,
    /// The hold in which one of them has been waiting already.
    pub(crate) earlier: Option<usize>,
    pub(crate) waits: bool,
    pub(crate) shut: bool,
}

impl Naive {
    pub(crate) fn raise(&mut self, cause: Cause, mut gates: Vec<usize>) -> Raised {
        gates.sort_by_key(|&gate| self.order(gate));
        self.leave_out(&mut gates);
        let mut raised = Raised::default();
        let mut waits = Vec::new();
        for gate in gates {
            self.out.records.push("CheckpointTriggered");
            if let Some(interval) = self.due(gate) {
                self.history.push(Happened::Raised(gate, interval));
            }
            let status = if self.is_shut(gate, cause.action()) {
                raised.shut = true;
                self.out.records.push("CheckpointBlocked");
                GateStatus::Blocked
            } else if self.gates[gate].def.mode == CheckpointMode::Observational {
                GateStatus::Recorded
            } else if self.asks(gate) {
                let once = matches!(
                    cause,
                    Cause::Start | Cause::Input | Cause::Ask | Cause::Report { .. }
                );
                match self.already_waits(gate).filter(|_| once) {
                    None => {
                        raised.waits = true;
                        waits.push(self.wait(gate, &cause));
                    }
                    Some((_, true)) => raised.shut = true,
                    Some((hold, false)) => {
                        raised.waits = true;
                        raised.earlier = raised.earlier.min(Some(hold)).or(Some(hold));
                    }
                }
                GateStatus::Pending
            } else {
                self.pass(gate);
                GateStatus::Passed
            };
            self.note(gate, status);
        }
        if raised.shut && matches!(cause, Cause::Request { .. }) {
            waits.retain(|wait| wait.everything);
        }
        for _ in &waits {
            self.out.records.push("CheckpointBlocked");
        }
        if !waits.is_empty() {
            self.next_hold += 1;
            raised.hold = Some(self.next_hold);
            self.holds.push(Hold {
                number: self.next_hold,
                cause,
                waits,
            });
        }
        raised
    }

    fn wait(&self, gate: usize, cause: &Cause) -> Wait {
        let interval = matches!(
            self.gates[gate].def.trigger,
            CheckpointTrigger::TimeInterval { .. } | CheckpointTrigger::CountInterval { .. }
        );
        let everything =
            interval || matches!(cause, Cause::Start | Cause::Input | Cause::Report { .. });
        Wait {
            gate,
            everything,
            passed: false,
            answered: Vec::new(),
            failed: self.failed_before(gate, cause),
        }
    }

    /// Attempts count for all holds of the gate and the action together.
    fn failed_before(&self, gate: usize, cause: &Cause) -> Vec<String> {
        let together = |hold: &&Hold| self.lasts(gate) || hold.cause.action() == cause.action();
        let holds = self.holds.iter().filter(together);
        let mut waits = holds.flat_map(|hold| &hold.waits);
        let wait = waits.find(|wait| wait.gate == gate);
        wait.map(|wait| wait.failed.clone()).unwrap_or_default()
    }

    /// The hold in which a gate waits already, and whether it is shut there.
    fn already_waits(&self, gate: usize) -> Option<(usize, bool)> {
        let mut found = Vec::new();
        for hold in &self.holds {
            for wait in &hold.waits {
                if wait.gate == gate && !wait.passed && (wait.everything || self.lasts(gate)) {
                    found.push((hold.number, self.is_shut(gate, hold.cause.action())));
                }
            }
        }
        let open = found.iter().find(|(_, shut)| !shut);
        open.or(found.first()).copied()
    }

    /// Notes how a gate stands.
    pub(crate) fn note(&mut self, gate: usize, status: GateStatus) {
        self.noted.retain(|(it, _)| *it != gate);
        self.noted.push((gate, status));
    }

    /// The budget: advisory gates first, then observational ones, the last ones first.
    fn leave_out(&mut self, gates: &mut Vec<usize>) {
        for atlas in 0..self.atlases.len() {
            let budget = self.atlases[atlas].checkpoint_config.as_ref();
            let budget = budget.and_then(|config| config.budget);
            let Some(most) = budget.and_then(|it| it.max_checkpoints_per_input) else {
                continue;
            };
            for mode in [CheckpointMode::Advisory, CheckpointMode::Observational] {
                loop {
                    let own = gates.iter().filter(|&&it| self.gates[it].atlas == atlas);
                    if own.count() as u64 <= most {
                        break;
                    }
                    let last = gates.iter().rposition(|&it| {
                        self.gates[it].atlas == atlas && self.gates[it].def.mode == mode
                    });
                    let Some(last) = last else { break };
                    let gate = gates.remove(last);
                    self.out
                        .dropped
                        .push((self.gates[gate].shown.clone(), None));
                }
            }
        }
    }

    /// A gate is passed, and brings what it brings.
    pub(crate) fn pass(&mut self, gate: usize) {
        self.out.records.push("CheckpointPassed");
        if self.lasts(gate) {
            self.history.push(Happened::Passed(gate));
        }
        let atlas = self.gates[gate].atlas;
        let def = self.gates[gate].def.clone();
        for id in &def.inject_contexts {
            let blocks = &self.atlases[atlas].context_blocks;
            if let Some(block) = blocks.iter().find(|it| it.context_id == *id).cloned() {
                self.give(atlas, &block, Some(gate));
            }
        }
        for other in self.guided() {
            let block = self.gates[other].def.guidance.as_ref();
            let until = block.and_then(|it| it.expires_after.as_deref());
            if self.gates[other].atlas == atlas && until == Some(def.checkpoint_id.as_str()) {
                self.history.push(Happened::Unguided(other));
            }
        }
        if let Some(guidance) = &def.guidance {
            for other in self.guided() {
                if !guidance.append || other == gate {
                    self.history.push(Happened::Unguided(other));
                }
            }
            self.history.push(Happened::Guided(gate));
        }
        for id in def.unlock_capabilities {
            self.history.push(Happened::Unlocked(atlas, id));
        }
        for id in def.lock_capabilities {
            self.history.push(Happened::Locked(atlas, id));
        }
        for pattern in def.allow_actions {
            self.history.push(Happened::Allowed(atlas, pattern));
        }
        for pattern in def.deny_actions {
            self.history.push(Happened::Denied(pattern));
        }
    }

    /// The gates whose guidance is in force, the oldest first.
    pub(crate) fn guided(&self) -> Vec<usize> {
        let mut gates = Vec::new();
        for happened in &self.history {
            match happened {
                Happened::Guided(gate) => gates.push(*gate),
                Happened::Unguided(gate) => gates.retain(|it| it != gate),
                _ => {}
            }
        }
        gates
    }

    /// Gives a context, unless it was given before or the budget forbids it.
    fn give(&mut self, atlas: usize, block: &ContextBlock, gate: Option<usize>) {
        let given = self.history.iter().any(|happened| {
            matches!(happened, Happened::Given(of, id) if *of == atlas && *id == block.context_id)
        });
        if given && block.inject_mode != InjectMode::EveryTime {
            return;
        }
        let budget = self.atlases[atlas].checkpoint_config.as_ref();
        let budget = budget.and_then(|config| config.budget);
        let most = budget.and_then(|it| it.max_context_injection_size);
        let never_left_out =
            gate.is_some_and(|gate| self.gates[gate].def.mode == CheckpointMode::Blocking);
        let so_far: usize = self
            .bytes
            .iter()
            .filter(|it| it.0 == atlas)
            .map(|it| it.1)
            .sum();
        let size = block.content.len();
        let shown = self.show_context(atlas, &block.context_id);
        if most.is_some_and(|most| (so_far + size) as u64 > most) && !never_left_out {
            let gate = gate.map(|gate| self.gates[gate].shown.clone());
            self.out
                .dropped
                .push((gate.unwrap_or_default(), Some(shown)));
            return;
        }
        self.bytes.push((atlas, size));
        self.history
            .push(Happened::Given(atlas, block.context_id.clone()));
        self.out.contexts.push(shown);
    }

    /// Gives the contexts that nobody has to name.
    pub(crate) fn give_by_themselves(&mut self, moment: &Moment<'_>) {
        let mut blocks = Vec::new();
        for (atlas, manifest) in self.atlases.iter().enumerate() {
            blocks.extend(
                manifest
                    .context_blocks
                    .iter()
                    .map(|block| (atlas, block.clone())),
            );
        }
        blocks.sort_by_key(|(_, block)| -block.priority);
        {
            for (atlas, block) in blocks {
                let wanted = match (block.inject_mode, moment) {
                    (InjectMode::Always, Moment::Start) => true,
                    (InjectMode::OnMatch, Moment::Input(text)) => {
                        words_fit(&block.keywords, MatchMode::Any, false, text)
                    }
                    (InjectMode::OnMatch, Moment::Request(action, _)) => {
                        any_fits(&block.actions, action)
                    }
                    (InjectMode::RiskBased, Moment::Request(_, risk)) => {
                        block.min_tier.is_some_and(|least| *risk >= least)
                    }
                    _ => false,
                };
                if wanted {
                    self.give(atlas, &block, None);
                }
            }
        }
    }
}

/// When contexts come by themselves.
pub(crate) enum Moment<'a> {
    Start,
    Input(&'a str),
    Request(&'a str, RiskTier),
}
