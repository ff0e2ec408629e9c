//! Our hooks in a client's settings: put in among others, and taken out again.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use safepoint_clients::settings::{
    HookCommand, Installed, Roots, Scope, SettingsError, home_variable, install, install_server,
    installed, not_covered, places, plugin, server_place, uninstall, uninstall_server,
};
use safepoint_clients::{Client, SHELL_PREFIX};
use serde_json::{Value, json};

/// Those whose settings are JSON.
const JSON: [Client; 5] = [
    Client::ClaudeCode,
    Client::Codex,
    Client::Gemini,
    Client::Copilot,
    Client::Cursor,
];

fn command() -> HookCommand {
    HookCommand {
        program: PathBuf::from("/opt/safepoint/bin/safepoint"),
    }
}

fn elsewhere() -> HookCommand {
    HookCommand {
        program: PathBuf::from("/home/a b/it's/safepoint"),
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Settings as people write them.
fn existing(client: Client) -> Vec<&'static str> {
    let mut all = vec![
        "{\n  \"model\": \"x\"\n}\n",
        "{\n\t\"model\": \"x\",\n\t\"list\": [\n\t\t1,\n\t\t2\n\t]\n}",
        "{\"model\":\"x\"}",
        "{ \"model\": \"x\", \"deep\": {\"a\": []} }\n\n",
        "{\r\n    \"model\": \"x\"\r\n}\r\n",
        "{\n  \"a\": 1e3, \"b\": \"\\u00e9 \\\" } ]\",\n  \"c\": {}\n}\n",
    ];
    match client {
        Client::Copilot => all.push(
            "{\n  \"version\": 1,\n  \"hooks\": {\n    \"preToolUse\": [\n      { \"type\": \
             \"command\", \"bash\": \"./mine.sh hook copilot\" }\n    ]\n  }\n}\n",
        ),
        Client::Cursor => all.push(
            "{\n  \"version\": 1,\n  \"hooks\": {\n    \"preToolUse\": [{ \"command\": \
             \"./mine.sh\" }],\n    \"afterFileEdit\": [{ \"command\": \"./fmt.sh\" }]\n  }\n}\n",
        ),
        Client::Gemini => all.push(
            "{\n  \"hooks\": {\n    \"BeforeTool\": [\n      {\n        \"matcher\": \"write_file\",\n\
             \x20       \"hooks\": [\n          { \"type\": \"command\", \"command\": \"./mine.sh\" }\n\
             \x20       ]\n      }\n    ],\n    \"disabled\": [\"other\"]\n  },\n  \"z\": 1\n}\n",
        ),
        _ => all.push(
            "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n\
             \x20       \"hooks\": [\n          { \"type\": \"command\", \"command\": \"./mine.sh\" }\n\
             \x20       ]\n      }\n    ],\n    \"Notification\": [{\"hooks\": []}]\n  },\n  \"z\": 1\n}\n",
        ),
    }
    all
}

#[test]
fn su_04_new_settings_for_every_client() {
    for client in JSON {
        let text = install(client, None, &command()).unwrap();
        insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(format!("su_04_new_{client}"), text);
        });
        assert_eq!(install(client, Some(" \n"), &command()).unwrap(), text);
        assert_eq!(install(client, Some("{}"), &command()).unwrap(), text);
        assert_eq!(uninstall(client, &text).unwrap(), None);
    }
}

#[test]
fn su_04_others_are_kept_and_ours_go_without_a_trace() {
    for client in JSON {
        for before in existing(client) {
            let after = install(client, Some(before), &command()).unwrap();
            assert!(installed(client, &after).unwrap().complete(), "{after}");
            // Twice is once.
            assert_eq!(install(client, Some(&after), &command()).unwrap(), after);
            // Everything of others is there, in its order.
            let hooks = value(before).get("hooks").cloned().unwrap_or(json!({}));
            for (event, old) in hooks.as_object().unwrap() {
                let new = value(&after)["hooks"][event].clone();
                for (index, entry) in old.as_array().unwrap().iter().enumerate() {
                    assert_eq!(new[index], *entry);
                }
            }
            for (key, old) in value(before).as_object().unwrap() {
                if key != "hooks" {
                    assert_eq!(value(&after)[key], *old);
                }
            }
            let adds_version = matches!(client, Client::Copilot | Client::Cursor)
                && value(before).get("version").is_none();
            let left = uninstall(client, &after).unwrap().unwrap();
            if adds_version {
                assert_eq!(value(&left)["version"], 1);
            } else {
                assert_eq!(left, before, "{client}");
            }
            assert_eq!(uninstall(client, &left).unwrap(), Some(left));
        }
    }
}

