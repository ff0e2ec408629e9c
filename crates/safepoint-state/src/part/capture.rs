//! Capturing a part as it is now.

use safepoint_database::{Address, Database, DatabaseError, Engine, Image};
use safepoint_model::Digest;
use safepoint_store::{Sql, regular};
use std::path::Path;

use super::{Held, Keeping, Part, Subject, WantedPart, value};
use crate::objects::Writer;
use crate::state::{State, Workspace};
use crate::{ContentId, StateError};

impl State {
    /// Captures what is wanted, and says what it does not cover.
    pub(crate) fn capture_parts(
        &self,
        workspace: &Workspace,
        wanted: &[WantedPart],
        writer: &Writer<'_>,
    ) -> Result<(Vec<Part>, Vec<String>), StateError> {
        let mut parts = Vec::new();
        let mut warnings = Vec::new();
        for one in wanted {
            let part = match (&one.subject, &one.value) {
                (Subject::State { key }, Some(value)) => {
                    refuse_owned(workspace, key)?;
                    bytes(&one.subject, value.clone(), writer)?
                }
                _ => self.capture_one(
                    workspace,
                    &one.subject,
                    writer,
                    &mut warnings,
                    Broken::Refuse,
                )?,
            };
            if part.held == Held::Absent {
                return Err(StateError::EmptyScope {
                    scope: one.subject.name(),
                });
            }
            parts.push(part);
        }
        Ok((parts, warnings))
    }

    /// Captures a part as it is now, whether it is there or not, and whole or not: before
    /// a going back, what an agent left of a database is kept as well.
    pub(crate) fn capture_part(
        &self,
        workspace: &Workspace,
        subject: &Subject,
        writer: &Writer<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Part, StateError> {
        self.capture_one(workspace, subject, writer, warnings, Broken::Keep)
    }

    fn capture_one(
        &self,
        workspace: &Workspace,
        subject: &Subject,
        writer: &Writer<'_>,
        warnings: &mut Vec<String>,
        broken: Broken,
    ) -> Result<Part, StateError> {
        match subject {
            Subject::State { key } => match self.present_state(workspace, key)? {
                Some(value) => bytes(subject, value, writer),
                None => Ok(absent(subject)),
            },
            Subject::Database { address, variable } => {
                let database = self.database(address, variable.as_deref())?;
                let image = match database.capture(&Keeping(writer)) {
                    Err(DatabaseError::NotFound {
                        what: "file" | "database",
                        ..
                    }) => return Ok(absent(subject)),
                    // Garbage where a database should be.
                    Err(DatabaseError::Unsupported { why, .. })
                        if address.engine() == Engine::Sqlite && broken == Broken::Keep =>
                    {
                        warnings.push(format!("`{address}` is no whole database ({why}): its bytes are kept as they are"));
                        return raw(subject, address, writer);
                    }
                    other => other?,
                };
                for one in &image.not_covered {
                    warnings.push(format!("not captured of `{address}`: {one}"));
                }
                part_of_image(subject, &image, writer)
            }
        }
    }

    /// The value that a state has now.
    pub(crate) fn present_state(
        &self,
        workspace: &Workspace,
        key: &str,
    ) -> Result<Option<Vec<u8>>, StateError> {
        match workspace.providers.get(key) {
            Some(provider) => self.ask(workspace, key, provider).map(Some),
            None => self.value(&workspace.root, key),
        }
    }

    /// A database, with the password that a variable of the environment may hold.
    pub(crate) fn database(
        &self,
        address: &Address,
        variable: Option<&str>,
    ) -> Result<Database, StateError> {
        let reach = self.check_database(address)?;
        let mut access = self.around.access()?;
        if let Some(variable) = variable {
            let text = access
                .variables
                .get(std::ffi::OsStr::new(variable))
                .and_then(|text| text.to_str())
                .map(str::to_owned);
            let base = std::path::Path::new("/");
            let read = text.and_then(|text| Address::parse_with_password(&text, base).ok());
            let password = match read {
                Some((known, password))
                    if known.covers(address) || known.whole() == address.whole() =>
                {
                    password
                }
                _ => {
                    return Err(StateError::BadScope {
                        scope: address.to_string(),
                        why: format!("`{variable}`, which held its address, does not any more"),
                    });
                }
            };
            let name = match address.engine() {
                Engine::Postgres => "PGPASSWORD",
                Engine::Mariadb | Engine::Sqlite => "MYSQL_PWD",
            };
            if let Some(password) = password {
                access.variables.insert(name.into(), password.into());
            }
        }
        Ok(Database::new(address.clone(), access).within(reach.within))
    }
}

/// A value can be given only for a state that nobody else owns.
fn refuse_owned(workspace: &Workspace, key: &str) -> Result<(), StateError> {
    match workspace.providers.contains_key(key) {
        false => Ok(()),
        true => Err(StateError::BadScope {
            scope: format!("state:{key}"),
            why: "it has a provider, which knows its value: name it without one".to_owned(),
        }),
    }
}

/// Values that were given become the present ones, together with the checkpoint that
/// holds them.
pub(crate) fn set_given(
    sql: &mut dyn Sql,
    workspace: &Path,
    wanted: &[WantedPart],
) -> Result<(), StateError> {
    for part in wanted {
        if let (Subject::State { key }, Some(value)) = (&part.subject, &part.value) {
            value::set(sql, workspace, key, Some(value))?;
        }
    }
    Ok(())
}

/// What becomes of a file that should be a database and is none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    Refuse,
    Keep,
}

fn absent(subject: &Subject) -> Part {
    Part {
        subject: subject.clone(),
        held: Held::Absent,
        hash: Digest::of_parts(&[b"safepoint/absent/v1"]),
    }
}

/// A database, as the part that it is.
pub(crate) fn part_of_image(
    subject: &Subject,
    image: &Image,
    writer: &Writer<'_>,
) -> Result<Part, StateError> {
    let text =
        serde_json::to_vec(image).map_err(|error| StateError::Unsupported(error.to_string()))?;
    let part = Part {
        subject: subject.clone(),
        held: Held::Image {
            image: ContentId::of(&text),
            tables: image.tables.len() as u64,
            rows: image.rows(),
            size: image.all_pieces().map(|piece| piece.size).sum(),
        },
        hash: image.digest(),
    };
    writer.add(ContentId::of(&text), text)?;
    Ok(part)
}

fn bytes(subject: &Subject, value: Vec<u8>, writer: &Writer<'_>) -> Result<Part, StateError> {
    let part = Part {
        subject: subject.clone(),
        hash: Digest::of_parts(&[&value]),
        held: Held::Bytes {
            content: ContentId::of(&value),
            size: value.len() as u64,
        },
    };
    writer.add(ContentId::of(&value), value)?;
    Ok(part)
}

/// The bytes of a file that should be a database.
fn raw(subject: &Subject, address: &Address, writer: &Writer<'_>) -> Result<Part, StateError> {
    let path = address.file().unwrap_or(std::path::Path::new(""));
    let value =
        regular::read(path, u64::MAX).map_err(|error| StateError::file("read", path, error))?;
    bytes(subject, value, writer)
}
