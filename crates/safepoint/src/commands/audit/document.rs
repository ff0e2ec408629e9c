//! What `audit` says, and how it is shown.

use safepoint_control::pass::{ReachedTargets, RefusedTarget};
use safepoint_model::text;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{BAD, FAINT, GOOD, STRONG, WARNING, count, name};

/// What `audit` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditReply {
    pub(super) audit_record: AuditRecord,
    /// What changed, oldest first.
    pub(super) changes: Vec<ChangeRecord>,
    /// What was tried and did not succeed, oldest first.
    pub(super) failures: Vec<FailureRecord>,
    /// What actions reached outside the fence, were refused, or did for good, oldest first.
    pub(super) effects: Vec<EffectRecord>,
    /// What was used, and how often it worked.
    pub(super) tool_usage: Vec<ToolUsage>,
    /// Why it was done, in the words of those who did it.
    pub(super) decision_rationale: String,
    pub(super) provenance: Provenance,
    /// The share of the actions whose outcome is known and whose changes can still be shown.
    pub(super) confidence: f64,
    /// Where to see that it is so.
    pub(super) evidence_anchors: Vec<String>,
    /// What was taken for granted.
    pub(super) assumptions: Vec<String>,
}

/// Everything in a few words.
#[derive(Serialize, JsonSchema)]
pub(super) struct AuditRecord {
    pub(super) id: String,
    /// When this was put together.
    pub(super) timestamp: String,
    /// Who did it.
    pub(super) actor: String,
    /// What kinds of actions.
    pub(super) action_type: String,
    /// What was touched.
    pub(super) targets: Vec<String>,
    /// `success`, `failure` or `partial`.
    pub(super) outcome: &'static str,
    /// How many actions.
    pub(super) actions: u64,
}

/// One thing that changed.
#[derive(Serialize, JsonSchema)]
pub(super) struct ChangeRecord {
    /// `create`, `modify`, `delete` or `execute`.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// What it was: digest and size; null for nothing.
    pub(super) before: Option<String>,
    /// What it became.
    pub(super) after: Option<String>,
    /// Which file, database or state.
    pub(super) location: String,
    pub(super) timestamp: String,
    pub(super) action_id: String,
    /// How the action ended.
    pub(super) outcome: String,
}

/// One action that did not succeed.
#[derive(Serialize, JsonSchema)]
pub(super) struct FailureRecord {
    pub(super) action_id: String,
    pub(super) timestamp: String,
    /// What it was to be done to.
    pub(super) targets: Vec<String>,
    /// `failed`, `unverified` for one that was kept all the same, `unknown`, or `tampered` where the
    /// store no longer has what was written.
    pub(super) outcome: String,
    /// What was wrong.
    pub(super) why: Option<String>,
}

/// What one action did or wanted outside the fence.
#[derive(Serialize, JsonSchema)]
pub(super) struct EffectRecord {
    pub(super) action_id: String,
    pub(super) timestamp: String,
    /// Whether it can be taken back: `reversible`, `partly`, `irreversible` or `unknown`.
    pub(super) reversibility: Option<&'static str>,
    /// What of it cannot.
    pub(super) remainder: Vec<String>,
    pub(super) reached: ReachedTargets,
    pub(super) refused: Vec<RefusedTarget>,
}

/// One tool.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToolUsage {
    pub(super) tool: String,
    pub(super) invocation_count: u64,
    /// From 0 to 1.
    pub(super) success_rate: f64,
}

/// Where everything came from.
#[derive(Serialize, JsonSchema)]
pub(super) struct Provenance {
    /// The states before.
    pub(super) inputs: Vec<String>,
    /// The states after.
    pub(super) outputs: Vec<String>,
    /// Databases and states outside the workspace.
    pub(super) dependencies: Vec<String>,
}

pub(super) fn show(reply: &AuditReply) -> String {
    let safe = |text: &str| text::line(text).text;
    let record = &reply.audit_record;
    let style = match record.outcome {
        "success" => GOOD,
        "failure" => BAD,
        _ => WARNING,
    };
    if record.actions == 0 {
        return format!("{STRONG}no actions{STRONG:#}\n");
    }
    let mut shown = format!(
        "{STRONG}{}{STRONG:#} by {}: {style}{}{style:#}\n",
        count(record.actions, "action", "actions"),
        safe(&record.actor),
        record.outcome,
    );
    if !reply.decision_rationale.is_empty() {
        shown.push_str(&format!(
            "  {FAINT}why{FAINT:#}  {}\n",
            safe(&reply.decision_rationale)
        ));
    }
    for tool in &reply.tool_usage {
        shown.push_str(&format!(
            "  {FAINT}used{FAINT:#} {} {}, {:.0} % worked\n",
            safe(&tool.tool),
            count(tool.invocation_count, "time", "times"),
            tool.success_rate * 100.0,
        ));
    }
    let time = |time: &str| {
        time.replace('T', " ")
            .get(..19)
            .unwrap_or_default()
            .to_owned()
    };
    for change in &reply.changes {
        shown.push_str(&format!(
            "{}  {:<8} {}  {FAINT}{}{FAINT:#}\n",
            time(&change.timestamp),
            change.kind,
            name(&change.location),
            change.action_id,
        ));
    }
    for effect in &reply.effects {
        let reached = effect.reached.names().map(|it| format!("reached {it}"));
        let refused = effect.refused.iter();
        let refused = refused.map(|it| format!("refused {} {}", it.action, it.target));
        let lasting = effect.remainder.iter();
        let lasting = lasting.map(|it| format!("for good: {it}"));
        for line in reached.chain(refused).chain(lasting) {
            shown.push_str(&format!(
                "{}  {WARNING}{}{WARNING:#}  {FAINT}{}{FAINT:#}\n",
                time(&effect.timestamp),
                safe(&line),
                effect.action_id,
            ));
        }
    }
    for failure in &reply.failures {
        let why = failure.why.as_deref().unwrap_or_default();
        shown.push_str(&format!(
            "{}  {BAD}{:<8}{BAD:#} {}  {FAINT}{}{FAINT:#}  {}\n",
            time(&failure.timestamp),
            failure.outcome,
            safe(&failure.targets.join(", ")),
            failure.action_id,
            text::shorten(&safe(why), 100),
        ));
    }
    shown
}
