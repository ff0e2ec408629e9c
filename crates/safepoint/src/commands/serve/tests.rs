use clap::Parser;
use safepoint_server::api::{Method, PATHS};
use safepoint_server::commands::{Caller, Role};
use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::openapi;
use super::program::may_run;
use super::table::endpoints;
use crate::commands::form::{Field, Given, Naming, Shape, Words};

/// Who may use what: `a`gent, `o`perator, `s`teward, audito`r`. Written apart from the table,
/// so that each of them is decided twice.
const ROLES: &[(&str, &str)] = &[
    ("session_start", "a"),
    ("session_list", "aor"),
    ("session_show", "aor"),
    ("session_input", "a"),
    ("session_request", "a"),
    ("session_access", "a"),
    ("session_ask", "a"),
    ("session_answer", "a"),
    ("session_report", "a"),
    ("session_end", "ao"),
    ("atlas_check", "so"),
    ("atlas_test", "so"),
    ("status", "osr"),
    ("action_enter", "a"),
    ("action_propose", "a"),
    ("action_rehearse", "a"),
    ("action_outcome", "a"),
    ("action_hold", "a"),
    ("hold_list", "or"),
    ("hold_show", "or"),
    ("hold_approve", "o"),
    ("hold_deny", "o"),
    ("hold_halt", "o"),
    ("permit_list", "or"),
    ("permit_show", "or"),
    ("permit_revoke", "o"),
    ("trust_list", "or"),
    ("trust_grant", "o"),
    ("trust_revoke", "o"),
    ("operator_list", "or"),
    ("operator_add", "o"),
    ("operator_remove", "o"),
    ("checkpoint_list", "aor"),
    ("checkpoint_create", "ao"),
    ("checkpoint_show", "aor"),
    ("checkpoint_diff", "aor"),
    ("checkpoint_verify", "aor"),
    ("checkpoint_rollback", "ao"),
    ("undo", "ao"),
    ("redo", "ao"),
    ("action_list", "aor"),
    ("audit", "or"),
    ("trail_list", "or"),
    ("trail_show", "or"),
    ("trail_prove", "or"),
    ("trail_consistency", "or"),
    ("trail_head", "or"),
    ("trail_verify", "or"),
    ("atlas_show", "osr"),
    ("usage", "osr"),
    ("doctor", "osr"),
    ("workspace_list", "aor"),
    ("workspace_create", "o"),
    ("workspace_show", "aor"),
    ("workspace_state", "o"),
    ("workspace_migrate", "o"),
    ("workspace_checkpoint", "a"),
    ("workspace_head", "aor"),
    ("workspace_final", "aor"),
    ("workspace_log", "aor"),
    ("workspace_verify", "aor"),
    ("workspace_signals", "aor"),
    ("workspace_signal", "a"),
    ("workspace_meter", "o"),
    ("workspace_integrate", "o"),
    ("workspace_resolve", "o"),
    ("workspace_decline", "o"),
    ("task_list", "or"),
    ("task_create", "o"),
    ("task_show", "or"),
    ("task_assign", "o"),
    ("task_approve", "o"),
    ("task_retry", "o"),
    ("task_cancel", "o"),
    ("trail_bundle", "or"),
];

fn letters(roles: &[Role]) -> String {
    roles
        .iter()
        .map(|role| match role {
            Role::Agent => 'a',
            Role::Operator => 'o',
            Role::Steward => 's',
            Role::Auditor => 'r',
        })
        .collect()
}

#[test]
fn su_07_every_endpoint_has_its_roles() {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    for endpoint in endpoints() {
        let name = endpoint.form.name;
        let row = ROLES.iter().find(|(known, _)| *known == name);
        let (_, wanted) = row.unwrap_or_else(|| panic!("`{name}` has no row"));
        assert!(!endpoint.roles.is_empty(), "{name}");
        assert_eq!(sorted(wanted), sorted(&letters(endpoint.roles)), "{name}");
    }
    for (name, _) in ROLES {
        assert!(endpoints().any(|it| it.form.name == *name), "{name}");
    }
    let open: Vec<&str> = PATHS
        .iter()
        .filter(|(_, roles)| roles.is_none())
        .map(|(path, _)| *path)
        .collect();
    assert_eq!(open, ["/healthz", "/readyz"]);
}

/// What an agent may reach decides nothing, and an auditor changes nothing.
#[test]
fn su_07_who_only_looks_has_nothing_that_changes() {
    for endpoint in endpoints() {
        let decides = ["hold", "permit", "trust", "operator"].contains(&endpoint.form.command[0]);
        let changes = endpoint.method == Method::Post;
        if decides {
            assert!(
                !endpoint.roles.contains(&Role::Agent),
                "{}",
                endpoint.form.name
            );
        }
        if decides && changes {
            assert_eq!(endpoint.roles, [Role::Operator], "{}", endpoint.form.name);
            assert!(endpoint.takes("signature"), "{}", endpoint.form.name);
        }
        if changes {
            assert!(
                !endpoint.roles.contains(&Role::Auditor),
                "{}",
                endpoint.form.name
            );
        }
    }
}

