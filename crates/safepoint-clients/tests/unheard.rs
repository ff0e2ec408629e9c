//! What is not understood, and that every refusal is one that the client honours.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod common;

use proptest::prelude::*;
use safepoint_clients::{Client, Event, Reply, Unheard, Wire, answer, hear, refuse};
use serde_json::{Value, json};

fn unheard(client: Client, document: &[u8]) -> Unheard {
    hear(client, document, common::here()).unwrap_err()
}

/// A document with one thing changed.
fn changed(name: &str, change: impl FnOnce(&mut Value)) -> (Client, Vec<u8>) {
    let mut value: Value = serde_json::from_slice(&common::document(name)).unwrap();
    change(&mut value);
    (common::client_of(name), serde_json::to_vec(&value).unwrap())
}

/// Questions, one for each client: nothing happens until they are answered.
const QUESTIONS: &[&str] = &[
    "recorded/claude-code/PreToolUse-Bash",
    "recorded/codex/PreToolUse-Bash",
    "recorded/gemini/BeforeTool-run_shell_command",
    "recorded/copilot/preToolUse-bash",
    "recorded/copilot/pascal-PreToolUse-Bash",
    "documented/cursor/preToolUse-Shell",
    "recorded/opencode/tool.execute.before-bash",
];

/// Whether `client` takes `wire` for a denial of a tool, by what was observed; for Cursor
/// by its documentation, for opencode by our own plugin.
fn denies(client: Client, wire: &Wire) -> bool {
    let word: Value = serde_json::from_str(&wire.stdout).unwrap_or_default();
    let text = |pointer: &str| {
        let text = word.pointer(pointer).and_then(Value::as_str);
        text.is_some_and(|text| !text.trim().is_empty())
    };
    if wire.exit == 2 {
        return !wire.stderr.trim().is_empty();
    }
    wire.exit == 0
        && match client {
            Client::Copilot => {
                word["permissionDecision"] == "deny" && text("/permissionDecisionReason")
            }
            Client::Cursor => word["permission"] == "deny" && text("/agent_message"),
            _ => false,
        }
}

#[test]
fn su_05_garbage_is_refused() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let documents: [(&[u8], &str); 10] = [
        (b"", "ends where"),
        (b"{", "ends where"),
        (b"null", "not an object"),
        (b"[]", "not an object"),
        (b"{}", "which event"),
        (b"{\"a\":1,\"a\":2}", "occurs twice"),
        (b"{} {}", "found `{`"),
        (b"{\"a\":\"\xff\"}", "not UTF-8"),
        (b"{\"a\":\"\\ud800\"}", "surrogate"),
        (deep.as_bytes(), "nested too deeply"),
    ];
    for client in Client::ALL {
        for (document, expected) in documents {
            let unheard = unheard(client, document);
            assert!(
                unheard.reason.contains(expected),
                "{client}: {}",
                unheard.reason
            );
            assert_eq!(unheard.event, None);
            let wire = refuse(client, None, &unheard.reason);
            assert_eq!((wire.exit, wire.stdout.as_str()), (2, ""));
            assert!(denies(client, &wire));
        }
    }
}

#[test]
fn su_05_an_oversized_document_is_refused() {
    let long = vec![b' '; (64 << 20) + 1];
    let unheard = unheard(Client::ClaudeCode, &long);
    assert!(unheard.reason.contains("too large"), "{}", unheard.reason);
}

#[test]
fn su_05_an_unknown_event_is_refused() {
    for name in QUESTIONS {
        let (client, document) = changed(name, |value| {
            value["hook_event_name"] = json!("BeforeAnything\u{1b}[2J");
        });
        let unheard = unheard(client, &document);
        assert!(
            unheard
                .reason
                .contains(r"no event `BeforeAnything\u{1b}[2J`"),
            "{}",
            unheard.reason
        );
        assert_eq!(refuse(client, unheard.event.as_deref(), "no").exit, 2);
    }
    assert_eq!(refuse(Client::Codex, Some("BeforeAnything"), "no").exit, 2);
}

