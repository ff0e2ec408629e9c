//! What differs after a change, as somebody can read or apply it.

use safepoint_state::mutate::Mutated;
use safepoint_state::tree::{Change, Entry};
use safepoint_state::{State, Workspace, path};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::diff;
use crate::commands::restoring::documents;
use crate::console::Mode;
use crate::error::CliError;

/// What differs.
#[derive(Serialize, JsonSchema)]
pub(super) struct DiffFields {
    /// `unified`, `structural`, `summary` or `none`.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) content: String,
}

/// Longer diffs are told by a summary.
const LARGEST_DIFF: usize = 256 << 10;

pub(super) fn between(
    state: &State,
    workspace: &Workspace,
    mutated: &Mutated,
) -> Result<DiffFields, CliError> {
    // Files whose change no pointer tells.
    let is_told = |change: &&Change| mutated.structure.iter().any(|it| it.path == change.path);
    let untold: Vec<Change> = mutated
        .changes
        .iter()
        .filter(|change| !is_told(change) && !is_directory(change))
        .cloned()
        .collect();
    let structured = !mutated.structure.is_empty() && untold.is_empty();
    if structured || !mutated.parts.is_empty() {
        return Ok(DiffFields {
            kind: "structural",
            content: structural(mutated, &untold),
        });
    }
    let objects = state.objects()?;
    // Directories and git's own files are nothing that `patch` could apply.
    let lines: Vec<Change> = mutated
        .changes
        .iter()
        .filter(|change| !is_directory(change) && !is_git(&change.path))
        .cloned()
        .collect();
    // What is not UTF-8 cannot be written down exactly in JSON.
    let source = diff::Source {
        state,
        objects: &objects,
        root: &workspace.root,
        planned: None,
    };
    let is_text = diff::is_text(&source, &lines)?;
    if is_text && (!lines.is_empty() || mutated.changes.is_empty()) {
        let content = diff::unified(&source, &lines, diff::Colours::None)?;
        if content.len() <= LARGEST_DIFF {
            return Ok(DiffFields {
                kind: "unified",
                content,
            });
        }
    }
    let lines: Vec<String> = documents(&mutated.changes)
        .iter()
        .map(|change| format!("{} {}", change.change, change.path))
        .collect();
    Ok(DiffFields {
        kind: "summary",
        content: lines.join("\n"),
    })
}

/// What changed in databases, states and structured files, and the names of other files.
fn structural(mutated: &Mutated, untold: &[Change]) -> String {
    let mut lines: String = match mutated.parts.as_slice() {
        [one] if mutated.changes.is_empty() => one.text.clone(),
        several => several
            .iter()
            .map(|part| diff::of_part(part, Mode::Json))
            .collect(),
    };
    for one in &mutated.structure {
        let name = path::display(&one.path);
        lines.push_str(&format!("~ {name} {}\n", one.pointer));
    }
    for change in documents(untold) {
        lines.push_str(&format!("{} {}\n", change.change, change.path));
    }
    lines
}

fn is_directory(change: &Change) -> bool {
    let directory = |side: &Option<Entry>| side.as_ref().is_some_and(|it| it.subtree().is_some());
    directory(&change.from) || directory(&change.to)
}

pub(super) fn is_git(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|name| name == b".git")
}
