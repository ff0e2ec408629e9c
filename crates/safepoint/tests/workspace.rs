//! Workspaces from outside: a run, its agents, and the chains of what they produce.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/workspaces.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::{Agent, ask, below, body, create, env, kinds, parsed, record, root, run, text};
use testkit::TestEnv;

const TAXONOMY: &str = "id: example.reviews
version: '2'
protocol_version: '0.1'
roles:
  - name: reviewer
    extends: worker
    override: {checkpoint_types: [review]}
checkpoint_types:
  - name: review
    permitted_roles: [reviewer]
    required_fields: [verdict]
";

#[track_caller]
fn signal(env: &TestEnv, agent: &Agent, rest: &[&str]) -> (i32, Value) {
    let said = ["workspace", "signal", &agent.id];
    let token = ["--token", &agent.token];
    run(env, &[&said[..], rest, &token].concat())
}

/// Ids of checkpoints and signals, which differ from run to run.
fn plain(text: &str) -> String {
    let ids = regex::Regex::new("(rec|sig)_[0-9a-z]{26}").unwrap();
    let tokens = regex::Regex::new("wst_[0-9a-f]{64}").unwrap();
    let text = ids.replace_all(text, "${1}_[id]");
    tokens.replace_all(&text, "wst_[token]").into_owned()
}

#[test]
fn pr_15_a_record_is_made_signalled_and_told() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let first = record(&env, &worker, "first", &Value::Null, "provisional");
    assert_eq!(
        kinds(&env, &worker.id),
        [
            "workspace_created",
            "workspace_state_changed",
            "checkpoint_created",
            "signal_emitted"
        ]
    );
    assert_eq!(
        kinds(&env, &root.id),
        [
            "workspace_created",
            "workspace_state_changed",
            "signal_delivered"
        ]
    );
    let told = env.json(&["workspace", "signals", &root.id]);
    assert_eq!(told["signals"][0]["ref"], first);
    assert_eq!(told["signals"][0]["from"], json!(worker.id));
    let trail = env.run(&["trail", "export", "--format", "jsonl"]).stdout;
    assert!(!trail.contains("SECRET-PAYLOAD"), "{trail}");
}

#[test]
fn pr_12_a_rejection_is_exit_2_with_its_reason_and_one_entry() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let before = kinds(&env, &worker.id).len();
    let observed = {
        let mut body = body("seen", &Value::Null, "final");
        body["type"] = json!("observation");
        body
    };
    for (asked, reason) in [
        (json!({"type": "artifact"}), "invalid_structure"),
        (observed, "permission_denied"),
        (body("again", &json!("rec_1"), "final"), "invalid_parent"),
    ] {
        let (code, reply) = ask(&env, &worker, &asked);
        assert_eq!((code, &reply["rejected"]["reason"]), (2, &json!(reason)));
        assert_ne!(reply["rejected"]["detail"], json!(""));
    }
    assert_eq!(
        kinds(&env, &worker.id)[before..],
        ["checkpoint_rejected"; 3].map(str::to_owned)
    );
    assert_eq!(
        env.json(&["workspace", "head", &worker.id])["checkpoint"],
        json!(null)
    );
}

#[test]
fn pr_05_a_wrong_token_is_an_identity_error_and_no_checkpoint_event() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let other = below(&env, &root, "worker");
    let before = kinds(&env, &worker.id).len();
    for token in [&other.token, &root.token, "", "wst_0", &worker.id] {
        let thief = Agent {
            id: worker.id.clone(),
            token: token.to_owned(),
        };
        let (code, reply) = ask(&env, &thief, &body("mine", &Value::Null, "final"));
        assert_eq!(
            (code, &reply["error"]["name"]),
            (6, &json!("AUTHENTICATION_FAILED")),
            "{reply}"
        );
    }
    assert_eq!(
        kinds(&env, &worker.id)[before..],
        ["authentication_failed"; 5].map(str::to_owned)
    );
}

#[test]
fn pr_05_a_migration_fences_the_old_token() {
    let env = env();
    let root = root(&env);
    let old = below(&env, &root, "worker");
    let moved = env.json(&["workspace", "migrate", &old.id]);
    assert_eq!(moved["workspace_id"], json!(old.id));
    let new = Agent {
        id: old.id.clone(),
        token: text(&moved["token"]),
    };
    assert_eq!(ask(&env, &old, &body("old", &Value::Null, "final")).0, 6);
    assert_eq!(ask(&env, &new, &body("new", &Value::Null, "final")).0, 0);
}

