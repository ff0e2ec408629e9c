//! Who decides, about what, and who does not: operators, their keys, and the agent itself.

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
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{
    HELD, OPEN, add, approve, approve_with, assert_sound, bare, denied, denied_with, entries,
    exec_with, held, hold_of, hold_with, permit_state, permitted, program, project, reply_of, run,
    runs, runs_with, show, text, try_approve, waiting, yes_to,
};
use testkit::TestEnv;

const COPY: [&str; 3] = ["cp", "a", "b"];

fn two_approvers() -> String {
    HELD.replace(
        r#"    reason: "Somebody looks at what is written""#,
        "    parameters: { approvers: 2 }\n    reason: \"Two people look at what is written\"",
    )
}

#[test]
fn au_20_the_fingerprint_that_was_displayed_is_echoed() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    let other = "0".repeat(64);
    let (code, reply) = run(&env, &["hold", "approve", &hold, "--fingerprint", &other]);
    assert_eq!(code, 9, "{reply}");
    let (code, reply) = run(&env, &["hold", "approve", &hold, "--fingerprint", "short"]);
    assert_eq!(code, 7, "{reply}");
    let (code, reply) = run(&env, &["hold", "approve", &hold]);
    assert_eq!(code, 7, "{reply}");
    denied(&env, &COPY, "APPROVAL_REQUIRED");
    assert_eq!(entries(&env, "approval_decision").len(), 0);
    approve(&env, &hold);
    runs(&env, &COPY);
}

#[test]
fn au_20_what_is_final_needs_a_second_confirmation() {
    let env = project(OPEN);
    let out = env.root().join("out").to_string_lossy().into_owned();
    let words = ["cp", "a", out.as_str()];
    let hold = hold_of(&env, &words);
    let shown = show(&env, &hold);
    assert_eq!(shown["reversibility_class"], "irreversible", "{shown:#}");
    let word = text(&shown["confirm"]);
    let print = text(&shown["fingerprint"]);
    let yes = ["hold", "approve", &hold, "--fingerprint", &print];
    let (code, reply) = run(&env, &yes);
    assert_eq!(code, 7, "{reply}");
    for wrong in ["y", "yes", "", "\n", &print] {
        let again = [&yes[..], &["--confirm", wrong]].concat();
        assert_eq!(run(&env, &again).0, 7, "{wrong:?}");
        // Saying it many times is saying it once.
        let many = env.run_with(&[&["--json"], &again[..]].concat(), b"y\ny\ny\ny\n\n\n");
        assert_eq!(many.code, 7, "{wrong:?}");
    }
    denied(&env, &words, "APPROVAL_REQUIRED");
    let both = [&yes[..], &["--confirm", &word]].concat();
    assert_eq!(run(&env, &both).0, 0);
    runs(&env, &words);
    assert!(env.root().join("out").exists());
}

#[test]
fn au_21_nobody_can_decide_where_there_is_no_operator() {
    let env = bare();
    env.write("project/atlas.yaml", HELD);
    env.write("project/safepoint.yaml", "atlases: [atlas.yaml]\n");
    env.write("project/a", "a\n");
    let hold = hold_of(&env, &COPY);
    let (code, reply) = try_approve(&env, &hold, &[]);
    assert_eq!(code, 6, "{reply}");
    assert_eq!(run(&env, &["hold", "deny", &hold]).0, 6);
    assert!(!env.project().join("b").exists());
    add(&env, "ann");
    approve(&env, &hold);
    runs(&env, &COPY);
}

#[test]
fn au_21_nobody_becomes_the_first_operator_by_taking_the_others_away() {
    for change in [
        "DELETE FROM control_documents WHERE kind = 'operator'",
        "UPDATE control_documents SET is_open = 0 WHERE kind = 'operator'",
    ] {
        let env = project(HELD);
        let store = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
        assert_eq!(store.execute(change, []).unwrap(), 1);
        let (code, reply) = run(&env, &["operator", "add", "eve"]);
        assert_eq!(code, 2, "{reply}");
        assert!(reply.to_string().contains("ann"), "{reply}");
    }
}

#[test]
fn au_13_holds_of_several_projects_are_listed_under_their_names() {
    let env = project(HELD);
    hold_of(&env, &COPY);
    let alone = env.run(&["hold", "list"]).stdout;
    assert!(
        !alone.contains("\nin ") && !alone.starts_with("in "),
        "{alone}"
    );
    for name in ["atlas.yaml", "safepoint.yaml", "a"] {
        let text = std::fs::read_to_string(env.project().join(name)).unwrap();
        env.write(&format!("second/{name}"), &text);
    }
    let second = env.root().join("second");
    let there = ["-C", second.to_str().unwrap(), "exec", "--no-tui", "--"];
    assert_eq!(env.run(&[&there[..], &COPY].concat()).code, 2);
    let both = env.run(&["hold", "list"]).stdout;
    let places: Vec<&str> = both
        .lines()
        .filter(|line| line.starts_with("in "))
        .collect();
    assert_eq!(places.len(), 2, "{both}");
    assert!(places[1].ends_with("/second"), "{both}");
}

