//! Agents on other machines: their store is a server, which judges and keeps the record, and
//! their files stay where they are.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/client.rs"]
mod client;
#[path = "support/http.rs"]
mod http;
#[path = "support/passage.rs"]
mod passage;
#[path = "support/proxy.rs"]
mod proxy;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use client::Claude;
use http::{Server, token};
use passage::{
    OPEN, approve, assert_sound, bare, denied, entries, exec, exec_with, held, project, run, runs,
    text,
};
use proxy::Proxy;
use serde_json::Value;
use testkit::TestEnv;

/// A machine with a file `a`, whose store is a server.
fn machine(address: &str, token: &str) -> TestEnv {
    let mut env = bare();
    env.write("project/a", "content of a\n");
    env.write("home/config/server-token", token);
    env.set("SAFEPOINT_STORE", &format!("http://{address}"));
    env
}

/// A server under this atlas, and a machine with an agent's token for it.
fn team(atlas: &str) -> (TestEnv, Server, TestEnv) {
    let office = project(atlas);
    let token = token(&office, "laptop", &["--role", "agent"]);
    let server = Server::start(&office, &[]);
    let desk = machine(&server.address, &token);
    (office, server, desk)
}

/// The entries of one action in the record of the server.
fn told(office: &TestEnv, kind: &str, action: &str) -> Vec<Value> {
    let mut found = entries(office, kind);
    found.retain(|entry| entry["action_id"] == action);
    found
}

#[test]
fn su_09_an_agent_elsewhere_is_judged_here_and_acts_there() {
    let (office, server, desk) = team(OPEN);
    let done = runs(&desk, &["touch", "b"]);
    let action = text(&done["action_id"]);
    assert!(desk.project().join("b").exists());
    assert!(!office.project().join("b").exists());
    let [intended] = told(&office, "action_intended", &action)
        .try_into()
        .unwrap();
    assert_eq!(intended["body"]["machine"], "@laptop");
    assert_eq!(intended["body"]["checkpoint_id"], done["checkpoint_id"]);
    assert_eq!(intended["stream"], done["session_id"]);
    assert_eq!(text(&intended["body"]["checkpoint_hash"]).len(), 64);
    let [ended] = told(&office, "action_ended", &action).try_into().unwrap();
    assert_eq!(ended["body"]["outcome"], "ok");
    assert_eq!(ended["body"]["changes"][0]["path"], "b");
    // The way back is on the machine, under the same name.
    let log = desk.json(&["log"]);
    assert_eq!(log["actions"][0]["action_id"], action.as_str());
    assert_eq!(log["actions"][0]["session_id"], done["session_id"]);
    desk.json(&["undo", &action]);
    assert!(!desk.project().join("b").exists());
    assert!(desk.project().join("a").exists());
    drop(server);
    assert_sound(&office);
}

#[test]
fn su_09_what_the_server_denies_does_not_run() {
    let (office, _server, desk) = team(passage::HELD);
    denied(&desk, &["rm", "a"], "POLICY_DENIED");
    assert!(desk.project().join("a").exists());
    let (code, said) = exec_with(&desk, &["--dry-run"], &["rm", "a"]);
    assert_eq!((code, &said["would_run"]), (4, &Value::Bool(false)));
    let (code, said) = exec_with(&desk, &["--dry-run"], &["cat", "a"]);
    assert_eq!(
        (code, &said["would_run"]),
        (0, &Value::Bool(true)),
        "{said:#}"
    );
    assert_eq!(entries(&office, "action_intended").len(), 0);
}

#[test]
fn su_09_an_operator_at_the_server_lets_it_run_once() {
    let (office, _server, desk) = team(passage::HELD);
    let words = ["cp", "a", "b"];
    let first = denied(&desk, &words, "APPROVAL_REQUIRED");
    let hold = text(&first["hold_id"]);
    assert!(!desk.project().join("b").exists());
    let permit = text(&approve(&office, &hold)["permit"]["permit_id"]);
    let done = runs(&desk, &words);
    assert_eq!(done["decision"], "approved");
    assert_eq!(done["action_id"], first["action_id"]);
    let (state, outcome) = passage::permit_state(&office, &permit);
    assert_eq!(
        (state.as_str(), outcome.as_deref()),
        ("consumed", Some("ok"))
    );
    // A yes is good once.
    let second = denied(&desk, &words, "APPROVAL_REQUIRED");
    assert_ne!(second["hold_id"], first["hold_id"]);
}

