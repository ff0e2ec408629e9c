//! What would change: lines of a diff, or sentences, as the desk gives them.

use safepoint_model::Timestamp;

use super::MOST_LINES;
use crate::rows::{Break, Page, Tone};
use crate::told::Told;
use crate::words;

/// The lines, with what they mean by their first character.
pub(crate) fn change(lines: &[String], read_at: Timestamp) -> Page {
    let mut page = Page::default();
    let as_of = format!(
        "As it was at {} UTC. r reads it again.",
        words::clock(read_at)
    );
    page.push(0, Tone::Faint, Break::Words, Told::ours(as_of));
    let all = lines.iter().flat_map(|line| line.split('\n'));
    let count = all.clone().count();
    for line in all.take(MOST_LINES) {
        let tone = match line.chars().next() {
            Some('+') => Tone::Added,
            Some('-') => Tone::Removed,
            Some('@') => Tone::Heading,
            _ => Tone::Plain,
        };
        page.push(0, tone, Break::Anywhere, Told::theirs_with_tabs(line));
    }
    if count == 0 {
        page.sentence(
            Tone::Plain,
            Told::ours("Nothing that can be told beforehand."),
        );
    }
    if let Some(more) = count.checked_sub(MOST_LINES).filter(|more| *more > 0) {
        let told = Told::ours(format!("… {more} more lines are not shown here"));
        page.push(0, Tone::Warning, Break::Words, told);
    }
    page
}