#[test]
fn su_04_the_style_is_kept() {
    let after = |before: &str| install(Client::ClaudeCode, Some(before), &command()).unwrap();
    let tabs = after("{\n\t\"a\": 1\n}");
    assert!(tabs.starts_with("{\n\t\"a\": 1,\n\t\"hooks\": {\n\t\t\"SessionStart\": [\n\t\t\t{"));
    assert!(tabs.ends_with("\n\t}\n}"));
    let short = after("{\"a\":1}");
    assert!(short.starts_with("{\"a\":1,\"hooks\":{\"SessionStart\":[{\"hooks\":[{"));
    assert!(!short.contains('\n'));
    let lines = after("{\r\n    \"a\": 1\r\n}\r\n");
    assert_eq!(lines.matches('\n').count(), lines.matches("\r\n").count());
}

#[test]
fn su_04_another_program_takes_the_place_of_the_old_one() {
    for client in Client::ALL {
        let old = install(client, None, &command()).unwrap();
        let new = install(client, Some(&old), &elsewhere()).unwrap();
        assert_eq!(new, install(client, None, &elsewhere()).unwrap());
        let found = installed(client, &new).unwrap();
        assert!(found.complete());
        assert_eq!(found.program.unwrap(), elsewhere().program);
        assert!(!new.contains("/opt/safepoint"));
    }
}

#[test]
fn su_04_what_is_stale_or_missing_is_told_and_mended() {
    let whole = install(Client::ClaudeCode, None, &command()).unwrap();
    let weaker = whole.replacen("\"onFailure\": \"block\"", "\"onFailure\": \"warn\"", 1);
    assert_ne!(weaker, whole);
    let found = installed(Client::ClaudeCode, &weaker).unwrap();
    assert_eq!(found.stale, ["UserPromptSubmit"]);
    assert!(!found.complete());
    assert_eq!(
        install(Client::ClaudeCode, Some(&weaker), &command()).unwrap(),
        whole
    );

    let mut value = value(&whole);
    value["hooks"].as_object_mut().unwrap().remove("PreToolUse");
    value["hooks"]["PostToolUse"][0]["matcher"] = json!("Bash");
    let found = installed(Client::ClaudeCode, &value.to_string()).unwrap();
    assert_eq!(found.missing, ["PreToolUse"]);
    assert_eq!(found.stale, ["PostToolUse"]);
    // Seven events, and the program that shells are started through.
    assert_eq!(found.events.len(), 8);

    for client in JSON {
        let nothing = installed(client, "").unwrap();
        assert_eq!(nothing.program, None);
        assert!(!nothing.missing.is_empty() && !nothing.complete());
        assert_eq!(installed(client, "{}").unwrap(), nothing);
    }
}

#[test]
fn su_04_what_switches_hooks_off_is_told() {
    let off = |client: Client, text: &str| {
        let text = install(client, Some(text), &command()).unwrap();
        let found = installed(client, &text).unwrap();
        assert!(!found.complete());
        found.switched_off.unwrap()
    };
    let claude = off(Client::ClaudeCode, "{\"disableAllHooks\": true}");
    assert!(claude.contains("disableAllHooks"));
    let gemini = off(Client::Gemini, "{\"hooksConfig\": {\"enabled\": false}}");
    assert!(gemini.contains("enabled"));
    let named = off(
        Client::Gemini,
        "{\"hooksConfig\": {\"disabled\": [\"safepoint\"]}}",
    );
    assert!(named.contains("disabled"));
}

#[test]
fn su_04_ours_leave_a_group_that_has_others() {
    let line = "/opt/safepoint/bin/safepoint hook codex";
    let before = format!(
        "{{\"hooks\":{{\"PreToolUse\":[{{\"hooks\":[{{\"type\":\"command\",\"command\":\"a\"}},\
         {{\"type\":\"command\",\"command\":\"{line}\"}},{{\"type\":\"command\",\"command\":\"b\"}}]}}]}}}}"
    );
    let left = uninstall(Client::Codex, &before).unwrap().unwrap();
    assert_eq!(
        left,
        "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"a\"},\
         {\"type\":\"command\",\"command\":\"b\"}]}]}}"
    );
    // Those of another client, or of another program, are not ours.
    for other in [
        "/opt/safepoint hook gemini",
        "/opt/other hook codex",
        "safepoint hook codex x",
    ] {
        let text = before.replace(line, other);
        assert_eq!(uninstall(Client::Codex, &text).unwrap(), Some(text));
    }
}

