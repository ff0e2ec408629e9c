//! What TOML has no way to write.

use crate::edit::EditError;
use crate::edit::structured::Format;
use crate::edit::structured::pointer;
use crate::edit::structured::tree::{Data, NodeId, Tree};

/// Refuses a document that cannot be TOML, with the place.
pub(super) fn check(tree: &Tree) -> Result<(), EditError> {
    if !matches!(tree.node(tree.root).data, Data::Mapping(_)) {
        return Err(EditError::Unwritable {
            format: Format::Toml,
            pointer: String::new(),
            why: "a document is always a table",
        });
    }
    walk(tree, tree.root, &mut Vec::new())
}

/// Recurses as deep as the document, which is limited.
fn walk(tree: &Tree, id: NodeId, path: &mut Vec<String>) -> Result<(), EditError> {
    let refuse = |path: &[String], why| EditError::Unwritable {
        format: Format::Toml,
        pointer: pointer::write(path),
        why,
    };
    match &tree.node(id).data {
        Data::Null => Err(refuse(path, "there is no null")),
        Data::Number(number) => {
            let integer = !number.contains(['.', 'e', 'E']);
            match integer && number.parse::<i64>().is_err() {
                true => Err(refuse(path, "an integer has at most 64 bits")),
                false => Ok(()),
            }
        }
        Data::Sequence(slots) => {
            for (number, slot) in slots.iter().enumerate() {
                path.push(number.to_string());
                walk(tree, slot.node, path)?;
                path.pop();
            }
            Ok(())
        }
        Data::Mapping(mapping) => {
            for (key, slot) in mapping.ordered() {
                path.push(key.to_owned());
                walk(tree, slot.node, path)?;
                path.pop();
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
