//! Draws the state. It decides nothing, and tells what was truly on screen.

mod body;
mod dialog;
mod help;
mod layout;
mod queue;
mod theme;

use std::collections::BTreeSet;

use ratatui::Frame;
use ratatui::buffer::{Buffer, CellDiffOption, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

pub use theme::Palette;

use crate::rows::Tone;
use crate::told::{self, clip};
use crate::wrap::{self, Line};
use crate::{App, Drawn};

/// The smallest window in which everything important is visible.
pub(crate) const SMALLEST: (u16, u16) = (72, 20);

/// The most lines for what there is to say.
const NOTICE: usize = 3;

/// Draws the terminal. It remembers nothing but how long pages were broken into lines.
#[derive(Debug)]
pub struct View {
    palette: Palette,
    wrapped: Option<Wrapped>,
    /// The rows that had wide characters when they were last drawn.
    wide: BTreeSet<u16>,
}

/// A page that was broken into lines.
#[derive(Debug)]
struct Wrapped {
    page: u64,
    width: usize,
    lines: Vec<Line>,
}

impl View {
    /// A view in these colours.
    pub fn new(palette: Palette) -> Self {
        Self {
            palette,
            wrapped: None,
            wide: BTreeSet::new(),
        }
    }

    /// Draws the state, and tells what is on screen.
    pub fn draw(&mut self, app: &App, frame: &mut Frame<'_>) -> Drawn {
        let drawn = self.paint(app, frame);
        self.repaint_wide(frame.buffer_mut());
        drawn
    }

    /// Has every row that has or had wide characters drawn in full: only what differs is
    /// drawn otherwise, and half of an old character could stay on screen.
    fn repaint_wide(&mut self, buffer: &mut Buffer) {
        let mut wide = BTreeSet::new();
        for row in buffer.area.rows() {
            let is_wide = |place| buffer.cell(place).is_some_and(|cell| cell.cell_width() > 1);
            if row.positions().any(is_wide) {
                wide.insert(row.y);
            }
        }
        for row in buffer.area.rows() {
            if !wide.contains(&row.y) && !self.wide.contains(&row.y) {
                continue;
            }
            for place in row.positions() {
                if let Some(cell) = buffer.cell_mut(place) {
                    cell.set_diff_option(CellDiffOption::AlwaysUpdate);
                }
            }
        }
        self.wide = wide;
    }

    fn paint(&mut self, app: &App, frame: &mut Frame<'_>) -> Drawn {
        let area = frame.area();
        if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
            self.too_small(area, frame.buffer_mut());
            return Drawn {
                page: app.page_number,
                top: app.top,
                too_small: true,
                ..Drawn::default()
            };
        }
        let notice = self.notice(app, area);
        let areas = layout::areas(area, app, notice.len());
        self.header(app, areas.header, frame.buffer_mut());
        self.queue(app, areas.queue, frame.buffer_mut());
        let mut drawn = self.body(app, &areas, frame.buffer_mut());
        for (line, row) in notice.iter().zip(rows(areas.notice)) {
            self.line(line, row, frame.buffer_mut());
        }
        self.keys(app, areas.keys, frame.buffer_mut());
        if let Some(open) = &app.dialog {
            let (end, cursor) = self.dialog(app, open, area, frame.buffer_mut());
            drawn.dialog_end = end;
            if let Some(cursor) = cursor {
                frame.set_cursor_position(cursor);
            }
        } else if app.help {
            self.help(area, frame.buffer_mut());
        }
        if app.dialog.is_some() || app.help {
            drawn.form_end = false;
        }
        drawn
    }

    fn too_small(&self, area: Rect, buffer: &mut Buffer) {
        let words = [
            format!(
                "This window is {}×{}; {}×{} is needed.",
                area.width, area.height, SMALLEST.0, SMALLEST.1
            ),
            "Make it larger. Nothing is decided meanwhile.".to_owned(),
            "q leaves.".to_owned(),
        ];
        for (text, row) in words.iter().zip(rows(area)) {
            put(buffer, row, text, Style::new());
        }
    }

    /// The first line: what this is, how many wait, and whether it is live.
    fn header(&self, app: &App, area: Rect, buffer: &mut Buffer) {
        let bar = self.palette.bar();
        buffer.set_style(area, bar);
        let count = match &app.queue {
            None => "reading …".to_owned(),
            Some(queue) => match queue.len() {
                0 => "nothing waits".to_owned(),
                1 => "1 waits".to_owned(),
                more => format!("{more} wait"),
            },
        };
        let left = format!(" Safepoint · {count}");
        put(buffer, area, &left, bar.add_modifier(Modifier::BOLD));
        let live = match &app.trouble {
            Some(_) => "⚠ NOT LIVE ".to_owned(),
            None => format!("{} UTC ", crate::words::clock(app.now)),
        };
        let right = match &app.operator {
            Some(name) => format!("operator {} · {live}", clip(name.text(), 24)),
            None => live,
        };
        put_right(buffer, area, &right, bar);
    }

    /// What there is to say, above the keys.
    fn notice(&self, app: &App, area: Rect) -> Vec<Line> {
        let mut page = crate::rows::Page::default();
        let breaks = crate::rows::Break::Words;
        if let Some(trouble) = &app.trouble {
            let told =
                told::Told::ours("⚠ The queue could not be read; what is shown may be old: ");
            page.push(0, Tone::Warning, breaks, told.and_told(trouble.clone()));
        } else if let Some((tone, words)) = &app.notice {
            page.push(0, *tone, breaks, words.clone());
        } else {
            page.push(0, Tone::Faint, breaks, told::Told::ours(standing(app)));
        }
        let mut lines = wrap::wrap(&page.rows, usize::from(area.width).saturating_sub(1));
        let is_cut = lines.len() > NOTICE;
        lines.truncate(NOTICE);
        if let Some(last) = lines.last_mut().filter(|_| is_cut) {
            last.text.push('…');
        }
        lines
    }

    /// The last line: the keys.
    fn keys(&self, app: &App, area: Rect, buffer: &mut Buffer) {
        let words = match (&app.dialog, app.help, app.selected.is_some()) {
            (Some(crate::app::Dialog::Terms { .. }), ..) => " y approve · ↓ ↑ read · Esc go back",
            (Some(_), ..) => " Enter hand in · Esc go back, nothing is decided",
            (None, true, _) => " any key goes back",
            (None, false, true) => {
                " y approve  n deny  e envelope  s each step  h halt  ? help  q quit"
            }
            (None, false, false) => " ? help  r read again  q quit",
        };
        let bar = self.palette.bar();
        buffer.set_style(area, bar);
        put(buffer, area, words, bar);
    }

    /// One line of a page.
    fn line(&self, line: &Line, row: Rect, buffer: &mut Buffer) {
        let style = self.palette.tone(line.tone);
        let sign = match line.sign {
            wrap::Sign::Flag => self.palette.tone(Tone::Warning),
            _ => self.palette.tone(Tone::Faint),
        };
        put(buffer, row, line.sign.as_str(), sign);
        let gutter = u16::try_from(wrap::GUTTER).unwrap_or(0);
        put(
            buffer,
            inset(row, gutter),
            line.label,
            self.palette.tone(Tone::Heading),
        );
        let indent = u16::try_from(wrap::GUTTER + line.indent).unwrap_or(u16::MAX);
        put(buffer, inset(row, indent), &line.text, style);
    }
}

