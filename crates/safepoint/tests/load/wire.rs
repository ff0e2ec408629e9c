//! What a machine says to the server about its actions, as `safepoint exec` would.

use safepoint_authority::Canonical;
use serde_json::{Value, json};

/// Something that an agent wants to do.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// What it comes to: `file.read`, `file.write` or `file.delete`.
    pub(super) action: &'static str,
    /// What tells it apart from all others.
    pub(super) file: String,
    /// The directory that it would happen in.
    pub(super) directory: String,
}

impl Wish {
    fn canonical(&self, session: &Value, atlases: &Value, policy_version: &Value) -> Value {
        let (program, effect) = match self.action {
            "file.read" => ("cat", "read"),
            "file.write" => ("touch", "write"),
            _ => ("rm", "write"),
        };
        json!({
            "schema": 1,
            "tool": {"name": "exec", "executable": null},
            "actions": [self.action],
            "argv": [program, self.file],
            "directory": {"path": self.directory, "identity": {"device": 1, "inode": 1}},
            "environment": {},
            "paths": [],
            "hosts": [],
            "input": {"none": {}},
            "side_effects": [effect],
            "reversibility": "reversible",
            "remainder": [],
            "risk": "low",
            "session_id": session,
            "provider": null,
            "workspace": {"path": self.directory},
            "policy_version": policy_version,
            "atlases": atlases,
        })
    }

    /// Asks in which session it is judged, and as which action.
    pub(super) fn entering(&self) -> Value {
        let nowhere = json!("ses_0000000000000000");
        let form = self.canonical(&nowhere, &json!([]), &json!("0".repeat(64)));
        let form: Canonical = serde_json::from_value(form).unwrap();
        json!({"entering": {
            "format": 1, "workspace": self.directory, "session": null, "objective": null,
            "visitor": null, "wish": form.wish().to_string(), "anew": false,
        }})
    }

    /// Asks whether it may be done, under what the server has said.
    pub(super) fn proposal(&self, entered: &Value) -> Value {
        let [session, atlases, version] =
            ["session_id", "atlases", "policy_version"].map(|name| &entered[name]);
        json!({"proposal": {
            "format": 1,
            "action_id": entered["action_id"],
            "canonical": self.canonical(session, atlases, version),
            "coverage": {"checkpoint_id": null, "covered": [], "not_covered": []},
            "checkpoint_hash": null,
            "requests": [{"action": self.action, "parameters": {}, "risk": null, "conditions": []}],
            "claims": null,
            "wants": {
                "provider": null, "objective": null, "workflow": null, "mode": "policy",
                "declared": null, "said": null, "bounds": null, "permit": null, "visitor": null,
            },
        }})
    }
}

/// Says how an action ended.
pub(super) fn outcome(entered: &Value, outcome: &str) -> Value {
    json!({"outcome": {
        "format": 1, "action_id": entered["action_id"], "session_id": entered["session_id"],
        "outcome": outcome, "body": {}, "report": null, "changed": 0, "changes": [],
        "chooses_code": false,
    }})
}

/// A piece of work that builds upon another.
pub(super) fn record(intent: &str, parent: &Value) -> Value {
    json!({
        "type": "artifact", "intent": intent, "parent": parent, "status": "provisional",
        "confidence": "medium",
        "payload": {"files_changed": [], "content": "some of it", "artifacts": []},
    })
}
