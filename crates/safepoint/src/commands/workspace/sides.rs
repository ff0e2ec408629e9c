//! A conflict as people see it: what both sides began with, and what each made of it.
//!
//! It only shows. The text of both sides comes from outside: it is cut, and made safe.

use std::collections::BTreeMap;

use safepoint_model::text;
use safepoint_progress::Progress;
use safepoint_progress::integrate::{Choice, Conflict, Ground, Integration};
use safepoint_state::path;
use safepoint_state::text::{Comparison, Labels, Merge, apart, compare, marked, merge, unified};
use safepoint_state::{Side, Sides as FoundSides};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::restoring::{ChangeDocument, documents};

/// So many lines of a conflict are shown.
const MOST_LINES: usize = 60;
/// So many characters of a line.
const WIDEST: usize = 160;
/// So many lines around each place.
const AROUND: usize = 2;

/// Both sides of one conflict that is open.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Sides {
    /// Which conflict.
    pub(super) conflict: String,
    /// The places that do not fit, with what the parent has, what both began with, and what the
    /// workspace made of it; or a difference, as `text_is` says. Null where there are no lines
    /// to show.
    pub(super) text: Option<String>,
    /// What `text` is.
    pub(super) text_is: Option<TextIs>,
    /// What both began with; null where there was nothing.
    pub(super) base: Option<SideDocument>,
    /// What the parent has; null where it has nothing.
    pub(super) ours: Option<SideDocument>,
    /// What the workspace has; null where it has nothing.
    pub(super) theirs: Option<SideDocument>,
    /// How many other places of the file the parent alone has changed: `theirs` is the whole
    /// file, and these would go with it.
    pub(super) more_ours: usize,
    /// How many other places of the file the workspace alone has changed: `ours` is the whole
    /// file, and these would not come.
    pub(super) more_theirs: usize,
    /// What can become of it: `ours`, `theirs`, `merged`. A content can be given wherever it is
    /// about a path, unless only `ours` is left.
    #[schemars(with = "Vec<String>")]
    pub(super) choices: Vec<Choice>,
}

/// What the text of a conflict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TextIs {
    /// The places that do not fit, with all sides marked.
    Both,
    /// What the parent changed since both began; the workspace has no such file any more.
    Ours,
    /// What the workspace changed since both began; the parent has no such file any more.
    Theirs,
    /// What `merged` would change in the parent.
    Merged,
    /// What `theirs` would change in the parent.
    Incoming,
}

/// What stands at the path on one side.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SideDocument {
    /// `file`, `directory`, `link`, `not captured` (a secret, or left out), or something special.
    pub(super) kind: &'static str,
    /// Its permission bits, in octal digits.
    pub(super) mode: Option<String>,
    /// How many bytes a file has.
    pub(super) size: Option<u64>,
    /// Where a link points.
    pub(super) target: Option<String>,
    /// Its extended attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(default)]
    pub(super) attributes: BTreeMap<String, String>,
    /// What this side changed at and below the path, where it is a directory on one side alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) changes: Vec<ChangeDocument>,
}

/// Both sides of every conflict that is open. What cannot be read now is not shown; the
/// conflict itself is.
pub(super) fn of(
    progress: &Progress,
    ground: Option<&Ground<'_>>,
    one: &Integration,
) -> Vec<Sides> {
    let open = one.conflicts.iter().filter(|it| it.resolution.is_none());
    let open: Vec<&Conflict> = open.collect();
    let found = ground.and_then(|ground| progress.sides(ground, one, &open).ok());
    let mut found = found.unwrap_or_default().into_iter();
    let each = open.iter().map(|conflict| {
        let standings = found.next().flatten();
        side_by_side(conflict, standings.as_ref(), one.source.as_str())
    });
    each.collect()
}

fn side_by_side(conflict: &Conflict, found: Option<&FoundSides>, work: &str) -> Sides {
    let lines = found.and_then(|found| lines(conflict, found, work));
    let (text, text_is) = lines.unzip();
    let counted = found.filter(|_| matches!(text_is, Some(TextIs::Both | TextIs::Merged)));
    let more = counted.and_then(|found| {
        let began = content(&found.base).unwrap_or_default();
        apart(began, content(&found.ours)?, content(&found.theirs)?)
    });
    let more = more.unwrap_or_default();
    let document = |side: fn(&FoundSides) -> &Option<Side>| {
        found.and_then(|found| side(found).as_ref()).map(document)
    };
    Sides {
        conflict: conflict.id.clone(),
        text,
        text_is,
        base: document(|found| &found.base),
        ours: document(|found| &found.ours),
        theirs: document(|found| &found.theirs),
        more_ours: more.ours,
        more_theirs: more.theirs,
        choices: conflict.choices().to_vec(),
    }
}

