//! Reads what the user has programmed in a database: views, triggers, routines and
//! events. Their text is read in the bytes that it was written in, together with the
//! settings that it depends on.

use crate::DatabaseError;

use super::definition;
use super::lex::{self, Backslash};
use super::server::Server;
use super::session::{Fields, Session};
use super::structure::{Event, Routine, Settings, Text, Trigger, View};
use super::trouble::Trouble;

/// Reads a view.
pub(super) fn view(session: &mut Session, name: &str, broken: bool) -> Result<View, Trouble> {
    let shown = show_raw(session, "VIEW", name)?;
    Ok(View {
        name: name.to_owned(),
        create: text(&shown, 1),
        settings: Settings {
            sql_mode: None,
            client: field(&shown, 2),
            connection: field(&shown, 3),
            time_zone: None,
        },
        broken,
    })
}

/// Reads all triggers, in the order in which they fire.
pub(super) fn triggers(session: &mut Session, database: &str) -> Result<Vec<Trigger>, Trouble> {
    let rows = session.texts(&format!(
        "SELECT TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_ORDER \
         FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = {} \
         ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER",
        quoted(database)
    ))?;
    let mut triggers: Vec<Trigger> = Vec::new();
    for row in rows {
        let [schema, name, table, order] = row.as_slice() else {
            continue;
        };
        // One that is for several events is listed several times.
        if schema != database || triggers.iter().any(|known| known.name == *name) {
            continue;
        }
        let shown = show_raw(session, "TRIGGER", name)?;
        triggers.push(Trigger {
            name: name.clone(),
            table: table.clone(),
            order: order.parse().unwrap_or(1),
            create: text(&shown, 2),
            settings: settings(&shown, 1, 3),
        });
    }
    triggers.sort_by(|a, b| (&a.table, a.order, &a.name).cmp(&(&b.table, b.order, &b.name)));
    Ok(triggers)
}

/// Reads all procedures, functions and packages.
pub(super) fn routines(
    server: &Server,
    session: &mut Session,
    database: &str,
) -> Result<Vec<Routine>, Trouble> {
    let rows = session.texts(&format!(
        "SELECT ROUTINE_SCHEMA, ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = {}",
        quoted(database)
    ))?;
    let mut routines = Vec::new();
    for row in rows {
        let [schema, kind, name] = row.as_slice() else {
            continue;
        };
        if schema != database {
            continue;
        }
        let shown = show_raw(session, kind, name)?;
        let create = text(&shown, 2);
        if create.0 == b"NULL" {
            return Err(Trouble::Other(DatabaseError::Refused {
                address: server.address.clone(),
                why: format!("the text of `{name}` is for its owner only"),
            }));
        }
        routines.push(Routine {
            kind: kind.clone(),
            name: name.clone(),
            create,
            settings: settings(&shown, 1, 3),
        });
    }
    routines.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    Ok(routines)
}

/// Reads all events.
pub(super) fn events(session: &mut Session, database: &str) -> Result<Vec<Event>, Trouble> {
    let rows = session.texts(&format!(
        "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = {}",
        quoted(database)
    ))?;
    let mut events = Vec::new();
    for row in rows {
        let [schema, name] = row.as_slice() else {
            continue;
        };
        if schema != database {
            continue;
        }
        let shown = show_raw(session, "EVENT", name)?;
        events.push(Event {
            name: name.clone(),
            create: text(&shown, 3),
            settings: Settings {
                time_zone: Some(field(&shown, 2)),
                ..settings(&shown, 1, 4)
            },
        });
    }
    events.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(events)
}

/// A row of `SHOW CREATE`.
pub(super) fn show(session: &mut Session, kind: &str, name: &str) -> Result<Fields, Trouble> {
    let shown = session.query(format!("SHOW CREATE {kind} {}", lex::name(name)))?;
    Ok(shown.into_iter().next().unwrap_or_default())
}

/// The same, in the bytes that the statement was made of.
fn show_raw(session: &mut Session, kind: &str, name: &str) -> Result<Fields, Trouble> {
    session.run("SET character_set_results = NULL")?;
    let shown = show(session, kind, name);
    if !matches!(shown, Err(Trouble::Other(_))) {
        session.run("SET character_set_results = utf8mb4")?;
    }
    shown
}

/// The text of something in the present database: a field of its `SHOW CREATE`.
pub(super) fn text_of(
    session: &mut Session,
    kind: &str,
    name: &str,
    place: usize,
) -> Result<Text, Trouble> {
    Ok(text(&show_raw(session, kind, name)?, place))
}

fn text(row: &Fields, place: usize) -> Text {
    Text(row.get(place).cloned().unwrap_or_default())
}

/// A field of a row, as text.
pub(super) fn field(row: &Fields, place: usize) -> String {
    text(row, place).shown()
}

/// The settings in a row of `SHOW CREATE`: where the mode is, and where the character set.
fn settings(row: &Fields, mode: usize, client: usize) -> Settings {
    Settings {
        sql_mode: Some(field(row, mode)),
        client: field(row, client),
        connection: field(row, client + 1),
        time_zone: None,
    }
}

/// A name as a text of SQL.
pub(super) fn quoted(name: &str) -> String {
    String::from_utf8_lossy(&lex::text(name.as_bytes())).into_owned()
}

/// How a trigger is compared: its text, for its table as the server names it.
pub(super) fn comparable(trigger: &Trigger) -> Text {
    let mode = trigger.settings.sql_mode.as_deref().unwrap_or_default();
    let backslash = Backslash::in_mode(mode);
    let moved = definition::with_trigger_table(&trigger.create.0, &trigger.table, backslash);
    moved.map_or_else(|| trigger.create.clone(), Text)
}
