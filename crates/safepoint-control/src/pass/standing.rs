//! Which session an action belongs to, and how that session stands.

use std::path::{Path, PathBuf};

use safepoint_authority::{Hold, HoldState};
use safepoint_gates::{Engine, Event, Facts, Resolution, Session, Verdict};
use safepoint_model::{ActionId, HoldId, SessionId, Timestamp};
use safepoint_store::{Durability, Sql};

use super::asked::Entering;
use super::documents::{Home, Place, Standing};
use super::see::Form;
use super::{Bench, Passage, Proposal, Visitor};
use crate::session::engine;
use crate::{AtlasFile, Control, ControlError, Start, kept, world};

/// The most sessions that a place remembers.
const MOST_EARLIER: usize = 20;

/// What names the workspace of a client's session.
pub(super) fn home_id(client: &str, session: &str) -> String {
    format!("{client}/{session}")
}

impl Control {
    /// The workspace in which a client's session began.
    pub fn home_of(&self, client: &str, session: &str) -> Result<Option<PathBuf>, ControlError> {
        let id = home_id(client, session);
        let home: Option<Home> = self.trail.store().read(|sql| kept::get(sql, &id))?;
        Ok(home.map(|home| PathBuf::from(home.workspace)))
    }

    /// The nearest directory from `start` upwards, and below `above`, in which a client has worked
    /// before.
    pub fn visited_below(
        &self,
        above: &Path,
        start: &Path,
    ) -> Result<Option<PathBuf>, ControlError> {
        let between = start.ancestors().take_while(|path| *path != above);
        for path in between.filter(|path| path.starts_with(above)) {
            let Some(name) = path.to_str() else { continue };
            let id = last_visit_id(name);
            let place: Option<Place> = self.trail.store().read(|sql| kept::get(sql, &id))?;
            if place.is_some() {
                return Ok(Some(path.to_owned()));
            }
        }
        Ok(None)
    }
}

/// What names the session of the last client that was new in a directory.
fn last_visit_id(place: &str) -> String {
    format!("client:{place}")
}

/// A session that is only looked at.
pub(super) struct Rehearsal {
    pub(super) engine: Engine,
    pub(super) session: Session,
    pub(super) standing: Standing,
}

impl Passage<'_> {
    /// The session of a proposal, with what the gates said if it has begun now.
    pub fn enter(
        &self,
        proposal: &Proposal,
    ) -> Result<(SessionId, Option<Resolution>), ControlError> {
        let entering = self.entering(proposal)?;
        self.note_remotes();
        match self.far {
            None => self.bench()?.enter(&entering),
            Some(_) => self.enter_far(&entering),
        }
    }

    /// The session of a proposal, for whoever asks the gates alone.
    pub fn session(&self, proposal: &Proposal) -> Result<SessionId, ControlError> {
        Ok(self.enter(proposal)?.0)
    }

    /// Begins a session for an agent that is started now.
    pub fn begin(&self, objective: Option<String>) -> Result<SessionId, ControlError> {
        match self.far {
            None => self.bench()?.begin(objective),
            Some(_) => self.begin_far(objective),
        }
    }

    /// Who comes, and where to.
    pub(super) fn entering(&self, proposal: &Proposal) -> Result<Entering, ControlError> {
        Ok(Entering {
            session: proposal.session.clone(),
            objective: proposal.objective.clone(),
            visitor: proposal.visitor.clone(),
            ..Entering::new(world::text(&self.workspace.root)?)
        })
    }
}