/// Something that fits a field, and would be a flag if it stood in the wrong place.
fn sample(field: &Field) -> Value {
    match field.shape {
        Shape::Text | Shape::Long => json!("--yes"),
        Shape::Id => json!("chk_1"),
        Shape::Texts | Shape::Paths => json!(["--yes", "-C/"]),
        Shape::Choice(known) => json!(known[0]),
        Shape::Count | Shape::Limit => json!(7),
        Shape::Cursor => json!("7.x"),
        Shape::Flag => json!(true),
        Shape::Object | Shape::Named => json!({"--yes": "@/etc/passwd"}),
        Shape::Objects => json!([{}]),
        Shape::Anything => json!("@/etc/passwd"),
    }
}

fn filled(endpoint: &Endpoint) -> Words {
    let given: Map<String, Value> = endpoint
        .form
        .fields
        .iter()
        .map(|field| (field.name().to_owned(), sample(field)))
        .collect();
    let given = Given::check(&endpoint.form, &given, Naming::Strict).unwrap();
    given.words(given.session())
}

/// The table and the command line are written apart: each endpoint's words must be a
/// command, and no value a flag.
#[test]
fn su_07_every_endpoint_is_a_command_and_no_value_a_flag() {
    for endpoint in endpoints() {
        let Words { words, .. } = filled(endpoint);
        let own = endpoint.form.command.len();
        let flags: Vec<&String> = words
            .iter()
            .skip(own)
            .take_while(|word| *word != "--")
            .collect();
        for flag in flags {
            let known = |field: &Field| {
                use crate::commands::form::Place;
                match field.place {
                    Place::Option(option) | Place::Pairs(option) | Place::Each(option) => {
                        flag.starts_with(&format!("{option}="))
                    }
                    Place::Switch(option) => flag == option,
                    Place::Input(option) | Place::Text(option) => *flag == format!("{option}=-"),
                    Place::Before => flag == "chk_1",
                    _ => false,
                }
            };
            assert!(
                endpoint.form.fields.iter().any(known),
                "{flag} in {words:?}"
            );
        }
        let line = ["safepoint", "--json"].map(str::to_owned).into_iter();
        if let Err(error) = crate::cli::Cli::try_parse_from(line.chain(words.clone())) {
            use clap::error::ErrorKind::{ArgumentConflict, InvalidValue, ValueValidation};
            assert!(
                [ArgumentConflict, InvalidValue, ValueValidation].contains(&error.kind()),
                "{words:?}: {error}"
            );
        }
        // What is null, unknown or of another kind is refused.
        for (name, value) in [("unknown", json!(1)), ("workspace", Value::Null)] {
            let mut given = Map::new();
            given.insert(name.to_owned(), value);
            assert!(Given::check(&endpoint.form, &given, Naming::Strict).is_err());
        }
    }
}

/// The page runs commands by their words: what no endpoint has is for nobody.
#[test]
fn su_07_a_command_without_an_endpoint_is_for_nobody() {
    let caller = |role| Caller {
        name: "token:x".to_owned(),
        roles: vec![role],
        scopes: Vec::new(),
    };
    let may = |role, words: &[&str]| {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        may_run(&caller(role), &words)
    };
    assert!(may(Role::Operator, &["hold", "approve", "x"]));
    assert!(may(Role::Auditor, &["hold", "show", "x"]));
    assert!(!may(Role::Auditor, &["hold", "approve", "x"]));
    assert!(!may(Role::Steward, &["hold", "list"]));
    // What the page runs, besides.
    for words in [
        &["du"][..],
        &["doctor"],
        &["operator", "list"],
        &["permit", "list", "--limit=10"],
        &["log"],
        &["diff", "--name-only", "x"],
        &["show", "x"],
        &["list"],
        &["rollback", "--dry-run", "x"],
        &["undo", "x"],
        &["trail", "head"],
        &["trail", "prove", "x"],
        &["trail", "verify"],
        &["trail", "list", "--last=10"],
        &["trail", "show", "x"],
        &["workspace", "list"],
        &["workspace", "log", "--graph", "x"],
        &["workspace", "show", "x"],
        &["atlas", "show"],
        &["hold", "show", "x"],
        &["hold", "deny", "x"],
        &["hold", "halt", "x"],
        &["session", "list"],
        &["session", "show", "x"],
        &["status"],
    ] {
        assert!(may(Role::Operator, words), "{words:?}");
    }
    assert!(!may(Role::Auditor, &["rollback", "x"]));
    assert!(!may(Role::Auditor, &["workspace", "integrate", "x"]));
    for words in [
        &["token", "create", "x"][..],
        &["exec", "--", "true"],
        &["hold", "sign", "-"],
        &["operator", "sign", "x"],
        &["trail", "note", "x"],
        &["gc"],
        &["hold"],
        &["--store=x", "hold", "list"],
        &[],
    ] {
        for role in [Role::Agent, Role::Operator, Role::Steward, Role::Auditor] {
            assert!(!may(role, words), "{words:?}");
        }
    }
    assert!(!may(Role::Agent, &["session", "list"]));
}

#[test]
fn su_07_the_document_is_sound() {
    let document = openapi::document();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 500);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let schemas = document.pointer("/components/schemas").unwrap();
    for (name, schema) in schemas.as_object().unwrap() {
        assert!(jsonschema::meta::is_valid(schema), "{name}");
    }
    let mut names = std::collections::HashSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            assert!(names.insert(operation["operationId"].to_string()));
        }
    }
    assert_eq!(names.len(), endpoints().count() + PATHS.len());
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.push(reference.clone());
            }
            fields.values().for_each(|value| collect(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}
