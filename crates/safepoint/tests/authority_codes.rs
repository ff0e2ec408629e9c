//! Every reason for which something is denied, through the binary; beside each the same
//! thing when that reason is absent.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/passage.rs"]
mod support;

use std::fs;
use std::os::unix::fs::symlink;

use safepoint_authority::DenialCode;
use support::{
    HELD, OPEN, approve, assert_sound, denied, denied_with, entries, exec_command, executable,
    held, hold_of, is_denied, lines, permit_state, permitted, permitted_with, program, project,
    reply_of, run, runs, runs_with, text, try_approve, waiting, yes_to,
};
use testkit::TestEnv;

const COPY: [&str; 3] = ["cp", "a", "b"];

fn is_there(env: &TestEnv, path: &str) -> bool {
    env.project().join(path).symlink_metadata().is_ok()
}

/// A code that no test names is one nobody has seen. `TIMED_OUT` is said where somebody
/// waits for a decision, which `exec` does not.
#[test]
fn au_25_every_code_is_reached_by_a_test() {
    let tests = include_str!("authority_codes.rs");
    for code in DenialCode::ALL {
        let quoted = format!("\"{}\"", code.name());
        let named = tests.contains(&quoted) || *code == DenialCode::TimedOut;
        assert!(named, "nothing reaches {}", code.name());
    }
}

#[test]
fn au_24_approval_required_and_given() {
    let env = held();
    let denial = denied(&env, &COPY, "APPROVAL_REQUIRED");
    assert!(!is_there(&env, "b"));
    assert_eq!(denial["policy_basis"][0]["policy_id"], "writes");
    approve(&env, &text(&denial["hold_id"]));
    // Approval is not permission to anything else, and runs nothing itself.
    assert!(!is_there(&env, "b"));
    denied(&env, &["cp", "a", "c"], "APPROVAL_REQUIRED");
    let reply = runs(&env, &COPY);
    assert_eq!(reply["decision"], "approved");
    assert_eq!(reply["action_id"], denial["action_id"]);
    assert!(is_there(&env, "b"));
    // Once.
    fs::remove_file(env.project().join("b")).unwrap();
    denied(&env, &COPY, "APPROVAL_REQUIRED");
    assert!(!is_there(&env, "b"));
    // What no rule concerns needs nobody.
    assert_eq!(runs(&env, &["cat", "a"])["decision"], "allow");
    assert_sound(&env);
}

#[test]
fn au_27_questions_pending_and_answered() {
    let gate = r#"
checkpoints:
  - checkpoint_id: "why"
    name: "Why"
    trigger:
      type: action_pre
      patterns: ["file.write"]
    mode: blocking
    questions:
      - question_id: "reason"
        question: "What for?"
        response_type: text
"#;
    let env = project(&format!("{OPEN}{gate}"));
    let (exit, reply) = support::exec(&env, &COPY);
    let denial = is_denied(exit, &reply, "QUESTIONS_PENDING");
    assert!(text(&denial["next"]).contains("session answer"), "{denial}");
    let form = r#"--answers '{"reason": …}'"#;
    assert!(text(&denial["next"]).contains(form), "{denial}");
    assert_eq!(reply["resolution"]["questions"][0]["question_id"], "reason");
    assert!(!is_there(&env, "b"));
    runs(&env, &["cat", "a"]);
    let session = text(&reply["session_id"]);
    let answers = r#"{"reason": "because it was asked for"}"#;
    let (code, answered) = run(
        &env,
        &["session", "answer", &session, "why", "--answers", answers],
    );
    assert_eq!(code, 0, "{answered}");
    runs(&env, &COPY);
    assert!(is_there(&env, "b"));
}

#[test]
fn au_27_policy_denied_and_silent() {
    let env = held();
    let denial = denied(&env, &["rm", "a"], "POLICY_DENIED");
    assert_eq!(denial["policy_basis"][0]["policy_id"], "deletions");
    assert_eq!(denial["hold_id"], serde_json::Value::Null);
    assert!(is_there(&env, "a") && waiting(&env).is_empty());
    let env = project(OPEN);
    runs(&env, &["rm", "a"]);
    assert!(!is_there(&env, "a"));
}

#[test]
fn au_22_operator_denied() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    let (code, reply) = run(&env, &["hold", "deny", &hold, "--reason", "not today"]);
    assert_eq!((code, text(&reply["state"])), (0, "denied".to_owned()));
    let denial = denied(&env, &COPY, "OPERATOR_DENIED");
    assert_eq!(denial["reason"], "not today");
    assert_eq!(try_approve(&env, &hold, &[]).0, 9);
    assert!(!is_there(&env, "b"));
    // A no to this is no answer to that.
    permitted(&env, &["cp", "a", "c"]);
    runs(&env, &["cp", "a", "c"]);
}