impl Bench<'_> {
    /// The session of whoever comes. Who names none works in that of the workspace, which
    /// begins anew when the rules have changed.
    pub(super) fn enter(
        &self,
        entering: &Entering,
    ) -> Result<(SessionId, Option<Resolution>), ControlError> {
        if let Some(session) = &entering.session {
            self.refuse_weaker(session)?;
            return Ok((session.clone(), None));
        }
        let id = self.place_of(entering);
        let place = self.place(&id)?;
        let engine = self.engine()?;
        if let Some(place) = &place
            && self.control.is_current(&place.session_id, &engine)?
        {
            self.note_process(place, entering.visitor.as_ref())?;
            return Ok((place.session_id.clone(), None));
        }
        // A client that is new here goes on where the last one was: new sessions are no way
        // around what was found out in others.
        let last = match (&place, &entering.visitor) {
            (Some(place), _) => Some(place.clone()),
            (None, None) => None,
            (None, Some(_)) => match self.place(&self.last_visit())? {
                Some(last) => Some(last),
                None => self.place(&self.place_name(&self.root))?,
            },
        };
        let started = self.control.start(&Start {
            atlases: self.atlases.to_vec(),
            goal: entering.objective.clone(),
            key: None,
        })?;
        let changed = match &last {
            Some(last) => !self.control.has_rules(&last.session_id, &engine)?,
            None => false,
        };
        let before = place.map(|it| it.session_id);
        let visitor = entering.visitor.as_ref();
        let session = self.move_to(&id, before, last, started.session_id, changed, visitor)?;
        Ok((session, Some(started.judgement.resolution)))
    }

    /// What names the session of a proposal: the directory, or a client's own session in it.
    fn place_of(&self, entering: &Entering) -> String {
        let root = self.place_name(&self.root);
        match &entering.visitor {
            None => root,
            Some(visitor) => format!("client:{}/{}:{root}", visitor.client, visitor.session),
        }
    }

    /// A client that takes up its session again is another process.
    fn note_process(&self, place: &Place, visitor: Option<&Visitor>) -> Result<(), ControlError> {
        let process = self.process_of(visitor);
        if process.is_none() || process == place.process {
            return Ok(());
        }
        let place = Place {
            process,
            ..place.clone()
        };
        self.control.trail.write(Durability::Async, |writing| {
            match kept::get::<Place>(writing.sql(), &place.workspace)? {
                Some(there) if there.session_id == place.session_id => kept::put(writing, &place),
                _ => Ok(()),
            }
        })
    }

    /// The process of a client on this machine.
    fn process_of(&self, visitor: Option<&Visitor>) -> Option<(u32, u64)> {
        let visitor = visitor.filter(|_| self.site.is_none());
        visitor.map(|visitor| visitor.process)
    }

    /// What names the session of the last client that was new here.
    fn last_visit(&self) -> String {
        last_visit_id(&self.place_name(&self.root))
    }

    /// Begins a session for an agent that is started now.
    pub(super) fn begin(&self, objective: Option<String>) -> Result<SessionId, ControlError> {
        let started = self.control.start(&Start {
            atlases: self.atlases.to_vec(),
            goal: objective,
            key: None,
        })?;
        Ok(started.session_id)
    }

    /// A session is judged under everything that the workspace is judged under, or it is not
    /// for this workspace: whoever begins sessions must not choose the rules by that.
    pub(super) fn refuse_weaker(&self, session: &SessionId) -> Result<(), ControlError> {
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

    /// Whether the workspace lies in another one that is known or has rules, and so could have
    /// been made by whoever works there.
    pub(super) fn is_nested(&self, sql: &mut dyn Sql) -> Result<bool, ControlError> {
        let here = self.site.is_none();
        for above in Path::new(&self.root).ancestors().skip(1) {
            // What lies on another machine is not looked at.
            let has_rules = here && above.join("safepoint.yaml").is_file();
            if has_rules && !self.is_under_rules_of(above) {
                return Ok(true);
            }
            let Some(name) = above.to_str() else { continue };
            let name = self.place_name(name);
            for id in [name.clone(), format!("client:{name}")] {
                if kept::get::<Place>(sql, &id)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether all that it is judged under lies there, and not in the workspace.
    fn is_under_rules_of(&self, above: &Path) -> bool {
        let root = Path::new(&self.root);
        let beside = |atlas: &AtlasFile| {
            let place = std::fs::canonicalize(&atlas.path);
            place.is_ok_and(|place| place.starts_with(above) && !place.starts_with(root))
        };
        !self.atlases.is_empty() && self.atlases.iter().all(beside)
    }

    /// Makes `session` the one of the workspace.
    fn move_to(
        &self,
        id: &str,
        before: Option<SessionId>,
        last: Option<Place>,
        session: SessionId,
        changed: bool,
        visitor: Option<&Visitor>,
    ) -> Result<SessionId, ControlError> {
        let now = self.control.around.clock.now();
        let mut earlier: Vec<SessionId> = Vec::new();
        // What waits for a yes in another session of a client is not this one's.
        if let (Some(_), Some(last)) = (&before, &last) {
            earlier.push(last.session_id.clone());
            earlier.extend(last.earlier.iter().cloned());
            earlier.truncate(MOST_EARLIER);
        }
        let place = Place {
            format: 1,
            workspace: id.to_owned(),
            session_id: session.clone(),
            earlier,
            process: self.process_of(visitor),
            time: now,
        };
        self.control.trail.write(Durability::Async, |writing| {
            // Two that begin at once work in one session, or the same wish would wait twice.
            let there: Option<Place> = kept::get(writing.sql(), &place.workspace)?;
            if there.map(|it| it.session_id) != before {
                return Err(ControlError::Meanwhile("another session was begun here"));
            }
            // What an operator widened was widened under other rules: it ends with them. And
            // whoever can write the rules must not get past them so: somebody looks first.
            if last.is_none() && self.is_nested(writing.sql())? {
                let standing = Standing {
                    rules_changed: true,
                    ..Standing::new(session.clone(), now)
                };
                kept::put(writing, &standing)?;
            }
            if let Some(last) = &last {
                let old = last.session_id.clone();
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
            if let Some(visitor) = visitor {
                let home = Home {
                    format: 1,
                    visitor: self.place_name(&home_id(&visitor.client, &visitor.session)),
                    workspace: self.root.clone(),
                    time: now,
                };
                if kept::get::<Home>(writing.sql(), &home.visitor)?.is_none() {
                    kept::put(writing, &home)?;
                }
                let last = Place {
                    workspace: self.last_visit(),
                    ..place.clone()
                };
                kept::put(writing, &last)?;
            }
            kept::put(writing, &place)
        })?;
        Ok(session)
    }

    fn place(&self, id: &str) -> Result<Option<Place>, ControlError> {
        let store = self.control.trail.store();
        store.read(|sql| kept::get(sql, id))
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
        let id = self.place_name(&self.root);
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

    /// What has stopped everything here, until an operator acts. Another session in the same
    /// place is no way around it.
    pub(super) fn halt(
        &self,
        sql: &mut dyn Sql,
        form: &Form,
        standing: &Standing,
        now: Timestamp,
    ) -> Result<Option<HoldId>, ControlError> {
        let here = self.standing_of_place(sql, now)?;
        for id in [&standing.halted_by, &here.halted_by].into_iter().flatten() {
            let hold: Option<Hold> = kept::get(sql, id.as_str())?;
            if hold.is_none_or(|hold| hold.state == HoldState::Halted) {
                return Ok(Some(id.clone()));
            }
        }
        let stops = |hold: &Hold| {
            let same = hold.canonical.workspace == form.canonical.workspace;
            // A request happens in no directory: it stops its own session alone.
            hold.state == HoldState::Halted && same && !form.is_request()
        };
        let stopping = kept::open_if(sql, stops)?;
        Ok(stopping.into_iter().next().map(|hold| hold.hold_id))
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
        let places: Vec<Place> = kept::about(sql, session.as_str())?;
        let mut all = vec![session.clone()];
        all.extend(places.into_iter().flat_map(|place| place.earlier));
        Ok(all)
    }

    /// The session in which a rehearsal is judged: the one there is, or one that would begin.
    pub(super) fn session_for_rehearsal(
        &self,
        entering: &Entering,
    ) -> Result<Rehearsal, ControlError> {
        let now = self.control.around.clock.now();
        let engine = self.engine()?;
        let place = self.place(&self.place_of(entering))?;
        let known = match (&entering.session, place) {
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
