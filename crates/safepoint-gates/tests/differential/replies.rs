//! The naive evaluator: answers, and what the agent is shown.

use std::collections::BTreeSet;

use safepoint_gates::{Decision, GateStatus, GuidanceFormat, InvalidAnswerAction};
use serde_json::{Map, Value};

use crate::matching::{Thought, think, trigger_patterns};
use crate::naive::{Cause, Happened, Naive};

impl Naive {
    pub(crate) fn answer(
        &mut self,
        name: &str,
        hold: Option<usize>,
        answers: &Map<String, Value>,
    ) -> Result<Decision, &'static str> {
        let called = self.gates_called(name);
        if called.is_empty() {
            return Err("unknown gate");
        }
        let mut targets = Vec::new();
        for (at, it) in self.holds.iter().enumerate() {
            for (place, wait) in it.waits.iter().enumerate() {
                let shut = self.is_shut(wait.gate, it.cause.action());
                let meant = hold.is_none_or(|hold| hold == it.number);
                if called.contains(&wait.gate) && meant && !wait.passed && !shut {
                    targets.push((at, place, wait.gate));
                }
            }
        }
        let &[(_, _, gate), ..] = targets.as_slice() else {
            return Err("not waiting");
        };
        if targets.iter().any(|(_, _, other)| *other != gate) {
            return Err("ambiguous");
        }
        if targets.len() > 1 && !self.lasts(gate) {
            return Err("several holds");
        }
        let first = targets[0];
        // Where once is enough, it counts in all holds.
        let mut targets = vec![(first.0, first.1)];
        for (at, it) in self.holds.iter().enumerate() {
            for (place, wait) in it.waits.iter().enumerate() {
                let other = (at, place) != (first.0, first.1);
                if self.lasts(gate) && wait.gate == gate && other {
                    targets.push((at, place));
                }
            }
        }
        let (passes, shuts) = self.weigh(gate, &targets, answers);
        let cause = self.holds[first.0].cause.clone();
        let number = self.holds[first.0].number;
        self.note(gate, GateStatus::Pending);
        if passes {
            for (at, place) in targets {
                self.holds[at].waits[place].passed = true;
            }
            self.note(gate, GateStatus::Passed);
            self.pass(gate);
        } else {
            self.out.records.push("CheckpointBlocked");
        }
        if shuts {
            self.note(gate, GateStatus::Blocked);
            self.shut(gate, &cause);
        }
        let still = self
            .holds
            .iter()
            .find(|hold| hold.number == number)
            .cloned();
        self.holds.retain(|hold| {
            matches!(hold.cause, Cause::Request { .. } | Cause::End)
                || hold.waits.iter().any(|wait| !wait.passed)
        });
        let waits = still
            .as_ref()
            .is_some_and(|it| it.waits.iter().any(|wait| !wait.passed));
        let stuck = still.as_ref().is_some_and(|it| {
            let mut open = it.waits.iter().filter(|wait| !wait.passed);
            open.any(|wait| self.is_shut(wait.gate, it.cause.action()))
        });
        let Some(Cause::Request { action, risk, .. }) = still.map(|hold| hold.cause) else {
            if shuts {
                return Ok(Decision::Deny);
            }
            if waits && stuck {
                return Ok(Decision::Deny);
            }
            if waits {
                self.own = Some(number);
                return Ok(Decision::Hold);
            }
            return Ok(self.decide_by_others());
        };
        let decision = if self.denied_by_gates(&action)
            || self.denied_by_policies(&action, risk)
            || self.is_shut_before(&action, risk)
            || (waits && stuck)
        {
            Decision::Deny
        } else if waits {
            self.own = Some(number);
            Decision::Hold
        } else {
            match self.decide_by_others() {
                Decision::Allow => self.last_word(&action, risk),
                other => other,
            }
        };
        self.record_action(decision);
        Ok(decision)
    }

    /// Reads the answers. Whether the gate is passed by them, and whether it is shut.
    fn weigh(
        &mut self,
        gate: usize,
        targets: &[(usize, usize)],
        answers: &Map<String, Value>,
    ) -> (bool, bool) {
        let questions = self.gates[gate].def.questions.clone();
        let first = self.holds[targets[0].0].waits[targets[0].1].clone();
        let (mut answered, mut failed) = (first.answered, first.failed);
        let mut wrong = Vec::new();
        let mut valid = true;
        let mut shuts = false;
        let mut no = false;
        for question in &questions {
            let id = &question.question_id;
            let Some(answer) = answers.get(id).filter(|answer| !answer.is_null()) else {
                continue;
            };
            answered.retain(|it| it != id);
            match think(question, answer) {
                Thought::Passes => answered.push(id.clone()),
                Thought::No => no = true,
                Thought::Bad(rules) => {
                    wrong.extend(rules.into_iter().map(|rule| (id.clone(), rule.to_owned())));
                    match question.on_invalid {
                        InvalidAnswerAction::WarnAndContinue
                        | InvalidAnswerAction::LogAndContinue => {
                            answered.push(id.clone());
                        }
                        kind => {
                            valid = false;
                            failed.push(id.clone());
                            let times = failed.iter().filter(|it| *it == id).count();
                            let most = question.max_attempts.unwrap_or(3) as usize;
                            shuts |= kind == InvalidAnswerAction::Block || times >= most;
                        }
                    }
                }
            }
        }
        for question in questions.iter().filter(|it| it.required) {
            let id = &question.question_id;
            let given = answers.get(id).is_some_and(|answer| !answer.is_null());
            if !given && !answered.contains(id) {
                valid = false;
                wrong.push((id.clone(), "required".to_owned()));
            }
        }
        for id in answers.keys() {
            if !questions.iter().any(|it| it.question_id == *id) {
                valid = false;
                wrong.push((id.clone(), "unknown_question".to_owned()));
            }
        }
        for &(at, place) in targets {
            self.holds[at].waits[place].answered.clone_from(&answered);
            self.holds[at].waits[place].failed.clone_from(&failed);
        }
        let action = self.holds[targets[0].0].cause.action().map(str::to_owned);
        for hold in &mut self.holds {
            if hold.cause.action() == action.as_deref() {
                for wait in hold.waits.iter_mut().filter(|wait| wait.gate == gate) {
                    wait.failed.clone_from(&failed);
                }
            }
        }
        self.out.records.push("CheckpointResponse");
        wrong.sort();
        self.out.validation = Some((valid, wrong));
        let all = questions
            .iter()
            .filter(|it| it.required)
            .all(|it| answered.contains(&it.question_id));
        (valid && !no && all && !shuts, shuts)
    }

    fn shut(&mut self, gate: usize, cause: &Cause) {
        let action = cause.action().filter(|_| !self.lasts(gate));
        self.history
            .push(Happened::Shut(gate, action.map(str::to_owned)));
        // What only waited for it is over; what else everything waits for still waits.
        let mut holds = std::mem::take(&mut self.holds);
        for hold in &mut holds {
            let over = hold.waits.iter().any(|wait| {
                !wait.everything && !wait.passed && self.is_shut(wait.gate, hold.cause.action())
            });
            if over {
                hold.waits.retain(|wait| wait.everything && !wait.passed);
            }
        }
        holds.retain(|hold| !hold.waits.is_empty());
        self.holds = holds;
    }

    /// Fills in how things stand.
    pub(crate) fn show(&mut self) {
        self.out.ended = self.has_ended();
        self.out.hold = self.out.decision == Some(Decision::Hold);
        let mut waiting = Vec::new();
        for hold in &self.holds {
            for wait in hold.waits.iter().filter(|wait| !wait.passed) {
                let here = wait.everything || self.own == Some(hold.number);
                let known = waiting.iter().any(|(gate, _, _)| *gate == wait.gate);
                if here && !known {
                    let shut = self.is_shut(wait.gate, hold.cause.action());
                    waiting.push((wait.gate, wait.clone(), shut));
                }
            }
        }
        waiting.sort_by_key(|(gate, _, _)| self.order(*gate));
        for (gate, wait, shut) in &waiting {
            let status = if *shut {
                GateStatus::Blocked
            } else {
                GateStatus::Pending
            };
            self.note(*gate, status);
            let gate = &self.gates[*gate];
            for question in gate.def.questions.iter().filter(|_| !shut) {
                if !wait.answered.contains(&question.question_id) {
                    let both = (gate.shown.clone(), question.question_id.clone());
                    self.out.questions.push(both);
                }
            }
        }
        let mut noted = std::mem::take(&mut self.noted);
        noted.sort_by_key(|(gate, _)| self.order(*gate));
        let shown = noted
            .into_iter()
            .map(|(gate, status)| (self.gates[gate].shown.clone(), status));
        self.out.checkpoints = shown.collect();
        if !self.out.ended {
            let mut guided = self.guided();
            guided.sort_by_key(|&gate| {
                let block = self.gates[gate].def.guidance.as_ref();
                block.map(|it| (it.format != GuidanceFormat::SystemInstruction, -it.priority))
            });
            self.out.guidance = guided
                .iter()
                .map(|&gate| self.gates[gate].shown.clone())
                .collect();
        }
        for (atlas, manifest) in self.atlases.iter().enumerate() {
            for it in &manifest.capabilities {
                let shown = self.show_capability(atlas, &it.capability_id);
                if self.is_open(atlas, &it.capability_id) {
                    self.out.unlocked.push(shown);
                } else {
                    self.out.locked.push(shown);
                }
            }
        }
        self.out.unlocked.sort();
        self.out.locked.sort();
        for action in self.named() {
            let risk = self.risk(&action, None);
            let may = !self.out.ended
                && self.in_the_way().is_empty()
                && !self.denied_by_policies(&action, risk)
                && self.last_word(&action, risk) == Decision::Allow;
            if may {
                self.out.allowed.push(action);
            } else {
                self.out.denied.push(action);
            }
        }
    }

    /// All actions that atlases name.
    fn named(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for atlas in &self.atlases {
            names.extend(atlas.actions.iter().map(|it| it.action_id.clone()));
            names.extend(atlas.capabilities.iter().flat_map(|it| it.actions.clone()));
            names.extend(atlas.policies.iter().flat_map(|it| it.actions.clone()));
        }
        for gate in &self.gates {
            names.extend(trigger_patterns(&gate.def.trigger).iter().cloned());
            names.extend(gate.def.allow_actions.iter().cloned());
            names.extend(gate.def.deny_actions.iter().cloned());
        }
        names.retain(|name| !name.contains('*'));
        names
    }
}
