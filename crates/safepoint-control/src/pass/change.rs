//! A change under a checkpoint, as a proposal: what each operation does, in the words of policies.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use safepoint_authority::{
    Deed, Programs, Risk, Role, SideEffect, Surroundings, Touch, Undo, Where, shell,
};
use safepoint_model::json;
use safepoint_state::mutate::{Operation, Step};
use serde_json::{Value, json};

use super::{Act, Passage};
use crate::ControlError;
use crate::world::Search;

impl Passage<'_> {
    /// What a change would do, and exactly what it is.
    pub fn change(
        &self,
        steps: &[Step],
        check: Option<&str>,
        here: &Path,
        variables: &[(std::ffi::OsString, std::ffi::OsString)],
    ) -> Result<Act, ControlError> {
        let search = Search::new(variables);
        let around = Surroundings {
            programs: &search as &dyn Programs,
            directory: &self.workspace.root,
            home: self.home.as_deref(),
            own: &self.own,
        };
        let mut deeds = Vec::new();
        let mut operations = Vec::new();
        for step in steps {
            let target = step.target.as_deref().unwrap_or_default();
            let place = absolute(here, target);
            deeds.extend(match &step.operation {
                Operation::Command { argv, .. } => {
                    let understood = shell::command(argv, &around).deeds;
                    match understood.is_empty() {
                        true => vec![deed("process.exec", Vec::new(), SideEffect::Exec)],
                        false => understood,
                    }
                }
                other => vec![of_operation(other, &place, here)],
            });
            operations.push(written(step, target)?);
        }
        if let Some(line) = check {
            deeds.extend(shell::line(line, &around).deeds);
            operations.push(text(&json!({"verify": line}))?);
        }
        // What Safepoint keeps of its own is out of reach by this way too.
        self.guard(&mut deeds);
        Ok(Act::Change {
            tool: "mutate",
            operations,
            deeds,
        })
    }

    pub(super) fn is_kept(&self, path: &Path) -> bool {
        let root = &self.workspace.root;
        let named = ["safepoint.yaml", ".checkpoints", ".audit", ".safepoint"];
        self.own.iter().any(|own| path.starts_with(own))
            || named.iter().any(|name| path.starts_with(root.join(name)))
    }
}

fn of_operation(operation: &Operation, place: &Path, here: &Path) -> Deed {
    let touch = |role| Touch {
        place: Where::Exact(place.to_owned()),
        role,
    };
    match operation {
        Operation::Delete { .. } => {
            deed("file.delete", vec![touch(Role::Delete)], SideEffect::Write)
        }
        Operation::Chmod { .. } => {
            deed("file.chmod", vec![touch(Role::Metadata)], SideEffect::Write)
        }
        Operation::Move { to, .. } => {
            let to = Touch {
                place: Where::Exact(absolute(here, to)),
                role: Role::Write,
            };
            deed(
                "file.move",
                vec![touch(Role::Delete), to],
                SideEffect::Write,
            )
        }
        // The checkpoint holds the database or the state: that was checked before.
        Operation::Sql { sql, .. } => match is_dropping(sql) {
            true => deed("db.drop", Vec::new(), SideEffect::Write),
            false => deed("db.write", Vec::new(), SideEffect::Write),
        },
        Operation::State { .. } => deed("file.write", Vec::new(), SideEffect::Write),
        _ => deed("file.write", vec![touch(Role::Write)], SideEffect::Write),
    }
}

pub(super) fn deed(action: &str, touches: Vec<Touch>, effect: SideEffect) -> Deed {
    Deed {
        action: action.to_owned(),
        effects: BTreeSet::from([effect]),
        risk: Risk::Low,
        undo: Undo::Touched,
        touches,
        hosts: BTreeSet::new(),
        because: "it is a change under a checkpoint".to_owned(),
    }
}

/// Whether a statement takes whole tables away. A guess by words: it only makes rules stricter.
fn is_dropping(sql: &str) -> bool {
    let words: Vec<String> = sql
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .map(str::to_ascii_lowercase)
        .collect();
    words
        .iter()
        .any(|word| word == "drop" || word == "truncate")
}

fn absolute(here: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in here.join(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// The operation as it was meant: with its target, in canonical form.
fn written(step: &Step, target: &str) -> Result<String, ControlError> {
    text(&json!({"target": target, "operation": step.operation}))
}

fn text(value: &Value) -> Result<String, ControlError> {
    let bytes = json::canonical(value).map_err(|error| ControlError::Proposal {
        reason: format!("an operation cannot be written down exactly: {error}"),
    })?;
    String::from_utf8(bytes).map_err(|error| ControlError::Proposal {
        reason: error.to_string(),
    })
}
