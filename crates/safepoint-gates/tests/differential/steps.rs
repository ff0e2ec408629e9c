//! The naive evaluator: one event after the other.

use safepoint_gates::{CheckpointTrigger, Decision, Event, Outcome as Ending};

use crate::matching::{any_fits, words_fit};
use crate::naive::{Cause, Gate, Happened, Naive, Outcome};
use crate::raise::{Moment, Raised};

impl Naive {
    /// Takes one step. The hold of an answer is given by its number.
    pub(crate) fn step(&mut self, event: &Event, hold: Option<usize>) -> Outcome {
        self.out = Outcome::new();
        self.bytes.clear();
        self.noted.clear();
        self.own = None;
        if self.has_ended() {
            return self.refuse("ended");
        }
        let decided = match event {
            Event::Start => self.start(),
            Event::Input { text } => self.input(text),
            Event::Request(request) => Ok(self.request(request)),
            Event::Access { capability } => self.access(capability),
            Event::Ask { gate, .. } => self.ask(gate.as_deref()),
            Event::Answer { gate, answers, .. } => self.answer(gate, hold, answers),
            Event::Report {
                action, outcome, ..
            } => self.report(action, *outcome),
            Event::End { abandon } => self.end(*abandon),
        };
        match decided {
            Err(refusal) => self.refuse(refusal),
            Ok(decision) => {
                self.out.decision = Some(decision);
                self.show();
                self.out.clone()
            }
        }
    }

    fn refuse(&mut self, refusal: &'static str) -> Outcome {
        let mut out = Outcome::new();
        out.refused = Some(refusal);
        out
    }

    pub(crate) fn fires(&self, gate: &Gate) -> bool {
        match &gate.def.trigger {
            CheckpointTrigger::Custom { trigger_id, .. } => {
                let extensions = &self.atlases[gate.atlas].extensions;
                let code = extensions.iter().find(|it| it.extension_id == *trigger_id);
                let code = code
                    .and_then(|it| it.cel.as_deref())
                    .or(trigger_id.strip_prefix("cel:"));
                // Whatever is neither, fails, and what fails, fires.
                code != Some("false")
            }
            _ => false,
        }
    }

