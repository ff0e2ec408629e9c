//! The operator's desk: what waits, what was decided, who decides.

use safepoint_authority::{
    Choice, Decision, DecisionScope, DenialCode, Envelope, Hold, HoldState, Operator, Permit,
    PermitState, SignedDecision,
};
use safepoint_model::{Digest, HoldId, PermitId, SessionId, Span, Timestamp};
use safepoint_store::{Durability, Sql, fault};
use safepoint_trail::note::Signer;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use super::Bench;
use super::documents::Standing;
use super::places;
use crate::{Control, ControlError, kept};

/// What an operator decides.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// About which hold.
    pub hold_id: HoldId,
    /// The fingerprint that was displayed.
    pub fingerprint: Digest,
    /// What.
    pub choice: Choice,
    /// The envelope that goes with it.
    pub envelope: Option<Envelope>,
    /// How long it lasts; once without it.
    pub scope: Option<DecisionScope>,
    /// The word of the second confirmation.
    pub confirm: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Whoever signs for an operator.
pub trait Signing {
    /// The signed note over `text`, by the key of this operator.
    fn sign(&self, operator: &Operator, text: &str) -> Result<String, ControlError>;
}

impl Signing for Signer {
    fn sign(&self, _operator: &Operator, text: &str) -> Result<String, ControlError> {
        Ok(Signer::sign(self, text))
    }
}

/// The operator's desk.
pub struct Desk<'a> {
    /// The sessions and what is decided.
    pub control: &'a Control,
    /// How long a permit is good after its approval.
    pub permit_life: Span,
}