#[test]
fn su_04_comments_are_kept_where_the_client_reads_them() {
    for before in [
        "// all of it\n{\n  // one\n  \"a\": 1, // two\n  \"b\": \"// text\" // three\n  /* four\n     five */\n}\n// six\n",
        "{\n  \"hooks\": { // mine\n    \"BeforeTool\": [\n      // first\n      {\n        \"matcher\": \"write_file\",\n        \"hooks\": [{\"type\": \"command\", \"command\": \"./mine.sh\"}]\n      } // last\n    ] /* end */\n  }, /* of hooks */\n  \"z\": 1\n}\n",
        "{\"a\": 1 /* one line */}",
        "{\n  // nothing yet\n}\n",
        "{ /* nothing\n yet */\n}\n",
        "{\r\n  \"a\": 1 // one\r\n}\r\n",
        "{\n  \"hooks\": {\n    // nothing yet\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"BeforeTool\": [ // none\n    ]\n  }\n}\n",
    ] {
        let after = install(Client::Gemini, Some(before), &command()).unwrap();
        assert!(
            installed(Client::Gemini, &after).unwrap().complete(),
            "{after}"
        );
        assert_eq!(
            install(Client::Gemini, Some(&after), &command()).unwrap(),
            after
        );
        for comment in [
            "// one",
            "// two",
            "// three",
            "four\n     five */",
            "/* end */",
            "// last",
        ] {
            assert_eq!(before.contains(comment), after.contains(comment), "{after}");
        }
        // What is said behind a value stays in its line.
        for line in ["\"b\": \"// text\", // three\n", "      }, // last\n"] {
            let there = before.contains(&line.replacen(", //", " //", 1));
            assert_eq!(there, after.contains(line), "{after}");
        }
        assert_eq!(
            uninstall(Client::Gemini, &after).unwrap().as_deref(),
            Some(before),
            "{after}"
        );
        let error = install(Client::ClaudeCode, Some(before), &command());
        assert!(
            matches!(error, Err(SettingsError::NotJson { .. })),
            "{before}"
        );
    }
}

#[test]
fn su_04_a_broken_file_is_refused_with_its_place() {
    let mine = "{\n  // mine\n  \"a\": 1\n}";
    let refused = install(Client::Cursor, Some(mine), &command()).unwrap_err();
    assert!(
        refused.to_string().contains("line 2, column 3"),
        "{refused}"
    );
    for client in JSON {
        for (text, line, column) in [
            ("{\n  / mine\n  \"a\": 1\n}", 2, 3),
            ("{\n  /* mine\n  \"a\": 1\n}", 2, 3),
            ("{\n  \"a\": 1,\n}", 3, 1),
            ("{\"a\": 1", 1, 8),
            ("{\"a\":1,\"a\":2}", 1, 8),
        ] {
            for result in [
                install(client, Some(text), &command()).map(|_| ()),
                uninstall(client, text).map(|_| ()),
                installed(client, text).map(|_| ()),
            ] {
                let error = result.unwrap_err();
                let SettingsError::NotJson {
                    line: at,
                    column: of,
                    ..
                } = &error
                else {
                    unreachable!("{error}");
                };
                assert_eq!((*at, *of), (line, column), "{text}: {error}");
                assert!(
                    error
                        .to_string()
                        .contains(&format!("line {line}, column {column}"))
                );
            }
        }
        let event = if client == Client::Gemini {
            "BeforeTool"
        } else {
            "PreToolUse"
        };
        let event = match client {
            Client::Copilot | Client::Cursor => "preToolUse",
            _ => event,
        };
        let odd = format!("{{\"hooks\": {{\"{event}\": {{}}}}}}");
        for text in ["[]", "1", "{\"hooks\": []}", odd.as_str()] {
            let error = install(client, Some(text), &command()).unwrap_err();
            assert!(
                matches!(error, SettingsError::Odd { .. }),
                "{text}: {error}"
            );
        }
    }
}

