//! What operators are told: in order, signed, at least once, and given up aloud.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail loudly"
)]

mod support;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_authority::{Operator, OperatorKey};
use safepoint_control::notify::{
    Again, Carrier, Channel, Letter, NewTarget, NotTaken, Secret, Target, Telling, TellingReport,
    Topic, Vault,
};
use safepoint_control::pass::Desk;
use safepoint_control::{Control, ControlError, Https, NoCaller};
use safepoint_model::Span;
use safepoint_store::Durability;
use safepoint_trail::note::Signer;
use safepoint_trail::{Actor, Draft, Entry, Kind, Stream};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{Answer, Server, control, recorded};
use testkit::{Database, Room, Seeded, on_every_store};

const URL: &str = "https://hooks.example.com/T0/very-secret-path";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// A message as it was sent.
#[derive(Clone, Debug)]
struct Sent {
    headers: BTreeMap<&'static str, String>,
    body: Value,
    text: String,
}

/// Takes messages, and does with them what it was told, the last from then on.
struct Fake {
    sent: RefCell<Vec<Sent>>,
    answers: RefCell<VecDeque<Result<(), NotTaken>>>,
}

impl Fake {
    fn new(answers: impl IntoIterator<Item = Result<(), NotTaken>>) -> Self {
        Self {
            sent: RefCell::default(),
            answers: RefCell::new(answers.into_iter().collect()),
        }
    }

    fn sent(&self) -> Vec<Sent> {
        self.sent.borrow().clone()
    }

    /// The places in the trail of what was sent.
    fn places(&self) -> Vec<u64> {
        let place = |sent: &Sent| sent.body["sequence"].as_str().unwrap().parse().unwrap();
        self.sent.borrow().iter().map(place).collect()
    }
}

impl Carrier for Fake {
    fn carry(&self, letter: &Letter) -> Result<(), NotTaken> {
        self.sent.borrow_mut().push(Sent {
            headers: letter.headers.iter().cloned().collect(),
            body: serde_json::from_str(&letter.body).unwrap(),
            text: letter.body.clone(),
        });
        let mut answers = self.answers.borrow_mut();
        match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        }
    }
}

fn failed(again: Again) -> Result<(), NotTaken> {
    Err(NotTaken {
        reason: "it answered with status 500".to_owned(),
        again,
    })
}

fn vault(room: &Room) -> Vault {
    Vault::new(room.path().join("vault"))
}

fn desk(control: &Control) -> Desk<'_> {
    Desk {
        control,
        permit_life: Span::from_secs(60),
    }
}

/// Somebody who decides.
fn ann(control: &Control) -> (Operator, Signer) {
    let signer = Signer::generate("ann", &Seeded::new(3)).unwrap();
    let known = desk(control).operators().unwrap();
    let operator = match known.into_iter().next() {
        Some(known) => known,
        None => desk(control)
            .add_operator("ann", signer.public(), OperatorKey::File, None)
            .unwrap(),
    };
    (operator, signer)
}

fn webhook(name: &str) -> NewTarget {
    NewTarget {
        name: name.to_owned(),
        channel: Channel::Webhook,
        on: Topic::usual(),
        url: Some(URL.to_owned()),
        secret: Some(Secret::parse(SECRET).unwrap()),
        authority: None,
        allow_private: false,
    }
}

fn slack(name: &str) -> NewTarget {
    NewTarget {
        channel: Channel::Slack,
        secret: None,
        ..webhook(name)
    }
}

fn try_to_add(room: &Room, control: &Control, new: &NewTarget) -> Result<Target, ControlError> {
    let (operator, signer) = ann(control);
    let desk = desk(control);
    let word = desk.word(&operator, &signer, &new.says()).unwrap();
    desk.add_target(new, &vault(room), &word)
}

fn add(room: &Room, control: &Control, new: &NewTarget) -> Target {
    try_to_add(room, control, new).unwrap()
}

