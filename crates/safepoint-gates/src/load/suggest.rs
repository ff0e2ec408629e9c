//! What somebody may have meant.

use safepoint_model::text;

/// How much of a text from the atlas is repeated in a message.
const SHOWN: usize = 80;

/// Longer words are not compared: nobody misspells them by two letters.
const LONGEST: usize = 64;

/// A text from the atlas, fit for a message.
pub(super) fn shown(input: &str) -> String {
    let head: String = input.chars().take(SHOWN + 1).collect();
    text::shorten(&text::line(&head).text, SHOWN)
}

/// The one of `known` that is nearest to `word`, if any is near.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = word.chars().take(LONGEST + 1).collect();
    if letters.len() > LONGEST {
        return None;
    }
    let most = (letters.len() / 3).clamp(1, 3);
    known
        .filter(|name| *name != word && name.len() <= LONGEST)
        .map(|name| (distance(&letters, name), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `a`, `b` or `c`, in back-ticks.
pub(super) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{}`", shown(name))).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
    }
}

/// How many letters are added, left out, replaced or swapped with the next.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    let mut last = None;
    for (row, letter) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let at = |line: &[usize], place: usize| line.get(place).copied().unwrap_or(usize::MAX);
            let replaced = at(&above, column) + usize::from(letter != other);
            let added = at(&above, column + 1) + 1;
            let left_out = at(&current, column) + 1;
            let mut best = replaced.min(added).min(left_out);
            let previous = column.checked_sub(1).and_then(|column| to.get(column));
            if column > 0 && previous == Some(letter) && last == Some(other) {
                best = best.min(at(&before, column - 1).saturating_add(1));
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
        last = Some(letter);
    }
    above.last().copied().unwrap_or(usize::MAX)
}
