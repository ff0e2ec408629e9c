//! The texts of the specification, unchanged.

use serde_json::Value;

use super::{ACME, FULL, HEAD, problems};
use crate::atlas::{AtlasManifest, CheckpointTrigger, InjectMode, PolicyType, RiskTier};
use crate::load::{check, read, schema, validator};

#[test]
fn ga_01_the_complete_example_loads_unchanged() {
    let atlas = read(ACME).unwrap();
    assert_eq!(atlas.atlas_id, "com.acme.support");
    let steward = atlas.steward.as_ref().unwrap();
    assert_eq!(steward.access.api_keys, ["sk-acme-*"]);
    assert_eq!(
        steward.access.rate_limit.unwrap().requests_per_minute,
        Some(100)
    );
    assert_eq!(steward.notifications.as_ref().unwrap().triggers.len(), 2);
    assert_eq!(atlas.checkpoints.len(), 4);
    assert_eq!(atlas.checkpoints[1].priority, Some(900));
    assert!(atlas.checkpoints[1].force_sync_trace);
    assert_eq!(
        atlas.checkpoints[2].trigger,
        CheckpointTrigger::RiskThreshold {
            min_tier: RiskTier::High
        }
    );
    assert_eq!(atlas.context_blocks[0].inject_mode, InjectMode::OnDemand);
    assert_eq!(atlas.policies[0].policy_type, PolicyType::RequiresApproval);
    assert!(atlas.actions[0].parameters_schema.is_some());
}

#[test]
fn ga_01_every_field_is_read_and_nothing_is_wrong_with_it() {
    assert_eq!(problems(FULL), Vec::<String>::new());
    let atlas = read(FULL).unwrap();
    assert_eq!(atlas.checkpoints.len(), 15);
    // The same as JSON: nothing is lost on the way.
    let json = serde_json::to_string(&atlas).unwrap();
    assert_eq!(read(&json).unwrap(), atlas);
}

#[test]
fn ga_06_actions_that_are_not_defined_are_one_warning_each() {
    let expected = [
        "warning 28:29 action `ticket.list` is not defined",
        "warning 28:44 action `ticket.comment` is not defined",
        "warning 32:15 action `ticket.delete` is not defined",
        "warning 32:32 action `ticket.reassign` is not defined",
        "warning 32:51 action `user.ban` is not defined",
    ];
    assert_eq!(problems(ACME), expected);
    assert!(check(ACME).manifest.is_some());
}

#[test]
fn ga_06_both_forms_of_a_choice_a_number_and_a_json_question_load() {
    let atlas = read(FULL).unwrap();
    let questions = &atlas.checkpoints[0].questions;
    let by_id = |id: &str| questions.iter().find(|it| it.question_id == id).unwrap();
    assert_eq!(by_id("role").choices(), ["reader", "writer"]);
    assert_eq!(by_id("team").choices(), ["red", "blue"]);
    assert_eq!(by_id("many").bounds(), (Some(1.0), Some(9.5)));
    assert_eq!(by_id("few").bounds(), (Some(-1.0), Some(5.0)));
    assert!(by_id("plan").answer_schema().is_some());
    assert!(by_id("other-plan").answer_schema().is_some());
}

