//! Which session an action belongs to, and how that session stands.

use safepoint_gates::{Engine, Event, Facts, Session, Verdict};
use safepoint_model::{ActionId, HoldId, SessionId, Timestamp};
use safepoint_store::{Durability, Sql};

use super::documents::{Place, Standing};
use super::{Passage, Proposal};
use crate::session::engine;
use crate::{AtlasFile, ControlError, Start, kept, world};

/// The most sessions that a place remembers.
const MOST_EARLIER: usize = 20;

/// A session that is only looked at.
pub(super) struct Rehearsal {
    pub(super) engine: Engine,
    pub(super) session: Session,
    pub(super) standing: Standing,
}

impl Passage<'_> {
    /// The session of a proposal. Whoever names none works in that of the workspace, which
    /// begins anew when the rules have changed.
    pub(super) fn session_of(&self, proposal: &Proposal) -> Result<SessionId, ControlError> {
        if let Some(session) = &proposal.session {
            self.refuse_weaker(session)?;
            return Ok(session.clone());
        }
        let place = self.place()?;
        let engine = self.engine()?;
        if let Some(place) = &place
            && self.control.is_current(&place.session_id, &engine)?
        {
            return Ok(place.session_id.clone());
        }
        let started = self.control.start(&Start {
            atlases: self.atlases.clone(),
            goal: proposal.objective.clone(),
            key: None,
        })?;
        let changed = match &place {
            Some(place) => !self.control.has_rules(&place.session_id, &engine)?,
            None => false,
        };
        self.move_to(place, started.session_id, changed)
    }

    /// The session of a proposal, for whoever asks the gates alone.
    pub fn session(&self, proposal: &Proposal) -> Result<SessionId, ControlError> {
        self.session_of(proposal)
    }

    /// Begins a session for an agent that is started now.
    pub fn begin(&self, objective: Option<String>) -> Result<SessionId, ControlError> {
        let started = self.control.start(&Start {
            atlases: self.atlases.clone(),
            goal: objective,
            key: None,
        })?;
        Ok(started.session_id)
    }

    /// A session is judged under everything that the workspace is judged under, or it is not
    /// for this workspace: whoever begins sessions must not choose the rules by that.
    fn refuse_weaker(&self, session: &SessionId) -> Result<(), ControlError> {
        let (kept, _) = self.control.session(session)?;
        let pinned = |atlas: &AtlasFile| kept.atlases.iter().any(|pin| pin.digest == atlas.digest);
        match self.atlases.iter().find(|atlas| !pinned(atlas)) {
            None => Ok(()),
            Some(atlas) => Err(ControlError::Weaker {
                session: session.to_string(),
                atlas: atlas.manifest.atlas_id.clone(),
            }),
        }
    }

    /// Whether the workspace lies in another one that is known, and so could have been made by
    /// whoever works there.
    fn is_nested(&self, sql: &mut dyn Sql) -> Result<bool, ControlError> {
        for above in self.workspace.root.ancestors().skip(1) {
            let Some(name) = above.to_str() else { continue };
            if kept::get::<Place>(sql, name)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes `session` the one of the workspace.
    fn move_to(
        &self,
        before: Option<Place>,
        session: SessionId,
        changed: bool,
    ) -> Result<SessionId, ControlError> {
        let now = self.control.around.clock.now();
        let mut earlier: Vec<SessionId> = Vec::new();
        if let Some(before) = &before {
            earlier.push(before.session_id.clone());
            earlier.extend(before.earlier.iter().cloned());
            earlier.truncate(MOST_EARLIER);
        }
        let place = Place {
            format: 1,
            workspace: world::text(&self.workspace.root)?,
            session_id: session.clone(),
            earlier,
            time: now,
        };
        self.control.trail.write(Durability::Async, |writing| {
            // Two that begin at once work in one session, or the same wish would wait twice.
            let there: Option<Place> = kept::get(writing.sql(), &place.workspace)?;
            let session_of = |place: &Option<Place>| place.as_ref().map(|it| it.session_id.clone());
            if session_of(&there) != session_of(&before) {
                return Err(ControlError::Meanwhile("another session was begun here"));
            }
            // What an operator widened was widened under other rules: it ends with them. And
            // whoever can write the rules must not get past them so: somebody looks first.
            if before.is_none() && self.is_nested(writing.sql())? {
                let standing = Standing {
                    rules_changed: true,
                    ..Standing::new(session.clone(), now)
                };
                kept::put(writing, &standing)?;
            }
            if let Some(before) = &before {
                let old = before.session_id.clone();
                let old = kept::get::<Standing>(writing.sql(), old.as_str())?
                    .unwrap_or_else(|| Standing::new(old, now));
                let standing = Standing {
                    every_step: old.every_step,
                    halted_by: old.halted_by,
                    provider: old.provider,
                    violated: old.violated,
                    rules_changed: changed || old.rules_changed,
                    ..Standing::new(session.clone(), now)
                };
                kept::put(writing, &standing)?;
            }
            kept::put(writing, &place)
        })?;
        Ok(session)
    }

    fn place(&self) -> Result<Option<Place>, ControlError> {
        let id = world::text(&self.workspace.root)?;
        let store = self.control.trail.store();
        store.read(|sql| kept::get(sql, &id))
    }

    fn engine(&self) -> Result<Engine, ControlError> {
        engine(self.atlases.iter().map(AtlasFile::loaded).collect())
    }

    /// How the session of the workspace stands.
    pub(super) fn standing_of_place(
        &self,
        sql: &mut dyn Sql,
        now: Timestamp,
    ) -> Result<Standing, ControlError> {
        let id = world::text(&self.workspace.root)?;
        let place: Option<Place> = kept::get(sql, &id)?;
        let standing = match &place {
            Some(place) => kept::get(sql, place.session_id.as_str())?,
            None => None,
        };
        match standing {
            Some(standing) => Ok(standing),
            None => {
                let none = SessionId::generate(&*self.control.around.entropy)?;
                Ok(Standing::new(none, now))
            }
        }
    }

    /// A session and those of the same place before it.
    pub(super) fn lineage(&self, session: &SessionId) -> Result<Vec<SessionId>, ControlError> {
        let store = self.control.trail.store();
        store.read(|sql| self.lineage_in(sql, session))
    }

    /// The same in a transaction.
    pub(super) fn lineage_in(
        &self,
        sql: &mut dyn Sql,
        session: &SessionId,
    ) -> Result<Vec<SessionId>, ControlError> {
        let id = world::text(&self.workspace.root)?;
        let place: Option<Place> = kept::get(sql, &id)?;
        let mut all = vec![session.clone()];
        if let Some(place) = place.filter(|place| place.session_id == *session) {
            all.extend(place.earlier);
        }
        Ok(all)
    }

    /// The session in which a rehearsal is judged: the one there is, or one that would begin.
    pub(super) fn session_for_rehearsal(
        &self,
        proposal: &Proposal,
    ) -> Result<Rehearsal, ControlError> {
        let now = self.control.around.clock.now();
        let engine = self.engine()?;
        let known = match (&proposal.session, self.place()?) {
            (Some(session), _) => Some(session.clone()),
            (None, Some(place)) if self.control.is_current(&place.session_id, &engine)? => {
                Some(place.session_id)
            }
            _ => None,
        };
        if let Some(id) = known {
            let (session, sources) = self.control.session(&id)?;
            let engine = self.control.engine_of(&session, &sources)?;
            let store = self.control.trail.store();
            let standing = store.read(|sql| kept::get(sql, id.as_str()))?;
            return Ok(Rehearsal {
                engine,
                session,
                standing: standing.unwrap_or_else(|| Standing::new(id, now)),
            });
        }
        let entropy = &*self.control.around.entropy;
        let id = SessionId::generate(entropy)?;
        let principal = self.control.around.actor.to_string();
        let session = Session::new(id.clone(), principal, None, engine.pinned(), now);
        let facts = Facts {
            now,
            hold_id: HoldId::generate(entropy)?,
            request_id: ActionId::generate(entropy)?,
            uses: std::collections::HashMap::new(),
            callbacks: safepoint_gates::Answers::new(),
            callback_time: 0,
        };
        let session = match engine.judge(&session, &Event::Start, &facts)? {
            Verdict::Judged(judgement) => judgement.session,
            Verdict::Ask(_) => session,
        };
        Ok(Rehearsal {
            engine,
            session,
            standing: Standing::new(id, now),
        })
    }
}
