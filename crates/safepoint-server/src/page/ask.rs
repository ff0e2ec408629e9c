//! Asking: from what a page wants to know to a command, and from its document to types.
//!
//! A value never stands where it could be taken for a flag, and never names a file: it follows
//! a `=`, or is an id, or goes to standard input.

use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::trouble::Trouble;
use super::visit::Visitor;
use crate::commands::{Answer, Command, Record};

/// The words of a command, one after another.
#[derive(Debug)]
pub(super) struct Words(Command);

impl Words {
    /// A command without values.
    pub(super) fn new(words: &[&str]) -> Self {
        Self(Command {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Command::default()
        })
    }

    /// With an option, where there is a value for it.
    pub(super) fn option(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.0.words.push(format!("{name}={value}"));
        }
        self
    }

    /// With a switch.
    pub(super) fn switch(mut self, name: &str, is_on: bool) -> Self {
        if is_on {
            self.0.words.push(name.to_owned());
        }
        self
    }

    /// With ids, at the end. They have only letters and digits, so none is taken for a flag.
    pub(super) fn ids(mut self, ids: &[&str]) -> Result<Self, Trouble> {
        for id in ids {
            if !is_id(id) {
                return Err(Trouble::not_found("there is nothing of that name"));
            }
            self.0.words.push((*id).to_owned());
        }
        Ok(self)
    }

    /// In a directory that the store itself has named.
    pub(super) fn within(mut self, directory: impl Into<PathBuf>) -> Self {
        self.0.directory = Some(directory.into());
        self
    }

    /// With something to read.
    pub(super) fn reading(mut self, input: String) -> Self {
        self.0.input = input.into_bytes();
        self
    }
}

/// The characters of ids, which can be taken neither for a flag nor for a path.
fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.len() <= 80 && text.chars().all(plain)
}

impl Visitor {
    /// The directory that something is of: what is asked about it is asked there.
    pub(super) async fn home(&self, record: Record, id: &str) -> Result<PathBuf, Trouble> {
        let nothing = || {
            Trouble::not_found(match record {
                Record::Checkpoint => "there is no checkpoint of that name",
                Record::Action => "there is no action of that name",
            })
        };
        if !is_id(id) {
            return Err(nothing());
        }
        let (page, caller) = (Arc::clone(self.page()), self.caller.clone());
        let id = id.to_owned();
        let found = blocking(move || page.commands.home(&caller, record, &id)).await?;
        let found = found.map_err(|error| Trouble::unavailable(&error.to_string()))?;
        found.ok_or_else(nothing)
    }

    /// Runs a command, and takes whatever comes.
    pub(super) async fn run(&self, words: Words) -> Result<Answer, Trouble> {
        let page = Arc::clone(self.page());
        let caller = self.caller.clone();
        let turn = Arc::clone(&page.turns).acquire_owned().await;
        blocking(move || {
            let answer = page.commands.run(&caller, &words.0);
            drop(turn);
            answer
        })
        .await
    }

    /// Runs a command, and reads what it prints when all is well.
    pub(super) async fn ask<T: DeserializeOwned>(&self, words: Words) -> Result<T, Trouble> {
        let answer = self.run(words).await?;
        match answer.exit {
            0 => read(answer.document),
            exit => Err(Trouble::of(exit, &answer.document)),
        }
    }
}

/// A document, as far as a page needs it.
pub(super) fn read<T: DeserializeOwned>(document: Value) -> Result<T, Trouble> {
    serde_json::from_value(document)
        .map_err(|error| Trouble::unavailable(&format!("an answer was not understood: {error}")))
}

/// Runs what may take long beside everything else.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Trouble::unavailable("a command broke down"))
}
