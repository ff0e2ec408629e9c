//! A word that is being put together from its parts.

use super::state::Argument;

/// A word that is being put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    /// Something is there, even if it is empty text.
    pub(super) any: bool,
    set_at: Option<usize>,
    glob_at: Option<usize>,
    unknown: Option<(usize, bool)>,
}

impl Draft {
    pub(super) fn letter(&mut self, letter: char) {
        match letter {
            '*' | '?' => self.glob(),
            // A set only once it is closed.
            '[' => self.set_at = Some(self.text.len()),
            ']' => {
                if let Some(at) = self.set_at {
                    self.glob_at.get_or_insert(at);
                }
            }
            _ => {}
        }
        self.text.push(letter);
    }

    pub(super) fn glob(&mut self) {
        self.glob_at.get_or_insert(self.text.len());
    }

    pub(super) fn unknown(&mut self, splits: bool) {
        let (_, before) = self.unknown.get_or_insert((self.text.len(), false));
        *before |= splits;
    }

    pub(super) fn value(&mut self, value: &Argument) {
        match value {
            Argument::Known(text) => {
                self.any = true;
                self.text.push_str(text);
            }
            Argument::Pattern { directory, text } => {
                let at = self.text.len() + directory.len();
                self.glob_at.get_or_insert(at);
                self.text.push_str(text);
            }
            Argument::Dynamic { start, splits, .. } => {
                self.text.push_str(start);
                self.unknown(*splits);
            }
        }
    }

    /// The word, if there is one: unquoted nothing is no word.
    pub(super) fn finish(self, written: &str) -> Option<Argument> {
        if self.text.is_empty() && !self.any && self.unknown.is_none() && self.glob_at.is_none() {
            return None;
        }
        Some(self.whole(written))
    }

    fn whole(self, written: &str) -> Argument {
        if let Some((at, splits)) = self.unknown {
            let start = self.text.get(..at).unwrap_or_default().to_owned();
            return Argument::Dynamic {
                start,
                written: written.to_owned(),
                splits,
            };
        }
        if let Some(at) = self.glob_at {
            let before = self.text.get(..at).unwrap_or_default();
            let after = self.text.get(at..).unwrap_or_default();
            // A pattern does not match `..`, but what follows it may be written so.
            if after.split('/').any(|part| part == "..") {
                return Argument::Dynamic {
                    start: before.to_owned(),
                    written: written.to_owned(),
                    splits: false,
                };
            }
            let directory = match before.rfind('/') {
                // A value that is itself below a directory keeps it whole.
                _ if after.starts_with('/') => before.to_owned(),
                Some(0) => "/".to_owned(),
                Some(end) => before.get(..end).unwrap_or_default().to_owned(),
                None => String::new(),
            };
            return Argument::Pattern {
                directory,
                text: self.text,
            };
        }
        Argument::Known(self.text)
    }
}
