//! CEL: what is said, what is refused, and what it costs.

use super::*;

fn run(expression: &str) -> Result<Said, SandboxError> {
    Program::cel(expression).unwrap().run(&input())
}

fn yes(expression: &str) -> bool {
    let said = run(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    said.yes
}

#[test]
fn ga_15_cel_says_yes_or_no() {
    for expression in [
        "answer.contains('ticket')",
        "size(answer) > 5 && risk in ['high', 'critical']",
        "params.count + 1 == 4",
        "params.tags.all(tag, tag.matches('^[a-z]$'))",
        "params.tags.map(tag, tag + tag) == ['aa', 'bb']",
        "params.tags.filter(tag, tag != 'a').size() == 1",
        "params.tags.exists_one(tag, tag == 'a')",
        "has(params.path) && !has(params.other)",
        "type(params.count) == int && params.rate < 1.0",
        "params.path.startsWith('/srv') ? true : false",
        "params['count'] == 3 && session.actions >= 7",
        "int('4') == 4 && string(4) == '4' && matches(answer, '[0-9]+')",
        "['x', 'y'].exists(left, ['y'].exists(right, left == right))",
        "-params.count == -3 && params.count % 2 == 1",
    ] {
        assert!(yes(expression), "{expression}");
        assert!(!yes(&format!("!({expression})")), "{expression}");
    }
}

#[test]
fn ga_15_cel_gives_a_message_that_is_safe_to_show() {
    let said = run(r#"{"valid": size(answer) > 100, "message": "too short\u001b[2J"}"#).unwrap();
    assert!(!said.yes);
    let message = said.message.unwrap();
    assert!(message.starts_with("too short"));
    assert!(!message.contains('\u{1b}'));
    assert!(run("{'fire': true}").unwrap().yes);
}

#[test]
fn ga_15_cel_of_another_kind_fails() {
    for expression in [
        "1",
        "answer",
        "null",
        "{'valid': 1}",
        "{'message': 'x'}",
        "{'valid': true, 'fire': false}",
        "{'valid': true, 'other': 1}",
        "{'valid': true, 'message': 1}",
        "{1: true}",
        "[true]",
    ] {
        assert!(failed(run(expression)).contains("neither"), "{expression}");
    }
}

#[test]
fn ga_15_cel_that_cannot_be_evaluated_fails() {
    for (expression, reason) in [
        ("1 / 0 == 1", "division by zero"),
        ("params.count % 0 == 1", "division by zero"),
        ("9223372036854775807 + params.count > 0", "too large"),
        ("params.missing == 1", "there is no `missing`"),
        ("params.tags[9] == 'a'", "shorter"),
        ("answer + 1 == 'x'", "wrong kind"),
        ("int(answer) == 1", "cannot be done"),
        ("answer && true", "overload"),
    ] {
        let message = failed(run(expression));
        assert!(message.contains(reason), "{expression}: {message}");
        assert!(!message.contains("ticket 42"), "{expression}: {message}");
    }
}

#[test]
fn ga_15_a_name_that_is_not_given_fails_even_behind_or() {
    assert!(failed(run("unknown || true")).contains("`unknown`"));
    assert!(failed(run("true || unknown.member")).contains("`unknown`"));
    assert!(failed(run("params.tags.all(tag, other)")).contains("`other`"));
}

#[test]
fn ga_15_cel_that_is_no_cel_is_refused() {
    for expression in [
        "",
        "1 +",
        "answer ==",
        "'open",
        "now()",
        "timestamp('2024-01-01T00:00:00Z') != null",
        "duration('1s') == duration('1s')",
        "optional.of(answer).hasValue()",
        "params.?path.hasValue()",
        "answer.matches(question)",
        "answer.matches('(')",
        "answer.matches('a{1000}{1000}')",
        "Message{field: 1}.field == 1",
        "answer.lowerAscii() == 'x'",
        "@budget == 1",
    ] {
        let message = invalid(Program::cel(expression));
        assert!(!message.is_empty(), "{expression}");
    }
}

#[test]
fn ga_15_hostile_nesting_is_refused_and_does_not_overflow() {
    for expression in [
        "(".repeat(10_000),
        format!("{}1{}", "(".repeat(1_000), ")".repeat(1_000)),
        format!("{}1{}", "[".repeat(2_000), "]".repeat(2_000)),
        format!("{}true", "!".repeat(4_000)),
        format!("1{}", "+1".repeat(2_000)),
        format!("answer{}", ".a".repeat(2_000)),
        format!("1{}", " in a".repeat(800)),
        "true?".repeat(800),
        // Within the bounds of the text, and still too deep for a tree.
        format!("1{}", "+1".repeat(300)),
        format!("answer{}", ".a".repeat(300)),
        format!("{}1{}", "(".repeat(120), ")".repeat(120)),
        format!("{}1", "-".repeat(400)),
        format!("{}true", "true ? false : ".repeat(200)),
    ] {
        let short: String = expression.chars().take(20).collect();
        let result = Program::cel(&expression);
        // Brackets that add nothing may pass; what passes must run.
        if let Ok(program) = result {
            let _ = program.run(&input());
        } else {
            assert!(!invalid(result).is_empty(), "{short}");
        }
    }
    assert!(invalid(Program::cel(&"(".repeat(10_000))).contains("bytes"));
    assert!(invalid(Program::cel(&"(".repeat(1_000))).contains("brackets"));
    assert!(invalid(Program::cel(&format!("1{}", "+1".repeat(200)))).contains("deeper"));
}

#[test]
fn ga_15_loops_are_paid_for() {
    let many: Vec<u32> = (0..5_000).collect();
    let input = json!({"many": many, "answer": "x".repeat(200_000)});
    let exhausted = |expression: &str| {
        assert_eq!(
            Program::cel(expression).unwrap().run(&input),
            Err(SandboxError::Exhausted("steps")),
            "{expression}"
        );
    };
    let program = Program::cel("many.all(one, one >= 0)").unwrap();
    assert!(program.run(&input).unwrap().yes);
    // Loops in loops.
    exhausted("many.all(a, many.all(b, a + b >= 0))");
    // The error that ends it is not swallowed.
    exhausted("many.all(a, many.all(b, a + b >= 0)) || true");
    // Long texts, again and again.
    exhausted("many.all(one, answer.contains('y') == false)");
    exhausted("many.all(one, answer.matches('y') == false)");
    exhausted("many.all(one, answer != answer + 'x')");
    exhausted("size(many.map(one, answer)) > 0");
    exhausted("size(many.map(one, {'a': answer})) > 0");
    assert!(
        invalid(Program::cel(
            "many.all(a, many.all(b, many.all(c, a + b + c >= 0)))"
        ))
        .contains("loops")
    );
}

#[test]
fn ga_15_a_text_that_doubles_runs_out() {
    let mut expression = "[answer]".to_owned();
    for _ in 0..30 {
        expression.push_str(".map(a, a + a)");
    }
    expression.push_str(" == []");
    let program = Program::cel(&expression).unwrap();
    assert_eq!(program.run(&input()), Err(SandboxError::Exhausted("steps")));
}

#[test]
fn ga_15_maps_are_gone_through_in_order() {
    let members: serde_json::Map<String, Value> = (0..64)
        .map(|index| (format!("k{index:02}"), json!(index)))
        .collect();
    let expected: Vec<String> = members.keys().map(|key| format!("'{key}'")).collect();
    let input = json!({"params": members});
    let expression = format!("params.map(key, key) == [{}]", expected.join(", "));
    for _ in 0..20 {
        assert!(Program::cel(&expression).unwrap().run(&input).unwrap().yes);
    }
    let mixed = "{3: 1, 'b': 1, true: 1, 2u: 1, 'a': 1}.map(key, key) == [true, 2u, 3, 'a', 'b']";
    for _ in 0..20 {
        assert!(Program::cel(mixed).unwrap().run(&json!({})).unwrap().yes);
    }
}
