//! A run of workspaces with a real directory beside its store.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use safepoint_model::{ActionId, Clock, WorkspaceId};
use safepoint_progress::integrate::{Ground, Integration, Mode, Step, Strategy, Wish};
use safepoint_progress::record::Record;
use safepoint_progress::rejection::Rejection;
use safepoint_progress::signal::SignalType;
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{
    Apart, Beginning, Created, Given, Progress, ProgressError, checkpoint_in, create_apart,
};
use safepoint_state::git::Git;
use safepoint_state::{Errand, Patterns, Rules, State, Surroundings, Workspace};
use safepoint_trail::{Actor, Trail};
use serde_json::{Value, json};
use testkit::{FixedClock, RealClock, Room, Seeded};

pub(crate) fn ada() -> Actor {
    "user:ada".parse().unwrap()
}

pub(crate) fn given(directive: &str) -> Given<'_> {
    Given {
        directive: Some(directive),
        ..Given::default()
    }
}

/// Everything that one process has open.
pub(crate) struct Scene {
    pub(crate) top: PathBuf,
    pub(crate) trail: Trail,
    pub(crate) progress: Progress,
    pub(crate) state: State,
    pub(crate) entropy: Arc<Seeded>,
}

fn around(top: &Path, clock: Arc<dyn Clock>, entropy: Arc<Seeded>) -> Surroundings {
    let path = std::env::var_os("PATH").unwrap();
    Surroundings {
        data: top.join("data"),
        runtime: top.join("runtime"),
        state: top.join("state"),
        clock,
        entropy,
        git: Git::find(Some(&path), environment(top)),
        lock_timeout: Duration::from_secs(60),
        cap: None,
        actor: ada(),
        variables: Vec::new(),
        program_path: None,
    }
}

impl Scene {
    pub(crate) fn open(room: &Room, seed: u64) -> Self {
        Self::of(room.path(), room.trail(), room.clock.clone(), seed)
    }

    pub(crate) fn of(top: &Path, trail: Trail, clock: Arc<dyn Clock>, seed: u64) -> Self {
        let top = fs::canonicalize(top).unwrap();
        let entropy = Arc::new(Seeded::new(seed));
        let progress = Progress::open(trail.clone(), clock, entropy.clone()).unwrap();
        let around = around(&top, Arc::new(RealClock), entropy.clone());
        let state = State::open(trail.clone(), around).unwrap();
        Self {
            top,
            trail,
            progress,
            state,
            entropy,
        }
    }

    /// The snapshots as they are found when all that ever expires has expired.
    pub(crate) fn much_later(&self) -> State {
        let clock = Arc::new(FixedClock::at("2999-01-01T00:00:00Z"));
        let around = around(&self.top, clock, self.entropy.clone());
        State::open(self.trail.clone(), around).unwrap()
    }

