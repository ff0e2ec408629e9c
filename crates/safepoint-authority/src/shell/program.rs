//! Which entries of the table a program is judged by.
//!
//! It is judged by the name it is called by and by the name of the file that this leads to:
//! whoever makes a link chooses the one, and what runs is the other. What it does is all that
//! either says, so that neither name makes it look more harmless.

use std::path::Path;
use std::sync::Arc;

use crate::deed::Program;

use super::state::State;
use super::table::{self, Entry};
use super::walk::Walker;

/// What is known of a program.
pub(super) struct Judged {
    /// What the table says of it, under each of its names.
    pub(super) entries: Vec<(String, Arc<Entry>)>,
    /// Whether it may do anything else as well: whoever wrote it chose that.
    pub(super) anything: bool,
    /// Whether it is `safepoint`, by one of its names.
    pub(super) safepoint: bool,
}

impl Walker<'_> {
    /// What the program that `name` leads to is judged by.
    pub(super) fn judged(&self, name: &str, program: &Program, state: &State) -> Judged {
        let bare = !name.contains('/');
        let called = name.rsplit('/').next().unwrap_or_default();
        let by_call = table::find(called);
        let is_tool = by_call.as_ref().is_some_and(|entry| entry.tool);
        let (is_called, is_led_to, anything) = match program {
            Program::System(_) => (true, true, by_call.is_none()),
            // Its author called it so, and that says nothing.
            Program::Other(path) if self.is_inside(path, state) => (false, false, true),
            Program::Other(_) => (true, by_call.is_none(), !(is_tool && bare)),
            // It may be there by the time the line comes to it.
            Program::Missing => (bare, false, true),
        };
        let file = file_name(program).filter(|file| *file != called);
        let mut entries = Vec::new();
        if let Some(entry) = by_call.filter(|_| is_called) {
            entries.push((called.to_owned(), entry));
        }
        let led_to = file.filter(|_| is_led_to).and_then(|file| {
            let entry = table::find(file)?;
            Some((file.to_owned(), entry))
        });
        if let Some((file, entry)) = led_to {
            // Some are many programs, and do what the name they are called by says.
            let is_many = entry.also.iter().any(|name| name == "*" || name == called);
            let is_other = entries.is_empty() || !is_many && !table::is_same(called, &file);
            if is_other {
                entries.push((file, entry));
            }
        }
        Judged {
            entries,
            anything,
            safepoint: called == "safepoint" || file == Some("safepoint"),
        }
    }

    /// Whether a file lies where the line works.
    fn is_inside(&self, path: &Path, state: &State) -> bool {
        path.starts_with(self.around.directory)
            || state.directories.as_ref().is_none_or(|directories| {
                directories.iter().any(|directory| {
                    path.starts_with(directory)
                        && !self.homes().contains(directory)
                        && directory.parent().is_some()
                })
            })
    }
}

fn file_name(program: &Program) -> Option<&str> {
    match program {
        Program::System(path) | Program::Other(path) => path.file_name()?.to_str(),
        Program::Missing => None,
    }
}
