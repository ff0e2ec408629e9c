//! `exec` from outside: what a command is seen as, what a person is shown, what nobody is
//! asked about, and that nothing gets past when nobody is there.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/passage.rs"]
mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{
    OPEN, approve, assert_sound, bare, denied, entries, exec, exec_command, exec_with, held,
    hold_of, lines, permitted, program, project, reply_of, run, runs, show, text, waiting,
};
use testkit::TestEnv;
use testkit::tree::git;

const COPY: [&str; 3] = ["cp", "a", "b"];

fn sha256(bytes: &[u8]) -> String {
    let bytes = Sha256::digest(bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a dry run says that a command is.
#[track_caller]
fn seen(env: &TestEnv, words: &[&str]) -> Value {
    let (code, reply) = exec_with(env, &["--dry-run"], words);
    assert!(code == 0 || code == 4, "{reply:#}");
    assert_eq!(reply["would_run"], code == 0, "{reply:#}");
    reply
}

#[test]
fn au_01_the_form_holds_everything_that_decides_what_happens() {
    let env = held();
    env.write("project/deep/in", "in\n");
    symlink("deep", env.project().join("short")).unwrap();
    let hold = hold_of(&env, &["cp", "short/in", "b"]);
    let form = show(&env, &hold)["canonical_form"].clone();
    let root = env.project().canonicalize().unwrap();
    let cp = fs::canonicalize("/bin/cp").unwrap();
    assert_eq!(form["tool"]["executable"]["path"], json!(cp));
    let digest = sha256(&fs::read(&cp).unwrap());
    assert_eq!(form["tool"]["executable"]["digest"], digest.as_str());
    assert_eq!(form["argv"], json!(["cp", "short/in", "b"]));
    assert_eq!(form["directory"]["path"], json!(root));
    assert_eq!(form["workspace"]["path"], json!(root));
    // The name of each variable, and a digest in place of its value.
    let zone = form["environment"]["TZ"].as_str().unwrap();
    assert!(zone.starts_with("[redacted:"), "{zone}");
    assert_eq!(form["environment"].get("SAFEPOINT_HOME"), None);
    assert_eq!(form["input"], json!({"none": {}}));
    assert_eq!(form["atlases"][0]["atlas_id"], "tests.held");
    assert_eq!(form["side_effects"], json!(["read", "write"]), "{form:#}");
    assert_eq!(form["reversibility"], "reversible");
    assert!(form["session_id"].is_string() && form["policy_version"].is_string());
    let paths = form["paths"].as_array().unwrap();
    let read = paths.iter().find(|it| it["role"] == "read").unwrap();
    assert_eq!(
        read["path"],
        json!(root.join("deep/in")),
        "links on the way are resolved"
    );
    assert_eq!(read["preimage"]["file"]["digest"], sha256(b"in\n").as_str());
    let written = paths.iter().find(|it| it["role"] == "write").unwrap();
    assert_eq!(written["preimage"], json!({"absent": {}}));
}

#[test]
fn au_04_a_line_is_split_into_all_that_it_does() {
    let env = project(OPEN);
    let actions = |words: &[&str]| -> Vec<String> {
        let form = seen(&env, words)["canonical_form"].clone();
        form["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(text)
            .collect()
    };
    let has = |words: &[&str], action: &str| {
        let found = actions(words);
        assert!(found.iter().any(|it| it == action), "{words:?}: {found:?}");
    };
    has(&["rm", "a"], "file.delete");
    has(&["sh", "-c", "true && (rm a)"], "file.delete");
    has(&["sh", "-c", "cat a | xargs rm"], "file.delete");
    has(&["env", "X=1", "nice", "rm", "a"], "file.delete");
    has(
        &["find", ".", "-name", "a", "-exec", "rm", "{}", ";"],
        "file.delete",
    );
    has(&["sh", "-c", "echo $(rm a)"], "file.delete");
    has(&["sh", "-c", ": > a"], "file.delete");
    has(&["sh", "-c", "eval \"$X\""], "shell.opaque");
    has(&["python3", "-c", "print(1)"], "shell.opaque");
    has(
        &["sh", "-c", "echo cm0gYQ== | base64 -d | sh"],
        "shell.opaque",
    );
    has(&["git", "push"], "git.push");
    // By what the program is, not by what it is called.
    program(&env, "cat", b"#!/bin/sh\nrm a\n");
    let own = actions(&["./cat", "a"]);
    assert!(!own.contains(&"file.read".to_owned()), "{own:?}");
    assert_eq!(actions(&["cat", "a"]), ["file.read"]);
}

#[test]
fn au_02_what_cannot_be_shown_exactly_is_refused() {
    let env = held();
    let odd = OsStr::from_bytes(b"\xff\xfe");
    let mut command = env.command(&["--json", "exec", "--no-tui", "--", "cp", "a"]);
    let output = command.arg(odd).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    // A variable too.
    let mut command = exec_command(&env, &[], &COPY);
    let (code, reply) = reply_of(command.env("ODD", odd));
    assert_eq!((code, reply.get("denial")), (7, None), "{reply}");
    assert!(waiting(&env).is_empty(), "nothing is pending");
    assert!(!env.project().join("b").exists());
    hold_of(&env, &COPY);
}

#[test]
fn au_12_the_payload_of_a_hold() {
    let env = held();
    let mut command = exec_command(&env, &["--objective", "make a copy"], &COPY);
    let (code, reply) = reply_of(&mut command);
    assert_eq!(code, 2);
    let hold = text(&reply["denial"]["hold_id"]);
    let shown = show(&env, &hold);
    for field in [
        "checkpoint_type",
        "trigger_description",
        "canonical_request_summary",
        "scope_delta",
        "risk_classification",
        "side_effect_class",
        "policy_basis",
        "authorization_statement",
        "trust_state",
        "reversibility_class",
        "fingerprint",
        "canonical_form",
        "hold_id",
        "expires_at",
        "coverage",
    ] {
        assert!(!shown[field].is_null(), "{field}: {shown:#}");
    }
    assert!(shown.as_object().unwrap().contains_key("confirm"));
    assert_eq!(shown["checkpoint_type"], "policy_defined");
    assert_eq!(shown["canonical_request_summary"], "cp a b");
    assert_eq!(
        shown["policy_basis"][0]["reason"],
        "Somebody looks at what is written"
    );
    assert_eq!(shown["proposer"]["objective"], "make a copy");
    assert_eq!(shown["fingerprint"], reply["denial"]["fingerprint"]);
    let b = env.project().canonicalize().unwrap().join("b");
    assert_eq!(shown["coverage"]["covered"], json!([b]));
    assert!(shown["coverage"]["checkpoint_id"].is_string());
    // The same is in the trail, before anybody decided.
    let told = &entries(&env, "checkpoint_pending")[0]["body"];
    assert_eq!(told["fingerprint"], shown["fingerprint"]);
    // The fingerprint is that of the form which is shown.
    let form = shown["canonical_form"].to_string();
    let form = safepoint_authority::Canonical::read(form.as_bytes()).unwrap();
    let print = form.fingerprint().unwrap().to_string();
    assert_eq!(shown["fingerprint"], print.as_str());
}

#[test]
fn au_12_what_an_agent_writes_cannot_draw_on_the_screen() {
    let env = held();
    let name = "x\n\u{1b}[2Jyes  safepoint hold approve\r\u{202e}txt";
    let hold = hold_of(&env, &["cp", "a", name]);
    for words in [&["hold", "show", &hold][..], &["hold", "list"]] {
        let run = env.run(words);
        assert_eq!(run.code, 0);
        assert!(
            !run.stdout.contains(['\u{1b}', '\r', '\u{202e}']),
            "{run:?}"
        );
        let fake = |line: &str| line.starts_with("yes  safepoint");
        assert!(!run.stdout.lines().any(fake), "{run:?}");
    }
    let page = env.run(&["hold", "show", &hold]).stdout;
    assert!(
        page.contains("hidden characters are shown escaped"),
        "{page}"
    );
    let denial = env.run(&["exec", "--no-tui", "--", "cp", "a", name]);
    assert_eq!(denial.code, 2);
    assert!(!denial.stderr.contains('\u{1b}'), "{denial:?}");
    // The data itself is exact.
    assert_eq!(show(&env, &hold)["canonical_form"]["argv"][2], name);
}

#[test]
fn au_41_nobody_there_is_a_no() {
    let env = held();
    let words = ["exec", "--no-tui", "--json", "--", "cp", "a", "b"];
    let piped = env.run_with(&words, &b"y\nyes\n".repeat(1_000));
    assert_eq!(piped.code, 2, "{piped:?}");
    let reply: Value = serde_json::from_str(&piped.stdout).unwrap();
    for field in [
        "code",
        "hold_id",
        "fingerprint",
        "action_id",
        "policy_basis",
        "reason",
        "next",
    ] {
        assert!(!reply["denial"][field].is_null(), "{field}: {reply:#}");
    }
    assert_eq!(piped.stdout.trim().lines().count().min(1), 1);
    // No terminal at all, without being told so.
    let plain = env.run_with(&["exec", "--", "cp", "a", "b"], &b"y\n".repeat(1_000));
    assert_eq!(plain.code, 2, "{plain:?}");
    for (name, value) in [
        ("CI", "1"),
        ("CI", "true"),
        ("GITHUB_ACTIONS", "true"),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("SAFEPOINT_YES", "1"),
        ("SAFEPOINT_APPROVE", "1"),
        ("SAFEPOINT_AUTO_APPROVE", "1"),
        ("SAFEPOINT_CHECKPOINT", "never"),
        ("SAFEPOINT_OPERATOR", "ann"),
        ("SAFEPOINT_NO_TUI", "1"),
    ] {
        let mut command = exec_command(&env, &[], &COPY);
        let (code, reply) = reply_of(command.env(name, value));
        assert_eq!(code, 2, "{name}: {reply:#}");
        assert!(!env.project().join("b").exists(), "{name}");
    }
    // Closed input.
    let mut closed = std::process::Command::new("sh");
    closed
        .args([
            "-c",
            "exec \"$@\" <&- ",
            "sh",
            env!("CARGO_BIN_EXE_safepoint"),
        ])
        .args(words);
    let given = env.command(&[]);
    closed.current_dir(env.project()).env_clear();
    closed.envs(
        given
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let (code, reply) = reply_of(&mut closed);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (2, &json!("APPROVAL_REQUIRED")),
        "{reply:#}"
    );
    assert!(!env.project().join("b").exists());
    // The positive control: a person says yes.
    let hold = hold_of(&env, &COPY);
    approve(&env, &hold);
    runs(&env, &COPY);
}

#[test]
fn au_41_a_project_cannot_switch_it_off() {
    let env = held();
    let settings = "atlases: [atlas.yaml]\ncheckpoint: never\n";
    env.write("project/safepoint.yaml", settings);
    denied(&env, &COPY, "MODE_REFUSED");
    assert!(!env.project().join("b").exists());
}

#[test]
fn au_42_a_dry_run_writes_nothing() {
    let env = held();
    runs(&env, &["cat", "a"]);
    let before = (
        env.json(&["trail", "head"])["size"].clone(),
        env.json(&["list", "--automatic"]),
    );
    let (code, reply) = exec_with(&env, &["--dry-run"], &COPY);
    assert_eq!(code, 4, "{reply:#}");
    assert_eq!(reply["denial"]["code"], "APPROVAL_REQUIRED");
    assert_eq!(exec_with(&env, &["--dry-run"], &["cat", "a"]).0, 0);
    let (code, reply) = exec_with(&env, &["--dry-run"], &["rm", "a"]);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (4, &json!("POLICY_DENIED"))
    );
    let home = env.home().join("data").to_string_lossy().into_owned();
    let (code, reply) = exec_with(&env, &["--dry-run"], &["ls", &home]);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (4, &json!("CONTROL_FORBIDDEN"))
    );
    let after = (
        env.json(&["trail", "head"])["size"].clone(),
        env.json(&["list", "--automatic"]),
    );
    assert_eq!(before, after);
    assert!(waiting(&env).is_empty());
    assert!(env.project().join("a").exists() && !env.project().join("b").exists());
    // What it showed is what would be asked about.
    let hold = hold_of(&env, &COPY);
    let rehearsed = seen(&env, &COPY);
    assert_eq!(rehearsed["fingerprint"], show(&env, &hold)["fingerprint"]);
}

/// What a dry run promises is what comes of it, also where the session stands differently.
#[test]
fn au_42_a_dry_run_knows_how_the_session_stands() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    assert_eq!(run(&env, &["hold", "halt", &hold]).0, 0);
    let (code, reply) = exec_with(&env, &["--dry-run"], &["cat", "a"]);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (4, &json!("SESSION_HALTED")),
        "{reply:#}"
    );
    approve(&env, &hold);
    assert_eq!(exec_with(&env, &["--dry-run"], &["cat", "a"]).0, 0);
    // A permit that waits for it.
    assert_eq!(exec_with(&env, &["--dry-run"], &COPY).0, 0);
    let never = ["--dry-run", "--checkpoint", "never"];
    let (code, reply) = exec_with(&env, &never, &["cp", "a", "c"]);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (4, &json!("MODE_REFUSED")),
        "{reply:#}"
    );
}

