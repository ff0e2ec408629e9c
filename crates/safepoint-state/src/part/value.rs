//! States that nobody else owns: their present values are rows of our own store.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use safepoint_store::{Sql, StoreError, Value, query_all, query_one};

use crate::StateError;
use crate::state::{State, Workspace};

impl State {
    /// The present value of a state without a provider.
    pub(crate) fn value(&self, workspace: &Path, key: &str) -> Result<Option<Vec<u8>>, StateError> {
        self.trail.store().read(|sql| {
            let found = query_one(
                sql,
                "SELECT value FROM state_values WHERE workspace = ?1 AND key = ?2",
                &[bytes(workspace), Value::Text(key)],
                |row| Ok(row.bytes(0)?.unwrap_or_default().to_vec()),
            )?;
            Ok(found)
        })
    }

    /// All states of a workspace, by name: those that providers own, and the others.
    pub fn states(&self, workspace: &Workspace) -> Result<Vec<(String, Vec<u8>)>, StateError> {
        let mut states = self.values(&workspace.root)?;
        for (key, provider) in &workspace.providers {
            states.retain(|(known, _)| known != key);
            states.push((key.clone(), self.ask(workspace, key, provider)?));
        }
        states.sort();
        Ok(states)
    }

    fn values(&self, workspace: &Path) -> Result<Vec<(String, Vec<u8>)>, StateError> {
        self.trail.store().read(|sql| {
            let found = query_all(
                sql,
                "SELECT key, value FROM state_values WHERE workspace = ?1 ORDER BY key",
                &[bytes(workspace)],
                |row| {
                    let value = row.bytes(1)?.unwrap_or_default().to_vec();
                    Ok((row.text(0)?.to_owned(), value))
                },
            )?;
            Ok(found)
        })
    }
}

/// Makes `value` the present one; `None` takes the state away.
pub(crate) fn set(
    sql: &mut dyn Sql,
    workspace: &Path,
    key: &str,
    value: Option<&[u8]>,
) -> Result<(), StoreError> {
    sql.execute(
        "DELETE FROM state_values WHERE workspace = ?1 AND key = ?2",
        &[bytes(workspace), Value::Text(key)],
    )?;
    if let Some(value) = value {
        sql.execute(
            "INSERT INTO state_values (workspace, key, value) VALUES (?1, ?2, ?3)",
            &[bytes(workspace), Value::Text(key), Value::Blob(value)],
        )?;
    }
    Ok(())
}

/// Gives the values of one directory to another, where it has none of its own.
pub(crate) fn copy_values(sql: &mut dyn Sql, from: &Path, to: &Path) -> Result<(), StoreError> {
    let values = |sql: &mut dyn Sql, workspace: &Path| {
        query_all(
            sql,
            "SELECT key, value FROM state_values WHERE workspace = ?1",
            &[bytes(workspace)],
            |row| {
                let value = row.bytes(1)?.unwrap_or_default().to_vec();
                Ok((row.text(0)?.to_owned(), value))
            },
        )
    };
    let own = values(sql, to)?;
    for (key, value) in values(sql, from)? {
        if !own.iter().any(|(known, _)| *known == key) {
            set(sql, to, &key, Some(&value))?;
        }
    }
    Ok(())
}

fn bytes(workspace: &Path) -> Value<'_> {
    Value::Blob(workspace.as_os_str().as_bytes())
}
