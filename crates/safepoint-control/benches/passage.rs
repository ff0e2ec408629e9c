//! How long it takes to see what a shell line is, to judge it and to name it.
//!
//! `cargo bench -p safepoint-control --bench passage`. Each figure is the best of
//! several rounds, in microseconds for one call. The limit for all of it together is
//! 200 µs; beyond it the exit code is 1. What is on disk is not looked at here.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark reads the clock and stops when something is wrong"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use safepoint_authority::{
    AtlasPin, Canonical, Deed, Directory, Executable, Identity, Input, NamedPath, Preimage,
    Program, Programs, Reversibility, Risk, Surroundings, Tool, Workspace, shell,
};
use safepoint_gates::{
    Answers, Condition, Decision, Engine, Event, Facts, Loaded, Request, Session, Simulation,
    Verdict, load,
};
use safepoint_model::{Digest, Timestamp};
use serde_json::json;

const LIMIT: f64 = 200.0;
const BUILT_IN: &str = include_str!("../atlases/built-in.yaml");
/// What an agent types all day.
const LINE: &str =
    "cd crates/app && rm -rf build && mkdir -p build && cargo build 2>&1 | tail -n 20 > build/log";

/// Everything lies in `/usr/bin`: the disk is not what is measured.
struct AllOfThem;

impl Programs for AllOfThem {
    fn find(&self, name: &str, _directory: &Path) -> Program {
        Program::System(Path::new("/usr/bin").join(name))
    }
}

fn main() {
    let own = [PathBuf::from("/home/user/.local/share/safepoint")];
    let around = Surroundings {
        programs: &AllOfThem,
        directory: Path::new("/srv/site"),
        home: Some(Path::new("/home/user")),
        own: &own,
    };
    let argv: Vec<String> = ["sh", "-c", LINE].map(str::to_owned).into();
    let engine = engine();
    let session = open(&engine);
    let see = || shell::command(black_box(&argv), &around).deeds;
    let deeds = see();
    let form = form(&deeds, &argv, &session);
    println!("{} deeds: {:?}", deeds.len(), form.actions);
    measure("seen: the line is parsed and split", || {
        black_box(see());
    });
    measure("named: canonical JSON and its fingerprint", || {
        black_box(form.fingerprint().unwrap());
    });
    measure(
        "judged: each of its actions, under the built-in atlas",
        || {
            judge(&engine, &session, &deeds);
        },
    );
    let all = measure("all of it", || {
        let deeds = see();
        judge(&engine, &session, &deeds);
        black_box(self::form(&deeds, &argv, &session).fingerprint().unwrap());
    });
    if all > LIMIT {
        println!("{all:.1} µs is more than the {LIMIT} µs that are allowed");
        std::process::exit(1);
    }
}

/// The best of nine rounds of at least 20 ms each.
fn measure(name: &str, call: impl Fn()) -> f64 {
    let start = Instant::now();
    let mut calls = 0_u32;
    while start.elapsed() < Duration::from_millis(20) {
        call();
        calls += 1;
    }
    let best = (0..9)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..calls {
                call();
            }
            start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<58} {best:>8.2} µs");
    best
}

fn judge(engine: &Engine, session: &Session, deeds: &[Deed]) {
    let actions: BTreeSet<&str> = deeds.iter().map(|deed| deed.action.as_str()).collect();
    for action in actions {
        let event = Event::Request(Request {
            action: action.to_owned(),
            parameters: json!({"command": LINE, "paths": ["/srv/site/crates/app/build"]}),
            risk: None,
            conditions: BTreeSet::from([Condition::FullyReversible]),
        });
        let facts = Facts {
            now: Timestamp::from_micros(60_000_000),
            hold_id: "hld_0000000000000001".parse().unwrap(),
            request_id: "act_0000000000000001".parse().unwrap(),
            uses: std::collections::HashMap::new(),
            callbacks: Answers::new(),
            callback_time: 0,
        };
        match engine.judge(black_box(session), &event, &facts) {
            Ok(Verdict::Judged(judgement)) => {
                assert_eq!(judgement.resolution.decision, Decision::Allow, "{action}");
            }
            other => panic!("not judged: {other:?}"),
        }
    }
}

/// A form of usual size: forty variables, and what the deeds name.
fn form(deeds: &[Deed], argv: &[String], session: &Session) -> Canonical {
    let digest = Digest::of_parts(&[b"some content"]);
    let variable = |number: usize| {
        let value = "/usr/local/some/where:/and/else/where";
        (format!("VARIABLE_{number}"), format!("{value}/{number}"))
    };
    let named = deeds.iter().flat_map(|deed| &deed.touches).enumerate();
    Canonical {
        schema: Canonical::SCHEMA,
        tool: Tool {
            name: "exec".to_owned(),
            executable: Some(Executable {
                path: "/usr/bin/sh".to_owned(),
                digest,
            }),
            interpreters: Vec::new(),
        },
        actions: deeds.iter().map(|deed| deed.action.clone()).collect(),
        argv: argv.to_vec(),
        directory: Directory {
            path: "/srv/site".to_owned(),
            identity: Identity {
                device: 2049,
                inode: 77,
            },
        },
        environment: (0..40).map(variable).collect(),
        paths: named
            .map(|(number, _)| NamedPath {
                path: format!("/srv/site/crates/app/build/{number}"),
                role: "write".to_owned(),
                inside: true,
                preimage: Preimage::File {
                    device: 2049,
                    inode: number as u64,
                    mode: 0o644,
                    digest,
                },
            })
            .collect(),
        hosts: deeds.iter().flat_map(|deed| deed.hosts.clone()).collect(),
        input: Input::Inherited {},
        side_effects: deeds.iter().flat_map(|deed| deed.effects.clone()).collect(),
        reversibility: Reversibility::Reversible,
        remainder: BTreeSet::new(),
        risk: deeds
            .iter()
            .map(|deed| deed.risk)
            .max()
            .unwrap_or(Risk::Low),
        session_id: session.session_id.clone(),
        provider: None,
        workspace: Workspace {
            path: "/srv/site".to_owned(),
        },
        policy_version: digest,
        atlases: vec![AtlasPin {
            atlas_id: "safepoint.built-in".to_owned(),
            version: "1.0.0".to_owned(),
            digest,
        }],
    }
}

fn engine() -> Engine {
    Engine::new(vec![Loaded {
        manifest: load::read(BUILT_IN).unwrap(),
        digest: Digest::of_parts(&[BUILT_IN.as_bytes()]),
        modules: BTreeMap::new(),
    }])
    .unwrap()
}

fn open(engine: &Engine) -> Session {
    let start = Timestamp::from_micros(0);
    let mut simulation = Simulation::new(engine, "user:bench", None, start).unwrap();
    simulation.step(&Event::Start).unwrap();
    simulation.session
}
