//! An agent: it asks before it acts, tells how things ended, adds to chains of work, and
//! looks around. What it is told goes into the ledger.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::World;
use super::chance::Chance;
use super::client::{Client, Reply};
use super::ledger::Told::{self, Done, Refused, Unknown};
use super::wire::{Wish, outcome, record};

/// A chain of work, and the token with which it is added to.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) id: String,
    pub(super) token: String,
}

/// Something that waits for an operator.
struct Held {
    wish: Wish,
    hold: String,
    action: String,
}

pub(super) struct Agent {
    pub(super) name: String,
    pub(super) token: String,
    /// Its own chain.
    pub(super) chain: Chain,
    /// One to which others add at the same time.
    pub(super) shared: Chain,
    /// Its session, once it has one.
    pub(super) session: OnceLock<String>,
}

/// An agent at work.
struct Work<'a> {
    world: &'a World,
    agent: &'a Agent,
    client: Client<'a>,
    chance: Chance,
    /// How many things it has done.
    number: u64,
    held: Vec<Held>,
}

impl Agent {
    /// Works until it is over.
    pub(super) fn work(&self, world: &World) {
        let mut work = Work {
            world,
            client: Client::new(world, &self.name, &self.token),
            chance: world.chance(&self.name),
            agent: self,
            number: 0,
            held: Vec::new(),
        };
        while world.goes_on() {
            work.step();
        }
    }
}

