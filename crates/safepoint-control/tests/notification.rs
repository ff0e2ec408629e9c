//! Notices: events as agreed, signed, delivered at least once, and given up aloud.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail loudly"
)]

mod support;

use std::cell::RefCell;
use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_control::{
    Control, Delivered, Https, Message, NoCaller, NotDelivered, Poster, Reach,
};
use safepoint_model::{Digest, Timestamp};
use safepoint_trail::note::PublicKey;
use serde_json::{Value, json};
use support::{Answer, Server, control, recorded, start, trusting};
use testkit::{Database, Room, on_every_store};

const WEBHOOK: &str = "https://hooks.example.com/T0/very-secret";
const SECOND: i64 = 1_000_000;

/// Takes notices, and does with them what it was told, the last from then on.
struct Fake {
    posted: RefCell<Vec<(String, Message)>>,
    answers: RefCell<VecDeque<Result<(), NotDelivered>>>,
}

impl Fake {
    fn new(answers: impl IntoIterator<Item = Result<(), NotDelivered>>) -> Self {
        Self {
            posted: RefCell::default(),
            answers: RefCell::new(answers.into_iter().collect()),
        }
    }

    fn count(&self) -> usize {
        self.posted.borrow().len()
    }
}

impl Poster for Fake {
    fn post(&self, webhook: &str, message: &Message) -> Result<(), NotDelivered> {
        let mut posted = self.posted.borrow_mut();
        posted.push((webhook.to_owned(), message.clone()));
        let mut answers = self.answers.borrow_mut();
        match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        }
    }
}

fn failed() -> Result<(), NotDelivered> {
    Err(NotDelivered::Failed(
        "it answered with status 500".to_owned(),
    ))
}

/// An atlas whose steward is told when a session starts.
fn atlas(webhook: &str) -> Value {
    json!({"steward": {"id": "acme", "notifications": {
        "channels": {"webhook": webhook}, "triggers": ["session_started"],
    }}})
}

fn round(arrived: u64, waiting: u64, given_up: u64) -> Delivered {
    Delivered {
        arrived,
        waiting,
        given_up,
    }
}

/// The public key of the room's trail.
fn key(room: &Room) -> PublicKey {
    room.trail().key().clone()
}

/// Checks a signature as the page on notifications says, through a signed note.
fn verify(key: &PublicKey, header: &str, body: &str) -> Result<i64, String> {
    let mut parts = header.split(';');
    assert_eq!(parts.next(), Some("ed25519"));
    let mut part = |name: &str| {
        let (found, value) = parts.next().unwrap().split_once('=').unwrap();
        assert_eq!(found, name);
        value.to_owned()
    };
    let (id, time, signature) = (part("keyid"), part("t"), part("sig"));
    let mut bytes = u32::from_str_radix(&id, 16).unwrap().to_be_bytes().to_vec();
    bytes.extend(BASE64.decode(signature).unwrap());
    let name = key.name();
    let digest = Digest::of_parts(&[body.as_bytes()]);
    let statement = format!("safepoint-notification/v1 of {name}\n{time}\n{digest}\n");
    let note = format!("{statement}\n— {name} {}\n", BASE64.encode(bytes));
    key.open(&note).map_err(|error| error.to_string())?;
    Ok(time.parse().unwrap())
}

