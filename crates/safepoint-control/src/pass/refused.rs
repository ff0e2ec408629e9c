//! What is denied whatever anybody approved: by the rules, and by what was declared.

use safepoint_authority::{Denial, DenialCode};
use safepoint_gates::{Decision, Judgement, QuestionNote};
use safepoint_model::ActionId;
use serde_json::Value;

use super::Bench;
use super::asked::Wants;
use super::needs::basis;
use super::see::Form;
use super::settle::denial;

impl Bench<'_> {
    /// What is denied whatever anybody approved.
    pub(super) fn refused(
        &self,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        judgement: &Judgement,
    ) -> Option<Denial> {
        let said = &judgement.resolution;
        if form.forbidden {
            return Some(Denial {
                next: "leave Safepoint's own files, settings and commands alone, and do the task another way"
                    .to_owned(),
                ..denial(DenialCode::ControlForbidden, form, action)
            });
        }
        let undeclared = wants.declared.as_ref().map(|declared| {
            let mut extra = form.canonical.side_effects.difference(declared);
            extra.next().copied()
        });
        if let Some(Some(effect)) = undeclared {
            return Some(Denial {
                reason: format!(
                    "it has the effect `{}`, which was not declared",
                    effect.as_str()
                ),
                next: "declare what it does, or do less".to_owned(),
                ..denial(DenialCode::ClassUndeclared, form, action)
            });
        }
        let other = wants.said.as_ref().and_then(|said| {
            let mut actions = form.canonical.actions.iter();
            actions
                .find(|action| *action != said)
                .map(|action| (said, action))
        });
        if let Some((said, action_name)) = other {
            return Some(Denial {
                reason: format!("it says that it is `{said}`, and it is `{action_name}` too"),
                next: "say what it does, or do less".to_owned(),
                ..denial(DenialCode::ClassUndeclared, form, action)
            });
        }
        match said.decision {
            Decision::Allow | Decision::RequiresApproval => None,
            Decision::Deny => Some(Denial {
                policy_basis: basis(judgement),
                reason: said.reason.clone(),
                next: "do it another way, or ask whoever writes the atlas".to_owned(),
                ..denial(DenialCode::PolicyDenied, form, action)
            }),
            Decision::Hold => {
                let gate = said.questions.first().map_or("…", |it| &it.checkpoint_id);
                let hold = said.questions.first().and_then(|it| it.hold_id.as_ref());
                let hold = hold.map_or_else(String::new, |hold| format!(" --hold {hold}"));
                Some(Denial {
                    hold_id: said.hold_id.clone(),
                    reason: said.reason.clone(),
                    next: format!(
                        "answer: `safepoint session answer {} {gate}{hold} --answers '{}'`, then ask again",
                        form.canonical.session_id,
                        answer_form(&said.questions, gate)
                    ),
                    ..denial(DenialCode::QuestionsPending, form, action)
                })
            }
        }
    }
}

/// What the answers to the questions of a gate look like: each id, and a place for its answer.
fn answer_form(questions: &[QuestionNote], gate: &str) -> String {
    let mine = questions.iter().filter(|it| it.checkpoint_id == gate);
    let answers: Vec<String> = mine
        .map(|it| format!("{}: …", Value::from(it.question_id.as_str())))
        .collect();
    match answers.is_empty() {
        true => "{…}".to_owned(),
        // It stands between single quotes.
        false => format!("{{{}}}", answers.join(", ")).replace('\'', r"'\''"),
    }
}
