//! How fast patterns, keywords and answers are looked at.
//!
//! `cargo bench -p safepoint-gates --bench match [-- patterns|keywords|answers]`.
//! Each figure is the best of several rounds, in nanoseconds for one call.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark reads the clock and stops when something is wrong"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use safepoint_gates::answer::Rules;
use safepoint_gates::keyword::{KeywordRule, KeywordSet};
use safepoint_gates::pattern::{Pattern, PatternSet};
use safepoint_gates::{AnswerValidation, CheckpointQuestion, MatchMode};

fn main() {
    // `cargo bench -- patterns` runs that one alone; cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if run("patterns") {
        patterns();
    }
    if run("keywords") {
        keywords();
    }
    if run("answers") {
        answers();
    }
}

/// The best of seven rounds of at least 20 ms each.
fn measure(name: &str, mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut calls = 0_u32;
    while start.elapsed() < Duration::from_millis(20) {
        call();
        calls += 1;
    }
    let best = (0..7)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..calls {
                call();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<58} {best:>12.0} ns");
    best
}

/// Patterns of all kinds; the first ten have to do with the action, the others do not.
fn pattern(number: usize) -> String {
    let related = [
        "ticket.delete",
        "ticket.*",
        "*.delete",
        "ticket.del*",
        "*.soft.*",
        "admin.*.delete",
        "user.ban",
        "*_all",
        "mcp.*",
        "file.delete_*",
    ];
    match (related.get(number), number % 6) {
        (Some(text), _) => (*text).to_owned(),
        (_, 0) => format!("area{number}.delete"),
        (_, 1) => format!("area{number}.*"),
        (_, 2) => format!("*.verb{number}"),
        (_, 3) => format!("area{number}_*.go"),
        (_, 4) => format!("*.end{number}_*"),
        _ => format!("admin.*.verb{number}"),
    }
}

fn patterns() {
    println!("\npatterns: one action among so many patterns");
    let mut first = None;
    for count in [10, 100, 1_000, 10_000, 100_000] {
        let start = Instant::now();
        let set = PatternSet::new(
            (0..count).map(|number| (Pattern::parse(&pattern(number)).unwrap(), number as u32)),
        );
        let built = start.elapsed();
        let mut found = Vec::new();
        let cost = measure(&format!("{count} patterns (built in {built:?})"), || {
            found.clear();
            set.matching(black_box("ticket.soft.delete"), &mut found);
        });
        assert_eq!(found, [1, 2, 4]);
        println!(
            "{:>58} {:>12.2} ×",
            "against ten",
            cost / *first.get_or_insert(cost)
        );
    }
}

/// Two kilobytes as a user might write them, with a few of the keywords.
fn text() -> String {
    let sentence = "Please look at order 4711: the customer was charged twice and asks for help, \
                    so check the ledger, the mail of last week and the notes of the team. ";
    let mut text = sentence.repeat(14);
    text.truncate(1_900);
    text.push_str(
        " He wants refund17 of 20 Euro for item400, and alpha23 beta23 at once. thing9xyz",
    );
    while text.len() < 2_048 {
        text.push('.');
    }
    text
}

fn keywords() {
    let ascii = text();
    let unicode = ascii.replace("customer", "Küchenkäufer");
    println!("\nkeywords: so many mappings over {} bytes", ascii.len());
    type Make = fn(usize) -> Vec<String>;
    let kinds: [(&str, MatchMode, Make); 8] = [
        ("any", MatchMode::Any, |n| {
            vec![format!("refund{n}|chargeback{n}")]
        }),
        ("any, with a wildcard", MatchMode::Any, |n| {
            vec![format!("thing{n}*|*thing{n}")]
        }),
        ("all", MatchMode::All, |n| {
            vec![format!("item{n}"), format!("order|refund{n}")]
        }),
        ("phrase", MatchMode::Phrase, |n| {
            vec![format!("alpha{n}"), format!("beta{n}")]
        }),
        ("phrase, with alternatives", MatchMode::Phrase, |n| {
            vec![format!("alpha{n}|gamma{n}"), format!("beta{n}|delta{n}")]
        }),
        ("regex, with a text", MatchMode::Regex, |n| {
            vec![format!(r"\b(refund|chargeback){n}\s+of\s+\d+")]
        }),
        ("regex, a tenth without a text", MatchMode::Regex, |n| {
            vec![if n % 10 == 0 {
                format!(r"\b\d{{{}}}-\d{{4}}\b", 3 + n % 7)
            } else {
                format!(r"item{n}\b")
            }]
        }),
        ("regex, none with a text", MatchMode::Regex, |n| {
            vec![format!(
                r"[a-f]{{2}}\d{{{}}}[g-k]\d[{}-z]",
                2 + n % 9,
                char::from(b'a' + (n % 25) as u8)
            )]
        }),
    ];
    for (name, match_mode, make) in kinds {
        for count in [10, 1_000, 10_000] {
            if count == 10_000 && match_mode == MatchMode::Regex && name != "regex, with a text" {
                continue;
            }
            let patterns: Vec<Vec<String>> = (0..count).map(make).collect();
            let rules: Vec<KeywordRule<'_>> = patterns
                .iter()
                .map(|patterns| KeywordRule {
                    patterns,
                    match_mode,
                    case_sensitive: false,
                })
                .collect();
            let start = Instant::now();
            let set = KeywordSet::new(&rules).unwrap();
            let built = start.elapsed();
            let mut found = Vec::new();
            measure(&format!("{count} {name} (built in {built:.1?})"), || {
                found.clear();
                set.matching(black_box(&ascii), &mut found);
            });
            if count == 1_000 {
                println!("{:>58} {:>12} found", "", found.len());
                measure(&format!("{count} {name}, not ASCII"), || {
                    found.clear();
                    set.matching(black_box(&unicode), &mut found);
                });
            }
        }
    }
}

fn answers() {
    println!("\nanswers: one answer with every kind of validation");
    let question = CheckpointQuestion::text("why", "Why?").with_validation(AnswerValidation {
        min_length: Some(20),
        max_length: Some(70_000),
        must_contain: vec!["reason".to_owned()],
        must_not_contain: vec!["hack".to_owned(), "bypass".to_owned()],
        pattern: Some(r"^[A-Za-z].*\.$".to_owned()),
        ..AnswerValidation::default()
    });
    let rules = Rules::compile(&question).unwrap();
    let short = "The reason is an order that was charged twice, as the ledger shows.";
    let long = format!("A reason{}.", " für Größe und Maß".repeat(2_900));
    for answer in [short, &long] {
        let value = serde_json::Value::from(answer);
        measure(&format!("an answer of {} bytes", answer.len()), || {
            black_box(rules.judge(black_box(&value))).unwrap();
        });
    }
}
