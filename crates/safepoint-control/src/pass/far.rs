//! The machine's half of the passage, where the control plane is somewhere else.
//!
//! What is seen, secured and done stays here, with a trail of its own in a store of its
//! own, under the same ids. What the control plane says is believed only for exactly what
//! was asked. Whatever goes wrong on the way there is an error, and then nothing runs.

use safepoint_authority::{Denial, Hold, HoldState};
use safepoint_gates::Resolution;
use safepoint_model::{ActionId, Code, Entropy, HoldId, SessionId};
use safepoint_store::{Durability, fault};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::asked::{Asked, Entered, Entering, Foretelling, Foretold, Granted, Settlement, Told};
use super::bench::Under;
use super::confine::Approved;
use super::cover::Net;
use super::documents::{Home, Running, Unsent};
use super::outbox::Kept;
use super::recover::this_process;
use super::request::plain_request;
use super::see::{Form, Seen};
use super::silence::standing;
use super::standing::home_id;
use super::{Mode, Passage, Proposal, Rehearsed};
use crate::{ControlError, kept, world};

/// What is asked of a control plane elsewhere.
#[derive(Clone, Copy, Debug)]
pub enum Question<'a> {
    /// In which session, and under what: an [`Entered`] answers it.
    Enter(&'a Entering),
    /// Whether something may be done: a [`Settlement`].
    Propose(&'a Asked),
    /// What would be said to it: a [`Foretold`].
    Rehearse(&'a Foretelling),
    /// How something ended: a [`Heard`](super::Heard).
    End(&'a Told),
    /// How a session stands: `{"resolution"}`.
    Show(&'a SessionId),
    /// What an agent was told: `{"resolution"}`.
    Input(&'a SessionId, &'a str),
    /// Whether the gates let an action go on: `{"resolution"}`.
    Request(&'a SessionId, &'a str, &'a Value),
    /// That a session is over.
    Close(&'a SessionId),
    /// How a hold stands: `{"state"}`.
    Hold(&'a HoldId),
}

/// A control plane elsewhere.
pub trait Far {
    /// Asks, and gives the document that answers.
    fn ask(&self, question: &Question<'_>) -> Result<Value, ControlError>;
}

#[derive(serde::Deserialize)]
struct Resolved {
    resolution: Resolution,
    #[serde(default)]
    denial: Option<Denial>,
}

#[derive(serde::Deserialize)]
struct Standing {
    state: HoldState,
}

impl Passage<'_> {
    /// Asks the control plane elsewhere.
    pub(super) fn answered<T: DeserializeOwned>(
        &self,
        question: &Question<'_>,
    ) -> Result<T, ControlError> {
        let far = self.far.ok_or(ControlError::Elsewhere {
            reason: "there is no server to be asked".to_owned(),
        })?;
        let answer = match far.ask(question) {
            Err(ControlError::Refuses { code, .. }) if code == Code::Conflict.code() => {
                return Err(ControlError::Meanwhile("the server says so"));
            }
            other => other?,
        };
        serde_json::from_value(answer).map_err(|error| ControlError::Elsewhere {
            reason: format!("its answer cannot be read: {error}"),
        })
    }

    /// Looks at everything, and finds out in which session and under which action it goes.
    pub(super) fn look_far(
        &self,
        proposal: &Proposal,
    ) -> Result<(Seen, Under, ActionId), ControlError> {
        // How things ended comes first: it is part of what the next one is judged by.
        self.send_waiting()?;
        let seen = self.see(proposal)?;
        let wish = self.form(&seen, &Net::Expected, &self.nowhere()?)?;
        let wish = wish.canonical.wish();
        let entering = Entering {
            wish: Some(wish.to_string()),
            ..self.entering(proposal)?
        };
        let entered: Entered = self.answered(&Question::Enter(&entering))?;
        self.refuse_weaker(&entered)?;
        let action = entered.action_id.ok_or_else(|| ControlError::Elsewhere {
            reason: "it names no action".to_owned(),
        })?;
        let under = Under {
            session_id: entered.session_id,
            atlases: entered.atlases,
            policy_version: entered.policy_version,
        };
        Ok((seen, under, action))
    }

    /// Has a form judged, and writes down here what follows.
    pub(super) fn judge_far(
        &self,
        proposal: &Proposal,
        form: &Form,
        action: &ActionId,
    ) -> Result<Settlement, ControlError> {
        let session = &form.canonical.session_id;
        let asked = Asked::new(action, form, proposal.wants());
        // Cut off from here on, the server may have let through what is not run: whoever
        // comes next tells it.
        let asking = Unsent {
            asking: Some(this_process()),
            ..self.not_run(session, action, "it was cut off before it was run")
        };
        if self.keep(&asking, Durability::Async)? == Kept::Begun {
            return Err(ControlError::Meanwhile("it was begun under the same name"));
        }
        let settlement = self.answered(&Question::Propose(&asked));
        fault::point("pass.answered");
        let settled = Unsent {
            settled: true,
            asking: None,
            ..asking
        };
        let settlement = match settlement {
            Ok(settlement) => settlement,
            Err(error) => {
                // Nobody knows whether it was let through there: it is not run here.
                let unknown = matches!(
                    error,
                    ControlError::Unreachable { .. } | ControlError::Elsewhere { .. }
                );
                let told = match unknown {
                    true => self.not_run(session, action, &error.to_string()),
                    false => settled,
                };
                self.keep(&told, Durability::Sync)?;
                return Err(error);
            }
        };
        match &settlement {
            Settlement::Denied(refused) => {
                let body = json!(refused.denial);
                self.keep(&settled, Durability::Async)?;
                self.control.trail.write(Durability::Async, |writing| {
                    let bench = self.bench()?;
                    bench.tell(writing, form, action, "action_denied", body)
                })?;
            }
            Settlement::Leave(granted) => {
                let same = granted.fingerprint == form.fingerprint
                    && granted.action_id == *action
                    && granted.session_id == *session;
                if !same {
                    let reason = "it answers for something else than what was asked";
                    let told = self.not_run(session, action, reason);
                    self.keep(&told, Durability::Sync)?;
                    return Err(ControlError::Elsewhere {
                        reason: reason.to_owned(),
                    });
                }
                self.intend(proposal, form, granted, &settled)?;
            }
        }
        Ok(settlement)
    }

    /// Writes down here what is about to be done, before it is.
    fn intend(
        &self,
        proposal: &Proposal,
        form: &Form,
        granted: &Granted,
        settled: &Unsent,
    ) -> Result<(), ControlError> {
        let line = form.shell_line.clone();
        let approved = match granted.permit.is_some() || granted.by_policy {
            true => Approved::Yes,
            false => Approved::No,
        };
        let running = Running {
            line: line.map(|line| self.control.trail.without_tokens(line)),
            is_unfenced: form.lacks_fence(),
            permit_id: granted.permit.as_ref().map(|it| it.permit_id.clone()),
            within: granted.within.clone(),
            ..Running::begun(
                form,
                &granted.action_id,
                proposal.visitor.as_ref(),
                &granted.decision,
                self.now(),
            )
        }
        .with_grant(&form.canonical, approved);
        let body = json!({
            "fingerprint": form.fingerprint,
            "actions": form.canonical.actions,
            "summary": running.summary,
            "checkpoint_id": form.coverage.checkpoint_id,
            "permit_id": running.permit_id,
            "policy_version": form.canonical.policy_version,
            "decision": granted.decision,
        });
        self.control.trail.write(Durability::Sync, |writing| {
            if kept::get::<Running>(writing.sql(), granted.action_id.as_str())?.is_some() {
                return Err(ControlError::Meanwhile("it was begun under the same name"));
            }
            running.refuse_collected(writing.sql())?;
            kept::put(writing, settled)?;
            kept::put(writing, &running)?;
            let bench = self.bench()?;
            bench.tell(writing, form, &granted.action_id, "action_intended", body)
        })
    }

    /// What would come of it.
    pub(super) fn rehearse_far(&self, proposal: &Proposal) -> Result<Rehearsed, ControlError> {
        let seen = self.see(proposal)?;
        let foreseen = self.foresee(&seen)?;
        let net = foreseen.as_ref().map_or(Net::Expected, Net::Foreseen);
        let form = self.form(&seen, &net, &self.nowhere()?)?;
        let entropy = &*self.control.around.entropy;
        let asked = Asked::new(&ActionId::generate(entropy)?, &form, proposal.wants());
        let foretelling = Foretelling {
            entering: self.entering(proposal)?,
            asked,
        };
        let foretold: Foretold = self.answered(&Question::Rehearse(&foretelling))?;
        Ok(Rehearsed {
            denial: foretold.denial,
            canonical: foretold.canonical,
            coverage: form.coverage,
            resolution: Some(foretold.resolution),
        })
    }

    pub(super) fn enter_far(
        &self,
        entering: &Entering,
    ) -> Result<(SessionId, Option<Resolution>), ControlError> {
        let entered: Entered = self.answered(&Question::Enter(entering))?;
        self.refuse_weaker(&entered)?;
        if let Some(visitor) = &entering.visitor {
            let home = Home {
                format: 1,
                visitor: home_id(&visitor.client, &visitor.session),
                workspace: world::text(&self.workspace.root)?,
                time: self.now(),
            };
            self.control.trail.write(Durability::Async, |writing| {
                match kept::get::<Home>(writing.sql(), &home.visitor)? {
                    Some(_) => Ok(()),
                    None => kept::put(writing, &home),
                }
            })?;
        }
        Ok((entered.session_id, entered.resolution))
    }

    pub(super) fn begin_far(&self, objective: Option<String>) -> Result<SessionId, ControlError> {
        let entering = Entering {
            objective,
            anew: true,
            ..Entering::new(world::text(&self.workspace.root)?)
        };
        let entered: Entered = self.answered(&Question::Enter(&entering))?;
        self.refuse_weaker(&entered)?;
        Ok(entered.session_id)
    }

    /// What this workspace is to be judged under, it must be judged under elsewhere as well.
    fn refuse_weaker(&self, entered: &Entered) -> Result<(), ControlError> {
        let mut missing = self.atlases.iter().filter(|atlas| {
            let mut pins = entered.atlases.iter();
            !pins.any(|pin| pin.digest == atlas.digest)
        });
        match missing.next() {
            None => Ok(()),
            Some(atlas) => Err(ControlError::Weaker {
                session: entered.session_id.to_string(),
                atlas: atlas.manifest.atlas_id.clone(),
            }),
        }
    }

    /// A session that there is not: what is wished for does not depend on it.
    fn nowhere(&self) -> Result<Under, ControlError> {
        let entropy: &dyn Entropy = &*self.control.around.entropy;
        Ok(Under::none(SessionId::generate(entropy)?))
    }

    /// How a session stands.
    pub fn show(&self, session: &SessionId) -> Result<Resolution, ControlError> {
        match self.far {
            None => Ok(self.control.show(session)?.resolution),
            Some(_) => {
                let answer: Resolved = self.answered(&Question::Show(session))?;
                Ok(answer.resolution)
            }
        }
    }

    /// Tells a session what its agent was told.
    pub fn input(&self, session: &SessionId, text: &str) -> Result<Resolution, ControlError> {
        let event = safepoint_gates::Event::Input {
            text: text.to_owned(),
        };
        match self.far {
            None => Ok(self.control.step(session, &event)?.resolution),
            Some(_) => {
                let answer: Resolved = self.answered(&Question::Input(session, text))?;
                Ok(answer.resolution)
            }
        }
    }

    /// Asks the gates alone about an action, and a person where they say so.
    pub fn request(
        &self,
        proposal: &Proposal,
        session: &SessionId,
        action: &str,
        parameters: Value,
    ) -> Result<(Resolution, Option<Denial>), ControlError> {
        let wants = proposal.wants();
        if self.far.is_some() {
            // A server is told of the action alone.
            if wants.mode != Mode::Policy || wants.bounds.is_some() {
                return Err(ControlError::Proposal {
                    reason: format!(
                        "`{action}` is asked of a server, which is told neither of the envelope of a workflow nor of `--checkpoint`"
                    ),
                });
            }
            let question = Question::Request(session, action, &parameters);
            let answer: Resolved = self.answered(&question)?;
            return Ok((answer.resolution, answer.denial));
        }
        let event = safepoint_gates::Event::Request(plain_request(action, parameters));
        let requested = self.bench()?.step_asking(session, &event, &wants)?;
        Ok((requested.judgement.resolution, requested.denial))
    }

    /// Ends a session, whatever is still asked in it.
    pub fn close(&self, session: &SessionId) -> Result<(), ControlError> {
        let event = safepoint_gates::Event::End { abandon: true };
        match self.far {
            None => self.control.step(session, &event).map(drop),
            Some(_) => self.answered::<Value>(&Question::Close(session)).map(drop),
        }
    }

    /// How a hold stands, wherever it is decided.
    pub fn standing(&self, hold: &HoldId) -> Result<HoldState, ControlError> {
        match self.far {
            None => {
                let store = self.control.trail.store();
                let found: Hold = store.read(|sql| kept::find(sql, hold.as_str()))?;
                Ok(standing(&found, self.now()))
            }
            Some(_) => {
                let answer: Standing = self.answered(&Question::Hold(hold))?;
                Ok(answer.state)
            }
        }
    }
}
