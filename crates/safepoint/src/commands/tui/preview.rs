//! What an action would change, as far as that can be told before it runs.

use std::io::Read;

use safepoint_authority::{Canonical, NamedPath, Preimage};
use safepoint_store::regular;
use serde_json::Value;

/// The most that is shown of one file.
const MOST_LINES: usize = 200;
const MOST_BYTES: u64 = 64 << 10;

/// Lines of a diff where they are known, sentences where they are not.
pub(super) fn of(form: &Canonical) -> Vec<String> {
    let mut lines = Vec::new();
    if form.tool.name == "mutate" {
        for operation in &form.argv {
            operation_lines(operation, &mut lines);
        }
        return lines;
    }
    for path in &form.paths {
        path_lines(path, &mut lines);
    }
    if lines.is_empty() {
        lines.push("Nothing on disk, as far as the command tells.".to_owned());
    }
    let known = [
        "file.read",
        "file.write",
        "file.delete",
        "file.move",
        "file.chmod",
    ];
    if form
        .actions
        .iter()
        .any(|action| !known.contains(&action.as_str()))
    {
        lines.push("What else it changes is known only after it has run.".to_owned());
    }
    lines
}

fn path_lines(path: &NamedPath, lines: &mut Vec<String>) {
    let what = match &path.preimage {
        Preimage::Absent {} => "nothing is there",
        Preimage::File { .. } => "a file",
        Preimage::Link { .. } => "a link",
        Preimage::Directory { .. } => "a directory, with everything in it",
        Preimage::Special { .. } => "a device, socket or pipe",
        Preimage::Unknown {} => "known only when it runs",
    };
    match path.role.as_str() {
        "delete" => {
            lines.push(format!("--- {}  ({what})", path.path));
            if let Preimage::File { .. } = path.preimage {
                content(path, lines);
            }
        }
        "write" => {
            lines.push(format!("+++ {}  ({what})", path.path));
            lines.push("  its new content is known only after it has run".to_owned());
        }
        "metadata" => lines.push(format!("mode, owner or times of {}", path.path)),
        _ => {}
    }
}

/// What would be gone.
fn content(path: &NamedPath, lines: &mut Vec<String>) {
    let mut bytes = Vec::new();
    let read = regular::open(path.path.as_ref())
        .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    let text = match (read, String::from_utf8(bytes)) {
        (Ok(_), Ok(text)) => text,
        _ => {
            lines.push("  (not text)".to_owned());
            return;
        }
    };
    let shown = text.lines().take(MOST_LINES).map(|line| format!("-{line}"));
    lines.extend(shown);
    if text.lines().count() > MOST_LINES || text.len() as u64 == MOST_BYTES {
        lines.push("  … and more".to_owned());
    }
}

fn operation_lines(operation: &str, lines: &mut Vec<String>) {
    let Ok(value) = serde_json::from_str::<Value>(operation) else {
        lines.push(operation.to_owned());
        return;
    };
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let kind = text("/operation/type").unwrap_or("verify");
    lines.push(format!("{kind} {}", text("/target").unwrap_or_default()));
    let mut add = |sign: &str, text: &str| {
        lines.extend(
            text.lines()
                .take(MOST_LINES)
                .map(|line| format!("{sign}{line}")),
        );
    };
    match kind {
        "write" | "append" => add("+", text("/operation/content").unwrap_or("(not text)")),
        "patch" => add("", text("/operation/patch").unwrap_or_default()),
        "sql" => add("  ", text("/operation/sql").unwrap_or_default()),
        "edit" => {
            let changes = value
                .pointer("/operation/changes")
                .and_then(Value::as_array);
            for change in changes.into_iter().flatten() {
                add(
                    "-",
                    change
                        .get("old")
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                );
                add(
                    "+",
                    change
                        .get("new")
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                );
            }
        }
        _ => add("  ", operation),
    }
}
