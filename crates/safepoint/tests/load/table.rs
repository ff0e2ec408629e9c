//! What was measured: how long each kind of request took, and what clients saw go wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use super::Plan;

/// Everything that a load does at least once.
const KINDS: [&str; 13] = [
    "decide",
    "enter",
    "hold show",
    "outcome",
    "propose allowed",
    "propose approved",
    "propose denied",
    "propose held",
    "read lists",
    "record",
    "record head",
    "report",
    "request",
];

/// How long is waited between two looks at what was done.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked.
const LOOKS: u32 = 1_200;

/// What is not part of the load.
pub(super) const CHECK: &str = "check";

#[derive(Default)]
pub(super) struct Table {
    /// How long each answered request took, with everything that was tried again for it.
    micros: Mutex<BTreeMap<&'static str, Vec<u32>>>,
    failures: Mutex<BTreeMap<String, u64>>,
}

impl Table {
    pub(super) fn took(&self, kind: &'static str, time: Duration) {
        if kind == CHECK {
            return;
        }
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let mut all = self.micros.lock().unwrap();
        all.entry(kind).or_default().push(micros);
    }

    pub(super) fn failed(&self, why: impl Into<String>) {
        *self.failures.lock().unwrap().entry(why.into()).or_default() += 1;
    }

    /// As Markdown.
    pub(super) fn show(&self, plan: &Plan, took: Duration, killed: u64) -> String {
        let mut kinds = self.micros.lock().unwrap().clone();
        let all: Vec<u32> = kinds.values().flatten().copied().collect();
        let each_second = all.len() as f64 / took.as_secs_f64();
        let mut text = format!(
            "\n### {}\n\n{} agents, {:.0} s, seed {}; {killed} killed (servers and database); {} requests, {each_second:.0} a second\n\n",
            plan.name,
            plan.agents,
            took.as_secs_f64(),
            plan.seed,
            all.len(),
        );
        text.push_str(
            "| request | answered | a second | p50 ms | p99 ms |\n|---|---|---|---|---|\n",
        );
        kinds.insert("all", all);
        for (kind, micros) in &mut kinds {
            micros.sort_unstable();
            let at = |part: f64| {
                let place = (micros.len() as f64 * part) as usize;
                let found = micros.get(place.min(micros.len().saturating_sub(1)));
                f64::from(found.copied().unwrap_or_default()) / 1000.0
            };
            let _ = writeln!(
                text,
                "| {kind} | {} | {:.1} | {:.1} | {:.1} |",
                micros.len(),
                micros.len() as f64 / took.as_secs_f64(),
                at(0.5),
                at(0.99),
            );
        }
        text.push_str("\n| seen by clients | times |\n|---|---|\n");
        for (why, times) in self.failures.lock().unwrap().iter() {
            let _ = writeln!(text, "| {why} | {times} |");
        }
        text
    }

    /// Waits until everything was done once.
    pub(super) fn wait_for_everything(&self) {
        let missing = || {
            let done = self.micros.lock().unwrap();
            KINDS.into_iter().find(|kind| !done.contains_key(kind))
        };
        for _ in 0..LOOKS {
            if missing().is_none() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("nobody did: {:?}", missing());
    }

    /// Whether anybody had to ask again.
    pub(super) fn has_failures(&self) -> bool {
        !self.failures.lock().unwrap().is_empty()
    }
}