#[test]
fn au_21_two_distinct_operators() {
    let env = project(&two_approvers());
    add(&env, "bernd");
    let hold = hold_of(&env, &COPY);
    assert_eq!(show(&env, &hold)["quorum"], 2);
    let (code, _) = try_approve(&env, &hold, &[]);
    assert_eq!(code, 6, "it must be said who decides");
    let first = approve_with(&env, &hold, &["--operator", "ann"]);
    assert_eq!(
        (&first["state"], &first["permit"]),
        (&json!("pending"), &Value::Null)
    );
    denied(&env, &COPY, "APPROVAL_REQUIRED");
    let (code, reply) = try_approve(&env, &hold, &["--operator", "ann"]);
    assert_eq!(code, 9, "{reply}");
    denied(&env, &COPY, "APPROVAL_REQUIRED");
    assert_eq!(show(&env, &hold)["decided_by"], json!(["ann"]));
    let second = approve_with(&env, &hold, &["--operator", "bernd"]);
    assert!(second["permit"].is_object(), "{second}");
    runs(&env, &COPY);
    assert_sound(&env);
}

#[test]
fn au_23_one_operator_does_not_widen_what_two_must_agree_to() {
    let env = project(&two_approvers());
    add(&env, "bernd");
    let hold = hold_of(&env, &COPY);
    let scope = env.project().canonicalize().unwrap();
    let envelope = json!({
        "actions": ["file.*"], "paths": [scope], "side_effects": ["read", "write", "exec"],
    });
    let envelope = envelope.to_string();
    approve_with(&env, &hold, &["--operator", "ann"]);
    let wide = ["--operator", "bernd", "--envelope", envelope.as_str()];
    let (code, reply) = try_approve(&env, &hold, &wide);
    assert_eq!(code, 9, "{reply}");
    approve_with(&env, &hold, &["--operator", "bernd"]);
    runs(&env, &COPY);
    hold_of(&env, &["cp", "a", "c"]);
    // Together they can.
    let hold = text(&waiting(&env)[0]["hold_id"]);
    let ann = ["--operator", "ann", "--envelope", envelope.as_str()];
    approve_with(&env, &hold, &ann);
    approve_with(&env, &hold, &wide);
    runs(&env, &["cp", "a", "c"]);
    runs(&env, &["cp", "a", "d"]);
}

/// An envelope that one person gave is no answer to a rule that wants two.
#[test]
fn au_23_an_envelope_does_not_get_past_a_quorum() {
    let rules = r#"  - policy_id: "two"
    type: requires_approval
    actions: ["file.chmod"]
    parameters: { approvers: 2 }
    reason: "Two people look at modes"
"#;
    let env = project(&format!("{HELD}{rules}"));
    let hold = hold_of(&env, &COPY);
    let scope = env.project().canonicalize().unwrap();
    let envelope = json!({
        "actions": ["file.*"], "paths": [scope], "side_effects": ["read", "write", "exec"],
    });
    approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    runs(&env, &COPY);
    runs(&env, &["cp", "a", "c"]);
    let hold = hold_of(&env, &["chmod", "600", "a"]);
    assert_eq!(show(&env, &hold)["quorum"], 2);
}

struct SshAgent {
    socket: String,
    process: i32,
}

impl SshAgent {
    /// A real agent, which is listening when this returns.
    fn start(env: &TestEnv) -> Self {
        let socket = env.root().join("agent").to_string_lossy().into_owned();
        let output = Command::new("ssh-agent")
            .args(["-a", &socket])
            .output()
            .unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let process = told.split("SSH_AGENT_PID=").nth(1).unwrap();
        let process = process.split(';').next().unwrap().parse().unwrap();
        Self { socket, process }
    }

    fn add_key(&self, env: &TestEnv, name: &str) {
        let file = env.root().join(name).to_string_lossy().into_owned();
        let made = ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &file];
        assert!(
            Command::new("ssh-keygen")
                .args(made)
                .status()
                .unwrap()
                .success()
        );
        let mut command = Command::new("ssh-add");
        command
            .args(["-q", &file])
            .env("SSH_AUTH_SOCK", &self.socket);
        assert!(command.status().unwrap().success());
    }
}

