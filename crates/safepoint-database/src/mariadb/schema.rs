//! The structure as the rest of this crate compares it.

use crate::{Column, Object, Schema, Table};

use super::definition::{Definition, Item, read_item};
use super::lex;
use super::program::comparable;
use super::structure::{Settings, Structure, TableText};

/// What `structure` says, sorted, with nothing in it that differs between two captures of
/// the same state.
pub(super) fn schema(structure: &Structure) -> Schema {
    let mut schema = Schema::default();
    for table in &structure.tables {
        let (described, objects) = describe(table);
        schema.tables.push(described);
        schema.objects.extend(objects);
    }
    let objects = &mut schema.objects;
    for sequence in &structure.sequences {
        let definition = format!("{} AT ({})", sequence.create, sequence.row);
        objects.push(object("sequence", &sequence.name, definition));
    }
    for trigger in &structure.triggers {
        let text = comparable(trigger).shown();
        let definition = with_settings(&text, &trigger.settings);
        let definition = format!("{definition} /* {} of its event */", trigger.order);
        objects.push(object("trigger", &trigger.name, definition));
    }
    for view in &structure.views {
        let definition = with_settings(&view.create.shown(), &view.settings);
        objects.push(object("view", &view.name, definition));
    }
    for routine in &structure.routines {
        let definition = with_settings(&routine.create.shown(), &routine.settings);
        let kind = routine.kind.to_ascii_lowercase();
        objects.push(object(&kind, &routine.name, definition));
    }
    for event in &structure.events {
        let definition = with_settings(&event.create.shown(), &event.settings);
        objects.push(object("event", &event.name, definition));
    }
    if structure.only.is_empty() {
        objects.push(object("database", "", structure.database.clone()));
    }
    schema.tables.sort_by(|a, b| a.name.cmp(&b.name));
    schema
        .objects
        .sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    schema
}

fn object(kind: &str, name: &str, definition: String) -> Object {
    Object {
        kind: kind.to_owned(),
        name: name.to_owned(),
        definition,
    }
}

fn with_settings(text: &str, settings: &Settings) -> String {
    let mut text = text.to_owned();
    if let Some(mode) = &settings.sql_mode {
        text.push_str(&format!(" /* sql_mode {mode} */"));
    }
    if let Some(zone) = &settings.time_zone {
        text.push_str(&format!(" /* time_zone {zone} */"));
    }
    let (client, connection) = (&settings.client, &settings.connection);
    text.push_str(&format!(" /* written in {client}, {connection} */"));
    text
}

fn describe(text: &TableText) -> (Table, Vec<Object>) {
    let name = &text.name;
    let mut table = Table {
        name: name.clone(),
        columns: Vec::new(),
        key: Vec::new(),
    };
    let mut objects = Vec::new();
    if let Some(counter) = text.counter {
        let name = format!("{name}.AUTO_INCREMENT");
        objects.push(object("sequence", &name, counter.to_string()));
    }
    let Some(definition) = Definition::read(&text.create) else {
        objects.push(object("table", name, text.create.clone()));
        return (table, objects);
    };
    table.key = definition.key();
    for item in &definition.items {
        match read_item(item) {
            Item::Column(name, definition) => table.columns.push(Column {
                name,
                definition: definition.to_owned(),
            }),
            Item::Index(index) => {
                objects.push(object(
                    "index",
                    &format!("{name}.{index}"),
                    (*item).to_owned(),
                ));
            }
            Item::Constraint(constraint) => {
                let name = format!("{name}.{constraint}");
                objects.push(object("constraint", &name, (*item).to_owned()));
            }
            // The table names its columns; more is rarely to be said.
            Item::Primary(key) => {
                let key: Vec<String> = key.iter().map(|column| lex::name(column)).collect();
                if *item != format!("PRIMARY KEY ({})", key.join(",")) {
                    let name = format!("{name}.PRIMARY");
                    objects.push(object("index", &name, (*item).to_owned()));
                }
            }
            Item::Other => objects.push(object("period", name, (*item).to_owned())),
        }
    }
    // Those by which a table keeps its history may be hidden. Their values are captured.
    for hidden in text.columns.iter().skip(table.columns.len()) {
        table.columns.push(Column {
            name: hidden.name.clone(),
            definition: "hidden".to_owned(),
        });
    }
    objects.push(object("options", name, definition.options.to_owned()));
    (table, objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mariadb::structure::{ColumnText, Reading};

    #[test]
    fn a_table_is_described_by_what_the_server_says() {
        let column = |name: &str| ColumnText {
            name: name.to_owned(),
            reading: Reading::Number,
            nullable: false,
        };
        let structure = Structure {
            tables: vec![TableText {
                name: "t".into(),
                create: "CREATE TABLE `t` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  \
                    `n` int(11) DEFAULT 3,\n  PRIMARY KEY (`id`),\n  KEY `i` (`n`)\n) ENGINE=InnoDB"
                    .into(),
                counter: Some(7),
                columns: vec![column("id"), column("n"), column("row_start")],
                versioned: true,
                transactional: true,
                created: String::new(),
            }],
            ..Structure::default()
        };
        let schema = schema(&structure);
        let [table] = schema.tables.as_slice() else {
            panic!("{schema:?}");
        };
        assert_eq!(table.key, ["id"]);
        let columns: Vec<_> = table
            .columns
            .iter()
            .map(|c| c.definition.as_str())
            .collect();
        assert_eq!(
            columns,
            [
                "int(11) NOT NULL AUTO_INCREMENT",
                "int(11) DEFAULT 3",
                "hidden"
            ]
        );
        let objects: Vec<_> = schema
            .objects
            .iter()
            .map(|o| format!("{} {} {}", o.kind, o.name, o.definition))
            .collect();
        assert_eq!(
            objects,
            [
                "database  ",
                "index t.i KEY `i` (`n`)",
                "options t ENGINE=InnoDB",
                "sequence t.AUTO_INCREMENT 7",
            ]
        );
    }
}
