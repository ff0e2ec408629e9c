//! From characters to what is shown.

use super::hazard::{hazard, is_confusable, is_mark};
use super::{Hazard, Layout, Shown};

/// How many marks a letter may carry. Living scripts need no more.
const MOST_MARKS: usize = 4;

/// One piece of the input.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Char(char),
    /// A byte that is not part of any character.
    Byte(u8),
}

pub(super) fn render(units: &[Unit], layout: Layout) -> Shown {
    let mut found: Vec<_> = units.iter().map(|unit| alone(*unit, layout)).collect();
    mark_confusables(units, &mut found);
    mark_marks(units, &mut found);
    let text = spell(units, &found);
    let mut hazards: Vec<_> = found.into_iter().flatten().collect();
    hazards.sort_unstable();
    hazards.dedup();
    Shown { text, hazards }
}

/// What is wrong with `unit`, whatever stands around it.
fn alone(unit: Unit, layout: Layout) -> Option<Hazard> {
    match unit {
        Unit::Char('\n' | '\t') if layout == Layout::Block => None,
        Unit::Char(c) => hazard(c),
        Unit::Byte(_) => Some(Hazard::NotUtf8),
    }
}

/// Finds the look-alikes in every word that also has ASCII letters.
///
/// What takes no room does not end a word: it cannot be used to set a
/// look-alike apart.
fn mark_confusables(units: &[Unit], found: &mut [Option<Hazard>]) {
    let mut word_start = 0;
    let ends = (0..=units.len()).filter(|end| !units.get(*end).is_some_and(|unit| in_word(*unit)));
    for end in ends {
        let word = units.get(word_start..end).unwrap_or_default();
        let is_mixed = word
            .iter()
            .any(|unit| matches!(unit, Unit::Char(c) if c.is_ascii_alphabetic()));
        let slots = found.get_mut(word_start..end).unwrap_or_default();
        for (unit, slot) in word.iter().zip(slots).filter(|_| is_mixed) {
            match unit {
                Unit::Char(c) if slot.is_none() && is_confusable(*c) => {
                    *slot = Some(Hazard::Confusable);
                }
                _ => {}
            }
        }
        word_start = end + 1;
    }
}

fn in_word(unit: Unit) -> bool {
    match unit {
        Unit::Char(c) => {
            c.is_alphanumeric()
                || c == '_'
                || is_mark(c)
                || matches!(hazard(c), Some(Hazard::ZeroWidth | Hazard::Bidi))
        }
        Unit::Byte(_) => false,
    }
}

/// Finds the marks that would pile up, or be drawn onto something that is not
/// the text: what stands before it, or an escape.
fn mark_marks(units: &[Unit], found: &mut [Option<Hazard>]) {
    let mut room = 0;
    for (unit, slot) in units.iter().zip(found) {
        room = match (unit, &slot) {
            (Unit::Char(c), None) if is_mark(*c) => match room {
                0 => {
                    *slot = Some(Hazard::Marks);
                    0
                }
                _ => room - 1,
            },
            (Unit::Char('\n' | '\t'), _) | (_, Some(_)) => 0,
            _ => MOST_MARKS,
        };
    }
}

fn spell(units: &[Unit], found: &[Option<Hazard>]) -> String {
    let mut text = String::with_capacity(units.len() + 16);
    let mut rest = units.iter().zip(found).peekable();
    while let Some((unit, hazard)) = rest.next() {
        match (unit, hazard) {
            (Unit::Byte(byte), _) => text.push_str(&format!("\\x{byte:02x}")),
            (Unit::Char('\n'), Some(_)) => text.push_str("\\n"),
            (Unit::Char('\r'), Some(_)) => text.push_str("\\r"),
            (Unit::Char('\t'), Some(_)) => text.push_str("\\t"),
            (Unit::Char(c), Some(_)) => text.push_str(&format!("\\u{{{:x}}}", u32::from(*c))),
            (Unit::Char('\\'), None) => {
                let begins_escape = rest.peek().is_some_and(|(next, hazard)| {
                    hazard.is_some()
                        || matches!(next, Unit::Char('\\' | 'n' | 'r' | 't' | 'u' | 'x'))
                });
                text.push_str(if begins_escape { "\\\\" } else { "\\" });
            }
            (Unit::Char(c), None) => text.push(*c),
        }
    }
    text
}
