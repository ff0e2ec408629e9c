//! What a restore will do to the user's database: everything, in order, with the way
//! back. It is made before anything is touched.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};

use super::definition;
use super::lex::{self, Backslash};
use super::outside::Outside;
use super::replace;
use super::scratch::{Scratch, State};
use super::step::{Move, Step, There};
use super::structure::{Settings, Structure, Text, Trigger};
use super::trouble::{FOREIGN_KEY_EXISTS, NOTHING_TO_DROP};
use super::version::Version;

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Tables with triggers are moved into the user's database first, under names of ours.
    pub(super) stage: Vec<Move>,
    /// What is locked for the rest, when there is anything to prepare or to crown.
    pub(super) lock: Vec<String>,
    /// Triggers change from the tables there are to those that come; foreign keys of tables
    /// that stay point to those that come.
    pub(super) prepare: Vec<Step>,
    /// Views go that have the name of a table that comes.
    pub(super) clear: Vec<Step>,
    /// The rest, which somebody else may have to do.
    pub(super) journal: Journal,
}

/// What must be known to go on, or back, when whoever began is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    /// What was made to begin with.
    pub(super) made: Made,
    /// Undoes everything else before `moves`.
    pub(super) undo: Vec<Step>,
    /// All tables change places, in one statement.
    pub(super) moves: Vec<Move>,
    /// Then, before others may write to them, their triggers, where these could not come along.
    pub(super) crown: Vec<Step>,
    /// Then everything that is no table.
    pub(super) finish: Vec<Step>,
    /// Undoes `crown` and `finish`, before `moves` are undone.
    pub(super) unfinish: Vec<Step>,
    /// Undoes the rest of `finish`, after `moves` are undone.
    pub(super) refinish: Vec<Step>,
}

/// What had to be there for tables to be built at all. It goes again only when it is as it
/// was made: somebody may have come to use it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    /// The user's database.
    pub(super) database: bool,
    /// Sequences in it.
    pub(super) sequences: Vec<String>,
}

/// How tables with triggers get into their place: a table cannot take its triggers from one
/// database to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// They are in the user's database first, under names of ours, and get their triggers
    /// there. MariaDB does not rename tables that are locked.
    Staged,
    /// They are locked, renamed and given their triggers. MySQL does that, and could not have
    /// two checks of one name in a database.
    Locked,
}

impl Manner {
    pub(super) fn of(version: &Version) -> Self {
        match version.is_mariadb {
            true => Self::Staged,
            false => Self::Locked,
        }
    }
}

/// What a plan is made from.
pub(super) struct Planning<'a> {
    /// The name of the user's database.
    pub(super) database: &'a str,
    pub(super) scratch: &'a Scratch,
    /// What is there.
    pub(super) live: &'a Structure,
    /// What is to be there.
    pub(super) wanted: &'a Structure,
    pub(super) outside: &'a [Outside],
    pub(super) manner: Manner,
}

