//! `safepoint diff`: what changed since a checkpoint, or between two.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use safepoint_model::{Exit, text};
use safepoint_state::objects::Objects;
use safepoint_state::scope::Scope;
use safepoint_state::text::{Comparison, Side, compare, totals};
use safepoint_state::tree::{Change, ChangeKind, Entry, Node};
use safepoint_state::{ContentId, PartChange, Progress, State, path};
use schemars::JsonSchema;
use serde::Serialize;

use super::restoring::{ChangeDocument, documents};
use crate::console::{self, Mode, STRONG, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `diff`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The checkpoint to compare; the beginning of its id is enough
    id: String,
    /// Another one to compare it with; the present without it
    other: Option<String>,
    /// Only these files, directories or patterns
    #[arg(last = true)]
    paths: Vec<OsString>,
    /// Show how many lines changed in each file
    #[arg(long, conflicts_with = "name_only")]
    stat: bool,
    /// Show the names alone
    #[arg(long)]
    name_only: bool,
}

/// What `diff` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DiffReply {
    /// The older side.
    from: String,
    /// The newer side; null for the present.
    to: Option<String>,
    /// What differs.
    changes: Vec<ChangeDocument>,
    /// The unified diff; empty with `--stat` and `--name-only`.
    diff: String,
}

/// Whether lines are coloured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    /// Removed red, added green, places cyan.
    Terminal,
    /// None: it is data.
    None,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let state = context.state()?;
    let before = state.find(&arguments.id)?;
    let workspace = super::rollback::workspace_of(context, &before)?;
    let here =
        std::fs::canonicalize(&context.directory).unwrap_or_else(|_| context.directory.clone());
    let here = if here.starts_with(&workspace.root) {
        here
    } else {
        workspace.root.clone()
    };
    let scope = Scope::parse(&workspace.root, &here, &arguments.paths)?;
    let progress = Progress::default();
    let (changes, to) = match &arguments.other {
        Some(other) => {
            let after = state.find(other)?;
            context.keep_to(&after.workspace, "checkpoint")?;
            let mut changes = state.changes_between(&before, &after)?;
            changes.retain(|change| {
                scope.cover(&change.path) == safepoint_state::scope::Cover::Everything
            });
            (changes, Some(after.id.to_string()))
        }
        None => (
            context.console.watching(&progress, || {
                state.changes_since(&workspace, &before, &scope, &progress)
            })?,
            None,
        ),
    };
    let parts = match (&arguments.other, arguments.paths.is_empty()) {
        (_, false) => Vec::new(),
        (Some(other), true) => state.part_changes_between(&before, &state.find(other)?)?,
        (None, true) => state.part_changes_since(&workspace, &before)?,
    };
    let objects = state.objects()?;
    let source = Source {
        state: &state,
        objects: &objects,
        root: &workspace.root,
        planned: None,
    };
    let mode = context.console.mode;
    let mut diff = match (arguments.stat || arguments.name_only, mode) {
        (true, _) => String::new(),
        (false, Mode::Text) => unified(&source, &changes, Colours::Terminal)?,
        (false, _) => unified(&source, &changes, Colours::None)?,
    };
    let mut told = documents(&changes);
    for part in &parts {
        told.push(ChangeDocument {
            path: part.to.subject.name(),
            change: "modified",
        });
        if !arguments.stat && !arguments.name_only {
            diff.push_str(&of_part(part, mode));
        }
    }
    let reply = DiffReply {
        from: before.id.to_string(),
        to,
        changes: told,
        diff,
    };
    let stat = match arguments.stat && mode == Mode::Text {
        true => statistics(&source, &changes)?,
        false => String::new(),
    };
    context.console.value(&reply, |reply| {
        if arguments.name_only {
            return reply
                .changes
                .iter()
                .map(|change| format!("{}\n", console::name(&change.path)))
                .collect();
        }
        if arguments.stat {
            stat
        } else {
            reply.diff.clone()
        }
    })?;
    Ok(Exit::Done)
}

/// Where what is compared is found.
pub(super) struct Source<'a> {
    pub(super) state: &'a State,
    pub(super) objects: &'a Objects,
    pub(super) root: &'a Path,
    /// What is only planned, and nowhere yet.
    pub(super) planned: Option<&'a HashMap<ContentId, Vec<u8>>>,
}

