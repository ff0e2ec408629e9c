//! What is there at the end, as the program itself tells it, against what everybody was told.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::World;
use super::agent::text;
use super::client::Client;
use super::follower::Follower;
use super::ledger::Thing;
use super::people::Cast;
use super::table::CHECK;

/// How long is waited between two looks at who follows.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked whether the followers have heard everything, all of them together.
const LOOKS: u32 = 600;

/// How many of the heads that were seen are proved.
const PROVED: usize = 50;

/// An entry, as far as it matters here.
struct Entry {
    stream: String,
    hash: String,
}

/// What the trail says.
#[derive(Default)]
struct Listed {
    entries: Vec<Entry>,
    found: HashMap<Thing, u32>,
    /// Which records each chain has, in order.
    records: BTreeMap<String, Vec<String>>,
    /// How often each permit was used.
    used: BTreeMap<String, u32>,
    wrong: Vec<String>,
}

/// Everything that is not as it was told.
pub(super) fn everything(world: &World, cast: &Cast, followers: &[Follower]) -> Vec<String> {
    let mut client = Client::new(world, "checks", &cast.auditor);
    let head = client.get(CHECK, "/v1/trail/head").body;
    world.heads.see(&head);
    let size = head["size"].as_u64().unwrap();
    let mut listed = list(&mut client, size);
    listed.chains(&mut client, &cast.chains);
    let mut wrong = std::mem::take(&mut listed.wrong);
    wrong.extend(world.ledger.differences(&listed.found));
    wrong.extend(listed.twice());
    wrong.extend(world.heads.forks());
    wrong.extend(proofs(world, &mut client));
    wrong.extend(verdicts(world, &mut client, size));
    let mut looks = LOOKS;
    for follower in followers {
        let session = follower.agent.map(|it| cast.agents[it].session.get());
        let stream = session.map(|it| it.map_or("none", String::as_str));
        wrong.extend(listed.differs_from(follower, stream, &mut looks));
    }
    if !wrong.is_empty() {
        wrong.extend(world.site.logs());
    }
    let sums = world.ledger.sums();
    println!("acknowledged and unknown: {sums:?}; {size} entries");
    wrong
}

/// Reads the whole trail, page by page.
fn list(client: &mut Client<'_>, size: u64) -> Listed {
    let mut listed = Listed::default();
    let mut last: HashMap<String, Value> = HashMap::new();
    let mut next = Some("/v1/trail/entries?limit=1000".to_owned());
    while let Some(path) = next {
        let page = client.get(CHECK, &path);
        for entry in page.body["entries"].as_array().unwrap() {
            let place = listed.entries.len() as u64;
            if place == size {
                return listed; // written since
            }
            if entry["seq"] != place {
                listed
                    .wrong
                    .push(format!("at place {place} is {}", entry["seq"]));
            }
            let stream = text(&entry["stream"]);
            let before = last.insert(stream.clone(), entry["hash"].clone());
            if entry["prev_hash"] != before.unwrap_or_default() {
                listed.wrong.push(format!("entry {place} forks {stream}"));
            }
            listed.note(entry, &stream);
            listed.entries.push(Entry {
                stream,
                hash: text(&entry["hash"]),
            });
        }
        next = page.next;
    }
    let there = listed.entries.len() as u64;
    if there != size {
        let told = format!("the head is of {size} entries, and {there} are listed");
        listed.wrong.push(told);
    }
    listed
}

impl Listed {
    fn note(&mut self, entry: &Value, stream: &str) {
        let body = &entry["body"];
        let known = |value: &Value| value.as_str().map(str::to_owned);
        let action = known(&entry["action_id"]);
        let told = ["POLICY_DENIED", "APPROVAL_REQUIRED", "OPERATOR_DENIED"];
        let code = body["code"].as_str().filter(|code| told.contains(code));
        let thing = match entry["kind"].as_str().unwrap() {
            "SessionStarted" => ("SessionStarted", known(&entry["actor"])),
            "action_intended" => {
                if let Some(permit) = known(&body["permit_id"]) {
                    *self.used.entry(permit).or_default() += 1;
                }
                ("action_intended", action)
            }
            "action_denied" => {
                let denial = code
                    .zip(action)
                    .map(|(code, action)| format!("{action} {code}"));
                ("action_denied", denial)
            }
            "checkpoint_pending" => ("checkpoint_pending", action),
            "action_ended" => ("action_ended", action),
            "approval_decision" => ("approval_decision", known(&body["hold_id"])),
            "permit_issued" => ("permit_issued", known(&body["hold_id"])),
            "ActionRequested" => ("ActionRequested", known(&body["parameters"]["marker"])),
            "ActionReported" => ("ActionReported", action),
            "note" => ("note", known(&body["text"])),
            "checkpoint_created" => {
                let records = self.records.entry(stream.to_owned()).or_default();
                records.push(text(&body["checkpoint_id"]));
                return;
            }
            _ => return,
        };
        if let (kind, Some(marker)) = thing {
            *self.found.entry((kind, marker)).or_default() += 1;
        }
    }