fn tell(room: &Room, control: &Control, carrier: &dyn Carrier) -> TellingReport {
    let vault = vault(room);
    let telling = Telling {
        vault: &vault,
        carrier,
        page: Some("https://safepoint.example.com/"),
    };
    control.tell(&telling).unwrap()
}

fn round(arrived: u64, waiting: u64, given_up: u64) -> TellingReport {
    TellingReport {
        arrived,
        waiting,
        given_up,
        unusable: Vec::new(),
    }
}

/// Something happens that is told, or not.
fn happens(control: &Control, kind: &'static str, body: Value) -> Entry {
    let draft = Draft {
        stream: Stream::store(),
        actor: Actor::safepoint(),
        kind: Kind::fixed(kind).into(),
        action_id: None,
        body,
    };
    control.trail().append(draft, Durability::Sync).unwrap()
}

fn exceeded(control: &Control, number: u64) -> Entry {
    let body = json!({"workspace": "w", "budget_dimension": "tokens", "used": number});
    happens(control, "budget_exceeded", body)
}

/// HMAC-SHA256 by its definition, as a stranger would write it.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = block.map(|byte| byte ^ 0x36);
    let outer = block.map(|byte| byte ^ 0x5c);
    let hashed = Sha256::new().chain_update(inner).chain_update(text);
    let hashed = hashed.finalize();
    Sha256::new()
        .chain_update(outer)
        .chain_update(hashed)
        .finalize()
        .to_vec()
}

/// Whether a message was signed as Standard Webhooks say, with our secret.
fn is_signed(id: &str, time: &str, body: &str, signature: &str) -> bool {
    let key = BASE64
        .decode(SECRET.strip_prefix("whsec_").unwrap())
        .unwrap();
    let expected = BASE64.encode(hmac(&key, format!("{id}.{time}.{body}").as_bytes()));
    signature == format!("v1,{expected}")
}