impl Drop for SshAgent {
    fn drop(&mut self) {
        let process = Pid::from_raw(self.process).unwrap();
        let _ = kill_process(process, Signal::TERM);
    }
}

#[test]
fn au_21_a_key_in_an_ssh_agent_decides() {
    let env = bare();
    env.write("project/atlas.yaml", HELD);
    env.write("project/safepoint.yaml", "atlases: [atlas.yaml]\n");
    env.write("project/a", "a\n");
    let agent = SshAgent::start(&env);
    agent.add_key(&env, "first@desk");
    agent.add_key(&env, "second@desk");
    let with = |words: &[&str]| {
        let mut command = env.command(&[&["--json"], words].concat());
        reply_of(command.env("SSH_AUTH_SOCK", &agent.socket))
    };
    let (code, reply) = with(&["operator", "add", "ann", "--ssh"]);
    assert_ne!(code, 0, "which of the two? {reply}");
    let (code, reply) = with(&["operator", "add", "ann", "--ssh", "--ssh-key", "second"]);
    assert_eq!(code, 0, "{reply}");
    assert_eq!(reply["held"], "ssh_agent");
    let hold = hold_of(&env, &COPY);
    // Without the agent nobody signs.
    let (code, _) = try_approve(&env, &hold, &[]);
    assert_eq!(code, 6);
    denied(&env, &COPY, "APPROVAL_REQUIRED");
    let words = yes_to(&env, &hold, &[]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, reply) = with(&words[1..]);
    assert_eq!(code, 0, "{reply}");
    runs(&env, &COPY);
    // The signature is a plain Ed25519 note: the public key alone checks it.
    let note = text(&reply["decision"]);
    let key = env.json(&["operator", "list"])["operators"][0]["key"].clone();
    let key: safepoint_trail::note::PublicKey = text(&key).parse().unwrap();
    assert!(key.open(&note).is_ok());
    assert!(key.open(&note.replace("continue", "modified")).is_err());
}

#[test]
fn au_21_a_decision_in_the_trail_is_verified_offline() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    approve(&env, &hold);
    let entry = &entries(&env, "approval_decision")[0];
    assert_eq!(entry["actor"], "operator:ann");
    let note = text(&entry["body"]["decision"]);
    let key = text(&env.json(&["operator", "list"])["operators"][0]["key"]);
    let key: safepoint_trail::note::PublicKey = key.parse().unwrap();
    let statement: Value = serde_json::from_str(key.open(&note).unwrap()).unwrap();
    assert_eq!(statement["hold_id"], hold.as_str());
    assert_eq!(statement["choice"], "continue");
    assert_eq!(statement["fingerprint"], show(&env, &hold)["fingerprint"]);
}

#[test]
fn au_21_somebody_elses_key_does_not_sign_for_an_operator() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    let other = bare();
    add(&other, "ann");
    let key = other.home().join("data/operators/ann.key");
    let key = key.to_string_lossy().into_owned();
    let (code, reply) = try_approve(&env, &hold, &["--operator", "ann", "--key", &key]);
    assert_eq!(code, 6, "{reply}");
    denied(&env, &COPY, "APPROVAL_REQUIRED");
    assert_eq!(entries(&env, "approval_decision").len(), 0);
}

#[test]
fn au_21_an_operator_who_is_removed_takes_their_approvals_along() {
    let env = held();
    let permit = permitted(&env, &COPY);
    env.json(&["operator", "remove", "ann"]);
    denied(&env, &COPY, "PERMIT_REVOKED");
    assert!(!env.project().join("b").exists());
    assert_eq!(permit_state(&env, &permit).0, "void");
    // Somebody else is asked, and the one who is gone cannot decide.
    add(&env, "bernd");
    let hold = hold_of(&env, &COPY);
    let (code, reply) = try_approve(&env, &hold, &["--operator", "ann"]);
    assert_eq!(code, 8, "{reply}");
    approve_with(&env, &hold, &["--operator", "bernd"]);
    runs(&env, &COPY);
}

/// A name that is given again, with another key, does not make the old signatures good.
#[test]
fn au_21_the_same_name_with_another_key_is_somebody_else() {
    let env = held();
    permitted(&env, &COPY);
    env.json(&["operator", "remove", "ann"]);
    fs::remove_file(env.home().join("data/operators/ann.key")).unwrap();
    add(&env, "ann");
    let (code, reply) = exec_with(&env, &[], &COPY);
    assert_ne!(code, 0, "{reply:#}");
    assert!(!env.project().join("b").exists());
    // And that is not the end of it: it can be asked for anew.
    let hold = hold_of(&env, &COPY);
    approve(&env, &hold);
    runs(&env, &COPY);
}

