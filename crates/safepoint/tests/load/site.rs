//! What is served: a store, and the servers over it, each with a directory of its own.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use testkit::{Cluster, TestEnv};

use super::Plan;

/// How long is waited between two tries to start something.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is tried.
const TRIES: u32 = 600;

/// Reading, and tickets, are let through; writing waits for a person; deleting is not allowed.
const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: "tests.load"
version: "1.0.0"
name: "Load"
description: "Some of everything"
capabilities:
  - capability_id: "all"
    name: "All"
    actions: ["file.*", "ticket.*"]
policies:
  - policy_id: "writes"
    type: requires_approval
    actions: ["file.write"]
    reason: "Somebody looks at what is written"
  - policy_id: "deletions"
    type: deny
    actions: ["file.delete"]
    reason: "Nothing is deleted here"
"#;

/// Where a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// A PostgreSQL of its own: no other test is in it when it is killed.
    Postgres,
    /// A file.
    Sqlite,
}

/// A store and its servers.
pub(crate) struct Site {
    /// The machine of those who run it.
    pub(super) env: TestEnv,
    database: Option<Cluster>,
    replicas: Vec<Mutex<Replica>>,
}

struct Replica {
    home: PathBuf,
    child: Option<Child>,
    address: String,
}

impl Site {
    /// All of it, running.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
        env.write("project/atlas.yaml", ATLAS);
        env.write("project/safepoint.yaml", "atlases: [atlas.yaml]\n");
        let root = env.root().to_owned();
        let database = (plan.store == Where::Postgres).then(Cluster::start);
        let store = match &database {
            Some(cluster) => cluster.address().to_owned(),
            None => format!("sqlite:{}", root.join("store.db").display()),
        };
        env.set("SAFEPOINT_STORE", &store)
            .set(
                "SAFEPOINT_OBJECTS",
                &format!("file://{}", root.join("depot").display()),
            )
            .set(
                "SAFEPOINT_KEY",
                &root.join("secret/team.key").display().to_string(),
            );
        // Nobody is slow enough to be silent.
        env.set("SAFEPOINT_HOLD_TIMEOUT", "24h");
        let replica = |number: usize| Replica {
            home: root.join(format!("replica-{number}")),
            child: None,
            address: String::new(),
        };
        let site = Self {
            database,
            replicas: (0..plan.replicas)
                .map(|it| Mutex::new(replica(it)))
                .collect(),
            env,
        };
        for number in 0..plan.replicas {
            site.start(number);
        }
        site
    }

    /// How many servers there are.
    pub(super) fn size(&self) -> usize {
        self.replicas.len()
    }

    /// Where one of them is, or was.
    pub(super) fn address(&self, number: usize) -> String {
        let replica = &self.replicas[number % self.replicas.len()];
        replica.lock().unwrap().address.clone()
    }

    /// Kills a server as a power cut would, and starts it again after a while.
    pub(super) fn kill(&self, number: usize, pause: Duration) {
        {
            let mut replica = self.replicas[number].lock().unwrap();
            if let Some(mut child) = replica.child.take() {
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
        std::thread::sleep(pause);
        self.start(number);
    }

    /// Starts a server, however long its database takes to answer.
    fn start(&self, number: usize) {
        let home = self.replicas[number].lock().unwrap().home.clone();
        for _ in 0..TRIES {
            if let Some((child, address)) = self.try_start(&home) {
                let mut replica = self.replicas[number].lock().unwrap();
                replica.child = Some(child);
                replica.address = address;
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("server {number} does not start: {}", log_of(&home));
    }

    fn try_start(&self, home: &Path) -> Option<(Child, String)> {
        let words = [
            "serve",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--rate",
            "1000000",
        ];
        let mut log = OpenOptions::new();
        let log = log.create(true).append(true).open(log_place(home)).unwrap();
        let mut child = self
            .env
            .command(&words)
            .env("SAFEPOINT_HOME", home)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let told = serde_json::from_str::<Value>(&line).ok();
        let url = told.and_then(|told| told["url"].as_str().map(str::to_owned));
        match url {
            Some(url) => Some((child, url)),
            None => {
                child.wait().unwrap();
                None
            }
        }
    }

    /// Kills the database, and starts it again.
    pub(super) fn restart_database(&self) {
        self.database.as_ref().unwrap().restart();
    }

    /// What servers said that is worth looking at when something is wrong.
    pub(super) fn logs(&self) -> Vec<String> {
        let homes = self
            .replicas
            .iter()
            .map(|it| it.lock().unwrap().home.clone());
        homes.map(|home| log_of(&home)).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for replica in &self.replicas {
            if let Some(mut child) = replica.lock().unwrap().child.take() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn log_place(home: &Path) -> PathBuf {
    home.with_extension("log")
}

/// All but what was answered as it should be.
fn log_of(home: &Path) -> String {
    let log = std::fs::read_to_string(log_place(home)).unwrap_or_default();
    let odd = |line: &&str| !line.contains("\"status\":2") && !line.contains("\"status\":4");
    log.lines()
        .filter(odd)
        .map(|line| format!("{line}\n"))
        .collect()
}