on_every_store! {
    fn su_10_a_webhook_gets_signed_cloud_events_in_order(room: Room) {
        let control = control(&room, NoCaller);
        exceeded(&control, 0); // before: not told
        add(&room, &control, &webhook("ops"));
        assert!(!control.has_something_to_tell().unwrap());
        let first = exceeded(&control, 1);
        happens(&control, "note", json!({"text": "nobody is told of this"}));
        let second = happens(&control, "integrity_violation", json!({"subject_id": "w"}));
        happens(&control, "permit_issued", json!({"permit_id": "not asked for"}));
        assert!(control.has_something_to_tell().unwrap());
        room.clock.move_by(5 * SECOND);

        let fake = Fake::new([Ok(())]);
        assert_eq!(tell(&room, &control, &fake), round(2, 0, 0));
        assert_eq!(tell(&room, &control, &fake), round(0, 0, 0));
        assert!(!control.has_something_to_tell().unwrap());
        assert_eq!(fake.places(), [first.seq, second.seq]);

        let Sent { headers, body, text } = &fake.sent()[0];
        assert_eq!(headers["content-type"], "application/cloudevents+json; charset=utf-8");
        assert_eq!(headers["webhook-id"], first.id.as_str());
        let time = first.time.as_micros() / SECOND + 5;
        assert_eq!(headers["webhook-timestamp"], time.to_string());
        let signature = &headers["webhook-signature"];
        assert!(is_signed(first.id.as_str(), &time.to_string(), text, signature));
        let other = text.replace("tokens", "cost");
        assert!(!is_signed(first.id.as_str(), &time.to_string(), &other, signature));
        assert!(!is_signed(second.id.as_str(), &time.to_string(), text, signature));

        assert_eq!(body["specversion"], "1.0");
        assert_eq!(body["id"], first.id.as_str());
        assert_eq!(body["type"], "dev.safepoint.budget.exceeded");
        assert_eq!(body["source"], room.trail().key().name());
        assert_eq!(body["hash"], first.hash.to_string());
        assert_eq!(body["datacontenttype"], "application/json");
        assert_eq!(body["data"]["topic"], "budget");
        assert_eq!(body["data"]["entry"]["used"], 1);
        assert_eq!(fake.sent()[1].body["type"], "dev.safepoint.incident.integrity");
    }

    fn su_10_what_fails_is_tried_again_later_with_the_same_id_and_others_wait_behind_it(room: Room) {
        let control = control(&room, NoCaller);
        add(&room, &control, &webhook("ops"));
        let first = exceeded(&control, 1);
        let second = exceeded(&control, 2);
        let fake = Fake::new([failed(Again::Later(None)), failed(Again::Later(None)), Ok(())]);
        for attempt in 1..=2 {
            let wait = SECOND << attempt;
            assert_eq!(tell(&room, &control, &fake), round(0, 1, 0), "{attempt}");
            // Never before half of the wait, and always after all of it.
            room.clock.move_by(wait / 2 - 1);
            assert_eq!(tell(&room, &control, &fake), round(0, 0, 0), "{attempt}");
            assert!(!control.has_something_to_tell().unwrap());
            room.clock.move_by(wait / 2 + 1);
            assert!(control.has_something_to_tell().unwrap());
        }
        assert_eq!(tell(&room, &control, &fake), round(2, 0, 0));
        assert_eq!(fake.places(), [first.seq, first.seq, first.seq, second.seq]);
        let sent = fake.sent();
        assert_eq!(sent[0].text, sent[2].text, "the same message, with the same id");
        let signed = |sent: &Sent| sent.headers["webhook-signature"].clone();
        assert_ne!(signed(&sent[0]), signed(&sent[2]), "signed for the time it is sent");
        assert!(recorded(&room, "NotificationFailed").is_empty());
    }

    fn su_10_a_target_that_asks_for_time_gets_it(room: Room) {
        let control = control(&room, NoCaller);
        add(&room, &control, &webhook("ops"));
        exceeded(&control, 1);
        let asked = Some(Duration::from_secs(300));
        let fake = Fake::new([failed(Again::Later(asked)), Ok(())]);
        assert_eq!(tell(&room, &control, &fake), round(0, 1, 0));
        room.clock.move_by(300 * SECOND - 1);
        assert_eq!(tell(&room, &control, &fake), round(0, 0, 0));
        room.clock.move_by(1);
        assert_eq!(tell(&room, &control, &fake), round(1, 0, 0));
    }

    fn su_10_after_a_day_it_is_given_up_with_all_that_is_as_old(room: Room) {
        let control = control(&room, NoCaller);
        add(&room, &control, &webhook("ops"));
        let first = exceeded(&control, 1);
        exceeded(&control, 2);
        let fake = Fake::new([failed(Again::Later(None))]);
        assert_eq!(tell(&room, &control, &fake), round(0, 1, 0));
        room.clock.move_by(24 * HOUR + SECOND);
        let fresh = exceeded(&control, 3);
        let fake = Fake::new([failed(Again::Later(None)), Ok(())]);
        assert_eq!(tell(&room, &control, &fake), round(1, 0, 2));
        assert_eq!(fake.places(), [first.seq, fresh.seq]);
        let failures = recorded(&room, "NotificationFailed");
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].1, json!({
            "notification_id": first.id,
            "type": "dev.safepoint.budget.exceeded",
            "target": "ops",
            "origin": "https://hooks.example.com",
            "attempts": 2,
            "dropped": 2,
            "reason": "it answered with status 500",
        }));
    }

    fn su_10_what_will_never_be_taken_is_given_up_at_once(room: Room) {
        let control = control(&room, NoCaller);
        add(&room, &control, &webhook("ops"));
        exceeded(&control, 1);
        exceeded(&control, 2);
        let fake = Fake::new([failed(Again::Never), Ok(())]);
        assert_eq!(tell(&room, &control, &fake), round(1, 0, 1));
        assert_eq!(recorded(&room, "NotificationFailed")[0].1["attempts"], 1);
        // That somebody was not told is told to nobody.
        assert_eq!(tell(&room, &control, &fake), round(0, 0, 0));
    }

    fn su_10_two_who_deliver_at_once_send_each_message_once(room: Room) {
        /// While it carries one, another process delivers everything it can get.
        struct Nosy<'a>(&'a Room, &'a Control, Fake);
        impl Carrier for Nosy<'_> {
            fn carry(&self, letter: &Letter) -> Result<(), NotTaken> {
                let others = tell(self.0, self.1, &Fake::new([Ok(())]));
                assert_eq!(others, round(0, 0, 0));
                self.2.carry(letter)
            }
        }
        let (one, other) = (control(&room, NoCaller), control(&room, NoCaller));
        add(&room, &one, &webhook("ops"));
        let places: Vec<u64> = (0..5).map(|number| exceeded(&one, number).seq).collect();
        let nosy = Nosy(&room, &other, Fake::new([Ok(())]));
        assert_eq!(tell(&room, &one, &nosy), round(5, 0, 0));
        assert_eq!(nosy.2.places(), places);
    }

    fn su_10_one_that_dies_between_sending_and_writing_that_down_leaves_it_to_the_next(room: Room) {
        struct Dies<'a>(&'a Fake);
        impl Carrier for Dies<'_> {
            fn carry(&self, letter: &Letter) -> Result<(), NotTaken> {
                self.0.carry(letter).unwrap();
                std::panic::resume_unwind(Box::new("on purpose"))
            }
        }
        let control = control(&room, NoCaller);
        add(&room, &control, &webhook("ops"));
        let first = exceeded(&control, 1);
        let fake = Fake::new([Ok(())]);
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tell(&room, &control, &Dies(&fake))
        }));
        assert!(died.is_err());
        assert_eq!(tell(&room, &control, &fake), round(0, 0, 0), "it may still be at it");
        room.clock.move_by(120 * SECOND);
        assert_eq!(tell(&room, &control, &fake), round(1, 0, 0));
        assert_eq!(fake.places(), [first.seq, first.seq]);
        let id = |sent: &Sent| sent.headers["webhook-id"].clone();
        assert_eq!(id(&fake.sent()[0]), id(&fake.sent()[1]));
    }

    fn su_10_only_what_was_asked_for_is_told(room: Room) {
        let control = control(&room, NoCaller);
        let only = BTreeSet::from([Topic::Permits]);
        add(&room, &control, &NewTarget { on: only, ..webhook("permits") });
        exceeded(&control, 1);
        happens(&control, "action_intended", json!({"permit_id": null}));
        let used = happens(&control, "action_intended", json!({"permit_id": "prm_1"}));
        let fake = Fake::new([Ok(())]);
        assert_eq!(tell(&room, &control, &fake), round(1, 0, 0));
        assert_eq!(fake.places(), [used.seq]);
    }

    fn su_10_a_target_is_changed_by_an_operators_word_alone(room: Room) {
        let control = control(&room, NoCaller);
        let (operator, signer) = ann(&control);
        let desk = desk(&control);
        let new = webhook("ops");
        for says in ["notify add ops", &slack("ops").says(), &webhook("other").says()] {
            let word = desk.word(&operator, &signer, says).unwrap();
            let refused = desk.add_target(&new, &vault(&room), &word).unwrap_err();
            assert!(matches!(refused, ControlError::Operator { .. }), "{refused}");
        }
        let other = Signer::generate("ann", &Seeded::new(99)).unwrap();
        let word = desk.word(&operator, &other, &new.says()).unwrap();
        desk.add_target(&new, &vault(&room), &word).unwrap_err();
        assert!(control.targets().unwrap().is_empty());

        add(&room, &control, &new);
        assert!(try_to_add(&room, &control, &new).is_err(), "once");
        let word = desk.word(&operator, &signer, "notify remove other").unwrap();
        desk.remove_target("ops", &vault(&room), &word).unwrap_err();
        let word = desk.word(&operator, &signer, "notify remove ops").unwrap();
        desk.remove_target("ops", &vault(&room), &word).unwrap();
        assert!(control.targets().unwrap().is_empty());
        assert!(!room.path().join("vault/ops.json").exists());
        exceeded(&control, 1);
        assert_eq!(tell(&room, &control, &Fake::new([Ok(())])), round(0, 0, 0));
        // The same name again begins anew.
        add(&room, &control, &new);
        assert_eq!(tell(&room, &control, &Fake::new([Ok(())])), round(0, 0, 0));
    }

    fn su_10_nothing_secret_is_in_the_store(room: Room) {
        let control = control(&room, NoCaller);
        add(&room, &control, &webhook("ops"));
        exceeded(&control, 1);
        tell(&room, &control, &Fake::new([failed(Again::Never)]));
        let entries = room.entries(&room.trail());
        assert!(entries.len() > 3);
        let key = SECRET.strip_prefix("whsec_").unwrap();
        for secret in ["very-secret-path", key] {
            for entry in &entries {
                assert!(!entry.body.contains(secret), "{}", entry.body);
            }
            let target = format!("{:?}", control.targets().unwrap());
            assert!(!target.contains(secret), "{target}");
            if room.database() == Database::Sqlite {
                for file in std::fs::read_dir(room.path()).unwrap() {
                    let file = file.unwrap().path();
                    let Ok(bytes) = std::fs::read(&file) else { continue };
                    let found = bytes.windows(secret.len()).any(|it| it == secret.as_bytes());
                    assert!(!found, "{}", file.display());
                }
            }
        }
    }
}

