//! Evidence of a session, checked by somebody without a store.

#![expect(clippy::unwrap_used, reason = "tests")]

use safepoint_model::Digest;
use safepoint_store::Durability;
use safepoint_trail::bundle::{self, BundleError, CheckedBundle};
use safepoint_trail::dsse::Envelope;
use safepoint_trail::{Draft, Trail, TrailError};
use serde_json::{Value, json};
use testkit::{Database, Room, on_every_store};

const SESSION: &str = "ses_0000000000000001";

fn act(number: u64) -> String {
    format!("act_{number:016}")
}

fn append(room: &Room, trail: &Trail, stream: &str, kind: &str, action: Option<u64>, body: Value) {
    room.clock.move_by(1_000);
    let draft = Draft {
        stream: stream.parse().unwrap(),
        actor: "agent:claude-code".parse().unwrap(),
        kind: kind.parse().unwrap(),
        action_id: action.map(|number| act(number).parse().unwrap()),
        body,
    };
    trail.append(draft, Durability::Sync).unwrap();
}

/// Two sessions at once, with an older checkpoint that one of them uses and a later undo.
fn filled(room: &Room) -> Trail {
    let trail = room.trail();
    let other = "ses_0000000000000002";
    let place = "dir:0123456789abcdef";
    let add = |stream: &str, kind: &str, action: Option<u64>, body: Value| {
        append(room, &trail, stream, kind, action, body);
    };
    let chk = |number: u64| format!("chk_20261115_070000_{number:08}");
    add(
        place,
        "checkpoint_created",
        None,
        json!({"checkpoint_id": chk(1), "origin": "asked", "reason": "mine"}),
    );
    add(
        place,
        "checkpoint_created",
        None,
        json!({"checkpoint_id": chk(2), "origin": "asked", "reason": "nobody's"}),
    );
    add(other, "SessionStarted", None, json!({}));
    add(SESSION, "SessionStarted", None, json!({"goal": "日本語"}));
    add(
        SESSION,
        "ActionRequested",
        Some(1),
        json!({"action_id": "file.write"}),
    );
    add(
        other,
        "ActionRequested",
        Some(9),
        json!({"action_id": "file.read"}),
    );
    add(
        SESSION,
        "action_intended",
        Some(1),
        json!({"checkpoint_id": chk(1), "fingerprint": "cd".repeat(32)}),
    );
    add(
        place,
        "checkpoint_created",
        None,
        json!({"checkpoint_id": chk(3), "origin": "automatic", "reason": format!("after {}", act(1))}),
    );
    add(
        place,
        "action_done",
        Some(1),
        json!({"outcome": "ok", "before": chk(1), "after": chk(3)}),
    );
    add(
        "running:00",
        "DocumentState",
        Some(1),
        json!({"digest": "00"}),
    );
    add(
        SESSION,
        "InputReceived",
        None,
        json!({"text": "long ".repeat(20_000)}),
    );
    add(SESSION, "SessionEnded", None, json!({}));
    add(
        place,
        "checkpoint_created",
        None,
        json!({"checkpoint_id": chk(4), "origin": "automatic", "reason": "before undo"}),
    );
    add(
        place,
        "undone",
        Some(2),
        json!({"undoes": act(1), "before": chk(4), "after": chk(1)}),
    );
    add(other, "SessionEnded", None, json!({}));
    trail
}

fn write(trail: &Trail, session: &str) -> String {
    let mut text = String::new();
    let written = trail.write_bundle(&session.parse().unwrap(), |piece| {
        text.push_str(piece);
        Ok::<(), Failure>(())
    });
    assert!(written.unwrap().entries > 0);
    text
}

fn checked(text: &str, trail: &Trail) -> Result<CheckedBundle, BundleError> {
    bundle::check(text, trail.key())
}

