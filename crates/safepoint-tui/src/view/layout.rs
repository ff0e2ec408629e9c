//! Where things are: side by side on a wide window, one below the other on a narrow one.

use ratatui::layout::Rect;

use crate::App;

/// From here on the queue stands beside the hold.
const WIDE: u16 = 110;

/// The width of the queue when it does.
const QUEUE: u16 = 38;

/// The parts of the window.
pub(super) struct Areas {
    pub(super) header: Rect,
    pub(super) queue: Rect,
    /// The three lines about the hold that never scroll away.
    pub(super) card: Rect,
    /// The rule with the names of the pages.
    pub(super) tabs: Rect,
    pub(super) page: Rect,
    pub(super) notice: Rect,
    pub(super) keys: Rect,
}

/// Divides a window that is large enough.
pub(super) fn areas(area: Rect, app: &App, notice: usize) -> Areas {
    let notice = u16::try_from(notice).unwrap_or(1).max(1);
    let (header, rest) = top(area, 1);
    let (rest, keys) = bottom(rest, 1);
    let (rest, notice) = bottom(rest, notice);
    let (queue, right) = match (app.expanded, area.width >= WIDE) {
        (true, _) => top(rest, 0),
        (false, true) => {
            let (queue, right) = left(rest, QUEUE);
            (queue, super::inset(right, 1))
        }
        (false, false) => {
            let most = match area.height {
                ..24 => 2,
                24..32 => 3,
                32.. => 6,
            };
            let count = app.queue.as_ref().map_or(0, Vec::len);
            let rows = u16::try_from(count).unwrap_or(u16::MAX).clamp(1, most);
            top(rest, rows + 1)
        }
    };
    let (card, right) = top(right, 4);
    let (tabs, page) = top(right, 1);
    Areas {
        header,
        queue,
        card,
        tabs,
        page,
        notice,
        keys,
    }
}

fn top(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let first = Rect {
        height: rows,
        ..area
    };
    let rest = Rect {
        y: area.y + rows,
        height: area.height - rows,
        ..area
    };
    (first, rest)
}

fn bottom(area: Rect, rows: u16) -> (Rect, Rect) {
    top(area, area.height.saturating_sub(rows))
}

fn left(area: Rect, columns: u16) -> (Rect, Rect) {
    let first = Rect {
        width: columns,
        ..area
    };
    (first, super::inset(area, columns))
}
