//! JSON Merge Patch (RFC 7386): an object that looks like the document, with
//! what should be different in it, and null for what should go.

use serde_json::{Map, Value};

use super::editor::Editor;
use super::tree::{DEEPEST, Data, Mark, Slot};
use crate::edit::{EditError, Place};

/// Merges a patch into the document.
pub(super) fn merge(editor: &mut Editor, patch: &Value) -> Result<(), EditError> {
    match patch {
        Value::Object(members) if is_mapping(editor, &[])? => {
            merge_into(editor, &mut Vec::new(), members)
        }
        _ => {
            let node = editor.tree.add_merged(patch)?;
            editor.replace(&[], node)
        }
    }
}

/// Whether the value at `path` can be merged into.
fn is_mapping(editor: &Editor, path: &[String]) -> Result<bool, EditError> {
    let node = editor.tree.node(editor.find(path)?);
    if let Some((mark, line)) = node.mark(&[Mark::Alias]) {
        return Err(EditError::Obstacle {
            place: Place {
                operation: None,
                pointer: super::pointer::write(path),
            },
            why: mark.told(),
            line,
        });
    }
    Ok(matches!(node.data, Data::Mapping(_)))
}

fn merge_into(
    editor: &mut Editor,
    path: &mut Vec<String>,
    members: &Map<String, Value>,
) -> Result<(), EditError> {
    if path.len() > DEEPEST {
        return Err(EditError::TooDeep {
            what: "the change",
            most: DEEPEST,
        });
    }
    let here = editor.find(path)?;
    for (key, value) in members {
        let Data::Mapping(mapping) = &editor.tree.node(here).data else {
            continue;
        };
        let known = mapping.get(key).is_some();
        let merged = editor.tree.node(here).mark(&[Mark::MergeKey]).is_some();
        path.push(key.clone());
        match value {
            // A key that is not written there may still be brought in; then
            // finding it fails, and says so.
            Value::Null if known || merged => drop(editor.remove(path)?),
            Value::Null => {}
            Value::Object(members) if (known || merged) && is_mapping(editor, path)? => {
                merge_into(editor, path, members)?;
            }
            value => {
                let node = editor.tree.add_merged(value)?;
                editor.add(path, Slot::new(node))?;
            }
        }
        path.pop();
    }
    Ok(())
}
