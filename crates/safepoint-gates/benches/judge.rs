//! How long it takes to judge a request, with all that comes out of it.
//!
//! `cargo bench -p safepoint-gates --bench judge [-- first|requests|lookup]`.
//! Each figure is the best of several rounds, in microseconds for one call;
//! `first` is what a new process pays, once. Nothing is judged here but
//! requests: the figures are for people.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark reads the clock and stops when something is wrong"
)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use safepoint_gates::{
    Answers, Decision, Engine, Event, Facts, Judgement, Loaded, Request, Session, Simulation,
    Verdict, load,
};
use safepoint_model::{Digest, Timestamp};
use serde_json::{Map, Value, json};

const ACME: &str = include_str!("../tests/atlases/acme.yaml");

fn main() {
    // `cargo bench -- lookup` runs that one alone; cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if run("first") {
        first();
    }
    if run("requests") {
        requests();
    }
    if run("lookup") {
        lookup();
    }
}

/// What a process pays that judges one request and ends. Comes first: the
/// second time everything is warm.
fn first() {
    println!("\nfirst: the atlas of the specification, in a new process");
    let mut last = Instant::now();
    let mut lap = |name: &str| {
        println!("{name:<58} {:>12.1} µs", last.elapsed().as_secs_f64() * 1e6);
        last = Instant::now();
    };
    let manifest = load::read(ACME).unwrap();
    lap("read");
    let engine = Engine::new(vec![Loaded {
        manifest,
        digest: Digest::of_parts(&[ACME.as_bytes()]),
        modules: BTreeMap::new(),
    }])
    .unwrap();
    lap("made ready");
    let session = open(&engine);
    lap("a session begun and its first gate answered");
    let judgement = judge(&engine, &session, &request("ticket.get"));
    lap("a request judged");
    assert_eq!(judgement.resolution.decision, Decision::Allow);
}

fn requests() {
    println!("\nrequests: judged in a session that is open");
    let acme = engine(ACME);
    measure(
        "the atlas of the specification, allowed",
        &acme,
        "ticket.get",
    );
    let five = engine(&five());
    assert_eq!(actions(&five), 5);
    measure("5 actions, allowed", &five, "ticket.get");
    measure("5 actions, held by a gate", &five, "ticket.delete");
    measure("5 actions, denied by a policy", &five, "user.ban");
    let hundred = engine(&hundred());
    assert_eq!(actions(&hundred), 100);
    measure(
        "100 actions and 50 policies, allowed",
        &hundred,
        "area7.read",
    );
    measure(
        "100 actions and 50 policies, denied",
        &hundred,
        "area3.delete",
    );
}

fn lookup() {
    println!("\nlookup: a request that one of so many gates holds");
    let mut first = None;
    for count in [10, 100, 1_000, 10_000] {
        let engine = engine(&gates(count));
        let cost = measure(&format!("{count} gates"), &engine, "ticket.delete_now");
        println!(
            "{:>58} {:>12.2} ×",
            "against ten",
            cost / *first.get_or_insert(cost)
        );
    }
}

/// The best of nine rounds of at least 20 ms each.
fn measure(name: &str, engine: &Engine, action: &str) -> f64 {
    let session = open(engine);
    let event = request(action);
    let facts = facts(engine, action);
    let call = || {
        let verdict = engine.judge(black_box(&session), black_box(&event), black_box(&facts));
        black_box(verdict).is_ok()
    };
    let start = Instant::now();
    let mut calls = 0_u32;
    while start.elapsed() < Duration::from_millis(20) {
        call();
        calls += 1;
    }
    let best = (0..9)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..calls {
                call();
            }
            start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
        })
        .fold(f64::INFINITY, f64::min);
    let judgement = judge(engine, &session, &event);
    let note = format!(
        "{name}: {}, {} + {} actions, {} records",
        judgement.resolution.decision.as_str(),
        judgement.resolution.allowed_actions.len(),
        judgement.resolution.denied_actions.len(),
        judgement.records.len()
    );
    println!("{note:<78} {best:>8.2} µs");
    best
}

fn judge(engine: &Engine, session: &Session, event: &Event) -> Judgement {
    let action = match event {
        Event::Request(request) => request.action.as_str(),
        _ => "",
    };
    match engine.judge(session, event, &facts(engine, action)) {
        Ok(Verdict::Judged(judgement)) => *judgement,
        other => panic!("not judged: {other:?}"),
    }
}

fn facts(engine: &Engine, action: &str) -> Facts {
    let rates = engine.rates(action);
    Facts {
        now: Timestamp::from_micros(60_000_000),
        hold_id: "hld_0000000000000001".parse().unwrap(),
        request_id: "act_0000000000000001".parse().unwrap(),
        uses: rates.into_iter().map(|rate| (rate.name, 0)).collect(),
        callbacks: Answers::new(),
        callback_time: 0,
    }
}

/// A session that has begun, with everything answered that was asked.
fn open(engine: &Engine) -> Session {
    let start = Timestamp::from_micros(0);
    let mut simulation = Simulation::new(engine, "user:bench", None, start).unwrap();
    let begun = simulation.step(&Event::Start).unwrap();
    let mut answers: HashMap<String, Map<String, Value>> = HashMap::new();
    for question in begun.resolution.questions {
        answers
            .entry(question.checkpoint_id)
            .or_default()
            .insert(question.question_id, json!(true));
    }
    for (gate, answers) in answers {
        let hold = None;
        let answer = Event::Answer {
            gate,
            hold,
            answers,
        };
        let judgement = simulation.step(&answer).unwrap();
        assert_eq!(judgement.resolution.decision, Decision::Allow);
    }
    simulation.session
}

