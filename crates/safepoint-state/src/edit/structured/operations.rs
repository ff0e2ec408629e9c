//! JSON Patch (RFC 6902): a list of operations, of which all are done or none.

use serde_json::{Map, Value};

use super::editor::Editor;
use super::pointer;
use super::tree::{Data, Mark, Slot};
use crate::edit::lines::shown;
use crate::edit::{EditError, Place};

/// So many operations one patch may have: each of them may walk through a list.
const MOST_OPERATIONS: usize = 10_000;

/// Does all the operations of a patch.
pub(super) fn patch(editor: &mut Editor, patch: &Value) -> Result<(), EditError> {
    let Value::Array(operations) = patch else {
        return Err(EditError::BadChange {
            operation: None,
            why: "a JSON Patch is a list of operations".to_owned(),
        });
    };
    crate::edit::lines::check_limit("the patch", operations.len(), MOST_OPERATIONS, "operations")?;
    for (number, operation) in operations.iter().enumerate() {
        editor.operation = Some(number + 1);
        operate(editor, operation)?;
    }
    Ok(())
}

fn bad(editor: &Editor, why: impl Into<String>) -> EditError {
    EditError::BadChange {
        operation: editor.operation,
        why: why.into(),
    }
}

fn operate(editor: &mut Editor, operation: &Value) -> Result<(), EditError> {
    let Value::Object(members) = operation else {
        return Err(bad(editor, "it is not an object"));
    };
    let Some(Value::String(name)) = members.get("op") else {
        return Err(bad(editor, "it has no `op`"));
    };
    let path = parts(editor, members, "path")?;
    match name.as_str() {
        "add" => {
            let node = editor.tree.add_value(value(editor, members)?)?;
            editor.add(&path, Slot::new(node))
        }
        "replace" => {
            let node = editor.tree.add_value(value(editor, members)?)?;
            editor.replace(&path, node)
        }
        "remove" => editor.remove(&path).map(drop),
        "test" => test(editor, &path, value(editor, members)?),
        "copy" => {
            let from = parts(editor, members, "from")?;
            copy(editor, &from, &path)
        }
        "move" => {
            let from = parts(editor, members, "from")?;
            relocate(editor, &from, &path)
        }
        other => {
            let other = shown(other.as_bytes());
            let why = "`op` is `add`, `remove`, `replace`, `move`, `copy` or `test`";
            Err(bad(editor, format!("{why}, not `{other}`")))
        }
    }
}

fn parts(
    editor: &Editor,
    members: &Map<String, Value>,
    name: &str,
) -> Result<Vec<String>, EditError> {
    let Some(Value::String(pointer)) = members.get(name) else {
        return Err(bad(editor, format!("it has no `{name}`")));
    };
    pointer::parse(pointer).map_err(|why| {
        let pointer = shown(pointer.as_bytes());
        bad(editor, format!("`{name}` is `{pointer}`, but {why}"))
    })
}

fn value<'a>(editor: &Editor, members: &'a Map<String, Value>) -> Result<&'a Value, EditError> {
    members
        .get("value")
        .ok_or_else(|| bad(editor, "it has no `value`"))
}

fn test(editor: &mut Editor, path: &[String], wanted: &Value) -> Result<(), EditError> {
    let found = editor.read(path)?;
    let wanted = editor.tree.add_value(wanted)?;
    let tree = &editor.tree;
    // A value that JSON does not have is tested by how it is written.
    let same = match (&tree.node(found).data, &tree.node(wanted).data) {
        (Data::Special(found), Data::Text(wanted)) => found == wanted,
        _ => tree.equal(found, tree, wanted),
    };
    if same {
        return Ok(());
    }
    Err(EditError::TestFailed {
        place: Place {
            operation: editor.operation,
            pointer: pointer::write(path),
        },
        found: tree.told(found),
        wanted: tree.told(wanted),
    })
}

fn copy(editor: &mut Editor, from: &[String], to: &[String]) -> Result<(), EditError> {
    let node = editor.read(from)?;
    // An anchor cannot stand twice, and a pair not just anywhere.
    editor.refuse_marks(from, node, &[Mark::Anchor, Mark::Pair])?;
    let copy = editor.tree.copy(node)?;
    let mut slot = Slot::new(copy);
    slot.origin = editor.origin(from);
    editor.add(to, slot)
}

fn relocate(editor: &mut Editor, from: &[String], to: &[String]) -> Result<(), EditError> {
    if to.len() > from.len() && to.starts_with(from) {
        return Err(bad(editor, "a value cannot be moved into itself"));
    }
    let node = editor.find(from)?;
    if from == to {
        return Ok(());
    }
    let fixed = [
        Mark::Alias,
        Mark::Anchor,
        Mark::Tag,
        Mark::MergeKey,
        Mark::ComplexKey,
        Mark::Pair,
    ];
    editor.refuse_marks(from, node, &fixed)?;
    let slot = editor.remove(from)?;
    editor.add(to, slot)
}
