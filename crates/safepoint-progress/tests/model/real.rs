//! The real thing: what is done to it, here or in a process that is killed, and what it is then.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use safepoint_model::{Clock, WorkspaceId};
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{Beginning, Given, Progress, ProgressError};
use safepoint_store::{Blobs, Flow, Options, Store};
use safepoint_trail::{Actor, LostStore, Query, Stream, Surroundings, Trail, TrailError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use testkit::{FixedClock, Room, Seeded};

use crate::model::{Answer, CONFIDENCES, Model, SIGNALS, STATES};
use crate::step::{Ask, Kind, Token, Upon, What};

/// Names the variable that tells a process of its own what to do.
pub(crate) const ERRAND: &str = "SAFEPOINT_MODEL_ERRAND";

/// A call, with everything in it.
#[derive(Debug, Deserialize, Serialize)]
enum Call {
    Root {
        directive: bool,
    },
    Below {
        parent: String,
        role: String,
        directive: bool,
    },
    Record {
        id: String,
        token: String,
        body: String,
        key: Option<String>,
    },
    Emit {
        id: String,
        token: String,
        kind: String,
        reason: bool,
    },
    Move {
        id: String,
        to: String,
    },
    Migrate {
        id: String,
    },
}

#[derive(Debug, Deserialize, Serialize)]
struct Errand {
    address: String,
    directory: String,
    micros: i64,
    seed: u64,
    call: Call,
}

/// What came back.
#[derive(Debug, Deserialize, Serialize)]
struct Reply {
    answer: Answer,
    created: Option<(String, String)>,
}

/// One workspace, as its owner knows it.
struct Known {
    id: WorkspaceId,
    token: Option<String>,
    old: Vec<String>,
    /// The bytes that were sent under a key.
    sent: Vec<(u8, Ask, String)>,
}

pub(crate) struct Real<'a> {
    room: &'a Room,
    progress: Progress,
    seed: u64,
    known: Vec<Known>,
    unanswered: Option<(usize, u8, Ask, String)>,
}

fn open(room: &Room, seed: u64) -> Progress {
    Progress::open(
        room.trail(),
        room.clock.clone(),
        Arc::new(Seeded::new(seed)),
    )
    .unwrap()
}

fn ada() -> Actor {
    "user:ada".parse().unwrap()
}

fn given(directive: bool) -> Given<'static> {
    Given {
        directive: directive.then_some("work"),
        ..Given::default()
    }
}

impl<'a> Real<'a> {
    pub(crate) fn new(room: &'a Room) -> Self {
        Self {
            room,
            progress: open(room, 1),
            seed: 1,
            known: Vec::new(),
            unanswered: None,
        }
    }

    /// Does a step here.
    pub(crate) fn perform(&mut self, what: &What) -> Answer {
        match what {
            What::Clock { micros } => {
                self.room.clock.move_by(*micros);
                return "done".to_owned();
            }
            What::Reopen => {
                self.seed += 1;
                self.progress = open(self.room, self.seed);
                return "done".to_owned();
            }
            _ => {}
        }
        let Some(call) = self.call(what) else {
            return "nothing there".to_owned();
        };
        let reply = perform(&self.progress, &call);
        self.learn(what, &reply);
        reply.answer
    }

