//! A change that is a step of a workflow: under the flags and the envelope of the workflow, and in
//! its session.

use std::collections::BTreeSet;

use safepoint_authority::{Denial, SideEffect};
use safepoint_control::pass::{Act, Passage, Proposal, ProposedChange, Stdin};
use safepoint_control::{Workflow, WorkflowStep};
use safepoint_model::Span;
use safepoint_state::mutate::Outcome;
use serde_json::Value;

use super::{Arguments, Told, change, outside, read_steps};
use crate::commands::passing::{Flags, Room};
use crate::context::Context;
use crate::error::CliError;

/// A step that changes something.
#[derive(Clone, Copy)]
pub(crate) struct ChangeStep<'a> {
    /// The flags that the workflow was run with.
    pub(crate) flags: &'a Flags,
    /// The workflow.
    pub(crate) workflow: &'a Workflow,
    /// The step.
    pub(crate) step: &'a WorkflowStep,
    /// What it does.
    pub(crate) operation: &'a Value,
}

impl ChangeStep<'_> {
    /// Makes the change.
    pub(crate) fn make(&self, context: &mut Context) -> Result<(), CliError> {
        let mut told = Told {
            target: String::new(),
            operation: String::new(),
            checkpoint: String::new(),
            anchors: Vec::new(),
            not_covered: Vec::new(),
        };
        match change(context, &self.arguments(), &mut told, Some(self)) {
            Ok((mutated, _)) if mutated.verdict.outcome() == Outcome::Pass => Ok(()),
            Ok(_) => Err(CliError::Invalid {
                message: "the change did not hold".into(),
                suggestion: "`safepoint log` shows it",
            }),
            Err(failure) => Err(failure.0),
        }
    }

    /// What would be said to it: nothing is written.
    pub(crate) fn rehearse(
        &self,
        context: &Context,
        room: &Room,
    ) -> Result<Option<Denial>, CliError> {
        let arguments = self.arguments();
        let text =
            outside::json_or_yaml(context, arguments.operation.as_deref().unwrap_or_default())?;
        let steps = read_steps(&text, &arguments)?;
        let here = outside::here(context);
        let variables = context.environment.variables();
        let change = ProposedChange {
            steps: &steps,
            check: arguments.verify.as_deref(),
            here: &here,
            variables: &variables,
        };
        let passage = room.passage();
        let act = passage.change(&change)?;
        let mut proposal = room.proposal(context, self.flags, act, Stdin::Empty)?;
        self.bind(&passage, &change, &mut proposal)?;
        Ok(passage.rehearse(&proposal)?.denial)
    }

    /// Says in a proposal which workflow it belongs to, and what that keeps to.
    pub(super) fn bind(
        &self,
        passage: &Passage<'_>,
        change: &ProposedChange<'_>,
        proposal: &mut Proposal,
    ) -> Result<(), CliError> {
        proposal.workflow = Some(self.workflow.identity());
        proposal.bounds.clone_from(&self.workflow.envelope);
        if let Some(declared) = &self.step.effects {
            let mut declared = declared.clone();
            declared.extend(effects_of_check(passage, change)?);
            proposal.declared = Some(declared);
        }
        Ok(())
    }

    fn arguments(&self) -> Arguments {
        Arguments {
            target: None,
            checkpoint: None,
            auto_checkpoint: true,
            operation: Some(self.operation.to_string()),
            input: None,
            verify: self.step.verify.clone(),
            verify_timeout: Span::from_micros(15 * 60 * 1_000_000),
            strict: false,
            keep_failed: false,
            session: None,
        }
    }
}

/// The effects of the check alone: what a step says of itself is not about that.
fn effects_of_check(
    passage: &Passage<'_>,
    change: &ProposedChange<'_>,
) -> Result<BTreeSet<SideEffect>, CliError> {
    let Some(check) = change.check else {
        return Ok(BTreeSet::new());
    };
    let alone = ProposedChange {
        steps: &[],
        check: Some(check),
        here: change.here,
        variables: change.variables,
    };
    let Act::Change { understood, .. } = passage.change(&alone)? else {
        return Ok(BTreeSet::new());
    };
    let deeds = understood.deeds.into_iter();
    let mut effects: BTreeSet<SideEffect> = deeds.flat_map(|deed| deed.effects).collect();
    effects.extend([SideEffect::Read, SideEffect::Exec]);
    Ok(effects)
}
