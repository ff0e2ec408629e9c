//! What has happened in the session, the newest last.

use super::MOST_LINES;
use crate::Moment;
use crate::rows::{Break, Page, Tone};
use crate::told::Told;
use crate::words;

/// A row for each moment, under its day.
pub(crate) fn timeline(moments: &[Moment]) -> Page {
    let mut page = Page::default();
    let older = moments.len().saturating_sub(MOST_LINES);
    if older > 0 {
        let told = Told::ours(format!("… {older} older moments are not shown here"));
        page.push(0, Tone::Faint, Break::Words, told);
    }
    let mut today = String::new();
    for moment in moments.iter().skip(older) {
        let day = words::day(moment.time);
        if day != today {
            page.heading(&format!("{day}, UTC"));
            today = day;
        }
        let told = Told::ours(words::clock(moment.time))
            .and("  ")
            .and_theirs(&moment.kind)
            .and("  ")
            .and_theirs(&moment.text);
        page.sentence(Tone::Plain, told);
    }
    if moments.is_empty() {
        page.sentence(Tone::Plain, Told::ours("Nothing has happened yet."));
    }
    page
}