#[test]
fn su_10_a_target_whose_secrets_were_changed_is_told_nothing() {
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    add(&room, &control, &webhook("ops"));
    exceeded(&control, 1);
    let file = room.path().join("vault/ops.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    let fake = Fake::new([Ok(())]);
    for other in [
        Some(kept.replace("hooks.example.com", "evil.example.com")),
        None,
    ] {
        match &other {
            Some(text) => testkit_write(&file, text),
            None => testkit_remove(&file),
        }
        let report = tell(&room, &control, &fake);
        assert_eq!((report.arrived, report.unusable.len()), (0, 1));
        assert!(!report.unusable[0].1.contains("evil"), "{report:?}");
    }
    testkit_write(&file, &kept);
    assert_eq!(tell(&room, &control, &fake), round(1, 0, 0));
}

#[expect(clippy::disallowed_methods, reason = "somebody else writes there")]
fn testkit_write(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "somebody else writes there")]
fn testkit_remove(path: &std::path::Path) {
    std::fs::remove_file(path).unwrap();
}

#[test]
fn su_10_an_entry_that_was_changed_is_told_to_nobody() {
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    add(&room, &control, &webhook("ops"));
    let entry = exceeded(&control, 1);
    let mut entries = room.entries(&room.trail());
    let place = usize::try_from(entry.seq).unwrap();
    entries[place].body = entries[place].body.replace("tokens", "coffee");
    room.rewrite(&entries);
    let fake = Fake::new([Ok(())]);
    let vault = vault(&room);
    let telling = Telling {
        vault: &vault,
        carrier: &fake,
        page: None,
    };
    assert!(control.tell(&telling).is_err());
    assert!(fake.sent().is_empty());
}

