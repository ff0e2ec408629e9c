//! The first half of the story: a project is changed, broken, and mended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use safepoint_model::Expiry;
use safepoint_state::scope::Scope;
use safepoint_state::{
    Action, Goal, Origin, Patterns, Progress, Rules, State, Surroundings, Wanted, Workspace, path,
};
use safepoint_store::durable::{self, Access};

use super::Show;
use crate::error::CliError;
use crate::world::{SystemClock, SystemEntropy};

const PROGRAM: &str = "fn main() {\n    println!(\"hello\");\n}\n";
const BETTER: &str = "fn main() {\n    println!(\"hello, world\");\n}\n";
const NOTES: &str = "what the customer said, written down nowhere else\n";

/// Shows it, and says whether everything came out as it should.
pub(super) fn show(show: &mut Show<'_>, room: &Path) -> Result<bool, CliError> {
    let project = room.join("project");
    durable::create_directory(&project.join("src"))?;
    let write = |name: &str, text: &str| {
        durable::write(&project.join(name), text.as_bytes(), Access::Shared)
    };
    write("src/main.rs", PROGRAM)?;
    write("notes.txt", NOTES)?;
    write(".gitignore", "notes.txt\n")?;
    let state = open(room)?;
    let workspace = Workspace {
        root: std::fs::canonicalize(&project)?,
        rules: Rules::new(Patterns::default())?,
        providers: Default::default(),
    };

    show.step("A checkpoint is made of a project, ignored files and all")?;
    let first = checkpoint(&state, &workspace, "before the agent")?;
    show.good(&first)?;

    show.step("A sample agent improves one file, and then clears away too much")?;
    write("src/main.rs", BETTER)?;
    checkpoint(&state, &workspace, "after the edit")?;
    durable::remove(&project.join("notes.txt"))?;
    durable::remove(&project.join(".gitignore"))?;
    checkpoint(&state, &workspace, "after the clearing")?;
    let actions = state.actions(&workspace.root, 10)?;
    for action in actions.iter().rev() {
        show.line(&format!("   {}  {}", action.id, action.summary))?;
        for change in changes(&state, action)? {
            show.note(&change)?;
        }
    }

    show.step("Only the clearing is undone; the good edit stays")?;
    let Some(clearing) = actions.first() else {
        return Ok(false);
    };
    let goal = Goal::Without {
        action: clearing,
        verb: "undo",
    };
    let restored = state.restore(&workspace, &goal, &[], &Progress::default())?;
    for change in &restored.changes {
        let name = path::display(&change.path);
        show.note(&format!("{:<9} {name}", change.kind().as_str()))?;
    }
    let is = |name: &str, text: &str| {
        std::fs::read_to_string(project.join(name)).is_ok_and(|found| found == text)
    };
    let right = restored.matches && is("notes.txt", NOTES) && is("src/main.rs", BETTER);
    if right {
        show.good("the notes are back, and the improved file is as the agent left it")?;
    } else {
        show.bad("the project is not as it should be")?;
    }
    Ok(right)
}

fn open(room: &Path) -> Result<State, CliError> {
    let name = |error: safepoint_trail::NameError| CliError::Usage(error.to_string());
    let around = Surroundings {
        data: room.join("data"),
        state: room.join("state"),
        runtime: room.join("runtime"),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        git: None,
        lock_timeout: Duration::from_secs(30),
        cap: None,
        actor: "agent:sample".parse().map_err(name)?,
        variables: Vec::new(),
    };
    Ok(State::open(super::open(room)?, around)?)
}

fn checkpoint(state: &State, workspace: &Workspace, reason: &str) -> Result<String, CliError> {
    let scope = Scope::everything();
    let wanted = Wanted {
        scope: &scope,
        parts: Vec::new(),
        reason: Some(reason.to_owned()),
        kind: None,
        expiry: Expiry::Never,
        origin: Origin::Asked,
        seal_to: &[],
    };
    let made = state.checkpoint(workspace, &wanted, &Progress::default())?;
    let record = &made.snapshot.record;
    let (files, hash) = (record.files.files, record.files.hash);
    Ok(format!(
        "{}  {files} files, sha256:{hash}",
        made.snapshot.id
    ))
}

fn changes(state: &State, action: &Action) -> Result<Vec<String>, CliError> {
    let before = state.find(action.before.as_str())?;
    let after = state.find(action.after.as_str())?;
    let found = state.changes_between(&before, &after)?;
    let line = |change: &safepoint_state::tree::Change| {
        format!(
            "{:<9} {}",
            change.kind().as_str(),
            path::display(&change.path)
        )
    };
    Ok(found.iter().map(line).collect())
}
