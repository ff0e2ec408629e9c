//! How long an atlas of 10,000 gates takes to load, as YAML and as JSON.
//!
//! Prints milliseconds of one processor, the best and the middle of some runs.
//! It judges nothing: the figures are for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use safepoint_gates::{Engine, Loaded, load};
use safepoint_model::Digest;

const GATES: usize = 10_000;
const RUNS: usize = 15;

fn main() {
    let yaml = atlas(GATES);
    let manifest = match load::read(&yaml) {
        Ok(manifest) => manifest,
        Err(problems) => {
            for problem in problems.iter().take(5) {
                eprintln!("{}", problem.render("atlas.yaml", &yaml));
            }
            return;
        }
    };
    println!("gates: {}", manifest.checkpoints.len());
    let json = serde_json::to_string(&manifest).unwrap_or_default();
    measure("the parser alone, without a value", &yaml, |text| {
        black_box(granit_parser::Parser::new_from_str(text).count());
    });
    measure("read yaml", &yaml, |text| {
        black_box(load::read(text).is_ok());
    });
    measure("read json", &json, |text| {
        black_box(load::read(text).is_ok());
    });
    measure("read yaml and make ready", &yaml, |text| {
        black_box(ready(text));
    });
    measure("read json and make ready", &json, |text| {
        black_box(ready(text));
    });
    let patterns = yaml.replace("min_length: 20", "pattern: \"^[A-Z]+-[0-9]{3,}$\"");
    measure("read yaml with 10,000 expressions", &patterns, |text| {
        black_box(load::read(text).is_ok());
    });
    let keywords = yaml.replace(
        "{type: keyword, patterns: [word",
        "{type: keyword, match_mode: regex, patterns: [\"[a-f]{2}[0-9]\", word",
    );
    measure(
        "read yaml with 4,000 keyword expressions",
        &keywords,
        |text| {
            black_box(load::read(text).is_ok());
        },
    );
    measure("check yaml", &yaml, |text| {
        black_box(load::check(text).problems.len());
    });
    let broken = yaml.replacen("mode: blocking", "mood: blocking", 500);
    measure("check yaml with 500 faults", &broken, |text| {
        black_box(load::check(text).problems.len());
    });
}

fn ready(text: &str) -> Option<Engine> {
    let loaded = Loaded {
        manifest: load::read(text).ok()?,
        digest: Digest::of_parts(&[]),
        modules: BTreeMap::new(),
    };
    Engine::new(vec![loaded]).ok()
}

fn measure(name: &str, text: &str, run: impl Fn(&str)) {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = spent();
            run(text);
            (spent() - start).as_secs_f64() * 1_000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let best = times.first().copied().unwrap_or_default();
    let middle = times.get(RUNS / 2).copied().unwrap_or_default();
    println!(
        "{name}: best {best:.1} ms, middle {middle:.1} ms, {} KiB",
        text.len() / 1024
    );
}

/// How long this thread has been running: others on the machine do not count.
/// Where that is not told, the time of the clock.
#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures time, and nothing depends on it"
)]
fn spent() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Gates of five kinds, each with a question, as people write them.
fn atlas(gates: usize) -> String {
    let mut text = String::from(
        "atlas_version: \"1.0\"\natlas_id: com.example.large\nversion: 1.0.0\nname: Large\n",
    );
    text.push_str("capabilities:\n");
    for number in 0..100 {
        let _ = writeln!(
            text,
            "  - capability_id: cap-{number}\n    actions: [area{number}.read, area{number}.delete]"
        );
    }
    text.push_str("actions:\n");
    for number in 0..100 {
        let _ = writeln!(
            text,
            "  - action_id: area{number}.read\n  - action_id: area{number}.delete\n    risk_tier: high"
        );
    }
    text.push_str("checkpoints:\n");
    for number in 0..gates {
        let area = number % 100;
        let trigger = match number % 5 {
            0 => format!("{{type: action_pre, patterns: [\"area{area}.*\"]}}"),
            1 => format!("{{type: keyword, patterns: [word{number}, refund]}}"),
            2 => format!("{{type: capability_access, capability_ids: [cap-{area}]}}"),
            3 => "{type: risk_threshold, min_tier: high}".to_owned(),
            _ => "{type: session_start}".to_owned(),
        };
        let _ = write!(
            text,
            "  - checkpoint_id: gate-{number}\n    name: Gate {number}\n    trigger: {trigger}\n    mode: blocking\n    questions:\n      - question_id: why\n        question: Why is this needed?\n        response_type: text\n        validation: {{min_length: 20}}\n    unlock_capabilities: [cap-{area}]\n"
        );
    }
    text
}
