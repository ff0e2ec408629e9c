//! The queue: what waits, the oldest first, and whose turn it is.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use safepoint_authority::{Pending, Risk};

use super::{View, inset, put, put_right, rule};
use crate::App;
use crate::told::clip;
use crate::words;

impl View {
    pub(super) fn queue(&self, app: &App, area: Rect, buffer: &mut Buffer) {
        let queue = app.queue.as_deref().unwrap_or_default();
        rule(buffer, area, self.palette.rule());
        let chosen = queue
            .iter()
            .position(|pending| Some(&pending.hold_id) == app.selected.as_ref());
        let title = match chosen {
            Some(place) if area.height > 0 => format!(" Queue, {} of {} ", place + 1, queue.len()),
            _ => " Queue ".to_owned(),
        };
        put(buffer, inset(area, 1), &title, self.palette.strong());
        // Two rows for each where the queue stands beside the hold.
        let tall = area.width < super::SMALLEST.0;
        if tall {
            for row in super::rows(area) {
                put(buffer, inset(row, row.width - 1), "│", self.palette.rule());
            }
        }
        let Some(height) = area.height.checked_sub(1).filter(|rows| *rows > 0) else {
            return;
        };
        let each = if tall { 2 } else { 1 };
        let room = usize::from(height / each).max(1);
        let first = chosen.unwrap_or(0).saturating_sub(room - 1);
        for (slot, (place, pending)) in queue.iter().enumerate().skip(first).take(room).enumerate()
        {
            let down = 1 + u16::try_from(slot).unwrap_or(u16::MAX).saturating_mul(each);
            let row = Rect {
                y: area.y.saturating_add(down),
                height: each,
                ..area
            };
            self.entry(app, (place, pending), row, buffer);
        }
    }

    /// One hold.
    fn entry(
        &self,
        app: &App,
        (place, pending): (usize, &Pending),
        row: Rect,
        buffer: &mut Buffer,
    ) {
        let is_chosen = Some(&pending.hold_id) == app.selected.as_ref();
        let style = match is_chosen {
            true => self.palette.strong(),
            false => ratatui::style::Style::new(),
        };
        let brief = app.briefs.get(place);
        let flag = match brief {
            Some(brief) if brief.flagged => "⚠ ",
            _ => "",
        };
        let brief = brief.map_or("", |brief| brief.text.as_str());
        let pointer = if is_chosen { '▸' } else { ' ' };
        let its_turn = app.is_turn(pending);
        let turn = if its_turn { '●' } else { ' ' };
        let first = format!("{pointer}{turn}{} {flag}{brief}", place + 1);
        let undo = words::undo_short(pending.reversibility_class);
        let time = words::expiry_short(pending, app.now);
        let risk = risk_word(pending.risk_classification);
        if row.height > 1 {
            let wide = usize::from(row.width).saturating_sub(2);
            put(buffer, row, &clip(&first, wide), style);
            let mut facts = format!("{risk} · {undo} · {time}");
            if its_turn {
                facts.push_str(" · next");
            }
            let below = Rect {
                y: row.y + 1,
                height: 1,
                ..row
            };
            let faint = self.palette.tone(crate::rows::Tone::Faint);
            put(
                buffer,
                inset(below, 4),
                &clip(&facts, wide.saturating_sub(2)),
                faint,
            );
        } else {
            let facts = format!(" {risk:<8} {undo:<8} {time:>7} ");
            let wide = usize::from(row.width).saturating_sub(crate::told::width(&facts));
            put(buffer, row, &clip(&first, wide), style);
            put_right(buffer, row, &facts, style);
        }
    }
}

const fn risk_word(risk: Risk) -> &'static str {
    match risk {
        Risk::Low => "low",
        Risk::Medium => "medium",
        Risk::High => "HIGH",
        Risk::Critical => "CRITICAL",
    }
}
