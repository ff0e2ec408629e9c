//! What comes closest to a text that was not found: it tells whether the file
//! changed or whether `old` was copied badly.

use super::error::{Difference, Nearest};
use super::lines::{Lines, shown};

/// Longer lines are only compared by their beginning.
const COMPARED: usize = 400;

/// The place that differs least from `old`, if any is similar at all.
pub(super) fn nearest(text: &str, lines: &Lines, old: &str) -> Option<Nearest> {
    let by_line_ends = || find_without(text, old, |character| character == '\r');
    let by_white_space = || find_without(text, old, char::is_whitespace);
    let (line, difference) = if let Some(offset) = by_line_ends() {
        (lines.number(offset), Difference::LineEnds)
    } else if let Some(offset) = by_white_space() {
        (lines.number(offset), Difference::WhiteSpace)
    } else {
        (most_similar(text, lines, old)?, Difference::Words)
    };
    Some(Nearest {
        line,
        text: shown(text.get(lines.range(line)?)?.trim().as_bytes()),
        difference,
    })
}

/// Where `old` would be if neither had the characters that `left_out` names.
fn find_without(text: &str, old: &str, left_out: fn(char) -> bool) -> Option<usize> {
    let kept = |input: &str| -> String { input.chars().filter(|c| !left_out(*c)).collect() };
    let old = kept(old);
    if old.is_empty() {
        return None;
    }
    let place = kept(text).find(&old)?;
    // As many kept bytes lie before it in the text itself.
    let mut passed = 0;
    for (offset, character) in text.char_indices() {
        if !left_out(character) {
            if passed == place {
                return Some(offset);
            }
            passed += character.len_utf8();
        }
    }
    None
}

/// The line that shares most with the longest line of `old`, when that is half
/// of it at least.
fn most_similar(text: &str, lines: &Lines, old: &str) -> Option<usize> {
    let wanted = old.lines().map(start_of).max_by_key(|line| line.len())?;
    let mut pairs = vec![false; 1 << 16];
    for pair in wanted.windows(2) {
        if let Some(known) = pairs.get_mut(index(pair)) {
            *known = true;
        }
    }
    let mut best = None;
    for number in 1..=lines.count() {
        let line = start_of(text.get(lines.range(number)?)?);
        let known = |pair: &&[u8]| pairs.get(index(pair)).is_some_and(|known| *known);
        let shared = line.windows(2).filter(known).count();
        let most = line.len().max(wanted.len()).saturating_sub(1);
        let percent = (100 * shared.min(most)).checked_div(most).unwrap_or(0);
        if percent >= 50 && best.is_none_or(|(_, most)| percent > most) {
            best = Some((number, percent));
        }
    }
    best.map(|(number, _)| number)
}

fn start_of(line: &str) -> &[u8] {
    let line = line.trim().as_bytes();
    line.get(..COMPARED).unwrap_or(line)
}

fn index(pair: &[u8]) -> usize {
    pair.iter()
        .fold(0, |index, byte| index << 8 | usize::from(*byte))
}
