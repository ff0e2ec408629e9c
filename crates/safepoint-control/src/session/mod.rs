//! Sessions: begun, continued by any process, and ended.
//!
//! A step is one transaction: the session is read, judged, and written back
//! with its entries in the trail. Two processes that act at once act one after
//! the other. A steward's service is asked outside the transaction; its answer
//! is a fact of the next attempt.

mod access;
mod several;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use safepoint_gates::{
    Answers, Engine, Event, Facts, Judgement, Loaded, Refusal, Resolution, Session, Verdict,
};
use safepoint_model::{ActionId, Clock, Entropy, HoldId, SessionId, Timestamp};
use safepoint_store::{Durability, Sql};
use safepoint_trail::{Actor, Draft, Kind, Stream, Trail, Writing};
use serde_json::{Value, json};

use crate::callback::Caller;
use crate::notice;
use crate::{AtlasFile, COMPONENT, ControlError, Signature, atlas};
pub(crate) use several::ByPolicy;
use table::Sources;
pub(crate) use table::allow_request;

/// How often stewards' services are asked for one step before giving up.
const MOST_ROUNDS: usize = 8;

/// Everything sessions need besides a trail.
pub struct Surroundings {
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Random bytes.
    pub entropy: Arc<dyn Entropy>,
    /// Who does it.
    pub actor: Actor,
    /// Who asks stewards' services.
    pub caller: Box<dyn Caller + Send + Sync>,
}

/// The sessions of one store.
pub struct Control {
    pub(crate) trail: Trail,
    pub(crate) around: Surroundings,
}

/// How a session begins.
#[derive(Debug)]
pub struct Start {
    /// The atlases it is judged under.
    pub atlases: Vec<AtlasFile>,
    /// What it is for.
    pub goal: Option<String>,
    /// The key that the caller shows.
    pub key: Option<String>,
}

/// A session that has begun.
#[derive(Debug)]
pub struct Started {
    /// Its name.
    pub session_id: SessionId,
    /// What comes first.
    pub judgement: Judgement,
}

/// A session and how it stands.
#[derive(Debug)]
pub struct Overview {
    /// All that is remembered of it.
    pub session: Session,
    /// What it may do now.
    pub resolution: Resolution,
}

/// What kept a transaction from being made.
enum Stopped {
    Failed(ControlError),
    /// These services must be asked first.
    Ask(Vec<safepoint_gates::Callback>),
}

impl<E: Into<ControlError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Control {
    /// Opens the sessions of a store.
    pub fn open(trail: Trail, around: Surroundings) -> Result<Self, ControlError> {
        trail.store().migrate(&COMPONENT)?;
        Ok(Self { trail, around })
    }

    /// The trail that tells of them.
    pub fn trail(&self) -> &Trail {
        &self.trail
    }

    /// Begins a session.
    pub fn start(&self, start: &Start) -> Result<Started, ControlError> {
        let principal = access::principal(start, &self.around.actor)?;
        let engine = engine(start.atlases.iter().map(AtlasFile::loaded).collect())?;
        let now = self.around.clock.now();
        let session = Session::new(
            SessionId::generate(&*self.around.entropy)?,
            principal,
            start.goal.clone(),
            engine.pinned(),
            now,
        );
        let sources = Sources {
            paths: start
                .atlases
                .iter()
                .map(|atlas| atlas.path.clone())
                .collect(),
        };
        let judgement = self.asking(|callbacks, time| {
            self.trail.write(Durability::Async, |writing| {
                self.check_stewards(writing, start, now)?;
                access::count_session(writing.sql(), start, &session, now)?;
                let facts = self.facts(now, HashMap::new(), callbacks, time)?;
                let judgement = judge(&engine, &session, &Event::Start, &facts)?;
                for atlas in &start.atlases {
                    atlas::keep(writing.sql(), atlas)?;
                }
                table::insert(writing.sql(), &judgement.session, &sources)?;
                self.write_down(writing, &judgement, &sources)?;
                Ok(judgement)
            })
        })?;
        Ok(Started {
            session_id: session.session_id,
            judgement,
        })
    }

    /// Takes one step of a session.
    pub fn step(&self, id: &SessionId, event: &Event) -> Result<Judgement, ControlError> {
        let (judgement, ()) = self.step_with(id, event, |_, _| Ok(None), |_, _, _| Ok(()))?;
        Ok(judgement)
    }