fn request(action: &str) -> Event {
    Event::Request(Request {
        action: action.to_owned(),
        parameters: json!({"id": 4711, "ticket_id": "T-1", "note": "charged twice"}),
        risk: None,
        conditions: std::collections::BTreeSet::new(),
    })
}

fn actions(engine: &Engine) -> usize {
    let resolution = judge(engine, &open(engine), &request("ticket.get")).resolution;
    resolution.allowed_actions.len() + resolution.denied_actions.len()
}

fn engine(text: &str) -> Engine {
    let manifest = load::read(text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    Engine::new(vec![Loaded {
        manifest,
        digest: Digest::of_parts(&[text.as_bytes()]),
        modules: BTreeMap::new(),
    }])
    .unwrap()
}

const HEAD: &str = "atlas_version: \"1.0\"\natlas_id: com.example.bench\nversion: 1.0.0\nname: B\n";

/// A support desk: five actions, and some of everything.
fn five() -> String {
    format!(
        "{HEAD}
steward:
  id: bench
  name: Bench
  access: {{type: public, rate_limit: {{requests_per_minute: 100}}}}
actions:
  - action_id: ticket.get
    parameters_schema: {{type: object, required: [id], properties: {{id: {{type: integer}}}}}}
  - {{action_id: ticket.list}}
  - {{action_id: ticket.comment, risk_tier: medium}}
  - {{action_id: ticket.delete, risk_tier: high}}
  - {{action_id: user.ban, risk_tier: critical}}
capabilities:
  - {{capability_id: basic, actions: [ticket.get, ticket.list, ticket.comment]}}
  - {{capability_id: admin, actions: [ticket.delete, user.ban]}}
context_blocks:
  - {{context_id: terms, content: Handle the data of customers with care.}}
checkpoints:
  - checkpoint_id: onboarding
    trigger: {{type: session_start}}
    mode: blocking
    questions: [{{question_id: agree, question: Do you agree?, response_type: boolean}}]
    inject_contexts: [terms]
    guidance: {{content: Be kind.}}
    unlock_capabilities: [basic, admin]
  - checkpoint_id: delete
    trigger: {{type: action_pre, patterns: [\"*.delete\"]}}
    mode: blocking
    questions: [{{question_id: why, question: Why?, response_type: text}}]
  - checkpoint_id: watch
    trigger: {{type: action_pre, patterns: [\"ticket.*\"]}}
    mode: observational
  - checkpoint_id: often
    trigger: {{type: count_interval, actions: 10}}
policies:
  - {{policy_id: no-bans, type: deny, actions: [user.ban]}}
  - {{policy_id: not-too-often, type: rate_limit, actions: [\"ticket.*\"], parameters: {{max_calls: 50, window_seconds: 60}}}}
"
    )
}

/// A hundred actions, fifty policies, and gates that allow and deny by pattern.
fn hundred() -> String {
    let mut text = String::from(HEAD);
    text.push_str("actions:\n");
    for number in 0..25 {
        for verb in ["read", "list", "update", "delete"] {
            let _ = writeln!(text, "  - {{action_id: area{number}.{verb}}}");
        }
    }
    text.push_str("capabilities:\n");
    for number in 0..25 {
        let _ = writeln!(
            text,
            "  - {{capability_id: cap-{number}, actions: [\"area{number}.*\"]}}"
        );
    }
    text.push_str(
        "checkpoints:
  - checkpoint_id: onboarding
    trigger: {type: session_start}
    mode: blocking
    questions: [{question_id: agree, question: Do you agree?, response_type: boolean}]
    unlock_capabilities: [cap-0, cap-1, cap-2, cap-3, cap-4, cap-5, cap-6, cap-7]
    allow_actions: [\"*.list\", \"area20.*\", area21.read, area22.update]
    deny_actions: [\"area1.del*\", \"area2.*\", area5.delete, \"*.purge\"]
  - checkpoint_id: delete
    trigger: {type: action_pre, patterns: [\"*.delete\"]}
    mode: blocking
    questions: [{question_id: why, question: Why?, response_type: text}]
policies:
",
    );
    for number in 0..50 {
        let area = number % 25;
        let rest = match number % 5 {
            0 => format!("type: allow, actions: [\"area{area}.*\"]"),
            1 => format!("type: deny, actions: [\"area{area}.del*\", \"*.drop{number}\"]"),
            2 => format!("type: requires_approval, actions: [area{area}.update]"),
            3 => format!(
                "type: risk, actions: [\"*.delete\", \"area{area}.*\"], parameters: {{max_tier: high}}"
            ),
            _ => format!(
                "type: rate_limit, actions: [\"area{area}.*\"], parameters: {{max_calls: 9, window_seconds: 60}}"
            ),
        };
        let _ = writeln!(text, "  - {{policy_id: policy-{number}, {rest}}}");
    }
    text
}

/// So many gates, each for other actions. None of the patterns is a name: a
/// resolution lists every action with a name, and that is not what is measured.
fn gates(count: usize) -> String {
    let mut text = String::from(HEAD);
    text.push_str(
        "actions:
  - {action_id: ticket.get}
  - {action_id: ticket.delete_now}
checkpoints:
",
    );
    for number in 0..count {
        let pattern = match number % 5 {
            _ if number == 7 => "ticket.delete_*".to_owned(),
            0 => format!("area{number}.*"),
            1 => format!("*.verb{number}"),
            2 => format!("area{number}_*.go"),
            3 => format!("*.end{number}_*"),
            _ => format!("admin.*.verb{number}"),
        };
        let _ = write!(
            text,
            "  - checkpoint_id: gate-{number}
    trigger: {{type: action_pre, patterns: [\"{pattern}\"]}}
    mode: blocking
    questions: [{{question_id: why, question: Why?, response_type: text}}]
"
        );
    }
    text
}