#[test]
fn su_10_addresses_that_may_not_be_used_are_refused_when_they_are_added() {
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    let with = |url: &str, allow_private| NewTarget {
        url: Some(url.to_owned()),
        allow_private,
        ..webhook("ops")
    };
    for url in [
        "http://example.com/",
        "http://127.0.0.1:8080/",
        "https://127.0.0.1/",
        "https://169.254.169.254/latest",
        "https://me:hunter22@example.com/",
        "file:///etc/passwd",
        "nonsense",
    ] {
        let error = try_to_add(&room, &control, &with(url, false)).unwrap_err();
        assert!(
            matches!(error, ControlError::Target { .. }),
            "{url}: {error}"
        );
        assert!(!error.to_string().contains("hunter22"), "{error}");
    }
    let error = try_to_add(&room, &control, &with("http://10.0.0.1/", true)).unwrap_err();
    assert!(matches!(error, ControlError::Target { .. }), "{error}");
    let named = |name: &str| NewTarget {
        name: name.to_owned(),
        ..webhook("ops")
    };
    for name in ["", "../keys", ".hidden", "a/b", "ä", "a b", &"x".repeat(65)] {
        let error = try_to_add(&room, &control, &named(name)).unwrap_err();
        assert!(
            matches!(error, ControlError::Target { .. }),
            "{name}: {error}"
        );
    }
    for new in [
        NewTarget {
            secret: None,
            ..webhook("ops")
        },
        NewTarget {
            url: None,
            ..webhook("ops")
        },
        NewTarget {
            on: BTreeSet::new(),
            ..webhook("ops")
        },
        NewTarget {
            secret: Some(Secret::parse(SECRET).unwrap()),
            ..slack("ops")
        },
    ] {
        assert!(try_to_add(&room, &control, &new).is_err());
    }
    assert!(control.targets().unwrap().is_empty());
    add(&room, &control, &with("http://127.0.0.1:8080/", true));
}