impl Work<'_> {
    fn step(&mut self) {
        self.number += 1;
        match self.chance.below(20) {
            0..=4 => self.act(),
            5 | 6 => self.is_denied(),
            7 | 8 if self.held.len() < 2 => self.waits(),
            7..=9 => self.takes_up(),
            10..=12 => self.requests(),
            13 | 14 => self.adds(&self.agent.chain.clone()),
            15 => self.adds(&self.agent.shared.clone()),
            _ => self.looks(),
        }
    }

    fn note(&self, kind: &'static str, marker: &str, told: Told) {
        self.world.ledger.note(kind, marker, told);
    }

    /// A wish that nobody else has.
    fn wish(&self, action: &'static str) -> Wish {
        Wish {
            action,
            file: format!("{}-{}", self.agent.name, self.number),
            directory: "/srv/site".to_owned(),
        }
    }

    /// Finds out in which session something goes, and as which action.
    fn enter(&mut self, wish: &Wish) -> Option<Value> {
        let reply = self
            .client
            .post("enter", "/v1/actions/enter", &wish.entering());
        let first = self.agent.session.get().is_none();
        let principal = format!("token:{}", self.agent.name);
        let Some(reply) = reply else {
            // Whether it was this one that began the session nobody knows.
            if first {
                self.note("SessionStarted", &principal, Unknown);
            }
            return None;
        };
        assert!(reply.is_done(), "{reply:?}");
        let session = text(&reply.body["session_id"]);
        if first {
            self.note("SessionStarted", &principal, Done);
        }
        // An agent has one session in one place, whichever server it asks.
        assert_eq!(&session, self.agent.session.get_or_init(|| session.clone()));
        Some(reply.body)
    }

    fn propose(&mut self, kind: &'static str, wish: &Wish, entered: &Value) -> Option<Reply> {
        self.client
            .post(kind, "/v1/actions", &wish.proposal(entered))
    }

    /// Does something that is let through, and tells how it ended.
    fn act(&mut self) {
        let wish = self.wish("file.read");
        let Some(entered) = self.enter(&wish) else {
            return;
        };
        let action = text(&entered["action_id"]);
        match self.propose("propose allowed", &wish, &entered) {
            Some(reply) => {
                assert!(reply.body["leave"].is_object(), "{reply:?}");
                self.note("action_intended", &action, Done);
                self.ends(&entered, "ok");
            }
            None => {
                self.note("action_intended", &action, Unknown);
                self.ends(&entered, "not_run");
            }
        }
    }

    fn ends(&mut self, entered: &Value, how: &str) {
        let action = text(&entered["action_id"]);
        let path = format!("/v1/actions/{action}/outcome");
        let told = match self.client.post("outcome", &path, &outcome(entered, how)) {
            Some(reply) if reply.is_done() => {
                assert_eq!(reply.body["recorded"], true, "{reply:?}");
                Done
            }
            // It was not begun after all.
            Some(reply) => {
                assert_eq!((reply.status, how), (404, "not_run"), "{reply:?}");
                Refused
            }
            None => Unknown,
        };
        self.note("action_ended", &action, told);
    }

    /// Asks for something that a rule forbids.
    fn is_denied(&mut self) {
        let wish = self.wish("file.delete");
        let Some(entered) = self.enter(&wish) else {
            return;
        };
        let denial = format!("{} POLICY_DENIED", text(&entered["action_id"]));
        let told = match self.propose("propose denied", &wish, &entered) {
            Some(reply) => {
                let code = &reply.body["denied"]["denial"]["code"];
                assert_eq!(code, "POLICY_DENIED", "{reply:?}");
                Done
            }
            None => Unknown,
        };
        self.note("action_denied", &denial, told);
    }

    /// Asks for something that an operator has to decide.
    fn waits(&mut self) {
        let wish = self.wish("file.write");
        let Some(entered) = self.enter(&wish) else {
            return;
        };
        let action = text(&entered["action_id"]);
        let reply = self.propose("propose held", &wish, &entered);
        let told = match &reply {
            Some(reply) => {
                let denial = &reply.body["denied"]["denial"];
                assert_eq!(denial["code"], "APPROVAL_REQUIRED", "{reply:?}");
                let hold = text(&denial["hold_id"]);
                self.held.push(Held {
                    wish,
                    hold,
                    action: action.clone(),
                });
                Done
            }
            None => Unknown,
        };
        self.note("checkpoint_pending", &action, told);
        self.note(
            "action_denied",
            &format!("{action} APPROVAL_REQUIRED"),
            told,
        );
    }

    /// Asks again for what an operator has decided meanwhile: twice at the same time, at two
    /// servers, as an agent does that was started twice. One yes is good once.
    fn takes_up(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let path = format!("/v1/actions/holds/{}", self.held[0].hold);
        if self.client.get("hold state", &path).body["state"] == "pending" {
            return;
        }
        let Held { wish, action, .. } = self.held.remove(0);
        let Some(entered) = self.enter(&wish) else {
            return;
        };
        // Where it was denied, it is another action from now on.
        let same = entered["action_id"] == action.as_str();
        let other = format!("{}-beside-{}", self.agent.name, self.number);
        let mut beside = Client::new(self.world, &other, &self.agent.token);
        let proposal = wish.proposal(&entered);
        let replies = std::thread::scope(|scope| {
            let one = scope.spawn(|| beside.post("propose approved", "/v1/actions", &proposal));
            let two = self.propose("propose approved", &wish, &entered);
            [one.join().unwrap(), two]
        });
        let action = text(&entered["action_id"]);
        let denied = format!("{action} OPERATOR_DENIED");
        let mut leaves = 0;
        for reply in &replies {
            match reply {
                None => {
                    self.note("action_intended", &action, Unknown);
                    self.note("action_denied", &denied, Unknown);
                }
                Some(reply) if reply.body["leave"].is_object() => {
                    assert!(same, "{reply:?}");
                    self.note("action_intended", &action, Done);
                    leaves += 1;
                }
                Some(reply) if reply.is_done() => {
                    let code = &reply.body["denied"]["denial"]["code"];
                    assert_eq!(code, "OPERATOR_DENIED", "{reply:?}");
                    self.note("action_denied", &denied, Done);
                }
                // The other one was first.
                Some(reply) => assert_eq!(reply.status, 409, "{reply:?}"),
            }
        }
        assert!(leaves <= 1, "one yes, and it was used twice: {replies:?}");
        if leaves == 1 {
            self.ends(&entered, "ok");
        }
    }

    /// Asks by the name of an action, as an agent does that no hook watches, and reports.
    fn requests(&mut self) {
        let Some(session) = self.agent.session.get() else {
            return;
        };
        let marker = format!("{}-{}", self.agent.name, self.number);
        let at = |step: &str| format!("/v1/sessions/{session}/{step}");
        let wish = json!({"action": "ticket.create", "parameters": {"marker": marker}});
        let reply = self.client.post("request", &at("request"), &wish);
        let Some(reply) = reply else {
            self.note("ActionRequested", &marker, Unknown);
            return;
        };
        assert!(reply.is_done(), "{reply:?}");
        self.note("ActionRequested", &marker, Done);
        let request = text(&reply.body["request_id"]);
        let report = json!({"request_id": request, "outcome": "ok"});
        let told = match self.client.post("report", &at("report"), &report) {
            Some(reply) => {
                assert!(reply.is_done(), "{reply:?}");
                Done
            }
            None => Unknown,
        };
        self.note("ActionReported", &request, told);
    }

    /// Adds to a chain of work. Where others add to it, somebody else may have been faster.
    fn adds(&mut self, chain: &Chain) {
        let path = format!("/v1/workspaces/{}", chain.id);
        let head = self.client.get("record head", &format!("{path}/head"));
        assert!(head.is_done(), "{head:?}");
        let parent = &head.body["checkpoint"]["id"];
        let intent = format!("{}-{}", self.agent.name, self.number);
        let given = json!({"token": chain.token, "body": record(&intent, parent)});
        let told = match self
            .client
            .post("record", &format!("{path}/checkpoint"), &given)
        {
            Some(reply) if reply.is_done() => Done,
            // Somebody else, or something of our own that we gave up on.
            Some(reply) => {
                let rejected = reply.body.to_string().contains("invalid_parent");
                assert!(rejected, "{reply:?}");
                Refused
            }
            None => Unknown,
        };
        self.note("record", &intent, told);
    }

    /// Looks at what is there.
    fn looks(&mut self) {
        let own = format!("/v1/workspaces/{}/log", self.agent.chain.id);
        let session = self.agent.session.get();
        let path = match (self.chance.below(4), session) {
            (0, _) => "/v1/sessions?limit=10".to_owned(),
            (1, Some(session)) => format!("/v1/sessions/{session}"),
            (2, _) => own,
            _ => "/v1/workspaces".to_owned(),
        };
        let reply = self.client.get("read lists", &path);
        assert!(reply.is_done(), "{reply:?}");
        if let Some(next) = reply.next {
            self.client.get("read lists", &next);
        }
    }
}

pub(super) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => panic!("no text: {value:#}"),
    }
}
