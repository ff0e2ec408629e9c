//! The story of a session, out of its entries in the trail: one step for each action, and one
//! for each remark in between.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::diff::Change;

/// An entry of the trail.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) seq: u64,
    pub(super) time: String,
    pub(super) stream: String,
    pub(super) actor: String,
    pub(super) kind: String,
    pub(super) action_id: Option<String>,
    pub(super) body: Value,
    pub(super) prev_hash: Option<String>,
    pub(super) hash: String,
}

/// An action, as `log` tells it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Logged {
    pub(super) action_id: String,
    pub(super) checkpoint_id: Option<String>,
    pub(super) after_checkpoint_id: Option<String>,
    pub(super) changes: Vec<Change>,
    #[serde(default)]
    pub(super) undoes: Option<String>,
}

/// One step of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The action, if it is one.
    pub(super) action_id: Option<String>,
    /// When it began.
    pub(super) time: String,
    /// Who did it.
    pub(super) actor: String,
    /// What, in a line.
    pub(super) summary: String,
    /// Which built-in actions it comes to.
    pub(super) actions: Vec<String>,
    /// What was said to it.
    pub(super) decision: Option<String>,
    /// Why.
    pub(super) reason: Option<String>,
    /// The hold, if it waited.
    pub(super) hold_id: Option<String>,
    /// Who decided, and what.
    pub(super) decided: Vec<String>,
    /// The checkpoint before it.
    pub(super) checkpoint_id: Option<String>,
    /// How it ended.
    pub(super) outcome: Option<String>,
    /// What it reached outside the fence and was refused, and what of it cannot be taken back: a
    /// line each.
    pub(super) effects: Vec<String>,
    /// Its entry, where it is a remark.
    pub(super) entry: Option<String>,
}

/// What keeps books, and tells people nothing.
fn is_bookkeeping(kind: &str) -> bool {
    matches!(kind, "SessionState" | "DocumentState")
}

/// The steps, in the order in which they began.
pub(super) fn steps(entries: &[Entry]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut by_action: HashMap<&str, usize> = HashMap::new();
    for entry in entries.iter().filter(|entry| !is_bookkeeping(&entry.kind)) {
        let Some(action) = entry.action_id.as_deref() else {
            steps.push(remark(entry));
            continue;
        };
        let place = *by_action.entry(action).or_insert_with(|| {
            steps.push(Step {
                action_id: Some(action.to_owned()),
                time: entry.time.clone(),
                actor: entry.actor.clone(),
                ..Step::default()
            });
            steps.len() - 1
        });
        if let Some(step) = steps.get_mut(place) {
            step.take(entry);
        }
    }
    steps
}

fn remark(entry: &Entry) -> Step {
    let said = |name: &str| entry.body.get(name).and_then(Value::as_str);
    let told = said("text")
        .or_else(|| said("goal"))
        .or_else(|| said("reason"));
    let kind = spaced(&entry.kind);
    Step {
        time: entry.time.clone(),
        actor: entry.actor.clone(),
        summary: told.map_or_else(|| kind.clone(), |told| format!("{kind}: {told}")),
        entry: Some(entry.id.clone()),
        ..Step::default()
    }
}

/// `SessionStarted` and `approval_decision` as people write it.
pub(super) fn spaced(kind: &str) -> String {
    let mut text = String::new();
    for c in kind.chars() {
        match c {
            c if text.is_empty() => text.push(c.to_ascii_uppercase()),
            '_' => text.push(' '),
            c if c.is_ascii_uppercase() => {
                text.push(' ');
                text.push(c.to_ascii_lowercase());
            }
            c => text.push(c),
        }
    }
    text
}

impl Step {
    /// Learns what an entry says about the action.
    fn take(&mut self, entry: &Entry) {
        let body = &entry.body;
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        match entry.kind.as_str() {
            "ActionRequested" => {
                self.actions.extend(text("action_id"));
                let parameters = body.get("parameters");
                let command = parameters.and_then(|it| it.get("command")?.as_str());
                if self.summary.is_empty() {
                    let named = command.map(str::to_owned).or_else(|| text("action_id"));
                    self.summary = named.unwrap_or_default();
                }
            }
            "checkpoint_pending" => {
                self.hold_id = text("hold_id");
                self.decision = Some("waits".to_owned());
                if let Some(summary) = text("canonical_request_summary") {
                    self.summary = summary;
                }
            }
            "approval_decision" => {
                let state = text("state").unwrap_or_default();
                let who = entry
                    .actor
                    .strip_prefix("operator:")
                    .unwrap_or(&entry.actor);
                self.decided.push(format!("{state} by {who}"));
                self.decision = Some(state);
            }
            "action_intended" => {
                self.checkpoint_id = text("checkpoint_id");
                self.decision = Some("allowed".to_owned());
            }
            "action_denied" => {
                self.reason = text("reason").or_else(|| self.reason.take());
                if text("code").as_deref() != Some("APPROVAL_REQUIRED") {
                    self.decision = Some("denied".to_owned());
                }
            }
            "action_ended" | "ActionReported" | "action_done" | "action_observed" => {
                self.outcome = text("outcome").or_else(|| self.outcome.take());
                self.effects.extend(effects(body));
                if self.summary.is_empty() {
                    self.summary = text("summary").unwrap_or_default();
                }
            }
            _ => {
                // The strictest of several words is the one that counts, and it comes last.
                let is_open = self.decision.as_deref().is_none_or(|it| it == "allow");
                let decision = text("decision").filter(|_| is_open && self.hold_id.is_none());
                if decision.is_some() {
                    self.decision = decision;
                    self.reason = text("reason").or_else(|| self.reason.take());
                }
            }
        }
        if self.summary.is_empty() {
            self.summary = spaced(&entry.kind);
        }
    }
}