    /// The same. `known` names the request under which the same was asked before, and `settle`
    /// writes what follows, and may change the judgement by it.
    pub(crate) fn step_with<T>(
        &self,
        id: &SessionId,
        event: &Event,
        known: impl Fn(&mut dyn Sql, &Judgement) -> Result<Option<ActionId>, ControlError>,
        mut settle: impl FnMut(&mut Writing<'_>, &mut Judgement, Timestamp) -> Result<T, ControlError>,
    ) -> Result<(Judgement, T), ControlError> {
        let (session, sources) = self.trail.store().read(|sql| table::read(sql, id))?;
        let engine = match event {
            // Ending opens nothing, and must be possible whatever has become of the file.
            Event::End { .. } => self.engine_of(&session, &Sources::default())?,
            _ => self.engine_of(&session, &sources)?,
        };
        let rates = match event {
            Event::Request(request) => engine.rates(&request.action),
            _ => Vec::new(),
        };
        let must_be_durable = |(judgement, _): &(Judgement, T)| judgement.sync;
        let stepped = self.asking_for(must_be_durable, |callbacks, time| {
            self.trail.write(Durability::Async, |writing| {
                let (session, sources) = table::read(writing.sql(), id)?;
                let now = self.around.clock.now().max(session.latest);
                if let Event::Report { request_id, .. } = event {
                    // Once more: somebody else may have reported it meanwhile.
                    table::reportable(writing.sql(), id, request_id)?;
                }
                let principal = session.principal.as_str();
                let uses = table::uses(writing.sql(), &rates, principal, now)?;
                let mut facts = self.facts(now, uses, callbacks, time)?;
                let mut judgement = judge(&engine, &session, event, &facts)?;
                if let Some(request_id) = known(writing.sql(), &judgement)? {
                    facts.request_id = request_id;
                    judgement = judge(&engine, &session, event, &facts)?;
                }
                self.write_records(writing, &judgement)?;
                let settled = settle(writing, &mut judgement, now)?;
                if judgement.session.ended.is_some() {
                    self.close_holds(writing, id)?;
                }
                table::update(writing.sql(), &judgement.session)?;
                table::use_up(writing.sql(), &rates, &judgement.uses, principal, now)?;
                keep_what_was_asked(writing, &judgement, event, now)?;
                self.write_state(writing, &judgement, &sources)?;
                Ok((judgement, settled))
            })
        });
        if let Err(ControlError::Refused(refusal)) = &stepped {
            self.record_refusal(id, event, refusal)?;
        }
        stepped
    }

    /// Takes the step of a request that has ended.
    pub fn report(
        &self,
        id: &SessionId,
        request_id: &ActionId,
        outcome: safepoint_gates::Outcome,
        result: Option<Value>,
    ) -> Result<Judgement, ControlError> {
        let kept = self
            .trail
            .store()
            .read(|sql| table::reportable(sql, id, request_id))?;
        let event = Event::Report {
            request_id: request_id.clone(),
            action: kept.action,
            outcome,
            result,
        };
        self.step(id, &event)
    }

    /// How a session stands.
    pub fn show(&self, id: &SessionId) -> Result<Overview, ControlError> {
        let (session, sources) = self.trail.store().read(|sql| table::read(sql, id))?;
        let engine = self.engine_of(&session, &sources)?;
        let facts = self.facts(self.around.clock.now(), HashMap::new(), &Answers::new(), 0)?;
        let resolution = engine.show(&session, &facts);
        Ok(Overview {
            session,
            resolution,
        })
    }

    /// Sessions, the newest first.
    pub fn sessions(&self, most: u32) -> Result<Vec<Session>, ControlError> {
        self.trail.store().read(|sql| table::list(sql, most))
    }

    /// Those in which one principal acts, the newest first.
    pub fn sessions_of(&self, principal: &str, most: u32) -> Result<Vec<Session>, ControlError> {
        let mut sessions = self.trail.store().read(|sql| table::list(sql, u32::MAX))?;
        sessions.retain(|session| session.principal == principal);
        sessions.truncate(most as usize);
        Ok(sessions)
    }

    /// Who acts in a session; `None` when there is none of this name.
    pub fn principal_of(&self, id: &SessionId) -> Result<Option<String>, ControlError> {
        match self.trail.store().read(|sql| table::read(sql, id)) {
            Ok((session, _)) => Ok(Some(session.principal)),
            Err(ControlError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The session in which a request was made.
    pub(crate) fn session_of_request(
        &self,
        id: &ActionId,
    ) -> Result<Option<SessionId>, ControlError> {
        let store = self.trail.store();
        store.read(|sql| table::session_of_request(sql, id))
    }

    /// The session whose id begins with `prefix`.
    pub fn find(&self, prefix: &str) -> Result<SessionId, ControlError> {
        self.trail.store().read(|sql| table::find(sql, prefix))
    }

    /// The engine a session is pinned to. An atlas that has changed since is refused, not reloaded.
    pub(crate) fn engine_of(
        &self,
        session: &Session,
        sources: &Sources,
    ) -> Result<Engine, ControlError> {
        let mut loaded = Vec::new();
        for pin in &session.atlases {
            let atlas = self
                .trail
                .store()
                .read(|sql| atlas::fetch(sql, pin.digest))?;
            loaded.push(atlas);
        }
        for (atlas, path) in loaded.iter().zip(&sources.paths) {
            let now = AtlasFile::digest_now(path, atlas)?;
            if now.is_some_and(|now| now != atlas.digest) {
                let error = ControlError::AtlasChanged { path: path.clone() };
                let body = json!({"atlas_id": atlas.manifest.atlas_id, "pinned": atlas.digest, "found": now});
                self.record_alone(&session.session_id, "AtlasRefused", body)?;
                return Err(error);
            }
        }
        engine(loaded)
    }

    /// The atlases a session is pinned to, whatever has become of their files.
    pub(crate) fn atlases_of(&self, id: &SessionId) -> Result<Vec<Loaded>, ControlError> {
        self.trail.store().read(|sql| {
            let (session, _) = table::read(sql, id)?;
            let pins = session.atlases.iter();
            pins.map(|pin| atlas::fetch(sql, pin.digest)).collect()
        })
    }

    /// Tries until no steward's service has to be asked any more, and makes it durable if it must be.
    fn asking(
        &self,
        attempt: impl FnMut(&Answers, u64) -> Result<Judgement, Stopped>,
    ) -> Result<Judgement, ControlError> {
        self.asking_for(|judgement: &Judgement| judgement.sync, attempt)
    }

    /// The same for whatever holds a judgement.
    fn asking_for<T>(
        &self,
        must_be_durable: impl Fn(&T) -> bool,
        mut attempt: impl FnMut(&Answers, u64) -> Result<T, Stopped>,
    ) -> Result<T, ControlError> {
        let mut callbacks = Answers::new();
        let mut time = 0;
        for _ in 0..MOST_ROUNDS {
            match attempt(&callbacks, time) {
                Ok(done) => {
                    if must_be_durable(&done) {
                        self.trail.flush()?;
                    }
                    return Ok(done);
                }
                Err(Stopped::Failed(error)) => return Err(error),
                Err(Stopped::Ask(wanted)) => {
                    for callback in wanted {
                        let began = self.around.clock.now();
                        let said = self.around.caller.call(&callback);
                        let took = self.around.clock.now().as_micros() - began.as_micros();
                        time += u64::try_from(took).unwrap_or(0) / 1_000;
                        callbacks.insert(callback.key, said);
                    }
                }
            }
        }
        Err(ControlError::Endless(MOST_ROUNDS))
    }

    fn facts(
        &self,
        now: Timestamp,
        uses: HashMap<String, u64>,
        callbacks: &Answers,
        callback_time: u64,
    ) -> Result<Facts, ControlError> {
        Ok(Facts {
            now,
            hold_id: HoldId::generate(&*self.around.entropy)?,
            request_id: ActionId::generate(&*self.around.entropy)?,
            uses,
            callbacks: callbacks.clone(),
            callback_time,
        })
    }

    /// An atlas that was signed once is signed by the same key for ever.
    fn check_stewards(
        &self,
        writing: &mut Writing<'_>,
        start: &Start,
        now: Timestamp,
    ) -> Result<(), ControlError> {
        for atlas in &start.atlases {
            let atlas_id = &atlas.manifest.atlas_id;
            let known = atlas::known_steward(writing.sql(), atlas_id)?;
            let refused = |reason: &str| ControlError::Signature {
                path: atlas.path.clone(),
                reason: reason.to_owned(),
            };
            match (known, &atlas.signature) {
                (None, Signature::None) => {}
                (None, Signature::By(key)) => {
                    atlas::trust_steward(writing.sql(), atlas_id, key, now)?;
                }
                (Some(_), Signature::None) => {
                    return Err(refused("it was signed before, and is not now"));
                }
                (Some(known), Signature::By(key)) if known == *key => {}
                (Some(_), Signature::By(_)) => {
                    return Err(refused("it was signed by another key before"));
                }
            }
        }
        Ok(())
    }

    /// Writes what a step brought to the trail, and what stewards are told beside it.
    fn write_down(
        &self,
        writing: &mut Writing<'_>,
        judgement: &Judgement,
        sources: &Sources,
    ) -> Result<(), ControlError> {
        self.write_records(writing, judgement)?;
        self.write_state(writing, judgement, sources)
    }

    /// Writes what happened in a step to the trail.
    fn write_records(
        &self,
        writing: &mut Writing<'_>,
        judgement: &Judgement,
    ) -> Result<(), ControlError> {
        let session = &judgement.session.session_id;
        for record in &judgement.records {
            writing.append(Draft {
                stream: Stream::from(session),
                actor: self.around.actor.clone(),
                kind: Kind::fixed(record.kind).into(),
                action_id: judgement.request_id.clone(),
                body: record.body.clone(),
            })?;
        }
        Ok(())
    }

    /// Writes what the session is after a step, and what stewards are told.
    fn write_state(
        &self,
        writing: &mut Writing<'_>,
        judgement: &Judgement,
        sources: &Sources,
    ) -> Result<(), ControlError> {
        let session = &judgement.session.session_id;
        let state = table::state_entry(&judgement.session, sources)?;
        writing.append(Draft {
            stream: Stream::from(session),
            actor: Actor::safepoint(),
            kind: Kind::fixed(table::STATE).into(),
            action_id: None,
            body: json!(state),
        })?;
        notice::enqueue(
            writing.sql(),
            session,
            &judgement.notices,
            &self.trail,
            &self.around,
        )
    }

    /// What was refused is recorded, although nothing has changed.
    fn record_refusal(
        &self,
        id: &SessionId,
        event: &Event,
        refusal: &Refusal,
    ) -> Result<(), ControlError> {
        let reason = refusal.to_string();
        match event {
            Event::Answer { gate, answers, .. } => self.record_alone(
                id,
                "CheckpointResponse",
                json!({
                    "checkpoint_id": gate,
                    "answers": answers,
                    "validation_result": "refused",
                    "reason": reason,
                }),
            ),
            _ => self.record_alone(id, "EventRefused", json!({"reason": reason})),
        }
    }

    fn record_alone(
        &self,
        id: &SessionId,
        kind: &'static str,
        body: Value,
    ) -> Result<(), ControlError> {
        let draft = Draft {
            stream: Stream::from(id),
            actor: self.around.actor.clone(),
            kind: Kind::fixed(kind).into(),
            action_id: None,
            body,
        };
        self.trail.append(draft, Durability::Async)?;
        Ok(())
    }
}

/// Makes atlases ready.
pub(crate) fn engine(loaded: Vec<Loaded>) -> Result<Engine, ControlError> {
    let name = loaded
        .first()
        .map_or_else(String::new, |atlas| atlas.manifest.atlas_id.clone());
    Engine::new(loaded).map_err(|problems| ControlError::Atlas {
        path: name.into(),
        text: String::new(),
        problems,
    })
}

fn judge(
    engine: &Engine,
    session: &Session,
    event: &Event,
    facts: &Facts,
) -> Result<Judgement, Stopped> {
    match engine.judge(session, event, facts)? {
        Verdict::Judged(judgement) => Ok(*judgement),
        Verdict::Ask(wanted) => Err(Stopped::Ask(wanted)),
    }
}

/// Keeps the request that a step was about, so that its outcome can be reported.
fn keep_what_was_asked(
    writing: &mut Writing<'_>,
    judgement: &Judgement,
    event: &Event,
    now: Timestamp,
) -> Result<(), ControlError> {
    let Some(id) = &judgement.request_id else {
        return Ok(());
    };
    match event {
        Event::Request(request) => {
            table::keep_request(writing.sql(), judgement, id, &request.action, now)?;
        }
        Event::Answer { .. } => {
            let kept = table::request(writing.sql(), &judgement.session.session_id, id)?;
            if let Some(kept) = kept {
                table::keep_request(writing.sql(), judgement, id, &kept.action, now)?;
            }
        }
        Event::Report { outcome, .. } => table::keep_outcome(writing.sql(), id, *outcome)?,
        _ => {}
    }
    Ok(())
}
