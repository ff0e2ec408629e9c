//! The hold on screen: three lines that always stay, and the page that scrolls below them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use safepoint_authority::Pending;

use super::layout::Areas;
use super::{View, Wrapped, inset, put, put_right, rows, rule};
use crate::page::Tab;
use crate::rows::{Page, Tone};
use crate::told::{Told, clip};
use crate::words;
use crate::wrap::{Sign, wrap};
use crate::{App, Drawn};

impl View {
    pub(super) fn body(&mut self, app: &App, areas: &Areas, buffer: &mut Buffer) -> Drawn {
        let Some(pending) = app.pending() else {
            self.nothing(app, areas, buffer);
            return Drawn {
                page: app.page_number,
                ..Drawn::default()
            };
        };
        self.card(app, pending, areas.card, buffer);
        let page = self.flag(app, areas.page, buffer);
        let drawn = self.page(app, page, buffer);
        self.tabs(app, &drawn, areas.tabs, buffer);
        drawn
    }

    /// Says what was escaped on this page, above it. What is left for the page.
    fn flag(&self, app: &App, area: Rect, buffer: &mut Buffer) -> Rect {
        let hazards = &app.page.hazards;
        if hazards.is_empty() {
            return area;
        }
        let mut page = Page::default();
        page.sentence(Tone::Warning, Told::ours(words::escaped(hazards)));
        let mut lines = wrap(&page.rows, usize::from(area.width));
        lines.truncate(2);
        if let Some(first) = lines.first_mut() {
            first.sign = Sign::Flag;
        }
        for (line, row) in lines.iter().zip(rows(area)) {
            self.line(line, row, buffer);
        }
        let taken = u16::try_from(lines.len()).unwrap_or(0).min(area.height);
        Rect {
            y: area.y + taken,
            height: area.height - taken,
            ..area
        }
    }

    /// An empty queue, or one that was not read yet.
    fn nothing(&self, app: &App, areas: &Areas, buffer: &mut Buffer) {
        let (first, second) = match (&app.queue, &app.trouble) {
            (Some(_), _) => (
                "Nothing waits.",
                "An action that needs you shows up here by itself.",
            ),
            (None, None) => ("Reading what waits …", ""),
            (None, Some(_)) => (
                "What waits could not be read.",
                "It is tried again all the time.",
            ),
        };
        put(buffer, inset(areas.card, 2), first, self.palette.strong());
        let mut lines = rows(areas.card);
        if let Some(second_row) = lines.nth(1) {
            put(
                buffer,
                inset(second_row, 2),
                second,
                self.palette.tone(Tone::Faint),
            );
        }
    }

    /// What is always in view: what it is, what is at stake, and how it stands.
    fn card(&self, app: &App, pending: &Pending, area: Rect, buffer: &mut Buffer) {
        rule(buffer, area, self.palette.rule());
        let title = format!(" {} ", pending.hold_id);
        put(buffer, inset(area, 1), &title, self.palette.strong());
        let bound = words::grouped(&pending.fingerprint, 4);
        let bound = bound.first().map(String::as_str).unwrap_or_default();
        put_right(buffer, area, &format!(" {bound} … "), self.palette.rule());
        let brief = app.brief();
        let what = brief.map(|brief| format!("{}{}", brief.sign(), brief.text));
        let what = what.unwrap_or_default();
        let stakes = format!(
            "  risk {} · {}",
            words::risk(pending.risk_classification),
            words::undo(pending.reversibility_class)
        );
        let its_turn = app.is_turn(pending);
        let mut standing = format!(
            "  waits {} · {}",
            words::length(pending.since, app.now),
            words::expiry(pending, app.now)
        );
        if its_turn {
            standing.push_str(" · ● decided next");
        }
        if pending.quorum > 1 {
            standing.push_str(&format!(
                " · {} of {} operators",
                pending.decided_by.len(),
                pending.quorum
            ));
        }
        let tone = match pending.reversibility_class.is_final() {
            true => self.palette.tone(Tone::Warning),
            false => self.palette.strong(),
        };
        let lines = [
            (what, self.palette.strong()),
            (stakes, tone),
            (standing, ratatui::style::Style::new()),
        ];
        for ((text, style), row) in lines.iter().zip(rows(area).skip(1)) {
            put(buffer, row, &clip(text, usize::from(row.width)), *style);
        }
    }

    /// The names of the pages, and where on the page we are.
    fn tabs(&self, app: &App, drawn: &Drawn, area: Rect, buffer: &mut Buffer) {
        rule(buffer, area, self.palette.rule());
        let mut at = inset(area, 1);
        for tab in Tab::ALL {
            let (key, name) = tab.name();
            let (text, style) = match tab == app.tab {
                true => (format!("[{key} {name}]"), self.palette.chosen()),
                false => (format!(" {key} {name} "), ratatui::style::Style::new()),
            };
            put(buffer, at, &text, style);
            at = inset(at, u16::try_from(text.len() + 1).unwrap_or(u16::MAX));
        }
        let last = (drawn.top + drawn.height).min(drawn.total);
        let more = match last < drawn.total {
            true => "▼ more",
            false => "■ end",
        };
        let place = format!(" {}–{last} of {} {more} ", drawn.top + 1, drawn.total);
        put_right(buffer, area, &place, self.palette.strong());
    }

    /// The lines of the page that fit.
    fn page(&mut self, app: &App, area: Rect, buffer: &mut Buffer) -> Drawn {
        let width = usize::from(area.width);
        let mut top = app.top;
        let fits = |known: &Wrapped| known.page == app.page_number && known.width == width;
        if !self.wrapped.as_ref().is_some_and(fits) {
            let lines = wrap(&app.page.rows, width);
            // In a window of another width the same row stays on top.
            let before = self.wrapped.as_ref();
            let same = before.filter(|known| known.page == app.page_number);
            if let Some(line) = same.and_then(|known| known.lines.get(top)) {
                let row = line.row;
                top = lines.iter().position(|line| line.row == row).unwrap_or(top);
            }
            self.wrapped = Some(Wrapped {
                page: app.page_number,
                width,
                lines,
            });
        }
        let lines = match &self.wrapped {
            Some(wrapped) => wrapped.lines.as_slice(),
            None => &[],
        };
        let height = usize::from(area.height);
        let top = top.min(lines.len().saturating_sub(height));
        for (line, row) in lines.iter().skip(top).zip(rows(area)) {
            self.line(line, row, buffer);
        }
        let end = (top + height).min(lines.len());
        let last_of_form = lines
            .iter()
            .rposition(|line| Some(line.row) == app.page.form_end);
        Drawn {
            page: app.page_number,
            top,
            height,
            total: lines.len(),
            form_end: last_of_form.is_some_and(|last| (top..end).contains(&last)),
            ..Drawn::default()
        }
    }
}