    fn start(&mut self) -> Result<Decision, &'static str> {
        let gates = self.gates_where(|gate| {
            matches!(gate.def.trigger, CheckpointTrigger::SessionStart {}) || self.fires(gate)
        });
        self.give_by_themselves(&Moment::Start);
        let raised = self.raise(Cause::Start, gates);
        Ok(self.decide(&raised))
    }

    fn input(&mut self, text: &str) -> Result<Decision, &'static str> {
        let mut gates = self.gates_where(|gate| match &gate.def.trigger {
            CheckpointTrigger::Keyword {
                patterns,
                case_sensitive,
                match_mode,
            }
            | CheckpointTrigger::KeywordMatch {
                patterns,
                case_sensitive,
                match_mode,
            } => words_fit(patterns, *match_mode, *case_sensitive, text),
            _ => self.fires(gate),
        });
        gates.extend(
            (0..self.gates.len()).filter(|&gate| self.is_time(gate) && self.due(gate).is_some()),
        );
        self.give_by_themselves(&Moment::Input(text));
        let raised = self.raise(Cause::Input, gates);
        Ok(self.decide(&raised))
    }

    fn is_time(&self, gate: usize) -> bool {
        matches!(
            self.gates[gate].def.trigger,
            CheckpointTrigger::TimeInterval { .. }
        )
    }

    /// The decision about everything but requests and answers.
    fn decide(&mut self, raised: &Raised) -> Decision {
        if raised.waits {
            // What waits already may wait beside one that is shut.
            let earlier = self
                .holds
                .iter()
                .find(|hold| Some(hold.number) == raised.earlier);
            let stuck = earlier.is_some_and(|hold| {
                let mut open = hold.waits.iter().filter(|wait| !wait.passed);
                open.any(|wait| self.is_shut(wait.gate, hold.cause.action()))
            });
            if raised.hold.is_none() && stuck {
                return Decision::Deny;
            }
            self.own = raised.hold.or(raised.earlier);
            Decision::Hold
        } else if raised.shut {
            Decision::Deny
        } else {
            self.decide_by_others()
        }
    }

    pub(crate) fn decide_by_others(&mut self) -> Decision {
        let in_the_way = self.in_the_way();
        if in_the_way.iter().any(|(_, _, shut)| *shut) {
            return Decision::Deny;
        }
        let Some((hold, _, _)) = in_the_way.first() else {
            return Decision::Allow;
        };
        self.own = Some(*hold);
        Decision::Hold
    }

    fn access(&mut self, capability: &str) -> Result<Decision, &'static str> {
        let mut found = Vec::new();
        for (atlas, manifest) in self.atlases.iter().enumerate() {
            for it in &manifest.capabilities {
                let whole = format!("{}/{}", manifest.atlas_id, it.capability_id);
                if it.capability_id == capability || whole == capability {
                    found.push((atlas, it.capability_id.clone()));
                }
            }
        }
        let (atlas, id) = match found.as_slice() {
            [] => return Err("unknown capability"),
            [one] => one.clone(),
            _ => return Err("ambiguous"),
        };
        let gates = (0..self.gates.len())
            .filter(|&gate| {
                let it = &self.gates[gate];
                let ids = it.def.trigger.capabilities().unwrap_or_default();
                it.atlas == atlas && ids.contains(&id) && !self.is_passed(gate)
            })
            .collect();
        let raised = self.raise(Cause::Access, gates);
        let decision = self.decide(&raised);
        if decision == Decision::Allow && !self.is_open(atlas, &id) {
            return Ok(Decision::Deny);
        }
        Ok(decision)
    }

    fn ask(&mut self, gate: Option<&str>) -> Result<Decision, &'static str> {
        let gates = match gate {
            None => self.gates_where(|gate| {
                matches!(gate.def.trigger, CheckpointTrigger::ExplicitRequest {})
            }),
            Some(name) => {
                let gate = self.find_gate(name)?;
                match self.gates[gate].def.trigger {
                    CheckpointTrigger::ExplicitRequest {} | CheckpointTrigger::Interactive {}
                        if self.is_passed(gate) =>
                    {
                        Vec::new()
                    }
                    CheckpointTrigger::ExplicitRequest {} | CheckpointTrigger::Interactive {} => {
                        vec![gate]
                    }
                    _ => return Err("not raised by asking"),
                }
            }
        };
        let raised = self.raise(Cause::Ask, gates);
        Ok(self.decide(&raised))
    }

    /// The gate with this name.
    pub(crate) fn find_gate(&self, name: &str) -> Result<usize, &'static str> {
        match self.gates_called(name).as_slice() {
            [] => Err("unknown gate"),
            [gate] => Ok(*gate),
            _ => Err("ambiguous"),
        }
    }

    pub(crate) fn gates_called(&self, name: &str) -> Vec<usize> {
        self.gates_where(|gate| {
            let whole = format!(
                "{}/{}",
                self.atlases[gate.atlas].atlas_id, gate.def.checkpoint_id
            );
            gate.def.checkpoint_id == name || whole == name
        })
    }

    fn report(&mut self, action: &str, outcome: Ending) -> Result<Decision, &'static str> {
        // A held request that may go on, has gone on.
        let reported = self.reported;
        self.holds.retain(|hold| {
            let it =
                matches!(hold.cause, Cause::Request { number, .. } if Some(number) == reported);
            !(it && hold.waits.iter().all(|wait| wait.passed))
        });
        let gates = self.gates_where(|gate| match &gate.def.trigger {
            CheckpointTrigger::ActionPost { patterns } => any_fits(patterns, action),
            CheckpointTrigger::ErrorOccurred {} => outcome == Ending::Error,
            _ => false,
        });
        let cause = Cause::Report {
            action: action.to_owned(),
        };
        let raised = self.raise(cause, gates);
        Ok(self.decide(&raised))
    }

    fn end(&mut self, abandon: bool) -> Result<Decision, &'static str> {
        let asked = self
            .holds
            .iter()
            .find(|hold| hold.cause == Cause::End)
            .cloned();
        let mut decision = Decision::Allow;
        if let Some(hold) = asked {
            self.own = Some(hold.number);
            if hold.waits.iter().any(|wait| !wait.passed) {
                decision = Decision::Hold;
            }
        } else {
            let gates = self
                .gates_where(|gate| matches!(gate.def.trigger, CheckpointTrigger::SessionEnd {}));
            let raised = self.raise(Cause::End, gates);
            self.own = raised.hold;
            if raised.waits {
                decision = Decision::Hold;
            } else if raised.shut {
                decision = Decision::Deny;
            }
        }
        if decision != Decision::Allow && !abandon {
            return Ok(decision);
        }
        for hold in std::mem::take(&mut self.holds) {
            for _ in hold.waits.iter().filter(|wait| !wait.passed) {
                self.out.records.push("CheckpointBlocked");
            }
        }
        self.history.push(Happened::Ended);
        Ok(Decision::Allow)
    }
}
