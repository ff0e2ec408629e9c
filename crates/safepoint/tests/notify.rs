//! Operators are told, through the binary: what waits, what was decided, and that nobody did.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/passage.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use safepoint_control::notify::FAULT_POINTS;
use serde_json::{Value, json};
use support::{
    approve, assert_sound, denied, entries, exec_command, held, hold_of, is_denied, reply_of, run,
    text, try_approve,
};
use testkit::TestEnv;

const WORDS: [&str; 3] = ["sh", "-c", "echo run >> log"];

/// One request as it came.
#[derive(Clone, Debug)]
struct Request {
    headers: BTreeMap<String, String>,
    body: String,
}

impl Request {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn kind(&self) -> String {
        text(&self.json()["type"])
    }
}

/// Takes everything that is posted to it.
struct Inbox {
    url: String,
    requests: Receiver<Request>,
}

impl Inbox {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!(
            "http://127.0.0.1:{}/very-secret-path",
            listener.local_addr().unwrap().port()
        );
        let (send, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // One that goes away in between is what some tests are about.
                let _ = take(stream.unwrap(), &send);
            }
        });
        Self { url, requests }
    }

    /// The next request, which must come.
    #[track_caller]
    fn next(&self) -> Request {
        let longest = Duration::from_secs(60);
        self.requests.recv_timeout(longest).unwrap()
    }

    /// All that have come.
    fn all(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

fn take(mut stream: TcpStream, send: &Sender<Request>) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).ok()?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lines = head.lines().skip(1).filter_map(|it| it.split_once(": "));
            let headers: BTreeMap<String, String> = lines
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            if body.len() >= headers["content-length"].parse().unwrap() {
                let body = body.to_owned();
                // It is there before it is answered: whoever was answered finds it.
                send.send(Request { headers, body }).ok()?;
                let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
                return stream.write_all(answer).ok();
            }
        }
        if count == 0 {
            return None;
        }
    }
}

/// Keeps deliveries beside the commands from happening, so that the test makes them.
fn alone(env: &TestEnv) -> File {
    let place = env.write("home/runtime/deliver.lock", "");
    let file = File::open(place).unwrap();
    file.lock().unwrap();
    file
}

#[track_caller]
fn add(env: &TestEnv, inbox: &Inbox) -> Value {
    env.json(&[
        "notify",
        "add",
        "ops",
        "--webhook",
        &inbox.url,
        "--allow-private",
        "--secret-file",
        "../secret",
    ])
}

#[track_caller]
fn deliver(env: &TestEnv) -> Value {
    env.json(&["notify", "deliver"])
}

#[test]
fn su_10_a_hold_and_its_end_are_told_to_a_webhook() {
    let env = held();
    let _alone = alone(&env);
    let inbox = Inbox::new();
    let added = add(&env, &inbox);
    assert_eq!(added["channel"], "webhook");
    let hold = hold_of(&env, &WORDS);
    assert_eq!(deliver(&env)["arrived"], 1);
    let opened = inbox.next();
    assert_eq!(opened.kind(), "dev.safepoint.hold.opened");
    let data = opened.json()["data"].clone();
    assert_eq!(data["hold_id"], hold.as_str());
    assert_eq!(data["command"], format!("safepoint hold show {hold}"));
    assert_eq!(data["page"], Value::Null);
    let shown = env.json(&["hold", "show", &hold]);
    assert_eq!(data["entry"]["fingerprint"], shown["fingerprint"]);

    env.json(&["hold", "deny", &hold, "--reason", "not today"]);
    assert_eq!(deliver(&env)["arrived"], 1);
    assert_eq!(inbox.next().kind(), "dev.safepoint.hold.denied");
    assert_eq!(deliver(&env)["arrived"], 0);

    let listed = env.json(&["notify", "list"]);
    assert_eq!(listed["targets"][0]["attempts"], 0);
    assert_eq!(env.json(&["notify", "test", "ops"])["delivered"], true);
    assert_eq!(inbox.next().kind(), "dev.safepoint.test");
    env.json(&["notify", "remove", "ops"]);
    assert_eq!(env.json(&["notify", "list"]), json!({"targets": []}));
    assert_sound(&env);
}