    /// Each chain is one line, is what the trail tells of, and holds.
    fn chains(&mut self, client: &mut Client<'_>, chains: &[String]) {
        for chain in chains {
            let path = format!("/v1/workspaces/{chain}");
            let log = client.get(CHECK, &format!("{path}/log")).body;
            let mut parent = Value::Null;
            let mut ids = Vec::new();
            for record in log["checkpoints"].as_array().unwrap() {
                if record["parent"] != parent {
                    let told = format!("{chain}: {} does not build upon {parent}", record["id"]);
                    self.wrong.push(told);
                }
                parent = record["id"].clone();
                ids.push(text(&parent));
                let thing = ("record", text(&record["intent"]));
                *self.found.entry(thing).or_default() += 1;
            }
            if self.records.get(chain).unwrap_or(&Vec::new()) != &ids {
                self.wrong
                    .push(format!("{chain}: the trail tells of other records"));
            }
            let head = client.get(CHECK, &format!("{path}/head")).body;
            if head["checkpoint"]["id"] != parent {
                self.wrong
                    .push(format!("{chain}: its head is {}", head["checkpoint"]));
            }
            let verdict = client.get(CHECK, &format!("{path}/verify")).body;
            if verdict["valid"] != true {
                self.wrong.push(format!("{chain}: {verdict}"));
            }
        }
    }

    /// What is done at most once, whatever anybody was told.
    fn twice(&self) -> Vec<String> {
        let once = [
            "action_intended",
            "action_ended",
            "approval_decision",
            "permit_issued",
            "ActionReported",
        ];
        let things = self.found.iter();
        let things = things.filter(|((kind, _), times)| once.contains(kind) && **times > 1);
        let mut wrong: Vec<String> = things
            .map(|(thing, times)| format!("{thing:?}: {times} times"))
            .collect();
        let permits = self.used.iter().filter(|(_, times)| **times > 1);
        wrong.extend(permits.map(|(permit, times)| format!("{permit} was used {times} times")));
        wrong
    }

    /// Whether somebody heard all that they may hear, once and in order.
    fn differs_from(
        &self,
        follower: &Follower,
        stream: Option<&str>,
        looks: &mut u32,
    ) -> Option<String> {
        let entries = self
            .entries
            .iter()
            .enumerate()
            .map(|(place, it)| (place as u64, it));
        let own = |entry: &Entry| stream.is_none_or(|stream| entry.stream == stream);
        let expected: Vec<(u64, String)> = entries
            .filter(|(place, entry)| *place >= follower.from && own(entry))
            .map(|(place, entry)| (place, entry.hash.clone()))
            .collect();
        while follower.heard().len() < expected.len() && *looks > 0 {
            *looks -= 1;
            std::thread::sleep(PAUSE);
        }
        let mut heard = follower.heard();
        heard.truncate(expected.len()); // what was written since comes behind
        let place = heard
            .iter()
            .zip(&expected)
            .position(|(one, other)| one != other);
        let place = place.or((heard.len() != expected.len()).then_some(heard.len()))?;
        Some(format!(
            "{stream:?} heard {:?} in place of {:?}, as event {place} of {}",
            heard.get(place),
            expected.get(place),
            expected.len(),
        ))
    }
}

/// Whether the trail still begins with heads that were seen on the way.
fn proofs(world: &World, client: &mut Client<'_>) -> Vec<String> {
    let seen = world.heads.seen();
    let mut wrong = Vec::new();
    for (size, root) in seen.iter().step_by(seen.len().div_ceil(PROVED)) {
        let path = format!("/v1/trail/consistency?size={size}");
        let reply = client.get(CHECK, &path);
        let proof = reply.body["proof"].as_str().unwrap_or_default();
        if !proof.contains(&format!("\nold {size} {root}\n")) {
            wrong.push(format!("no proof for the head of size {size}: {reply:?}"));
        }
    }
    wrong
}

/// What every machine says of the trail.
fn verdicts(world: &World, client: &mut Client<'_>, size: u64) -> Vec<String> {
    let mut verdicts = BTreeSet::from([world.site.env.json(&["trail", "verify"]).to_string()]);
    for _ in 0..world.site.size() {
        let verdict = client.get(CHECK, "/v1/trail/verify").body;
        verdicts.insert(verdict.to_string());
    }
    let good = |verdict: &String| {
        let verdict: Value = serde_json::from_str(verdict).unwrap();
        verdict["valid"] == true && verdict["checked"].as_u64().unwrap() >= size
    };
    verdicts.retain(|verdict| !good(verdict));
    verdicts.into_iter().collect()
}