/// Each snippet of the specification that is part of an atlas, put into one.
#[test]
fn ga_01_each_snippet_of_the_specification_loads() {
    let contexts = "context_blocks:\n  - {context_id: intro-context, content: x}\n";
    let capabilities = "capabilities:\n  - {capability_id: basic-access, actions: [a.b]}\n  - {capability_id: admin-tools, actions: [admin.x]}\n  - {capability_id: sensitive-data, actions: [c.d]}\n  - {capability_id: audit-logs, actions: [e.f]}\n  - {capability_id: public-access, actions: [public.x]}\n";
    let frame = format!("{HEAD}{contexts}{capabilities}");
    let gates = [
        "checkpoints:\n  - checkpoint_id: \"onboarding\"\n    name: \"Session Onboarding\"\n    trigger:\n      type: session_start\n    mode: blocking\n    questions:\n      - question_id: \"agree-terms\"\n        question: \"Do you agree to the terms of service?\"\n        response_type: boolean\n        required: true\n    guidance:\n      format: markdown\n      content: |\n        Welcome! Please follow our guidelines.\n    inject_contexts:\n      - \"intro-context\"\n    unlock_capabilities:\n      - \"basic-access\"\n    priority: 1000\n",
        "checkpoints:\n  - checkpoint_id: \"admin-gate\"\n    name: \"Administrator Access\"\n    trigger:\n      type: capability_access\n      capability_ids: [\"admin-tools\"]\n    mode: blocking\n    questions:\n      - question_id: \"confirm-admin\"\n        question: \"I understand I am accessing admin tools\"\n        response_type: acknowledgment\n    unlock_capabilities:\n      - \"admin-tools\"\n      - \"audit-logs\"\n    lock_capabilities:\n      - \"public-access\"  # Lock public access when admin mode\n    allow_actions:\n      - \"admin.*\"\n    deny_actions:\n      - \"public.*\"\n",
    ];
    for gate in gates {
        let text = format!("{frame}{gate}");
        assert!(read(&text).is_ok(), "{:?}", problems(&text));
    }
    let triggers = [
        "type: session_start  # Beginning of session\n",
        "type: session_end    # End of session\n",
        "type: action_pre     # Before action execution\n      patterns:\n        - \"*.delete\"       # Any delete action\n        - \"ticket.*\"       # Any ticket action\n",
        "type: action_post    # After action execution\n      patterns:\n        - \"payment.process\"\n",
        "type: keyword\n      patterns:\n        - \"refund\"\n        - \"cancel\"\n      case_sensitive: false\n      match_mode: any  # any, all, phrase, regex\n",
        "type: risk_threshold\n      min_tier: high  # low, medium, high, critical\n",
        "type: capability_access\n      capability_ids:\n        - \"admin-tools\"\n        - \"sensitive-data\"\n",
        "type: time_interval\n      seconds: 300  # Every 5 minutes\n",
        "type: count_interval\n      actions: 10  # Every 10 actions\n",
        "type: custom\n      trigger_id: \"sentiment-check\"\n      params:\n        threshold: -0.5\n",
    ];
    for trigger in triggers {
        let text =
            format!("{frame}checkpoints:\n  - checkpoint_id: gate\n    trigger:\n      {trigger}");
        assert!(read(&text).is_ok(), "{trigger}: {:?}", problems(&text));
    }
    let parts = [
        "questions:\n      - question_id: \"justification\"\n        question: \"Provide justification for this action\"\n        response_type: text\n        required: true\n        hint: \"Explain why you need to perform this action\"\n        validation:\n          min_length: 20\n          max_length: 500\n          must_contain:\n            - \"reason\"\n          must_not_contain:\n            - \"hack\"\n            - \"bypass\"\n          pattern: \"^[A-Za-z].*\\\\.$\"  # Regex validation\n        on_invalid: retry  # retry, block, warn_and_continue, log_and_continue\n",
        "guidance:\n      format: markdown  # text, markdown, json, system_instruction\n      content: |\n        ## Important Guidelines\n\n        When handling customer data:\n        1. Never expose PII in logs\n      priority: 100\n      append: true  # Append to existing guidance or replace\n      expires_after: \"session-end\"  # Remove after this checkpoint\n      labels:\n        - security\n        - compliance\n",
    ];
    for part in parts {
        let text = format!(
            "{frame}checkpoints:\n  - checkpoint_id: gate\n    trigger: {{type: session_start}}\n    mode: blocking\n    {part}"
        );
        assert!(read(&text).is_ok(), "{part}: {:?}", problems(&text));
    }
}

#[test]
fn ga_01_the_configuration_of_the_specification_loads_as_json() {
    let config = r#"{"session_start": {"enabled": true, "inject_contexts": ["essential-facts", "governance-rules"]},
        "keyword_match": {"enabled": true, "mappings": {"geometry|index": ["geometry-context"], "delete|remove": ["destructive-warning"]}, "case_sensitive": false, "match_mode": "any"},
        "action_pre": {"enabled": true, "mappings": {"delete_*": {"inject_contexts": ["deletion-warning"], "require_policy_check": true, "require_confirmation": true}}},
        "risk_threshold": {"enabled": true, "min_tier": "high", "inject_contexts": ["high-risk-procedures"], "require_sync_trace": true},
        "time_interval": {"enabled": false, "seconds": 300, "inject_contexts": ["refresh-context"]},
        "count_interval": {"enabled": false, "actions": 50, "inject_contexts": ["periodic-reminder"]},
        "budget": {"max_checkpoints_per_input": 5, "max_context_injection_size": 10000, "max_checkpoint_time_ms": 500}}"#;
    let contexts = [
        "essential-facts",
        "governance-rules",
        "geometry-context",
        "destructive-warning",
        "deletion-warning",
        "high-risk-procedures",
        "refresh-context",
        "periodic-reminder",
    ];
    let blocks: Vec<_> = contexts
        .iter()
        .map(|id| serde_json::json!({"context_id": id, "content": "x"}))
        .collect();
    let atlas = serde_json::json!({
        "atlas_version": "1.0", "atlas_id": "a.b", "version": "1", "name": "Test",
        "context_blocks": blocks,
        "checkpoint_config": serde_json::from_str::<Value>(config).unwrap(),
    });
    let text = serde_json::to_string_pretty(&atlas).unwrap();
    let atlas = read(&text).unwrap();
    let config = atlas.checkpoint_config.unwrap();
    let mappings = config.action_pre.unwrap().mappings;
    assert!(mappings.0[0].1.require_confirmation);
    assert_eq!(config.budget.unwrap().max_checkpoints_per_input, Some(5));
    let told = problems(&text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].ends_with("`require_policy_check` changes nothing: policies are always checked")
    );
}

#[test]
fn ga_03_the_schema_is_one_and_the_examples_validate_against_it() {
    let schema = schema();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    assert_eq!(schema["title"], "Safepoint atlas");
    assert!(schema.get("$id").is_none());
    assert!(schema["properties"]["checkpoints"]["description"].is_string());
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let validator = validator(&schema).unwrap();
    for text in [ACME, FULL] {
        let value: Value = safepoint_model::yaml::read_as(text).unwrap();
        let errors: Vec<_> = validator
            .iter_errors(&value)
            .map(|it| it.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new());
        // What is written back is an atlas too.
        let atlas: AtlasManifest = serde_json::from_value(value).unwrap();
        assert!(validator.is_valid(&serde_json::to_value(&atlas).unwrap()));
    }
    assert!(!validator.is_valid(&serde_json::json!({"atlas_version": "1.0"})));
}
