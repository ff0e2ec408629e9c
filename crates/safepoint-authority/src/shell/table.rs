//! The table of programs: what each does, as data (`rules/*.toml`).
//!
//! Only the names are indexed when a process starts; an entry is read when a
//! line names it. A test reads them all, so that none is wrong. An entry that
//! cannot be read is as if it were not there: the program is then one whose
//! effects nobody knows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use toml_edit::{Item, Table, Value};

const FILES: [&str; 9] = [
    include_str!("../../rules/files.toml"),
    include_str!("../../rules/text.toml"),
    include_str!("../../rules/git.toml"),
    include_str!("../../rules/build.toml"),
    include_str!("../../rules/packages.toml"),
    include_str!("../../rules/network.toml"),
    include_str!("../../rules/databases.toml"),
    include_str!("../../rules/system.toml"),
    include_str!("../../rules/cloud.toml"),
];

/// What a program does.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// The actions, always.
    pub(super) does: Vec<String>,
    /// What its operands are.
    pub(super) operands: Operands,
    /// Options that take a value.
    pub(super) values: Vec<String>,
    /// Options whose value is a path that is read.
    pub(super) reads: Vec<String>,
    /// Options whose value is a path that is written.
    pub(super) writes: Vec<String>,
    /// Options that take two values: a name, and what it stands for.
    pub(super) pairs: Vec<String>,
    /// Options that send what they hold to another machine.
    pub(super) sends: Vec<String>,
    /// Options that lead elsewhere than the address says.
    pub(super) tunnels: Vec<String>,
    /// Options whose value stays on this machine.
    pub(super) local: Vec<String>,
    /// Options that run code nobody can see.
    pub(super) opaque: Vec<String>,
    /// When set, an option that is not named anywhere is opaque.
    pub(super) options: Option<Vec<String>>,
    /// Options that change what is done: the actions in place of `does`.
    pub(super) with: Vec<(Vec<String>, String)>,
    /// Subcommands, the first that fits.
    pub(super) sub: Vec<(Vec<String>, Arc<Entry>)>,
    /// It starts another program, after this many operands.
    pub(super) wraps: Option<usize>,
    /// The name of the code that looks at it.
    pub(super) special: Option<String>,
    /// It may lie in a user's directory.
    pub(super) tool: bool,
    /// Names under which it is another program; `*` is any name.
    pub(super) also: Vec<String>,
    /// Options are words after one dash.
    pub(super) words: bool,
    /// Why, in a few words.
    pub(super) because: Option<String>,
    /// What cannot be taken back.
    pub(super) outside: Option<String>,
    /// Why nothing of it can be taken back.
    pub(super) never: Option<String>,
    /// Its operands are addresses, and it talks to nobody else.
    pub(super) address: bool,
}

/// What operands are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Operands {
    /// What the action says.
    #[default]
    Usual,
    /// Not paths.
    None,
    /// Paths that are read.
    Read,
    /// Paths whose names, sizes or times are read, and not what they hold.
    Names,
    /// Paths that are written.
    Write,
    /// Paths that are removed.
    Delete,
    /// Paths whose mode or owner changes, after the first operand.
    Metadata,
    /// Paths whose mode, owner or attributes change.
    Changed,
    /// A pattern or a script, then paths that are read.
    Pattern,
    /// Paths that are read, and a last one that is written.
    Copy,
    /// Paths that are moved, and a last one that is written.
    Move,
    /// The first is written, and the others are read.
    Archive,
    /// The first is read, and a second, if there is one, is written.
    Filter,
}

struct Index {
    sections: HashMap<&'static str, &'static str>,
    read: Mutex<HashMap<&'static str, Option<Arc<Entry>>>>,
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut sections = HashMap::with_capacity(1024);
        for file in FILES {
            for (names, section) in split(file) {
                for name in names.split(' ') {
                    sections.insert(name, section);
                }
            }
        }
        Index {
            sections,
            read: Mutex::new(HashMap::new()),
        }
    })
}

/// The sections of a file: the names in the heading, and all up to the next.
fn split(file: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut sections = Vec::new();
    let mut current: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in file.split_inclusive('\n') {
        if let Some(heading) = line.trim_end().strip_prefix('[')
            && let Some(heading) = heading.strip_suffix(']')
            && !heading.contains("\".")
            && (heading.starts_with('"') || !heading.contains('.'))
        {
            if let Some((names, start)) = current {
                sections.push((names, file.get(start..at).unwrap_or_default()));
            }
            current = Some((heading.trim_matches('"'), at));
        }
        at += line.len();
    }
    if let Some((names, start)) = current {
        sections.push((names, file.get(start..).unwrap_or_default()));
    }
    sections
}

/// The entry of a program.
pub(super) fn find(name: &str) -> Option<Arc<Entry>> {
    let (name, section) = section(name)?;
    let mut read = index().read.lock().unwrap_or_else(PoisonError::into_inner);
    read.entry(name)
        .or_insert_with(|| parse(section).map(Arc::new))
        .clone()
}

/// Whether two names are those of one entry.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let place = |name| section(name).map(|(_, section)| section.as_ptr());
    place(one) == place(other)
}