#[test]
fn pr_05_a_token_comes_from_a_file_or_the_environment() {
    let mut env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    env.write("project/token", &format!("{}\n", worker.token));
    env.write(
        "project/body",
        &body("one", &Value::Null, "final").to_string(),
    );
    let asked = ["workspace", "checkpoint", &worker.id, "--body"];
    let none = env.run(&[&asked[..], &["@body"]].concat());
    assert_eq!(none.code, 7, "{none:?}");
    assert!(none.stderr.contains("SAFEPOINT_TOKEN"), "{none:?}");
    let from_file = run(
        &env,
        &[&asked[..], &["@body", "--token", "@token"]].concat(),
    );
    assert_eq!(from_file.0, 0, "{from_file:?}");
    env.set("SAFEPOINT_TOKEN", &worker.token);
    let next = body("two", &from_file.1["checkpoint"]["id"], "final").to_string();
    let from_input = env.run_with(&[&["--json"], &asked[..], &["-"]].concat(), next.as_bytes());
    assert_eq!(from_input.code, 0, "{from_input:?}");
    assert_eq!(parsed(&from_input)["checkpoint"]["intent"], "two");
}

#[test]
fn pr_17_the_same_key_and_body_give_the_first_result() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let asked = body("once", &Value::Null, "provisional").to_string();
    let arguments = [
        "workspace",
        "checkpoint",
        &worker.id,
        "--token",
        &worker.token,
        "--request-key",
        "k1",
        "--body",
        &asked,
    ];
    let (first, entries) = (run(&env, &arguments), kinds(&env, &worker.id).len());
    assert_eq!(first.0, 0);
    assert_eq!(run(&env, &arguments), first);
    assert_eq!(kinds(&env, &worker.id).len(), entries);
}

