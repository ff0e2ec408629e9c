//! One proposal that comes to several actions: all must pass, the strictest verdict wins,
//! and what follows from it is written in the same transaction.

use std::collections::HashMap;

use safepoint_gates::{Decision, Engine, Event, Facts, Judgement, Rate, Request, Session};
use safepoint_model::{ActionId, HoldId, SessionId, Timestamp};
use safepoint_store::Durability;
use safepoint_trail::Writing;

use super::table::{self, Sources};
use super::{Control, Stopped, judge};
use crate::ControlError;

/// Whether a steward has allowed all of it by policies, rather than left it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByPolicy {
    Allowed,
    Open,
}

impl ByPolicy {
    pub(crate) fn of(engine: &Engine, requests: &[Request]) -> Self {
        let allowed =
            |request: &Request| engine.allows_by_policy(&request.action, &request.conditions);
        match requests.iter().all(allowed) {
            true => Self::Allowed,
            false => Self::Open,
        }
    }
}

impl Control {
    /// Judges all actions of one proposal, and lets `settle` write what follows.
    pub(crate) fn propose<T>(
        &self,
        id: &SessionId,
        action: &ActionId,
        requests: &[Request],
        mut settle: impl FnMut(
            &mut Writing<'_>,
            &Judgement,
            ByPolicy,
            Timestamp,
        ) -> Result<T, ControlError>,
    ) -> Result<(Judgement, T), ControlError> {
        let (session, sources) = self.trail.store().read(|sql| table::read(sql, id))?;
        let engine = self.engine_of(&session, &sources)?;
        let rates = rates(&engine, requests);
        let by_policy = ByPolicy::of(&engine, requests);
        self.asking_for(
            |(judgement, _): &(Judgement, T)| judgement.sync,
            |callbacks, time| {
                // The intent is on disk before anything is done.
                self.trail.write(Durability::Sync, |writing| {
                    let (session, sources) = table::read(writing.sql(), id)?;
                    let now = self.around.clock.now().max(session.latest);
                    let principal = session.principal.as_str();
                    let uses = table::uses(writing.sql(), &rates, principal, now)?;
                    let facts = || -> Result<Facts, ControlError> {
                        Ok(Facts {
                            request_id: action.clone(),
                            hold_id: HoldId::generate(&*self.around.entropy)?,
                            ..self.facts(now, uses.clone(), callbacks, time)?
                        })
                    };
                    let judgement = judge_all(&engine, &session, requests, facts)?;
                    table::update(writing.sql(), &judgement.session)?;
                    table::use_up(writing.sql(), &rates, &judgement.uses, principal, now)?;
                    let name = requests.first().map_or("", |request| &request.action);
                    if let Some(request_id) = &judgement.request_id {
                        table::keep_request(writing.sql(), &judgement, request_id, name, now)?;
                    }
                    self.write_down(writing, &judgement, &sources)?;
                    let settled = settle(writing, &judgement, by_policy, now)?;
                    Ok((judgement, settled))
                })
            },
        )
    }

    /// Whether a steward has allowed all of this in a session by policies.
    pub(crate) fn by_policy(
        &self,
        id: &SessionId,
        requests: &[Request],
    ) -> Result<ByPolicy, ControlError> {
        let (session, sources) = self.session(id)?;
        let engine = self.engine_of(&session, &sources)?;
        Ok(ByPolicy::of(&engine, requests))
    }

    /// Judges without writing anything.
    pub(crate) fn judge_unwritten(
        &self,
        engine: &Engine,
        session: &Session,
        action: &ActionId,
        requests: &[Request],
    ) -> Result<Judgement, ControlError> {
        let now = self.around.clock.now().max(session.latest);
        let rates = rates(engine, requests);
        let principal = session.principal.as_str();
        let uses = self
            .trail
            .store()
            .read(|sql| table::uses(sql, &rates, principal, now))?;
        let facts = || -> Result<Facts, ControlError> {
            Ok(Facts {
                request_id: action.clone(),
                ..self.facts(now, uses.clone(), &safepoint_gates::Answers::new(), 0)?
            })
        };
        match judge_all(engine, session, requests, facts) {
            Ok(judgement) => Ok(judgement),
            Err(Stopped::Failed(error)) => Err(error),
            Err(Stopped::Ask(_)) => Err(ControlError::Proposal {
                reason: "a steward's service must be asked, which a dry run does not do".to_owned(),
            }),
        }
    }

