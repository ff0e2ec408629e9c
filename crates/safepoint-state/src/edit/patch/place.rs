//! Where the lines of a hunk stand in a file.

use std::collections::HashMap;

use crate::edit::EditError;
use crate::edit::lines::check_limit;

/// So many lines are compared for all hunks together before the search is
/// given up: only contents made for it need more.
const MOST_COMPARED: usize = 200_000_000;

/// The lines of a file as numbers: equal lines have equal ones.
pub(super) struct Target<'a> {
    lines: Vec<&'a [u8]>,
    numbers: Vec<u32>,
    known: HashMap<&'a [u8], u32>,
    /// For each number the places of its line. Made for the first search.
    places: Option<Vec<Vec<u32>>>,
    compared: usize,
}

impl<'a> Target<'a> {
    pub(super) fn new(content: &'a [u8]) -> Self {
        let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        let mut numbers = Vec::with_capacity(lines.len());
        for line in &lines {
            // There are fewer lines than a `u32` can count.
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            numbers.push(*known.entry(line).or_insert(next));
        }
        Self {
            lines,
            numbers,
            known,
            places: None,
            compared: 0,
        }
    }

    pub(super) fn lines(&self) -> &[&'a [u8]] {
        &self.lines
    }

    /// The numbers of some lines; nothing when the file lacks one of them.
    pub(super) fn numbers(&self, lines: &[&[u8]]) -> Option<Vec<u32>> {
        lines
            .iter()
            .map(|line| self.known.get(line).copied())
            .collect()
    }

    /// Whether the lines stand at `place`. None of them stand everywhere.
    pub(super) fn has(&self, wanted: &[u32], place: usize) -> bool {
        let end = place.saturating_add(wanted.len());
        self.numbers.get(place..end) == Some(wanted)
    }

    /// All the places where the lines stand, the first `most`.
    pub(super) fn find(&mut self, wanted: &[u32], most: usize) -> Result<Vec<usize>, EditError> {
        let mut found = Vec::new();
        let places = self.places.get_or_insert_with(|| {
            let mut places = vec![Vec::new(); self.known.len()];
            for (place, number) in self.numbers.iter().enumerate() {
                if let (Some(places), Ok(place)) =
                    (places.get_mut(*number as usize), u32::try_from(place))
                {
                    places.push(place);
                }
            }
            places
        });
        // Only where its rarest line stands can all of it stand.
        let rarest = wanted
            .iter()
            .enumerate()
            .filter_map(|(ahead, number)| Some((ahead, places.get(*number as usize)?)))
            .min_by_key(|(_, places)| places.len());
        let Some((ahead, candidates)) = rarest else {
            return Ok(found);
        };
        for candidate in candidates {
            let Some(place) = (*candidate as usize).checked_sub(ahead) else {
                continue;
            };
            let here = self.numbers.get(place..).unwrap_or_default();
            let same = here.iter().zip(wanted).take_while(|(a, b)| a == b).count();
            self.compared += same + 1;
            check_limit(
                "the search for the hunks",
                self.compared,
                MOST_COMPARED,
                "comparisons",
            )?;
            if same == wanted.len() {
                found.push(place);
            }
            if found.len() == most {
                break;
            }
        }
        Ok(found)
    }
}