/// What waits, with everything in it that a stranger could wish for.
fn hostile() -> Value {
    json!({
        "hold_id": "hld_1", "checkpoint_type": "policy_defined",
        "canonical_request_summary": "rm <!channel> `id` ``` <https://evil.example|Approve> @here",
        "trigger_description": "\u{1b}]0;title\u{7} *bold* \u{202e}gnp",
        "risk_classification": "high", "reversibility_class": "irreversible",
        "coverage": {"not_covered": ["<!here> & everything"]},
        "proposer": {"actor": "agent:<@U1>", "objective": "```<!everyone>"},
        "canonical_form": {"argv": ["rm", "```\n<!channel>", "x".repeat(9_000)]},
        "expires_at": "2026-11-15T08:00:00Z", "quorum": 2, "state": "pending",
    })
}

#[test]
fn su_10_a_chat_room_sees_what_waits_and_hostile_words_call_nobody() {
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    add(&room, &control, &slack("room"));
    happens(&control, "checkpoint_pending", hostile());
    let fake = Fake::new([Ok(())]);
    assert_eq!(tell(&room, &control, &fake), round(1, 0, 0));
    let Sent { headers, body, .. } = &fake.sent()[0];
    assert!(!headers.contains_key("webhook-signature"));
    let text = body["text"].as_str().unwrap();
    let blocks = body["blocks"].as_array().unwrap();
    let shown: Vec<&str> = blocks
        .iter()
        .map(|block| block["text"]["text"].as_str().unwrap())
        .collect();
    for text in shown.iter().copied().chain([text]) {
        assert!(
            !text.contains(['<', '>', '\u{1b}', '\u{7}', '\u{202e}']),
            "{text}"
        );
        // Code blocks are opened and closed by us alone.
        assert!(matches!(text.matches("```").count(), 0 | 2), "{text}");
    }
    assert!(shown.iter().all(|text| text.chars().count() <= 3_000));
    assert!(
        blocks
            .iter()
            .all(|it| it["type"] == "header" || it["type"] == "section")
    );
    for word in [
        "rm &lt;!channel&gt;",
        "agent:&lt;@U1&gt;",
        "high",
        "irreversible",
        "everything",
        "2026-11-15T08:00:00",
        "https://safepoint.example.com/holds/hld_1",
        "safepoint hold show hld_1",
    ] {
        assert!(text.contains(word), "{word}: {text}");
        assert!(shown.iter().any(|text| text.contains(word)), "{word}");
    }
    assert_eq!(body["unfurl_links"], false);
    // Others' words stand in code alone.
    let outside: Vec<&str> = text.split('`').step_by(2).collect();
    assert!(!outside.concat().contains("@here"), "{outside:?}");
}