#[test]
fn au_43_every_list_and_every_one_is_data_too() {
    let env = held();
    let permit = permitted(&env, &COPY);
    env.json(&[
        "trust",
        "grant",
        "tool:/usr/bin/git",
        "--reason",
        "we know it",
    ]);
    let list = env.json(&["permit", "list"]);
    assert_eq!(list["permits"][0]["permit_id"], permit.as_str());
    let one = env.json(&["permit", "show", &permit]);
    assert_eq!(one["state"], json!({"is": "issued"}));
    let trust = env.json(&["trust", "list"]);
    assert_eq!(trust["trust"][0]["boundary"], "tool:/usr/bin/git");
    assert_eq!(
        (&trust["trust"][0]["level"], &trust["trust"][0]["version"]),
        (&json!("trusted"), &json!(1))
    );
    let revoked = env.json(&["trust", "revoke", "tool:/usr/bin/git"]);
    assert_eq!(
        (&revoked["level"], &revoked["version"]),
        (&json!("untrusted"), &json!(2))
    );
    assert_eq!(
        env.json(&["permit", "revoke", &permit])["state"]["is"],
        "void"
    );
    assert_eq!(
        env.json(&["hold", "list"]),
        json!({"holds": [], "total": 0, "next": null})
    );
    let all = env.json(&["hold", "list", "--all"]);
    assert_eq!(all["holds"][0]["state"], "approved");
    assert_eq!(
        env.json(&["operator", "list"])["operators"][0]["name"],
        "ann"
    );
}

