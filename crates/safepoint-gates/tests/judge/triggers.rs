//! When gates are raised, in which order, and how often.

use safepoint_gates::{Decision, Event, GateStatus, Outcome, Refusal, RiskTier};
use serde_json::json;

use crate::support::{Story, asking, contexts, engine, gates, questions};

const ACTIONS: &str = "actions:
  - action_id: ticket.get
  - action_id: ticket.delete
  - action_id: user.ban
    risk_tier: high
";

fn with_gates(gates: &[String]) -> String {
    format!("{ACTIONS}checkpoints:\n{}", gates.concat())
}

#[test]
fn ga_10_each_kind_of_trigger_is_raised_by_its_event_and_by_no_other() {
    let observe = |id: &str, trigger: &str| {
        format!("  - {{checkpoint_id: {id}, trigger: {trigger}, mode: observational}}\n")
    };
    let text = format!(
        "{}capabilities:\n  - {{capability_id: admin, actions: [user.ban]}}\nextensions:\n  - {{extension_id: shouts, cel: 'event == \"input\" && input == \"HELP\"'}}\n",
        with_gates(&[
            observe("start", "{type: session_start}"),
            observe("named", "{type: interactive}"),
            observe(
                "old-capability",
                "{type: capability_access, capability_ids: [admin]}"
            ),
            observe(
                "new-capability",
                "{type: capability_gate, capability_ids: [admin]}"
            ),
            observe("risk", "{type: risk_threshold, min_tier: high}"),
            observe("before", "{type: action_pre, patterns: ['ticket.*']}"),
            observe("word", "{type: keyword, patterns: [refund]}"),
            observe("other-word", "{type: keyword_match, patterns: [refund]}"),
            observe("time", "{type: time_interval, seconds: 60}"),
            observe("count", "{type: count_interval, actions: 3}"),
            observe("help", "{type: explicit_request}"),
            observe("after", "{type: action_post, patterns: ['ticket.get']}"),
            observe("error", "{type: error_occurred}"),
            observe("end", "{type: session_end}"),
            observe("own", "{type: custom, trigger_id: shouts}"),
        ])
    );
    let engine = engine(&[&text]);
    let (mut story, start) = Story::begin(&engine);
    assert_eq!(gates(&start), ["start"]);
    assert_eq!(gates(&story.input("nothing")), Vec::<&str>::new());
    assert_eq!(gates(&story.input("a refund")), ["word", "other-word"]);
    assert_eq!(gates(&story.input("HELP")), ["own"]);
    assert_eq!(gates(&story.ask(None)), ["help"]);
    assert_eq!(gates(&story.ask(Some("named"))), ["named"]);
    assert_eq!(
        gates(&story.access("admin")),
        ["old-capability", "new-capability"]
    );
    assert_eq!(gates(&story.request("ticket.get")), ["before"]);
    assert_eq!(gates(&story.report(Outcome::Ok)), ["after"]);
    assert_eq!(
        gates(&story.request("user.ban")),
        ["old-capability", "new-capability", "risk"]
    );
    assert_eq!(gates(&story.report(Outcome::Error)), ["error"]);
    assert_eq!(gates(&story.request("ticket.get")), ["before", "count"]);
    story.wait(61);
    assert_eq!(gates(&story.input("later")), ["time"]);
    assert_eq!(gates(&story.end()), ["end"]);
}

#[test]
fn ga_10_a_gate_is_raised_by_name_only_if_it_may_be() {
    let text = with_gates(&[asking("door", "{type: session_start}", "")]);
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let ask = |gate: &str| Event::Ask {
        topic: None,
        gate: Some(gate.to_owned()),
    };
    assert_eq!(
        story.simulation.step(&ask("door")).unwrap_err(),
        Refusal::NotRaisedByAsking("door".to_owned())
    );
    assert_eq!(
        story.simulation.step(&ask("nowhere")).unwrap_err(),
        Refusal::UnknownGate("nowhere".to_owned())
    );
}