    /// Does a step in a process that is killed at `point`; the answer, if it came so far.
    pub(crate) fn perform_and_die(&mut self, what: &What, point: &str) -> Option<Answer> {
        if matches!(what, What::Clock { .. } | What::Reopen) {
            return Some(self.perform(what));
        }
        let Some(call) = self.call(what) else {
            return Some("nothing there".to_owned());
        };
        self.seed += 1;
        let errand = Errand {
            address: self.room.address(),
            directory: self.room.path().display().to_string(),
            micros: self.room.clock.now().as_micros(),
            seed: self.seed.wrapping_mul(0x1000),
            call,
        };
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "one_step_in_a_process_of_its_own", "--nocapture"])
            .env(ERRAND, serde_json::to_string(&errand).unwrap())
            .env("SAFEPOINT_FAULT", point)
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let reply = text
            .lines()
            .find_map(|line| serde_json::from_str::<Reply>(line.split_once("reply: ")?.1).ok());
        // What was cut off is taken up by whoever comes next.
        self.seed += 1;
        self.progress = open(self.room, self.seed);
        self.progress.recover().unwrap();
        if let Some(reply) = &reply {
            self.learn(what, reply);
        }
        reply.map(|reply| reply.answer)
    }

    fn call(&mut self, what: &What) -> Option<Call> {
        self.unanswered = None;
        if let What::Root { directive } = what {
            return Some(Call::Root {
                directive: *directive,
            });
        }
        let count = self.known.len();
        if count == 0 {
            return None;
        }
        let id = |number: usize| self.known[number % count].id.to_string();
        Some(match what {
            What::Below {
                parent,
                observer,
                directive,
            } => Call::Below {
                parent: id(*parent),
                role: if *observer { "observer" } else { "worker" }.to_owned(),
                directive: *directive,
            },
            What::Record { space, token, ask } => {
                let (id, token) = (id(*space), self.token(space % count, *token));
                let body = self.body(space % count, ask);
                if let Some(key) = ask.key {
                    self.unanswered = Some((space % count, key, ask.clone(), body.clone()));
                }
                let key = ask.key.map(|key| format!("key-{key}"));
                Call::Record {
                    id,
                    token,
                    body,
                    key,
                }
            }
            What::Emit {
                space,
                token,
                kind,
                reason,
            } => Call::Emit {
                id: id(*space),
                token: self.token(space % count, *token),
                kind: SIGNALS[*kind].to_owned(),
                reason: *reason,
            },
            What::Move { space, to } => Call::Move {
                id: id(*space),
                to: STATES[*to].to_owned(),
            },
            What::Migrate { space } => Call::Migrate { id: id(*space) },
            What::Root { .. } | What::Clock { .. } | What::Reopen => return None,
        })
    }

    fn token(&self, number: usize, token: Token) -> String {
        let known = &self.known[number];
        let present = || known.token.clone().unwrap_or_default();
        match token {
            Token::Right => present(),
            Token::Old => known.old.last().cloned().unwrap_or_else(present),
            Token::Wrong => "wst_nobody".to_owned(),
        }
    }

    /// The bytes of a request: the same again for the same under one key.
    fn body(&self, number: usize, ask: &Ask) -> String {
        let known = &self.known[number];
        if let Some(key) = ask.key
            && let Some((.., body)) = known
                .sent
                .iter()
                .find(|(sent, was, _)| *sent == key && was == ask)
        {
            return body.clone();
        }
        let chain = self.progress.log(&known.id).unwrap();
        let observer = self.progress.workspace(&known.id).unwrap().role.as_str() == "observer";
        let parent = match ask.upon {
            Upon::Head => chain.last().map(|record| record.id.to_string()),
            Upon::Nothing => None,
            Upon::First => chain.first().map(|record| record.id.to_string()),
            Upon::Foreign => Some(self.foreign(number)),
        };
        let kind = match ask.kind {
            Kind::Fitting if observer => "observation",
            Kind::Fitting | Kind::Artifact => "artifact",
            Kind::Observation => "observation",
            Kind::Unknown => "unheard",
        };
        let mut body = json!({
            "type": kind,
            "payload": {"files_changed": ["a"], "content": format!("{ask:?}"), "artifacts": []},
            "intent": "because",
            "parent": parent,
            "status": if ask.is_final { "final" } else { "provisional" },
            "confidence": CONFIDENCES[ask.confidence],
        });
        if ask.broken {
            body["id"] = json!("chosen");
        }
        body.to_string()
    }

    /// A record of another workspace, or of none.
    fn foreign(&self, number: usize) -> String {
        let others = self
            .known
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != number);
        let head = |known: &Known| self.progress.head(&known.id).unwrap();
        let found = others.filter_map(|(_, known)| head(known)).next();
        found.map_or_else(
            || "nothing-like-it".to_owned(),
            |record| record.id.to_string(),
        )
    }

    fn learn(&mut self, what: &What, reply: &Reply) {
        if let Some((id, token)) = &reply.created {
            match what {
                What::Migrate { space } => {
                    let count = self.known.len();
                    let known = &mut self.known[space % count];
                    known.old.extend(known.token.replace(token.clone()));
                }
                _ => self
                    .known
                    .push(Known::new(id.parse().unwrap(), Some(token.clone()))),
            }
        }
        if let Some((number, key, ask, body)) = self.unanswered.take()
            && reply.answer.starts_with("record")
        {
            self.known[number].remember(key, ask, body);
        }
    }

    /// After a crash the model knows whether it was done; what is in it without our knowing is learnt.
    pub(crate) fn note_unanswered(&mut self, model: &Model) {
        for workspace in self.progress.workspaces().unwrap() {
            if !self
                .known
                .iter()
                .any(|known| known.id == workspace.workspace_id)
            {
                self.known.push(Known::new(workspace.workspace_id, None));
            }
        }
        for (known, space) in self.known.iter_mut().zip(&model.spaces) {
            if !space.is_known() {
                known.old.extend(known.token.take());
            }
        }
        if let Some((number, key, ask, body)) = self.unanswered.take()
            && model.spaces[number].has_key(key)
        {
            self.known[number].remember(key, ask, body);
        }
    }

    /// Whether this is not what the model says.
    pub(crate) fn differs_from(&self, model: &Model) -> bool {
        self.difference(model).is_some()
    }

    #[track_caller]
    pub(crate) fn agrees_with(&self, model: &Model) {
        assert_eq!(self.difference(model), None);
    }

    fn difference(&self, model: &Model) -> Option<String> {
        let mut found: Vec<WorkspaceId> = self.known.iter().map(|known| known.id.clone()).collect();
        for workspace in self.progress.workspaces().unwrap() {
            if !found.contains(&workspace.workspace_id) {
                found.push(workspace.workspace_id);
            }
        }
        if found.len() != model.spaces.len() {
            return Some(format!(
                "{} workspaces, and not {}",
                found.len(),
                model.spaces.len()
            ));
        }
        found.iter().zip(&model.spaces).find_map(|(id, space)| {
            let real = self.shown(id);
            let expected = space.shown(&found);
            (real != expected).then(|| format!("{id}:\n is {real}\n not {expected}"))
        })
    }

    /// Everything about one workspace, in the words of the model.
    fn shown(&self, id: &WorkspaceId) -> String {
        let workspace = self.progress.workspace(id).unwrap();
        let chain = self.progress.log(id).unwrap();
        let links: Vec<String> = chain
            .iter()
            .map(|record| format!("{} {} {}", record.kind, record.status, record.confidence))
            .collect();
        let newest_final = self.progress.newest_final(id).unwrap();
        let place = newest_final.map(|newest| chain.iter().position(|record| *record == newest));
        assert_eq!(self.progress.head(id).unwrap().as_ref(), chain.last());
        for pair in chain.windows(2) {
            assert_eq!(pair[1].parent.as_ref(), Some(&pair[0].id));
            assert!(pair[0].id < pair[1].id && pair[0].timestamp < pair[1].timestamp);
        }
        let signals: Vec<String> = self
            .progress
            .signals(id)
            .unwrap()
            .iter()
            .filter(|signal| signal.from == *id)
            .map(|signal| format!("{} {}", signal.kind, signal.delivered_at.is_some()))
            .collect();
        format!(
            "{} below {:?}: {} {:?}; {links:?}; final {:?}; {signals:?}; {:?}",
            workspace.role,
            workspace.parent.map(|parent| parent.to_string()),
            workspace.state,
            workspace.former.map(|former| former.to_string()),
            place.flatten(),
            self.kinds(id),
        )
    }

    fn kinds(&self, id: &WorkspaceId) -> Vec<String> {
        let query = Query {
            streams: vec![Stream::from(id)],
            ..Query::default()
        };
        let mut kinds = Vec::new();
        self.room
            .trail()
            .entries(&query, |entry| -> Result<Flow, TrailError> {
                kinds.push(entry.kind.to_string());
                Ok(Flow::More)
            })
            .unwrap();
        kinds
    }

    /// Chains and trail are whole.
    pub(crate) fn verifies(&self) {
        for known in &self.known {
            assert_eq!(self.progress.verify(&known.id).unwrap().first_bad, None);
        }
        assert_eq!(self.room.trail().verify(|_| {}).unwrap().first_bad, None);
    }
}

