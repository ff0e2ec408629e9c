//! The databases beside the user's in which a restore builds, and the locks by
//! which processes of ours keep out of each other's way.

use safepoint_model::Digest;

use crate::DatabaseError;

use super::lex;
use super::pipe::random;
use super::session::Session;
use super::step::Move;

/// The names of two locks on the server. They are held by sessions, so they are free when
/// whoever had them is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Locks {
    /// Held by a restore from beginning to end: what it builds is nobody else's.
    pub(super) restore: String,
    /// Held while tables change places, and while a capture takes its snapshot.
    pub(super) swap: String,
}

impl Locks {
    /// Those of a database.
    pub(super) fn of(database: &str) -> Self {
        let digest = digest(database, 16);
        Self {
            restore: format!("safepoint.{digest}.restore"),
            swap: format!("safepoint.{digest}.swap"),
        }
    }
}

fn digest(database: &str, digits: usize) -> String {
    let digest = Digest::of_parts(&[database.as_bytes()]).to_string();
    digest.chars().take(digits).collect()
}

/// How far a restore has come, which the name of its journal tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The user's tables are where they were.
    Pending,
    /// The tables have changed places.
    Done,
    /// They have changed back.
    Reverting,
}

/// The databases of one restore: `NAME__safepoint_…` and `NAME__safepoint_…_old`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scratch {
    /// Where tables are built.
    pub(super) build: String,
    /// Where those go that they take the place of.
    pub(super) old: String,
}

impl Scratch {
    /// One that nobody has yet.
    pub(super) fn fresh(database: &str) -> Self {
        let number: String = random().chars().take(12).collect();
        Self::named(&format!("{}{number}", prefix(database)))
    }

    fn named(build: &str) -> Self {
        Self {
            build: build.to_owned(),
            old: format!("{build}_old"),
        }
    }

    /// Those that restores of `database` have left on the server.
    pub(super) fn left(session: &mut Session, database: &str) -> Result<Vec<Self>, DatabaseError> {
        let prefix = prefix(database);
        let known = session.texts("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")?;
        let mut left: Vec<String> = known
            .into_iter()
            .flatten()
            .filter(|name| name.starts_with(&prefix))
            .map(|name| name.trim_end_matches("_old").to_owned())
            .collect();
        left.sort();
        left.dedup();
        Ok(left.iter().map(|name| Self::named(name)).collect())
    }

    /// Makes both.
    pub(super) fn create(&self, session: &mut Session) -> Result<(), DatabaseError> {
        for name in [&self.build, &self.old] {
            session.run(format!("CREATE DATABASE {}", lex::name(name)))?;
        }
        Ok(())
    }

    /// Drops both, with all that is in them.
    pub(super) fn drop(&self, session: &mut Session) -> Result<(), DatabaseError> {
        for name in [&self.build, &self.old] {
            session.run(format!("DROP DATABASE IF EXISTS {}", lex::name(name)))?;
        }
        Ok(())
    }

    /// A name in the user's database for a table that is about to take its place.
    pub(super) fn staged(&self, number: usize) -> String {
        format!("__safepoint_{}_{number}", self.number())
    }

    /// The full name of the table that tells what is to be done when we do not come back. It
    /// is renamed together with the tables that change places.
    pub(super) fn journal(&self, state: State) -> String {
        lex::full_name(&self.old, &self.journal_table(state))
    }

    /// Its name alone.
    pub(super) fn journal_table(&self, state: State) -> String {
        let state = match state {
            State::Pending => "pending",
            State::Done => "done",
            State::Reverting => "reverting",
        };
        format!("__safepoint_{}_{state}", self.number())
    }

    /// The renaming of the journal.
    pub(super) fn journal_move(&self, from: State, to: State) -> Move {
        Move {
            from: self.journal(from),
            to: self.journal(to),
        }
    }

    fn number(&self) -> &str {
        self.build.rsplit('_').next().unwrap_or_default()
    }
}

/// What the names of scratch databases for `database` begin with. Long names are cut; a
/// digest of the whole tells them apart.
fn prefix(database: &str) -> String {
    let name: String = database.chars().take(24).collect();
    format!("{name}__safepoint_{}_", digest(database, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_belong_to_one_database() {
        let long = "ä".repeat(64);
        for database in ["shop", long.as_str()] {
            let scratch = Scratch::fresh(database);
            for name in [
                scratch.build.clone(),
                scratch.old.clone(),
                scratch.staged(123_456),
                scratch.journal_table(State::Reverting),
                Locks::of(database).restore,
            ] {
                assert!(name.chars().count() <= 64, "{name}");
            }
            assert!(scratch.build.starts_with(&prefix(database)));
        }
        assert!(!Scratch::fresh("shop2").build.starts_with(&prefix("shop")));
        assert_ne!(Scratch::fresh("shop"), Scratch::fresh("shop"));
    }
}