on_every_store! {
    fn ga_43_a_notice_is_a_signed_cloud_event(room: Room) {
        let control = control(&room, NoCaller);
        let started = start(&control, "com.example.ünder test", atlas(WEBHOOK));
        room.clock.move_by(5 * SECOND);
        assert!(control.has_due_notices().unwrap());
        let poster = Fake::new([Ok(())]);
        assert_eq!(control.deliver(&poster).unwrap(), round(1, 0, 0));
        assert!(!control.has_due_notices().unwrap());
        assert_eq!(control.deliver(&poster).unwrap(), round(0, 0, 0));

        let posted = poster.posted.borrow();
        assert_eq!(posted.len(), 1);
        let (webhook, message) = &posted[0];
        assert_eq!(webhook, WEBHOOK);
        let event: Value = serde_json::from_str(&message.body).unwrap();
        let members: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = ["specversion", "id", "source", "type", "time", "subject", "datacontenttype", "data"];
        expected.sort_unstable();
        assert_eq!(members.iter().collect::<std::collections::BTreeSet<_>>(), expected.iter().collect());
        assert_eq!(event["specversion"], "1.0");
        assert_eq!(event["source"], "safepoint/com.example.%C3%BCnder%20test");
        assert_eq!(event["type"], "dev.safepoint.session_started");
        assert_eq!(event["subject"], started.session_id.as_str());
        assert_eq!(event["datacontenttype"], "application/json");
        assert!(!event["id"].as_str().unwrap().is_empty());
        let time = Timestamp::parse(event["time"].as_str().unwrap()).unwrap();
        assert_eq!(time, Timestamp::parse("2026-11-15T07:00:00Z").unwrap());

        let key = key(&room);
        let signed = verify(&key, &message.signature, &message.body).unwrap();
        assert_eq!(signed, time.as_micros() / SECOND + 5);
        let other = message.body.replace("session_started", "session_stopped");
        assert!(verify(&key, &message.signature, &other).is_err());
        let later = message.signature.replace(&format!("t={signed}"), "t=1");
        assert!(verify(&key, &later, &message.body).is_err());
    }

    fn ga_43_failures_are_tried_again_each_time_later_and_then_given_up(room: Room) {
        let control = control(&room, NoCaller);
        let started = start(&control, "test", atlas(WEBHOOK));
        let poster = Fake::new([failed()]);
        for attempt in 1..10 {
            assert_eq!(control.deliver(&poster).unwrap(), round(0, 1, 0), "{attempt}");
            // A moment before its time it is left alone.
            room.clock.move_by((SECOND << attempt) - 1);
            assert!(!control.has_due_notices().unwrap());
            assert_eq!(control.deliver(&poster).unwrap(), round(0, 0, 0), "{attempt}");
            room.clock.move_by(1);
            assert!(control.has_due_notices().unwrap());
        }
        assert!(recorded(&room, "NotificationFailed").is_empty());
        assert_eq!(control.deliver(&poster).unwrap(), round(0, 0, 1));
        assert_eq!(poster.count(), 10);
        room.clock.move_by(1_000_000 * SECOND);
        assert_eq!(control.deliver(&poster).unwrap(), round(0, 0, 0));

        let bodies: Vec<String> = poster.posted.borrow().iter().map(|it| it.1.body.clone()).collect();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "the id stays the same");
        let event: Value = serde_json::from_str(&bodies[0]).unwrap();
        let failures = recorded(&room, "NotificationFailed");
        assert_eq!(failures.len(), 1);
        let (entry, body) = &failures[0];
        assert_eq!(entry.stream.as_str(), started.session_id.as_str());
        assert_eq!(*body, json!({
            "notification_id": event["id"],
            "type": "dev.safepoint.session_started",
            "webhook": "https://hooks.example.com",
            "attempts": 10,
            "reason": "it answered with status 500",
        }));
    }

    fn ga_43_a_notice_that_is_being_sent_is_sent_by_nobody_else(room: Room) {
        struct Nosy<'a>(&'a Control, RefCell<Vec<Delivered>>);
        impl Poster for Nosy<'_> {
            fn post(&self, _: &str, _: &Message) -> Result<(), NotDelivered> {
                let others = self.0.deliver(&Fake::new([Ok(())])).unwrap();
                self.1.borrow_mut().push(others);
                Ok(())
            }
        }
        let (one, other) = (control(&room, NoCaller), control(&room, NoCaller));
        start(&one, "test", atlas(WEBHOOK));
        let poster = Nosy(&other, RefCell::default());
        assert_eq!(one.deliver(&poster).unwrap(), round(1, 0, 0));
        assert_eq!(*poster.1.borrow(), [round(0, 0, 0)]);
    }

    fn ga_43_a_process_that_dies_while_sending_leaves_the_notice_to_the_next(room: Room) {
        struct Dies;
        impl Poster for Dies {
            fn post(&self, _: &str, _: &Message) -> Result<(), NotDelivered> {
                std::panic::resume_unwind(Box::new("on purpose"))
            }
        }
        let control = control(&room, NoCaller);
        start(&control, "test", atlas(WEBHOOK));
        let die = || {
            let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| control.deliver(&Dies)));
            assert!(died.is_err());
        };
        die();
        assert!(!control.has_due_notices().unwrap());
        room.clock.move_by(120 * SECOND);
        assert!(control.has_due_notices().unwrap());
        // Whatever kills its carrier is not carried for ever.
        for _ in 1..10 {
            die();
            room.clock.move_by(120 * SECOND);
        }
        let poster = Fake::new([Ok(())]);
        assert_eq!(control.deliver(&poster).unwrap(), round(0, 0, 1));
        assert_eq!(poster.count(), 0);
        let failures = recorded(&room, "NotificationFailed");
        assert_eq!(failures[0].1["reason"], "whoever delivered it never came back");
        assert_eq!(failures[0].1["attempts"], 10);
    }
}