on_every_store! {
    fn tr_07_a_bundle_has_all_of_its_session_and_nothing_else(room: Room) {
        let trail = filled(&room);
        let text = write(&trail, SESSION);
        let found = checked(&text, &trail).unwrap();
        let places: Vec<u64> = found.entries.iter().map(|entry| entry.seq).collect();
        // Not the checkpoint that nobody named (2), and nothing of the other session (3, 6, 15).
        assert_eq!(places, [1, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert_eq!(found.session.as_str(), SESSION);
        assert_eq!(found.head, trail.head().unwrap());
        assert_eq!(found.actions, 2);
        // A later trail proves the same of the older entries.
        append(&room, &trail, "later", "note", None, json!({}));
        let later = checked(&write(&trail, SESSION), &trail).unwrap();
        assert_eq!(later.entries, found.entries);
        assert!(checked(&text, &trail).is_ok(), "and the old bundle still holds");
        let error = trail.write_bundle(&"ses_none".parse().unwrap(), |_| Ok::<(), Failure>(())).unwrap_err();
        assert_eq!(error, Failure::NotFound);
    }
}

#[derive(Debug, PartialEq)]
enum Failure {
    NotFound,
    Other,
}

impl From<TrailError> for Failure {
    fn from(error: TrailError) -> Self {
        match error {
            TrailError::NotFound(_) => Self::NotFound,
            _ => Self::Other,
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(_: serde_json::Error) -> Self {
        Self::Other
    }
}

/// The bundle with something changed in it.
fn altered(text: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut document: Value = serde_json::from_str(text).unwrap();
    change(&mut document);
    document.to_string()
}

fn remove(document: &mut Value, place: usize) {
    document["entries"].as_array_mut().unwrap().remove(place);
}

#[test]
fn tr_07_what_is_wrong_with_a_bundle_is_named() {
    let room = Room::new(Database::Sqlite);
    let trail = filled(&room);
    let text = write(&trail, SESSION);
    let reason = |change: &dyn Fn(&mut Value)| -> String {
        checked(&altered(&text, change), &trail)
            .unwrap_err()
            .to_string()
    };
    // Written anew by another tool, it is the same.
    assert!(checked(&altered(&text, |_| {}), &trail).is_ok());
    let pretty: Value = serde_json::from_str(&text).unwrap();
    assert!(checked(&serde_json::to_string_pretty(&pretty).unwrap(), &trail).is_ok());

    let other = Room::new(Database::Sqlite).filled_trail(3);
    assert!(matches!(
        bundle::check(&text, other.key()),
        Err(BundleError::Head(_))
    ));

    let edited = reason(&|it| it["entries"][2]["entry"]["body"]["action_id"] = json!("file.read"));
    assert!(
        edited.contains("entry 3") && edited.contains("not what is proved"),
        "{edited}"
    );
    let cut = reason(&|it| remove(it, 3));
    assert!(cut.contains("missing before it"), "{cut}");
    let last = reason(&|it| remove(it, 10));
    assert!(last.contains("number of entries"), "{last}");
    let first = reason(&|it| remove(it, 1));
    assert!(first.contains("missing before it"), "{first}");
    let swapped = reason(&|it| it["entries"].as_array_mut().unwrap().swap(5, 6));
    assert!(swapped.contains("does not come behind"), "{swapped}");
    let doubled = reason(&|it| {
        let entry = it["entries"][0].clone();
        it["entries"].as_array_mut().unwrap().insert(0, entry);
    });
    assert!(doubled.contains("does not come behind"), "{doubled}");
    let session = reason(&|it| it["session"] = json!("ses_0000000000000002"));
    assert!(session.contains("no entry of its session"), "{session}");
    let blob = reason(&|it| {
        let blobs = it["blobs"].as_object_mut().unwrap();
        blobs.values_mut().for_each(|blob| *blob = json!("AAAA"));
    });
    assert!(blob.contains("large body"), "{blob}");
    let gone = reason(&|it| it["blobs"] = json!({}));
    assert!(gone.contains("large body"), "{gone}");
    let more = reason(&|it| it["blobs"]["00".repeat(32)] = json!(""));
    assert!(more.contains("a body of no entry"), "{more}");
    let unsigned = reason(&|it| it["statement"]["signatures"] = json!([]));
    assert!(unsigned.contains("no signature"), "{unsigned}");
    let format = reason(&|it| it["format"] = json!("safepoint/bundle/v2"));
    assert!(format.contains("v2"), "{format}");
    let field = reason(&|it| it["more"] = json!(1));
    assert!(field.contains("unknown field"), "{field}");
    let proof = reason(&|it| {
        let proof = it["entries"][4]["proof"]
            .as_str()
            .unwrap()
            .replacen("index 8", "index 9", 1);
        it["entries"][4]["proof"] = json!(proof);
    });
    assert!(proof.contains("entry 5"), "{proof}");
    let head = reason(&|it| {
        let note = it["head"].as_str().unwrap().replacen("\n16\n", "\n17\n", 1);
        it["head"] = json!(note);
    });
    assert!(head.contains("does not match"), "{head}");
}

#[test]
fn tr_07_a_bundle_of_parts_of_two_is_refused() {
    let room = Room::new(Database::Sqlite);
    let trail = filled(&room);
    let old: Value = serde_json::from_str(&write(&trail, SESSION)).unwrap();
    append(&room, &trail, SESSION, "note", None, json!({}));
    let new = write(&trail, SESSION);
    // The newer proofs and head with the older statement, and the other way round.
    let mixed = altered(&new, |it| it["statement"] = old["statement"].clone());
    let error = checked(&mixed, &trail).unwrap_err();
    assert!(matches!(error, BundleError::Statement(_)), "{error}");
    let mixed = altered(&new, |it| it["entries"][0] = old["entries"][0].clone());
    let error = checked(&mixed, &trail).unwrap_err().to_string();
    assert!(error.contains("another head"), "{error}");
    // A statement about something else, signed by the same key.
    let exporter = &mut trail.exporter(safepoint_trail::export::Format::InToto);
    let other = exporter.add(trail.find("0").unwrap()).unwrap();
    let envelope: Envelope = serde_json::from_str(&other[0]).unwrap();
    let mixed = altered(&new, |it| it["statement"] = json!(envelope));
    let error = checked(&mixed, &trail).unwrap_err().to_string();
    assert!(error.contains("something else"), "{error}");
}

#[test]
fn tr_07_a_bundle_is_proved_with_ordinary_tools() {
    let room = Room::new(Database::Sqlite);
    let trail = filled(&room);
    let document: Value = serde_json::from_str(&write(&trail, SESSION)).unwrap();
    for line in document["entries"].as_array().unwrap() {
        // Each proof is a C2SP tlog-proof on its own.
        let proof = line["proof"].as_str().unwrap();
        assert!(safepoint_trail::proof::check(proof, trail.key()).is_ok());
    }
    let blobs = document["blobs"].as_object().unwrap();
    assert_eq!(blobs.len(), 1);
    for (digest, blob) in blobs {
        use base64::Engine as _;
        let blob = blob.as_str().unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(blob)
            .unwrap();
        assert_eq!(Digest::of_parts(&[&bytes]).to_string(), *digest);
    }
}

#[test]
fn tr_07_any_text_is_checked_without_panic() {
    let room = Room::new(Database::Sqlite);
    let trail = filled(&room);
    let text = write(&trail, SESSION);
    for end in (0..text.len())
        .step_by(997)
        .filter(|end| text.is_char_boundary(*end))
    {
        assert!(checked(&text[..end], &trail).is_err());
    }
    for text in ["", "{}", "[]", "null", "{\"format\":1}", "\u{0}"] {
        assert!(checked(text, &trail).is_err());
    }
}