#[test]
fn pr_03_a_taxonomy_is_shown_with_its_line_where_it_is_wrong() {
    let env = env();
    env.write(
        "project/bad.yaml",
        &TAXONOMY.replace("extends: worker", "extends: coordinator"),
    );
    let create = ["workspace", "create", "--role", "coordinator", "--taxonomy"];
    assert_snapshot!(env.snapshot(&[&create[..], &["bad.yaml"]].concat()), @r"
    exit 7
    ----- stderr
    error: `bad.yaml` is not a taxonomy that can be used: no role extends the coordinator; extend `worker` or `observer`
     --> bad.yaml:6:14
      |
    6 |     extends: coordinator
      |              ^
    hint: nothing was made; docs/workspaces.md tells what a taxonomy looks like
    ");
    let (code, reply) = run(&env, &[&create[..], &["bad.yaml"]].concat());
    assert_eq!(code, 7);
    assert_eq!(reply["error"]["location"], "bad.yaml:6:14");
    assert_eq!(reply["problems"][0]["line"], 6);
    assert_eq!(
        env.json(&["workspace", "list"]),
        json!({"workspaces": []}),
        "nothing was made"
    );
    assert_eq!(run(&env, &[&create[..], &["none.yaml"]].concat()).0, 8);
}

#[test]
fn pr_02_a_role_of_the_taxonomy_creates_its_own_type() {
    let env = env();
    env.write("project/taxonomy.yaml", TAXONOMY);
    let root = create(
        &env,
        &["--role", "coordinator", "--taxonomy", "taxonomy.yaml"],
    );
    let reviewer = below(&env, &root, "reviewer");
    let mut review = body("looked", &Value::Null, "final");
    assert_eq!(
        ask(&env, &reviewer, &review).1["rejected"]["reason"],
        "permission_denied"
    );
    review["type"] = json!("review");
    assert_eq!(
        ask(&env, &reviewer, &review).1["rejected"]["reason"],
        "invalid_structure"
    );
    review["payload"]["verdict"] = json!("good");
    let (code, made) = ask(&env, &reviewer, &review);
    assert_eq!(
        (code, &made["checkpoint"]["payload"]["verdict"]),
        (0, &json!("good"))
    );
    let strange = ["--parent", &root.id, "--role", "pilot"];
    assert_eq!(
        run(&env, &[&["workspace", "create"], &strange[..]].concat()).0,
        8
    );
}

#[test]
fn pr_01_a_run_begins_with_its_coordinator_and_illegal_moves_are_conflicts() {
    let env = env();
    let (code, reply) = run(&env, &["workspace", "create", "--role", "worker"]);
    assert_eq!(code, 7, "{reply}");
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let (code, reply) = run(&env, &["workspace", "state", &worker.id, "closed"]);
    assert_eq!(
        (code, &reply["error"]["name"]),
        (9, &json!("WORKSPACE_STATE"))
    );
    let last = kinds(&env, &worker.id).pop();
    assert_eq!(last.as_deref(), Some("workspace_state_refused"));
    let paused = env.json(&[
        "workspace",
        "state",
        &worker.id,
        "suspended",
        "--reason",
        "lunch",
    ]);
    assert_eq!(
        (&paused["state"], &paused["former"]),
        (&json!("suspended"), &json!("active"))
    );
    assert_eq!(run(&env, &["workspace", "state", &worker.id, "done"]).0, 7);
    assert_eq!(
        run(&env, &["workspace", "show", "wsp_"]).0,
        7,
        "two begin so"
    );
    assert_eq!(run(&env, &["workspace", "show", "wsp_zzzz"]).0, 8);
}

#[test]
fn pr_19_confidence_is_found_across_workspaces_and_stops_nothing() {
    let env = env();
    let root = root(&env);
    let (sure, unsure) = (below(&env, &root, "worker"), below(&env, &root, "worker"));
    record(&env, &sure, "sure", &Value::Null, "final");
    let mut low = body("unsure", &Value::Null, "final");
    low["confidence"] = json!("low");
    assert_eq!(ask(&env, &unsure, &low).0, 0);
    let found = env.json(&["workspace", "list", "--confidence", "low"]);
    let found = found["workspaces"].as_array().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["workspace_id"], json!(unsure.id));
    assert_eq!(
        found[0]["head"],
        env.json(&["workspace", "head", &unsure.id])["checkpoint"]["id"]
    );
    let all = env.json(&["workspace", "list", "--state", "active"]);
    assert_eq!(all["workspaces"].as_array().unwrap().len(), 3);
    assert_eq!(kinds(&env, &sure.id), kinds(&env, &unsure.id), "both alike");
}

#[test]
fn pr_04_an_agent_tells_its_parent_and_moves_with_it() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let (code, reply) = signal(&env, &worker, &["blocked"]);
    assert_eq!(code, 7, "without a reason: {reply}");
    let (code, reply) = signal(&env, &worker, &["blocked", "--reason", "no key"]);
    assert_eq!((code, &reply["state"]), (0, &json!("blocked")), "{reply}");
    assert_eq!(reply["signal"]["delivered_to"], json!(root.id));
    assert!(reply["signal"]["delivered_at"].is_string(), "{reply}");
    assert_eq!(signal(&env, &worker, &["integrate"]).0, 2, "not its own");
    assert_eq!(
        signal(&env, &worker, &["progress"]).0,
        7,
        "the set is closed"
    );
    let thief = Agent {
        token: root.token.clone(),
        ..worker
    };
    assert_eq!(signal(&env, &thief, &["started"]).0, 6);
}

#[test]
fn pr_20_whoever_reports_hears_that_a_limit_is_near_and_then_passed() {
    let env = env();
    let root = root(&env);
    let place = ["--parent", &root.id, "--role", "worker"];
    let limits = ["--directive", "work", "--budget-tokens", "100"];
    let worker = create(&env, &[&place[..], &limits].concat());
    let meter = ["workspace", "meter", &worker.id, "--tokens"];
    let near = env.json(&[&meter[..], &["90"]].concat());
    let strain = &near["meter"]["strained"][0];
    assert_eq!(
        (&strain["dimension"], &strain["is_exceeded"], &near["state"]),
        (&json!("tokens_consumed"), &json!(false), &json!("active"))
    );
    let passed = env.run(&[&meter[..], &["50"]].concat());
    assert!(
        passed.stdout.contains("failed: budget_exceeded"),
        "{passed:?}"
    );
    assert!(
        passed
            .stdout
            .contains("tokens_consumed: 140 of 100, passed"),
        "{passed:?}"
    );
    let shown = env.run(&["workspace", "show", &worker.id]).stdout;
    assert!(shown.contains("failed: budget_exceeded"), "{shown}");
    assert!(shown.contains("100 tokens"), "{shown}");
    let listed = env.run(&["workspace", "list"]).stdout;
    assert!(listed.contains("failed (budget_exceeded)"), "{listed}");
    let much = [&meter[..3], &["--cost", "1e308"]].concat();
    assert_eq!(run(&env, &much).0, 7);
}

