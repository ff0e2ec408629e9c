//! Policies: whether each has what its kind needs.

use crate::atlas::{AtlasManifest, AtlasPolicy, PolicyType};
use crate::cedar::CedarPolicies;
use crate::load::finding::Findings;
use crate::load::suggest::shown;

pub(super) fn check(atlas: &AtlasManifest, findings: &mut Findings) {
    for (index, policy) in atlas.policies.iter().enumerate() {
        let here = || format!("/policies/{index}");
        let cedar = policy.policy_type == PolicyType::Cedar;
        let id = shown(&policy.policy_id);
        if policy.actions.is_empty() && !cedar {
            findings.error(
                here(),
                format!("policy `{id}` is about no action"),
                "list names or patterns under `actions`; `*` stands for all",
            );
        }
        match &policy.cedar {
            Some(text) if cedar => cedar_text(text, &format!("{}/cedar", here()), findings),
            None if cedar => findings.error(
                here(),
                format!("policy `{id}` has no Cedar text"),
                "write the policy set under `cedar`",
            ),
            Some(_) => findings.key_error(
                format!("{}/cedar", here()),
                format!("policy `{id}` is not of type `cedar`, so this text is never used"),
                "say `type: cedar`, or leave it out",
            ),
            None => {}
        }
        parameters(policy, index, findings);
    }
}

fn parameters(policy: &AtlasPolicy, index: usize, findings: &mut Findings) {
    let id = shown(&policy.policy_id);
    let given = policy.parameters.unwrap_or_default();
    let limits = given.max_calls.is_some() || given.window_seconds.is_some();
    let tiers = given.max_tier.is_some() || given.approval_tier.is_some();
    let mut missing = |message: String, hint: &str| {
        findings.error(format!("/policies/{index}"), message, hint);
    };
    match policy.policy_type {
        PolicyType::RateLimit if given.max_calls.is_none() || given.window_seconds.is_none() => {
            missing(
                format!("policy `{id}` limits a rate without saying which"),
                "give `max_calls` and `window_seconds` under `parameters`",
            );
        }
        PolicyType::Risk if !tiers => missing(
            format!("policy `{id}` is about risk and names no tier"),
            "give `max_tier` or `approval_tier` under `parameters`",
        ),
        _ => {}
    }
    let approval = given.approvers.is_some() || given.trust_after.is_some();
    let approves = matches!(
        policy.policy_type,
        PolicyType::RequiresApproval | PolicyType::Risk
    );
    let unused = (approval && !approves)
        || match policy.policy_type {
            PolicyType::RateLimit => tiers,
            PolicyType::Risk => limits,
            _ => tiers || limits,
        };
    if unused {
        findings.key_error(
            format!("/policies/{index}/parameters"),
            format!("policy `{id}` has parameters that its type does not use"),
            "`max_calls` and `window_seconds` are for `rate_limit`, `max_tier` and `approval_tier` for `risk`, `approvers` and `trust_after` where a person decides",
        );
    }
}

fn cedar_text(text: &str, pointer: &str, findings: &mut Findings) {
    if text.trim().is_empty() {
        findings.key_error(
            pointer.to_owned(),
            "the Cedar policy set is empty".to_owned(),
            "it would deny everything; write a `permit`",
        );
        return;
    }
    let Err(errors) = CedarPolicies::parse(text) else {
        return;
    };
    for error in errors {
        let line = error
            .offset
            .and_then(|offset| text.get(..offset))
            .map(|before| before.matches('\n').count() + 1);
        let hint = line.map(|line| format!("it is on line {line} of the policy set"));
        findings.error(
            pointer.to_owned(),
            format!("Cedar: {}", shown(&error.message)),
            hint,
        );
    }
}

pub(super) fn warn(atlas: &AtlasManifest, findings: &mut Findings) {
    for (index, policy) in atlas.policies.iter().enumerate() {
        if let Some(text) = &policy.cedar
            && policy.policy_type == PolicyType::Cedar
            && !text.trim().is_empty()
            && !permits(text)
            && !findings.has_error_at(&format!("/policies/{index}/cedar"))
        {
            findings.warning(
                format!("/policies/{index}/cedar"),
                "no policy of this set permits anything, so it denies everything it is about"
                    .to_owned(),
                "begin with `permit (principal, action, resource);` and forbid what must not be",
            );
        }
    }
}

/// Whether a `permit` stands outside comments and texts.
fn permits(text: &str) -> bool {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(|line| line.split('"').step_by(2))
        .collect::<Vec<_>>()
        .join(" ");
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == "permit")
}
