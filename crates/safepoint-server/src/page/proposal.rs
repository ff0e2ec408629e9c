//! What a change would do to a file, where the words of an action say it.
//!
//! A tool of a client and a change under a checkpoint have their content in their words, as
//! JSON. Nothing is guessed: what has no content to show shows none.

use maud::{Markup, html};
use serde::Deserialize;

use super::diff;
use super::hold::Form;

/// Everything that clients and `mutate` call the content of a change.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Operation {
    #[serde(alias = "path", alias = "filePath")]
    file_path: Option<String>,
    target: Option<String>,
    content: Option<String>,
    #[serde(alias = "oldString")]
    old_string: Option<String>,
    #[serde(alias = "newString")]
    new_string: Option<String>,
    edits: Vec<Edit>,
    changes: Vec<Edit>,
    patch: Option<String>,
    sql: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Edit {
    #[serde(alias = "old_string", alias = "oldString")]
    old: String,
    #[serde(alias = "new_string", alias = "newString")]
    new: String,
}

/// What would change, if it can be told.
pub(super) fn section(form: &Form) -> Markup {
    let shown: Vec<Markup> = form.argv.iter().flat_map(|word| of(word)).collect();
    html! {
        section aria-labelledby="change" {
            h2 id="change" { "What it would write" }
            @if shown.is_empty() {
                p.faint { "The words do not say. What it really changed is in the session afterwards." }
            }
            @for one in &shown { (one) }
        }
    }
}

fn of(word: &str) -> Vec<Markup> {
    if !word.starts_with('{') {
        return Vec::new();
    }
    let Ok(operation) = serde_json::from_str::<Operation>(word) else {
        return Vec::new();
    };
    let name = operation.file_path.or(operation.target).unwrap_or_default();
    let mut shown = Vec::new();
    let mut show = |old: &str, new: &str| shown.push(diff::proposed(&name, old, new));
    if let Some(content) = &operation.content {
        show("", content);
    }
    if operation.old_string.is_some() || operation.new_string.is_some() {
        let text = |text: Option<String>| text.unwrap_or_default();
        show(&text(operation.old_string), &text(operation.new_string));
    }
    for Edit { old, new } in operation.edits.iter().chain(&operation.changes) {
        show(old, new);
    }
    if let Some(sql) = &operation.sql {
        show("", sql);
    }
    if let Some(patch) = &operation.patch {
        shown.push(diff::unified(patch));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_08_what_a_tool_would_write_is_shown() {
        let shown = |word| -> String { of(word).into_iter().map(Markup::into_string).collect() };
        let write = shown(r#"{"content":"a\nb\n","file_path":"/x"}"#);
        assert!(write.contains("+a") && write.contains("+b"), "{write}");
        let edit = shown(r#"{"file_path":"/x","old_string":"one","new_string":"two"}"#);
        assert!(edit.contains("-one") && edit.contains("+two"), "{edit}");
        let change = shown(r#"{"target":"/x","type":"edit","changes":[{"old":"a","new":"b"}]}"#);
        assert!(change.contains("-a") && change.contains("+b"), "{change}");
        assert!(shown("ls").is_empty() && shown("{not json").is_empty());
    }
}
