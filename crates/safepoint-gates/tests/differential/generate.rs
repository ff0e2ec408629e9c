//! Random atlases, over so few names that everything meets everything.

use safepoint_gates::AtlasManifest;
use serde_json::{Map, Value, json};

/// Numbers that look random, and are the same for the same seed (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Whether something happens that happens once in `times`.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64) as usize;
        &from[at]
    }

    /// Up to `most` of them, each at most once.
    fn some(&mut self, from: &[&str], most: u64) -> Vec<String> {
        let mut chosen: Vec<String> = Vec::new();
        for _ in 0..self.below(most + 1) {
            let one = (*self.pick(from)).to_owned();
            if !chosen.contains(&one) {
                chosen.push(one);
            }
        }
        chosen
    }

    fn some_or_one(&mut self, from: &[&str], most: u64) -> Vec<String> {
        let mut chosen = self.some(from, most);
        if chosen.is_empty() {
            chosen.push((*self.pick(from)).to_owned());
        }
        chosen
    }
}

pub(crate) const ACTIONS: &[&str] = &["a.x", "a.y", "b.x", "a.b.x", "c"];
const PATTERNS: &[&str] = &[
    "a.x", "a.y", "b.x", "a.b.x", "c", "a.*", "*.x", "a.*.x", "b.x*", "*",
];
pub(crate) const CAPABILITIES: &[&str] = &["c1", "c2", "c3"];
const CONTEXTS: &[&str] = &["k1", "k2", "k3", "k4"];
pub(crate) const GATES: &[&str] = &["g1", "g2", "g3", "g4", "g5", "g6", "g7"];
const WORDS: &[&str] = &["refund", "order", "Stop|order", "ref*", "my refund", "*der"];
const EXPRESSIONS: &[&str] = &["refu.d", "^Stop", "[0-9]{2}"];
const TIERS: &[&str] = &["low", "medium", "high", "critical"];

pub(crate) const TEXTS: &[&str] = &[
    "",
    "nothing of note",
    "refund",
    "Refund, my order!",
    "Stop: my refunds 12",
    "please refund my order 7",
    "stop order refund",
    "the refunded orders; STOP",
];

/// One or two atlases.
pub(crate) fn atlases(dice: &mut Dice) -> Vec<AtlasManifest> {
    let mut ids = vec!["one"];
    if dice.once_in(3) {
        ids.push("two");
    }
    ids.into_iter().map(|id| atlas(dice, id)).collect()
}