impl Known {
    fn new(id: WorkspaceId, token: Option<String>) -> Self {
        Self {
            id,
            token,
            old: Vec::new(),
            sent: Vec::new(),
        }
    }

    fn remember(&mut self, key: u8, ask: Ask, body: String) {
        if !self.sent.iter().any(|(sent, ..)| *sent == key) {
            self.sent.push((key, ask, body));
        }
    }
}

fn perform(progress: &Progress, call: &Call) -> Reply {
    let created = |outcome: Result<safepoint_progress::Created, ProgressError>| match outcome {
        Ok(created) => Reply {
            answer: "done".to_owned(),
            created: Some((created.workspace_id.to_string(), created.token)),
        },
        Err(error) => refusal(&error),
    };
    let plain = |answer: String| Reply {
        answer,
        created: None,
    };
    match call {
        Call::Root { directive } => {
            let taxonomy = Taxonomy::empty();
            created(progress.create(&Beginning::Root(&taxonomy), &given(*directive), &ada()))
        }
        Call::Below {
            parent,
            role,
            directive,
        } => {
            let parent = parent.parse().unwrap();
            let beginning = Beginning::Below(&parent, role.parse().unwrap());
            created(progress.create(&beginning, &given(*directive), &ada()))
        }
        Call::Record {
            id,
            token,
            body,
            key,
        } => {
            let id = id.parse().unwrap();
            match progress.checkpoint(&id, token, body.as_bytes(), key.as_deref(), None) {
                Ok(Ok(record)) => {
                    let chain = progress.log(&id).unwrap();
                    let place = chain.iter().position(|other| *other == record).unwrap();
                    plain(format!("record {place}"))
                }
                Ok(Err(rejection)) => plain(rejection.reason.to_string()),
                Err(error) => refusal(&error),
            }
        }
        Call::Emit {
            id,
            token,
            kind,
            reason,
        } => {
            let reason = reason.then_some("because");
            let kind = kind.parse().unwrap();
            match progress.emit(&id.parse().unwrap(), token, kind, reason, None) {
                Ok(_) => plain("done".to_owned()),
                Err(error) => refusal(&error),
            }
        }
        Call::Move { id, to } => {
            let to = to.parse().unwrap();
            match progress.move_to(&id.parse().unwrap(), to, None, &ada()) {
                Ok(_) => plain("done".to_owned()),
                Err(error) => refusal(&error),
            }
        }
        Call::Migrate { id } => created(progress.migrate(&id.parse().unwrap(), &ada())),
    }
}