#[test]
fn ga_11_the_most_important_comes_first_and_ties_are_as_written() {
    let observe = |id: &str, priority: &str| {
        format!(
            "  - {{checkpoint_id: {id}, trigger: {{type: action_pre, patterns: ['*']}}, mode: observational{priority}}}\n"
        )
    };
    let text = format!(
        "{}  - {{checkpoint_id: risk, trigger: {{type: risk_threshold, min_tier: low}}, mode: observational}}\n",
        with_gates(&[
            observe("first", ""),
            observe("second", ""),
            observe("urgent", ", priority: 5000"),
            observe("last", ", priority: -1"),
        ])
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let resolution = story.request("ticket.get");
    assert_eq!(
        gates(&resolution),
        ["urgent", "risk", "first", "second", "last"]
    );
    let priorities: Vec<i64> = resolution
        .checkpoints
        .iter()
        .map(|it| it.priority)
        .collect();
    assert_eq!(priorities, [5000, 900, 800, 800, -1]);
}

#[test]
fn ga_14_intervals_fire_once_each_also_after_a_restart() {
    let text = with_gates(&[
        "  - {checkpoint_id: time, trigger: {type: time_interval, seconds: 60}, mode: observational}\n".to_owned(),
        "  - {checkpoint_id: count, trigger: {type: count_interval, actions: 2}, mode: observational}\n".to_owned(),
    ]);
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.wait(59);
    assert!(gates(&story.input("x")).is_empty());
    story.wait(1);
    assert_eq!(gates(&story.input("x")), ["time"]);
    assert!(gates(&story.input("x")).is_empty());
    assert!(gates(&story.request("ticket.get")).is_empty());

    // The session as another process finds it.
    let kept = serde_json::to_string(&story.simulation.session).unwrap();
    story.simulation.session = serde_json::from_str(&kept).unwrap();

    assert_eq!(gates(&story.request("ticket.get")), ["count"]);
    assert!(gates(&story.request("ticket.get")).is_empty());
    story.wait(600);
    assert_eq!(gates(&story.request("ticket.get")), ["time", "count"]);
    assert!(
        gates(&story.input("x")).is_empty(),
        "ten minutes are one firing"
    );
}

#[test]
fn ga_15_a_trigger_that_fails_fires() {
    let text = format!(
        "{}extensions:\n  - {{extension_id: broken, cel: 'nobody.knows'}}\n  - {{extension_id: no, cel: 'false'}}\n",
        with_gates(&[
            asking("broken", "{type: custom, trigger_id: broken}", ""),
            asking("unknown", "{type: custom, trigger_id: never-defined}", ""),
            asking("no", "{type: custom, trigger_id: no}", ""),
        ])
    );
    let engine = engine(&[&text]);
    let (_, start) = Story::begin(&engine);
    assert_eq!(gates(&start), ["broken", "unknown"]);
    assert_eq!(start.decision, Decision::Hold);
    assert_eq!(start.warnings.len(), 1);
}

#[test]
fn ga_15_a_trigger_is_given_empty_parameters_where_there_are_none() {
    // The example of docs/extensions.md.
    let gate = asking(
        "big-change",
        "{type: custom, trigger_id: 'cel: has(params.files) && size(params.files) > 2'}",
        "",
    );
    let engine = engine(&[&with_gates(&[gate])]);
    let (mut story, start) = Story::begin(&engine);
    assert_eq!(gates(&start), Vec::<&str>::new());
    assert_eq!(gates(&story.input("x")), Vec::<&str>::new());
    for (parameters, raised) in [
        (json!(null), false),
        (json!({}), false),
        (json!({"files": ["a"]}), false),
        (json!({"files": ["a", "b", "c"]}), true),
    ] {
        let asked = story.request_with("ticket.get", parameters.clone(), None);
        assert_eq!(!gates(&asked).is_empty(), raised, "{parameters}");
    }
}

#[test]
fn ga_15_a_service_is_asked_by_the_caller_and_fails_closed() {
    let text = with_gates(&[asking(
        "far",
        "{type: custom, trigger_id: 'https://steward.example/fire'}",
        "",
    )]);
    let engine = engine(&[&text]);
    // A simulation asks nobody, so the service fails, and the gate fires.
    let (_, start) = Story::begin(&engine);
    assert_eq!(gates(&start), ["far"]);
}

#[test]
fn ga_20_blocking_holds_advisory_tells_observational_records() {
    let text = format!(
        "{}context_blocks:\n  - {{context_id: note, content: hello}}\n",
        with_gates(&[
            "  - {checkpoint_id: tell, trigger: {type: action_pre, patterns: [ticket.get]}, mode: advisory, inject_contexts: [note]}\n".to_owned(),
            "  - {checkpoint_id: see, trigger: {type: action_pre, patterns: [ticket.get]}, mode: observational, inject_contexts: [note]}\n".to_owned(),
            asking("hold", "{type: action_pre, patterns: [ticket.delete]}", ""),
        ])
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let told = story.request("ticket.get");
    assert_eq!(told.decision, Decision::Allow);
    assert_eq!(contexts(&told), ["note"]);
    let status: Vec<GateStatus> = told.checkpoints.iter().map(|it| it.status).collect();
    assert_eq!(status, [GateStatus::Passed, GateStatus::Recorded]);
    let held = story.request("ticket.delete");
    assert_eq!(held.decision, Decision::Hold);
    assert_eq!(questions(&held), ["ok"]);
    assert!(held.hold_id.is_some());
    // Only what raised it waits.
    assert_eq!(story.decision("ticket.get"), Decision::Allow);
}

#[test]
fn ga_20_what_the_input_raises_holds_everything() {
    let text = with_gates(&[asking("word", "{type: keyword, patterns: [refund]}", "")]);
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.input("one refund please").decision, Decision::Hold);
    let waiting = story.request("ticket.get");
    assert_eq!(waiting.decision, Decision::Hold);
    assert!(waiting.allowed_actions.is_empty());
    // The same word again is the same hold.
    assert_eq!(story.input("refund!").hold_id, waiting.hold_id);
    story.answer("word", json!({"ok": true}));
    assert_eq!(story.decision("ticket.get"), Decision::Allow);
    assert_eq!(story.input("another refund").decision, Decision::Hold);
}

#[test]
fn ga_26_a_pass_lasts_the_session_the_request_or_the_firing() {
    let text = format!(
        "{}capabilities:\n  - {{capability_id: admin, actions: [user.ban]}}\n",
        with_gates(&[
            asking(
                "capability",
                "{type: capability_access, capability_ids: [admin]}",
                "    unlock_capabilities: [admin]\n"
            ),
            asking(
                "before",
                "{type: action_pre, patterns: [ticket.delete]}",
                ""
            ),
            asking("named", "{type: interactive}", ""),
        ])
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    // A capability: once for the session.
    assert_eq!(story.decision("user.ban"), Decision::Hold);
    story.answer("capability", json!({"ok": true}));
    assert_eq!(story.decision("user.ban"), Decision::Allow);
    assert_eq!(story.decision("user.ban"), Decision::Allow);
    // An action: for exactly the request that raised it, once.
    let one = json!({"id": 1});
    let held = story.request_with("ticket.delete", one.clone(), None);
    assert_eq!(held.decision, Decision::Hold);
    let (_, after) = story.answer("before", json!({"ok": true}));
    assert_eq!(after.decision, Decision::Allow);
    let other = story.request_with("ticket.delete", json!({"id": 2}), None);
    assert_eq!(other.decision, Decision::Hold, "another request is asked");
    let again = story.request_with("ticket.delete", one.clone(), None);
    assert_eq!(again.decision, Decision::Allow);
    let next = story.request_with("ticket.delete", one, None);
    assert_eq!(next.decision, Decision::Hold, "the next one is asked again");
    // One that is raised by name: once for the session.
    assert_eq!(story.ask(Some("named")).decision, Decision::Hold);
    story.answer("named", json!({"ok": true}));
    assert_eq!(questions(&story.ask(Some("named"))), Vec::<&str>::new());
}

#[test]
fn ga_26_a_request_that_was_reported_is_over() {
    let text = with_gates(&[asking(
        "before",
        "{type: action_pre, patterns: [ticket.delete]}",
        "",
    )]);
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.request("ticket.delete");
    story.answer("before", json!({"ok": true}));
    story.report(Outcome::Ok);
    assert_eq!(story.decision("ticket.delete"), Decision::Hold);
}

#[test]
fn ga_32_a_caller_can_raise_the_risk_and_never_lower_it() {
    let text = with_gates(&[asking("risk", "{type: risk_threshold, min_tier: high}", "")]);
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let low = Some(RiskTier::Low);
    let banned = story.request_with("user.ban", json!({}), low);
    assert_eq!(banned.decision, Decision::Hold);
    assert_eq!(story.decision("ticket.get"), Decision::Allow);
    let critical = Some(RiskTier::Critical);
    let raised = story.request_with("ticket.get", json!({}), critical);
    assert_eq!(raised.decision, Decision::Hold);
}
