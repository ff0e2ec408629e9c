//! Sessions from outside: judged step by step, by a new process each time.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/sessions.rs"]
mod support;

use std::fs;

use serde_json::{Value, json};
use support::{acme, answer, entries, env, kinds, open, request, run, start, text};

#[test]
fn ga_01_the_whole_story_of_the_specification() {
    let env = env();
    let (code, started) = run(
        &env,
        &[
            "session",
            "start",
            "--atlas",
            "atlas.yaml",
            "--goal",
            "help a customer",
        ],
    );
    assert_eq!(code, 0);
    let session = text(&started["session_id"]);
    assert_eq!(started["resolution"]["decision"], "hold");
    assert_eq!(
        started["resolution"]["questions"][0]["question_id"],
        "agree-terms"
    );
    assert_eq!(started["resolution"]["allowed_actions"], json!([]));

    // Nothing goes on before the terms are agreed to, and a no is no yes.
    let get = ["ticket.get", "--params", r#"{"ticket_id": "T-1"}"#];
    assert_eq!(request(&env, &session, &get).0, 2);
    let (code, no) = answer(&env, &session, "onboarding", r#"{"agree-terms": "no"}"#);
    assert_eq!((code, &no["validation"]["is_valid"]), (0, &json!(true)));
    assert_eq!(no["resolution"]["decision"], "hold");
    let (code, yes) = answer(&env, &session, "onboarding", r#"{"agree-terms": true}"#);
    assert_eq!(code, 0);
    let contexts: Vec<_> = yes["resolution"]["contexts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|context| text(&context["context_id"]))
        .collect();
    assert_eq!(contexts, ["intro-context", "policy-summary"]);
    assert_eq!(
        yes["resolution"]["capabilities"]["unlocked"],
        json!(["basic-support"])
    );
    assert_eq!(yes["resolution"]["guidance"][0]["format"], "markdown");

    // Everyday work, and its outcome.
    let (code, allowed) = request(&env, &session, &get);
    assert_eq!(
        (code, &allowed["resolution"]["decision"]),
        (0, &json!("allow"))
    );
    let id = text(&allowed["request_id"]);
    assert!(id.starts_with("act_"), "{id}");
    let (code, _) = run(
        &env,
        &["session", "report", &session, &id, "--outcome", "ok"],
    );
    assert_eq!(code, 0);

    // A deletion of high risk: three gates, each in its place, then a person.
    let delete = [
        "ticket.delete",
        "--params",
        r#"{"id": 7}"#,
        "--risk",
        "high",
    ];
    let (code, held) = request(&env, &session, &delete);
    assert_eq!((code, &held["resolution"]["decision"]), (2, &json!("hold")));
    let gates: Vec<_> = held["resolution"]["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gate| {
            (
                text(&gate["checkpoint_id"]),
                gate["priority"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        gates,
        [
            ("admin-gate".to_owned(), 920),
            ("delete-confirm".to_owned(), 900),
            ("high-risk-gate".to_owned(), 900)
        ]
    );
    let (code, weak) = answer(
        &env,
        &session,
        "delete-confirm",
        r#"{"confirm-delete": "ok"}"#,
    );
    assert_eq!((code, &weak["validation"]["is_valid"]), (2, &json!(false)));
    answer(
        &env,
        &session,
        "delete-confirm",
        r#"{"confirm-delete": "understood"}"#,
    );
    answer(
        &env,
        &session,
        "admin-gate",
        r#"{"admin-ack": "I acknowledge it"}"#,
    );
    let (code, short) = answer(
        &env,
        &session,
        "high-risk-gate",
        r#"{"justify-risk": "because"}"#,
    );
    assert_eq!(code, 2);
    assert_eq!(short["validation"]["failures"][0]["rule"], "min_length");
    let why = r#"{"justify-risk": "The customer asked for it in writing."}"#;
    let (code, last) = answer(&env, &session, "high-risk-gate", why);
    assert_eq!(code, 0);
    assert_eq!(last["resolution"]["decision"], "requires_approval");
    assert_eq!(
        last["resolution"]["reason"],
        "Admin actions require approval"
    );
    assert_eq!(
        last["request_id"], held["request_id"],
        "one id from asking to approval"
    );

    assert_eq!(run(&env, &["session", "end", &session]).0, 0);
    let kinds = kinds(&env, &session);
    for kind in [
        "SessionStarted",
        "CheckpointTriggered",
        "CheckpointBlocked",
        "CheckpointResponse",
        "CheckpointPassed",
        "ContextInjected",
        "GuidanceInjected",
        "CapabilityUnlocked",
        "ActionRequested",
        "ActionHeld",
        "ActionAllowed",
        "ActionReported",
        "PolicyApplied",
        "ApprovalRequired",
        "SessionEnded",
    ] {
        assert!(kinds.iter().any(|found| found == kind), "{kind}: {kinds:?}");
    }
    assert_eq!(env.run(&["trail", "verify"]).code, 0);
}

#[test]
fn ga_41_one_action_id_joins_what_belongs_together() {
    let env = env();
    let session = open(&env);
    let (_, held) = request(&env, &session, &["ticket.delete"]);
    let id = text(&held["request_id"]);
    answer(
        &env,
        &session,
        "delete-confirm",
        r#"{"confirm-delete": "understood"}"#,
    );
    let (_, page) = run(&env, &["trail", "list", "--action", &id]);
    let kinds: Vec<_> = page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| text(&entry["kind"]))
        .collect();
    assert_eq!(
        kinds,
        [
            "ActionRequested",
            "CheckpointTriggered",
            "CheckpointTriggered",
            "CheckpointBlocked",
            "CheckpointBlocked",
            "ActionHeld",
            "CheckpointResponse",
            "CheckpointPassed",
            "ActionHeld",
        ]
    );
}

#[test]
fn ga_24_what_is_refused_is_recorded() {
    let env = env();
    let session = open(&env);
    let (code, reply) = answer(
        &env,
        &session,
        "delete-confirm",
        r#"{"confirm-delete": "understood"}"#,
    );
    assert_eq!((code, &reply["error"]["code"]), (9, &json!("C905")));
    let last = entries(&env, &session).pop().unwrap();
    assert_eq!(last["kind"], "CheckpointResponse");
    assert_eq!(last["body"]["validation_result"], "refused");
    assert_eq!(answer(&env, &session, "nobody", "{}").0, 8);
    assert_eq!(run(&env, &["session", "show", "ses_nothing"]).0, 8);
}

#[test]
fn ga_25_after_the_end_nothing_is_allowed() {
    let env = env();
    let session = start(&env);
    assert_eq!(run(&env, &["session", "end", &session]).0, 0);
    let last: Vec<_> = kinds(&env, &session).into_iter().rev().take(2).collect();
    assert_eq!(last, ["SessionEnded", "CheckpointBlocked"]);
    let (code, reply) = request(&env, &session, &["ticket.get"]);
    assert_eq!((code, &reply["error"]["code"]), (9, &json!("C905")));
    let (code, reply) = answer(&env, &session, "onboarding", r#"{"agree-terms": true}"#);
    assert_eq!((code, &reply["error"]["code"]), (9, &json!("C905")));
    let (_, shown) = run(&env, &["session", "show", &session]);
    assert_eq!(shown["resolution"]["allowed_actions"], json!([]));
    let other = open(&env);
    request(&env, &other, &["ticket.delete"]);
    let (_, shown) = run(&env, &["session", "show", &other]);
    let questions = shown["resolution"]["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 2, "what is held is shown");
}

#[test]
fn ga_05_a_changed_atlas_is_refused_and_not_reloaded() {
    let env = env();
    let session = open(&env);
    let weaker = acme().replace("type: requires_approval", "type: allow");
    env.write("project/atlas.yaml", &weaker);
    let (code, reply) = request(&env, &session, &["ticket.list"]);
    assert_eq!((code, &reply["error"]["code"]), (2, &json!("F518")));
    assert_eq!(kinds(&env, &session).pop().unwrap(), "AtlasRefused");
    // As it was, it is the atlas again; gone, the session goes on with what it began with.
    env.write("project/atlas.yaml", &acme());
    assert_eq!(request(&env, &session, &["ticket.list"]).0, 0);
    fs::remove_file(env.project().join("atlas.yaml")).unwrap();
    assert_eq!(request(&env, &session, &["ticket.list"]).0, 0);
    let first = entries(&env, &session).remove(0);
    assert_eq!(first["body"]["atlases"][0]["version"], "2.1.0");
    assert_eq!(text(&first["body"]["atlases"][0]["digest"]).len(), 64);
}

#[test]
fn ga_05_a_signed_atlas_stays_signed_by_the_same_key() {
    let env = env();
    let (code, signed) = run(
        &env,
        &[
            "atlas",
            "sign",
            "atlas.yaml",
            "--key",
            "steward.key",
            "--new-key",
        ],
    );
    assert_eq!(code, 0, "{signed}");
    assert!(text(&signed["key"]).starts_with("acme-corp+"), "{signed}");
    start(&env);
    // Changed after signing.
    env.write("project/atlas.yaml", &acme().replace("2.1.0", "2.1.1"));
    let arguments = ["session", "start", "--atlas", "atlas.yaml"];
    let (code, reply) = run(&env, &arguments);
    assert_eq!((code, &reply["error"]["code"]), (6, &json!("I605")));
    // Signed again by the same key: good.
    assert_eq!(
        run(
            &env,
            &["atlas", "sign", "atlas.yaml", "--key", "steward.key"]
        )
        .0,
        0
    );
    start(&env);
    // Signed by somebody else, or not at all.
    let other = [
        "atlas",
        "sign",
        "atlas.yaml",
        "--key",
        "other.key",
        "--new-key",
    ];
    assert_eq!(run(&env, &other).0, 0);
    assert_eq!(run(&env, &arguments).0, 6);
    fs::remove_file(env.project().join("atlas.yaml.sig")).unwrap();
    let (code, reply) = run(&env, &arguments);
    assert_eq!((code, &reply["error"]["code"]), (6, &json!("I605")));
    assert!(text(&reply["error"]["message"]).contains("signed before"));
}

#[test]
fn ga_33_parameters_and_answers_come_from_files_and_standard_input() {
    let env = env();
    let session = start(&env);
    env.write("project/answers.json", r#"{"agree-terms": true}"#);
    assert_eq!(answer(&env, &session, "onboarding", "@answers.json").0, 0);
    let run = env.run_with(
        &[
            "session",
            "request",
            &session,
            "ticket.get",
            "--params",
            "-",
            "--json",
        ],
        br#"{"ticket_id": "1"}"#,
    );
    assert_eq!(run.code, 0, "{run:?}");
    let run = env.run_with(&["session", "input", &session, "-"], b"a large text");
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn ga_40_bad_input_changes_nothing_and_says_what_next() {
    let env = env();
    let session = open(&env);
    let before = kinds(&env, &session).len();
    let cases: [(&[&str], i32, &str); 6] = [
        (
            &[
                "session",
                "request",
                &session,
                "ticket.get",
                "--params",
                "{",
            ],
            7,
            "U702",
        ),
        (
            &[
                "session",
                "request",
                &session,
                "ticket.get",
                "--params",
                r#"{"a":1,"a":2}"#,
            ],
            7,
            "U702",
        ),
        (
            &[
                "session",
                "request",
                &session,
                "ticket.get",
                "--params",
                "@missing.json",
            ],
            8,
            "N801",
        ),
        (
            &[
                "session",
                "answer",
                &session,
                "onboarding",
                "--answers",
                "[]",
            ],
            7,
            "U702",
        ),
        (
            &[
                "session",
                "request",
                &session,
                "ticket.get",
                "--risk",
                "extreme",
            ],
            7,
            "U701",
        ),
        (&["session", "start", "--atlas", "missing.yaml"], 8, "N801"),
    ];
    for (arguments, code, name) in cases {
        let (found, reply) = run(&env, arguments);
        assert_eq!(
            (found, &reply["error"]["code"]),
            (code, &json!(name)),
            "{arguments:?}"
        );
        assert!(reply["error"]["suggestion"].is_string(), "{reply}");
    }
    assert_eq!(kinds(&env, &session).len(), before);
    // Names that no atlas knows are denied, whatever they are.
    for action in ["", "..", "a\nb", "\u{202e}evil", &"x".repeat(10_000)] {
        let (code, reply) = request(&env, &session, &["--", action]);
        assert_eq!(
            (code, &reply["resolution"]["decision"]),
            (2, &json!("deny")),
            "{action:?}"
        );
    }
}

#[test]
fn ga_42_answers_that_look_like_secrets_are_not_in_the_trail() {
    let env = env();
    let session = open(&env);
    request(
        &env,
        &session,
        &[
            "ticket.get",
            "--risk",
            "high",
            "--params",
            r#"{"ticket_id": "1"}"#,
        ],
    );
    let secret = concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz");
    let answers = json!({"justify-risk": format!("The token is {secret}, as agreed.")});
    let (code, _) = answer(&env, &session, "high-risk-gate", &answers.to_string());
    assert_eq!(code, 0);
    let told: String = entries(&env, &session)
        .iter()
        .map(Value::to_string)
        .collect();
    assert!(!told.contains(secret));
    assert!(told.contains("redacted"), "{told}");
    for file in walk(&env.home()) {
        let bytes = fs::read(&file).unwrap();
        let found = bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for item in fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => found.extend(walk(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn ga_43_access_and_limits_are_those_of_the_manifest() {
    let mut env = env();
    let limited = acme().replace("requests_per_minute: 100", "requests_per_minute: 2");
    env.write("project/atlas.yaml", &limited);
    let session = open(&env);
    assert_eq!(request(&env, &session, &["ticket.list"]).0, 0);
    assert_eq!(request(&env, &session, &["ticket.list"]).0, 0);
    let (code, reply) = request(&env, &session, &["ticket.list"]);
    assert_eq!(code, 2);
    assert!(text(&reply["resolution"]["reason"]).contains("too often"));
    // Another session of the same user shares the limit; another key has its own.
    let other = open(&env);
    assert_eq!(request(&env, &other, &["ticket.list"]).0, 2);
    env.set("SAFEPOINT_ATLAS_KEY", "sk-acme-1");
    let keyed = open(&env);
    assert_eq!(request(&env, &keyed, &["ticket.list"]).0, 0);
    env.set("SAFEPOINT_ATLAS_KEY", "sk-other-1");
    let (code, reply) = run(&env, &["session", "start", "--atlas", "atlas.yaml"]);
    assert_eq!((code, &reply["error"]["code"]), (6, &json!("I606")));
    let started = entries(&env, &keyed).remove(0);
    assert!(
        !started.to_string().contains("sk-acme-1"),
        "a key is never kept"
    );
}

#[test]
fn ga_14_many_processes_at_once_lose_nothing() {
    let env = env();
    let atlas = "atlas_version: \"1.0\"\natlas_id: t\nversion: \"1\"\nname: T\nactions: [{action_id: go}]\ncheckpoints:\n  - {checkpoint_id: tenth, trigger: {type: count_interval, actions: 10}, mode: observational}\n";
    env.write("project/atlas.yaml", atlas);
    let session = start(&env);
    let children: Vec<_> = (0..20)
        .map(|_| {
            env.command(&["session", "request", &session, "go"])
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (_, shown) = run(&env, &["session", "show", &session]);
    assert_eq!(shown["session"]["actions"], 20);
    let fired = kinds(&env, &session);
    let fired = fired.iter().filter(|kind| *kind == "CheckpointTriggered");
    assert_eq!(fired.count(), 2, "once per interval, whoever asks");
    assert_eq!(env.run(&["trail", "verify"]).code, 0);
}

#[test]
fn ga_36_a_resolution_for_people() {
    let env = env();
    let started = env.run(&["session", "start", "--atlas", "atlas.yaml"]);
    assert_eq!(
        env.normalise(&started.stdout),
        "session  ses_[id]
hold  checkpoint `onboarding` must be answered first
checkpoint  onboarding  session_start  pending
question  agree-terms  Do you agree to ACME's terms of service? (boolean)
answer  safepoint session answer ses_[id] onboarding --answers '{\"agree-terms\": …}'
may not  ticket.comment, ticket.delete, ticket.get, ticket.list, ticket.reassign, user.ban
"
    );
}

#[test]
fn ga_41_a_step_that_is_killed_has_happened_or_not() {
    for point in [
        "write.begun",
        "write.changed",
        "write.sealed",
        "write.committed",
    ] {
        let env = env();
        let session = open(&env);
        let before = kinds(&env, &session).len();
        let killed = env
            .command(&["session", "request", &session, "ticket.delete"])
            .env("SAFEPOINT_FAULT", point)
            .output()
            .unwrap();
        assert_eq!(killed.status.code(), None, "{point}: {killed:?}");
        let (_, shown) = run(&env, &["session", "show", &session]);
        let held = shown["session"]["holds"].as_array().unwrap().len();
        let told = kinds(&env, &session).len() - before;
        assert!(
            (held, told) == (0, 0) || (held, told) == (1, 6),
            "{point}: {held} {told}"
        );
        // The session goes on, and nothing was let through.
        let (code, again) = request(&env, &session, &["ticket.delete"]);
        assert_eq!(
            (code, &again["resolution"]["decision"]),
            (2, &json!("hold")),
            "{point}"
        );
        assert_eq!(env.run(&["trail", "verify"]).code, 0, "{point}");
    }
}

#[test]
fn ga_40_a_session_that_is_changed_in_the_store_allows_nothing() {
    let env = env();
    let session = start(&env);
    let database = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    let state: String = database
        .query_row("SELECT state FROM control_sessions", [], |row| row.get(0))
        .unwrap();
    let mut forged: Value = serde_json::from_str(&state).unwrap();
    forged["holds"] = json!([]);
    forged["unlocked"] = json!(["com.acme.support/basic-support"]);
    let write = "UPDATE control_sessions SET state = ?1";
    database.execute(write, [forged.to_string()]).unwrap();
    let (code, reply) = request(&env, &session, &["ticket.list"]);
    assert_eq!((code, &reply["error"]["code"]), (2, &json!("F520")));
    // An older state that was once true will not do either.
    database.execute(write, [&state]).unwrap();
    answer(&env, &session, "onboarding", r#"{"agree-terms": true}"#);
    assert_eq!(request(&env, &session, &["ticket.list"]).0, 0);
    database.execute(write, [&state]).unwrap();
    assert_eq!(request(&env, &session, &["ticket.list"]).0, 2);
}

#[test]
fn ga_24_an_outcome_is_reported_once() {
    let env = env();
    let session = open(&env);
    let (_, allowed) = request(&env, &session, &["ticket.list"]);
    let id = text(&allowed["request_id"]);
    let report = ["session", "report", &session, &id, "--outcome", "ok"];
    let children: Vec<_> = (0..8)
        .map(|_| env.command(&report).spawn().unwrap())
        .collect();
    let done = children
        .into_iter()
        .map(|mut child| child.wait().unwrap().success())
        .filter(|done| *done);
    assert_eq!(done.count(), 1);
    let told = kinds(&env, &session);
    let told = told.iter().filter(|kind| *kind == "ActionReported");
    assert_eq!(told.count(), 1);
    let (_, held) = request(&env, &session, &["ticket.delete"]);
    let id = text(&held["request_id"]);
    let (code, _) = run(
        &env,
        &["session", "report", &session, &id, "--outcome", "ok"],
    );
    assert_eq!(code, 9, "what was never allowed has no outcome");
}

#[test]
fn ga_05_a_session_under_a_changed_atlas_can_be_ended() {
    let env = env();
    let session = start(&env);
    env.write("project/atlas.yaml", &acme().replace("2.1.0", "2.2.0"));
    assert_eq!(request(&env, &session, &["ticket.list"]).0, 2);
    assert_eq!(run(&env, &["session", "end", &session]).0, 0);
}