#[test]
fn su_09_what_changed_after_the_yes_is_asked_anew() {
    let (office, _server, desk) = team(passage::HELD);
    let words = ["cp", "a", "b"];
    let hold = text(&denied(&desk, &words, "APPROVAL_REQUIRED")["hold_id"]);
    approve(&office, &hold);
    desk.write("project/a", "something else\n");
    let (code, said) = exec(&desk, &words);
    assert_eq!(code, 2, "{said:#}");
    assert!(!desk.project().join("b").exists());
}

#[test]
fn su_09_hooks_of_a_client_elsewhere_ask_the_server() {
    let (office, _server, desk) = team(OPEN);
    let claude = Claude::new(&desk);
    client::passes(&claude.says("SessionStart", serde_json::json!({"source": "startup"})));
    claude.writes("1", "b", "written\n");
    claude.does("2", "cp b c");
    client::passes(&claude.says("UserPromptSubmit", serde_json::json!({"prompt": "go on"})));
    client::denied(&claude.asks("3", "cat ../home/config/server-token"));
    client::passes(&claude.says("SessionEnd", serde_json::json!({"reason": "exit"})));
    let ended = entries(&office, "action_ended");
    let outcomes: Vec<&Value> = ended.iter().map(|it| &it["body"]["outcome"]).collect();
    assert_eq!(outcomes, ["ok", "ok"], "{ended:#?}");
    assert!(desk.project().join("c").exists());
    let log = desk.json(&["log"]);
    for entry in &ended {
        let known = |action: &Value| action["action_id"] == entry["action_id"];
        assert!(log["actions"].as_array().unwrap().iter().any(known));
    }
}

#[test]
fn su_09_without_the_server_nothing_runs() {
    let (_office, server, desk) = team(OPEN);
    runs(&desk, &["touch", "b"]);
    server.kill();
    let (code, said) = exec(&desk, &["touch", "c"]);
    assert_eq!(
        (code, &said["error"]["code"]),
        (5, &Value::from("S501")),
        "{said:#}"
    );
    assert!(!desk.project().join("c").exists());
    let told = client::denied(&Claude::new(&desk).asks("1", "touch c"));
    assert!(told.contains("server"), "{told}");
    // What is about this machine alone works.
    assert_eq!(desk.json(&["log"])["actions"][0]["decision"], "allow");
    desk.json(&["undo"]);
    assert!(!desk.project().join("b").exists());
}

#[test]
fn su_09_an_outcome_that_cannot_be_told_goes_first_with_the_next_command() {
    let office = project(OPEN);
    let token = token(&office, "laptop", &["--role", "agent"]);
    let server = Server::start(&office, &[]);
    let address = server.address.clone();
    let desk = machine(&address, &token);
    let pipe = desk.project().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let child = passage::exec_command(&desk, &[], &["cat", "pipe"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It is opened only once the command runs: it has leave.
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    server.kill();
    writer.write_all(b"through the pipe").unwrap();
    drop(writer);
    let output = child.wait_with_output().unwrap();
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(done["stdout"], "through the pipe", "{done:#}");
    let action = text(&done["action_id"]);
    assert_eq!(told(&office, "action_intended", &action).len(), 1);
    assert_eq!(told(&office, "action_ended", &action).len(), 0);
    fs::remove_file(&pipe).unwrap();
    let _server = Server::start_at(&office, &address, &[]);
    let next = runs(&desk, &["cat", "a"]);
    let [ended] = told(&office, "action_ended", &action).try_into().unwrap();
    assert_eq!(ended["body"]["outcome"], "ok");
    let [begun] = told(&office, "action_intended", &text(&next["action_id"]))
        .try_into()
        .unwrap();
    assert!(ended["seq"].as_u64() < begun["seq"].as_u64());
    // It is told once.
    runs(&desk, &["cat", "a"]);
    assert_eq!(told(&office, "action_ended", &action).len(), 1);
}

#[test]
fn su_09_what_was_let_through_and_cut_off_before_it_ran_is_told() {
    let (office, _server, desk) = team(OPEN);
    for fault in safepoint_control::pass::FAR_POINTS {
        let before = entries(&office, "action_ended").len();
        let output = passage::exec_command(&desk, &[], &["touch", "b"])
            .env("SAFEPOINT_FAULT", fault)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), None, "{fault}: {output:?}");
        assert!(!desk.project().join("b").exists());
        assert_eq!(entries(&office, "action_ended").len(), before);
        runs(&desk, &["cat", "a"]);
        let ended = entries(&office, "action_ended");
        assert_eq!(ended.len(), before + 2, "{ended:#?}");
        assert_eq!(ended[before]["body"]["outcome"], "not_run", "{ended:#?}");
    }
}