#[test]
fn su_05_what_is_missing_or_odd_is_refused_by_name() {
    let fields: &[(&[&str], Value, &str)] = &[
        (
            &["session_id", "sessionId", "conversation_id", "input"],
            Value::Null,
            "session",
        ),
        (&["session_id", "sessionId"], json!(7), "not a name"),
        (&["session_id", "sessionId"], json!("a\nb"), "not a name"),
        (&["cwd"], json!("relative/path"), "absolute path"),
        (&["cwd"], json!(["/"]), "absolute path"),
        (&["tool_name", "toolName"], Value::Null, "name a tool"),
        (&["tool_name", "toolName"], json!({}), "not a name"),
        (&["tool_input", "toolArgs"], json!("ls"), "not an object"),
        (&["tool_input", "toolArgs"], json!(["ls"]), "not an object"),
        (
            &["tool_input", "toolArgs"],
            Value::Null,
            "not given `command`",
        ),
        (
            &["tool_input", "toolArgs"],
            json!({"command": {"a": 1}}),
            "`command` of",
        ),
    ];
    for name in QUESTIONS {
        for (keys, new, expected) in fields {
            let mut hit = false;
            let (client, document) = changed(name, |value| {
                for key in *keys {
                    if let Some(old) = value.get_mut(*key) {
                        *old = new.clone();
                        hit = true;
                    }
                }
            });
            if !hit {
                continue;
            }
            // Cursor falls back on its other names of the same thing.
            let unheard = match hear(client, &document, common::here()) {
                Err(unheard) => unheard,
                Ok(_) if client == Client::Cursor && keys.contains(&"session_id") => continue,
                Ok(heard) => panic!("{name} with {keys:?} = {new} was heard as {heard:?}"),
            };
            assert!(
                unheard.reason.contains(expected),
                "{name} with {keys:?} = {new}: {}",
                unheard.reason
            );
            let wire = refuse(client, unheard.event.as_deref(), &unheard.reason);
            assert!(denies(client, &wire), "{name}: {wire:?}");
        }
        let (client, document) = changed(name, |value| {
            let fields = value.as_object_mut().unwrap();
            fields.remove("cwd");
            fields.remove("workspace_roots");
        });
        let unheard = unheard(client, &document);
        assert!(
            unheard.reason.contains("where the client works"),
            "{}",
            unheard.reason
        );
    }
}

#[test]
fn su_05_a_denial_is_honoured_by_every_client() {
    for name in QUESTIONS {
        let heard = common::heard(name);
        for reason in ["no", "", " \n", &"ä".repeat(20_000), "a\u{1b}[2Jb"] {
            let reason = reason.to_owned();
            let wire = answer(&heard, &Reply::Deny { reason });
            assert!(denies(heard.client, &wire), "{name}: {wire:?}");
            assert!(!wire.stdout.contains("u001b") && !wire.stderr.contains('\u{1b}'));
        }
    }
}

#[test]
fn su_05_what_cannot_be_refused_is_let_go_with_a_note() {
    for (client, document) in common::documents() {
        let heard = hear(client, &document, common::here()).unwrap();
        let free = matches!(heard.event, Event::Stop | Event::SessionEnd | Event::Other);
        if free {
            let wire = refuse(client, Some(&heard.name), "no");
            assert_eq!((wire.exit, wire.stderr.as_str()), (0, "no\n"));
            assert!(wire.stdout.is_empty() || wire.stdout == "{}\n");
        }
    }
}

#[test]
fn su_05_long_texts_are_cut_on_a_character() {
    let heard = common::heard("recorded/claude-code/PreToolUse-Bash");
    let long = "ä".repeat(9_001);
    let wire = answer(
        &heard,
        &Reply::Deny {
            reason: long.clone(),
        },
    );
    assert_eq!(wire.stderr.trim_end().chars().count(), 9_000);
    assert!(
        wire.stderr
            .ends_with("ä\n(cut here: it has 9001 characters)\n")
    );
    let wire = answer(
        &heard,
        &Reply::Pass {
            context: Some(long),
        },
    );
    let word: Value = serde_json::from_str(&wire.stdout).unwrap();
    let context = &word["hookSpecificOutput"]["additionalContext"];
    assert_eq!(context.as_str().unwrap().chars().count(), 9_000);
    // A line is never cut: it would be another line.
    let line = "x".repeat(20_000);
    let wire = answer(
        &heard,
        &Reply::Instead {
            line: line.clone(),
            context: None,
        },
    );
    let word: Value = serde_json::from_str(&wire.stdout).unwrap();
    assert_eq!(word["hookSpecificOutput"]["updatedInput"]["command"], line);
}

#[test]
fn su_05_an_event_that_asks_nothing_may_lack_its_directory() {
    let (client, document) = changed("recorded/claude-code/SessionEnd", |value| {
        value.as_object_mut().unwrap().remove("cwd");
    });
    let heard = hear(client, &document, common::here()).unwrap();
    assert_eq!(heard.directory, common::here());
}