    /// The user's directory.
    pub(crate) fn origin(&self) -> Workspace {
        let root = self.top.join("project");
        fs::create_dir_all(&root).unwrap();
        directory(&root)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.origin().root, name, text);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.origin().root.join(name)).unwrap()
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .env_clear()
            .envs(environment(&self.top))
            .current_dir(self.origin().root)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn root(&self) -> Created {
        let beginning = Beginning::Root(&Taxonomy::empty());
        self.progress
            .create(&beginning, &given("lead"), &ada())
            .unwrap()
    }

    pub(crate) fn below(&self, parent: &Created, role: &str) -> Created {
        let beginning = Beginning::Below(&parent.workspace_id, role.parse().unwrap());
        self.progress
            .create(&beginning, &given("work"), &ada())
            .unwrap()
    }

    pub(crate) fn apart(&self, parent: &Created) -> Apart {
        let beginning = Beginning::Below(&parent.workspace_id, "worker".parse().unwrap());
        let (origin, by) = (self.origin(), ada());
        create_apart(
            &self.progress,
            &self.state,
            &origin,
            &beginning,
            &given("work"),
            &by,
        )
        .unwrap()
    }

    /// Asks for a record in a workspace with a directory.
    pub(crate) fn record_in(&self, work: &Apart, body: &Value) -> Result<Record, Rejection> {
        self.try_record_in(work, &work.created.token, body).unwrap()
    }

    pub(crate) fn try_record_in(
        &self,
        work: &Apart,
        token: &str,
        body: &Value,
    ) -> Result<Result<Record, Rejection>, ProgressError> {
        let text = body.to_string();
        checkpoint_in(
            &self.progress,
            &self.state,
            &directory(&work.place.path),
            &work.created.workspace_id,
            token,
            text.as_bytes(),
            None,
        )
    }

    /// Asks for a record in a workspace without one.
    pub(crate) fn record(&self, to: &Created, body: &Value) -> Record {
        let text = body.to_string();
        let made =
            self.progress
                .checkpoint(&to.workspace_id, &to.token, text.as_bytes(), None, None);
        made.unwrap().unwrap()
    }

    pub(crate) fn complete(&self, of: &Created) {
        let complete = SignalType::Complete;
        self.progress
            .emit(&of.workspace_id, &of.token, complete, None, None)
            .unwrap();
    }

    pub(crate) fn errand(&self) -> Errand {
        Errand {
            id: ActionId::generate(&*self.entropy).unwrap(),
            session: None,
            action: "workspace.integrate".to_owned(),
            summary: "integration".to_owned(),
            decision: "allow".to_owned(),
            left_by: None,
        }
    }

    /// All steps of an integration, with the directory changed by us.
    pub(crate) fn integrate(&self, wish: &Wish<'_>) -> Result<Integration, ProgressError> {
        let (origin, errand) = (self.origin(), self.errand());
        let ground = Ground {
            state: &self.state,
            origin: &origin,
            errand: &errand,
            rules: &[],
        };
        match self.progress.prepare(wish, Some(&ground), &ada())? {
            Step::Done(one) | Step::Conflicted(one) => Ok(one),
            Step::Bring(bringing) => self.progress.carry_out(&ground, &bringing, &ada()),
        }
    }

    /// The way on after conflicts.
    pub(crate) fn resume(&self, source: &WorkspaceId) -> Result<Integration, ProgressError> {
        let (origin, errand) = (self.origin(), self.errand());
        let ground = Ground {
            state: &self.state,
            origin: &origin,
            errand: &errand,
            rules: &[],
        };
        match self.progress.resume_integration(source, &ground, &ada())? {
            Step::Done(one) | Step::Conflicted(one) => Ok(one),
            Step::Bring(bringing) => self.progress.carry_out(&ground, &bringing, &ada()),
        }
    }

    /// Kinds and bodies of the entries after the first `skip`.
    pub(crate) fn told(&self, room: &Room, skip: usize) -> Vec<(String, Value)> {
        let entries = room.entries(&self.trail);
        let told = entries.iter().skip(skip);
        told.map(|entry| {
            (
                entry.kind.to_string(),
                serde_json::from_str(&entry.body).unwrap(),
            )
        })
        .collect()
    }
}

pub(crate) fn directory(root: &Path) -> Workspace {
    Workspace {
        root: root.to_owned(),
        rules: Rules::new(Patterns::default()).unwrap(),
        providers: Default::default(),
    }
}

pub(crate) fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn wish(source: &WorkspaceId, strategy: Strategy) -> Wish<'_> {
    Wish {
        source,
        mode: Mode::Normal,
        strategy,
        record: None,
        findings: &[],
    }
}

/// A record that leaves it to the directory to say what changed.
pub(crate) fn body(parent: Option<&Record>, status: &str) -> Value {
    json!({
        "type": "artifact",
        "payload": {"content": "done", "artifacts": []},
        "intent": "because",
        "parent": parent.map(|parent| &parent.id),
        "status": status,
        "confidence": "high",
    })
}

/// The same for a workspace without a directory.
pub(crate) fn claimed(parent: Option<&Record>, status: &str, files: &[&str]) -> Value {
    let mut body = body(parent, status);
    let payload = body.pointer_mut("/payload").unwrap();
    let fields = payload.as_object_mut().unwrap();
    fields.insert("files_changed".to_owned(), json!(files));
    body
}

fn environment(top: &Path) -> Vec<(OsString, OsString)> {
    [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("HOME", top.join("home").into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_AUTHOR_NAME", "User".into()),
        ("GIT_AUTHOR_EMAIL", "user@localhost".into()),
        ("GIT_COMMITTER_NAME", "User".into()),
        ("GIT_COMMITTER_EMAIL", "user@localhost".into()),
    ]
    .map(|(name, value)| (name.into(), value))
    .into()
}