fn refusal(error: &ProgressError) -> Reply {
    let answer = match error {
        ProgressError::Refused(_) | ProgressError::Unfit(_) | ProgressError::Invalid(_) => {
            "refused"
        }
        ProgressError::Move(_) => "no such move",
        ProgressError::NotTheAgent(_) => "not the agent",
        other => panic!("{other}"),
    };
    Reply {
        answer: answer.to_owned(),
        created: None,
    }
}

/// What the process does that is about to be killed.
pub(crate) fn run_errand(errand: &str) {
    let errand: Errand = serde_json::from_str(errand).unwrap();
    let directory = std::path::Path::new(&errand.directory);
    let clock = Arc::new(FixedClock::at("1970-01-01T00:00:00Z"));
    clock.move_by(errand.micros);
    let entropy = Arc::new(Seeded::new(errand.seed));
    let location = errand.address.parse().unwrap();
    let options = Options {
        lock_timeout: Duration::from_secs(20),
    };
    let surroundings = Surroundings {
        keys: directory.join("keys"),
        witnesses: directory.join("witness"),
        blobs: Blobs::new(directory.join("blobs")),
        clock: clock.clone(),
        entropy: entropy.clone(),
        lost_store: LostStore::Refuse,
    };
    let store = Arc::new(Store::open(&location, options).unwrap());
    let trail = Trail::open(store, &surroundings).unwrap();
    let progress = Progress::open(trail, clock, entropy).unwrap();
    let reply = perform(&progress, &errand.call);
    println!("\nreply: {}", serde_json::to_string(&reply).unwrap());
}
