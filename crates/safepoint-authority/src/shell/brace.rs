//! Braces: one word that becomes several.

use super::expand::{Unit, WORDS};

/// The words that braces make of one. None when there are too many.
pub(super) fn braces(units: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    let mut open = None;
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    for (index, unit) in units.iter().enumerate() {
        match unit {
            Unit::Letter('{') => {
                if depth == 0 {
                    open = Some(index);
                    commas.clear();
                }
                depth += 1;
            }
            Unit::Letter(',') if depth == 1 => commas.push(index),
            Unit::Letter('}') if depth > 0 => {
                depth -= 1;
                if depth > 0 {
                    continue;
                }
                let Some(start) = open else { continue };
                let inner = units.get(start + 1..index).unwrap_or_default();
                let before = units.get(..start).unwrap_or_default();
                let after = units.get(index + 1..).unwrap_or_default();
                let parts: Vec<Vec<Unit>> = if commas.is_empty() {
                    match range(inner) {
                        Some(parts) => parts,
                        // Bash goes on to look for the end: `{a},b}` is `a}` and `b`.
                        None if may_end_later(after) => return None,
                        None => continue,
                    }
                } else {
                    let mut parts = Vec::new();
                    let mut from = start + 1;
                    for end in commas.iter().copied().chain([index]) {
                        parts.push(units.get(from..end).unwrap_or_default().to_vec());
                        from = end + 1;
                    }
                    parts
                };
                let mut made = Vec::new();
                for part in parts {
                    let mut whole = before.to_vec();
                    whole.extend(part);
                    whole.extend_from_slice(after);
                    made.extend(braces(&whole)?);
                    if made.len() > WORDS {
                        return None;
                    }
                }
                return Some(made);
            }
            _ => {}
        }
    }
    // Shells find braces within one that does not end.
    if depth > 0 && may_end_later(units) {
        return None;
    }
    Some(vec![units.to_vec()])
}

/// Whether these units may be the rest of a brace that makes several words.
fn may_end_later(units: &[Unit]) -> bool {
    let has = |letter: char| {
        let mut units = units.iter();
        units.any(|unit| matches!(unit, Unit::Letter(found) if *found == letter))
    };
    let mut pairs = units.windows(2);
    let has_range = pairs.any(|pair| matches!(pair, [Unit::Letter('.'), Unit::Letter('.')]));
    has('}') && (has(',') || has_range)
}

/// `{1..5}`: some names.
fn range(inner: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    let mut text = String::new();
    for unit in inner {
        match unit {
            Unit::Letter(letter) => text.push(*letter),
            Unit::Number | Unit::Unknown { .. } | Unit::One(_) => text.push('0'),
            _ => return None,
        }
    }
    let plain = text.split("..").all(|part| {
        !part.is_empty()
            && part
                .chars()
                .all(|next| next.is_ascii_alphanumeric() || next == '-')
    });
    (text.contains("..") && plain).then(|| vec![vec![Unit::Number]])
}