#[test]
fn au_22_session_halted_and_resumed() {
    let env = held();
    runs(&env, &["cat", "a"]);
    let hold = hold_of(&env, &COPY);
    let (code, reply) = run(&env, &["hold", "halt", &hold]);
    assert_eq!((code, text(&reply["state"])), (0, "halted".to_owned()));
    let denial = denied(&env, &["cat", "a"], "SESSION_HALTED");
    assert_eq!(denial["hold_id"], hold.as_str());
    denied_with(
        &env,
        &["--checkpoint", "never"],
        &["cat", "a"],
        "SESSION_HALTED",
    );
    // New rules do not end a halt.
    let rules = HELD.replace("1.0.0", "1.0.1");
    env.write("project/atlas.yaml", &rules);
    denied(&env, &["cat", "a"], "SESSION_HALTED");
    env.write("project/atlas.yaml", HELD);
    denied(&env, &["cat", "a"], "SESSION_HALTED");
}

#[test]
fn au_22_a_halt_ends_when_an_operator_acts() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    assert_eq!(run(&env, &["hold", "halt", &hold]).0, 0);
    denied(&env, &["cat", "a"], "SESSION_HALTED");
    approve(&env, &hold);
    runs(&env, &["cat", "a"]);
    runs(&env, &COPY);
    let hold = hold_of(&env, &["cp", "a", "c"]);
    assert_eq!(run(&env, &["hold", "halt", &hold]).0, 0);
    denied(&env, &["cat", "a"], "SESSION_HALTED");
    assert_eq!(run(&env, &["hold", "deny", &hold]).0, 0);
    runs(&env, &["cat", "a"]);
    denied(&env, &["cp", "a", "c"], "OPERATOR_DENIED");
}

#[test]
fn au_30_control_forbidden_whatever_was_approved() {
    let env = held();
    let home = env.home().join("data").to_string_lossy().into_owned();
    runs(&env, &["ls", "."]);
    denied(&env, &["ls", &home], "CONTROL_FORBIDDEN");
    denied(
        &env,
        &["sh", "-c", &format!("cat {home}/* > x")],
        "CONTROL_FORBIDDEN",
    );
    let elevated = format!("path:{}", env.project().canonicalize().unwrap().display());
    env.json(&["trust", "grant", &elevated, "--level", "elevated"]);
    denied_with(
        &env,
        &["--checkpoint", "never"],
        &["ls", &home],
        "CONTROL_FORBIDDEN",
    );
    assert!(!is_there(&env, "x"));
    // It was denied, and that is all: nothing loses its trust, and nothing else is held.
    let trust = env.json(&["trust", "list"]);
    let level = &trust["trust"][0]["level"];
    assert_eq!(level, "elevated", "{trust:#}");
    assert!(entries(&env, "trust_changed").len() == 1, "only the grant");
    runs(&env, &["cat", "a"]);
    runs(&env, &["ls", "."]);
    assert!(waiting(&env).is_empty());
}

#[test]
fn au_25_session_ended() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    let session = text(&support::show(&env, &hold)["session_id"]);
    env.json(&["session", "end", &session]);
    assert!(waiting(&env).is_empty());
    assert_eq!(support::show(&env, &hold)["state"], "closed");
    let told = entries(&env, "action_denied");
    let last = &told.last().unwrap()["body"];
    assert_eq!(last["code"], "SESSION_ENDED", "{last:#}");
    assert_eq!(last["hold_id"], hold.as_str());
    // Nobody can say yes to it any more.
    let (code, reply) = try_approve(&env, &hold, &[]);
    assert_ne!(code, 0, "{reply:#}");
    let again = hold_of(&env, &COPY);
    assert_ne!(again, hold);
    // What an operator has halted stays so: to end the session is no way around it.
    env.json(&["hold", "halt", &again]);
    let session = text(&support::show(&env, &again)["session_id"]);
    env.json(&["session", "end", &session]);
    assert_eq!(waiting(&env)[0]["state"], "halted");
    denied(&env, &COPY, "SESSION_HALTED");
    assert_sound(&env);
}