fn store(env: &TestEnv) -> rusqlite::Connection {
    rusqlite::Connection::open(env.home().join("data/store.db")).unwrap()
}

#[test]
fn au_26_a_hold_that_was_changed_behind_our_back_is_not_used() {
    for (from, to) in [
        ("\"quorum\":1", "\"quorum\":0"),
        ("\"b\"", "\"c\""),
        ("content", "kontent"),
        ("ses_", "ses-"),
    ] {
        let env = held();
        permitted(&env, &COPY);
        let changed = store(&env).execute(
            "UPDATE control_documents SET state = replace(state, ?1, ?2) WHERE kind = 'hold'",
            [from, to],
        );
        assert_eq!(changed.unwrap(), 1);
        let (code, reply) = exec_with(&env, &[], &COPY);
        let same = from == "content";
        match same {
            // A replacement that finds nothing changes nothing: the check itself is checked.
            true => assert_eq!(code, 0, "{reply:#}"),
            false => {
                assert_eq!(code, 2, "{from}: {reply:#}");
                assert_eq!(reply["error"]["code"], "F520", "{from}: {reply:#}");
                assert!(!env.project().join("b").exists() && !env.project().join("c").exists());
            }
        }
    }
}

#[test]
fn au_26_a_permit_that_was_made_behind_our_back_is_not_used() {
    let env = held();
    let permit = permitted(&env, &COPY);
    runs(&env, &COPY);
    fs::remove_file(env.project().join("b")).unwrap();
    // The used permit is put back as it was when it was issued.
    let sql = "UPDATE control_documents SET is_open = 1, \
               state = json_set(state, '$.state', json('{\"is\":\"issued\"}')) WHERE kind = 'permit'";
    assert_eq!(store(&env).execute(sql, []).unwrap(), 1);
    let (code, reply) = exec_with(&env, &["--permit", &permit], &COPY);
    assert_eq!(
        (code, &reply["error"]["code"]),
        (2, &json!("F520")),
        "{reply:#}"
    );
    assert!(!env.project().join("b").exists());
    // Nor an operator whom nobody added.
    let env = held();
    let sql = "INSERT INTO control_documents SELECT kind, 'eve', time, is_open, topic, \
               replace(state, '\"ann\"', '\"eve\"') FROM control_documents WHERE kind = 'operator'";
    assert_eq!(store(&env).execute(sql, []).unwrap(), 1);
    let hold = hold_of(&env, &COPY);
    let (code, reply) = try_approve(&env, &hold, &["--operator", "eve"]);
    assert_eq!(
        (code, &reply["error"]["code"]),
        (2, &json!("F520")),
        "{reply:#}"
    );
}

/// Runs this line as an agent's script would be, and gives what the line left in `code`.
fn as_agent(env: &TestEnv, flags: &[&str], line: &str) -> String {
    program(env, "agent.sh", format!("#!/bin/sh\n{line}\n").as_bytes());
    let _ = fs::remove_file(env.project().join("code"));
    let (code, reply) = exec_with(env, flags, &["./agent.sh"]);
    assert_eq!(code, 0, "{reply:#}");
    fs::read_to_string(env.project().join("code"))
        .unwrap()
        .trim()
        .to_owned()
}