#[test]
fn au_44_the_exit_codes() {
    let env = held();
    let code = |words: &[&str]| env.run(words).code;
    assert_eq!(code(&["exec", "--", "cat", "a"]), 0);
    assert_eq!(code(&["exec", "--", "cat", "missing"]), 1);
    assert_eq!(code(&["exec", "--", "cp", "a", "b"]), 2);
    assert_eq!(
        code(&["exec", "--timeout", "1ms", "--", "tail", "-f", "a"]),
        3
    );
    assert_eq!(code(&["exec", "--dry-run", "--", "cp", "a", "b"]), 4);
    assert_eq!(code(&["exec", "--", "no-such-program"]), 8);
    // A usage error is never a denial.
    for words in [
        &["exec"][..],
        &["exec", "--"],
        &["exec", "cp"],
        &["exec", "--checkpoint", "maybe", "--", "cat", "a"],
        &["exec", "--declare", "everything", "--", "cat", "a"],
        &["exec", "--timeout", "soon", "--", "cat", "a"],
        &["exec", "--permit", "x", "--", "cat", "a"],
        &["hold", "approve", "x"],
        &["trust", "grant", "nothing"],
        &["trust", "grant", "tool:/x", "--level", "untrusted"],
        &["operator", "add", "../x"],
    ] {
        assert_eq!(code(words), 7, "{words:?}");
    }
    for words in [
        &["hold", "show", "hld_none"][..],
        &["permit", "show", "prm_none"],
        &["operator", "remove", "nobody"],
    ] {
        assert_eq!(code(words), 8, "{words:?}");
    }
    // The store is not there to be written to.
    let mut command = exec_command(
        &env,
        &["--store", "sqlite:/proc/nowhere/store.db"],
        &["cat", "a"],
    );
    let (code, reply) = reply_of(&mut command);
    assert_eq!(code, 5, "{reply}");
}

