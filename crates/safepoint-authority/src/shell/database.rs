//! Database clients: what they are told, by a look at the SQL.

use crate::deed::Role;

use super::actions::{self, DB_DROP, DB_READ, DB_WRITE, READ};
use super::options;
use super::run::{Call, because};
use super::sql;
use super::state::{Argument, State};
use super::walk::{Input, Walker};

/// `psql`, `mysql`, `sqlite3`, …: by a look at the SQL.
pub(super) fn follow(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let sqlite = call.entry.operands == super::table::Operands::Read;
    let mut statements: Vec<Argument> = parsed
        .values(&[
            "-c",
            "--command",
            "-e",
            "--execute",
            "-cmd",
            "-Q",
            "-q",
            "--query",
        ])
        .into_iter()
        .cloned()
        .collect();
    if sqlite {
        statements.extend(parsed.operands.get(1..).unwrap_or_default().iter().cloned());
    }
    let mut worst = None;
    for statement in &statements {
        let kind = match statement.known() {
            Some(text) => sql::kind(text),
            None => sql::Kind::Unclear,
        };
        worst = worst.max(Some(kind));
    }
    if statements.is_empty() {
        worst = Some(match call.input {
            Input::Text(Some(text)) => sql::kind(text),
            Input::Inherited if parsed.has(&["-l", "--list"]) => sql::Kind::Read,
            _ => sql::Kind::Unclear,
        });
    }
    for file in parsed.values(&["-f", "--file", "-init"]) {
        walker.file(READ, &[(file.clone(), Role::Read)], &because(call), state);
        worst = Some(sql::Kind::Unclear);
    }
    let action = match worst {
        Some(sql::Kind::Read) => DB_READ,
        Some(sql::Kind::Drop) => DB_DROP,
        _ => DB_WRITE,
    };
    if worst == Some(sql::Kind::Unclear) {
        walker.opaque(format!("what `{}` is told cannot be read", call.name));
    }
    let mut deed = actions::deed(action, because(call));
    if sqlite && let Some(file) = parsed.operands.first() {
        let role = match action {
            DB_READ => Role::Read,
            _ => Role::Write,
        };
        deed.touches = walker.touches(file, role, state);
        if action != DB_READ && !file.is_dynamic() {
            // It is a file like any other.
            deed.undo = crate::Undo::Touched;
        }
    }
    walker.add(deed);
}