#[test]
fn su_05_broken_characters_in_a_result_do_not_hide_the_end() {
    let name = "recorded/claude-code/PostToolUse-Bash";
    let text = String::from_utf8(common::document(name)).unwrap();
    for odd in [
        r#""cut \ud83d""#,
        "12345678901234567890",
        r#""\udc00\ud83d\ude00""#,
    ] {
        let mended = text.replacen("\"app.py\\nutil.py\"", odd, 1);
        assert_ne!(mended, text);
        let heard = hear(Client::ClaudeCode, mended.as_bytes(), common::here()).unwrap();
        assert!(matches!(heard.event, Event::After { .. }));
        // Nowhere else.
        let wrong = text.replacen("\"ls src\"", odd, 1);
        assert_ne!(wrong, text);
        unheard(Client::ClaudeCode, wrong.as_bytes());
        let both = wrong.replacen("\"app.py\\nutil.py\"", odd, 1);
        unheard(Client::ClaudeCode, both.as_bytes());
    }
}

fn documents() -> impl Strategy<Value = (Client, Vec<u8>)> {
    proptest::sample::select(common::documents())
}

/// Some value of the document is replaced by another one.
fn mutate(value: &mut Value, mut place: usize, new: &Value) {
    fn walk(value: &mut Value, place: &mut usize, new: &Value) {
        if *place == 0 {
            *value = new.clone();
        }
        *place = place.wrapping_sub(1);
        match value {
            Value::Array(list) => list.iter_mut().for_each(|value| walk(value, place, new)),
            Value::Object(map) => map.values_mut().for_each(|value| walk(value, place, new)),
            _ => {}
        }
    }
    walk(value, &mut place, new);
}

fn odd_values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
        Just(json!([1, "a", null])),
        Just(json!("")),
        Just(json!(-1.5)),
        Just(json!(true)),
        Just(json!("PreToolUse")),
        Just(json!("*** Begin Patch\n*** End Patch")),
        Just(json!("../../{a,/etc}/**")),
        ".*".prop_map(Value::String),
    ]
}

/// However it ends, there is an answer that a client can read, and no call is let go unread.
fn answered(client: Client, document: &[u8]) -> Result<(), TestCaseError> {
    let wires = match hear(client, document, common::here()) {
        Ok(heard) => {
            prop_assert!(heard.directory.is_absolute());
            prop_assert!(!heard.session.is_empty());
            let deny = answer(
                &heard,
                &Reply::Deny {
                    reason: String::new(),
                },
            );
            let line = "LINE".to_owned();
            let instead = answer(
                &heard,
                &Reply::Instead {
                    line,
                    context: None,
                },
            );
            if matches!(heard.event, Event::Before(_)) {
                prop_assert!(denies(client, &deny));
                prop_assert!(denies(client, &instead) || instead.stdout.contains("LINE"));
            }
            vec![
                deny,
                instead,
                answer(&heard, &Reply::Pass { context: None }),
            ]
        }
        Err(unheard) => {
            prop_assert!(!unheard.reason.is_empty());
            vec![refuse(client, unheard.event.as_deref(), &unheard.reason)]
        }
    };
    for wire in wires {
        prop_assert!(wire.exit == 0 || wire.exit == 2);
        prop_assert!(wire.exit == 0 || !wire.stderr.trim().is_empty());
        if !wire.stdout.is_empty() {
            prop_assert!(serde_json::from_str::<Value>(&wire.stdout).is_ok());
        }
        prop_assert!(!wire.stdout.contains("\"ask\""));
    }
    Ok(())
}

proptest! {
    #[test]
    fn su_05_any_bytes_are_answered(
        client in proptest::sample::select(Client::ALL.to_vec()),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        answered(client, &bytes)?;
    }

    #[test]
    fn su_05_any_change_of_a_document_is_answered(
        (client, document) in documents(),
        changes in proptest::collection::vec((0usize..40, odd_values()), 1..4),
    ) {
        let mut value: Value = serde_json::from_slice(&document).unwrap();
        for (place, new) in &changes {
            mutate(&mut value, *place, new);
        }
        answered(client, &serde_json::to_vec(&value).unwrap())?;
    }

    #[test]
    fn su_05_any_broken_document_is_answered(
        (client, document) in documents(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut document = document;
        let at = at.index(document.len());
        if cut { document.truncate(at) } else { document[at] = byte }
        answered(client, &document)?;
    }
}
