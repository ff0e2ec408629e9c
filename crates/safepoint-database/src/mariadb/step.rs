//! Statements that change the user's database, as data: they are written to the
//! journal before the first of them runs, so that somebody else can go on.

use serde::{Deserialize, Serialize};

use crate::DatabaseError;

use super::definition::Definition;
use super::program;
use super::server::OWN_MODE;
use super::session::Session;
use super::structure::{Settings, Text};
use super::trouble::{GONE, NOT_THERE_YET, Trouble};

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) statement: Text,
    /// What it depends on, where that is not as in our own sessions.
    pub(super) settings: Option<Settings>,
    /// Errors that mean it is done already.
    pub(super) tolerated: Vec<u32>,
    /// What makes it needless.
    pub(super) unless: Option<There>,
}

/// Something that is in the user's database as it was. Undoing passes over it: what was not
/// touched must not be waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum There {
    /// A trigger.
    Trigger { name: String, create: Text },
    /// A view.
    View { name: String, create: Text },
    /// A foreign key of a table, whose name is in full.
    ForeignKey {
        table: String,
        name: String,
        text: String,
    },
}

impl There {
    fn is_true(&self, session: &mut Session) -> Result<bool, Trouble> {
        let shown = match self {
            Self::Trigger { name, create } => {
                program::text_of(session, "TRIGGER", name, 2).map(|text| text == *create)
            }
            Self::View { name, create } => {
                program::text_of(session, "VIEW", name, 1).map(|text| text == *create)
            }
            Self::ForeignKey { table, name, text } => session
                .texts(&format!("SHOW CREATE TABLE {table}"))
                .map(|rows| {
                    let create = rows.first().and_then(|row| row.get(1));
                    let found =
                        create.and_then(|create| Definition::read(create)?.constraint(name));
                    found == Some(text)
                }),
        };
        match shown {
            Err(trouble) if trouble.is_one_of(&GONE) => Ok(false),
            shown => shown,
        }
    }
}

impl Step {
    /// A statement of our own.
    pub(super) fn plain(statement: impl Into<String>) -> Self {
        Self::tolerating(statement, &[])
    }

    /// The same, of which some errors mean nothing.
    pub(super) fn tolerating(statement: impl Into<String>, codes: &[u32]) -> Self {
        Self {
            statement: Text(statement.into().into_bytes()),
            settings: None,
            tolerated: codes.to_vec(),
            unless: None,
        }
    }

    /// A statement of the user's.
    pub(super) fn theirs(statement: Text, settings: &Settings) -> Self {
        Self {
            statement,
            settings: Some(settings.clone()),
            tolerated: Vec::new(),
            unless: None,
        }
    }

    /// The same, needless when something is there.
    pub(super) fn unless(self, there: There) -> Self {
        Self {
            unless: Some(there),
            ..self
        }
    }

    fn run(&self, session: &mut Session) -> Result<(), Trouble> {
        if let Some(there) = &self.unless
            && there.is_true(session)?
        {
            return Ok(());
        }
        if let Some(settings) = &self.settings {
            let Settings {
                sql_mode,
                client,
                connection,
                time_zone,
            } = settings;
            let mode = sql_mode.as_deref().unwrap_or(OWN_MODE);
            let zone = time_zone.as_deref().unwrap_or("+00:00");
            session.run(format!(
                "SET SESSION sql_mode = '{mode}', time_zone = '{zone}', \
                 character_set_client = {client}, collation_connection = {connection}"
            ))?;
        }
        let result = session.run(&self.statement.0);
        if self.settings.is_some() && !matches!(result, Err(Trouble::Other(_))) {
            session.run(format!(
                "SET SESSION sql_mode = '{OWN_MODE}', time_zone = '+00:00', \
                 character_set_client = utf8mb4, collation_connection = utf8mb4_general_ci"
            ))?;
        }
        match result {
            Err(trouble) if trouble.is_one_of(&self.tolerated) => Ok(()),
            result => result.map(|_| ()),
        }
    }
}

/// Runs steps one after another.
pub(super) fn run_in_order(session: &mut Session, steps: &[Step]) -> Result<(), DatabaseError> {
    for step in steps {
        step.run(session)?;
    }
    Ok(())
}

/// Runs steps of which some may need others further back, as views on views do.
pub(super) fn run_in_any_order(session: &mut Session, steps: &[Step]) -> Result<(), DatabaseError> {
    let mut waiting: Vec<&Step> = steps.iter().collect();
    loop {
        let before = waiting.len();
        let mut failed = None;
        let mut still = Vec::new();
        for step in waiting {
            match step.run(session) {
                Ok(()) => {}
                Err(trouble) if trouble.is_one_of(&NOT_THERE_YET) => {
                    still.push(step);
                    failed.get_or_insert(trouble);
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
        match failed {
            None => return Ok(()),
            Some(trouble) if still.len() == before => return Err(trouble.into()),
            Some(_) => waiting = still,
        }
    }
}

/// A table that changes its place; both names in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    pub(super) from: String,
    pub(super) to: String,
}

/// Renames tables, all at one moment.
///
/// A client whose input ends in the middle of a statement still runs what it has. Cut short,
/// a long list of tables would be another list: so it is handed over first, and run then.
pub(super) fn rename(session: &mut Session, moves: &[Move]) -> Result<(), DatabaseError> {
    let list: Vec<String> = moves
        .iter()
        .map(|one| format!("{} TO {}", one.from, one.to))
        .collect();
    let statement = format!("RENAME TABLE {}", list.join(", "));
    let mut hand_over = b"SET @safepoint = ".to_vec();
    super::lex::push_text(&mut hand_over, statement.as_bytes());
    session.run(hand_over)?;
    session.run("PREPARE safepoint FROM @safepoint")?;
    session.run("EXECUTE safepoint")?;
    session.run("DEALLOCATE PREPARE safepoint")?;
    Ok(())
}

/// The moves that undo these.
pub(super) fn back(moves: &[Move]) -> Vec<Move> {
    let back = |one: &Move| Move {
        from: one.to.clone(),
        to: one.from.clone(),
    };
    moves.iter().rev().map(back).collect()
}
