//! A change under a checkpoint, as a proposal: what each operation does, in the words of policies.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use safepoint_authority::{
    Deed, Programs, Risk, Role, SideEffect, Surroundings, Touch, Understanding, Undo, Where, shell,
};
use safepoint_model::json;
use safepoint_state::mutate::{Operation, Step};
use serde_json::{Value, json};

use super::cover::is_change;
use super::{Act, Passage, StartsPrograms};
use crate::ControlError;
use crate::world::{self, Search};

/// What makes a change under a checkpoint. Its effects are recorded by the state itself.
pub(super) const MUTATE: &str = "mutate";

/// A change that somebody wants, as it was given.
pub struct ProposedChange<'a> {
    /// What is to be done, in order.
    pub steps: &'a [Step],
    /// A line for the shell that must succeed.
    pub check: Option<&'a str>,
    /// What relative paths are relative to.
    pub here: &'a Path,
    /// With which variables programs are looked for.
    pub variables: &'a [(OsString, OsString)],
}

impl ProposedChange<'_> {
    fn starts_programs(&self) -> bool {
        let is_command = |step: &Step| matches!(step.operation, Operation::Command { .. });
        self.check.is_some() || self.steps.iter().any(is_command)
    }
}

impl Passage<'_> {
    /// What a change would do, and exactly what it is.
    pub fn change(&self, change: &ProposedChange<'_>) -> Result<Act, ControlError> {
        let mut all = Understanding::default();
        let mut operations = Vec::new();
        for step in change.steps {
            let target = step.target.as_deref().unwrap_or_default();
            let place = absolute(change.here, target);
            match &step.operation {
                Operation::Command { .. } => {
                    let mut understood = self.understand_command(change, step);
                    if understood.deeds.is_empty() {
                        let nothing = deed("process.exec", Vec::new(), SideEffect::Exec);
                        understood.deeds.push(nothing);
                    }
                    all.commands.extend(understood.commands);
                    all.deeds.extend(understood.deeds);
                }
                other => all.deeds.push(of_operation(other, &place, change.here)),
            }
            operations.push(self.written(step, target)?);
        }
        if let Some(line) = change.check {
            let understood = self.understand_check(change, line);
            all.commands.extend(understood.commands);
            all.deeds.extend(understood.deeds);
            operations.push(text(&json!({"verify": line}))?);
        }
        // What Safepoint keeps of its own is out of reach by this way too.
        self.guard(&mut all.deeds);
        Ok(Act::Change {
            tool: MUTATE,
            operations,
            understood: all,
            programs: match change.starts_programs() {
                true => StartsPrograms::Yes,
                false => StartsPrograms::No,
            },
            covering: None,
        })
    }

    /// The paths that the commands of a change are known to change, as they lead now: by their
    /// names, and by what those lead to.
    pub fn changed_by_commands(
        &self,
        change: &ProposedChange<'_>,
    ) -> Result<Vec<PathBuf>, ControlError> {
        let commands = change
            .steps
            .iter()
            .flat_map(|step| self.understand_command(change, step).deeds);
        let mut paths = Vec::new();
        for deed in commands.filter(|it| it.undo == Undo::Touched) {
            for touch in &deed.touches {
                let named = world::named(touch, &self.workspace.root)?;
                for path in named.into_iter().filter(|it| is_change(&it.role)) {
                    let path = PathBuf::from(path.path);
                    paths.extend(std::fs::canonicalize(&path).ok());
                    paths.push(path);
                }
            }
        }
        Ok(paths)
    }

    /// What a step that is a command would do, in the directory in which it would run.
    fn understand_command(&self, change: &ProposedChange<'_>, step: &Step) -> Understanding {
        let Operation::Command { argv, env, .. } = &step.operation else {
            return Understanding::default();
        };
        let target = step.target.as_deref().unwrap_or_default();
        let place = std::fs::canonicalize(change.here.join(target));
        let directory = match place {
            Ok(place) if place.is_dir() && place.starts_with(&self.workspace.root) => place,
            _ => self.workspace.root.clone(),
        };
        // Its variables can choose what runs, as those before a command in a line can.
        let given = env.iter().map(|(name, value)| format!("{name}={value}"));
        let prefix = (!env.is_empty()).then(|| "env".to_owned());
        let words: Vec<String> = prefix
            .into_iter()
            .chain(given.filter(|_| !env.is_empty()))
            .chain(argv.iter().cloned())
            .collect();
        let search = Search::new(change.variables);
        let mut understood = shell::command(&words, &self.around(&search, &directory));
        // Whoever looks for repositories learns from this where it runs.
        let place = directory.to_str().map(str::to_owned);
        understood
            .commands
            .insert(0, vec![Some("cd".to_owned()), place]);
        understood
    }

    /// The operation as it was meant: with its target, in canonical form. Of variables there are
    /// the names and keyed digests: any value may be a secret.
    fn written(&self, step: &Step, target: &str) -> Result<String, ControlError> {
        let mut operation = step.operation.clone();
        if let Operation::Command { env, .. } = &mut operation {
            for (name, value) in env.iter_mut() {
                *value = self.control.trail.mark_variable(name, value);
            }
        }
        text(&json!({"target": target, "operation": operation}))
    }

    fn understand_check(&self, change: &ProposedChange<'_>, line: &str) -> Understanding {
        let search = Search::new(change.variables);
        let mut understood = shell::line(line, &self.around(&search, &self.workspace.root));
        let place = self.workspace.root.to_str().map(str::to_owned);
        understood
            .commands
            .insert(0, vec![Some("cd".to_owned()), place]);
        understood
    }

    fn around<'a>(&'a self, search: &'a Search, directory: &'a Path) -> Surroundings<'a> {
        Surroundings {
            programs: search as &dyn Programs,
            directory,
            home: self.home.as_deref(),
            own: &self.own,
        }
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

fn text(value: &Value) -> Result<String, ControlError> {
    let bytes = json::canonical(value).map_err(|error| ControlError::Proposal {
        reason: format!("an operation cannot be written down exactly: {error}"),
    })?;
    String::from_utf8(bytes).map_err(|error| ControlError::Proposal {
        reason: error.to_string(),
    })
}
