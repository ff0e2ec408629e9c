//! Numbers that the types hold and the schema refuses: an interval of nothing.

use crate::atlas::{AtlasManifest, CheckpointTrigger};
use crate::load::finding::Findings;
use crate::load::shape::scalar::too_small;

pub(in crate::load) fn check(atlas: &AtlasManifest, findings: &mut Findings) {
    let mut at_least_one = |number: Option<u64>, pointer: &dyn Fn() -> String| {
        if number == Some(0) {
            findings.error(pointer(), too_small("0", 1.0), None);
        }
    };
    for (index, gate) in atlas.checkpoints.iter().enumerate() {
        let (number, field) = match gate.trigger {
            CheckpointTrigger::TimeInterval { seconds } => (Some(seconds), "seconds"),
            CheckpointTrigger::CountInterval { actions } => (Some(actions), "actions"),
            _ => (None, ""),
        };
        at_least_one(number, &|| format!("/checkpoints/{index}/trigger/{field}"));
        for (question_index, question) in gate.questions.iter().enumerate() {
            at_least_one(question.max_attempts.map(u64::from), &|| {
                format!("/checkpoints/{index}/questions/{question_index}/max_attempts")
            });
        }
    }
    for (index, policy) in atlas.policies.iter().enumerate() {
        let window = policy.parameters.and_then(|it| it.window_seconds);
        at_least_one(window, &|| {
            format!("/policies/{index}/parameters/window_seconds")
        });
    }
    if let Some(config) = &atlas.checkpoint_config {
        let time = config.time_interval.as_ref().map(|it| it.seconds);
        at_least_one(time, &|| {
            "/checkpoint_config/time_interval/seconds".to_owned()
        });
        let count = config.count_interval.as_ref().map(|it| it.actions);
        at_least_one(count, &|| {
            "/checkpoint_config/count_interval/actions".to_owned()
        });
    }
    let limit = atlas.steward.as_ref().and_then(|it| it.access.rate_limit);
    if let Some(limit) = limit {
        let limits = [
            (limit.requests_per_minute, "requests_per_minute"),
            (limit.requests_per_hour, "requests_per_hour"),
            (limit.sessions_per_day, "sessions_per_day"),
            (limit.contexts_per_session, "contexts_per_session"),
        ];
        for (number, field) in limits {
            at_least_one(number, &|| format!("/steward/access/rate_limit/{field}"));
        }
    }
}
