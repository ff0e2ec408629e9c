//! Several at once, and a world that changes between a yes and the deed. The counts are
//! small here; `scripts/passage-campaign` makes them large.

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
use std::process::{Child, Stdio};

use serde_json::Value;
use support::{
    HELD, approve, assert_sound, entries, exec_command, executable, held, is_denied, lines,
    permit_state, permitted, program, reply_of, rounds, run, runs, text, waiting,
};
use testkit::{Seeded, TestEnv};

const WORDS: [&str; 3] = ["sh", "-c", "echo run >> log"];

fn started(env: &TestEnv, words: &[&str]) -> Child {
    let mut command = exec_command(env, &[], words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[track_caller]
fn ended(child: Child) -> (i32, Value) {
    let output = child.wait_with_output().unwrap();
    let reply = serde_json::from_slice(&output.stdout);
    let reply = reply.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap_or(-1), reply)
}

/// Nothing that waits stands in the way of the next round.
fn deny_all(env: &TestEnv) {
    for hold in waiting(env) {
        let hold = text(&hold["hold_id"]);
        assert_eq!(run(env, &["hold", "deny", &hold]).0, 0);
    }
}

#[test]
fn au_24_two_at_once_and_one_permit() {
    let env = held();
    for round in 1..=rounds(5) {
        // Another line each time: what was denied in one round is not asked for in the next.
        let line = format!("echo {round} >> log");
        let words = ["sh", "-c", line.as_str()];
        let permit = permitted(&env, &words);
        let all: Vec<Child> = (0..3).map(|_| started(&env, &words)).collect();
        let all: Vec<(i32, Value)> = all.into_iter().map(ended).collect();
        let done = all.iter().filter(|(code, _)| *code == 0).count();
        assert_eq!(done, 1, "round {round}: {all:#?}");
        assert_eq!(lines(&env, "log"), round, "round {round}: {all:#?}");
        for (code, reply) in all.iter().filter(|(code, _)| *code != 0) {
            assert_eq!(*code, 2, "{reply:#}");
            assert!(reply["denial"].is_object(), "{reply:#}");
        }
        assert_eq!(permit_state(&env, &permit).0, "consumed");
        deny_all(&env);
    }
    let intended = entries(&env, "action_intended").len();
    assert_eq!(intended, entries(&env, "action_ended").len());
    assert_sound(&env);
}

/// Whoever came second asks anew, as an action of its own.
#[test]
fn au_24_the_one_who_lost_can_ask_again() {
    let env = held();
    permitted(&env, &WORDS);
    let all: Vec<Child> = (0..3).map(|_| started(&env, &WORDS)).collect();
    all.into_iter().for_each(|child| drop(ended(child)));
    while let Some(hold) = waiting(&env).first() {
        approve(&env, &text(&hold["hold_id"]));
    }
    let before = lines(&env, "log");
    let (code, _) = reply_of(&mut exec_command(&env, &[], &WORDS));
    let expected = before + usize::from(code == 0);
    assert_eq!(lines(&env, "log"), expected);
    // As many actions as effects, each told of once.
    let log = env.json(&["log"]);
    // What one of them noticed while another wrote is told of as such.
    let mut ids: Vec<String> = log["actions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["outcome"] != "observed")
        .map(|it| text(&it["action_id"]))
        .collect();
    assert_eq!(ids.len(), expected, "{log:#}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), expected, "{log:#}");
    assert_sound(&env);
}

/// The same, where nothing it names is changed by it: then the second yes is good, too.
#[test]
fn au_24_an_action_is_done_once_under_its_name() {
    let env = held();
    let words = ["cp", "a", "b"];
    env.write("project/b", "content of a\n");
    let mut effects = 0;
    for round in 0..rounds(4) {
        permitted(&env, &words);
        let all: Vec<Child> = (0..3).map(|_| started(&env, &words)).collect();
        let all: Vec<(i32, Value)> = all.into_iter().map(ended).collect();
        effects += all.iter().filter(|(code, _)| *code == 0).count();
        while let Some(hold) = waiting(&env).first() {
            approve(&env, &text(&hold["hold_id"]));
            let (code, reply) = reply_of(&mut exec_command(&env, &[], &words));
            // One that looked while another wrote has seen half of it.
            let late = reply["denial"]["code"] == "TARGET_CHANGED";
            assert!(code == 0 || late, "round {round}: {reply:#}");
            effects += usize::from(code == 0);
        }
    }
    let ended = entries(&env, "action_ended");
    let mut ids: Vec<String> = ended.iter().map(|it| text(&it["action_id"])).collect();
    assert_eq!(ids.len(), effects);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), effects, "{ended:#?}");
    assert_sound(&env);
}

/// A hold that still waits does not lend its name to what is allowed meanwhile, again and again.
#[test]
fn au_24_what_is_allowed_while_a_hold_waits_has_names_of_its_own() {
    let env = support::project(support::OPEN);
    let words = ["sh", "-c", "echo run >> log"];
    let hold = support::hold_with(&env, &["--checkpoint", "always"], &words);
    let first = text(&runs(&env, &words)["action_id"]);
    let second = text(&runs(&env, &words)["action_id"]);
    assert_ne!(first, second);
    assert_eq!(lines(&env, "log"), 2);
    assert_eq!(run(&env, &["hold", "deny", &hold]).0, 0);
    assert_sound(&env);
}

#[test]
fn au_13_the_same_proposal_twice_at_once_is_one_hold() {
    let mut env = held();
    for round in 0..rounds(6) {
        if round % 2 == 0 {
            // Nobody has worked here yet: all three would begin a session.
            env = held();
        }
        let name = format!("b{round}");
        let words = ["cp", "a", name.as_str()];
        let all: Vec<Child> = (0..3).map(|_| started(&env, &words)).collect();
        let holds: Vec<String> = all
            .into_iter()
            .map(|child| {
                let (exit, reply) = ended(child);
                text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"])
            })
            .collect();
        assert!(
            holds.iter().all(|hold| *hold == holds[0]),
            "round {round}: {holds:?}"
        );
        assert_eq!(waiting(&env).len(), 1, "round {round}");
        deny_all(&env);
    }
    assert_sound(&env);
}

/// A program that is exchanged for another one of the same name at any moment.
#[test]
fn au_25_a_binary_is_the_one_that_was_approved() {
    let env = held();
    let place = env.project();
    let (good, evil) = (env.root().join("good"), env.root().join("evil"));
    fs::copy("/bin/cp", &good).unwrap();
    fs::copy("/bin/ln", &evil).unwrap();
    [&good, &evil].into_iter().for_each(|path| executable(path));
    let put = |from: &std::path::Path| {
        fs::copy(from, env.root().join("next")).unwrap();
        fs::rename(env.root().join("next"), place.join("tool")).unwrap();
    };
    let words = ["./tool", "a", "b"];
    let random = Seeded::new(30);
    let (mut ran, mut refused) = (0, 0);
    for _ in 0..rounds(12) {
        put(&good);
        let _ = fs::remove_file(place.join("b"));
        permitted(&env, &words);
        let child = started(&env, &words);
        // Somewhere between its first look and its end.
        for _ in 0..random.next() % 30_000 {
            std::thread::yield_now();
        }
        put(&evil);
        let (code, reply) = ended(child);
        // `ln` would have made another name of the same file.
        match code {
            0 => {
                use std::os::unix::fs::MetadataExt;
                ran += 1;
                let inode = |name: &str| fs::metadata(place.join(name)).unwrap().ino();
                assert_ne!(inode("a"), inode("b"), "the other one ran: {reply:#}");
            }
            _ => {
                refused += 1;
                assert!(!place.join("b").exists(), "{reply:#}");
            }
        }
        deny_all(&env);
        // One that failed before anything was decided has left its permit.
        for permit in env.json(&["permit", "list"])["permits"].as_array().unwrap() {
            if permit["state"]["is"] == "issued" {
                env.json(&["permit", "revoke", &text(&permit["permit_id"])]);
            }
        }
    }
    assert!(ran + refused > 0);
    assert_sound(&env);
}

/// A script that is exchanged for another one at any moment, by renaming or by writing to it.
#[test]
fn au_25_a_script_is_the_one_that_was_approved() {
    use std::os::unix::fs::MetadataExt;
    let env = held();
    let place = env.project();
    let (good, evil) = ("#!/bin/sh\ncp a b\n", "#!/bin/sh\nln a b\n");
    let put = |text: &str, by_renaming: bool| {
        let next = env.root().join("next");
        let tool = place.join("tool.sh");
        if by_renaming {
            fs::write(&next, text).unwrap();
            executable(&next);
            fs::rename(&next, &tool).unwrap();
        } else {
            fs::write(&tool, text).unwrap();
        }
    };
    let random = Seeded::new(31);
    let (mut ran, mut refused) = (0, 0);
    for round in 0..rounds(12) {
        let words: &[&str] = match round % 2 {
            0 => &["./tool.sh"],
            _ => &["sh", "tool.sh"],
        };
        put(good, true);
        let _ = fs::remove_file(place.join("b"));
        permitted(&env, words);
        let child = started(&env, words);
        // Somewhere between its first look and its end.
        for _ in 0..random.next() % 30_000 {
            std::thread::yield_now();
        }
        put(evil, round % 4 < 2);
        let (code, reply) = ended(child);
        if code == 0 {
            ran += 1;
            let inode = |name: &str| fs::metadata(place.join(name)).unwrap().ino();
            assert_ne!(inode("a"), inode("b"), "the other one ran: {reply:#}");
        } else {
            refused += 1;
            assert!(!place.join("b").exists(), "{reply:#}");
        }
        deny_all(&env);
        for permit in env.json(&["permit", "list"])["permits"].as_array().unwrap() {
            if permit["state"]["is"] == "issued" {
                env.json(&["permit", "revoke", &text(&permit["permit_id"])]);
            }
        }
    }
    println!("{ran} ran, {refused} were refused");
    // The control: one that nobody touches runs.
    put(good, true);
    let _ = fs::remove_file(place.join("b"));
    permitted(&env, &["sh", "tool.sh"]);
    runs(&env, &["sh", "tool.sh"]);
    assert!(place.join("b").exists());
    assert_sound(&env);
}

/// One that needs its name is opened by it: that it was touched meanwhile is told.
#[test]
fn au_25_a_script_that_is_touched_while_it_runs_is_told_of() {
    let env = held();
    for (text, touched) in [
        ("#!/bin/sh\necho \"$0\" > b\n", 0),
        ("#!/bin/sh\necho '# x' >> \"$0\"\n", 1),
        // The interpreter has this one in memory.
        ("#!/bin/sh\necho '# x' >> tool.sh\n", 0),
    ] {
        program(&env, "tool.sh", text.as_bytes());
        permitted(&env, &["./tool.sh"]);
        let reply = runs(&env, &["./tool.sh"]);
        assert_eq!(
            reply["exchanged"].as_array().unwrap().len(),
            touched,
            "{text}"
        );
    }
    // By its name it knows where it lies.
    let said = fs::read_to_string(env.project().join("b")).unwrap();
    assert!(
        said.ends_with("/tool.sh\n") && !said.contains("/proc/"),
        "{said}"
    );
}

/// What can change between a yes and the deed.
#[derive(Clone, Copy, Debug)]
enum Swap {
    Nothing,
    Content,
    Target,
    Link,
    Script,
    Binary,
    Environment,
    Policy,
}

const SWAPS: [(Swap, &str); 8] = [
    (Swap::Nothing, ""),
    (Swap::Content, "TARGET_CHANGED"),
    (Swap::Target, "PATH_IDENTITY_CHANGED"),
    (Swap::Link, "PATH_IDENTITY_CHANGED"),
    (Swap::Script, "EXECUTABLE_CHANGED"),
    (Swap::Binary, "EXECUTABLE_CHANGED"),
    (Swap::Environment, "ENVIRONMENT_CHANGED"),
    (Swap::Policy, "POLICY_CHANGED"),
];

#[test]
fn au_25_nothing_unapproved_happens_whatever_is_exchanged() {
    let env = held();
    let random = Seeded::new(20);
    env.write("victim", "untouched\n");
    let place = env.project();
    for round in 0..rounds(16) {
        // Each of them at least once, then as it comes.
        let choice = if round < SWAPS.len() {
            round
        } else {
            random.next() as usize % SWAPS.len()
        };
        let (swap, code) = SWAPS[choice];
        env.write("project/a", &format!("content {round}\n"));
        let _ = fs::remove_file(place.join("b"));
        let words: &[&str] = match swap {
            Swap::Script | Swap::Binary => &["./tool", "a", "b"],
            _ => &["cp", "a", "b"],
        };
        program(&env, "tool", b"#!/bin/sh\ncp \"$1\" \"$2\"\n");
        if let Swap::Binary = swap {
            fs::copy("/bin/cp", place.join("tool")).unwrap();
        }
        let permit = permitted(&env, words);
        let mut command = exec_command(&env, &[], words);
        match swap {
            Swap::Nothing => {}
            Swap::Content => drop(env.write("project/a", "evil\n")),
            Swap::Target => drop(env.write("project/b", "in the way\n")),
            Swap::Link => symlink("../victim", place.join("b")).unwrap(),
            Swap::Script => program(&env, "tool", b"#!/bin/sh\necho evil > b\n"),
            Swap::Binary => drop(fs::copy("/bin/ln", place.join("tool")).unwrap()),
            Swap::Environment => drop(command.env("PATH", "/evil:/usr/bin:/bin")),
            Swap::Policy => {
                let version = format!("1.0.{}", round + 1);
                env.write("project/atlas.yaml", &HELD.replace("1.0.0", &version));
            }
        }
        let (exit, reply) = reply_of(&mut command);
        if let Swap::Nothing = swap {
            assert_eq!(exit, 0, "round {round}: {reply:#}");
            let copied = fs::read_to_string(place.join("b")).unwrap();
            assert_eq!(copied, format!("content {round}\n"));
        } else {
            is_denied(exit, &reply, code);
            let made = fs::read_to_string(place.join("b")).unwrap_or_default();
            let expected = match swap {
                Swap::Target => "in the way\n",
                Swap::Link => "untouched\n",
                _ => "",
            };
            assert_eq!(made, expected, "round {round}: {swap:?}");
        }
        let victim = fs::read_to_string(env.root().join("victim")).unwrap();
        assert_eq!(victim, "untouched\n", "round {round}: {swap:?}");
        // With other variables it is another wish: the yes stays good for what it was given to.
        if let Swap::Environment = swap {
            assert_eq!(support::permit_state(&env, &permit).0, "issued");
            env.json(&["permit", "revoke", &permit]);
        }
        deny_all(&env);
    }
    runs(&env, &["true"]);
    assert_sound(&env);
}

/// A link that somebody puts in the place of the one that was seen leads to another program.
#[test]
fn au_25_a_link_that_leads_elsewhere_is_another_program() {
    let env = held();
    let place = |name: &str| env.project().join(name);
    program(&env, "one", b"#!/bin/sh\necho \"$0\" >> log\n");
    program(&env, "other", b"#!/bin/sh\necho \"$0\" >> forged\n");
    symlink("one", place("tool")).unwrap();
    let words = ["./tool"];
    permitted(&env, &words);
    fs::remove_file(place("tool")).unwrap();
    symlink("other", place("tool")).unwrap();
    let (code, reply) = reply_of(&mut exec_command(&env, &[], &words));
    is_denied(code, &reply, "EXECUTABLE_CHANGED");
    assert!(!place("forged").exists() && !place("log").exists());
    // As it was, and approved anew, it runs under the name it was called by.
    fs::remove_file(place("tool")).unwrap();
    symlink("one", place("tool")).unwrap();
    permitted(&env, &words);
    let (code, reply) = reply_of(&mut exec_command(&env, &[], &words));
    assert_eq!(code, 0, "{reply:#}");
    assert_eq!(reply["exchanged"].to_string(), "[]", "{reply:#}");
    assert_eq!(fs::read_to_string(place("log")).unwrap(), "./tool\n");
}