#[test]
fn au_03_an_undeclared_class_is_denied() {
    let env = project(OPEN);
    let denial = denied_with(&env, &["--declare", "read"], &COPY, "CLASS_UNDECLARED");
    assert!(text(&denial["reason"]).contains("`write`"), "{denial}");
    assert!(!is_there(&env, "b"));
    // It was a violation: somebody looks before it goes on.
    let hold = support::hold_with(&env, &["--declare", "read,write,exec"], &COPY);
    approve(&env, &hold);
    runs_with(&env, &["--declare", "read,write,exec"], &COPY);
    assert!(is_there(&env, "b"));
}

#[test]
fn au_11_never_is_refused_without_elevated_trust() {
    let env = project(OPEN);
    fs::create_dir(env.root().join("elsewhere")).unwrap();
    let out = env
        .root()
        .join("elsewhere/out")
        .to_string_lossy()
        .into_owned();
    let words = ["cp", "a", out.as_str()];
    let never = ["--checkpoint", "never"];
    let workspace = format!("path:{}", env.project().canonicalize().unwrap().display());
    denied_with(&env, &never, &words, "MODE_REFUSED");
    // What nobody would be asked about is refused, too: the mode itself needs the trust.
    let denial = denied_with(&env, &never, &["cat", "a"], "MODE_REFUSED");
    assert!(text(&denial["next"]).contains("elevated trust"), "{denial}");
    let (code, reply) =
        support::exec_with(&env, &["--dry-run", "--checkpoint", "never"], &["cat", "a"]);
    assert_eq!(
        (code, text(&reply["denial"]["code"])),
        (4, "MODE_REFUSED".to_owned())
    );
    env.json(&["trust", "grant", &workspace, "--level", "trusted"]);
    denied_with(&env, &never, &words, "MODE_REFUSED");
    assert!(waiting(&env).is_empty(), "refused, not downgraded");
    assert!(!env.root().join("elsewhere/out").exists());
    env.json(&["trust", "grant", &workspace, "--level", "elevated"]);
    runs_with(&env, &never, &words);
    assert!(env.root().join("elsewhere/out").exists());
    // Without the flag it is asked all the same; without the trust it is over.
    fs::remove_file(env.root().join("elsewhere/out")).unwrap();
    hold_of(&env, &words);
    env.json(&["trust", "revoke", &workspace]);
    denied_with(&env, &never, &words, "MODE_REFUSED");
    assert!(!env.root().join("elsewhere/out").exists());
}

#[test]
fn au_11_never_does_not_get_past_a_policy() {
    let env = held();
    let workspace = format!("path:{}", env.project().canonicalize().unwrap().display());
    env.json(&["trust", "grant", &workspace, "--level", "elevated"]);
    let denial = denied_with(&env, &["--checkpoint", "never"], &COPY, "MODE_REFUSED");
    assert!(!is_there(&env, "b"));
    // More trust would not help.
    assert!(!text(&denial["next"]).contains("trust grant"), "{denial}");
    // What needs nobody goes in any mode.
    runs_with(&env, &["--checkpoint", "never"], &["cat", "a"]);
}

#[test]
fn au_25_target_changed() {
    let env = held();
    let permit = permitted(&env, &COPY);
    env.write("project/a", "something else\n");
    let denial = denied(&env, &COPY, "TARGET_CHANGED");
    assert!(text(&denial["next"]).contains("nothing was run"));
    assert!(!is_there(&env, "b"));
    // The permit is gone, even if everything is put back.
    env.write("project/a", "content of a\n");
    assert_eq!(permit_state(&env, &permit).0, "void");
    denied(&env, &COPY, "APPROVAL_REQUIRED");
    let hold = hold_of(&env, &COPY);
    approve(&env, &hold);
    runs(&env, &COPY);
}

#[test]
fn au_25_what_is_written_to_is_looked_at_too() {
    let env = held();
    env.write("project/b", "precious\n");
    permitted(&env, &COPY);
    env.write("project/b", "more precious\n");
    denied(&env, &COPY, "TARGET_CHANGED");
    let kept = fs::read_to_string(env.project().join("b")).unwrap();
    assert_eq!(kept, "more precious\n");
}