#[test]
fn su_09_a_machine_that_is_cut_off_leaves_no_action_open() {
    let (office, _server, desk) = team(OPEN);
    for fault in [
        "pass.secured",
        "pass.settled",
        "pass.intended",
        "pass.ran",
        "pass.concluded",
    ] {
        let output = passage::exec_command(&desk, &[], &["touch", "b"])
            .env("SAFEPOINT_FAULT", fault)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), None, "{fault}: {output:?}");
        runs(&desk, &["cat", "a"]);
        let begun = entries(&office, "action_intended").len();
        assert_eq!(entries(&office, "action_ended").len(), begun, "{fault}");
    }
    let ended = entries(&office, "action_ended");
    let unknown = ended.iter().filter(|it| it["body"]["outcome"] == "unknown");
    assert!(unknown.count() >= 3, "{ended:#?}");
    assert_sound(&office);
}

#[test]
fn su_09_a_session_of_another_token_is_not_there() {
    let (office, server, desk) = team(OPEN);
    let mine = text(&runs(&desk, &["cat", "a"])["session_id"]);
    let other = token(&office, "other", &["--role", "agent"]);
    let elsewhere = machine(&server.address, &other);
    let before = entries(&office, "action_intended").len();
    let (code, said) = exec_with(&elsewhere, &["--session", &mine], &["touch", "b"]);
    assert_eq!(code, 8, "{said:#}");
    assert!(!elsewhere.project().join("b").exists());
    assert_eq!(entries(&office, "action_intended").len(), before);
    // Nor does a token that is nobody's, or not an agent's, let anything run.
    let auditor = token(&office, "reader", &["--role", "auditor"]);
    for bad in ["safepoint_nothing", &auditor] {
        let stranger = machine(&server.address, bad);
        let (code, said) = exec(&stranger, &["touch", "b"]);
        assert_eq!(code, 6, "{said:#}");
        assert!(!said.to_string().contains(bad), "{said:#}");
        assert!(!stranger.project().join("b").exists());
    }
}

#[test]
fn su_09_the_same_path_on_two_machines_is_two_places() {
    let (office, server, desk) = team(OPEN);
    let other = token(&office, "other", &["--role", "agent"]);
    let elsewhere = machine(&server.address, &other);
    let one = text(&runs(&desk, &["cat", "a"])["session_id"]);
    let two = text(&runs(&elsewhere, &["cat", "a"])["session_id"]);
    assert_ne!(one, two);
    assert_eq!(text(&runs(&desk, &["cat", "a"])["session_id"]), one);
}