impl Source<'_> {
    /// Both sides of a change as bytes.
    fn sides(&self, change: &Change) -> Result<(Vec<u8>, Vec<u8>), CliError> {
        let side = |entry: &Option<Entry>| match entry {
            Some(entry) => match self.planned_for(entry) {
                Some(bytes) => Ok(bytes.clone()),
                None => self
                    .state
                    .content_of(self.objects, self.root, &change.path, entry),
            },
            None => Ok(Vec::new()),
        };
        Ok((side(&change.from)?, side(&change.to)?))
    }

    fn planned_for(&self, entry: &Entry) -> Option<&Vec<u8>> {
        match &entry.node {
            Node::File { content, .. } => self.planned?.get(content),
            _ => None,
        }
    }
}

/// The changes as one unified diff that `git apply` takes, except for what is said in words.
pub(super) fn unified(
    source: &Source<'_>,
    changes: &[Change],
    colours: Colours,
) -> Result<String, CliError> {
    let style = |style: Style| {
        if colours == Colours::Terminal {
            style
        } else {
            Style::new()
        }
    };
    let (removed, added) = (
        style(AnsiColor::Red.on_default()),
        style(AnsiColor::Green.on_default()),
    );
    let (place, strong) = (style(AnsiColor::Cyan.on_default()), style(STRONG));
    let mut shown = String::new();
    for change in changes
        .iter()
        .filter(|change| change.kind() != ChangeKind::Time)
        .flat_map(in_steps)
    {
        let change = &change;
        header(&mut shown, change, strong);
        let directory =
            |entry: &Option<Entry>| entry.as_ref().is_some_and(|it| it.subtree().is_some());
        if directory(&change.from) || directory(&change.to) || change.kind() == ChangeKind::Metadata
        {
            continue;
        }
        let (old, new) = source.sides(change)?;
        let hunks = match compare(&old, &new, 3) {
            Comparison::Same => continue,
            Comparison::Binary => {
                shown.push_str(&format!(
                    "Binary files differ: {} and {} bytes\n",
                    old.len(),
                    new.len()
                ));
                continue;
            }
            Comparison::Text(hunks) => hunks,
        };
        let file = |there: bool, side: &str| {
            match there {
                // Behind a space the name ends for `patch`, unless a tab follows somewhere.
                true if change.path.contains(&b' ') => name(side, &change.path) + "\t",
                true => name(side, &change.path),
                false => "/dev/null".to_owned(),
            }
        };
        shown.push_str(&format!(
            "{strong}--- {}{strong:#}\n",
            file(change.from.is_some(), "a")
        ));
        shown.push_str(&format!(
            "{strong}+++ {}{strong:#}\n",
            file(change.to.is_some(), "b")
        ));
        for hunk in &hunks {
            let head = safepoint_state::text::unified(std::slice::from_ref(hunk));
            let head = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            shown.push_str(&format!(
                "{place}{}{place:#}\n",
                String::from_utf8_lossy(head)
            ));
            for line in &hunk.lines {
                let (sign, style) = match line.side {
                    Side::Context => (' ', Style::new()),
                    Side::Removed => ('-', removed),
                    Side::Added => ('+', added),
                };
                let ended = line.text.ends_with(b"\n");
                let body = line.text.strip_suffix(b"\n").unwrap_or(&line.text);
                // On a terminal a hostile line must not move the cursor; as data it stays exact.
                let body = match colours {
                    Colours::Terminal => text::line(&String::from_utf8_lossy(body)).text,
                    Colours::None => String::from_utf8_lossy(body).into_owned(),
                };
                shown.push_str(&format!("{style}{sign}{body}{style:#}\n"));
                if !ended {
                    shown.push_str("\\ No newline at end of file\n");
                }
            }
        }
    }
    Ok(shown)
}