/// How things stand, when there is nothing else to say.
fn standing(app: &App) -> &'static str {
    use crate::page::Tab;
    let Some(pending) = app.pending() else {
        return "";
    };
    let its_turn = app.is_turn(pending);
    match (app.seen, app.tab) {
        _ if crate::words::has_expired(pending, app.now) => {
            "It has expired; it can only be looked at."
        }
        _ if !its_turn && pending.state == safepoint_authority::HoldState::Pending => {
            "It can be looked at: an older one of its session is decided first. o goes there."
        }
        (true, _) => "✓ Read to the end of the canonical form: it can be decided.",
        (false, Tab::Detail) => {
            "▼ Read to the end of the canonical form before you approve: space."
        }
        (false, _) => "▼ The canonical form was not read yet: d shows it.",
    }
}

/// The rows of an area, from the top.
fn rows(area: Rect) -> impl Iterator<Item = Rect> {
    area.rows()
}

/// The same area without its first columns.
fn inset(area: Rect, columns: u16) -> Rect {
    let columns = columns.min(area.width);
    Rect {
        x: area.x + columns,
        width: area.width - columns,
        ..area
    }
}

/// Puts a safe text into the first row of an area, and cuts off what does not fit.
fn put(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    if area.height > 0 {
        buffer.set_stringn(area.x, area.y, text, usize::from(area.width), style);
    }
}

/// Puts a safe text at the right end of the first row of an area.
fn put_right(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    let wide = u16::try_from(told::width(text)).unwrap_or(u16::MAX);
    put(
        buffer,
        inset(area, area.width.saturating_sub(wide)),
        text,
        style,
    );
}

/// Draws a rule across the first row of an area.
fn rule(buffer: &mut Buffer, area: Rect, style: Style) {
    put(buffer, area, &"─".repeat(usize::from(area.width)), style);
}
