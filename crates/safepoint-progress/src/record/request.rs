//! What an agent sends when it wants a record: read strictly, and only then looked at.
//!
//! Only what is true of the text alone is checked here. Type, role, state and
//! parent are looked at by others, later.

use std::collections::BTreeSet;

use safepoint_model::{RecordId, WorkspaceId, json};
use serde::Deserialize;

use super::payload::Loose;
use super::{Confidence, Payload, Status, Usage, shown_path};
use crate::object::{self, Object};
use crate::rejection::Rejection;

/// A record that is asked for: everything but what the runtime gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The type.
    pub kind: String,
    /// The work product.
    pub payload: Payload,
    /// Whether the agent says which files changed, or leaves it to the directory.
    pub names_files: bool,
    /// Why.
    pub intent: String,
    /// The present head, by what the agent knows.
    ///
    /// Any text: what is no id is no head either, and that is another reason.
    pub parent: Option<String>,
    /// Whether it is done.
    pub status: Status,
    /// How sure the agent is.
    pub confidence: Confidence,
    /// What it took.
    pub resource_usage: Option<Usage>,
}

/// The same, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "type")]
    kind: String,
    payload: Loose,
    intent: String,
    #[serde(default)]
    parent: Option<String>,
    status: Status,
    confidence: Confidence,
    #[serde(default, deserialize_with = "object::maybe")]
    resource_usage: Option<Usage>,
    /// The workspace, which may be named and is known anyway.
    #[serde(default)]
    workspace: Option<String>,
}

/// Who says which files changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// The agent.
    Named,
    /// The agent, or the directory of the workspace.
    NamedOrSeen,
}

/// Reads what is asked for in `workspace`.
pub fn read(body: &[u8], workspace: &WorkspaceId, files: Files) -> Result<Asked, Rejection> {
    let Object::<Written>(asked) = json::read_as(body, json::Limits::default())
        .map_err(|error| Rejection::structure(error.to_string()))?;
    if asked
        .workspace
        .as_deref()
        .is_some_and(|named| named != workspace.as_str())
    {
        return Err(Rejection::structure(format!(
            "`workspace` names another workspace than `{workspace}`"
        )));
    }
    if is_blank(&asked.intent) {
        return Err(Rejection::structure(
            "`intent` is blank; say why this checkpoint exists",
        ));
    }
    if asked.kind.is_empty() {
        return Err(Rejection::structure("`type` is empty"));
    }
    if files == Files::Named && !asked.payload.names_files {
        return Err(Rejection::structure(
            "`payload`: missing field `files_changed`",
        ));
    }
    if let Some(fault) = fault_of_paths(&asked.payload.payload.files_changed) {
        return Err(Rejection::structure(fault));
    }
    if let Some(fault) = asked.resource_usage.and_then(|usage| usage.fault()) {
        return Err(Rejection::structure(fault));
    }
    Ok(Asked {
        kind: asked.kind,
        payload: asked.payload.payload,
        names_files: asked.payload.names_files,
        intent: asked.intent,
        parent: asked.parent,
        status: asked.status,
        confidence: asked.confidence,
        resource_usage: asked.resource_usage,
    })
}

impl Asked {
    /// Whether the parent that is named is `head`.
    pub fn builds_upon(&self, head: Option<&RecordId>) -> bool {
        self.parent.as_deref() == head.map(RecordId::as_str)
    }
}

/// The type that is named in `body`, however broken the rest is: a rejection says which it was.
pub fn type_of(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: String,
    }
    let Object::<Typed>(typed) = json::read_as(body, json::Limits::default()).ok()?;
    Some(typed.kind.chars().take(200).collect())
}

/// Whether nobody would see anything.
fn is_blank(intent: &str) -> bool {
    let unseen = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
    };
    intent.chars().all(unseen)
}