/// A change as `patch` can make it: a link, or what becomes something else, goes first
/// and comes back as another.
fn in_steps(change: &Change) -> Vec<Change> {
    let link = |entry: &Entry| matches!(entry.node, Node::Symlink { .. });
    match (&change.from, &change.to) {
        (Some(from), Some(to)) if link(from) || link(to) => {
            let half = |from: &Option<Entry>, to: &Option<Entry>| Change {
                from: from.clone(),
                to: to.clone(),
                ..change.clone()
            };
            vec![half(&change.from, &None), half(&None, &change.to)]
        }
        _ => vec![change.clone()],
    }
}

/// The name of one side, written as git writes it: in quotation marks where it has
/// anything in it that could be mistaken.
fn name(side: &str, path: &[u8]) -> String {
    let plain = std::str::from_utf8(path).is_ok_and(|name| {
        text::line(name).text == name && !name.contains('"') && !name.ends_with(' ')
    });
    if plain {
        return format!("{side}/{}", String::from_utf8_lossy(path));
    }
    let written: String = path
        .iter()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            byte => format!("\\{byte:03o}"),
        })
        .collect();
    format!("\"{side}/{written}\"")
}

fn header(shown: &mut String, change: &Change, strong: Style) {
    let kind = |entry: &Entry| match &entry.node {
        Node::File { .. } => 0o100_000,
        Node::Directory(_) => 0o040_000,
        Node::Symlink { .. } => 0o120_000,
        Node::Special { .. } => 0o010_000,
    };
    let mode = |entry: &Entry| match entry.node {
        Node::Symlink { .. } => "120000".to_owned(), // permissions mean nothing
        _ => format!("{:06o}", kind(entry) | entry.mode),
    };
    let (old, new) = (name("a", &change.path), name("b", &change.path));
    shown.push_str(&format!("{strong}diff --git {old} {new}{strong:#}\n"));
    match (&change.from, &change.to) {
        (None, Some(to)) => shown.push_str(&format!("new file mode {}\n", mode(to))),
        (Some(from), None) => {
            shown.push_str(&format!("deleted file mode {}\n", mode(from)));
            if matches!(from.node, Node::File { size: 0, .. }) {
                // Without a hunk, it is only this that tells `patch` to delete it.
                shown.push_str("index e69de29..0000000\n");
            }
        }
        (Some(from), Some(to)) if mode(from) != mode(to) => {
            shown.push_str(&format!("old mode {}\nnew mode {}\n", mode(from), mode(to)));
        }
        _ => {}
    }
}

/// What differs in a database or state: for people made safe, as data exact.
pub(super) fn of_part(part: &PartChange, mode: Mode) -> String {
    let name = text::line(&part.to.subject.name()).text;
    if mode != Mode::Text {
        return format!("{name}\n{}", part.text);
    }
    let safe: String = part
        .text
        .lines()
        .map(|line| text::line(line).text + "\n")
        .collect();
    format!("{STRONG}{name}{STRONG:#}\n{safe}")
}

/// Whether every change can be shown line by line, and exactly.
pub(super) fn is_text(source: &Source<'_>, changes: &[Change]) -> Result<bool, CliError> {
    for change in changes {
        let (old, new) = source.sides(change)?;
        let exact = std::str::from_utf8(&old).is_ok() && std::str::from_utf8(&new).is_ok();
        if !exact || matches!(compare(&old, &new, 0), Comparison::Binary) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn statistics(source: &Source<'_>, changes: &[Change]) -> Result<String, CliError> {
    let mut shown = String::new();
    let (mut all_added, mut all_removed) = (0, 0);
    for change in changes {
        let (old, new) = source.sides(change)?;
        let what = match compare(&old, &new, 0) {
            Comparison::Same => change.kind().as_str().to_owned(),
            Comparison::Binary => format!("{} → {} bytes", old.len(), new.len()),
            Comparison::Text(hunks) => {
                let (added, removed) = totals(&hunks);
                all_added += added;
                all_removed += removed;
                format!("+{added} −{removed}")
            }
        };
        let name = console::name(&path::display(&change.path));
        shown.push_str(&format!("{what:>14}  {name}\n"));
    }
    let files = count(changes.len() as u64, "path", "paths");
    shown.push_str(&format!(
        "{files} changed, {all_added} lines added, {all_removed} removed\n"
    ));
    Ok(shown)
}