#[test]
fn pr_31_completing_without_a_final_checkpoint_is_said_to_lead_nowhere() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    record(&env, &worker, "first", &Value::Null, "provisional");
    let complete = ["workspace", "signal", &worker.id, "complete", "--token"];
    let said = env.run(&[&complete[..], &[&worker.token]].concat());
    assert!(
        said.stderr.contains("without a final checkpoint"),
        "{said:?}"
    );
}

#[test]
fn pr_04_what_arrives_is_printed_as_it_arrives() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    signal(&env, &worker, &["ready"]);
    let once = env.run(&["workspace", "watch", "--once", "--output", "ndjson"]);
    let first: Value = serde_json::from_str(once.stdout.trim()).unwrap();
    assert_eq!(
        (&first["type"], &first["from"]),
        (&json!("ready"), &json!(worker.id))
    );
    let all = env.json(&["workspace", "watch", "--once"]);
    assert_eq!(all["signals"], json!([first]));
    // Only what comes later is told to whoever says where they were.
    let after = text(&first["delivered_at"]);
    let rest = ["--from", after.as_str(), "--output", "ndjson"];
    let then = env.run(&[&["workspace", "watch", "--once"], &rest[..]].concat());
    assert_eq!((then.code, then.stdout.as_str()), (0, ""));
    let mut child = env
        .command(&[&["workspace", "watch", &root.id], &rest[..]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let made = record(&env, &worker, "first", &Value::Null, "final");
    let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&line["type"], &line["ref"]), (&json!("checkpoint"), &made));
    let process = interrupt(child.id());
    assert!(process, "it is still listening");
    assert_eq!(child.wait().unwrap().code(), Some(3), "interrupted");
}