#[test]
fn su_04_the_program_is_named_plainly() {
    for program in ["safepoint", "./safepoint", "/a\nb/safepoint"] {
        let command = HookCommand {
            program: PathBuf::from(program),
        };
        for client in Client::ALL {
            assert_eq!(install(client, None, &command), Err(SettingsError::Program));
        }
    }
    let text = install(Client::ClaudeCode, None, &elsewhere()).unwrap();
    let line = &value(&text)["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
    assert_eq!(line, r"'/home/a b/it'\''s/safepoint' hook claude-code");
}

#[test]
fn su_04_opencode_is_asked_through_a_plugin() {
    let text = install(Client::Opencode, None, &command()).unwrap();
    assert!(text.contains("const program = \"/opt/safepoint/bin/safepoint\"\n"));
    assert!(text.contains("const milliseconds = 300000\n"));
    assert!(!text.contains("PROGRAM") && !text.contains("TIMEOUT"));
    assert!(installed(Client::Opencode, &text).unwrap().complete());
    assert_eq!(
        install(Client::Opencode, Some(&text), &command()).unwrap(),
        text
    );
    assert_eq!(uninstall(Client::Opencode, &text).unwrap(), None);
    let changed = text.replace("SIGKILL", "SIGTERM");
    assert!(!installed(Client::Opencode, &changed).unwrap().complete());
    assert_eq!(
        install(Client::Opencode, Some(&changed), &command()).unwrap(),
        text
    );
    // Somebody else's file stays.
    let other = "export const Other = 1\n";
    assert_eq!(
        install(Client::Opencode, Some(other), &command()),
        Err(SettingsError::Foreign)
    );
    assert_eq!(
        uninstall(Client::Opencode, other).unwrap().as_deref(),
        Some(other)
    );
    assert_eq!(installed(Client::Opencode, other).unwrap().program, None);
}

#[test]
fn su_04_places() {
    let roots = Roots {
        home: Path::new("/home/dev"),
        project: Path::new("/w"),
        own: None,
    };
    let mut all = String::new();
    for client in Client::ALL {
        for scope in [Scope::Project, Scope::User] {
            for place in places(client, scope, roots) {
                all.push_str(&format!(
                    "{} {scope:?} {}\n",
                    client.name(),
                    place.display()
                ));
            }
        }
    }
    insta::assert_snapshot!(all, @r"
    claude-code Project /w/.claude/settings.json
    claude-code User /home/dev/.claude/settings.json
    codex Project /w/.codex/hooks.json
    codex User /home/dev/.codex/hooks.json
    gemini Project /w/.gemini/settings.json
    gemini User /home/dev/.gemini/settings.json
    copilot Project /w/.github/hooks/safepoint.json
    copilot User /home/dev/.copilot/hooks/safepoint.json
    cursor Project /w/.cursor/hooks.json
    cursor User /home/dev/.cursor/hooks.json
    opencode Project /w/.opencode/plugin/safepoint.js
    opencode User /home/dev/.config/opencode/plugin/safepoint.js
    ");
    let own = Roots {
        own: Some(Path::new("/own")),
        ..roots
    };
    assert_eq!(home_variable(Client::Codex), Some("CODEX_HOME"));
    let codex = places(Client::Codex, Scope::User, own);
    assert_eq!(codex, [PathBuf::from("/own/hooks.json")]);
    let opencode = places(Client::Opencode, Scope::User, own);
    assert_eq!(
        opencode,
        [PathBuf::from("/own/opencode/plugin/safepoint.js")]
    );
}

#[test]
fn su_04_the_server_among_others() {
    assert_eq!(server_place(Path::new("/w")), PathBuf::from("/w/.mcp.json"));
    let fresh = install_server(None, &command()).unwrap();
    assert_eq!(
        value(&fresh),
        json!({"mcpServers": {"safepoint":
            {"command": "/opt/safepoint/bin/safepoint", "args": ["mcp"]}}})
    );
    assert_eq!(uninstall_server(&fresh).unwrap(), None);
    for before in [
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" }\n  }\n}\n",
        "{\"x\": 1}",
    ] {
        let after = install_server(Some(before), &command()).unwrap();
        assert_eq!(install_server(Some(&after), &command()).unwrap(), after);
        let moved = install_server(Some(&after), &elsewhere()).unwrap();
        assert_ne!(moved, after);
        assert_eq!(uninstall_server(&moved).unwrap().as_deref(), Some(before));
    }
    for odd in ["[]", "{\"mcpServers\": []}"] {
        assert!(install_server(Some(odd), &command()).is_err());
    }
}

#[test]
fn su_04_the_plugin_of_claude_code() {
    let files = plugin(&elsewhere()).unwrap();
    let names: Vec<&str> = files
        .iter()
        .map(|(path, _)| path.to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            ".claude-plugin/plugin.json",
            "hooks/hooks.json",
            ".mcp.json",
            "skills/safepoint/SKILL.md",
            "skills/safepoint-checkpoint/SKILL.md",
            "skills/safepoint-mutate/SKILL.md",
            "skills/safepoint-verify/SKILL.md",
            "skills/safepoint-rollback/SKILL.md",
        ]
    );
    assert_eq!(value(&files[0].1)["name"], "safepoint");
    // A plugin sets no variables for its client.
    let found = installed(Client::ClaudeCode, &files[1].1).unwrap();
    assert_eq!(found.missing, [SHELL_PREFIX]);
    assert!(found.stale.is_empty() && found.switched_off.is_none());
    assert_eq!(
        value(&files[2].1)["mcpServers"]["safepoint"]["command"],
        "/home/a b/it's/safepoint"
    );
    let skill = &files[3].1;
    assert!(skill.starts_with("---\nname: safepoint\ndescription: "));
    assert!(skill.contains(r"`'/home/a b/it'\''s/safepoint' undo ACTION`"));
    assert!(!skill.contains("PROGRAM"));
}

#[test]
fn su_04_every_client_says_what_is_not_covered() {
    for client in Client::ALL {
        assert!(!not_covered(client).is_empty());
        for line in not_covered(client) {
            assert!(!line.contains("  ") && !line.ends_with('.'), "{line}");
        }
    }
}

#[test]
fn su_04_nothing_is_complete_by_default() {
    assert!(!Installed::default().complete());
}

/// A value without our entries, and without anything empty that we would take away.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        any::<i32>().prop_map(|number| json!(number)),
        ".*".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map(".*", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn su_04_any_settings_come_back_as_they_were(
        client in proptest::sample::select(vec![Client::ClaudeCode, Client::Codex, Client::Gemini]),
        rest in proptest::collection::btree_map("[a-g\\\\\"{}\\[\\]]{1,3}", values(), 1..4),
        hooks in any::<bool>(),
        pretty in any::<bool>(),
    ) {
        let mut root: serde_json::Map<String, Value> = rest.into_iter().collect();
        if hooks {
            root.insert("hooks".to_owned(), json!({
                "PreToolUse": [{"hooks": [{"type": "command", "command": "./mine.sh"}]}],
                "SessionEnd": [{"matcher": "x", "hooks": []}],
            }));
        }
        let root = Value::Object(root);
        let before = if pretty {
            serde_json::to_string_pretty(&root).unwrap()
        } else {
            root.to_string()
        };
        let after = install(client, Some(&before), &command()).unwrap();
        prop_assert!(installed(client, &after).unwrap().complete());
        prop_assert_eq!(install(client, Some(&after), &command()).unwrap(), after.clone());
        prop_assert_eq!(uninstall(client, &after).unwrap(), Some(before));
    }

    #[test]
    fn su_04_any_text_is_answered(
        client in proptest::sample::select(Client::ALL.to_vec()),
        text in "[\\[\\]{}\":,a \n\\\\0-9]{0,40}",
    ) {
        if let Ok(after) = install(client, Some(&text), &command()) {
            prop_assert!(installed(client, &after).unwrap().complete());
            uninstall(client, &after).unwrap();
        }
    }
}

#[test]
fn fe_02_claude_code_starts_its_shells_through_us() {
    let before = "{\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n";
    let text = install(Client::ClaudeCode, Some(before), &elsewhere()).unwrap();
    let variables = &value(&text)["env"];
    let prefix = "/home/a b/it's/./safepoint";
    assert_eq!(*variables, json!({"A": "1", SHELL_PREFIX: prefix}));
    assert!(installed(Client::ClaudeCode, &text).unwrap().complete());
    let after = uninstall(Client::ClaudeCode, &text).unwrap();
    assert_eq!(after.as_deref(), Some(before));
}

#[test]
fn fe_02_another_program_that_shells_are_started_through_stays() {
    let before = format!("{{\"env\": {{\"{SHELL_PREFIX}\": \"/usr/bin/env -S x\"}}}}");
    let text = install(Client::ClaudeCode, Some(&before), &command()).unwrap();
    assert_eq!(value(&text)["env"], value(&before)["env"]);
    let again = install(Client::ClaudeCode, Some(&text), &command()).unwrap();
    assert_eq!(again, text);
    let found = installed(Client::ClaudeCode, &text).unwrap();
    assert_eq!(found.missing, [SHELL_PREFIX]);
    let after = uninstall(Client::ClaudeCode, &text).unwrap();
    assert_eq!(after.as_deref(), Some(before.as_str()));
}
