use safepoint_authority::shell::{AgentReach, agent_command};
use serde_json::{Value, json};

use super::table::TOOLS;
use crate::commands::form::{Given, Naming, Words};

#[track_caller]
fn words(tool: &str, given: &Value) -> Result<Words, String> {
    let tool = TOOLS.iter().find(|it| it.form.name == tool).unwrap();
    let given = Given::check(&tool.form, given.as_object().unwrap(), Naming::Lenient)?;
    let session = given.session().unwrap_or("ses_1").to_owned();
    Ok(given.words(Some(&session)))
}

#[track_caller]
fn line(tool: &str, given: &Value) -> String {
    words(tool, given).unwrap().words.join(" ")
}

#[test]
fn su_06_values_never_become_flags() {
    let given = json!({
        "scope": ["--seal-sensitive", "-C/", "@x"],
        "reason": "--expiry=never",
        "state": {"--a": "@/etc/hosts"},
    });
    assert_eq!(
        line("checkpoint", &given),
        r#"checkpoint --reason=--expiry=never --state=--a="@/etc/hosts" -- --seal-sensitive -C/ @x"#
    );
    let given = json!({"operation": {"type": "delete"}, "target": "--keep-failed", "checkpoint_id": "chk_1"});
    let made = words("mutate", &given).unwrap();
    assert_eq!(
        made.words.join(" "),
        "mutate --operation=- --checkpoint=chk_1 -- --keep-failed"
    );
    assert_eq!(made.input.as_deref(), Some(r#"{"type":"delete"}"#));
    // An id that could be something else is none.
    for id in ["--identity=/k", "-", "", "a b", "chk_1\n"] {
        let refused = words("rollback", &json!({ "checkpoint_id": id })).unwrap_err();
        assert!(refused.to_string().contains("must be an id"), "{refused}");
    }
    let refused = words("checkpoint", &json!({"state": {"a=@b": 1}})).unwrap_err();
    assert!(refused.to_string().contains("without `=`"), "{refused}");
}

#[test]
fn su_06_fields_go_where_the_command_wants_them() {
    let given = json!({"other": "chk_2", "checkpoint_id": "chk_1", "paths": "src", "stat": true, "name_only": false});
    assert_eq!(line("diff", &given), "diff chk_1 chk_2 --stat -- src");
    let given = json!({"action_id": "ticket.delete", "parameters": {"id": 1}, "risk_tier": "high"});
    let made = words("request", &given).unwrap();
    assert_eq!(
        made.words.join(" "),
        "session request --params=- --risk=high -- ses_1 ticket.delete"
    );
    assert_eq!(made.input.as_deref(), Some(r#"{"id":1}"#));
    // The names of the command line are understood too.
    let same = json!({"action": "ticket.delete", "params": {"id": 1}, "risk": "high"});
    assert_eq!(words("request", &same).unwrap(), made);
    let given = json!({"request_id": "act_1", "outcome": "ok", "session_id": "ses_2"});
    assert_eq!(
        line("record", &given),
        "session report --outcome=ok -- ses_2 act_1"
    );
    let made = words("record", &json!({"intent": "-"})).unwrap();
    assert_eq!(made.words.join(" "), "trail note --stream=ses_1 -- -");
    assert_eq!(made.input.as_deref(), Some("-"));
    let given = json!({"intent": "so", "payload": {"content": "it"}, "action_id": "act_1"});
    let made = words("record", &given).unwrap();
    assert_eq!(
        made.words.join(" "),
        "trail note --stream=ses_1 --action=act_1 -- -"
    );
    assert_eq!(
        made.input.as_deref(),
        Some(r#"{"intent":"so","payload":{"content":"it"}}"#)
    );
    let given = json!({"intent": "so", "workspace": "wsp_1", "token": "wst_1", "parent": "-x", "request_key": "k", "type": "artifact"});
    let made = words("record", &given).unwrap();
    let mut options: Vec<&str> = made.words.iter().map(String::as_str).collect();
    options.sort_unstable();
    assert_eq!(
        options.join(" "),
        "-- --body=- --request-key=k --token=wst_1 checkpoint workspace wsp_1"
    );
    let last: Vec<&str> = made
        .words
        .iter()
        .map(String::as_str)
        .rev()
        .take(2)
        .collect();
    assert_eq!(last, ["wsp_1", "--"]);
    assert_eq!(
        made.input.as_deref(),
        Some(r#"{"intent":"so","parent":"-x","type":"artifact"}"#)
    );
}

#[test]
fn su_06_what_a_tool_does_not_take_is_refused() {
    let refused = |tool: &str, given: Value| words(tool, &given).unwrap_err().to_string();
    assert_eq!(
        refused("undo", json!({"identity": "x"})),
        "`undo` takes no `identity`"
    );
    assert_eq!(
        refused("rollback", json!({})),
        "`rollback` needs `checkpoint_id`"
    );
    assert_eq!(
        refused("record", json!({"request_id": "act_1"})),
        "`record` needs `request_id` and `outcome`, or `intent`"
    );
    assert_eq!(
        refused(
            "record",
            json!({"request_id": "act_1", "outcome": "ok", "intent": "x"})
        ),
        "`record` takes `request_id`, or `intent`, not both"
    );
    assert_eq!(
        refused(
            "record",
            json!({"request_id": "act_1", "outcome": "ok", "workspace": "wsp_1"})
        ),
        "`workspace` is for a record with `intent` and `workspace`"
    );
    let file = json!({"intent": "x", "workspace": "wsp_1", "token": "@file"});
    assert_eq!(refused("record", file), "`token` must be an id");
    assert_eq!(
        refused("verify", json!({"id": "a", "checkpoint_id": "b"})),
        "`checkpoint_id` is given twice"
    );
    assert_eq!(
        refused("request", json!({"action": "a", "risk": "none"})),
        "`risk` must be one of `low`, `medium`, `high` and `critical`"
    );
}

/// The table and the command line are written apart: each tool's words must be a command.
#[test]
fn su_06_every_tool_is_a_command() {
    use clap::Parser;
    let full = [
        (
            "checkpoint",
            json!({"scope": ["a"], "reason": "r", "checkpoint_type": "file_backup", "expiry": "24h", "state": {"a": 1}}),
        ),
        (
            "mutate",
            json!({"target": "a", "operation": [{"type": "delete"}], "checkpoint_id": "chk_1", "verify": "true", "strict": true}),
        ),
        (
            "mutate",
            json!({"operation": {"type": "delete", "target": "a"}, "auto_checkpoint": true}),
        ),
        ("verify", json!({"checkpoint_id": "chk_1"})),
        ("verify", json!({"action_id": "act_1"})),
        (
            "rollback",
            json!({"checkpoint_id": "chk_1", "paths": ["a", "b"], "dry_run": true, "expired": true}),
        ),
        ("undo", json!({"action_id": "act_1", "dry_run": true})),
        (
            "diff",
            json!({"checkpoint_id": "chk_1", "other_checkpoint_id": "chk_2", "paths": ["a"], "name_only": true}),
        ),
        (
            "request",
            json!({"action_id": "a.b", "parameters": 1, "risk_tier": "low"}),
        ),
        (
            "answer",
            json!({"checkpoint_id": "gate", "answers": {"a=b": 1}}),
        ),
        (
            "record",
            json!({"request_id": format!("act_{}", "1".repeat(26)), "outcome": "error", "result": []}),
        ),
        (
            "record",
            json!({"intent": "i", "type": "artifact", "payload": {}, "status": "final", "confidence": "low"}),
        ),
        ("status", json!({})),
        ("log", json!({"limit": 3})),
        ("redo", json!({"dry_run": true})),
        ("show", json!({"checkpoint_id": "chk_1"})),
        ("audit", json!({"scope": ["a", "b"], "since": "1h"})),
        ("list", json!({"limit": 3, "automatic": true})),
    ];
    for tool in TOOLS {
        assert!(
            full.iter().any(|(name, _)| *name == tool.form.name),
            "{}",
            tool.form.name
        );
    }
    for (tool, given) in full {
        let words = words(tool, &given).unwrap().words;
        let line = ["safepoint", "--json"]
            .map(str::to_owned)
            .into_iter()
            .chain(words.iter().cloned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let listed = agent_command(&words).map(|command| command.reach);
        assert_eq!(
            listed,
            Some(AgentReach::Outside),
            "{tool}: {words:?} is not on the list of what agents may call"
        );
        if let Err(error) = crate::cli::Cli::try_parse_from(line) {
            assert_eq!(
                error.kind(),
                clap::error::ErrorKind::ValueValidation,
                "{tool}: {error}"
            );
        }
    }
}

#[test]
fn su_06_schemas_are_sound() {
    for note in super::notes::notes() {
        for schema in [&note.input, &note.output] {
            let schema = Value::Object(schema.clone());
            assert_eq!(schema["type"], "object", "{}", note.name);
            assert!(!schema.to_string().contains("$schema"), "{}", note.name);
            jsonschema::meta::validate(&schema).unwrap();
            jsonschema::validator_for(&schema).unwrap();
        }
        assert!(!note.hints.read_only || !note.hints.destructive);
    }
}
