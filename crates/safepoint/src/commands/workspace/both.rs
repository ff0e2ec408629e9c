//! Both sides of a conflict, on the lines below it, for people.

use safepoint_model::text;
use safepoint_progress::integrate::{Choice, Conflict};

use super::sides::{SideDocument, Sides, TextIs};
use crate::commands::restoring::line as change_line;
use crate::console::{FAINT, count};

/// So many paths below a directory are listed.
const MOST_BELOW: usize = 20;

/// Everything that is known of a conflict.
pub(super) fn page(conflict: &Conflict, sides: &Sides) -> String {
    if conflict.raw.is_none() {
        return String::new();
    }
    let mut lines = Vec::new();
    let is_known = sides.base.is_some() || sides.ours.is_some() || sides.theirs.is_some();
    if !is_known {
        lines.push(format!("{FAINT}(it cannot be shown here){FAINT:#}"));
    }
    if is_known && says_more(sides) {
        for (whose, side) in [
            ("here", &sides.ours),
            ("where the work began", &sides.base),
            ("in the work", &sides.theirs),
        ] {
            let what = side.as_ref().map_or_else(|| "nothing".to_owned(), words);
            lines.push(format!("{FAINT}{whose}:{FAINT:#} {what}"));
            lines.extend(side.iter().flat_map(below));
        }
    }
    let title = match sides.text_is {
        Some(TextIs::Both) | None => None,
        Some(TextIs::Ours) => Some("what was changed here:"),
        Some(TextIs::Theirs) => Some("what the work changed:"),
        Some(TextIs::Merged) => Some("what `merged` would change here:"),
        Some(TextIs::Incoming) => Some("what the work would change here:"),
    };
    lines.extend(title.map(|title| format!("{FAINT}{title}{FAINT:#}")));
    let text = sides.text.as_deref().unwrap_or_default();
    lines.extend(text.lines().map(str::to_owned));
    lines.extend(
        meanings(sides)
            .iter()
            .map(|it| format!("{FAINT}{it}{FAINT:#}")),
    );
    let lines = lines.iter().map(|line| format!("      {line}\n"));
    lines.collect()
}

/// Whether the lines alone do not say what it is about.
fn says_more(sides: &Sides) -> bool {
    let shows_lines = matches!(sides.text_is, Some(TextIs::Both | TextIs::Merged));
    let about = |side: &Option<SideDocument>| {
        let side = side.as_ref();
        side.map(|side| (side.mode.clone(), side.attributes.clone()))
    };
    !shows_lines || about(&sides.ours) != about(&sides.theirs)
}

/// What stands on one side, in a few words.
fn words(side: &SideDocument) -> String {
    let mut words = side.kind.to_owned();
    if let Some(target) = &side.target {
        words.push_str(&format!(" to `{}`", text::line(target).text));
    }
    if let Some(size) = side.size {
        words.push_str(&format!(", {}", count(size, "byte", "bytes")));
    }
    if let Some(mode) = &side.mode {
        words.push_str(&format!(", mode {mode}"));
    }
    for (name, value) in &side.attributes {
        let value = text::shorten(&text::line(value).text, 40);
        words.push_str(&format!(", {}={value}", text::line(name).text));
    }
    words
}

/// What a side changed below a path that is decided as a whole.
fn below(side: &SideDocument) -> Vec<String> {
    let changes = side.changes.iter().take(MOST_BELOW);
    let mut lines: Vec<String> = changes
        .map(|change| change_line(change).trim_end().to_owned())
        .collect();
    if let Some(more) = side.changes.len().checked_sub(MOST_BELOW + 1) {
        lines.push(format!("  … and {} more", more + 1));
    }
    lines
}

/// What choices mean beyond the lines that are shown.
fn meanings(sides: &Sides) -> Vec<String> {
    let mut said = Vec::new();
    let places = |number: usize| count(number as u64, "more change", "more changes");
    if sides.more_ours > 0 {
        let more = places(sides.more_ours);
        said.push(format!(
            "`theirs` is the whole file as the work has it: {more} of the parent would go"
        ));
    }
    if sides.more_theirs > 0 {
        let more = places(sides.more_theirs);
        said.push(format!(
            "`ours` is the whole file as it is here: {more} of the work would not come"
        ));
    }
    if sides.choices.contains(&Choice::Merged) {
        said.push("`merged` has the changes of both sides, line by line".to_owned());
    } else if !said.is_empty() {
        said.push("to keep them, put both together and give that with --content @FILE".to_owned());
    }
    said
}