#[test]
fn ga_43_one_dead_webhook_delays_nobody_else() {
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    for _ in 0..3 {
        start(&control, "dead", atlas("https://dead.example.com/"));
    }
    start(&control, "alive", atlas("https://alive.example.com/"));
    struct Half(RefCell<Vec<String>>);
    impl Poster for Half {
        fn post(&self, webhook: &str, _: &Message) -> Result<(), NotDelivered> {
            self.0.borrow_mut().push(webhook.to_owned());
            match webhook.contains("alive") {
                true => Ok(()),
                false => Err(NotDelivered::Unreachable(
                    "it did not answer in time".to_owned(),
                )),
            }
        }
    }
    let poster = Half(RefCell::default());
    assert_eq!(control.deliver(&poster).unwrap(), round(1, 3, 0));
    // It was waited for once, not three times.
    assert_eq!(
        *poster.0.borrow(),
        ["https://dead.example.com/", "https://alive.example.com/"]
    );
}

#[test]
fn ga_43_a_clock_that_is_set_back_does_not_make_rounds_endless() {
    struct SetsBack<'a>(&'a Room, RefCell<u32>);
    impl Poster for SetsBack<'_> {
        fn post(&self, _: &str, _: &Message) -> Result<(), NotDelivered> {
            *self.1.borrow_mut() += 1;
            self.0.clock.move_by(-10_000 * SECOND);
            failed()
        }
    }
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    start(&control, "test", atlas(WEBHOOK));
    let poster = SetsBack(&room, RefCell::default());
    assert_eq!(control.deliver(&poster).unwrap(), round(0, 1, 0));
    assert_eq!(*poster.1.borrow(), 1);
}

#[test]
fn ga_43_secrets_are_taken_out_of_what_leaves() {
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let mut atlas = atlas(WEBHOOK);
    atlas["steward"]["notifications"]["triggers"] = json!(["checkpoint_triggered"]);
    atlas["checkpoints"] = json!([{
        "checkpoint_id": secret, "trigger": {"type": "session_start"}, "mode": "observational",
    }]);
    start(&control, "test", atlas);
    let poster = Fake::new([Ok(())]);
    assert_eq!(control.deliver(&poster).unwrap(), round(1, 0, 0));
    let body = &poster.posted.borrow()[0].1.body;
    assert!(!body.contains(&secret), "{body}");
    assert!(body.contains("[redacted:"), "{body}");
}

#[test]
fn ga_43_notices_arrive_over_https() {
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    let server = Server::new([
        Answer::status("204 No Content", ""),
        Answer::status("503 Later", ""),
        Answer::status("200 OK", "thanks"),
        Answer::status("410 Gone", ""),
    ]);
    let https = trusting(&server).with_webhooks(Reach::AlsoPrivate);
    start(&control, "test", atlas(&server.url("/hook")));
    assert_eq!(control.deliver(&https).unwrap(), round(1, 0, 0));
    start(&control, "test", atlas(&server.url("/hook")));
    assert_eq!(control.deliver(&https).unwrap(), round(0, 1, 0));
    room.clock.move_by(2 * SECOND);
    assert_eq!(control.deliver(&https).unwrap(), round(1, 0, 0));
    // Gone means: never again.
    start(&control, "test", atlas(&server.url("/hook")));
    assert_eq!(control.deliver(&https).unwrap(), round(0, 0, 1));
    assert_eq!(
        recorded(&room, "NotificationFailed")[0].1["reason"],
        "it wants no more"
    );

    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    let header = |name: &str| {
        let found = head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then(|| value.to_owned())
        });
        found.unwrap()
    };
    assert_eq!(
        header("content-type"),
        "application/cloudevents+json; charset=utf-8"
    );
    verify(&key(&room), &header("safepoint-signature"), body).unwrap();
}

#[test]
fn ga_43_a_webhook_that_may_not_be_used_is_given_up_at_once() {
    let server = Server::new([Answer::status("200 OK", "")]);
    for (webhook, reason) in [
        (
            server.url("/hook"),
            "its address is in a private or special network, which is not allowed",
        ),
        (
            "https://169.254.169.254/".to_owned(),
            "its address is in a private or special network, which is not allowed",
        ),
        (
            "http://example.com/".to_owned(),
            "its address cannot be used: only `https:` is used",
        ),
        (
            "nonsense".to_owned(),
            "its address cannot be used: only `https:` is used",
        ),
        (
            "https://me:hunter22@example.com/".to_owned(),
            "its address cannot be used: it carries a user name or a password, which are never sent",
        ),
    ] {
        let room = Room::new(Database::Sqlite);
        let control = control(&room, NoCaller);
        start(&control, "test", atlas(&webhook));
        let https: Https = trusting(&server);
        assert_eq!(
            control.deliver(&https).unwrap(),
            round(0, 0, 1),
            "{webhook}"
        );
        let failures = recorded(&room, "NotificationFailed");
        assert_eq!(failures[0].1["reason"], reason);
        assert_eq!(failures[0].1["attempts"], 1);
        assert!(!failures[0].0.body.contains("hunter22"));
    }
    assert_eq!(server.connections(), 0);
}