/// The name that an entry has in the table, and its text.
fn section(name: &str) -> Option<(&'static str, &'static str)> {
    let index = index();
    let (name, section) = index.sections.get_key_value(name).or_else(|| {
        let bare = name.trim_end_matches(|next: char| next.is_ascii_digit() || "-.".contains(next));
        let lower = name.to_ascii_lowercase();
        index
            .sections
            .get_key_value(bare)
            // On some disks `RM` is `rm`.
            .or_else(|| index.sections.get_key_value(lower.as_str()))
    })?;
    Some((name, section))
}

fn parse(section: &str) -> Option<Entry> {
    let document: toml_edit::Document<&str> = toml_edit::Document::parse(section).ok()?;
    let (_, item) = document.as_table().iter().next()?;
    entry(item.as_table()?)
}

fn list(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// One entry. Unknown keys make it unreadable, so that a slip is found.
fn entry(table: &Table) -> Option<Entry> {
    let mut made = Entry::default();
    for (key, item) in table {
        match (key, item) {
            ("with", with) => {
                for (options, actions) in with.as_table_like()?.iter() {
                    made.with
                        .push((list(options), actions.as_str()?.to_owned()));
                }
            }
            ("sub", sub) => {
                for (names, item) in sub.as_table_like()?.iter() {
                    let below = match item {
                        Item::Value(Value::String(actions)) => Entry {
                            does: list(actions.value()),
                            ..Entry::default()
                        },
                        Item::Value(Value::InlineTable(inline)) => {
                            entry(&inline.clone().into_table())?
                        }
                        _ => return None,
                    };
                    let below = Arc::new(below);
                    for name in names.split(',') {
                        made.sub.push((list(name), Arc::clone(&below)));
                    }
                }
            }
            ("tool", item) => made.tool = item.as_bool()?,
            ("words", item) => made.words = item.as_bool()?,
            ("address", item) => made.address = item.as_bool()?,
            ("wraps", item) => made.wraps = Some(usize::try_from(item.as_integer()?).ok()?),
            (key, item) => {
                let text = item.as_str()?;
                match key {
                    "does" => made.does = list(text),
                    "also" => made.also = list(text),
                    "values" => made.values = list(text),
                    "reads" => made.reads = list(text),
                    "writes" => made.writes = list(text),
                    "pairs" => made.pairs = list(text),
                    "sends" => made.sends = list(text),
                    "tunnels" => made.tunnels = list(text),
                    "local" => made.local = list(text),
                    "opaque" => made.opaque = list(text),
                    "options" => made.options = Some(list(text)),
                    "special" => made.special = Some(text.to_owned()),
                    "because" => made.because = Some(text.to_owned()),
                    "outside" => made.outside = Some(text.to_owned()),
                    "never" => made.never = Some(text.to_owned()),
                    "operands" => {
                        made.operands = match text {
                            "none" => Operands::None,
                            "read" => Operands::Read,
                            "names" => Operands::Names,
                            "changed" => Operands::Changed,
                            "write" => Operands::Write,
                            "delete" => Operands::Delete,
                            "metadata" => Operands::Metadata,
                            "pattern" => Operands::Pattern,
                            "copy" => Operands::Copy,
                            "move" => Operands::Move,
                            "filter" => Operands::Filter,
                            "archive" => Operands::Archive,
                            _ => return None,
                        }
                    }
                    _ => return None,
                }
            }
        }
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::actions;
    use super::{Entry, FILES, find, parse, split};

    #[test]
    fn au_04_every_entry_can_be_read() {
        let mut names = BTreeSet::new();
        let mut subcommands = 0;
        for file in FILES {
            toml_edit::Document::parse(file).unwrap();
            for (heading, section) in split(file) {
                let entry = parse(section).unwrap_or_else(|| panic!("`{heading}` cannot be read"));
                for name in heading.split(' ') {
                    assert!(!name.is_empty(), "`{heading}` holds an empty name");
                    assert!(names.insert(name), "`{name}` is there twice");
                    assert!(find(name).is_some());
                }
                subcommands += entry.sub.len();
                check(heading, &entry);
            }
        }
        assert!(names.len() >= 300, "{} programs", names.len());
        assert!(subcommands >= 400, "{subcommands} subcommands");
    }

    fn check(heading: &str, entry: &Entry) {
        for action in &entry.does {
            assert!(
                actions::ALL.contains(&action.as_str()),
                "`{heading}`: `{action}`"
            );
        }
        for (_, action) in &entry.with {
            for action in action.trim_start_matches('+').split(' ') {
                assert!(actions::ALL.contains(&action), "`{heading}`: `{action}`");
            }
        }
        let silent = entry.does.is_empty()
            && entry.special.is_none()
            && entry.sub.is_empty()
            && entry.wraps.is_none();
        assert!(!silent, "`{heading}` does nothing");
        for (_, below) in &entry.sub {
            check(heading, below);
        }
    }

    #[test]
    fn au_04_versions_are_the_same_program() {
        assert!(find("python3.12").is_some());
        assert!(find("clang-18").is_some());
        assert!(find("no-such-program").is_none());
    }
}