#[test]
fn su_09_rules_of_a_project_that_the_server_does_not_know_let_nothing_run() {
    let (office, _server, desk) = team(OPEN);
    desk.write("project/atlas.yaml", passage::HELD);
    desk.write("project/safepoint.yaml", "atlases: [atlas.yaml]\n");
    let (code, said) = exec(&desk, &["touch", "b"]);
    assert_eq!(
        (code, &said["error"]["code"]),
        (2, &Value::from("F504")),
        "{said:#}"
    );
    assert!(!desk.project().join("b").exists());
    // Those that it knows are fine.
    desk.write("project/atlas.yaml", OPEN);
    runs(&desk, &["touch", "b"]);
    assert_eq!(entries(&office, "action_intended").len(), 1);
}

#[test]
fn su_09_an_answer_for_something_else_lets_nothing_run() {
    let (office, server, mut desk) = team(OPEN);
    let change = |body: &str| {
        let (before, rest) = body.split_once(r#""fingerprint":""#)?;
        let other = if rest.starts_with('0') { '1' } else { '0' };
        let rest = rest.get(1..)?;
        Some(format!(r#"{before}"fingerprint":"{other}{rest}"#))
    };
    let between = Proxy::start(&server.address, "POST /v1/actions ", change);
    desk.set("SAFEPOINT_STORE", &format!("http://{}", between.address));
    let (code, said) = exec(&desk, &["touch", "b"]);
    assert_eq!(
        (code, &said["error"]["code"]),
        (5, &Value::from("S512")),
        "{said:#}"
    );
    assert!(!desk.project().join("b").exists());
    // What was let through there and not run here is told, with the next command.
    between.let_through();
    runs(&desk, &["touch", "c"]);
    let ended = entries(&office, "action_ended");
    assert_eq!(ended[0]["body"]["outcome"], "not_run", "{ended:#?}");
    assert_eq!(ended.len(), 2);
}

#[test]
fn su_09_no_redirect_is_followed_and_no_nonsense_believed() {
    let (office, server, mut desk) = team(OPEN);
    let nonsense = Proxy::start(&server.address, "POST /v1/actions ", |_| {
        Some(r#"{"leave": {"decision": "allow"}}"#.to_owned())
    });
    desk.set("SAFEPOINT_STORE", &format!("http://{}", nonsense.address));
    let (code, _) = exec(&desk, &["touch", "b"]);
    assert_eq!(code, 5);
    let (code, said) = run(&desk, &["exec", "--no-tui", "--", "touch", "b"]);
    assert_eq!(code, 5, "{said:#}");
    let elsewhere = proxy::redirecting(&server.address);
    desk.set("SAFEPOINT_STORE", &format!("http://{elsewhere}"));
    let (code, said) = exec(&desk, &["touch", "b"]);
    assert_eq!(code, 5, "{said:#}");
    assert!(said.to_string().contains("redirect"), "{said:#}");
    assert!(!desk.project().join("b").exists());
    // A server that does not speak TLS is not talked to without it.
    desk.set("SAFEPOINT_STORE", &format!("https://{}", server.address));
    let (code, said) = exec(&desk, &["touch", "b"]);
    assert_eq!(code, 5, "{said:#}");
    desk.set("SAFEPOINT_STORE", "http://192.0.2.1:1");
    let (code, said) = exec(&desk, &["touch", "b"]);
    assert_eq!(code, 7, "{said:#}");
    drop(office);
}

#[test]
fn su_09_a_certificate_is_good_only_where_its_issuer_is_named() {
    let office = project(OPEN);
    let token = token(&office, "laptop", &["--role", "agent"]);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = office.write("tls/cert.pem", &made.cert.pem());
    let key = office.write("tls/key.pem", &made.signing_key.serialize_pem());
    let flags = [
        "--tls-cert",
        certificate.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ];
    let server = Server::start(&office, &flags);
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let mut desk = machine(&server.address, &token);
    desk.set("SAFEPOINT_STORE", &format!("https://localhost:{port}"));
    let (code, said) = exec(&desk, &["touch", "b"]);
    assert_eq!(code, 5, "{said:#}");
    assert!(!desk.project().join("b").exists());
    desk.set("SAFEPOINT_SERVER_CA", certificate.to_str().unwrap());
    runs(&desk, &["touch", "b"]);
}

#[test]
fn su_07_forwarded_commands_print_and_end_as_they_do_at_the_server() {
    let office = held();
    let made = runs(&office, &["cat", "a"]);
    denied(&office, &["cp", "a", "b"], "APPROVAL_REQUIRED");
    let session = text(&made["session_id"]);
    let auditor = token(&office, "reader", &["--role", "auditor"]);
    let server = Server::start(&office, &[]);
    let desk = machine(&server.address, &auditor);
    let hold = text(&passage::waiting(&office)[0]["hold_id"]);
    for words in [
        &["hold", "list"][..],
        &["hold", "show", &hold],
        &["hold", "show", "hld_nothing"],
        &["permit", "list"],
        &["trust", "list"],
        &["operator", "list"],
        &["session", "show", &session],
        &["session", "show", "ses_nothing"],
        &["trail", "list", "--kind", "action_intended"],
        &["trail", "list", "--session", &session, "--limit", "2"],
        &["trail", "list", "--from", "3", "--limit", "2"],
        &["trail", "show", "1"],
        &["trail", "verify"],
        &["workspace", "list"],
        &["task", "list"],
        &["task", "show", "tsk_nothing"],
    ] {
        let here = run(&office, words);
        let there = run(&desk, words);
        assert_eq!(here, there, "{words:?}");
        let (here, there) = (office.run(words), desk.run(words));
        assert_eq!(
            (here.code, &here.stdout),
            (there.code, &there.stdout),
            "{words:?}"
        );
        if here.code != 0 {
            assert_eq!(here.stderr, there.stderr, "{words:?}");
        }
    }
}

#[test]
fn su_07_what_a_server_does_not_offer_is_said_and_changes_nothing() {
    let (office, _server, desk) = team(OPEN);
    let tokens = || entries(&office, "token_created").len();
    assert_eq!(tokens(), 1, "that of the machine");
    for words in [
        &["token", "list"][..],
        &["token", "create", "x", "--role", "agent"],
        &["tui"],
        &["notify", "list"],
        &["notify", "add", "x", "--desktop"],
        &["trail", "note", "x"],
        &["trail", "list", "--follow"],
        &["permit", "revoke", "prm_x"],
        &["workspace", "create", "--role", "worker", "--isolated"],
    ] {
        let (code, said) = run(&desk, words);
        assert_eq!(code, 7, "{words:?}: {said:#}");
        assert!(said["error"]["suggestion"].is_string(), "{said:#}");
    }
    assert_eq!(tokens(), 1);
    // A role that may not is denied as by the server itself.
    let (code, said) = run(&desk, &["trail", "head"]);
    assert_eq!(
        (code, &said["error"]["name"]),
        (6, &Value::from("ACCESS_DENIED"))
    );
}

/// A workspace with a directory of its own at the server, whose agent wrote `notes` and is done.
fn work(office: &TestEnv, parent: &str, notes: &str) -> String {
    let create = ["workspace", "create", "--directive", "work", "--isolated"];
    let place = ["--parent", parent, "--role", "worker"];
    let made = office.json(&[&create[..], &place].concat());
    let [id, token, path] = ["workspace_id", "token", "path"].map(|name| text(&made[name]));
    fs::write(std::path::Path::new(&path).join("notes"), notes).unwrap();
    let body = r#"{"type": "artifact", "intent": "deliver", "parent": null, "status": "final",
        "confidence": "high", "payload": {"content": "done", "artifacts": []}}"#;
    let agent = ["--token", &token];
    let record = ["workspace", "checkpoint", &id, "--body", body];
    office.json(&[&record[..], &agent].concat());
    let signal = ["workspace", "signal", &id, "complete"];
    office.json(&[&signal[..], &agent].concat());
    id
}

#[test]
fn pr_32_an_operator_elsewhere_takes_work_over_and_decides_a_conflict() {
    let office = bare();
    office.write("project/notes", "one\ntwo\nthree\n");
    passage::add(&office, "ann");
    let lead = ["--role", "coordinator", "--directive", "lead"];
    let lead = office.json(&[&["workspace", "create"], &lead[..]].concat());
    let lead = text(&lead["workspace_id"]);
    let first = work(&office, &lead, "one\ndeux\nthree\n");
    let second = work(&office, &lead, "one\nzwei\nthree\n");
    let ann = token(&office, "ann", &["--role", "operator"]);
    let server = Server::start(&office, &[]);
    let desk = machine(&server.address, &ann);
    let notes = || fs::read_to_string(office.project().join("notes")).unwrap();
    let done = desk.json(&["workspace", "integrate", &first]);
    assert_eq!(done["integration"]["result"], "success", "{done:#}");
    assert_eq!(notes(), "one\ndeux\nthree\n");
    // What is always so there may be said, too.
    let (code, held) = run(&desk, &["workspace", "integrate", &second, "--no-tui"]);
    assert_eq!(code, 9, "{held:#}");
    assert_eq!(held["integration"]["conflicts"][0]["id"], "c1", "{held:#}");
    let resolve = ["workspace", "resolve", &second, "c1", "--use", "theirs"];
    let done = desk.json(&resolve);
    assert_eq!(
        done["integration"]["result"], "conflict_resolved",
        "{done:#}"
    );
    assert_eq!(notes(), "one\nzwei\nthree\n");
    assert!(!desk.project().join("notes").exists());
}

#[test]
fn su_09_an_operator_elsewhere_decides_with_a_signature() {
    let (office, server, desk) = team(passage::HELD);
    let words = ["cp", "a", "b"];
    let hold = text(&denied(&desk, &words, "APPROVAL_REQUIRED")["hold_id"]);
    let ann = token(&office, "ann", &["--role", "operator"]);
    let mut theirs = machine(&server.address, &ann);
    // The key is theirs, and is not at the server.
    let key = office.home().join("data/operators/ann.key");
    theirs.set("SAFEPOINT_OPERATOR", "ann");
    let shown = theirs.json(&["hold", "show", &hold]);
    let fingerprint = text(&shown["fingerprint"]);
    let signed = theirs.run_with(
        &[
            "hold",
            "sign",
            "-",
            "--json",
            "--key",
            key.to_str().unwrap(),
            "--fingerprint",
            &fingerprint,
        ],
        shown.to_string().as_bytes(),
    );
    assert_eq!(signed.code, 0, "{signed:?}");
    let signed: Value = serde_json::from_str(&signed.stdout).unwrap();
    theirs.write("project/note", &text(&signed["signature"]));
    let said = theirs.json(&[
        "hold",
        "approve",
        &hold,
        "--fingerprint",
        &fingerprint,
        "--signature",
        "@note",
    ]);
    assert_eq!(said["state"], "approved", "{said:#}");
    runs(&desk, &words);
}

#[test]
fn su_09_an_operator_elsewhere_decides_with_the_key_on_their_machine() {
    let (office, server, desk) = team(passage::HELD);
    let hold_of = |words: &[&str]| text(&denied(&desk, words, "APPROVAL_REQUIRED")["hold_id"]);
    let ann = token(&office, "ann", &["--role", "operator"]);
    let theirs = machine(&server.address, &ann);
    let hold = hold_of(&["cp", "a", "b"]);
    let fingerprint = text(&theirs.json(&["hold", "show", &hold])["fingerprint"]);
    let approve = ["hold", "approve", &hold, "--fingerprint", &fingerprint];
    // Without a key there is nothing to sign with.
    assert_eq!(theirs.run(&approve).code, 6);
    let key = std::fs::read_to_string(office.home().join("data/operators/ann.key")).unwrap();
    theirs.write("home/data/operators/ann.key", &key);
    // Another fingerprint is another action.
    let other = "0".repeat(64);
    let wrong = theirs.run(&["hold", "approve", &hold, "--fingerprint", &other]);
    assert_eq!(wrong.code, 7, "{wrong:?}");
    // An agent does not decide, whatever it finds on the machine.
    let agent = theirs
        .command(&approve)
        .env("SAFEPOINT_AGENT", "claude")
        .output()
        .unwrap();
    assert_eq!(agent.status.code(), Some(6), "{agent:?}");
    let said = theirs.json(&approve);
    assert_eq!(said["state"], "approved", "{said:#}");
    assert_eq!(said["operator"], "ann");
    runs(&desk, &["cp", "a", "b"]);
    let hold = hold_of(&["cp", "a", "c"]);
    let said = theirs.json(&["hold", "deny", &hold, "--reason", "not today"]);
    assert_eq!(said["state"], "denied", "{said:#}");
}

#[test]
fn su_09_silence_at_the_server_is_a_denial_and_makes_no_other_hold() {
    let mut office = project(passage::HELD);
    office.set("SAFEPOINT_HOLD_TIMEOUT", "1s");
    let token = token(&office, "laptop", &["--role", "agent"]);
    let server = Server::start(&office, &[]);
    let desk = machine(&server.address, &token);
    let (code, said) = exec_with(&desk, &["--wait", "2m"], &["cp", "a", "b"]);
    assert_eq!(code, 2, "{said:#}");
    assert_eq!(said["denial"]["code"], "TIMED_OUT", "{said:#}");
    assert!(!desk.project().join("b").exists());
    let holds = office.json(&["hold", "list", "--all"])["holds"].clone();
    let [hold] = <[Value; 1]>::try_from(holds.as_array().unwrap().clone()).unwrap();
    assert_eq!(hold["hold_id"], said["denial"]["hold_id"]);
}

#[test]
fn su_09_status_names_the_server_and_what_the_machine_remembers() {
    let (_office, server, desk) = team(OPEN);
    let url = format!("http://{}", server.address);
    let settings = desk.json(&["status"])["settings"].clone();
    assert_eq!(settings["server"]["value"], url);
    assert_eq!(settings["server"]["origin"], "environment");
    let own = text(&settings["store"]["value"]);
    assert!(
        own.starts_with("sqlite:") && own.contains("/data/server-"),
        "{own}"
    );
    let shown = desk.run(&["status"]).stdout;
    for line in [
        format!("{:<14}{url}  (environment)", "server"),
        format!("{:<14}{own}  (what this machine remembers)", "store"),
    ] {
        assert!(shown.lines().any(|it| it == line), "{line}: {shown}");
    }
}

#[test]
fn su_02_what_a_server_says_to_machines_fits_its_schema() {
    let (office, server, mut desk) = team(passage::HELD);
    let schemas = office.json(&["schema"]);
    let mut left: Vec<&str> = schemas
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    left.retain(|name| name.starts_with("judge-"));
    for (name, begins, flags, words) in [
        (
            "judge-enter",
            "POST /v1/actions/enter ",
            &[][..],
            ["cat", "a"],
        ),
        ("judge-propose", "POST /v1/actions ", &[], ["cat", "a"]),
        ("judge-propose", "POST /v1/actions ", &[], ["touch", "b"]),
        ("judge-end", "POST /v1/actions/act_", &[], ["cat", "a"]),
        (
            "judge-rehearse",
            "POST /v1/actions/rehearse ",
            &["--dry-run"],
            ["cat", "a"],
        ),
        (
            "judge-hold",
            "GET /v1/actions/holds/",
            &["--wait", "1s"],
            ["touch", "b"],
        ),
    ] {
        let (send, said) = std::sync::mpsc::channel();
        let between = Proxy::start(&server.address, begins, move |body| {
            send.send(body.to_owned()).unwrap();
            None
        });
        desk.set("SAFEPOINT_STORE", &format!("http://{}", between.address));
        exec_with(&desk, flags, &words);
        let said = said
            .try_recv()
            .unwrap_or_else(|_| panic!("{name} was not asked"));
        let said: Value = serde_json::from_str(&said).unwrap();
        let validator = jsonschema::validator_for(&schemas[name]).unwrap();
        if let Err(error) = validator.validate(&said) {
            panic!("{name}: {error}: {said:#}");
        }
        left.retain(|it| *it != name);
    }
    assert_eq!(left, [""; 0]);
}
