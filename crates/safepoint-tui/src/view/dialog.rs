//! Questions that are asked back, in a box over the rest.

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::{Position, Rect};
use ratatui::widgets::{Block, BorderType, Clear, Widget};
use safepoint_authority::Choice;

use super::{View, inset, put, rows};
use crate::App;
use crate::app::Dialog;
use crate::rows::{Break, Page, Tone};
use crate::told::{Told, clip, width};
use crate::words;
use crate::wrap::wrap;

/// How much of what is not covered is named once more.
const NAMED: usize = 2;

/// The widest box.
const WIDEST: u16 = 84;

impl View {
    /// Draws a question. Whether its end is visible, and where the cursor belongs.
    pub(super) fn dialog(
        &self,
        app: &App,
        open: &Dialog,
        area: Rect,
        buffer: &mut Buffer,
    ) -> (bool, Option<Position>) {
        let (title, page, top, typed) = match open {
            Dialog::Reason { choice, typed } => {
                (title(*choice), reason(app, *choice), 0, Some(typed))
            }
            Dialog::Word {
                choice,
                word,
                typed,
                ..
            } => (title(*choice), word_page(app, word), 0, Some(typed)),
            Dialog::Terms {
                choice, page, top, ..
            } => (title(*choice), page.clone(), *top, None),
        };
        let wide = area.width.saturating_sub(6).min(WIDEST);
        let lines = wrap(&page.rows, usize::from(wide.saturating_sub(3)));
        let asked = if typed.is_some() { 2 } else { 0 };
        let tall = u16::try_from(lines.len() + asked).unwrap_or(u16::MAX);
        let tall = tall.saturating_add(2).min(area.height.saturating_sub(4));
        let inner = self.frame(title, (wide, tall), area, buffer);
        let room = usize::from(inner.height).saturating_sub(asked);
        let top = top.min(lines.len().saturating_sub(room));
        for (line, row) in lines.iter().skip(top).take(room).zip(rows(inner)) {
            self.line(line, row, buffer);
        }
        let cursor = typed.and_then(|typed| {
            let row = rows(inner).last()?;
            Some(self.typed(typed, row, buffer))
        });
        (top + room >= lines.len(), cursor)
    }

    /// An empty box in the middle, and what is inside its border.
    pub(super) fn frame(
        &self,
        title: &str,
        (wide, tall): (u16, u16),
        area: Rect,
        buffer: &mut Buffer,
    ) -> Rect {
        let place = Rect {
            x: area.x + (area.width.saturating_sub(wide)) / 2,
            y: area.y + (area.height.saturating_sub(tall)) / 2,
            width: wide.min(area.width),
            height: tall.min(area.height),
        };
        let block = Block::bordered()
            .border_type(BorderType::Double)
            .title(format!(" {title} "));
        let inner = block.inner(place);
        Clear.render(place, buffer);
        // Half of a wide character would cover the border.
        for row in place.rows() {
            let beside = row.x.checked_sub(1).map(|x| Position::new(x, row.y));
            let cell = beside.and_then(|beside| buffer.cell_mut(beside));
            if let Some(cell) = cell.filter(|cell| cell.cell_width() > 1) {
                cell.reset();
            }
        }
        block.render(place, buffer);
        Rect {
            width: inner.width.saturating_sub(1),
            ..inner
        }
    }

    /// The line that is typed into: its end is what is seen.
    fn typed(&self, typed: &str, row: Rect, buffer: &mut Buffer) -> Position {
        let told = Told::theirs(typed);
        let room = usize::from(row.width).saturating_sub(6);
        let mut text = told.text();
        while width(text) > room {
            let mut rest = text.chars();
            rest.next();
            text = rest.as_str();
        }
        let cut = if text.len() < told.text().len() {
            "…"
        } else {
            ""
        };
        let shown = format!("  > {cut}{text}");
        put(buffer, row, &shown, self.palette.strong());
        let at = u16::try_from(width(&shown)).unwrap_or(u16::MAX);
        Position::new(inset(row, at).x, row.y)
    }
}

const fn title(choice: Choice) -> &'static str {
    match choice {
        Choice::Continue => "Approve: second confirmation",
        Choice::Modify => "Approve, with an envelope",
        Choice::PerStep => "Approve, and ask at each step",
        Choice::Deny => "Deny",
        Choice::Halt => "Halt",
    }
}

fn subject(page: &mut Page, app: &App) {
    let Some(brief) = app.brief() else { return };
    let flag = if brief.flagged { "⚠ " } else { "" };
    let told = Told::ours(flag).and(clip(&brief.text, 110));
    page.push(0, Tone::Heading, Break::Anywhere, told);
    page.blank();
}

fn reason(app: &App, choice: Choice) -> Page {
    let mut page = Page::default();
    subject(&mut page, app);
    let words = match choice {
        Choice::Halt => "Nothing goes on in this session until an operator acts.",
        _ => "It does not go on.",
    };
    page.push(0, Tone::Plain, Break::Words, Told::ours(words));
    let words = "Why? This is recorded. It may be left empty.";
    page.push(0, Tone::Plain, Break::Words, Told::ours(words));
    page
}

fn word_page(app: &App, word: &str) -> Page {
    let mut page = Page::default();
    subject(&mut page, app);
    if let Some(pending) = app.pending() {
        let undo = Told::ours(words::undo(pending.reversibility_class));
        page.push(0, Tone::Warning, Break::Words, undo);
        let open = &pending.coverage.not_covered;
        for open in open.iter().take(NAMED) {
            let told = Told::theirs(open);
            let told = Told::ours("✗ NOT covered: ").and(clip(told.text(), 90));
            page.push(0, Tone::Warning, Break::Words, told);
        }
        if let Some(more) = open.len().checked_sub(NAMED).filter(|more| *more > 0) {
            let told = Told::ours(format!("✗ and {more} more that is NOT covered"));
            page.push(0, Tone::Warning, Break::Words, told);
        }
        page.push(0, Tone::Plain, Break::Words, Told::default());
    }
    let told = Told::ours("To approve it nevertheless, type this word and press Enter:");
    page.push(0, Tone::Plain, Break::Words, told);
    page.push(4, Tone::Heading, Break::Anywhere, Told::theirs(word));
    page
}