impl Desk<'_> {
    /// What waits, the oldest first.
    pub fn waiting(&self) -> Result<Vec<Hold>, ControlError> {
        let now = self.control.around.clock.now();
        let open: Vec<Hold> = self.control.trail.store().read(|sql| kept::open(sql))?;
        let waits = |hold: &Hold| hold.state == HoldState::Halted || hold.expires_at > now;
        Ok(open.into_iter().filter(waits).collect())
    }

    /// Holds of any state, the newest first; only those older than `after`, if that is given.
    pub fn holds(&self, after: Option<&Hold>, most: u32) -> Result<Vec<Hold>, ControlError> {
        let store = self.control.trail.store();
        match after {
            None => store.read(|sql| kept::newest(sql, most)),
            Some(after) => store.read(|sql| kept::newest_after(sql, after, most)),
        }
    }

    /// How many holds there are, of any state.
    pub fn count_holds(&self) -> Result<u64, ControlError> {
        let store = self.control.trail.store();
        store.read(|sql| kept::count::<Hold>(sql))
    }

    /// The hold that is decided before this one can be approved, if there is one.
    pub fn turn_before(&self, hold: &Hold) -> Result<Option<HoldId>, ControlError> {
        if hold.state != HoldState::Pending {
            return Ok(None);
        }
        let now = self.control.around.clock.now();
        let store = self.control.trail.store();
        if hold.canonical.outside_target().is_some() {
            return Ok(None);
        }
        let first = store.read(|sql| self.first_of(sql, &hold.canonical.session_id, now))?;
        Ok(first.filter(|first| *first != hold.hold_id))
    }

    /// One hold.
    pub fn hold(&self, prefix: &str) -> Result<Hold, ControlError> {
        self.control
            .trail
            .store()
            .read(|sql| kept::find(sql, prefix))
    }

    /// Decides. The decision is signed, checked again as any stranger would, and written
    /// with the permit that follows from it.
    pub fn decide(
        &self,
        verdict: &Verdict,
        operator: &Operator,
        signing: &dyn Signing,
    ) -> Result<(Hold, Option<Permit>), ControlError> {
        let now = self.control.around.clock.now();
        let hold = self.hold(verdict.hold_id.as_str())?;
        if let Some(envelope) = &verdict.envelope {
            envelope.check().map_err(|error| ControlError::Proposal {
                reason: format!("the envelope cannot be used: {error}"),
            })?;
        }
        let decision = Decision {
            statement: Decision::purpose(),
            hold_id: hold.hold_id.clone(),
            action_id: hold.action_id.clone(),
            fingerprint: verdict.fingerprint,
            choice: verdict.choice,
            envelope: verdict.envelope.clone(),
            scope: verdict.scope,
            confirm: verdict.confirm.clone(),
            reason: verdict.reason.clone(),
            operator: operator.name.clone(),
            time: now,
        };
        // What would be refused is refused before anybody signs it.
        hold.decide(&decision, SignedDecision::new(String::new()), now)?;
        let note = signing.sign(operator, &decision.to_text()?)?;
        self.enter(&hold, &decision, SignedDecision::new(note), now)
    }

    /// Writes a signed decision, and the permit that follows from it.
    pub(super) fn enter(
        &self,
        hold: &Hold,
        decision: &Decision,
        signed: SignedDecision,
        now: Timestamp,
    ) -> Result<(Hold, Option<Permit>), ControlError> {
        // What the session is pinned to does not change, and may be long.
        let manifests = self.overridden(hold, decision.choice)?;
        fault::point("desk.signed");
        let decided = self.control.trail.write(Durability::Sync, |writing| {
            let operator: Operator = active(writing.sql(), &decision.operator)?;
            let opened = signed.open(&operator.public().map_err(key_error(&operator.name))?)?;
            let hold: Hold = kept::get(writing.sql(), hold.hold_id.as_str())?
                .ok_or(ControlError::Meanwhile("the hold is gone"))?;
            let first = self.first_of(writing.sql(), &hold.canonical.session_id, now)?;
            if let Some(first) = first.filter(|first| {
                hold.state == HoldState::Pending
                    && opened.choice.is_yes()
                    && *first != hold.hold_id
                    && hold.canonical.outside_target().is_none()
            }) {
                return Err(ControlError::OutOfTurn { first });
            }
            let decided = hold.decide(&opened, signed.clone(), now)?;
            kept::put(writing, &decided)?;
            self.tell(writing, &decided, &operator.name, &signed)?;
            self.stand(writing, &decided, &opened, now)?;
            let permit = match decided.state {
                // What is open needs no permit.
                HoldState::Approved if opened.scope.is_some() => {
                    self.tell_stewards(writing, &decided, &opened, &manifests)?;
                    self.open_outside(writing, &decided, &opened)?;
                    None
                }
                HoldState::Approved => {
                    self.tell_stewards(writing, &decided, &opened, &manifests)?;
                    Some(self.issue(writing, &decided, now)?)
                }
                _ => None,
            };
            Ok((decided, permit))
        });
        fault::point("desk.decided");
        decided
    }

    /// The hold that comes first in its session, which is decided first. What the fence was asked
    /// for has no order: each stands for itself, and nothing waits for it.
    fn first_of(
        &self,
        sql: &mut dyn Sql,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<Option<HoldId>, ControlError> {
        let waiting = kept::open_if(sql, |hold: &Hold| {
            hold.canonical.session_id == *session
                && hold.state == HoldState::Pending
                && hold.expires_at > now
                && hold.canonical.outside_target().is_none()
        })?;
        Ok(waiting.into_iter().next().map(|hold| hold.hold_id))
    }

    fn tell(
        &self,
        writing: &mut Writing<'_>,
        hold: &Hold,
        operator: &str,
        signed: &SignedDecision,
    ) -> Result<(), ControlError> {
        let actor: Actor = format!("operator:{operator}")
            .parse()
            .unwrap_or_else(|_| Actor::safepoint());
        writing.append(Draft {
            stream: Stream::from(&hold.canonical.session_id),
            actor,
            kind: Kind::fixed("approval_decision").into(),
            action_id: Some(hold.action_id.clone()),
            body: json!({
                "hold_id": hold.hold_id, "fingerprint": hold.fingerprint,
                "state": hold.state, "decision": signed,
            }),
        })?;
        Ok(())
    }

    /// What a decision means for the rest of the session.
    fn stand(
        &self,
        writing: &mut Writing<'_>,
        hold: &Hold,
        decision: &Decision,
        now: Timestamp,
    ) -> Result<(), ControlError> {
        let session = &hold.canonical.session_id;
        let before: Standing = kept::get(writing.sql(), session.as_str())?
            .unwrap_or_else(|| Standing::new(session.clone(), now));
        let mut after = before.clone();
        match decision.choice {
            Choice::Halt => after.halted_by = Some(hold.hold_id.clone()),
            Choice::Deny | Choice::Continue | Choice::Modify | Choice::PerStep => {
                if after.halted_by.as_ref() == Some(&hold.hold_id) {
                    after.halted_by = None;
                }
            }
        }
        if hold.state == HoldState::Approved {
            after.violated = None;
            after.rules_changed = false;
            match decision.choice {
                Choice::Modify => {
                    after.envelope.clone_from(&decision.envelope);
                    let envelope = decision.envelope.as_ref();
                    after.envelope_hold = Some(hold.hold_id.clone());
                    after.places = envelope.map(places::of_envelope).unwrap_or_default();
                    after.approvers = hold.quorum;
                    after.every_step = false;
                }
                Choice::PerStep => {
                    after.every_step = true;
                    after.envelope = None;
                    after.places.clear();
                    after.envelope_hold = None;
                }
                _ => {}
            }
        }
        after.time = now;
        kept::put(writing, &after)
    }

    /// Approval is not permission: this is.
    fn issue(
        &self,
        writing: &mut Writing<'_>,
        hold: &Hold,
        now: Timestamp,
    ) -> Result<Permit, ControlError> {
        let permit = Permit {
            format: 1,
            permit_id: PermitId::generate(&*self.control.around.entropy)?,
            hold_id: hold.hold_id.clone(),
            action_id: hold.action_id.clone(),
            session_id: hold.canonical.session_id.clone(),
            wish: hold.canonical.wish(),
            fingerprint: hold.fingerprint,
            policy_version: hold.canonical.policy_version,
            trust: hold
                .trust
                .iter()
                .map(|(boundary, (_, version))| (boundary.clone(), *version))
                .collect(),
            issued: now,
            expires_at: self.permit_life.after(now).unwrap_or(now),
            state: PermitState::Issued {},
        };
        kept::put(writing, &permit)?;
        writing.append(Draft {
            stream: Stream::from(&permit.session_id),
            actor: Actor::safepoint(),
            kind: Kind::fixed("permit_issued").into(),
            action_id: Some(permit.action_id.clone()),
            body: json!({
                "permit_id": permit.permit_id, "hold_id": permit.hold_id,
                "fingerprint": permit.fingerprint, "expires_at": permit.expires_at,
            }),
        })?;
        Ok(permit)
    }

    /// Permits, the newest first.
    pub fn permits(&self, most: u32) -> Result<Vec<Permit>, ControlError> {
        self.control
            .trail
            .store()
            .read(|sql| kept::newest(sql, most))
    }

    /// One permit.
    pub fn permit(&self, prefix: &str) -> Result<Permit, ControlError> {
        self.control
            .trail
            .store()
            .read(|sql| kept::find(sql, prefix))
    }
}

