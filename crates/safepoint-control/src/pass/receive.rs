//! The control plane's half of the passage, for a machine elsewhere.
//!
//! What the machine says it saw is believed, as it would be here. What follows from it is
//! not: the fingerprint, what is forbidden, whom to trust and what applies are found out
//! here. Whoever asks is known by its token, and acts in sessions of its own alone.

use std::collections::BTreeSet;

use safepoint_authority::{Canonical, Hold, HoldState};
use safepoint_gates::{Condition, Request};
use safepoint_model::{ActionId, HoldId, SessionId, Span};
use safepoint_store::Durability;
use safepoint_trail::{Draft, Kind, Stream};
use serde_json::json;

use super::Bench;
use super::asked::{
    Asked, Entered, Entering, FORMAT, Foretold, Heard, MOST_CHANGES, Settlement, Told,
};
use super::bench::Under;
use super::documents::Running;
use super::guarded::CONTROL;
use super::see::Form;
use super::silence::standing;
use crate::{ControlError, kept};

/// How long a machine may take to say how something ended.
const LONGEST: &str = "24h";

/// How something can have ended.
const OUTCOMES: [&str; 4] = ["ok", "error", "unknown", "not_run"];

impl Bench<'_> {
    /// In which session something is judged, and under what.
    pub fn receive(&self, entering: &Entering) -> Result<Entered, ControlError> {
        self.check_version(entering.format)?;
        self.give_up_on_silent()?;
        if let Some(session) = &entering.session {
            self.refuse_others(session)?;
        }
        let (session, resolution) = match entering.anew {
            true => (self.begin(entering.objective.clone())?, None),
            false => self.enter(entering)?,
        };
        let action_id = match &entering.wish {
            Some(wish) => Some(self.action_of(wish, &session, None)?),
            None => None,
        };
        let (kept, _) = self.control.session(&session)?;
        let under = Under::of(&kept);
        Ok(Entered {
            session_id: session,
            atlases: under.atlases,
            policy_version: under.policy_version,
            action_id,
            resolution,
        })
    }

    /// Whether something may be done.
    pub fn propose(&self, asked: &Asked) -> Result<Settlement, ControlError> {
        let canonical = &asked.canonical;
        let session = &canonical.session_id;
        self.check_version(asked.format)?;
        self.refuse_others(session)?;
        self.refuse_weaker(session)?;
        let (kept, _) = self.control.session(session)?;
        if Under::of(&kept) != Under::of_form(canonical) {
            return Err(refused("it names other rules than those of its session"));
        }
        self.refuse_used(session, &asked.action_id)?;
        let form = self.form_of(asked, canonical.clone())?;
        self.judge(&form, &asked.wants, &asked.action_id)
    }

    /// What would be said to something.
    pub fn foretell(&self, entering: &Entering, asked: &Asked) -> Result<Foretold, ControlError> {
        self.check_version(asked.format)?;
        if let Some(session) = &entering.session {
            self.refuse_others(session)?;
        }
        let rehearsal = self.session_for_rehearsal(entering)?;
        let under = Under::of(&rehearsal.session);
        let canonical = Canonical {
            session_id: under.session_id,
            atlases: under.atlases,
            policy_version: under.policy_version,
            ..asked.canonical.clone()
        };
        let form = self.form_of(asked, canonical)?;
        let (denial, resolution) = self.rehearse_form(&asked.wants, &form, &rehearsal)?;
        Ok(Foretold {
            denial,
            canonical: form.canonical,
            resolution,
        })
    }

    /// How something ended. Told twice, it is written once.
    pub fn ended(&self, told: &Told) -> Result<Heard, ControlError> {
        self.check_version(told.format)?;
        self.refuse_others(&told.session_id)?;
        if !OUTCOMES.contains(&told.outcome.as_str()) {
            return Err(refused("that is not how something ends"));
        }
        if told.changes.len() > MOST_CHANGES {
            return Err(refused("it names too many changes"));
        }
        let mut body = told.body.clone();
        if let Some(fields) = body.as_object_mut() {
            fields.insert("changed".to_owned(), json!(told.changed));
            fields.insert("changes".to_owned(), json!(told.changes));
        }
        let recorded = self.control.trail.write(Durability::Sync, |writing| {
            let running = self.of_site(writing.sql(), told)?;
            if running.ended {
                return Ok(false);
            }
            if told.chooses_code && running.permit_id.is_none() {
                self.notice(writing, &running.session_id)?;
            }
            self.end(writing, &running, &told.outcome, body)?;
            if let Some(remote) = &running.remote
                && told.outcome == "ok"
                && running.permit_id.is_some()
            {
                let policy = remote.policy_version;
                self.prove(writing, &remote.content, remote.trust_after, policy)?;
            }
            Ok::<bool, ControlError>(true)
        })?;
        let resolution = match (&told.report, recorded) {
            (Some(report), true) => {
                let (session, action) = (&told.session_id, &told.action_id);
                let (outcome, result) = (report.outcome(), report.result.clone());
                match self.control.report(session, action, outcome, result) {
                    Ok(judgement) => Some(judgement.resolution),
                    Err(error @ (ControlError::Store(_) | ControlError::Trail(_))) => {
                        return Err(error);
                    }
                    // It has ended: a session that cannot be told does not undo that.
                    Err(_) => None,
                }
            }
            _ => None,
        };
        if !recorded {
            self.tell_late(told)?;
        }
        Ok(Heard {
            recorded,
            resolution,
        })
    }

    /// How one of the caller's holds stands.
    pub fn standing(&self, hold: &HoldId) -> Result<HoldState, ControlError> {
        let store = self.control.trail.store();
        let found: Option<Hold> = store.read(|sql| kept::get(sql, hold.as_str()))?;
        let unknown = || ControlError::NotFound {
            what: "hold",
            name: hold.to_string(),
        };
        let found = found.ok_or_else(unknown)?;
        self.refuse_others(&found.canonical.session_id)
            .map_err(|_| unknown())?;
        Ok(standing(&found, self.now()))
    }

    /// Ends what machines have been silent about for too long.
    pub fn give_up_on_silent(&self) -> Result<(), ControlError> {
        let now = self.now();
        let store = self.control.trail.store();
        let longest: Span = LONGEST
            .parse()
            .map_err(|_| refused("the longest silence is no time"))?;
        let silent = |it: &Running| {
            let over = longest.after(it.time).is_some_and(|end| end <= now);
            !it.is_here() && over
        };
        for running in store.read(|sql| kept::open_if(sql, silent))? {
            self.control.trail.write(Durability::Sync, |writing| {
                let still: Option<Running> = kept::get(writing.sql(), running.action_id.as_str())?;
                match still {
                    Some(still) if !still.ended => {
                        let why = "its machine has not said how it ended";
                        self.end(writing, &still, "unknown", json!({"why": why}))
                    }
                    _ => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// What a machine says once it is known that nobody knows: it changes nothing, and is kept.
    fn tell_late(&self, told: &Told) -> Result<(), ControlError> {
        self.control.trail.write(Durability::Sync, |writing| {
            let running = self.of_site(writing.sql(), told)?;
            let known = running.outcome.as_deref();
            let late = known == Some("unknown") && told.outcome != "unknown";
            if late {
                kept::put(
                    writing,
                    &Running {
                        outcome: Some(told.outcome.clone()),
                        ..running
                    },
                )?;
                writing.append(Draft {
                    stream: Stream::from(&told.session_id),
                    actor: self.control.around.actor.clone(),
                    kind: Kind::fixed("action_told_late").into(),
                    action_id: Some(told.action_id.clone()),
                    body: json!({"outcome": told.outcome, "changed": told.changed}),
                })?;
            }
            Ok(())
        })
    }

    /// The action that a machine speaks of, if it is its own.
    fn of_site(
        &self,
        sql: &mut dyn safepoint_store::Sql,
        told: &Told,
    ) -> Result<Running, ControlError> {
        let running: Option<Running> = kept::get(sql, told.action_id.as_str())?;
        let mine = |running: &Running| {
            let site = running.remote.as_ref().map(|remote| &remote.site);
            site.is_some() && site == self.site.as_ref() && running.session_id == told.session_id
        };
        running.filter(mine).ok_or_else(|| ControlError::NotFound {
            what: "action",
            name: told.action_id.to_string(),
        })
    }

    /// What a machine says it saw, with what follows from it.
    fn form_of(&self, asked: &Asked, canonical: Canonical) -> Result<Form, ControlError> {
        if canonical.schema != Canonical::SCHEMA {
            return Err(refused("the form of the action is of another version"));
        }
        if canonical.workspace.path != self.root {
            return Err(refused("it names another directory"));
        }
        let named: BTreeSet<&String> = asked.requests.iter().map(|it| &it.action).collect();
        let once = named.len() == asked.requests.len();
        if !once || named != canonical.actions.iter().collect() {
            return Err(refused("what it comes to is not what is to be judged"));
        }
        let tool = &canonical.tool;
        let trust = self.trust_of(tool, canonical.provider.as_deref())?;
        let trusted = self.is_tool_trusted(tool, &trust);
        let mut requests: Vec<Request> = asked.requests.iter().cloned().map(Into::into).collect();
        for request in &mut requests {
            request.conditions.remove(&Condition::Trusted);
            if trusted {
                request.conditions.insert(Condition::Trusted);
            }
        }
        Ok(Form {
            fingerprint: canonical.fingerprint()?,
            coverage: asked.coverage.clone(),
            requests,
            forbidden: canonical.actions.contains(CONTROL),
            shell_line: None,
            line: None,
            claims: asked.claims.clone(),
            checkpoint_hash: asked.checkpoint_hash,
            canonical,
            trust,
        })
    }

    /// A session of somebody else is not there.
    fn refuse_others(&self, session: &SessionId) -> Result<(), ControlError> {
        let owner = self.control.principal_of(session)?;
        match owner.is_some_and(|owner| owner == self.control.around.actor.to_string()) {
            true => Ok(()),
            false => Err(ControlError::NotFound {
                what: "session",
                name: session.to_string(),
            }),
        }
    }

    /// An action of another session is not this one's.
    fn refuse_used(&self, session: &SessionId, action: &ActionId) -> Result<(), ControlError> {
        let known = self.control.session_of_request(action)?;
        let mine = self.lineage(session)?;
        match known.is_none_or(|known| mine.contains(&known)) {
            true => Ok(()),
            false => Err(refused("the action is one of another session")),
        }
    }

    fn check_version(&self, format: u32) -> Result<(), ControlError> {
        match format == FORMAT && self.site.is_some() {
            true => Ok(()),
            false => Err(refused("it is written in a version that is not known here")),
        }
    }
}

fn refused(reason: &str) -> ControlError {
    ControlError::Proposal {
        reason: reason.to_owned(),
    }
}