/// What the end of an action says about its effect outside, a line each.
fn effects(body: &Value) -> Vec<String> {
    let list = |place: &str| body.pointer(place).and_then(Value::as_array);
    let texts = |place: &str| {
        let list = list(place).into_iter().flatten();
        list.filter_map(Value::as_str)
    };
    let places = ["/reached/hosts", "/reached/sockets", "/reached/outside"];
    let reached = places.into_iter().flat_map(texts);
    let reached = reached.map(|target| format!("reached {target}"));
    let refused = list("/refused").into_iter().flatten();
    let refused = refused.filter_map(|it| {
        let said = |name: &str| it.get(name).and_then(Value::as_str);
        Some(format!("refused {} {}", said("action")?, said("target")?))
    });
    let lasting = texts("/remainder").map(|rest| format!("cannot be taken back: {rest}"));
    reached.chain(refused).chain(lasting).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(kind: &str, action: Option<&str>, body: Value) -> Entry {
        Entry {
            id: format!("ent_{kind}"),
            seq: 0,
            time: "2026-11-16T02:59:11Z".into(),
            stream: "ses_1".into(),
            actor: "operator:ada".into(),
            kind: kind.into(),
            action_id: action.map(str::to_owned),
            body,
            prev_hash: None,
            hash: String::new(),
        }
    }

    #[test]
    fn fe_31_a_step_says_what_it_reached_and_was_refused() {
        let told = steps(&[entry(
            "action_ended",
            Some("act_1"),
            json!({
                "outcome": "ok",
                "reached": {"hosts": ["example.org:443"], "sockets": [], "outside": ["/srv/a"]},
                "refused": [{"action": "net.connect", "target": "127.0.0.1:5432"}],
                "remainder": ["may have sent data to example.org:443"],
            }),
        )]);
        assert_eq!(
            told[0].effects,
            [
                "reached example.org:443",
                "reached /srv/a",
                "refused net.connect 127.0.0.1:5432",
                "cannot be taken back: may have sent data to example.org:443",
            ]
        );
    }

    #[test]
    fn su_08_entries_of_one_action_become_one_step() {
        let told = steps(&[
            entry("SessionStarted", None, json!({"goal": "tidy up"})),
            entry("SessionState", None, json!({})),
            entry(
                "ActionRequested",
                Some("act_1"),
                json!({"action_id": "git.push", "parameters": {"command": "git push"}}),
            ),
            entry(
                "ActionAllowed",
                Some("act_1"),
                json!({"decision": "allow", "reason": "open"}),
            ),
            entry(
                "ApprovalRequired",
                Some("act_1"),
                json!({"decision": "requires_approval", "reason": "seen by others"}),
            ),
            entry(
                "checkpoint_pending",
                Some("act_1"),
                json!({"hold_id": "hld_1"}),
            ),
            entry(
                "action_denied",
                Some("act_1"),
                json!({"code": "APPROVAL_REQUIRED", "reason": "seen by others"}),
            ),
            entry(
                "approval_decision",
                Some("act_1"),
                json!({"state": "approved"}),
            ),
            entry(
                "action_intended",
                Some("act_1"),
                json!({"checkpoint_id": "chk_1"}),
            ),
            entry("action_ended", Some("act_1"), json!({"outcome": "ok"})),
        ]);
        assert_eq!(told.len(), 2);
        assert_eq!(told[0].summary, "Session started: tidy up");
        let step = &told[1];
        assert_eq!(
            (step.summary.as_str(), step.hold_id.as_deref()),
            ("git push", Some("hld_1"))
        );
        assert_eq!(step.decided, ["approved by ada"]);
        assert_eq!(step.decision.as_deref(), Some("allowed"));
        assert_eq!(step.outcome.as_deref(), Some("ok"));
        assert_eq!(step.checkpoint_id.as_deref(), Some("chk_1"));
    }
}
