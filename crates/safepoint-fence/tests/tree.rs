//! Real processes that part from their parents.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start processes, and stop where they fail"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use safepoint_fence::{
    Membership, Process, ancestors, become_subreaper, is_within, membership, reap_orphans,
};

/// A shell that runs a script and tells us one number.
struct Shell {
    child: Child,
    stdin: Option<ChildStdin>,
    told: u32,
}

fn shell(script: &str) -> Shell {
    let mut child = Command::new("/bin/sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    Shell {
        stdin: child.stdin.take(),
        told: line.trim().parse().unwrap(),
        child,
    }
}

impl Shell {
    fn end(mut self) {
        drop(self.stdin.take());
        self.child.wait().unwrap();
    }
}

#[test]
fn au_42_ancestors_lead_from_a_grandchild_to_us() {
    let me = Process::look(std::process::id()).unwrap();
    let shell = shell("sh -c 'echo $$; read end'; exit");
    let chain = ancestors(shell.told);
    let pids: Vec<u32> = chain.iter().map(|one| one.pid).collect();
    assert_eq!(pids.first(), Some(&shell.told));
    let ours = pids.iter().position(|pid| *pid == me.pid);
    assert!(matches!(ours, Some(1..=2)), "{chain:?}");
    assert!(
        chain
            .windows(2)
            .all(|pair| pair.first().unwrap().parent == pair.last().unwrap().pid)
    );
    assert!(
        chain
            .windows(2)
            .all(|pair| pair.first().unwrap().started >= pair.last().unwrap().started)
    );
    assert!(is_within(&me, shell.told));
    assert!(is_within(&me, me.pid));
    shell.end();
}

#[test]
fn au_42_others_are_outside_and_those_gone_are_unknown() {
    let me = Process::look(std::process::id()).unwrap();
    let shell = shell("echo $$; read end");
    let other = Process::look(shell.told).unwrap();
    assert_eq!(membership(&other, me.pid), Membership::Outside);
    assert_eq!(membership(&me, me.parent), Membership::Outside);
    // The same number at another time is another process.
    let mut earlier = me.clone();
    earlier.started -= 1;
    assert_eq!(membership(&earlier, other.pid), Membership::Outside);
    assert!(!is_within(&earlier, other.pid));
    shell.end();
    assert_eq!(membership(&me, other.pid), Membership::Unknown);
    assert!(ancestors(other.pid).is_empty());
    assert!(ancestors(0).is_empty());
}

#[test]
fn au_42_a_process_may_call_itself_anything() {
    let shell = shell("exec perl -e '$0 = \") Z 1 (\"; $| = 1; print \"$$\\n\"; <STDIN>'");
    let process = Process::look(shell.told).unwrap();
    assert_eq!(process.name, ") Z 1 (");
    assert_eq!(process.parent, std::process::id());
    assert!(!process.has_ended());
    shell.end();
}

#[test]
fn au_42_a_daemon_stays_in_the_tree_of_a_subreaper() {
    // In a process of its own: it concerns all children of a process.
    let program = std::env::current_exe().unwrap();
    let run = |keeps: &str| {
        Command::new(&program)
            .args(["--exact", "subreaper", "--ignored"])
            .env("KEEPS", keeps)
            .status()
            .unwrap()
    };
    assert!(run("yes").success());
    assert!(run("no").success());
}

#[test]
#[ignore = "started by another test"]
fn subreaper() {
    let keeps = std::env::var("KEEPS").unwrap() == "yes";
    if keeps {
        become_subreaper().unwrap();
    }
    let me = Process::look(std::process::id()).unwrap();
    // A shell whose child starts a session, whose child outlives them both.
    let script = "exec 3<&0; (setsid sh -c '(sh -c \"echo \\$\\$; read end\" <&3 &)' &) ; wait";
    let mut shell = shell(script);
    let daemon = shell.told;
    assert!(shell.child.wait().unwrap().success());
    // Those between may still be going: they share its session.
    let session = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        Some(fields.split_whitespace().nth(3)?.to_owned())
    };
    let settled = || {
        let above = ancestors(daemon).into_iter().skip(1);
        let above: Vec<_> = above.map(|one| session(one.pid)).collect();
        !above.is_empty() && !above.contains(&session(daemon))
    };
    while !settled() {
        std::thread::yield_now();
    }
    let expected = if keeps {
        Membership::Within
    } else {
        Membership::Outside
    };
    assert_eq!(membership(&me, daemon), expected);

    shell.stdin.take().unwrap().write_all(b"end\n").unwrap();
    if keeps {
        let mut reaped = 0;
        while Process::look(daemon).is_some() {
            reaped += reap_orphans(|pid| pid != daemon);
        }
        assert_eq!(reaped, 1);
    }
}
