//! Finding a workspace or a task by the beginning of its id.

use safepoint_model::{TaskId, WorkspaceId};
use safepoint_store::{Sql, Value, query_all};

use crate::table::parsed;
use crate::{Progress, ProgressError};

impl Progress {
    /// The one workspace whose id begins with `prefix`.
    pub fn find(&self, prefix: &str) -> Result<WorkspaceId, ProgressError> {
        let statement =
            "SELECT id FROM progress_workspaces WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 2";
        self.trail
            .store()
            .read(|sql| only(sql, statement, "workspace", prefix))
    }

    /// The one task whose id begins with `prefix`.
    pub fn find_task(&self, prefix: &str) -> Result<TaskId, ProgressError> {
        let statement =
            "SELECT id FROM progress_tasks WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 2";
        self.trail
            .store()
            .read(|sql| only(sql, statement, "task", prefix))
    }
}

/// The one id that begins with `prefix`. `statement` lists at most two between two bounds.
fn only<T: std::str::FromStr>(
    sql: &mut dyn Sql,
    statement: &str,
    what: &'static str,
    prefix: &str,
) -> Result<T, ProgressError> {
    let unknown = || ProgressError::NotFound {
        what,
        name: prefix.to_owned(),
    };
    // Nothing of ours begins with nothing, or with what no id has in it.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if prefix.is_empty() || !prefix.chars().all(plain) {
        return Err(unknown());
    }
    let end = format!("{prefix}\u{7f}");
    let bounds = [Value::Text(prefix), Value::Text(&end)];
    let found = query_all(sql, statement, &bounds, |row| Ok(row.text(0)?.to_owned()))?;
    match found.as_slice() {
        [] => Err(unknown()),
        [only] => Ok(parsed(only, 0)?),
        // Every id has the same length: none is the beginning of another.
        _ => Err(ProgressError::Ambiguous {
            what,
            prefix: prefix.to_owned(),
        }),
    }
}