/// The check that the page on notifications shows, run as it stands there.
#[test]
fn su_10_the_documented_check_of_a_signature_works() {
    let env = held();
    let _alone = alone(&env);
    let inbox = Inbox::new();
    add(&env, &inbox);
    hold_of(&env, &WORDS);
    deliver(&env);
    let Request { headers, body } = inbox.next();
    let page = include_str!("../../../docs/notifications.md");
    let code = page
        .split("```python\n")
        .filter_map(|part| part.split_once("\n```"))
        .map(|(code, _)| code)
        .find(|code| code.contains("def verify_webhook"))
        .unwrap();
    let script = format!(
        "{code}\nimport json, sys\ngiven = json.load(sys.stdin)\n\
         verify_webhook(given['secret'], given['headers'], given['body'].encode(), int(given['headers']['webhook-timestamp']))\n"
    );
    let secret = std::fs::read_to_string(env.root().join("secret")).unwrap();
    let checks = |body: &str, secret: &str| {
        let given = json!({"secret": secret.trim(), "headers": headers, "body": body});
        let mut child = Command::new("python3")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = given.to_string();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(input.as_bytes()).unwrap();
        drop(pipe);
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() || told.contains("ValueError"),
            "{told}"
        );
        output.status.success()
    };
    assert!(checks(&body, &secret));
    assert!(!checks(
        &body.replace("hold.opened", "hold.approved"),
        &secret
    ));
    assert!(!checks(&body, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
}

/// Lets the claim of a process that is gone run out.
fn time_passes(env: &TestEnv) {
    let store = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    store
        .execute("UPDATE control_tellings SET due = 0", [])
        .unwrap();
}

#[test]
fn su_10_killed_anywhere_it_is_delivered_once_more_with_the_same_id() {
    for point in FAULT_POINTS {
        let env = held();
        let _alone = alone(&env);
        let inbox = Inbox::new();
        add(&env, &inbox);
        hold_of(&env, &WORDS);
        let mut command = env.command(&["notify", "deliver"]);
        let output = command.env("SAFEPOINT_FAULT", point).output().unwrap();
        assert_eq!(output.status.signal(), Some(9), "{point} is not passed");
        let before = inbox.all();
        assert_eq!(
            before.len(),
            usize::from(point != "notify.claimed"),
            "{point}"
        );
        let again = u64::from(point != "notify.marked");
        if again == 1 {
            assert_eq!(
                deliver(&env)["arrived"],
                0,
                "{point}: somebody may be at it"
            );
        }
        time_passes(&env);
        assert_eq!(deliver(&env)["arrived"], again, "{point}");
        let mut requests = before;
        requests.extend(inbox.all());
        let ids: Vec<&String> = requests
            .iter()
            .map(|it| &it.headers["webhook-id"])
            .collect();
        assert!(
            !ids.is_empty() && ids.iter().all(|id| *id == ids[0]),
            "{point}: {ids:?}"
        );
        assert_sound(&env);
    }
}

#[test]
fn su_10_many_processes_deliver_each_message_once() {
    let env = held();
    let _alone = alone(&env);
    let inbox = Inbox::new();
    add(&env, &inbox);
    for number in 0..4 {
        hold_of(&env, &["sh", "-c", &format!("echo {number} >> log")]);
    }
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = env.command(&["notify", "deliver", "--json"]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    deliver(&env);
    let ids: Vec<String> = inbox
        .all()
        .iter()
        .map(|request| request.headers["webhook-id"].clone())
        .collect();
    let pending: Vec<String> = entries(&env, "checkpoint_pending")
        .iter()
        .map(|entry| text(&entry["id"]))
        .collect();
    assert_eq!(ids, pending, "each once, and in order");
}

#[test]
fn su_10_silence_is_a_denial_and_is_told() {
    let mut env = held();
    env.set("SAFEPOINT_HOLD_TIMEOUT", "1ms");
    let _alone = alone(&env);
    let inbox = Inbox::new();
    add(&env, &inbox);
    let hold = hold_of(&env, &WORDS);
    // Nobody looks; the next round of deliveries finds it.
    let round = deliver(&env);
    assert_eq!(round["expired"], json!([hold]));
    assert_eq!(round["arrived"], 2);
    let kinds = [inbox.next().kind(), inbox.next().kind()];
    assert_eq!(
        kinds,
        ["dev.safepoint.hold.opened", "dev.safepoint.hold.expired"]
    );
    let silent = |env: &TestEnv| {
        let mut denials = entries(env, "action_denied");
        denials.retain(|it| it["body"]["code"] == "TIMED_OUT");
        denials
    };
    assert_eq!(silent(&env).len(), 1);
    assert_eq!(silent(&env)[0]["body"]["hold_id"], hold.as_str());
    assert_eq!(env.json(&["hold", "show", &hold])["state"], "expired");
    assert_eq!(deliver(&env)["expired"], json!([]), "once");
    // A late yes changes nothing.
    let (code, reply) = try_approve(&env, &hold, &[]);
    assert_eq!(code, 9, "{reply}");
    // Asking again is another hold; the one before was recorded by whoever came next.
    let second = hold_of(&env, &WORDS);
    assert_ne!(second, hold);
    let third = hold_of(&env, &WORDS);
    assert_ne!(third, second);
    assert_eq!(silent(&env).len(), 2, "by whoever asks again");
    env.json(&["hold", "list"]);
    assert_eq!(silent(&env).len(), 3, "by whoever looks");
    assert_sound(&env);
}

#[test]
fn su_10_whoever_waits_for_longer_than_the_hold_is_denied_once() {
    let mut env = held();
    env.set("SAFEPOINT_HOLD_TIMEOUT", "1ms");
    let mut waiting = env.command(&[
        "exec",
        "--no-tui",
        "--json",
        "--wait",
        "30s",
        "--",
        "sh",
        "-c",
        "echo run >> log",
    ]);
    let waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    // Whoever looks ends the hold, and with it the waiting.
    let mut ended = Vec::new();
    while ended.is_empty() {
        ended = entries(&env, "action_denied");
        ended.retain(|it| it["body"]["code"] == "TIMED_OUT");
        env.json(&["hold", "list"]);
    }
    let output = waiting.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{reply}");
    assert_eq!(reply["denial"]["code"], "TIMED_OUT", "{reply}");
    assert_eq!(
        entries(&env, "checkpoint_pending").len(),
        1,
        "it is not asked again"
    );
}

#[test]
fn su_10_an_agents_command_is_told_of_without_anybody_else_doing_anything() {
    let env = held();
    let inbox = Inbox::new();
    add(&env, &inbox);
    hold_of(&env, &WORDS);
    assert_eq!(inbox.next().kind(), "dev.safepoint.hold.opened");
}

#[test]
fn su_10_no_agent_changes_who_is_told() {
    let mut env = held();
    let _alone = alone(&env);
    let inbox = Inbox::new();
    add(&env, &inbox);
    env.set("SAFEPOINT_AGENT", "1");
    for words in [
        &["notify", "add", "mine", "--desktop"][..],
        &["notify", "remove", "ops"],
        &["notify", "test", "ops"],
        &["notify", "watch", "--once"],
    ] {
        let (code, reply) = run(&env, words);
        assert_ne!(code, 0, "{words:?}");
        assert_eq!(reply["error"]["name"], "ACCESS_DENIED", "{reply}");
    }
    let program = env!("CARGO_BIN_EXE_safepoint");
    denied(
        &env,
        &[program, "notify", "remove", "ops"],
        "CONTROL_FORBIDDEN",
    );
    assert!(inbox.all().is_empty());
    assert_eq!(env.json(&["notify", "list"])["targets"][0]["name"], "ops");
}

#[test]
fn su_10_nothing_secret_is_shown_and_no_escape_sequences_without_a_terminal() {
    let env = held();
    let _alone = alone(&env);
    let inbox = Inbox::new();
    let added = add(&env, &inbox).to_string();
    env.write("address", &inbox.url);
    env.json(&[
        "notify",
        "add",
        "room",
        "--slack",
        "@../address",
        "--allow-private",
    ]);
    env.json(&[
        "notify",
        "add",
        "me",
        "--desktop",
        "--on",
        "holds,decisions",
    ]);
    hold_of(&env, &WORDS);
    let (code, reply) = run(&env, &["notify", "test", "me"]);
    assert_eq!((code, &reply["delivered"]), (1, &json!(false)), "{reply}");
    let secret = std::fs::read_to_string(env.root().join("secret")).unwrap();
    let mut shown = added;
    for words in [
        &["notify", "list"][..],
        &["notify", "list", "--json"],
        &["notify", "deliver"],
        &["notify", "watch", "me", "--once"],
        &["trail", "list", "--json"],
        &["audit", "--json"],
    ] {
        let run = env.run(words);
        assert_eq!(run.code, 0, "{words:?}: {run:?}");
        assert!(
            !run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'),
            "{run:?}"
        );
        assert!(!run.stderr.contains('\u{7}'), "{run:?}");
        shown.push_str(&run.stdout);
        shown.push_str(&run.stderr);
    }
    assert!(shown.contains("http://127.0.0.1"), "{shown}");
    assert!(!shown.contains("very-secret-path") && !shown.contains(secret.trim()));
    let events = env.run(&["notify", "watch", "--once", "--json"]).stdout;
    let event: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(event["event"], "hold.opened");
    // The secret is for its owner alone.
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(env.root().join("secret"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    // A project cannot say where people are led to decide.
    env.write(
        "project/safepoint.yaml",
        "public_url: https://evil.example\n",
    );
    assert_eq!(env.run(&["notify", "list"]).code, 7);
}

/// Whatever a value looks like: nobody knows which of them are secrets.
#[test]
fn su_10_no_value_of_a_variable_is_sent_shown_or_recorded() {
    let env = held();
    let _alone = alone(&env);
    let inbox = Inbox::new();
    add(&env, &inbox);
    env.write("address", &inbox.url);
    let room = ["notify", "add", "room", "--slack", "@../address"];
    env.json(&[&room[..], &["--allow-private"]].concat());
    let asked = |pin: &str| {
        let mut command = exec_command(&env, &[], &WORDS);
        command.env("DEPLOY_PIN", pin);
        command.env("COMPANY_LICENSE", "ABCD-plain-words");
        reply_of(&mut command)
    };
    let (exit, reply) = asked("99887766");
    let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    assert_eq!(deliver(&env)["arrived"], 2);
    let mut shown = reply.to_string();
    for message in inbox.all() {
        assert!(message.body.contains("DEPLOY_PIN"), "{}", message.body);
        shown.push_str(&message.body);
    }
    approve(&env, &hold);
    // The digest is bound: another value is found, and told by its name alone.
    let (exit, reply) = asked("11223344");
    let denial = is_denied(exit, &reply, "ENVIRONMENT_CHANGED");
    assert!(text(&denial["reason"]).contains("`DEPLOY_PIN`"), "{denial}");
    shown.push_str(&reply.to_string());
    // What was approved runs with the values of whoever asks.
    assert_eq!(asked("99887766").0, 0);
    for words in [
        &["hold", "show", &hold][..],
        &["hold", "show", &hold, "--json"],
        &["hold", "list", "--all", "--json"],
        &["trail", "list", "--json", "--limit", "1000"],
        &["trail", "export", "--format", "jsonl"],
        &["trail", "export", "--format", "ocsf"],
    ] {
        let run = env.run(words);
        assert_eq!(run.code, 0, "{words:?}: {run:?}");
        shown.push_str(&run.stdout);
    }
    for value in ["99887766", "11223344", "ABCD-plain-words"] {
        assert!(!shown.contains(value), "{value} is shown");
    }
    assert_sound(&env);
}
