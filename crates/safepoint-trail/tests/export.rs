//! Entries in the forms that other tools read.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use proptest::prelude::*;
use safepoint_model::{Digest, EntryId, Timestamp, json};
use safepoint_store::Durability;
use safepoint_trail::dsse::Envelope;
use safepoint_trail::export::{ACTION_PREDICATE, ENTRY_PREDICATE, Format, OCSF_VERSION, STATEMENT};
use safepoint_trail::{Draft, Entry, Trail, tree};
use serde_json::{Value, json};
use testkit::{Database, Room, on_every_store};

const SESSION: &str = "ses_0000000000000001";
const FORMATS: [Format; 5] = [
    Format::JsonLines,
    Format::CloudEvents,
    Format::Ocsf,
    Format::Otlp,
    Format::InToto,
];

fn export(trail: &Trail, format: Format, entries: &[Entry]) -> Vec<String> {
    let mut exporter = trail.exporter(format);
    let mut documents = Vec::new();
    for entry in entries {
        documents.extend(exporter.add(entry.clone()).unwrap());
    }
    documents.extend(exporter.finish().unwrap());
    for document in &documents {
        assert!(!document.contains('\n'), "one line each");
    }
    documents
}

fn parsed(documents: &[String]) -> Vec<Value> {
    documents
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

fn act(number: u64) -> String {
    format!("act_{number:016}")
}

/// A session with an action that is allowed, one that is held, approved and fails, one that is
/// denied, and an undo of the first.
fn recorded(room: &Room) -> Trail {
    let trail = room.trail();
    let append = |stream: &str, actor: &str, kind: &str, action: Option<u64>, body: Value| {
        room.clock.move_by(1_000);
        let draft = Draft {
            stream: stream.parse().unwrap(),
            actor: actor.parse().unwrap(),
            kind: kind.parse().unwrap(),
            action_id: action.map(|number| act(number).parse().unwrap()),
            body,
        };
        trail.append(draft, Durability::Sync).unwrap();
    };
    let (agent, operator, place) = ("agent:claude-code", "operator:ada", "dir:0123456789abcdef");
    let hash = |byte: &str| format!("sha256:{}", byte.repeat(32));
    append(
        SESSION,
        agent,
        "SessionStarted",
        None,
        json!({"goal": "naïve 日本語"}),
    );
    append(
        place,
        agent,
        "checkpoint_created",
        None,
        json!({"checkpoint_id": "chk_20261115_070000_aaaaaaaa", "origin": "automatic", "reason": format!("before {}", act(1)), "hash": hash("ab")}),
    );
    append(
        SESSION,
        agent,
        "ActionRequested",
        Some(1),
        json!({"action_id": "file.delete", "again": false, "parameters": {"command": "rm a.txt", "paths": ["/w/a.txt"]}}),
    );
    append(
        SESSION,
        agent,
        "ActionAllowed",
        Some(1),
        json!({"action_id": "file.delete", "decision": "allow", "reason": "it can be undone"}),
    );
    append(
        SESSION,
        agent,
        "action_intended",
        Some(1),
        json!({"actions": ["file.delete"], "fingerprint": "cd".repeat(32), "checkpoint_id": "chk_20261115_070000_aaaaaaaa"}),
    );
    append(
        place,
        agent,
        "checkpoint_created",
        None,
        json!({"checkpoint_id": "chk_20261115_070001_bbbbbbbb", "origin": "automatic", "reason": format!("after {}", act(1)), "hash": hash("ef")}),
    );
    append(
        place,
        agent,
        "action_done",
        Some(1),
        json!({"outcome": "ok", "paths": ["a.txt"]}),
    );
    append(
        SESSION,
        "safepoint",
        "action_ended",
        Some(1),
        json!({"outcome": "ok", "exit_code": 0}),
    );
    append(
        SESSION,
        "safepoint",
        "SessionState",
        None,
        json!({"digest": "00"}),
    );

    append(
        SESSION,
        agent,
        "ActionRequested",
        Some(2),
        json!({"action_id": "net.send", "parameters": {"command": "curl -T a https://example.com"}}),
    );
    append(
        SESSION,
        agent,
        "checkpoint_pending",
        Some(2),
        json!({"hold_id": "hld_0000000000000001", "reason": "it leaves the machine"}),
    );
    append(
        SESSION,
        operator,
        "approval_decision",
        Some(2),
        json!({"state": "approved", "hold_id": "hld_0000000000000001"}),
    );
    append(
        SESSION,
        "safepoint",
        "permit_issued",
        Some(2),
        json!({"permit_id": "prm_0000000000000001"}),
    );
    append(
        SESSION,
        "safepoint",
        "action_ended",
        Some(2),
        json!({"outcome": "error", "exit_code": 6}),
    );

    append(
        SESSION,
        agent,
        "ActionRequested",
        Some(3),
        json!({"action_id": "safepoint.control"}),
    );
    append(
        SESSION,
        agent,
        "action_denied",
        Some(3),
        json!({"code": "CONTROL_FORBIDDEN", "reason": "it touches Safepoint itself"}),
    );
    append(
        place,
        operator,
        "undone",
        Some(4),
        json!({"undoes": act(1), "match": true}),
    );
    append(
        "wsp_0000000000000001",
        "agent:other",
        "authentication_failed",
        None,
        json!({"reason": "unknown token"}),
    );
    append("store", operator, "note", None, json!({"text": "reviewed"}));
    trail
}

/// The names and values of attributes.
fn attributes(of: &Value) -> BTreeMap<String, String> {
    let list = of["attributes"].as_array().unwrap();
    let value = |one: &Value| {
        let (_, value) = one["value"].as_object().unwrap().iter().next().unwrap();
        value.as_str().unwrap().to_owned()
    };
    list.iter()
        .map(|one| (one["key"].as_str().unwrap().to_owned(), value(one)))
        .collect()
}

fn spans(documents: &[String]) -> Vec<Value> {
    let mut spans = Vec::new();
    for request in parsed(documents) {
        for resource in request["resourceSpans"].as_array().unwrap() {
            assert_eq!(
                attributes(&resource["resource"])["service.name"],
                "safepoint"
            );
            for scope in resource["scopeSpans"].as_array().unwrap() {
                spans.extend(scope["spans"].as_array().unwrap().iter().cloned());
            }
        }
    }
    spans
}

fn statement(trail: &Trail, document: &str) -> Value {
    let envelope: Envelope = serde_json::from_str(document).unwrap();
    serde_json::from_slice(&envelope.open(trail.key()).unwrap()).unwrap()
}

/// The entry that an OCSF event was made from, with its hash computed anew.
fn entry_of_ocsf(event: &Value) -> Entry {
    let (metadata, rest) = (&event["metadata"], &event["unmapped"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let body = json::canonical(&rest["body"]).unwrap();
    let previous = event["attestation_list"][0]["prev_event"]["uid"].as_str();
    let mut entry = Entry {
        seq: metadata["sequence"].as_u64().unwrap(),
        id: text(&metadata["original_event_uid"]).parse().unwrap(),
        time: Timestamp::parse(&text(&metadata["original_time"])).unwrap(),
        stream: text(&rest["stream"]).parse().unwrap(),
        actor: text(&rest["actor"]).parse().unwrap(),
        kind: text(&rest["kind"]).parse().unwrap(),
        action_id: rest["action_id"].as_str().map(|id| id.parse().unwrap()),
        body: String::from_utf8(body).unwrap(),
        prev_hash: previous.map(|hash| hash.parse().unwrap()),
        hash: Digest::from_bytes([0; 32]),
    };
    entry.hash = tree::leaf_hash(&entry.to_leaf());
    entry
}

on_every_store! {
    fn tr_07_a_cloud_event_is_its_entry(room: Room) {
        let trail = recorded(&room);
        let entries = room.entries(&trail);
        let events = parsed(&export(&trail, Format::CloudEvents, &entries));
        assert_eq!(events.len(), entries.len());
        let mut sequences = Vec::new();
        for (event, entry) in events.iter().zip(&entries) {
            assert_eq!(event["specversion"], "1.0");
            assert_eq!(event["id"], entry.id.as_str());
            assert_eq!(event["source"], trail.key().name());
            assert_eq!(event["type"], format!("dev.safepoint.trail.{}", entry.kind));
            assert_eq!(event["subject"], json!(entry.action_id));
            assert_eq!(event["time"], entry.time.to_string());
            assert_eq!(event["hash"], entry.hash.to_string());
            assert_eq!(event["previoushash"], json!(entry.prev_hash));
            assert_eq!(event["data"], serde_json::from_str::<Value>(&entry.body).unwrap());
            for name in event.as_object().unwrap().keys() {
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
                assert!(name.chars().all(plain) && name.len() <= 20, "{name}");
            }
            sequences.push(event["sequence"].as_str().unwrap().to_owned());
        }
        assert!(sequences.is_sorted());
    }

    fn tr_07_an_ocsf_event_gives_its_entry_back(room: Room) {
        let trail = recorded(&room);
        let entries = room.entries(&trail);
        let events = parsed(&export(&trail, Format::Ocsf, &entries));
        let mut seen = HashSet::new();
        for (event, entry) in events.iter().zip(&entries) {
            assert_eq!(entry_of_ocsf(event), *entry);
            assert_eq!(event["metadata"]["version"], OCSF_VERSION);
            assert_eq!(event["metadata"]["uid"], entry.hash.to_string());
            let fingerprint = &event["attestation_list"][0]["fingerprint"];
            assert_eq!(fingerprint["value"], entry.hash.to_string());
            let class = event["class_uid"].as_u64().unwrap();
            assert_eq!(event["category_uid"].as_u64().unwrap(), class / 1000);
            let activity = event["activity_id"].as_u64().unwrap();
            assert_eq!(event["type_uid"].as_u64().unwrap(), class * 100 + activity);
            assert_eq!(event["time"].as_i64().unwrap(), entry.time.as_micros() / 1000);
            seen.insert((entry.kind.to_string(), class, activity));
        }
        // Chains hold among the events themselves.
        let known: HashSet<&str> = events.iter().map(|event| event["metadata"]["uid"].as_str().unwrap()).collect();
        for event in &events {
            let previous = &event["attestation_list"][0]["prev_event"]["uid"];
            assert!(previous.is_null() || known.contains(previous.as_str().unwrap()));
        }
        for (kind, class, activity) in [
            ("ActionRequested", 6003, 4),
            ("checkpoint_created", 6003, 1),
            ("permit_issued", 3004, 1),
            ("authentication_failed", 3002, 1),
            ("undone", 6003, 3),
            ("note", 0, 99),
        ] {
            assert!(seen.contains(&(kind.to_owned(), class, activity)), "{kind}: {seen:?}");
        }
        let of = |kind: &str| events.iter().find(|event| event["unmapped"]["kind"] == kind).unwrap();
        let denied = of("action_denied");
        assert_eq!((&denied["action_id"], &denied["disposition_id"], &denied["severity_id"], &denied["is_alert"]), (&json!(2), &json!(2), &json!(4), &json!(true)));
        assert_eq!(denied["ai_agent"]["uid"], "agent:claude-code");
        assert_eq!(of("approval_decision")["disposition"], "Approved");
        assert_eq!(of("approval_decision")["actor"]["user"]["name"], "ada");
        assert_eq!(of("checkpoint_pending")["disposition"], "Delayed");
    }

    fn tr_07_an_action_is_a_span_of_its_session(room: Room) {
        let trail = recorded(&room);
        let entries = room.entries(&trail);
        let documents = export(&trail, Format::Otlp, &entries);
        assert_eq!(documents, export(&trail, Format::Otlp, &entries), "the same each time");
        let spans = spans(&documents);
        let of = |action: u64| -> &Value {
            let found: Vec<&Value> = spans.iter().filter(|span| attributes(span).get("gen_ai.tool.call.id") == Some(&act(action))).collect();
            assert_eq!(found.len(), 1, "one span for each action");
            found[0]
        };
        let session = spans.iter().find(|span| attributes(span).get("gen_ai.operation.name").is_some_and(|name| name == "invoke_agent")).unwrap();
        assert_eq!(session["name"], "invoke_agent claude-code");
        for action in 1..=3 {
            let span = of(action);
            assert_eq!(span["traceId"], session["traceId"]);
            assert_eq!(span["parentSpanId"], session["spanId"]);
            let (name, conversation) = (attributes(span)["gen_ai.operation.name"].clone(), attributes(span)["gen_ai.conversation.id"].clone());
            assert_eq!((name.as_str(), conversation.as_str()), ("execute_tool", SESSION));
            let nanos = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
            assert!(nanos("startTimeUnixNano") < nanos("endTimeUnixNano"));
        }
        assert_eq!(of(1)["name"], "execute_tool file.delete");
        assert_eq!(of(1)["status"]["code"], 1);
        assert_eq!(of(2)["status"]["code"], 2);
        assert_eq!(attributes(of(2))["error.type"], "error");
        assert_eq!(attributes(of(3))["safepoint.decision"], "deny");
        assert_eq!(of(3)["status"]["message"], "it touches Safepoint itself");
        // From proposal to outcome, and all that happened in between.
        let events = |span: &Value| -> Vec<String> {
            span["events"].as_array().unwrap().iter().map(|event| event["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(events(of(1)), ["checkpoint_created", "ActionRequested", "ActionAllowed", "action_intended", "checkpoint_created", "action_done", "action_ended"]);
        assert_eq!(events(of(2)), ["ActionRequested", "checkpoint_pending", "approval_decision", "permit_issued", "action_ended"]);
        let requested = entries.iter().find(|entry| entry.kind.as_str() == "ActionRequested").unwrap();
        assert_eq!(of(1)["startTimeUnixNano"], (requested.time.as_micros() * 1000).to_string());
        // What took it back leads to it.
        assert_eq!(of(4)["links"][0]["spanId"], of(1)["spanId"]);
        // Ids are of the right length, and each span has its own.
        let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), spans.len());
        assert!(spans.iter().all(|span| span["traceId"].as_str().unwrap().len() == 32 && span["spanId"].as_str().unwrap().len() == 16));
        // Every entry is told of but for bare digests.
        let told: usize = spans.iter().map(|span| span["events"].as_array().unwrap().len()).sum();
        assert_eq!(told, entries.len() - 1);
    }

    fn tr_07_a_statement_is_signed_and_names_what_it_is_about(room: Room) {
        let trail = recorded(&room);
        let entries = room.entries(&trail);
        let documents = export(&trail, Format::InToto, &entries);
        let mut told: Vec<u64> = Vec::new();
        let mut first = None;
        for document in &documents {
            let envelope: Envelope = serde_json::from_str(document).unwrap();
            assert_eq!(envelope.payload_type, "application/vnd.in-toto+json");
            let statement = statement(&trail, document);
            assert_eq!(statement["_type"], STATEMENT);
            let predicate = &statement["predicate"];
            match statement["predicateType"].as_str().unwrap() {
                ENTRY_PREDICATE => {
                    assert_eq!(statement["subject"][0]["name"], predicate["id"]);
                    assert_eq!(statement["subject"][0]["digest"]["sha256"], predicate["hash"]);
                    told.push(predicate["seq"].as_u64().unwrap());
                }
                ACTION_PREDICATE => {
                    let listed = predicate["entries"].as_array().unwrap();
                    told.extend(listed.iter().map(|entry| entry["seq"].as_u64().unwrap()));
                    if predicate["action_id"] == act(1) {
                        first = Some(statement.clone());
                    }
                }
                other => unreachable!("{other}"),
            }
        }
        told.sort_unstable();
        assert!(told.iter().copied().eq(0..entries.len() as u64), "each entry once: {told:?}");
        let first = first.unwrap();
        assert_eq!(first["subject"], json!([
            {"name": act(1), "digest": {"sha256": "cd".repeat(32)}},
            {"name": "chk_20261115_070000_aaaaaaaa", "digest": {"sha256": "ab".repeat(32)}},
            {"name": "chk_20261115_070001_bbbbbbbb", "digest": {"sha256": "ef".repeat(32)}},
        ]));
        assert_eq!((&first["predicate"]["decision"], &first["predicate"]["outcome"], &first["predicate"]["session_id"]), (&json!("allow"), &json!("ok"), &json!(SESSION)));
    }
}

#[test]
fn tr_07_what_was_denied_and_then_allowed_is_no_denial() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    let append = |kind: &str, action: Option<u64>, body: Value| {
        room.clock.move_by(1_000);
        let draft = Draft {
            stream: SESSION.parse().unwrap(),
            actor: "agent:x".parse().unwrap(),
            kind: kind.parse().unwrap(),
            action_id: action.map(|number| act(number).parse().unwrap()),
            body,
        };
        trail.append(draft, Durability::Sync).unwrap();
    };
    append("SessionStarted", None, json!({}));
    append("CheckpointBlocked", None, json!({"reason": "not now"}));
    append("ActionRequested", Some(1), json!({"action_id": "git.push"}));
    append("ActionDenied", Some(1), json!({"reason": "ask first"}));
    append(
        "ActionRequested",
        Some(1),
        json!({"action_id": "git.push", "again": true}),
    );
    append("ActionAllowed", Some(1), json!({"reason": "answered"}));
    let spans = spans(&export(&trail, Format::Otlp, &room.entries(&trail)));
    let session = spans.iter().find(|span| span["name"] == "invoke_agent x");
    assert_eq!(
        session.unwrap()["status"],
        json!({}),
        "a gate is no end of a session"
    );
    let action = spans
        .iter()
        .find(|span| span["name"] == "execute_tool git.push")
        .unwrap();
    assert_eq!(action["status"], json!({}), "how it ended is not known yet");
    let attributes = attributes(action);
    assert_eq!(attributes["safepoint.decision"], "allow");
    assert!(!attributes.contains_key("safepoint.outcome"));
}

#[test]
fn tr_07_an_altered_statement_is_refused() {
    let room = Room::new(Database::Sqlite);
    let trail = recorded(&room);
    let document = &export(&trail, Format::InToto, &room.entries(&trail))[0];
    let envelope: Envelope = serde_json::from_str(document).unwrap();
    let stranger = Room::new(Database::Sqlite).trail();
    assert!(envelope.open(stranger.key()).is_err());
    let mut other = envelope.clone();
    other.payload = other.payload.replacen('A', "B", 1);
    assert!(other.open(trail.key()).is_err());
    let mut other = envelope.clone();
    other.payload_type = "application/json".to_owned();
    assert!(other.open(trail.key()).is_err());
    let mut other = envelope.clone();
    other.signatures[0].keyid = stranger.key().name().to_owned();
    assert!(other.open(trail.key()).is_ok(), "a hint is only a hint");
    other.signatures.clear();
    assert!(other.open(trail.key()).is_err());
}

#[test]
fn tr_07_a_body_that_is_no_json_any_more_leaves_as_text() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    let mut entry = trail.find("0").unwrap();
    entry.body = "{\"a\": \u{1}\n".to_owned();
    for format in FORMATS {
        let documents = export(&trail, format, std::slice::from_ref(&entry));
        assert_eq!(parsed(&documents).len(), 1, "{format:?}");
    }
    let event = &parsed(&export(&trail, Format::CloudEvents, &[entry.clone()]))[0];
    assert_eq!(event["data"], entry.body);
}

/// One trail for all cases: only its key matters.
static TRAIL: LazyLock<(Room, Trail)> = LazyLock::new(|| {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    (room, trail)
});

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9_.:-]{1,40}",
        "[^\\s\\p{C}]{1,60}",
        Just("\u{fffe}\u{fdd0}日本語😀".to_owned()),
    ]
}

