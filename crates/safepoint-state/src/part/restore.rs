//! Bringing a part back, through whatever owns it, and looking whether it is back.

use std::path::Path;

use safepoint_database::{Address, Image};
use safepoint_store::durable::{self, Access};
use safepoint_store::{Durability, StoreError};

use super::{Held, Part, Reading, Subject, image_of, value};
use crate::objects::{Objects, Reader};
use crate::state::{State, Workspace};
use crate::{Ending, StateError};

impl State {
    /// Makes a part what it was, and says what else is to be known.
    pub(crate) fn restore_part(
        &self,
        workspace: &Workspace,
        part: &Part,
        reader: &Reader<'_>,
    ) -> Result<Vec<String>, StateError> {
        match &part.subject {
            Subject::State { key } => {
                let wanted = match &part.held {
                    Held::Bytes { content, .. } => Some(reader.read(*content)?),
                    Held::Absent | Held::Image { .. } => None,
                };
                self.restore_state(workspace, key, wanted.as_deref())?;
                Ok(Vec::new())
            }
            Subject::Database { address, variable } => match &part.held {
                Held::Image { image, .. } => {
                    let image = image_of(reader, *image)?;
                    let database = self.database(address, variable.as_deref())?;
                    Ok(database.restore(&image, &Reading(reader))?.warnings)
                }
                Held::Bytes { content, .. } => {
                    self.replace_file(address, Some(&reader.read(*content)?))?;
                    Ok(Vec::new())
                }
                Held::Absent => {
                    self.replace_file(address, None)?;
                    Ok(Vec::new())
                }
            },
        }
    }

    pub(crate) fn restore_state(
        &self,
        workspace: &Workspace,
        key: &str,
        wanted: Option<&[u8]>,
    ) -> Result<(), StateError> {
        let Some(provider) = workspace.providers.get(key) else {
            return self.trail.write(Durability::Sync, |writing| {
                value::set(writing.sql(), &workspace.root, key, wanted)?;
                Ok(())
            });
        };
        let wanted = wanted.unwrap_or_default();
        if self.ask(workspace, key, provider)? == wanted {
            return Ok(()); // it is so already
        }
        self.tell(workspace, key, provider, wanted)?;
        match self.ask(workspace, key, provider)? == wanted {
            true => Ok(()),
            false => Err(StateError::Provider {
                key: key.to_owned(),
                command: provider.restore.clone(),
                why: "it ended well, but the state it was given is not the one that is there now"
                    .to_owned(),
                ending: Ending::ByItself,
            }),
        }
    }

    /// What differs between two captures of one part, for people.
    pub(crate) fn compare_parts(
        &self,
        objects: &Objects,
        before: &Part,
        after: &Part,
        limit: usize,
    ) -> Result<String, StateError> {
        let reader = objects.reader();
        if let (Held::Image { image: a, .. }, Held::Image { image: b, .. }) =
            (&before.held, &after.held)
        {
            let (a, b): (Image, Image) = (image_of(&reader, *a)?, image_of(&reader, *b)?);
            let scratch = self.around.scratch()?;
            let found = safepoint_database::compare(&a, &b, &Reading(&reader), &scratch, limit)?;
            return Ok(found.to_text());
        }
        let text = |part: &Part| -> Result<Vec<u8>, StateError> {
            match &part.held {
                Held::Bytes { content, .. } => Ok(crate::part::pretty(&reader.read(*content)?)),
                Held::Absent => Ok(Vec::new()),
                Held::Image { tables, rows, .. } => {
                    Ok(format!("{tables} tables, {rows} rows\n").into_bytes())
                }
            }
        };
        Ok(crate::part::unified(&text(before)?, &text(after)?))
    }

    /// Puts a file in the place of a SQLite database, or takes it away.
    fn replace_file(&self, address: &Address, wanted: Option<&[u8]>) -> Result<(), StateError> {
        let Some(path) = address.file() else {
            return Err(StateError::BadScope {
                scope: address.to_string(),
                why: "a database on a server cannot be taken away or replaced by bytes".to_owned(),
            });
        };
        let database = self.database(address, None)?;
        if let Some(directory) = path.parent()
            && wanted.is_some()
        {
            durable::create_directory(directory)?;
        }
        if path.parent().is_none_or(|directory| !directory.is_dir()) {
            return Ok(()); // there is nothing to take away
        }
        let replace = |path: &Path| -> Result<(), StoreError> {
            for end in ["-journal", "-wal", "-shm"] {
                let mut beside = path.as_os_str().to_owned();
                beside.push(end);
                durable::remove(beside.as_ref())?;
            }
            match wanted {
                Some(bytes) => durable::write(path, bytes, Access::Shared),
                None => durable::remove(path),
            }
        };
        let replaced = database.replace_file(|path| replace(path).map_err(std::io::Error::other));
        Ok(replaced?)
    }
}
