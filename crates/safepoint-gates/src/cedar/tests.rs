//! What policies permit, what they forbid, and what goes wrong.

use cedar_policy::{Authorizer, Decision, Request};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> CedarPolicies {
    CedarPolicies::parse(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

fn mistakes(text: &str) -> Vec<CedarError> {
    CedarPolicies::parse(text).expect_err(text)
}

fn decide(text: &str, action: &str, parameters: &Value) -> CedarVerdict {
    parse(text).decide(&request(action, parameters))
}

fn request<'a>(action: &'a str, parameters: &'a Value) -> CedarRequest<'a> {
    CedarRequest {
        principal: "claude",
        action,
        session: "s-1",
        risk: RiskTier::High,
        parameters,
        unlocked: &["admin"],
    }
}

fn denied(verdict: CedarVerdict) -> String {
    match verdict {
        CedarVerdict::Deny(reason) => reason,
        CedarVerdict::Permit => panic!("permitted"),
    }
}

/// The example of `docs/cedar.md`.
const EXAMPLE: &str = r#"
@id("readers")
permit (principal, action in [Action::"file.read", Action::"git.status"], resource);

@id("writers")
permit (principal == Agent::"claude", action, resource)
when { context.action like "file.*" && context.unlocked.contains("admin") };

@id("keep-the-system")
forbid (principal, action == Action::"file.delete", resource)
when {
  context.parameters.hasTag("path") &&
  context.parameters.getTag("path") like "/etc/*"
};

@id("not-too-many")
forbid (principal, action, resource)
when { context.numbers.hasTag("count") && context.numbers.getTag("count") > 100 };

forbid (principal, action, resource) when { context.risk_level >= 3 };
"#;

#[test]
fn ga_35_policies_permit_and_forbid() {
    let policies = parse(EXAMPLE);
    let none = json!({});
    assert_eq!(
        policies.decide(&request("git.status", &none)),
        CedarVerdict::Permit
    );
    assert_eq!(
        policies.decide(&request("file.write", &none)),
        CedarVerdict::Permit
    );
    let home = json!({"path": "/home/a"});
    assert_eq!(
        policies.decide(&request("file.delete", &home)),
        CedarVerdict::Permit
    );
    let system = json!({"path": "/etc/passwd"});
    assert_eq!(
        denied(policies.decide(&request("file.delete", &system))),
        "forbidden by `keep-the-system`"
    );
    assert_eq!(
        denied(policies.decide(&request("file.read", &json!({"count": 101})))),
        "forbidden by `not-too-many`"
    );
    // An action that no policy names.
    assert_eq!(
        denied(policies.decide(&request("git.push", &none))),
        "no policy permits it"
    );
    let other = CedarRequest {
        principal: "other",
        ..request("file.write", &none)
    };
    assert_eq!(denied(policies.decide(&other)), "no policy permits it");
    let locked = CedarRequest {
        unlocked: &[],
        ..request("file.write", &none)
    };
    assert_eq!(denied(policies.decide(&locked)), "no policy permits it");
    let critical = CedarRequest {
        risk: RiskTier::Critical,
        ..request("git.status", &none)
    };
    assert_eq!(denied(policies.decide(&critical)), "forbidden by `policy4`");
}

#[test]
fn ga_35_the_documentation_has_this_example() {
    let page = include_str!("../../../../docs/cedar.md");
    assert!(page.contains(EXAMPLE.trim()), "docs/cedar.md is stale");
    assert!(
        page.contains(schema::TYPES.trim()),
        "docs/cedar.md is stale"
    );
}

#[test]
fn ga_35_parameters_are_flattened() {
    let parameters = json!({
        "options": {"force": true, "depth": 2},
        "files": ["a", "b"],
        "rate": 0.5,
        "nothing": null,
    });
    let holds = |condition: &str| {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        decide(&text, "x", &parameters) == CedarVerdict::Permit
    };
    let tag = |name: &str, value: &str| {
        holds(&format!(
            "context.parameters.hasTag(\"{name}\") && context.parameters.getTag(\"{name}\") == \"{value}\""
        ))
    };
    assert!(tag("options.force", "true"));
    assert!(tag("options.depth", "2"));
    assert!(tag("files.1", "b"));
    assert!(tag("rate", "0.5"));
    assert!(!tag("files.1", "a"));
    assert!(!holds("context.parameters.hasTag(\"nothing\")"));
    assert!(!holds("context.numbers.hasTag(\"rate\")"));
    assert!(holds("context.parameters_json like \"*\\\"depth\\\":2*\""));
    assert!(holds(
        "context.risk == \"high\" && context.session == \"s-1\" && resource == Session::\"s-1\""
    ));
}

#[test]
fn ga_35_parameters_that_cannot_be_shown_whole_are_denied() {
    let all = "permit (principal, action, resource);";
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert!(denied(decide(all, "x", &deep)).contains("deeper"));
    let many: Vec<u32> = (0..2_000).collect();
    assert!(denied(decide(all, "x", &json!(many))).contains("more than"));
    let twice = json!({"a.b": "safe", "a": {"b": "hidden"}});
    assert!(denied(decide(all, "x", &twice)).contains("`a.b`"));
    let twice = json!({"a.b": 1, "a": {"b": 2}});
    assert!(denied(decide(all, "x", &twice)).contains("`a.b`"));
}

/// Valid under the strictest rules, and still an error: the number overflows.
const FAILS: &str = r#"
permit (principal, action, resource);
@id("broken")
forbid (principal, action, resource)
when { context.risk_level * 9223372036854775807 > 0 };
"#;

#[test]
fn ga_35_a_forbid_that_fails_denies_where_cedar_allows() {
    let policies = parse(FAILS);
    let parameters = json!({});
    let request = request("x", &parameters);
    // The trap: Cedar skips the policy that fails, and allows.
    let (plain, entities) = policies.names.build(&request).unwrap();
    let response = Authorizer::new().is_authorized(&plain, &policies.policies, &entities);
    assert_eq!(response.decision(), Decision::Allow);
    assert_eq!(response.diagnostics().errors().count(), 1);
    // The door.
    let reason = denied(policies.decide(&request));
    assert!(reason.contains("could not be evaluated"), "{reason}");
    assert!(reason.contains("overflow"), "{reason}");
    // Where it does not fail, it decides.
    let low = CedarRequest {
        risk: RiskTier::Low,
        ..request
    };
    assert_eq!(policies.decide(&low), CedarVerdict::Permit);
    let medium = CedarRequest {
        risk: RiskTier::Medium,
        ..request
    };
    assert_eq!(denied(policies.decide(&medium)), "forbidden by `broken`");
}

#[test]
fn ga_35_a_permit_that_fails_denies_though_another_permits() {
    let text = "permit (principal, action, resource);
        permit (principal, action, resource) when { context.risk_level * 9223372036854775807 > 0 };";
    assert!(denied(decide(text, "x", &json!({}))).contains("could not be evaluated"));
}

#[test]
fn ga_35_what_is_built_fits_the_schema() {
    let policies = parse(EXAMPLE);
    let schema = schema::schema_for(&policies.policies).unwrap();
    let parameters = json!({"path": "/etc", "count": 3, "deep": {"list": [1, "x"]}});
    let (built, entities) = policies
        .names
        .build(&request("file.delete", &parameters))
        .unwrap();
    Request::new(
        built.principal().unwrap().clone(),
        built.action().unwrap().clone(),
        built.resource().unwrap().clone(),
        built.context().unwrap().clone(),
        Some(&schema),
    )
    .unwrap();
    cedar_policy::Entities::from_entities(entities.iter().cloned(), Some(&schema)).unwrap();
}

#[test]
fn ga_35_mistakes_are_found_with_their_place() {
    let text = "permit (principal, action, resource) when { context.rsk == \"high\" };";
    let errors = mistakes(text);
    assert!(errors[0].message.contains("rsk"), "{errors:?}");
    let offset = errors[0].offset.unwrap();
    assert!(text[offset..].starts_with("context.rsk"), "{errors:?}");

    let text = "permit (principal, action, resource) when {";
    assert_eq!(mistakes(text)[0].offset, Some(text.len()));

    for text in [
        "",
        "forbid (principal, action, resource);",
        "permit (principal == User::\"x\", action, resource);",
        "permit (principal == ?principal, action, resource);",
        "permit (principal, action, resource) when { context.risk == 3 };",
        "permit (principal, action, resource) when { context.parameters.getTag(\"a\") == \"b\" };",
        "permit (principal, action, resource) when { context.risk_level };",
        "permit (principal, action == Other::Action::\"x\", resource);",
        "permit (principal, action == Action::\"git.*\", resource);",
        "permit (principal, action, resource",
    ] {
        assert!(!mistakes(text).is_empty(), "{text}");
    }
    // All of them, not just the first.
    let text = "permit (principal, action, resource) when { context.one };
        permit (principal, action, resource) when { context.two };";
    assert_eq!(mistakes(text).len(), 2);
}

#[test]
fn ga_35_actions_may_have_any_name() {
    let text = r#"permit (principal, action == Action::"a \"quoted\" \\ näme", resource);"#;
    assert_eq!(
        decide(text, "a \"quoted\" \\ näme", &json!({})),
        CedarVerdict::Permit
    );
    assert_eq!(
        denied(decide(text, "x", &json!({}))),
        "no policy permits it"
    );
    let text = r#"permit (principal, action, resource) when { action != Action::"git.push" };"#;
    assert_eq!(decide(text, "x", &json!({})), CedarVerdict::Permit);
    assert!(!denied(decide(text, "git.push", &json!({}))).is_empty());
}

#[test]
fn ga_35_hostile_text_is_refused_and_does_not_overflow() {
    let when =
        |condition: String| format!("permit (principal, action, resource) when {{ {condition} }};");
    for text in [
        when(format!("{}true{}", "(".repeat(20_000), ")".repeat(20_000))),
        when(format!(
            "{}1{} == 1",
            "[".repeat(20_000),
            "]".repeat(20_000)
        )),
        when(format!("context{}", ".a".repeat(20_000))),
        when(format!("true{}", " && true".repeat(7_000))),
        when(format!("{}true", "!".repeat(20_000))),
        when(format!("{}true", "if true then true else ".repeat(2_500))),
        when(format!("1{} == 1", " + 1".repeat(15_000))),
        "(".repeat(60_000),
        "(;".repeat(30_000),
    ] {
        let errors = mistakes(&text);
        assert!(errors[0].message.contains("too deep"), "{errors:?}");
        assert!(errors[0].offset.is_some());
    }
    // As deep as it may be.
    for text in [
        when(format!("context{}", ".a".repeat(500))),
        when(format!("true{}", " && true".repeat(250))),
        when(format!("{}true", "if true then true else ".repeat(500))),
        when(format!("1{} == 1", " + 1".repeat(500))),
        when(format!("{}true{}", "(".repeat(30), ")".repeat(30))),
    ] {
        if let Ok(policies) = CedarPolicies::parse(&text) {
            policies.decide(&request("x", &json!({})));
        }
    }
    assert!(
        mistakes(&" ".repeat(MAX_BYTES + 1))[0]
            .message
            .contains("bytes")
    );
}

/// What a fuzzer would call.
fn fuzz_cedar(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match CedarPolicies::parse(&text) {
        Ok(policies) => {
            let parameters = json!({"a": 1});
            let first = policies.decide(&request("x", &parameters));
            assert_eq!(policies.decide(&request("x", &parameters)), first);
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            assert!(
                errors
                    .iter()
                    .all(|error| error.offset.unwrap_or(0) <= text.len())
            );
        }
    }
}

const PIECES: [&str; 30] = [
    "permit (principal, action, resource)",
    "forbid (principal, action, resource)",
    " when { ",
    " unless { ",
    " }",
    ";",
    "context",
    ".risk",
    ".risk_level",
    ".unlocked",
    ".parameters",
    ".hasTag(\"a\")",
    ".getTag(\"a\")",
    " == ",
    " && ",
    " || ",
    "!",
    "(",
    ")",
    "1",
    " * ",
    " + ",
    "9223372036854775807",
    "\"x\"",
    " like \"*\"",
    " in ",
    "Action::\"x\"",
    "[",
    "]",
    "@id(\"a\")",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn ga_35_any_bytes_as_cedar(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_cedar(&data);
    }

    #[test]
    fn ga_35_any_pieces_as_cedar(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)) {
        fuzz_cedar(pieces.concat().as_bytes());
        let condition = format!("permit (principal, action, resource) when {{ {} }};", pieces.concat());
        fuzz_cedar(condition.as_bytes());
    }
}