fn kind() -> impl Strategy<Value = String> {
    prop_oneof![
        name(),
        prop::sample::select(vec![
            "ActionRequested",
            "ActionAllowed",
            "action_denied",
            "checkpoint_pending",
            "approval_decision",
            "action_intended",
            "action_ended",
            "action_done",
            "checkpoint_created",
            "undone",
            "permit_issued",
            "permit_revoked",
            "trust_changed",
            "authentication_failed",
            "SessionState",
            "SessionStarted",
            "note",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Bodies with hostile texts, and with the fields that are looked at holding anything.
fn body() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        Just("\u{0}\u{1b}[2J\u{7f}\u{85}\u{2028}\u{202e}\u{fffe}\"\\</script>".to_owned()),
        Just("x".repeat(50_000)),
        Just("日".repeat(9_000)),
        Just("act_0000000000000001".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53) + 1..1 << 53).prop_map(Value::from),
        any::<i16>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        text.prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        let names = prop::sample::select(vec![
            "action_id",
            "actions",
            "operations",
            "parameters",
            "paths",
            "reason",
            "outcome",
            "state",
            "code",
            "summary",
            "text",
            "hash",
            "checkpoint_id",
            "fingerprint",
            "undoes",
            "again",
            "origin",
            "exit_code",
            "日本語",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    value.prop_filter("small enough to stay in its entry", |value| {
        value.to_string().len() < 55_000
    })
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let one = (name(), name(), kind(), 0_u64..4, body());
    prop::collection::vec(one, 1..12).prop_map(|drafts| {
        let (_, trail) = &*TRAIL;
        let mut streams: BTreeMap<String, Digest> = BTreeMap::new();
        let place = |(seq, (stream, actor, kind, action, body)): (
            u64,
            (String, String, String, u64, Value),
        )| {
            let draft = Draft {
                stream: stream.parse().unwrap(),
                actor: actor.parse().unwrap(),
                kind: kind.parse().unwrap(),
                action_id: (action > 0).then(|| act(action).parse().unwrap()),
                body,
            };
            let id: EntryId = format!("ent_{seq:026}").parse().unwrap();
            let time = Timestamp::from_micros(1_794_700_000_000_000 + i64::try_from(seq).unwrap());
            let entry =
                trail
                    .prepare(draft)
                    .unwrap()
                    .place(seq, id, time, streams.get(&stream).copied());
            streams.insert(stream, entry.hash);
            entry
        };
        (0..).zip(drafts).map(place).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn tr_07_whatever_is_in_an_entry_its_documents_are_valid_and_name_it(entries in entries()) {
        let (_, trail) = &*TRAIL;
        let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        let hashes: BTreeSet<String> = entries.iter().map(|entry| entry.hash.to_string()).collect();

        let lines = parsed(&export(trail, Format::JsonLines, &entries));
        let events = parsed(&export(trail, Format::CloudEvents, &entries));
        let ocsf = parsed(&export(trail, Format::Ocsf, &entries));
        for (place, entry) in entries.iter().enumerate() {
            let body: Value = serde_json::from_str(&entry.body).unwrap();
            prop_assert_eq!(&lines[place]["id"], ids[place]);
            prop_assert_eq!(&events[place]["id"], ids[place]);
            prop_assert_eq!(&events[place]["data"], &body);
            // What CloudEvents forbids in attributes is in none of them.
            for (name, value) in events[place].as_object().unwrap() {
                let odd = |c: char| c.is_control() || u32::from(c) & 0xfffe == 0xfffe || ('\u{fdd0}'..='\u{fdef}').contains(&c);
                prop_assert!(name == "data" || !value.as_str().unwrap().contains(odd), "{}", value);
            }
            prop_assert_eq!(&entry_of_ocsf(&ocsf[place]), entry);
        }

        let spans = spans(&export(trail, Format::Otlp, &entries));
        let mut told = BTreeSet::new();
        for span in &spans {
            let start: u64 = span["startTimeUnixNano"].as_str().unwrap().parse().unwrap();
            let end: u64 = span["endTimeUnixNano"].as_str().unwrap().parse().unwrap();
            prop_assert!(start <= end);
            for event in span["events"].as_array().unwrap() {
                told.insert(attributes(event)["safepoint.entry.hash"].clone());
            }
        }
        prop_assert!(told.is_subset(&hashes));

        let mut stated = BTreeSet::new();
        for document in export(trail, Format::InToto, &entries) {
            let statement = statement(trail, &document);
            prop_assert!(!statement["subject"].as_array().unwrap().is_empty());
            let predicate = &statement["predicate"];
            let listed = predicate["entries"].as_array().cloned().unwrap_or_else(|| vec![predicate.clone()]);
            stated.extend(listed.iter().map(|entry| entry["hash"].as_str().unwrap().to_owned()));
        }
        prop_assert_eq!(stated, hashes);
    }
}