/// Interrupts a process of ours.
fn interrupt(process: u32) -> bool {
    let status = std::process::Command::new("kill")
        .args(["-INT", &process.to_string()])
        .status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn pr_42_a_chain_is_read_drawn_and_verified_also_after_the_end() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let one = record(&env, &worker, "try", &Value::Null, "provisional");
    let two = record(&env, &worker, "deliver", &one, "final");
    let three = record(&env, &worker, "polish \u{1b}[31m", &two, "provisional");
    env.json(&["workspace", "state", &worker.id, "failed"]);
    let head = env.json(&["workspace", "head", &worker.id]);
    let newest_final = env.json(&["workspace", "final", &worker.id]);
    assert_eq!(
        (&head["checkpoint"]["id"], &newest_final["checkpoint"]["id"]),
        (&three, &two)
    );
    let log = env.json(&["workspace", "log", &worker.id]);
    let ids: Vec<&Value> = log["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, [&one, &two, &three]);
    assert_eq!(
        env.json(&["workspace", "verify", &worker.id])["valid"],
        true
    );
    assert_snapshot!(plain(&env.snapshot(&["workspace", "log", &worker.id, "--graph"])), @r"
    exit 0
    ----- stdout
    rec_[id] (provisional, confidence: medium)  [time]
      try
      └── rec_[id] (final, confidence: medium)  [time]
            deliver
            └── rec_[id] (provisional, confidence: medium)  [time]
                  polish \u{1b}[31m
    ");
    assert_snapshot!(plain(&env.snapshot(&["workspace", "log", &root.id, "--graph"])), @r"
    exit 0
    ----- stdout
    wsp_[id]  coordinator  active  lead
    └── wsp_[id]  worker  failed  3 checkpoints, provisional at medium confidence  work
            rec_[id] (provisional, confidence: medium)  [time]
              try
              └── rec_[id] (final, confidence: medium)  [time]
                    deliver
                    └── rec_[id] (provisional, confidence: medium)  [time]
                          polish \u{1b}[31m
    ");
    assert_snapshot!(plain(&env.snapshot(&["workspace", "log", &worker.id])), @r"
    exit 0
    ----- stdout
    rec_[id]  [time]  provisional  medium  try
    rec_[id]  [time]  final        medium  deliver
    rec_[id]  [time]  provisional  medium  polish \u{1b}[31m
    ");
    assert_snapshot!(plain(&env.snapshot(&["workspace", "list"])), @r"
    exit 0
    ----- stdout
    wsp_[id]  coordinator  active  lead
    └── wsp_[id]  worker  failed  3 checkpoints, provisional at medium confidence  work
    ");
    assert_snapshot!(plain(&env.snapshot(&["workspace", "show", &worker.id])), @r"
    exit 0
    ----- stdout
    workspace   wsp_[id]
    role        worker
    state       failed
    made        [time]
    below       wsp_[id]
    chain       3 checkpoints, provisional at medium confidence
    head        rec_[id]
    final       rec_[id]

      work
    ");
    assert_snapshot!(plain(&env.snapshot(&["workspace", "head", &worker.id])), @r"
    exit 0
    ----- stdout
    checkpoint  rec_[id]
    intent      polish \u{1b}[31m
    type        artifact
    status      provisional, medium confidence
    parent      rec_[id]
    made        [time]
    in          wsp_[id]
    file        src/a.rs

      SECRET-PAYLOAD
    ");
    let run = env.json(&["workspace", "log", &root.id]);
    assert_eq!(run["workspaces"][1]["checkpoints"], log["checkpoints"]);
}

#[test]
fn pr_42_a_long_chain_stays_on_the_page() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let mut parent = Value::Null;
    for number in 0..12 {
        parent = record(&env, &worker, &number.to_string(), &parent, "provisional");
    }
    let drawn = env.run(&["workspace", "log", &worker.id, "--graph"]).stdout;
    assert_eq!(drawn.matches("rec_").count(), 12);
    assert!(
        drawn.lines().all(|line| line.chars().count() < 140),
        "{drawn}"
    );
}

#[test]
fn pr_42_a_chain_is_exported_as_statements_that_name_no_content() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let one = record(&env, &worker, "try", &Value::Null, "provisional");
    let two = record(&env, &worker, "deliver", &one, "final");
    let export = ["workspace", "export", &worker.id, "--format", "intoto"];
    let written = env.run(&[&export[..], &["--out", "chain.jsonl"]].concat());
    assert_eq!(
        (written.code, written.stdout.as_str()),
        (0, ""),
        "{written:?}"
    );
    let lines = std::fs::read_to_string(env.project().join("chain.jsonl")).unwrap();
    assert_eq!(lines, env.run(&export).stdout);
    assert!(!lines.contains("SECRET-PAYLOAD"), "{lines}");
    let statements: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = &statements[1];
    assert_eq!(last["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(last["subject"][0]["name"], two);
    assert_eq!(last["predicate"]["parent"]["name"], one);
    assert_eq!(
        last["predicate"]["parent"]["digest"],
        statements[0]["subject"][0]["digest"]
    );
    assert_eq!(last["predicate"]["workspace"]["id"], json!(worker.id));
    // A stranger can take the digest of what `head` prints, and find it.
    let head = env.json(&["workspace", "head", &worker.id])["checkpoint"].clone();
    let bytes = safepoint_model::json::canonical(&head).unwrap();
    assert_eq!(last["subject"][0]["digest"]["sha256"], sha256(&bytes));
    // The proof is the one that stands in the trail.
    let made = env.json(&["trail", "list", "--kind", "checkpoint_created"]);
    assert_eq!(
        last["predicate"]["proof"]["value"],
        made["entries"][1]["body"]["integrity"]["proof"]
    );
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn pr_42_signed_statements_are_envelopes_under_the_key_of_the_trail() {
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD;
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    record(&env, &worker, "deliver", &Value::Null, "final");
    let export = ["workspace", "export", &worker.id, "--format", "intoto"];
    let bare = env.run(&export).stdout;
    let signed = env.run(&[&export[..], &["--signed"]].concat()).stdout;
    let envelope: Value = serde_json::from_str(signed.trim()).unwrap();
    let payload = base64.decode(text(&envelope["payload"])).unwrap();
    assert_eq!(payload, bare.trim().as_bytes());
    let key = text(&env.json(&["trail", "head"])["key"]);
    let hint = text(&envelope["signatures"][0]["keyid"]);
    assert!(key.starts_with(&format!("{hint}+")), "{hint}");
    // Checked with nothing but the key, as the specification has it.
    let kind = text(&envelope["payloadType"]);
    let signed_text = format!(
        "DSSEv1 {} {kind} {} {}",
        kind.len(),
        payload.len(),
        bare.trim()
    );
    let public: safepoint_trail::note::PublicKey = key.parse().unwrap();
    let key = ed25519_dalek::VerifyingKey::from_bytes(public.ed25519()).unwrap();
    let signature = base64
        .decode(text(&envelope["signatures"][0]["sig"]))
        .unwrap();
    let signature = ed25519_dalek::Signature::from_slice(&signature).unwrap();
    assert!(
        key.verify_strict(signed_text.as_bytes(), &signature)
            .is_ok()
    );
    assert!(
        key.verify_strict(bare.trim().as_bytes(), &signature)
            .is_err()
    );
}

#[test]
fn pr_13_a_changed_row_is_named_by_verify() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    let one = record(&env, &worker, "try", &Value::Null, "provisional");
    let two = record(&env, &worker, "deliver", &one, "final");
    let database = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    let forged = "DROP TRIGGER progress_records_no_update;
        UPDATE progress_records SET body = CAST(replace(CAST(body AS TEXT), 'deliver', 'pretend') AS BLOB) WHERE number = 2";
    database.execute_batch(forged).unwrap();
    let (code, reply) = run(&env, &["workspace", "verify", &worker.id]);
    assert_eq!((code, &reply["valid"]), (1, &json!(false)), "{reply}");
    assert_eq!(
        (&reply["first_bad"]["number"], &reply["first_bad"]["id"]),
        (&json!(2), &two)
    );
    assert_eq!(reply["checked"], 1);
    assert_eq!(
        run(&env, &["workspace", "head", &worker.id]).0,
        1,
        "it is not shown as if it were good"
    );
    assert_snapshot!(plain(&env.snapshot(&["workspace", "verify", &worker.id])), @r"
    exit 1
    ----- stdout
    bad   checkpoint 2 (rec_[id]): it is not what its proof was made over
          before it: 1 checkpoint, as written
    ");
}

#[test]
fn pr_05_an_agent_directs_no_workspaces() {
    let mut env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    env.set("SAFEPOINT_AGENT", "claude-code");
    for directed in [
        &["workspace", "create", "--role", "coordinator"][..],
        &["workspace", "migrate", &worker.id],
        &["workspace", "state", &worker.id, "failed"],
    ] {
        assert_eq!(run(&env, directed).0, 6, "{directed:?}");
    }
    assert_eq!(run(&env, &["workspace", "show", &worker.id]).0, 0);
    assert_eq!(
        ask(&env, &worker, &body("mine", &Value::Null, "final")).0,
        0
    );
}

#[test]
fn tr_08_work_records_and_file_checkpoints_are_told_apart() {
    let env = env();
    let root = root(&env);
    let worker = below(&env, &root, "worker");
    // The same body in YAML.
    let body = body("one", &Value::Null, "final");
    env.write("project/body.yaml", &safepoint_model::yaml::write(&body));
    let (code, made) = run(
        &env,
        &[
            "workspace",
            "checkpoint",
            &worker.id,
            "--token",
            &worker.token,
            "--body",
            "@body.yaml",
        ],
    );
    assert_eq!(code, 0, "{made}");
    env.json(&["checkpoint"]);
    let listed = |more: &[&str]| {
        let kind = ["trail", "list", "--kind", "checkpoint_created"];
        let found = env.json(&[&kind[..], more].concat());
        let entries = found["entries"].as_array().unwrap().clone();
        let subjects = entries.iter().map(|it| it["body"]["subject"].clone());
        subjects.collect::<Vec<Value>>()
    };
    assert_eq!(listed(&[]), ["record", "state"]);
    assert_eq!(listed(&["--subject", "record"]), ["record"]);
    assert_eq!(listed(&["--subject", "state"]), ["state"]);
}
