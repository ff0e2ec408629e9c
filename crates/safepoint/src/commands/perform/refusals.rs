//! What the fence refused, in words: the agent reads them after the output of its line, where all
//! it saw was a permission error.
//!
//! Each says that it was the fence, what was refused, and what to do. How something is approved is
//! no business of the agent's.

use std::path::Path;

use safepoint_control::pass::{ReachRecord, RefusedTarget};
use safepoint_fence::{builds_sandbox, is_written_in_passing};
use safepoint_model::text;

/// So many refusals are told to whoever reads the output; the record has more.
const MAX_REFUSALS_TOLD: usize = 10;

/// What a program does about a sandbox that it cannot build.
const SANDBOX_ADVICE: &str = "bwrap, rootless containers and the sandbox of Chromium do not work behind the fence, and no approval opens it. Start Chromium, Electron and Playwright with `--no-sandbox` (by hand also with `--user-data-dir=$(mktemp -d)`): the fence holds them. What cannot do without has to be run by a person";

/// What was refused inside the fence, and what to do about it.
pub(crate) fn refusals_in_words(record: &ReachRecord) -> Vec<String> {
    let is_sandbox = |it: &&RefusedTarget| it.target.is_empty() && builds_sandbox(&it.action);
    let sandbox: Vec<&RefusedTarget> = record.refused.iter().filter(is_sandbox).collect();
    let home = crate::world::home_of_user();
    let is_missed = |it: &&RefusedTarget| {
        let path = Path::new(&it.target);
        let mut homes = home.iter();
        !homes.any(|home| is_written_in_passing(home, path))
    };
    let others = record.refused.iter().filter(|it| !is_sandbox(it));
    let others = others.filter(is_missed);
    let mut lines: Vec<String> = others
        .clone()
        .take(MAX_REFUSALS_TOLD)
        .map(in_words)
        .collect();
    if !sandbox.is_empty() {
        // A program tries one call after another: that is one refusal.
        let calls: Vec<String> = sandbox
            .iter()
            .map(|it| format!("`{}`", it.action))
            .collect();
        let calls = calls.join(", ");
        lines.insert(
            0,
            format!("Safepoint's fence refused a sandbox of its own ({calls}): {SANDBOX_ADVICE}"),
        );
    }
    if let more @ 1.. = others.count().saturating_sub(MAX_REFUSALS_TOLD) {
        lines.push(format!("Safepoint's fence refused {more} more"));
    }
    lines
}

fn in_words(refused: &RefusedTarget) -> String {
    let target = text::line(&refused.target).text;
    let action = &refused.action;
    let what = match (target.is_empty(), action.contains(' ')) {
        (false, _) => format!("{action} {target}"),
        (true, true) => action.clone(),
        (true, false) => format!("the system call `{action}`"),
    };
    let elsewhere = match &**action {
        "file.write" => Some("write in the workspace or in a temporary folder instead"),
        _ => None,
    };
    let advice = match (&refused.hold_id, elsewhere) {
        (Some(hold), elsewhere) => {
            let or = elsewhere.map_or(String::new(), |it| format!(", or {it}"));
            format!(
                ". A person can allow it: it waits for them as {hold}; run the same again after that{or}"
            )
        }
        (None, Some(elsewhere)) => format!(": {elsewhere}, or ask a person to do it"),
        (None, None) => match &**action {
            "net.connect" => {
                ": a person can name it in their settings, under `network:` or `services:`"
            }
            "socket.connect" => ": a person can name it in their settings, under `services:`",
            "listen" => ": servers listen on 127.0.0.1",
            _ => ": no approval opens it. What needs it has to be run by a person",
        }
        .to_owned(),
    };
    format!("Safepoint's fence refused {what}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(refused: &[(&str, &str, bool)]) -> Vec<String> {
        let of = |(action, target, has_hold): &(&str, &str, bool)| RefusedTarget {
            action: (*action).to_owned(),
            target: (*target).to_owned(),
            hold_id: has_hold.then(|| "hold-01HZX5J3J8Q0Z4V2N6K7M9P1R3".parse().unwrap()),
        };
        refusals_in_words(&ReachRecord {
            refused: refused.iter().map(of).collect(),
            ..ReachRecord::default()
        })
    }

    #[test]
    fn fe_07_every_kind_of_refusal_says_whose_it_is_and_what_to_do() {
        for (action, target, has_hold, advice) in [
            ("file.write", "/home/ada/x", false, "in a temporary folder"),
            ("net.connect", "example.org:22", false, "`network:`"),
            ("socket.connect", "/run/docker.sock", false, "`services:`"),
            ("a raw socket", "", false, "run by a person"),
            ("bpf", "", false, "system call `bpf`: no approval"),
        ] {
            let lines = told(&[(action, target, has_hold)]);
            assert_eq!(lines.len(), 1);
            assert!(
                lines[0].starts_with("Safepoint's fence refused "),
                "{lines:?}"
            );
            assert!(lines[0].contains(advice), "{lines:?}");
        }
    }

    #[test]
    fn fe_03_the_calls_of_one_sandbox_are_one_refusal() {
        let lines = told(&[
            ("clone", "", false),
            ("mount", "", false),
            ("bpf", "", false),
        ]);
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].contains("sandbox of its own (`clone`, `mount`)"),
            "{lines:?}"
        );
        assert!(lines[0].contains("--no-sandbox"), "{lines:?}");
    }

    #[test]
    fn fe_07_many_refusals_are_counted() {
        let paths: Vec<String> = (0..13).map(|number| format!("/out/{number}")).collect();
        let many: Vec<(&str, &str, bool)> = paths
            .iter()
            .map(|path| ("file.write", &**path, false))
            .collect();
        let lines = told(&many);
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[10], "Safepoint's fence refused 3 more");
    }
}
