//! Everybody besides the agents: operators, somebody who reads, somebody who writes notes,
//! and whoever pulls the plug.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use safepoint_authority::{Choice, Decision};
use safepoint_model::Clock;
use safepoint_trail::note::Signer;
use serde_json::{Value, json};
use testkit::RealClock;

use super::World;
use super::agent::{Agent, Chain, text};
use super::client::Client;
use super::ledger::Told::{Done, Refused, Unknown};

/// So many agents add to one chain at the same time.
const TOGETHER: usize = 4;

/// How long those rest who ask again and again.
const REST: Duration = Duration::from_millis(50);

/// An operator, and the key they sign with.
pub(super) struct Operator {
    name: String,
    token: String,
    key: Signer,
}

/// Everybody.
pub(super) struct Cast {
    pub(super) agents: Vec<Agent>,
    pub(super) operators: Vec<Operator>,
    pub(super) auditor: String,
    /// All chains to which agents add.
    pub(super) chains: Vec<String>,
}

/// Gives everybody a token, and agents their chains.
pub(super) fn cast(world: &World, agents: usize) -> Cast {
    let env = &world.site.env;
    let token = |name: &str, role: &str| {
        let made = env.json(&["token", "create", name, "--role", role]);
        text(&made["token"])
    };
    let operators = ["ann", "bea"].map(|name| {
        env.json(&["operator", "add", name]);
        let key = env.home().join(format!("data/operators/{name}.key"));
        Operator {
            name: name.to_owned(),
            token: token(name, "operator"),
            key: Signer::parse(&std::fs::read_to_string(key).unwrap()).unwrap(),
        }
    });
    let mut chains = Vec::new();
    let mut chain = |parent: Option<&Chain>| {
        let role = parent.map_or("coordinator", |_| "worker");
        let mut words = vec!["workspace", "create", "--role", role, "--directive", "work"];
        words.extend(parent.iter().flat_map(|it| ["--parent", it.id.as_str()]));
        let made = env.json(&words);
        let chain = Chain {
            id: text(&made["workspace_id"]),
            token: text(&made["token"]),
        };
        chains.push(chain.id.clone());
        chain
    };
    let lead = chain(None);
    let mut shared = chain(Some(&lead));
    let agent = |number: usize| {
        if number > 0 && number.is_multiple_of(TOGETHER) {
            shared = chain(Some(&lead));
        }
        let name = format!("agent-{number}");
        Agent {
            token: token(&name, "agent"),
            name,
            chain: chain(Some(&lead)),
            shared: shared.clone(),
            session: OnceLock::new(),
        }
    };
    Cast {
        agents: (0..agents).map(agent).collect(),
        operators: operators.into(),
        auditor: token("reads", "auditor"),
        chains,
    }
}

/// Decides what waits. Another operator does so at the same time, and may say something else.
pub(super) fn decides(world: &World, operator: &Operator) {
    let chance = world.chance(&operator.name);
    let mut client = Client::new(world, &operator.name, &operator.token);
    while world.goes_on() {
        let listed = client.get("read lists", "/v1/holds?limit=20");
        for hold in listed.body["holds"].as_array().unwrap() {
            let id = text(&hold["hold_id"]);
            let shown = client.get("hold show", &format!("/v1/holds/{id}"));
            let (verb, choice) = match chance.below(4) {
                0 => ("deny", Choice::Deny),
                _ => ("approve", Choice::Continue),
            };
            let signature = signed(operator, &shown.body, choice);
            let mut given = json!({ "signature": signature });
            if choice.is_yes() {
                given["fingerprint"] = shown.body["fingerprint"].clone();
            }
            let decided = client.post("decide", &format!("/v1/holds/{id}/{verb}"), &given);
            let told = match decided {
                Some(reply) if reply.is_done() => Done,
                // The other one was faster, or one of the same session comes first.
                Some(reply) => {
                    assert_eq!(reply.status, 409, "{reply:?}");
                    Refused
                }
                None => Unknown,
            };
            world.ledger.note("approval_decision", &id, told);
            if choice.is_yes() {
                world.ledger.note("permit_issued", &id, told);
            }
        }
        std::thread::sleep(REST);
    }
}