#[test]
fn au_21_the_agent_cannot_decide_about_its_own_action() {
    let env = project(OPEN);
    let out = env.root().join("out").to_string_lossy().into_owned();
    let hold = hold_of(&env, &["cp", "a", &out]);
    let yes = yes_to(&env, &hold, &[]);
    let home = env.home();
    let home = home.display();
    let yes = format!("{} {}", env!("CARGO_BIN_EXE_safepoint"), yes.join(" "));
    let given = format!("SAFEPOINT_HOME={home} PATH=/usr/bin:/bin HOME=/nowhere");
    let lines = [
        format!("{yes} > said 2>&1; echo $? > code"),
        format!("SAFEPOINT_HOME={home} {yes} > said 2>&1; echo $? > code"),
        format!("env -i {given} {yes} > said 2>&1; echo $? > code"),
        // One that lets go of its parents.
        format!(
            "env -i {given} setsid -f sh -c '{yes} > said 2>&1; echo $? > code.new; mv code.new code'\nwhile [ ! -e code ]; do :; done"
        ),
        format!(
            "{} --json operator add eve > said 2>&1; echo $? > code",
            env!("CARGO_BIN_EXE_safepoint")
        ),
        format!(
            "env -i {given} {} --json trust grant path:/ > said 2>&1; echo $? > code",
            env!("CARGO_BIN_EXE_safepoint")
        ),
    ];
    for line in &lines {
        // In the fence it does not even find the store; without one it is told why not.
        let code = as_agent(&env, &[], line);
        assert_ne!(code, "0", "{line}");
        let code = as_agent(&env, &["--no-fence"], line);
        let said = fs::read_to_string(env.project().join("said")).unwrap();
        assert_ne!(code, "0", "{line}: {said}");
        if line.contains("SAFEPOINT_HOME=") {
            assert_eq!(code, "6", "{line}: {said}");
            assert!(said.contains("an agent cannot decide"), "{line}: {said}");
        }
    }
    assert_eq!(waiting(&env).len(), 1);
    assert_eq!(entries(&env, "approval_decision").len(), 0);
    assert_eq!(
        env.json(&["operator", "list"])["operators"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // Whoever is not the agent can.
    approve(&env, &hold);
    runs(&env, &["cp", "a", &out]);
}

#[test]
fn au_13_holds_are_decided_one_after_another_oldest_first() {
    let env = held();
    let names = ["one", "two", "three"];
    let holds: Vec<String> = names
        .iter()
        .map(|name| hold_of(&env, &["cp", "a", name]))
        .collect();
    let listed: Vec<String> = waiting(&env)
        .iter()
        .map(|it| text(&it["hold_id"]))
        .collect();
    assert_eq!(listed, holds);
    let (code, reply) = try_approve(&env, &holds[1], &[]);
    assert_eq!(code, 9, "{reply}");
    assert_eq!(reply["error"]["location"], holds[0].as_str());
    approve(&env, &holds[0]);
    approve(&env, &holds[1]);
    // A no needs no turn: it lets nothing happen.
    hold_of(&env, &["cp", "a", "four"]);
    let four = text(&waiting(&env)[1]["hold_id"]);
    assert_eq!(run(&env, &["hold", "deny", &four]).0, 0);
    approve(&env, &holds[2]);
    for name in names {
        runs(&env, &["cp", "a", name]);
    }
}

#[test]
fn au_22_every_further_step_asks_until_an_envelope_is_given() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    let reply = approve_with(&env, &hold, &["--per-step"]);
    assert_eq!(reply["choice"], "per_step");
    runs(&env, &COPY);
    let hold = hold_of(&env, &["cat", "a"]);
    assert_eq!(show(&env, &hold)["checkpoint_type"], "every_step");
    approve(&env, &hold);
    runs(&env, &["cat", "a"]);
    // Still: a yes to one step is not the end of it. Nor is a flag of the agent's.
    hold_of(&env, &["cat", "a"]);
    let workspace = format!("path:{}", env.project().canonicalize().unwrap().display());
    env.json(&["trust", "grant", &workspace, "--level", "elevated"]);
    denied_with(
        &env,
        &["--checkpoint", "never"],
        &["cat", "a"],
        "MODE_REFUSED",
    );
    let hold = hold_of(&env, &["cat", "a"]);
    let envelope = r#"{"actions": ["file.read"], "side_effects": ["read"]}"#;
    approve_with(&env, &hold, &["--envelope", envelope]);
    runs(&env, &["cat", "a"]);
    runs(&env, &["cat", "a"]);
}

#[test]
fn au_11_always_asks_before_everything() {
    let env = held();
    runs(&env, &["cat", "a"]);
    let always = ["--checkpoint", "always"];
    let hold = hold_with(&env, &always, &["cat", "a"]);
    assert_eq!(show(&env, &hold)["checkpoint_type"], "every_step");
    approve(&env, &hold);
    runs_with(&env, &always, &["cat", "a"]);
    hold_with(&env, &always, &["cat", "a"]);
    runs(&env, &["cat", "a"]);
}

#[test]
fn au_23_an_envelope_bounds_what_runs_without_asking() {
    let env = held();
    let root = env.project().canonicalize().unwrap();
    let hold = hold_of(&env, &COPY);
    let envelope = json!({
        "actions": ["file.read", "file.write"], "paths": [root.join("in")],
        "side_effects": ["read", "write", "exec"], "uses": 2,
    });
    fs::create_dir(root.join("in")).unwrap();
    let reply = approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    assert_eq!(reply["choice"], "modify");
    runs(&env, &COPY);
    // What needs nobody uses nothing up.
    runs(&env, &["cat", "a"]);
    for name in ["in/1", "in/2"] {
        assert_eq!(runs(&env, &["cp", "a", name])["decision"], "allow");
    }
    let hold = hold_of(&env, &["cp", "a", "in/3"]);
    assert_eq!(show(&env, &hold)["scope_delta"]["used_up"], true);
    approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    runs(&env, &["cp", "a", "in/3"]);
    // What does not fit names exactly what is new.
    let hold = hold_of(&env, &["cp", "a", "d"]);
    let delta = show(&env, &hold)["scope_delta"].clone();
    assert_eq!(delta["paths"], json!([root.join("d")]), "{delta}");
    assert_eq!(
        (&delta["actions"], &delta["used_up"]),
        (&json!([]), &json!(false))
    );
    assert_eq!(run(&env, &["hold", "deny", &hold]).0, 0);
    // And nothing is wider after it than before.
    denied(&env, &["cp", "a", "d"], "OPERATOR_DENIED");
    runs(&env, &["cp", "a", "in/4"]);
}

/// What a script does its words do not tell, so the fence keeps it to the envelope's paths.
#[test]
fn au_23_an_envelope_holds_a_program_to_its_paths() {
    let rules = HELD.replace("\"process.exec\", ", "");
    let allowed = "  - {policy_id: \"scripts\", type: allow, actions: [\"process.exec\"], reason: \"Fine\"}\n";
    for rules in [HELD.to_owned(), format!("{rules}{allowed}")] {
        let env = project(&rules);
        let root = env.project().canonicalize().unwrap();
        fs::create_dir(root.join("src")).unwrap();
        fs::create_dir(root.join("docs")).unwrap();
        let outside = env.root().join("outside");
        let script = format!(
            "#!/bin/sh\necho x > src/made\necho x > docs/made\necho x > {}\ntrue\n",
            outside.display()
        );
        program(&env, "src/tool", script.as_bytes());
        let hold = hold_of(&env, &COPY);
        let envelope = json!({
            "actions": ["file.*", "process.exec"], "paths": [root.join("src")],
            "side_effects": ["read", "write", "exec"],
        });
        approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
        let flow = json!({
            "name": "flow",
            "envelope": {"actions": ["process.exec"], "paths": ["src"], "side_effects": ["exec"]},
            "steps": [{"id": "build", "argv": ["src/tool"]}],
        });
        env.write("project/flow.yaml", &flow.to_string());
        runs(&env, &COPY);
        let made = |name: &str| root.join(name).exists();
        if rules == HELD {
            assert_eq!(runs(&env, &["src/tool"])["decision"], "allow");
            assert!(made("src/made") && !made("docs/made") && !outside.exists());
            fs::remove_file(root.join("src/made")).unwrap();
        }
        let start = ["run", "flow.yaml", "--objective", "see", "--no-tui"];
        let (code, reply) = run(&env, &start);
        assert_eq!(code, 0, "{reply:#}");
        assert!(made("src/made") && !made("docs/made") && !outside.exists());
    }
}

/// What an operator widens a workflow's scope to, its next steps may do.
#[test]
fn au_22_an_envelope_lets_a_workflow_go_on() {
    let env = project(OPEN);
    let root = env.project().canonicalize().unwrap();
    env.write(
        "project/flow.yaml",
        "name: flow\nenvelope: {actions: [file.read], side_effects: [read]}\nsteps:\n  \
         - {id: one, argv: [touch, one]}\n  - {id: two, argv: [touch, two]}\n  \
         - {id: three, argv: [chmod, u+x, one]}\n",
    );
    let start = ["run", "flow.yaml", "--objective", "see", "--no-tui"];
    let (code, reply) = run(&env, &start);
    assert_eq!(code, 2, "{reply:#}");
    let hold = text(&reply["denial"]["hold_id"]);
    assert_eq!(
        show(&env, &hold)["scope_delta"]["actions"],
        json!(["file.write"])
    );
    let envelope = json!({
        "actions": ["file.read", "file.write"], "paths": [root],
        "side_effects": ["read", "write", "exec"],
    });
    approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    let (code, reply) = run(&env, &start);
    assert_eq!(code, 2, "{reply:#}");
    let outcomes: Vec<String> = reply["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| text(&step["outcome"]))
        .collect();
    assert_eq!(outcomes, ["ok", "ok", "denied"], "{reply:#}");
    let hold = text(&reply["denial"]["hold_id"]);
    assert_eq!(
        show(&env, &hold)["scope_delta"]["actions"],
        json!(["file.chmod"])
    );
}

#[test]
fn au_23_an_envelope_ends_with_the_rules_it_was_given_under() {
    let env = held();
    let hold = hold_of(&env, &COPY);
    let root = env.project().canonicalize().unwrap();
    let envelope = json!({
        "actions": ["file.*"], "paths": [root], "side_effects": ["read", "write", "exec"],
    });
    approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    runs(&env, &["cp", "a", "c"]);
    env.write("project/atlas.yaml", &HELD.replace("1.0.0", "1.0.1"));
    let hold = hold_of(&env, &["cat", "a"]);
    let shown = show(&env, &hold);
    assert_eq!(shown["checkpoint_type"], "policy_boundary", "{shown:#}");
    approve(&env, &hold);
    runs(&env, &["cat", "a"]);
    hold_of(&env, &["cp", "a", "d"]);
}

/// Trust is for a program's content, not for a name that anybody can put something else under.
#[test]
fn au_30_a_trusted_script_with_other_content_is_not_trusted() {
    let rules = HELD.replace(
        "    reason: \"Somebody looks at what is written\"",
        "    unless: [trusted]\n    reason: \"Until it is trusted\"",
    );
    let env = project(&rules);
    let tool = |content: &str| program(&env, "tool", content.as_bytes());
    let good = "#!/bin/sh\necho good > log\n";
    tool(good);
    let path = env.project().canonicalize().unwrap().join("tool");
    let boundary = format!("tool:{}", path.display());
    hold_of(&env, &["./tool"]);
    let granted = env.json(&["trust", "grant", &boundary]);
    assert_eq!(granted["content"][0]["path"], path.to_str().unwrap());
    runs(&env, &["./tool"]);
    tool("#!/bin/sh\necho evil > log\n");
    let hold = hold_of(&env, &["./tool"]);
    assert_eq!(show(&env, &hold)["trust_state"][&boundary], "untrusted");
    assert_eq!(
        fs::read_to_string(env.project().join("log")).unwrap(),
        "good\n"
    );
    let listed = env.json(&["trust", "list"]);
    assert_eq!(listed["trust"][0]["content"], granted["content"]);
    tool(good);
    runs(&env, &["./tool"]);
    // Another interpreter is other content, too.
    program(&env, "own", b"#!/bin/sh\nexec /bin/sh \"$@\"\n");
    tool(&format!(
        "#!{}\necho good > log\n",
        path.with_file_name("own").display()
    ));
    hold_of(&env, &["./tool"]);
    env.json(&["trust", "grant", &boundary]);
    runs(&env, &["./tool"]);
    program(&env, "own", b"#!/bin/sh\necho evil > log\n");
    hold_of(&env, &["./tool"]);
    // What is not here has no content.
    assert_ne!(run(&env, &["trust", "grant", "tool:/nowhere/tool"]).0, 0);
}

#[test]
fn au_30_trust_grows_by_the_evidence_a_policy_names_and_only_there() {
    let rules = HELD.replace(
        r#"    reason: "Somebody looks at what is written""#,
        "    unless: [trusted]\n    parameters: { trust_after: 2 }\n    reason: \"Until it has proven itself\"",
    );
    let env = project(&rules);
    let level = |env: &TestEnv| {
        let list = env.json(&["trust", "list"]);
        let all = list["trust"].as_array().unwrap().clone();
        let tool = all.iter().find(|it| text(&it["boundary"]).ends_with("/cp"));
        tool.map(|it| (text(&it["level"]), it["version"].as_u64().unwrap()))
    };
    assert_eq!(level(&env), None);
    for name in ["1", "2"] {
        permitted(&env, &["cp", "a", name]);
        runs(&env, &["cp", "a", name]);
    }
    assert_eq!(level(&env), Some(("trusted".to_owned(), 2)));
    assert_eq!(runs(&env, &["cp", "a", "3"])["decision"], "allow");
    // It never transfers.
    hold_of(&env, &["tee", "4"]);
    // The first violation takes it all.
    let read = ["--declare", "read"];
    denied_with(&env, &read, &["cp", "a", "x"], "CLASS_UNDECLARED");
    assert_eq!(level(&env), Some(("untrusted".to_owned(), 3)));
    hold_of(&env, &["cp", "a", "5"]);
    let told: Vec<Value> = entries(&env, "trust_changed");
    let told: Vec<&str> = told
        .iter()
        .map(|it| it["body"]["event"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["evidence", "evidence", "violation"]);
}

#[test]
fn au_10_another_provider_is_asked_about() {
    let env = project(OPEN);
    runs_with(&env, &["--provider", "acme"], &["cat", "a"]);
    runs_with(&env, &["--provider", "acme"], &["cat", "a"]);
    let other = ["--provider", "other"];
    let hold = hold_with(&env, &other, &["cat", "a"]);
    assert_eq!(show(&env, &hold)["checkpoint_type"], "provider_change");
    approve(&env, &hold);
    runs_with(&env, &other, &["cat", "a"]);
    runs_with(&env, &other, &["cat", "a"]);
}

/// The notices that were given up, of one kind: a webhook in a private network gets none.
fn given_up(env: &TestEnv, kind: &str) -> Vec<Value> {
    let failed = entries(env, "NotificationFailed").into_iter();
    failed.filter(|it| it["body"]["type"] == kind).collect()
}

#[test]
fn ga_43_an_approval_against_a_policy_is_told_to_its_steward() {
    let steward = r#"
steward:
  id: "acme"
  notifications:
    channels: { webhook: "https://127.0.0.1:1/hook" }
    triggers: [policy_override]
"#;
    let env = project(&format!("{HELD}{steward}"));
    let kind = "dev.safepoint.policy_override";
    let hold = hold_of(&env, &COPY);
    assert_eq!(run(&env, &["hold", "deny", &hold]).0, 0);
    assert_eq!(env.run(&["session", "deliver"]).code, 0);
    assert_eq!(given_up(&env, kind), Vec::<Value>::new());
    let hold = hold_of(&env, &["cp", "a", "c"]);
    approve(&env, &hold);
    // The delivery that the approval has started may be at it: then ours leaves it alone.
    let told = (0..1_000).find_map(|_| {
        assert_eq!(env.run(&["session", "deliver"]).code, 0);
        given_up(&env, kind).pop()
    });
    let told = told.expect("the steward is told");
    assert_eq!(told["body"]["webhook"], "https://127.0.0.1:1");
    assert_eq!(given_up(&env, kind).len(), 1);
    assert_sound(&env);
}

#[test]
fn au_13_a_list_counts_all_that_waits_and_goes_on_where_it_ended() {
    let env = held();
    let holds: Vec<String> = (0..5)
        .map(|number| hold_of(&env, &["cp", "a", &format!("b{number}")]))
        .collect();
    let ids = |reply: &Value| -> Vec<String> {
        let listed = reply["holds"].as_array().unwrap().iter();
        listed.map(|hold| text(&hold["hold_id"])).collect()
    };
    let page = |rest: &[&str]| env.json(&[&["hold", "list", "--limit", "2"], rest].concat());
    let first = page(&[]);
    assert_eq!(
        (ids(&first), &first["total"]),
        (holds[..2].to_vec(), &json!(5))
    );
    assert_eq!(first["next"], holds[1].as_str());
    // Only the oldest of a session can be approved; the others name it.
    assert_eq!(first["holds"][0].get("waits_for"), None);
    assert_eq!(first["holds"][1]["waits_for"], holds[0].as_str());
    assert_eq!(show(&env, &holds[3])["waits_for"], holds[0].as_str());
    let second = page(&["--after", &holds[1]]);
    assert_eq!(ids(&second), holds[2..4]);
    // Where it ended may be decided meanwhile.
    env.json(&["hold", "deny", &holds[3]]);
    let third = page(&["--after", &holds[3]]);
    assert_eq!(
        (ids(&third), &third["next"]),
        (holds[4..].to_vec(), &Value::Null)
    );
    // A page of nothing has no next one.
    assert_eq!(env.run(&["hold", "list", "--limit", "0"]).code, 7);
    let text_of = env.run(&["hold", "list", "--limit", "1"]).stdout;
    assert!(text_of.contains("3 more"), "{text_of}");
    // The same for all of them, the newest first.
    let all = page(&["--all"]);
    assert_eq!(
        (all["holds"].as_array().unwrap().len(), &all["total"]),
        (2, &json!(5))
    );
    let last = text(&all["next"]);
    let older = page(&["--all", "--after", &last]);
    assert_eq!(older["holds"].as_array().unwrap().len(), 2);
    assert!(!ids(&older).contains(&last));
}

#[test]
fn au_41_what_an_agent_is_told_has_no_command_that_is_forbidden_to_it() {
    let mut env = held();
    let (exit, reply) = exec_with(&env, &[], &COPY);
    assert_eq!(exit, 2);
    let hold = text(&reply["denial"]["hold_id"]);
    let next = text(&reply["denial"]["next"]);
    assert!(
        next.contains("a person has to approve") && next.contains(&hold),
        "{next}"
    );
    let for_person = env.run(&["hold", "show", &hold]).stdout;
    assert!(
        for_person.contains("safepoint hold approve"),
        "{for_person}"
    );
    let session = text(&reply["session_id"]);
    env.set("SAFEPOINT_AGENT", "1");
    env.set("SAFEPOINT_SESSION", &session);
    let for_agent = env.run(&["hold", "show", &hold]).stdout;
    let mut told = format!("{reply}{for_agent}");
    told.push_str(&env.run(&["exec", "--no-tui", "--", "cp", "a", "b"]).stderr);
    for forbidden in [
        "hold approve",
        "hold deny",
        "hold halt",
        "trust grant",
        "operator add",
    ] {
        assert!(!told.contains(forbidden), "{forbidden}: {told}");
    }
    assert!(
        for_agent.contains("a person has to approve it"),
        "{for_agent}"
    );
}