#[test]
fn au_26_what_cannot_be_written_down_does_not_run() {
    let env = project(OPEN);
    runs(&env, &["cat", "a"]);
    // Somebody else has the store locked, and does not let go.
    let lock = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut command = exec_command(&env, &[], &["sh", "-c", "echo run >> log"]);
    let (code, reply) = reply_of(command.env("SAFEPOINT_LOCK_TIMEOUT", "1ms"));
    assert_ne!(code, 0, "{reply}");
    assert_eq!(reply.get("denial"), None);
    assert_eq!(lines(&env, "log"), 0);
    lock.execute_batch("ROLLBACK").unwrap();
    runs(&env, &["sh", "-c", "echo run >> log"]);
    assert_eq!(lines(&env, "log"), 1);
    let intended = entries(&env, "action_intended");
    let ended = entries(&env, "action_ended");
    assert_eq!((intended.len(), ended.len()), (2, 2));
    let seq = |it: &Value| it["seq"].as_u64().unwrap();
    assert!(seq(&intended[1]) < seq(&ended[1]), "the intent comes first");
}

#[test]
fn au_26_the_whole_story_is_in_the_trail_and_in_the_log() {
    let env = held();
    permitted(&env, &COPY);
    let reply = runs(&env, &COPY);
    let action = text(&reply["action_id"]);
    let list = env.json(&["trail", "list", "--action", &action]);
    let kinds: Vec<String> = list["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| text(&it["kind"]))
        .collect();
    let mut at = 0;
    for kind in [
        "checkpoint_pending",
        "action_denied",
        "approval_decision",
        "permit_issued",
        "action_intended",
        "action_ended",
    ] {
        let found = kinds.iter().skip(at).position(|it| it == kind);
        at += found.unwrap_or_else(|| panic!("{kind} after {at}: {kinds:?}")) + 1;
    }
    let log = env.json(&["log"]);
    assert_eq!(log["actions"][0]["action_id"], action.as_str());
    assert_eq!(log["actions"][0]["decision"], "approved");
    assert_eq!(
        log["actions"][0]["changes"],
        json!([{"path": "b", "change": "created"}])
    );
    env.json(&["undo", &action]);
    assert!(!env.project().join("b").exists());
    assert_sound(&env);
}

/// An everyday project under the atlas that is built in.
fn everyday() -> TestEnv {
    let env = bare();
    env.write("project/a", "content of a\n");
    env.write("project/src/main.c", "int main(void) { return 0; }\n");
    env.write("project/.env", "PASSWORD=hunter2\n");
    support::add(&env, "ann");
    git(&env.project(), &["init", "-q", "-b", "main"]);
    env
}

#[test]
fn au_42_everyday_work_is_not_asked_about() {
    let env = everyday();
    for words in [
        &["true"][..],
        &["ls", "-la"],
        &["cat", "a"],
        &["grep", "-r", "main", "src"],
        &["git", "status"],
        &["git", "log", "--oneline", "-1"],
        &["mkdir", "made"],
        &["cp", "a", "b"],
        &["mv", "b", "c"],
        &["touch", "d"],
        &["sh", "-c", "echo x > e; cat e | sort"],
        &["sed", "-i", "s/content/text/", "a"],
        &["chmod", "600", "c"],
        &["find", ".", "-name", "*.c"],
        &["git", "add", "a"],
        &["rm", "c"],
    ] {
        let (code, reply) = exec(&env, words);
        let git_log = words[1..].first() == Some(&"log");
        assert_eq!(code, i32::from(git_log), "{words:?}: {reply:#}");
        assert_eq!(reply["decision"], "allow", "{words:?}");
    }
    program(&env, "build.sh", b"#!/bin/sh\necho built > product\n");
    runs(&env, &["./build.sh"]);
    assert!(env.project().join("product").exists());
    assert!(waiting(&env).is_empty());
}

#[test]
fn au_42_what_is_removed_in_the_workspace_is_brought_back() {
    let env = everyday();
    let before = testkit::tree::look(&env.project());
    let reply = runs(&env, &["rm", "-r", "a", "src"]);
    assert_eq!(reply["reversibility"], "reversible");
    assert!(!env.project().join("src").exists());
    env.json(&["undo"]);
    testkit::tree::assert_same(&before, &testkit::tree::look(&env.project()));
}

#[test]
fn au_42_what_nothing_covered_of_an_approved_action_is_told_by_its_undo() {
    let env = everyday();
    env.write("out/victim", "v\n");
    std::os::unix::fs::symlink(env.root().join("out"), env.project().join("outl")).unwrap();
    let words = ["rm", "outl/victim"];
    permitted(&env, &words);
    let reply = runs(&env, &words);
    assert!(!env.root().join("out/victim").exists());
    let action = reply["action_id"].as_str().unwrap();
    let undone = env.json_with_code(1, &["undo", action]);
    assert_eq!(undone["restored"], false, "{undone:#}");
    let told = undone["not_restored"].to_string();
    assert!(told.contains("outside the workspace"), "{undone:#}");
    let shown = env.run(&["undo", action]);
    assert_eq!(shown.code, 1, "{shown:?}");
    assert!(shown.stdout.starts_with("not taken back"), "{shown:?}");
}

#[test]
fn au_10_what_leaves_or_cannot_be_undone_is_held() {
    let env = everyday();
    let out = env.root().join("out").to_string_lossy().into_owned();
    for words in [
        &["cp", "a", &out][..],
        &["sh", "-c", "cp a ../out"],
        &["git", "push", "origin", "main"],
        &["python3", "-c", "open('../out', 'w')"],
        &["cat", ".env"],
        &["sh", "-c", "eval \"$(cat a)\""],
        &["kill", "1"],
        &["curl", "-d", "@a", "https://example.org/"],
    ] {
        let hold = hold_of(&env, words);
        let shown = show(&env, &hold);
        assert_eq!(run(&env, &["hold", "deny", &hold]).0, 0, "{shown:#}");
    }
    assert!(!env.root().join("out").exists());
    let home = env.home().to_string_lossy().into_owned();
    denied(&env, &["ls", &format!("{home}/data")], "CONTROL_FORBIDDEN");
    denied(&env, &["rm", "-rf", &home], "CONTROL_FORBIDDEN");
    assert!(env.home().exists());
    // The control: once it is approved it is done.
    let words = ["cp", "a", &out];
    denied(&env, &words, "OPERATOR_DENIED");
    let words = ["cp", "-p", "a", &out];
    permitted(&env, &words);
    runs(&env, &words);
    assert!(env.root().join("out").exists());
}

/// A script says nothing of what it does: the kernel keeps it in the workspace.
#[test]
fn au_10_a_script_cannot_write_outside_without_being_asked() {
    let env = everyday();
    let home = env
        .home()
        .join("data/store.db")
        .to_string_lossy()
        .into_owned();
    let outside = format!("/var/safepoint-test-{}", std::process::id());
    let line = format!("#!/bin/sh\necho x > {outside}\ncat {home} > stolen\necho y > inside\n");
    program(&env, "sneaky.sh", line.as_bytes());
    let (_, reply) = exec(&env, &["./sneaky.sh"]);
    assert_eq!(reply["decision"], "allow", "{reply:#}");
    let escaped = fs::remove_file(&outside).is_ok();
    assert!(!escaped, "it wrote outside: {reply:#}");
    assert!(env.project().join("inside").exists());
    assert_eq!(
        fs::read(env.project().join("stolen")).unwrap_or_default(),
        b""
    );
}

/// Rules that an agent could rewrite would be no rules.
#[test]
fn au_10_the_rules_themselves_are_not_for_agents() {
    for target in ["safepoint.yaml", "atlas.yaml"] {
        let env = project(OPEN);
        env.write("project/evil.yaml", "atlases: []\n");
        let before = fs::read_to_string(env.project().join(target)).unwrap();
        denied(&env, &["cp", "evil.yaml", target], "CONTROL_FORBIDDEN");
        let after = fs::read_to_string(env.project().join(target)).unwrap();
        assert_eq!(before, after);
        // The control: the same with a file that rules nothing.
        let env = project(OPEN);
        runs(&env, &["cp", "a", "other.yaml"]);
    }
}

/// A script does what it likes in the workspace, so it can write the rules, too. It gets
/// nowhere with that: rules that have changed are looked at by a person first.
#[test]
fn au_10_new_rules_are_looked_at_first() {
    let env = project(OPEN);
    runs(&env, &["cat", "a"]);
    program(
        &env,
        "sneaky.sh",
        b"#!/bin/sh\nsed -i s/1.0.0/1.0.1/ atlas.yaml\n",
    );
    let reply = runs(&env, &["./sneaky.sh"]);
    assert_eq!(
        reply["changes"],
        json!([{"path": "atlas.yaml", "change": "modified"}])
    );
    let hold = hold_of(&env, &["cat", "a"]);
    assert_eq!(show(&env, &hold)["checkpoint_type"], "policy_boundary");
    approve(&env, &hold);
    runs(&env, &["cat", "a"]);
    runs(&env, &["cat", "a"]);
}

/// However one gets there: by a link, or by merely reading. The keys of operators lie there.
#[test]
fn au_10_nobody_reaches_what_safepoint_keeps() {
    let data = |env: &TestEnv| env.home().join("data").canonicalize().unwrap();
    let ways: [fn(&TestEnv) -> String; 5] = [
        |env| {
            env.home()
                .join("data/operators/ann.key")
                .display()
                .to_string()
        },
        |_| "directory/operators/ann.key".to_owned(),
        |_| "file".to_owned(),
        |_| "directory".to_owned(),
        |_| "../home/data/operators/../operators/ann.key".to_owned(),
    ];
    for way in ways {
        let env = project(OPEN);
        symlink(data(&env), env.project().join("directory")).unwrap();
        symlink(
            data(&env).join("operators/ann.key"),
            env.project().join("file"),
        )
        .unwrap();
        let path = way(&env);
        for flags in [&[][..], &["--no-fence"]] {
            let (exit, reply) = exec_with(&env, flags, &["cat", &path]);
            support::is_denied(exit, &reply, "CONTROL_FORBIDDEN");
        }
    }
    // The control: a link to something else.
    let env = project(OPEN);
    symlink("a", env.project().join("file")).unwrap();
    runs(&env, &["cat", "file"]);
}

/// A program may do what its name says, so it is told the one it was called by.
#[test]
fn au_25_a_program_is_told_the_name_it_was_called_by() {
    let env = project(OPEN);
    program(&env, "multi", b"#!/bin/sh\necho \"$0\"\n");
    symlink("multi", env.project().join("tool-a")).unwrap();
    assert_eq!(runs(&env, &["./tool-a"])["stdout"], "./tool-a\n");
    // Found on the way, it is told where.
    let mut command = exec_command(&env, &[], &["tool-a"]);
    let path = format!("{}:/usr/bin:/bin", env.project().display());
    let (code, reply) = reply_of(command.env("PATH", path));
    assert_eq!(code, 0, "{reply:#}");
    let place = env.project().canonicalize().unwrap().join("tool-a");
    let said = text(&reply["stdout"]);
    let said = std::path::Path::new(said.trim_end());
    let said = said
        .parent()
        .unwrap()
        .canonicalize()
        .unwrap()
        .join("tool-a");
    assert_eq!(said, place);
    // What is no script, too.
    fs::copy("/bin/sh", env.project().join("shell")).unwrap();
    symlink("shell", env.project().join("tool-b")).unwrap();
    let reply = runs(&env, &["./tool-b", "-c", "echo $0"]);
    assert_eq!(reply["stdout"], "./tool-b\n", "{reply:#}");
    // A yes is bound to the file that it leads to.
    let form = seen(&env, &["./tool-a"])["canonical_form"].clone();
    let multi = env.project().canonicalize().unwrap().join("multi");
    assert_eq!(form["tool"]["executable"]["path"], json!(multi));
}

/// A link to a program of the system is that program.
#[test]
fn au_04_another_name_does_not_hide_what_a_program_is() {
    let env = bare();
    env.write("project/a", "a\n");
    symlink("/bin/rm", env.project().join("harmless")).unwrap();
    let actions = seen(&env, &["./harmless", "a"])["canonical_form"]["actions"].clone();
    assert_eq!(actions, json!(["file.delete", "process.exec"]));
}

/// What a dry run of a line for bash says, with these variables and not `SAFEPOINT_HOME`.
fn line_with(env: &TestEnv, variables: &[(&str, &str)], line: &str) -> Value {
    let words = [
        "--json",
        "exec",
        "--dry-run",
        "--no-tui",
        "--",
        "bash",
        "-c",
        line,
    ];
    let mut command = env.command(&words);
    command.env_remove("SAFEPOINT_HOME");
    command.envs(variables.iter().copied());
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

#[test]
fn au_25_our_own_store_is_guarded_by_whatever_name_the_shell_finds_it() {
    let env = bare();
    fs::create_dir_all(env.root().join("user")).unwrap();
    symlink("user", env.root().join("link")).unwrap();
    let at = |name: &str| env.root().join(name).display().to_string();
    let (user, link, store) = (at("user"), at("link"), at("elsewhere/store.db"));
    let forbidden = |variables: &[(&str, &str)], line: &str| {
        // The first command makes the store.
        line_with(&env, variables, "true");
        let reply = line_with(&env, variables, line);
        assert_eq!(
            reply["denial"]["code"], "CONTROL_FORBIDDEN",
            "{line}: {reply:#}"
        );
    };
    forbidden(&[("HOME", &user)], "rm -rf ~/.local/share/safepoint");
    forbidden(
        &[("HOME", &user)],
        "rm -rf \"$HOME/.local/share/safepoint\"",
    );
    forbidden(&[("HOME", &link)], "rm -rf ~/.local/share/safepoint");
    let assigned = format!("HOME={user}; rm -rf ~/.local/state/safepoint");
    forbidden(&[("HOME", &user)], &assigned);
    let data = at("data");
    forbidden(
        &[("HOME", &user), ("XDG_DATA_HOME", &data)],
        &format!("rm -rf {data}/safepoint"),
    );
    fs::create_dir(env.root().join("elsewhere")).unwrap();
    let address = format!("sqlite:{store}");
    let variables = [("HOME", user.as_str()), ("SAFEPOINT_STORE", &address)];
    forbidden(&variables, &format!("rm {store}"));
    forbidden(&variables, &format!("truncate -s0 {store}-wal"));
}