fn atlas(dice: &mut Dice, id: &str) -> AtlasManifest {
    let own = |names: &[&'static str], dice: &mut Dice| -> Vec<&'static str> {
        names.iter().filter(|_| !dice.once_in(3)).copied().collect()
    };
    let capabilities = own(CAPABILITIES, dice);
    let contexts = own(CONTEXTS, dice);
    let gates = own(GATES, dice);
    let mut written = json!({
        "atlas_version": "1.0", "atlas_id": id, "version": "1", "name": id,
        "extensions": [
            {"extension_id": "fires", "cel": "true"},
            {"extension_id": "sleeps", "cel": "false"},
        ],
    });
    written["capabilities"] = capabilities
        .iter()
        .map(|id| json!({"capability_id": id, "actions": dice.some(PATTERNS, 3)}))
        .collect();
    written["context_blocks"] = contexts.iter().map(|id| context(dice, id)).collect();
    written["checkpoints"] = gates
        .iter()
        .map(|id| gate(dice, id, &gates, &capabilities, &contexts))
        .collect();
    written["policies"] = (0..dice.below(4))
        .map(|number| policy(dice, number))
        .collect();
    written["actions"] = ACTIONS
        .iter()
        .flat_map(|id| {
            if dice.once_in(3) {
                None
            } else {
                Some(action(dice, id))
            }
        })
        .collect();
    if dice.once_in(2) {
        written["checkpoint_config"] = config(dice, &contexts);
    }
    if dice.once_in(6) {
        let mut rate = Map::new();
        let name = *dice.pick(&["requests_per_minute", "requests_per_hour"]);
        rate.insert(name.to_owned(), json!(1 + dice.below(4)));
        written["steward"] = json!({"id": "s", "access": {"rate_limit": rate}});
    }
    serde_json::from_value(written).expect("a generated atlas is one")
}

fn context(dice: &mut Dice, id: &str) -> Value {
    let mode = *dice.pick(&[
        "on_demand",
        "always",
        "on_match",
        "risk_based",
        "every_time",
    ]);
    let mut block = json!({
        "context_id": id,
        "content": "x".repeat(1 + dice.below(20) as usize),
        "inject_mode": mode,
    });
    if dice.once_in(3) {
        block["priority"] = json!(dice.below(3));
    }
    if mode == "on_match" {
        block["keywords"] = json!(dice.some_or_one(WORDS, 2));
        block["actions"] = json!(dice.some(PATTERNS, 2));
    }
    if mode == "risk_based" {
        block["min_tier"] = json!(dice.pick(TIERS));
    }
    block
}

fn gate(
    dice: &mut Dice,
    id: &str,
    gates: &[&str],
    capabilities: &[&str],
    contexts: &[&str],
) -> Value {
    let mut gate = json!({
        "checkpoint_id": id,
        "trigger": trigger(dice, capabilities),
        "mode": dice.pick(&["blocking", "blocking", "advisory", "observational"]),
        "questions": (0..dice.below(3)).map(|number| question(dice, number)).collect::<Value>(),
        "enabled": !dice.once_in(12),
    });
    if dice.once_in(3) {
        gate["priority"] = json!(*dice.pick(&[0, 500, 800, 900]));
    }
    if dice.once_in(3) {
        gate["guidance"] = guidance(dice, gates);
    }
    if !contexts.is_empty() && dice.once_in(2) {
        gate["inject_contexts"] = json!(dice.some(contexts, 3));
    }
    if !capabilities.is_empty() && dice.once_in(3) {
        gate["unlock_capabilities"] = json!(dice.some(capabilities, 2));
    }
    if !capabilities.is_empty() && dice.once_in(5) {
        gate["lock_capabilities"] = json!(dice.some(capabilities, 2));
    }
    if dice.once_in(5) {
        gate["allow_actions"] = json!(dice.some(PATTERNS, 2));
    }
    if dice.once_in(8) {
        gate["deny_actions"] = json!(dice.some(PATTERNS, 1));
    }
    gate
}

fn trigger(dice: &mut Dice, capabilities: &[&str]) -> Value {
    match dice.below(16) {
        0 => json!({"type": "session_start"}),
        1 => json!({"type": "interactive"}),
        2 | 3 if !capabilities.is_empty() => json!({
            "type": dice.pick(&["capability_access", "capability_gate"]),
            "capability_ids": dice.some_or_one(capabilities, 2),
        }),
        4 => json!({"type": "risk_threshold", "min_tier": dice.pick(TIERS)}),
        5 | 6 => json!({"type": "action_pre", "patterns": dice.some_or_one(PATTERNS, 2)}),
        7 | 8 => {
            let mode = *dice.pick(&["any", "all", "phrase", "regex"]);
            let from = if mode == "regex" { EXPRESSIONS } else { WORDS };
            json!({
                "type": dice.pick(&["keyword", "keyword_match"]),
                "patterns": dice.some_or_one(from, 2),
                "match_mode": mode,
                "case_sensitive": dice.once_in(3),
            })
        }
        9 => json!({"type": "time_interval", "seconds": *dice.pick(&[10, 60])}),
        10 => json!({"type": "count_interval", "actions": 1 + dice.below(3)}),
        11 => json!({"type": "explicit_request"}),
        12 => json!({"type": "action_post", "patterns": dice.some_or_one(PATTERNS, 2)}),
        13 => json!({"type": "error_occurred"}),
        14 => json!({"type": "session_end"}),
        _ => {
            let code = *dice.pick(&["fires", "sleeps", "cel:true", "cel:false", "cel:nothing"]);
            json!({"type": "custom", "trigger_id": code})
        }
    }
}

fn question(dice: &mut Dice, number: u64) -> Value {
    let mut question = json!({
        "question_id": format!("q{number}"),
        "question": "Is that so",
        "required": !dice.once_in(4),
    });
    match dice.below(5) {
        0 => {
            question["response_type"] = json!("boolean");
            question["expect"] = json!(dice.pick(&["yes", "no", "any"]));
        }
        1 => question["response_type"] = json!("acknowledgment"),
        2 => {
            question["response_type"] = json!("choice");
            question["options"] = json!(["red", "Green"]);
        }
        3 => {
            question["response_type"] = json!("number");
            question["min"] = json!(2);
            if dice.once_in(2) {
                question["max"] = json!(7);
            }
        }
        _ => {
            let mut rules = json!({"min_length": 4});
            if dice.once_in(2) {
                rules["must_contain"] = json!(["Because"]);
            }
            question["validation"] = rules;
        }
    }
    if dice.once_in(2) {
        let kinds = ["retry", "block", "warn_and_continue", "log_and_continue"];
        question["on_invalid"] = json!(dice.pick(&kinds));
    }
    if dice.once_in(3) {
        question["max_attempts"] = json!(1 + dice.below(2));
    }
    question
}

fn guidance(dice: &mut Dice, gates: &[&str]) -> Value {
    let mut block = json!({
        "content": "take care",
        "format": dice.pick(&["text", "markdown", "json", "system_instruction"]),
        "priority": dice.below(3),
        "append": !dice.once_in(4),
    });
    if dice.once_in(3) {
        block["expires_after"] = json!(dice.pick(gates));
    } else if dice.once_in(4) {
        block["expires_after"] = json!("session-end");
    }
    block
}

fn policy(dice: &mut Dice, number: u64) -> Value {
    let kinds = ["allow", "deny", "requires_approval", "rate_limit", "risk"];
    let kind = *dice.pick(&kinds);
    let most = if kind == "deny" { 1 } else { 2 };
    let mut policy = json!({
        "policy_id": format!("p{number}"),
        "type": kind,
        "actions": dice.some_or_one(PATTERNS, most),
    });
    match kind {
        "rate_limit" => {
            let window = *dice.pick(&[10, 100]);
            policy["parameters"] =
                json!({"max_calls": 1 + dice.below(3), "window_seconds": window});
        }
        "risk" => {
            let (max, approval) = (dice.below(4) as usize, dice.below(4) as usize);
            let mut parameters = Map::new();
            parameters.insert("max_tier".into(), json!(TIERS[max]));
            if approval <= max {
                parameters.insert("approval_tier".into(), json!(TIERS[approval]));
            }
            policy["parameters"] = Value::Object(parameters);
        }
        _ => {}
    }
    policy
}

fn action(dice: &mut Dice, id: &str) -> Value {
    let mut action = json!({"action_id": id, "risk_tier": dice.pick(TIERS)});
    if dice.once_in(4) {
        action["parameters_schema"] = json!({
            "type": "object",
            "required": ["n"],
            "properties": {"n": {"type": "integer"}},
        });
    }
    action
}

fn config(dice: &mut Dice, contexts: &[&str]) -> Value {
    let mut config = Map::new();
    let given = |dice: &mut Dice| {
        if contexts.is_empty() {
            Vec::new()
        } else {
            dice.some(contexts, 2)
        }
    };
    for name in [
        "session_start",
        "explicit_request",
        "error_occurred",
        "session_end",
    ] {
        if dice.once_in(5) {
            let section = json!({"enabled": !dice.once_in(6), "inject_contexts": given(dice)});
            config.insert(name.into(), section);
        }
    }
    if dice.once_in(4) {
        let mut mappings = Map::new();
        for words in dice.some(&["refund|order", "stop", "ref*"], 2) {
            mappings.insert(words, json!(given(dice)));
        }
        let mode = *dice.pick(&["any", "all", "phrase"]);
        config.insert(
            "keyword_match".into(),
            json!({"mappings": mappings, "match_mode": mode}),
        );
    }
    for name in ["action_pre", "action_post"] {
        if dice.once_in(4) {
            let mut mappings = Map::new();
            for pattern in dice.some(PATTERNS, 2) {
                let mapping = json!({
                    "inject_contexts": given(dice),
                    "require_confirmation": dice.once_in(3),
                });
                mappings.insert(pattern, mapping);
            }
            config.insert(name.into(), json!({"mappings": mappings}));
        }
    }
    if dice.once_in(5) {
        let section = json!({"min_tier": dice.pick(TIERS), "inject_contexts": given(dice)});
        config.insert("risk_threshold".into(), section);
    }
    if dice.once_in(5) {
        let section = json!({"seconds": 30, "inject_contexts": given(dice)});
        config.insert("time_interval".into(), section);
    }
    if dice.once_in(5) {
        let section = json!({"actions": 2, "inject_contexts": given(dice)});
        config.insert("count_interval".into(), section);
    }
    let mut budget = Map::new();
    if dice.once_in(3) {
        budget.insert("max_checkpoints_per_input".into(), json!(dice.below(4)));
    }
    if dice.once_in(3) {
        budget.insert("max_context_injection_size".into(), json!(dice.below(40)));
    }
    if !budget.is_empty() {
        config.insert("budget".into(), Value::Object(budget));
    }
    Value::Object(config)
}