/// What `safepoint hold sign` signs.
fn signed(operator: &Operator, shown: &Value, choice: Choice) -> String {
    let read = |name: &str| text(&shown[name]);
    let decision = Decision {
        statement: Decision::purpose(),
        hold_id: read("hold_id").parse().unwrap(),
        action_id: read("action_id").parse().unwrap(),
        fingerprint: read("fingerprint").parse().unwrap(),
        choice,
        envelope: None,
        scope: None,
        confirm: None,
        reason: None,
        operator: operator.name.clone(),
        time: RealClock.now(),
    };
    operator.key.sign(&decision.to_text().unwrap())
}

/// The signed heads that servers have shown: roots by sizes.
#[derive(Default)]
pub(super) struct Heads {
    roots: Mutex<BTreeMap<u64, String>>,
    forks: Mutex<Vec<String>>,
}

impl Heads {
    /// Two trees of one size are two trails.
    pub(super) fn see(&self, head: &Value) {
        let (size, root) = (head["size"].as_u64().unwrap(), text(&head["root"]));
        let mut roots = self.roots.lock().unwrap();
        let known = roots.entry(size).or_insert_with(|| root.clone());
        if *known != root {
            let fork = format!("two heads of size {size}: {known} and {root}");
            self.forks.lock().unwrap().push(fork);
        }
    }

    pub(super) fn forks(&self) -> Vec<String> {
        self.forks.lock().unwrap().clone()
    }

    /// All that were seen.
    pub(super) fn seen(&self) -> Vec<(u64, String)> {
        self.roots.lock().unwrap().clone().into_iter().collect()
    }
}

/// Looks at everything, again and again.
pub(super) fn reads(world: &World, token: &str) {
    let chance = world.chance("reads");
    let mut client = Client::new(world, "reads", token);
    while world.goes_on() {
        let head = client.get("trail head", "/v1/trail/head");
        world.heads.see(&head.body);
        let size = head.body["size"].as_u64().unwrap();
        let page = format!("/v1/trail/entries?limit=50&cursor={}", chance.below(size));
        for path in [
            page.as_str(),
            "/v1/status",
            "/v1/permits?limit=20",
            "/v1/sessions?limit=20",
        ] {
            let reply = client.get("read lists", path);
            assert!(reply.is_done(), "{path}: {reply:?}");
            if let Some(next) = reply.next {
                client.get("read lists", &next);
            }
        }
        std::thread::sleep(REST);
    }
}

/// Writes notes by commands, from a machine that has the store itself. What failed is not there,
/// unless it says that nobody knows.
pub(super) fn notes(world: &World) {
    for number in 0.. {
        if !world.goes_on() {
            return;
        }
        let marker = format!("note-{number}");
        let run = world.site.env.run(&["trail", "note", &marker, "--json"]);
        let told = match run.code {
            0 => Done,
            _ if run.stdout.contains("S510") => Unknown,
            _ => {
                world
                    .table
                    .failed(format!("`trail note` ended with {}", run.code));
                Refused
            }
        };
        world.ledger.note("note", marker, told);
        std::thread::sleep(REST);
    }
}

/// Kills servers, one at a time, in this time.
pub(super) fn kills(world: &World, times: u64, time: Duration) {
    let chance = world.chance("kills");
    let each = time.as_millis() as u64 / times.max(1);
    for _ in 0..times {
        let pause = chance.below(each / 4);
        std::thread::sleep(Duration::from_millis(each / 4 + chance.below(each / 2)));
        let victim = chance.below(world.site.size() as u64) as usize;
        world.site.kill(victim, Duration::from_millis(pause));
        world.killed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Kills the database, and starts it again.
pub(super) fn restarts(world: &World, times: u64, time: Duration) {
    let chance = world.chance("restarts");
    let each = time.as_millis() as u64 / times.max(1);
    for _ in 0..times {
        std::thread::sleep(Duration::from_millis(each / 3 + chance.below(each / 3)));
        world.site.restart_database();
        world.killed.fetch_add(1, Ordering::Relaxed);
    }
}