/// The headers and the body of a request.
fn request(text: &str) -> (BTreeMap<String, String>, String) {
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let headers = head.lines().skip(1).map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_ascii_lowercase(), value.to_owned())
    });
    (headers.collect(), body.to_owned())
}

#[test]
fn su_10_messages_arrive_over_https_and_are_tried_again_when_they_do_not() {
    let room = Room::new(Database::Sqlite);
    let control = control(&room, NoCaller);
    let later = |status: &str, after: &str| {
        let head =
            format!("HTTP/1.1 {status}\r\nretry-after: {after}\r\ncontent-length: 0\r\n\r\n");
        Answer::Bytes(head.into_bytes())
    };
    let server = Server::new([
        Answer::status("500 Oh", ""),
        later("429 Slow", "90"),
        later("503 Later", "Sun, 15 Nov 2026 07:10:00 GMT"),
        Answer::status("200 OK", ""),
        Answer::status("410 Gone", ""),
    ]);
    add(
        &room,
        &control,
        &NewTarget {
            url: Some(server.url("/hook")),
            authority: Some(server.pem().to_owned()),
            allow_private: true,
            ..webhook("ops")
        },
    );
    let entry = exceeded(&control, 1);
    let https = Https::new();
    assert_eq!(tell(&room, &control, &https), round(0, 1, 0));
    room.clock.move_by(2 * SECOND);
    assert_eq!(tell(&room, &control, &https), round(0, 1, 0));
    room.clock.move_by(89 * SECOND);
    assert_eq!(
        tell(&room, &control, &https),
        round(0, 0, 0),
        "it asked for 90 seconds"
    );
    room.clock.move_by(SECOND);
    assert_eq!(tell(&room, &control, &https), round(0, 1, 0));
    // 92 seconds after seven: until ten past it is left alone.
    room.clock.move_by((600 - 92) * SECOND - 1);
    assert_eq!(tell(&room, &control, &https), round(0, 0, 0));
    room.clock.move_by(1);
    assert_eq!(tell(&room, &control, &https), round(1, 0, 0));
    exceeded(&control, 2);
    assert_eq!(tell(&room, &control, &https), round(0, 0, 1));

    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    for text in &requests[..4] {
        let (headers, body) = request(text);
        assert_eq!(headers["webhook-id"], entry.id.as_str());
        let (time, signature) = (&headers["webhook-timestamp"], &headers["webhook-signature"]);
        assert!(is_signed(entry.id.as_str(), time, &body, signature));
    }
    assert_eq!(
        recorded(&room, "NotificationFailed")[0].1["reason"],
        "it answered with status 410"
    );
}

#[test]
fn su_10_a_room_that_is_gone_is_given_up_at_once_and_a_webhook_is_not() {
    for (new, expected) in [
        (slack("ops"), round(0, 0, 1)),
        (webhook("ops"), round(0, 1, 0)),
    ] {
        let room = Room::new(Database::Sqlite);
        let control = control(&room, NoCaller);
        let server = Server::new([Answer::status("404 Not Found", "no_team")]);
        add(
            &room,
            &control,
            &NewTarget {
                url: Some(server.url("/hook")),
                authority: Some(server.pem().to_owned()),
                allow_private: true,
                ..new
            },
        );
        exceeded(&control, 1);
        assert_eq!(tell(&room, &control, &Https::new()), expected);
    }
}