#[test]
fn au_25_path_identity_changed() {
    let env = held();
    env.write("victim", "untouched\n");
    permitted(&env, &COPY);
    symlink("../victim", env.project().join("b")).unwrap();
    denied(&env, &COPY, "PATH_IDENTITY_CHANGED");
    let victim = fs::read_to_string(env.root().join("victim")).unwrap();
    assert_eq!(victim, "untouched\n");
    // A directory on the way that becomes a link.
    fs::create_dir(env.project().join("deep")).unwrap();
    fs::create_dir(env.root().join("elsewhere")).unwrap();
    let deep = ["cp", "a", "deep/b"];
    permitted(&env, &deep);
    fs::remove_dir(env.project().join("deep")).unwrap();
    symlink("../elsewhere", env.project().join("deep")).unwrap();
    denied(&env, &deep, "PATH_IDENTITY_CHANGED");
    assert!(!env.root().join("elsewhere/b").exists());
    // As it was, it is let through.
    fs::remove_file(env.project().join("deep")).unwrap();
    fs::create_dir(env.project().join("deep")).unwrap();
    let hold = hold_of(&env, &deep);
    approve(&env, &hold);
    runs(&env, &deep);
}

#[test]
fn au_25_executable_changed() {
    let env = held();
    let words = ["./tool"];
    program(&env, "tool", b"#!/bin/sh\necho good >> log\n");
    permitted(&env, &words);
    program(&env, "tool", b"#!/bin/sh\necho evil >> log\n");
    denied(&env, &words, "EXECUTABLE_CHANGED");
    assert!(!is_there(&env, "log"));
    program(&env, "tool", b"#!/bin/sh\necho good >> log\n");
    permitted(&env, &words);
    runs(&env, &words);
    assert_eq!(lines(&env, "log"), 1);
    // A copy of a system program, and another one with the same name.
    let copy = env.project().join("binary");
    fs::copy("/bin/echo", &copy).unwrap();
    executable(&copy);
    permitted(&env, &["./binary", "x"]);
    fs::remove_file(&copy).unwrap();
    fs::copy("/bin/touch", &copy).unwrap();
    denied(&env, &["./binary", "x"], "EXECUTABLE_CHANGED");
    assert!(!is_there(&env, "x"));
}

/// The interpreter after `#!` runs the script, so a yes is a yes to that interpreter.
#[test]
fn au_25_interpreter_changed() {
    let env = held();
    let good = b"#!/bin/sh\nexec /bin/sh \"$@\"\n".as_slice();
    let evil = b"#!/bin/sh\necho evil >> log\n".as_slice();
    let path = format!(
        "{}:{}",
        env.project().join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let asked = |script: &str| {
        let mut command = exec_command(&env, &[], &[script]);
        command.env("PATH", &path);
        reply_of(&mut command)
    };
    for (script, first) in [
        ("./by_path", "#!bin/own".to_owned()),
        ("./by_env", "#!/usr/bin/env own".to_owned()),
        ("./split", "#!/usr/bin/env -S own -e".to_owned()),
        (
            "./chained",
            format!("#!{}/bin/next", env.project().display()),
        ),
    ] {
        program(&env, "bin/own", good);
        program(&env, "bin/next", b"#!bin/own\necho next >> log\n");
        program(
            &env,
            script,
            format!("{first}\necho good >> log\n").as_bytes(),
        );
        let (exit, reply) = asked(script);
        let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
        let shown = support::show(&env, &hold);
        let interpreters = &shown["canonical_form"]["tool"]["interpreters"];
        assert!(
            interpreters.to_string().contains("bin/own"),
            "{script}: {shown:#}"
        );
        approve(&env, &hold);
        program(&env, "bin/own", evil);
        let (exit, reply) = asked(script);
        is_denied(exit, &reply, "EXECUTABLE_CHANGED");
        assert!(!is_there(&env, "log"), "{script}");
        // The control: with the interpreter that was seen it runs.
        program(&env, "bin/own", good);
        let (exit, reply) = asked(script);
        approve(
            &env,
            &text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]),
        );
        let (code, reply) = asked(script);
        assert_eq!(code, 0, "{script}: {reply:#}");
        fs::remove_file(env.project().join("log")).unwrap();
    }
    // A script that a line starts, too.
    let line = ["sh", "-c", "./by_path; true"];
    program(&env, "bin/own", good);
    permitted(&env, &line);
    program(&env, "bin/own", evil);
    denied(&env, &line, "EXECUTABLE_CHANGED");
    assert!(!is_there(&env, "log"));
}