impl Planning<'_> {
    pub(super) fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        self.stage(&mut plan);
        self.triggers(&mut plan);
        self.own_foreign_keys(&mut plan);
        self.outside_foreign_keys(&mut plan);
        plan.lock.sort();
        plan.lock.dedup();
        self.clear(&mut plan);
        self.moves(&mut plan.journal.moves);
        replace::routines(self, &mut plan.journal);
        replace::events(self, &mut plan.journal);
        if self.live.database != self.wanted.database {
            let alter = |options: &str| {
                Step::plain(format!(
                    "ALTER DATABASE {} {options}",
                    lex::name(self.database)
                ))
            };
            plan.journal.finish.push(alter(&self.wanted.database));
            plan.journal.refinish.push(alter(&self.live.database));
        }
        // Last, for they may need everything else.
        replace::views(self, &mut plan.journal);
        plan
    }

    /// The full name of something in the user's database.
    pub(super) fn in_place(&self, name: &str) -> String {
        lex::full_name(self.database, name)
    }

    /// The name that a table with triggers has in between.
    fn staged(&self, table: &str) -> Option<String> {
        let has_trigger = self.manner == Manner::Staged && self.wanted.has_trigger(table);
        let number = self
            .wanted
            .tables
            .iter()
            .position(|one| one.name == table)?;
        has_trigger.then(|| self.scratch.staged(number))
    }

    /// Where a table comes from at last.
    fn source(&self, table: &str) -> String {
        match self.staged(table) {
            Some(staged) => self.in_place(&staged),
            None => lex::full_name(&self.scratch.build, table),
        }
    }

    fn stage(&self, plan: &mut Plan) {
        for table in &self.wanted.tables {
            let Some(staged) = self.staged(&table.name) else {
                continue;
            };
            let staged = self.in_place(&staged);
            let drop = Step::plain(format!("DROP TABLE IF EXISTS {staged}"));
            plan.journal.undo.push(drop);
            plan.lock.push(staged.clone());
            plan.stage.push(Move {
                from: lex::full_name(&self.scratch.build, &table.name),
                to: staged,
            });
        }
        for table in &self.live.tables {
            plan.lock.push(self.in_place(&table.name));
        }
        if self.manner == Manner::Locked {
            let sources = self.wanted.tables.iter().map(|one| self.source(&one.name));
            plan.lock.extend(sources);
            plan.lock.push(self.scratch.journal(State::Pending));
        }
    }

    fn triggers(&self, plan: &mut Plan) {
        for trigger in &self.live.triggers {
            let name = self.in_place(&trigger.name);
            let drop = Step::plain(format!("DROP TRIGGER IF EXISTS {name}"));
            let create = Step::theirs(trigger.create.clone(), &trigger.settings);
            let there = There::Trigger {
                name: trigger.name.clone(),
                create: trigger.create.clone(),
            };
            plan.prepare.push(drop.clone());
            plan.journal.undo.push(drop.unless(there.clone()));
            plan.journal.undo.push(create.unless(there));
        }
        for trigger in &self.wanted.triggers {
            let place = self.staged(&trigger.table);
            let create = moved(trigger, place.as_ref().unwrap_or(&trigger.table));
            let create = Step::theirs(create, &trigger.settings);
            if place.is_some() {
                plan.prepare.push(create);
                continue;
            }
            let name = self.in_place(&trigger.name);
            let drop = Step::plain(format!("DROP TRIGGER IF EXISTS {name}"));
            plan.journal.unfinish.push(drop.clone());
            plan.journal.crown.extend([drop, create]);
        }
    }

    /// The foreign keys of tables with triggers. Their names are taken from the tables there
    /// are, and given to those that come.
    fn own_foreign_keys(&self, plan: &mut Plan) {
        let staged = self.wanted.tables.iter().filter_map(|table| {
            let keys = definition::foreign_keys(&table.create);
            Some((self.in_place(&self.staged(&table.name)?), keys))
        });
        let staged: Vec<_> = staged.collect();
        let comes = |name: &String| {
            staged
                .iter()
                .any(|(_, keys)| keys.iter().any(|k| k.0 == *name))
        };
        for table in &self.live.tables {
            let keys = definition::foreign_keys(&table.create);
            for (name, text) in keys.iter().filter(|(name, _)| comes(name)) {
                let table = self.in_place(&table.name);
                plan.prepare.push(drop_key(&table, name));
                plan.journal.undo.extend(bring_back_key(&table, name, text));
            }
        }
        for (table, keys) in &staged {
            for (_, text) in keys {
                let parents = RefCell::new(Vec::new());
                let text = definition::with_references(text, &|database, name| {
                    let source = self.source(name);
                    let comes = database.is_none() && self.wanted.has_table(name);
                    parents.borrow_mut().extend(comes.then(|| source.clone()));
                    comes.then_some(source)
                });
                plan.prepare.push(add_key(table, &text));
                plan.lock.extend(parents.into_inner());
            }
        }
    }

    /// The foreign keys of tables that stay.
    fn outside_foreign_keys(&self, plan: &mut Plan) {
        for key in self.outside {
            let source = self.source(&key.parent);
            plan.prepare.push(drop_key(&key.table, &key.name));
            let pointing = key.pointing_to(&source);
            plan.prepare.push(add_key(&key.table, &pointing));
            let back = bring_back_key(&key.table, &key.name, &key.text);
            plan.journal.undo.extend(back);
            plan.lock.extend([source, key.table.clone()]);
        }
    }

    fn clear(&self, plan: &mut Plan) {
        for view in &self.live.views {
            if self.wanted.movable().any(|name| name == view.name) {
                plan.clear
                    .push(replace::drop_view(&self.in_place(&view.name)));
                let back = replace::create_view(view).map(|step| {
                    step.unless(There::View {
                        name: view.name.clone(),
                        create: view.create.clone(),
                    })
                });
                plan.journal.undo.extend(back);
            }
        }
    }

    fn moves(&self, moves: &mut Vec<Move>) {
        for name in self.live.movable() {
            moves.push(Move {
                from: self.in_place(name),
                to: lex::full_name(&self.scratch.old, name),
            });
        }
        for name in self.wanted.movable() {
            moves.push(Move {
                from: self.source(name),
                to: self.in_place(name),
            });
        }
    }
}

fn drop_key(table: &str, name: &str) -> Step {
    let statement = format!("ALTER TABLE {table} DROP FOREIGN KEY {}", lex::name(name));
    Step::tolerating(statement, &[NOTHING_TO_DROP])
}

fn add_key(table: &str, text: &str) -> Step {
    let statement = format!("ALTER TABLE {table} ADD {text}");
    Step::tolerating(statement, &[FOREIGN_KEY_EXISTS])
}

fn bring_back_key(table: &str, name: &str, text: &str) -> [Step; 2] {
    let there = There::ForeignKey {
        table: table.to_owned(),
        name: name.to_owned(),
        text: text.to_owned(),
    };
    [
        drop_key(table, name).unless(there.clone()),
        add_key(table, text).unless(there),
    ]
}

fn moved(trigger: &Trigger, table: &str) -> Text {
    let Settings { sql_mode, .. } = &trigger.settings;
    let backslash = Backslash::in_mode(sql_mode.as_deref().unwrap_or_default());
    definition::with_trigger_table(&trigger.create.0, table, backslash)
        .map_or_else(|| trigger.create.clone(), Text)
}