/// What is wrong with the paths that are named, if anything. Each file has one name here, so
/// that nobody can be told twice, or in another way, of the same one.
fn fault_of_paths(paths: &[String]) -> Option<String> {
    let mut seen = BTreeSet::new();
    paths.iter().find_map(|path| {
        let what = if !is_inside(path) {
            "is not a path below the root of the workspace"
        } else if path.split('/').any(|part| part.is_empty() || part == ".") {
            "is not a plain path: no part of it is `.` or empty, and it does not end with `/`"
        } else if !seen.insert(path) {
            "is there twice"
        } else {
            return None;
        };
        let shown = shown_path(path);
        Some(format!("`{shown}` in `payload.files_changed` {what}"))
    })
}

/// Whether a path stays below the root: relative, and never up, as any system would read it.
fn is_inside(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.get(1) == Some(&b':');
    !path.is_empty()
        && !path.contains('\0')
        && !drive
        && !path.starts_with(['/', '\\'])
        && !path.split(['/', '\\']).any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rejection::Reason;
    use serde_json::{Value, json};

    fn workspace() -> WorkspaceId {
        "wsp_0123456789abcdef".parse().unwrap()
    }

    fn good() -> Value {
        json!({
            "type": "artifact",
            "payload": {"files_changed": ["src/a.rs"], "content": "text", "artifacts": ["https://nowhere.invalid/x"]},
            "intent": "because",
            "parent": null,
            "status": "provisional",
            "confidence": "low",
        })
    }

    fn try_with(change: impl FnOnce(&mut Value)) -> Result<Asked, Rejection> {
        let mut body = good();
        change(&mut body);
        read(body.to_string().as_bytes(), &workspace(), Files::Named)
    }

    #[test]
    fn pr_10_every_field_but_parent_and_usage_is_needed() {
        assert!(try_with(|_| {}).is_ok());
        for field in ["type", "payload", "intent", "status", "confidence"] {
            let error = try_with(|body| drop(body.as_object_mut().unwrap().remove(field)));
            let error = error.unwrap_err();
            assert_eq!(error.reason, Reason::InvalidStructure);
            assert!(error.detail.contains(&format!("`{field}`")), "{error}");
        }
        for field in ["files_changed", "content", "artifacts"] {
            let error = try_with(|body| {
                body["payload"].as_object_mut().unwrap().remove(field);
            });
            assert!(error.unwrap_err().detail.contains(field));
        }
    }

    #[test]
    fn pr_10_what_the_runtime_gives_cannot_be_asked_for() {
        for field in ["id", "timestamp"] {
            let error = try_with(|body| body[field] = json!("2026-11-15T07:00:00Z")).unwrap_err();
            assert_eq!(error.reason, Reason::InvalidStructure, "{field}");
        }
    }

    #[test]
    fn pr_11_values_that_cannot_be_are_refused() {
        let cases: [(&str, Value); 12] = [
            ("/intent", json!("")),
            ("/intent", json!(" \n\t\u{200b}\u{feff}")),
            ("/intent", json!(7)),
            ("/status", json!("Final")),
            ("/status", json!("done")),
            ("/confidence", json!("certain")),
            ("/confidence", json!(null)),
            ("/type", json!("")),
            ("/payload/content", json!(["a"])),
            ("/payload/artifacts", json!("a")),
            ("/payload", json!(null)),
            ("/parent", json!(4)),
        ];
        for (pointer, value) in cases {
            let refused = try_with(|body| *body.pointer_mut(pointer).unwrap() = value.clone());
            let error = refused.unwrap_err();
            assert_eq!(error.reason, Reason::InvalidStructure, "{pointer} {value}");
        }
        assert!(try_with(|body| body["extra"] = json!(1)).is_err());
        assert!(try_with(|body| body["workspace"] = json!("wsp_zzzzzzzzzzzzzzzz")).is_err());
        assert!(try_with(|body| body["workspace"] = json!(workspace())).is_ok());
        for body in ["", "[]", "null", "{", "{\"type\":\"a\",\"type\":\"b\"}"] {
            assert!(
                read(body.as_bytes(), &workspace(), Files::Named).is_err(),
                "{body}"
            );
        }
    }

    #[test]
    fn pr_11_paths_stay_inside() {
        for bad in [
            "",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "\\\\server\\share",
            "a\\..\\b",
            "C:\\x",
            "c:x",
            "a\0b",
            ".",
            "./a",
            "a/.",
            "a/./b",
            "a//b",
            "a/",
            "ok",
        ] {
            let refused = try_with(|body| body["payload"]["files_changed"] = json!(["ok", bad]));
            assert!(refused.is_err(), "{bad:?}");
        }
        for good in ["a", ".a", "a/b/..c", "..a", "a..", "日本語/ß.txt", "a b"] {
            let asked = try_with(|body| body["payload"]["files_changed"] = json!([good]));
            assert!(asked.is_ok(), "{good:?}");
        }
    }

    #[test]
    fn pr_10_a_list_of_values_is_no_record() {
        let list = json!([
            "artifact",
            good()["payload"],
            "because",
            null,
            "final",
            "high",
            null,
            null
        ]);
        let error = read(list.to_string().as_bytes(), &workspace(), Files::Named).unwrap_err();
        assert_eq!(error.reason, Reason::InvalidStructure);
        assert!(
            error.detail.contains("an object with named fields"),
            "{error}"
        );
        assert_eq!(type_of(br#"["artifact"]"#), None);
        let error = try_with(|body| body["resource_usage"] = json!([1, 2, 3])).unwrap_err();
        assert!(error.detail.contains("/resource_usage"), "{error}");
        let error = try_with(|body| body["payload"] = json!([["a"], "text", []])).unwrap_err();
        assert!(error.detail.contains("/payload"), "{error}");
    }

    #[test]
    fn pr_11_a_name_that_is_escaped_is_not_escaped_again() {
        assert_eq!(shown_path("new\\nline"), "new\\nline");
        assert_eq!(shown_path("new\nline"), "new\\nline");
        assert_eq!(
            shown_path("a\u{202e}b"),
            safepoint_model::text::line("a\u{202e}b").text
        );
    }

    #[test]
    fn pr_11_artifacts_are_not_looked_at() {
        let odd = json!(["file:///nowhere", {"path": "../x"}, 7, null]);
        let asked = try_with(|body| body["payload"]["artifacts"] = odd.clone()).unwrap();
        assert_eq!(json!(asked.payload.artifacts), odd);
    }

    #[test]
    fn pr_20_usage_is_a_difference_in_three_fields() {
        let with = |usage: Value| try_with(|body| body["resource_usage"] = usage);
        let asked =
            with(json!({"tokens_consumed": 5, "wall_time": "1m30s", "cost": 0.25})).unwrap();
        let usage = asked.resource_usage.unwrap();
        assert_eq!(usage.wall_time.unwrap().as_micros(), 90_000_000);
        assert_eq!(
            json!(usage),
            json!({"tokens_consumed": 5, "wall_time": 90, "cost": 0.25})
        );
        let asked = with(json!({"wall_time": "PT1M"})).unwrap();
        let usage = asked.resource_usage.unwrap();
        assert_eq!(usage.wall_time.unwrap().as_micros(), 60_000_000);
        assert!(with(json!({"wall_time": 1.5})).is_ok());
        assert!(with(json!({})).is_ok());
        for bad in [
            json!({"tokens_consumed": -1}),
            json!({"tokens_consumed": 1.5}),
            json!({"wall_time": -1}),
            json!({"wall_time": "soon"}),
            json!({"cost": -0.5}),
            json!({"cost": "1"}),
            json!({"tokens": 1}),
            json!(3),
        ] {
            assert!(with(bad.clone()).is_err(), "{bad}");
        }
    }
}