#[test]
fn au_25_directory_changed() {
    let env = held();
    let sub = env.project().join("sub");
    fs::create_dir(&sub).unwrap();
    let words = ["cp", "../a", "../b"];
    let within = |words: &[&str]| {
        let mut command = exec_command(&env, &[], words);
        command.current_dir(&sub);
        reply_of(&mut command)
    };
    let (exit, reply) = within(&words);
    let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    approve(&env, &hold);
    fs::rename(&sub, env.project().join("old")).unwrap();
    fs::create_dir(&sub).unwrap();
    let (exit, reply) = within(&words);
    is_denied(exit, &reply, "DIRECTORY_CHANGED");
    let (exit, reply) = within(&words);
    let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    approve(&env, &hold);
    let (exit, reply) = within(&words);
    assert_eq!(exit, 0, "{reply:#}");
}

#[test]
fn au_25_environment_changed() {
    let env = held();
    let asked = |value: &str| {
        let mut command = exec_command(&env, &[], &COPY);
        command.env("SOME_CHOICE", value);
        reply_of(&mut command)
    };
    let (exit, reply) = asked("one");
    let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    approve(&env, &hold);
    let (exit, reply) = asked("two");
    let denial = is_denied(exit, &reply, "ENVIRONMENT_CHANGED");
    let reason = text(&denial["reason"]);
    assert!(reason.ends_with(": `SOME_CHOICE` is another"), "{reason}");
    assert!(!is_there(&env, "b"));
    let (exit, reply) = asked("two");
    let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    approve(&env, &hold);
    assert_eq!(asked("two").0, 0);
    fs::remove_file(env.project().join("b")).unwrap();
    // The first yes is still good, for what it was given to.
    let (code, reply) = asked("one");
    assert_eq!(code, 0, "{reply:#}");
}

#[test]
fn au_25_a_secret_variable_that_changes_is_seen_and_not_shown() {
    let env = held();
    let asked = |value: &str| {
        let mut command = exec_command(&env, &[], &COPY);
        command.env("API_TOKEN", value);
        reply_of(&mut command)
    };
    let one = "hunter2-one-9f8e7d6c5b4a";
    let (exit, reply) = asked(one);
    let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    assert!(!support::show(&env, &hold).to_string().contains(one));
    approve(&env, &hold);
    let (exit, reply) = asked("hunter2-two-9f8e7d6c5b4a");
    let denial = is_denied(exit, &reply, "ENVIRONMENT_CHANGED");
    assert!(text(&denial["reason"]).contains("`API_TOKEN`"), "{denial}");
    assert!(!denial.to_string().contains("hunter2"), "{denial}");
    assert_eq!(asked(one).0, 0, "what was approved goes on");
}