    /// Whether a session is judged under exactly these atlases.
    pub(crate) fn is_current(&self, id: &SessionId, engine: &Engine) -> Result<bool, ControlError> {
        let found = self.trail.store().read(|sql| table::read(sql, id));
        match found {
            Ok((session, _)) => Ok(session.ended.is_none() && session.atlases == engine.pinned()),
            Err(ControlError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a session, ended or not, was judged under exactly these atlases.
    pub(crate) fn has_rules(&self, id: &SessionId, engine: &Engine) -> Result<bool, ControlError> {
        match self.session(id) {
            Ok((session, _)) => Ok(session.atlases == engine.pinned()),
            Err(ControlError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A session as it is kept, with where its atlases came from.
    pub(crate) fn session(&self, id: &SessionId) -> Result<(Session, Sources), ControlError> {
        self.trail.store().read(|sql| table::read(sql, id))
    }
}

fn rates(engine: &Engine, requests: &[Request]) -> Vec<Rate> {
    let mut all: Vec<Rate> = Vec::new();
    for rate in requests.iter().flat_map(|it| engine.rates(&it.action)) {
        if !all.iter().any(|known| known.name == rate.name) {
            all.push(rate);
        }
    }
    all
}

/// Judges one after the other. If one of them does not pass, what the others would have
/// used up is not: only what stands in the way is kept.
fn judge_all(
    engine: &Engine,
    session: &Session,
    requests: &[Request],
    facts: impl Fn() -> Result<Facts, ControlError>,
) -> Result<Judgement, Stopped> {
    let judged = one_after_another(engine, session, requests.iter(), &facts)?;
    let passes = |judgement: &Judgement| judgement.resolution.decision < Decision::Hold;
    let judged = match judged.iter().all(passes) {
        true => judged,
        false => {
            let standing = requests.iter().zip(&judged);
            let standing = standing.filter(|(_, judgement)| !passes(judgement));
            one_after_another(
                engine,
                session,
                standing.map(|(request, _)| request),
                &facts,
            )?
        }
    };
    merge(judged).ok_or_else(|| {
        Stopped::Failed(ControlError::Proposal {
            reason: "there is nothing to be judged".to_owned(),
        })
    })
}

/// Each finds the session as the one before has left it, and its uses of limits counted.
fn one_after_another<'r>(
    engine: &Engine,
    session: &Session,
    requests: impl Iterator<Item = &'r Request>,
    facts: &impl Fn() -> Result<Facts, ControlError>,
) -> Result<Vec<Judgement>, Stopped> {
    let mut uses: HashMap<String, u64> = HashMap::new();
    let mut current = session.clone();
    let mut judged = Vec::new();
    for request in requests {
        let mut facts = facts()?;
        for (name, count) in &uses {
            *facts.uses.entry(name.clone()).or_default() += count;
        }
        let judgement = judge(engine, &current, &Event::Request(request.clone()), &facts)?;
        for name in &judgement.uses {
            *uses.entry(name.clone()).or_default() += 1;
        }
        current = judgement.session.clone();
        judged.push(judgement);
    }
    Ok(judged)
}

/// All judgements as one: the words of the strictest, and what all of them left behind.
fn merge(judged: Vec<Judgement>) -> Option<Judgement> {
    let session = judged.last()?.session.clone();
    let mut strictest: Option<Judgement> = None;
    let (mut records, mut uses, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    let (mut policies, mut questions) = (Vec::new(), Vec::new());
    let mut sync = false;
    for judgement in judged {
        records.extend(judgement.records.iter().cloned());
        uses.extend(judgement.uses.iter().cloned());
        notices.extend(judgement.notices.iter().cloned());
        policies.extend(judgement.resolution.policies.iter().cloned());
        questions.extend(judgement.resolution.questions.iter().cloned());
        sync |= judgement.sync;
        let stricter =
            |known: &Judgement| judgement.resolution.decision > known.resolution.decision;
        if strictest.as_ref().is_none_or(stricter) {
            strictest = Some(judgement);
        }
    }
    let mut merged = strictest?;
    merged.session = session;
    merged.records = records;
    merged.uses = uses;
    merged.notices = notices;
    merged.resolution.policies = policies;
    merged.resolution.questions = questions;
    merged.sync = sync;
    Some(merged)
}
