//! One settings file: read, changed all at once, and kept as it was.

use std::path::{Path, PathBuf};

use safepoint_clients::settings::SettingsError;
use safepoint_clients::skills::is_skill_untouched;
use safepoint_store::durable;

use super::wrong;
use crate::error::CliError;

/// Whether a file is kept as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// It is, beside the new one.
    AsItWas,
    /// What goes is ours.
    Nothing,
}

/// A file, before and after.
pub(super) struct Change {
    /// Where, without links.
    pub(super) path: PathBuf,
    before: Option<String>,
    /// `None`: it goes.
    pub(super) after: Option<String>,
    /// Whether it has a directory of its own, which goes with it.
    form: FileForm,
}

/// What a file is to its client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileForm {
    /// Settings, in which others have entries too.
    Settings,
    /// A skill, in a directory of its own.
    Skill,
    /// A skill that somebody else wrote, or has changed.
    KeptSkill,
}

impl Change {
    /// What `edit` makes of the file that is there, or is not.
    pub(super) fn of(
        path: PathBuf,
        edit: impl FnOnce(Option<&str>) -> Result<Option<String>, SettingsError>,
    ) -> Result<Self, CliError> {
        let mut change = Self::to(path, None)?;
        let after = edit(change.before.as_deref());
        change.after = after.map_err(|error| wrong(&change.path, &error))?;
        Ok(change)
    }

    /// The file with this content.
    pub(super) fn to(path: PathBuf, after: Option<String>) -> Result<Self, CliError> {
        // Settings are often links into a directory of settings: the link stays.
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        let before = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed("read", &path, error)),
        };
        Ok(Self {
            path,
            before,
            after,
            form: FileForm::Settings,
        })
    }

    /// A skill with this text, or without any. One that is not as we wrote it stays as it is.
    pub(super) fn of_skill(path: PathBuf, after: Option<String>) -> Result<Self, CliError> {
        let mut change = Self::to(path, after)?;
        change.form = match &change.before {
            Some(before) if !is_skill_untouched(before) => FileForm::KeptSkill,
            _ => FileForm::Skill,
        };
        if change.form == FileForm::KeptSkill {
            change.after.clone_from(&change.before);
        }
        Ok(change)
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.form == FileForm::KeptSkill {
            return "kept";
        }
        match (&self.before, &self.after) {
            (None, None) => "unchanged",
            (None, Some(_)) => "created",
            (Some(_), None) => "deleted",
            (Some(before), Some(after)) if before == after => "unchanged",
            (Some(_), Some(_)) => "changed",
        }
    }

    /// Writes it, and says where the file as it was before us is kept.
    pub(super) fn write(&self, keep: Keep) -> Result<Option<PathBuf>, CliError> {
        match self.form {
            FileForm::Settings => self.write_settings(keep),
            FileForm::KeptSkill => Ok(None),
            FileForm::Skill => self.write_skill().map(|()| None),
        }
    }

    fn write_skill(&self) -> Result<(), CliError> {
        match (&self.after, self.kind()) {
            (_, "unchanged") => {}
            (Some(after), _) => put(&self.path, after)?,
            (None, _) => {
                durable::remove(&self.path)?;
                // Its directory, and that of all skills, where nothing else is in them.
                for directory in self.path.ancestors().skip(1).take(2) {
                    let _ = std::fs::remove_dir(directory);
                }
            }
        }
        Ok(())
    }

    fn write_settings(&self, keep: Keep) -> Result<Option<PathBuf>, CliError> {
        let backup = backup_of(&self.path);
        let changes = self.kind() != "unchanged" && keep == Keep::AsItWas;
        let kept = match (&self.before, backup.exists()) {
            (Some(before), false) if changes => {
                put(&backup, before)?;
                Some(backup.clone())
            }
            (_, true) => Some(backup.clone()),
            _ => None,
        };
        match (&self.after, self.kind()) {
            (_, "unchanged") => {}
            (Some(after), _) => put(&self.path, after)?,
            (None, _) => {
                durable::remove(&self.path)?;
            }
        }
        // Nothing of ours is left to be afraid of: the copy has done its work.
        let original = kept.as_ref().map(std::fs::read_to_string);
        if let (Some(Ok(original)), Some(kept)) = (original, &kept)
            && self.after.as_ref() == Some(&original)
        {
            let _ = durable::remove(kept);
            return Ok(None);
        }
        Ok(kept)
    }
}

/// Where a file as it was before us is kept.
fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".before-safepoint");
    name.into()
}

/// Writes a file all at once, with the mode it has.
fn put(path: &Path, text: &str) -> Result<(), CliError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    durable::create_directory(directory)?;
    let mode = std::fs::metadata(path)
        .map(|found| found.permissions())
        .ok();
    let Some(mode) = mode else {
        durable::write(path, text.as_bytes(), durable::Access::Shared)?;
        return Ok(());
    };
    // Settings may hold secrets: nobody gets to read more of them than before, not even briefly.
    durable::write(path, text.as_bytes(), durable::Access::Private)?;
    std::fs::set_permissions(path, mode).map_err(|error| failed("write", path, error))
}

fn failed(action: &'static str, path: &Path, error: std::io::Error) -> CliError {
    CliError::File {
        action,
        path: path.to_owned(),
        error,
    }
}