#[test]
fn au_25_input_changed() {
    let env = held();
    permitted(&env, &COPY);
    // On a terminal the command would read what is typed: nobody has seen that.
    let run = env.run(&["exec", "--no-tui", "--", "cp", "a", "b"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("INPUT_CHANGED"), "{run:?}");
    assert!(!is_there(&env, "b"));
    permitted(&env, &COPY);
    runs(&env, &COPY);
}

#[test]
fn au_25_policy_changed() {
    let env = held();
    permitted(&env, &COPY);
    env.write("project/atlas.yaml", &HELD.replace("1.0.0", "1.0.1"));
    denied(&env, &COPY, "POLICY_CHANGED");
    assert!(!is_there(&env, "b"));
    permitted(&env, &COPY);
    runs(&env, &COPY);
    assert!(is_there(&env, "b"));
}

#[test]
fn au_30_trust_reset() {
    let env = held();
    permitted(&env, &COPY);
    let tool = format!("tool:{}", fs::canonicalize("/bin/cp").unwrap().display());
    env.json(&["trust", "revoke", &tool]);
    denied(&env, &COPY, "TRUST_RESET");
    assert!(!is_there(&env, "b"));
    permitted(&env, &COPY);
    // Trust in something else says nothing about this.
    env.json(&["trust", "revoke", "tool:/usr/bin/git"]);
    runs(&env, &COPY);
}

#[test]
fn au_24_permit_consumed() {
    let env = held();
    let permit = permitted(&env, &COPY);
    assert_eq!(permit_state(&env, &permit).0, "issued");
    runs_with(&env, &["--permit", &permit], &COPY);
    assert_eq!(
        permit_state(&env, &permit),
        ("consumed".to_owned(), Some("ok".to_owned()))
    );
    fs::remove_file(env.project().join("b")).unwrap();
    denied_with(&env, &["--permit", &permit], &COPY, "PERMIT_CONSUMED");
    assert!(!is_there(&env, "b"));
    let (code, reply) = run(&env, &["permit", "revoke", &permit]);
    assert_eq!(code, 9, "{reply}");
}

#[test]
fn au_24_permit_expired() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    let words = yes_to(&env, &hold, &[]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = env.command(&words);
    let (code, reply) = reply_of(command.env("SAFEPOINT_HOLD_TIMEOUT", "1us"));
    assert_eq!(code, 0, "{reply}");
    denied(&env, &COPY, "PERMIT_EXPIRED");
    assert!(!is_there(&env, "b"));
    permitted(&env, &COPY);
    runs(&env, &COPY);
}

#[test]
fn au_27_a_hold_that_nobody_decides_ends() {
    let env = held();
    let mut command = exec_command(&env, &[], &COPY);
    let (exit, reply) = reply_of(command.env("SAFEPOINT_HOLD_TIMEOUT", "1us"));
    let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    assert!(waiting(&env).is_empty());
    let (code, reply) = try_approve(&env, &hold, &[]);
    assert_eq!(code, 9, "{reply}");
    // Asked again it is another one, which somebody can still decide.
    let again = hold_of(&env, &COPY);
    assert_ne!(again, hold);
    approve(&env, &again);
    runs(&env, &COPY);
}

#[test]
fn au_24_permit_revoked() {
    let env = held();
    let permit = permitted(&env, &COPY);
    env.json(&["permit", "revoke", &permit]);
    denied_with(&env, &["--permit", &permit], &COPY, "PERMIT_REVOKED");
    assert!(!is_there(&env, "b"));
    let permit = permitted(&env, &COPY);
    runs_with(&env, &["--permit", &permit], &COPY);
}

#[test]
fn au_24_lineage_mismatch() {
    let env = held();
    let permit = permitted(&env, &COPY);
    let started = env.json(&["session", "start", "--atlas", "atlas.yaml"]);
    let session = text(&started["session_id"]);
    let other = ["--session", session.as_str(), "--permit", permit.as_str()];
    denied_with(&env, &other, &COPY, "LINEAGE_MISMATCH");
    assert!(!is_there(&env, "b"));
    // It does not even cost the owner their permit.
    assert_eq!(permit_state(&env, &permit).0, "issued");
    runs(&env, &COPY);
}

#[test]
fn au_24_a_permit_is_not_good_in_another_workspace() {
    let env = held();
    let permit = permitted(&env, &COPY);
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    for name in ["atlas.yaml", "safepoint.yaml", "a"] {
        fs::copy(env.project().join(name), other.join(name)).unwrap();
    }
    let mut command = exec_command(&env, &["--permit", &permit], &COPY);
    let (exit, reply) = reply_of(command.current_dir(&other));
    is_denied(exit, &reply, "LINEAGE_MISMATCH");
    // Nor under other rules, and its owner still has it.
    let rules = HELD.replace("1.0.0", "1.0.1");
    fs::write(other.join("atlas.yaml"), rules).unwrap();
    let mut command = exec_command(&env, &["--permit", &permit], &COPY);
    let (exit, reply) = reply_of(command.current_dir(&other));
    is_denied(exit, &reply, "LINEAGE_MISMATCH");
    assert!(!other.join("b").exists());
    runs(&env, &COPY);
}

#[test]
fn au_25_fingerprint_mismatch() {
    let env = held();
    let permit = permitted(&env, &COPY);
    let other = ["cp", "-p", "a", "b"];
    denied_with(&env, &["--permit", &permit], &other, "FINGERPRINT_MISMATCH");
    assert!(!is_there(&env, "b"));
    let permit = permitted(&env, &other);
    runs_with(&env, &["--permit", &permit], &other);
}

#[test]
fn au_24_outcome_unknown_after_a_crash() {
    let env = held();
    let words = ["sh", "-c", "echo run >> log"];
    let permit = permitted(&env, &words);
    let output = exec_command(&env, &[], &words)
        .env("SAFEPOINT_FAULT", "pass.ran")
        .output()
        .unwrap();
    assert!(output.status.code().is_none(), "{output:?}");
    denied_with(&env, &["--permit", &permit], &words, "OUTCOME_UNKNOWN");
    assert_eq!(
        permit_state(&env, &permit),
        ("consumed".to_owned(), Some("unknown".to_owned()))
    );
    assert_eq!(lines(&env, "log"), 1);
    assert_eq!(entries(&env, "action_ended").len(), 1);
    // Whoever wants it again asks again.
    permitted(&env, &words);
    runs(&env, &words);
    assert_eq!(lines(&env, "log"), 2);
    let other = permitted_with(&env, &[], &["cp", "a", "b"]);
    assert_eq!(permit_state(&env, &other).0, "issued");
    assert_sound(&env);
}
