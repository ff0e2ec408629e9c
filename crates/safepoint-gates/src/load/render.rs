//! A problem as people read it, with the line it is about.
//!
//! Nothing of the file or its name reaches the terminal but as harmless text,
//! and nothing here has colour.

use safepoint_model::text;
use unicode_normalization::char::is_combining_mark;

use super::{Place, Problem};

/// How many columns of a line are shown.
const WIDEST: usize = 100;

/// How much of a long line is shown before the place that is meant.
const BEFORE: usize = 40;

impl Problem {
    /// The problem with the line of `text`, the file named `file`, that it is about.
    pub fn render(&self, file: &str, text: &str) -> String {
        let severity = self.severity.as_str();
        let mut out = format!("{severity}: {}\n", line(&self.message));
        let file = line(file);
        let mut gutter = 1;
        if let Some(place) = self.place {
            let number = place.line.to_string();
            gutter = number.len();
            out.push_str(&format!(
                "{:gutter$}--> {file}:{number}:{}\n",
                "", place.column
            ));
            if let Some(source) = nth_line(text, place.line) {
                let (shown, before, under) = excerpt(source, place);
                let carets = "^".repeat(under);
                out.push_str(&format!("{:gutter$} |\n", ""));
                out.push_str(format!("{number} | {shown}").trim_end());
                out.push_str(&format!("\n{:gutter$} | {:before$}{carets}\n", "", ""));
            }
        } else {
            out.push_str(&format!("{:gutter$}--> {file}\n", ""));
        }
        if let Some(hint) = &self.hint {
            out.push_str(&format!("{:gutter$} = hint: {}\n", "", line(hint)));
        }
        out
    }
}

/// The line as it is shown, the columns before the carets, and how many carets.
fn excerpt(source: &str, place: Place) -> (String, usize, usize) {
    let start = place.column.saturating_sub(1);
    let part = |from: usize, to: usize| -> String {
        let part = source.chars().skip(from).take(to.saturating_sub(from));
        line(
            &part
                .map(|c| if c == '\t' { ' ' } else { c })
                .collect::<String>(),
        )
    };
    // What is far off is never looked at: a line can be as long as the file.
    let first = start.saturating_sub(WIDEST);
    let before = part(first, start);
    let meant = part(start, start.saturating_add(place.length.min(WIDEST)));
    let end = start.saturating_add(place.length);
    let after = part(end, end.saturating_add(WIDEST));
    let cut = first > 0 || width(&before) + width(&meant) > WIDEST;
    let before = if cut { tail(&before, BEFORE) } else { before };
    let room = WIDEST.saturating_sub(width(&before));
    let meant = head(&meant, room);
    let after = head(&after, room.saturating_sub(width(&meant)));
    let (columns, under) = (width(&before), width(&meant).max(1));
    (format!("{before}{meant}{after}"), columns, under)
}

/// The first `columns` columns, the last of them `…` when anything is missing.
fn head(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let mut kept: String = text
        .chars()
        .take_while(|c| {
            used += char_width(*c);
            used <= columns
        })
        .collect();
    kept.push('…');
    kept
}

/// The last `columns` columns, the first of them `…`.
fn tail(text: &str, columns: usize) -> String {
    let backwards: String = text.chars().rev().collect();
    if width(text) <= columns {
        return format!("…{text}");
    }
    head(&backwards, columns).chars().rev().collect()
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// How many columns a terminal gives a character, near enough for a caret.
fn char_width(c: char) -> usize {
    if is_combining_mark(c) {
        return 0;
    }
    let wide = matches!(
        u32::from(c),
        0x1100..=0x115f
            | 0x2e80..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60
            | 0xffe0..=0xffe6
            | 0x1f300..=0x1faff
            | 0x20000..=0x3fffd
    );
    1 + usize::from(wide)
}

/// YAML ends a line at a carriage return too.
fn nth_line(text: &str, number: usize) -> Option<&str> {
    let mut rest = text;
    for _ in 1..number {
        let end = rest.find(['\n', '\r'])?;
        let length = if rest.get(end..)?.starts_with("\r\n") {
            2
        } else {
            1
        };
        rest = rest.get(end + length..)?;
    }
    Some(rest.split(['\n', '\r']).next().unwrap_or_default())
}

fn line(input: &str) -> String {
    text::line(input).text
}
