//! Changes to a text, collected first and made at once.

use std::ops::Range;

/// Parts of a text with what takes their place.
#[derive(Debug, Default)]
pub(super) struct Splices(Vec<(Range<usize>, String)>);

impl Splices {
    pub(super) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.replace(range, "");
    }

    pub(super) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        let text = text.into();
        if !range.is_empty() || !text.is_empty() {
            self.0.push((range, text));
        }
    }

    /// A part of the text after the changes. Insertions at one place keep their
    /// order, and stand before what is replaced there. What is removed may be
    /// removed twice. Nothing comes out when changes overlap otherwise, or leave
    /// the part.
    pub(super) fn apply(mut self, text: &str, part: Range<usize>) -> Option<String> {
        self.0.sort_by_key(|(range, _)| (range.start, range.end));
        let mut output = String::with_capacity(part.len());
        let mut done = part.start;
        for (range, new) in &self.0 {
            if new.is_empty() && range.start < done {
                done = done.max(range.end);
                continue;
            }
            output.push_str(text.get(done..range.start)?);
            output.push_str(new);
            done = range.end;
        }
        output.push_str(text.get(done..part.end)?);
        Some(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splices_are_made_in_order() {
        let mut splices = Splices::default();
        splices.remove(3..4);
        splices.insert(1, "x");
        splices.insert(3, "1");
        splices.insert(3, "2");
        assert_eq!(splices.apply("abcdef", 1..5).unwrap(), "xbc12e");
        let mut splices = Splices::default();
        splices.remove(1..3);
        splices.remove(2..4);
        assert_eq!(splices.apply("abcdef", 0..6).unwrap(), "aef");
        let mut splices = Splices::default();
        splices.remove(1..3);
        splices.insert(2, "x");
        assert_eq!(splices.apply("abcdef", 0..6), None);
    }
}