impl Bench<'_> {
    /// Whether the approvals behind a permit are still good: each is signed by an operator
    /// who is one, and there are enough of them.
    pub(super) fn approvals_hold(
        &self,
        sql: &mut dyn Sql,
        hold: Option<&Hold>,
    ) -> Result<Option<DenialCode>, ControlError> {
        let Some(hold) = hold else {
            return Ok(Some(DenialCode::FingerprintMismatch));
        };
        let mut yes = std::collections::BTreeSet::new();
        for signed in &hold.decisions {
            let name = signed.claimed()?.operator;
            let Ok(operator) = active(sql, &name) else {
                continue;
            };
            let key = operator.public().map_err(key_error(&name))?;
            // Another key with the same name is another person.
            let Ok(decision) = signed.open(&key) else {
                continue;
            };
            if decision.choice.is_yes() && decision.fingerprint == hold.fingerprint {
                yes.insert(name);
            }
        }
        let enough = u32::try_from(yes.len()).unwrap_or(u32::MAX) >= hold.quorum;
        Ok((!enough).then_some(DenialCode::PermitRevoked))
    }
}

/// The operator of this name, who may decide now.
pub(crate) fn active(sql: &mut dyn Sql, name: &str) -> Result<Operator, ControlError> {
    let operator: Option<Operator> = kept::get(sql, name)?;
    operator
        .filter(|operator| operator.removed.is_none())
        .ok_or_else(|| ControlError::NotFound {
            what: "operator",
            name: name.to_owned(),
        })
}

pub(super) fn key_error(name: &str) -> impl Fn(safepoint_trail::note::NoteError) -> ControlError {
    move |error| ControlError::Key {
        path: name.into(),
        error,
    }
}