fn document(side: &Side) -> SideDocument {
    let attributes = side.attributes.iter();
    SideDocument {
        kind: side.kind,
        mode: side.mode.map(|mode| format!("{:04o}", mode & 0o7777)),
        size: side.size,
        target: side.target.as_ref().map(|target| path::display(target)),
        attributes: attributes
            .map(|(name, value)| (path::display(name), path::display(value)))
            .collect(),
        changes: documents(&side.changes),
    }
}

/// The content of a file; `None` where it is none.
fn content(side: &Option<Side>) -> Option<&[u8]> {
    side.as_ref()?.content.as_deref()
}

/// The lines that say most of a conflict.
fn lines(conflict: &Conflict, found: &FoundSides, work: &str) -> Option<(String, TextIs)> {
    let base = content(&found.base).unwrap_or_default();
    match (content(&found.ours), content(&found.theirs)) {
        (ours, theirs) if conflict.is_rule() => {
            let (ours, theirs) = (ours.unwrap_or_default(), theirs.unwrap_or_default());
            Some((difference(ours, theirs)?, TextIs::Incoming))
        }
        (Some(ours), Some(theirs)) => match merge(base, ours, theirs) {
            Merge::Clean(merged) if conflict.mergeable => {
                Some((difference(ours, &merged)?, TextIs::Merged))
            }
            Merge::Clean(_) => Some((difference(ours, theirs)?, TextIs::Incoming)),
            Merge::Conflict(_) => {
                let labels = Labels {
                    ours: "here",
                    base: "where the work began",
                    theirs: work,
                };
                let marked = marked(base, ours, theirs, &labels)?;
                Some((excerpt(&String::from_utf8_lossy(&marked)), TextIs::Both))
            }
        },
        (Some(ours), None) => Some((difference(base, ours)?, TextIs::Ours)),
        (None, Some(theirs)) => Some((difference(base, theirs)?, TextIs::Theirs)),
        (None, None) => None,
    }
}

/// What differs, as a unified diff; `None` where nothing does, or it is not text.
fn difference(old: &[u8], new: &[u8]) -> Option<String> {
    match compare(old, new, AROUND) {
        Comparison::Text(hunks) => {
            let diff = unified(&hunks);
            let diff = String::from_utf8_lossy(&diff);
            Some(cut(diff.lines().map(safe).collect()))
        }
        Comparison::Same | Comparison::Binary => None,
    }
}

/// One line, made safe and not too wide.
fn safe(line: &str) -> String {
    let safe: Vec<String> = line.split('\t').map(|part| text::line(part).text).collect();
    text::shorten(&safe.join("    "), WIDEST)
}

fn cut(mut lines: Vec<String>) -> String {
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("… {more} more lines"));
    }
    lines.join("\n")
}

/// The marked places of a text with a few lines around each.
fn excerpt(marked: &str) -> String {
    let lines: Vec<&str> = marked.lines().collect();
    let mut wanted = vec![false; lines.len()];
    let mut inside = false;
    for (number, line) in lines.iter().enumerate() {
        let begins = line.starts_with("<<<<<<< ");
        let ends = line.starts_with(">>>>>>> ");
        if inside || begins || ends {
            let around = number.saturating_sub(AROUND)..=number + AROUND;
            let near = wanted.iter_mut().enumerate();
            near.filter(|(place, _)| around.contains(place))
                .for_each(|(_, wanted)| *wanted = true);
        }
        inside = (inside || begins) && !ends;
    }
    let mut shown = Vec::new();
    let mut skipped = false;
    for (line, wanted) in lines.iter().zip(wanted) {
        if !wanted {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            shown.push("…".to_owned());
        }
        shown.push(safe(line));
    }
    cut(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_32_a_long_or_hostile_conflict_is_cut_and_made_safe() {
        let before: String = (0..50).map(|number| format!("line {number}\n")).collect();
        let marked = format!(
            "{before}<<<<<<< here\n\u{1b}[2Jours\n||||||| base\nold\n=======\n{}\n>>>>>>> work\nafter\n",
            "x".repeat(10_000)
        );
        let shown = excerpt(&marked);
        assert!(
            shown.starts_with("…\nline 48\nline 49\n<<<<<<< here\n"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(shown.ends_with(">>>>>>> work\nafter"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= WIDEST));
        let long = format!("<<<<<<< here\n{}=======\n>>>>>>> work\n", before.repeat(4));
        assert!(excerpt(&long).ends_with("more lines"));
    }
}
