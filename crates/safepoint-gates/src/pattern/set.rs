//! Many patterns, looked through at once.
//!
//! The patterns make a tree, segment by segment. A name is followed through it
//! in all ways at the same time; a place that is reached twice counts once. So
//! the cost depends on the places that fit the name so far, not on how many
//! patterns there are. It never goes back, whatever the patterns look like.

use std::collections::{BTreeMap, HashMap};

use aho_corasick::AhoCorasick;

use super::{Pattern, Segment, glob_matches, is_action};

/// So many globs of one place are tried one after the other.
const FEW_GLOBS: usize = 4;

/// Many patterns, looked through at once.
#[derive(Clone, Debug, Default)]
pub struct PatternSet {
    nodes: Vec<Node>,
}

/// A place in the tree.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Where a segment with exactly this name leads.
    names: HashMap<Box<str>, usize>,
    /// Where segments of some form lead.
    globs: Globs,
    /// Where any segment leads.
    star: Option<usize>,
    /// Whether any further segment may follow and lead here again.
    stays: bool,
    /// The numbers of the patterns that end here.
    ends: Vec<u32>,
}

/// The globs of one place, and what finds the few that can fit.
#[derive(Clone, Debug, Default)]
struct Globs {
    list: Vec<(Box<str>, usize)>,
    finder: Option<Finder>,
}

/// The longest piece of each glob, all looked for at once.
#[derive(Clone, Debug)]
struct Finder {
    pieces: AhoCorasick,
    /// The globs with that piece.
    of_piece: Vec<Vec<usize>>,
}

impl PatternSet {
    /// The set of these patterns. Several may have the same number.
    pub fn new(patterns: impl IntoIterator<Item = (Pattern, u32)>) -> Self {
        let mut nodes = vec![Node::default()];
        // Only needed while the tree grows: globs by their text.
        let mut globs: HashMap<(usize, Box<str>), usize> = HashMap::new();
        for (pattern, number) in patterns {
            let mut here = 0;
            for segment in pattern.segments() {
                let fresh = nodes.len();
                let Some(node) = nodes.get_mut(here) else {
                    break;
                };
                let next = match segment {
                    Segment::Name(name) => match node.names.get(name) {
                        Some(next) => *next,
                        None => {
                            node.names.insert(name.into(), fresh);
                            fresh
                        }
                    },
                    Segment::Glob(glob) => *globs.entry((here, glob.into())).or_insert_with(|| {
                        node.globs.list.push((glob.into(), fresh));
                        fresh
                    }),
                    Segment::Star => *node.star.get_or_insert(fresh),
                };
                if next == fresh {
                    nodes.push(Node {
                        stays: matches!(segment, Segment::Star),
                        ..Node::default()
                    });
                }
                here = next;
            }
            if let Some(node) = nodes.get_mut(here) {
                node.ends.push(number);
            }
        }
        for node in &mut nodes {
            node.globs.prepare();
        }
        Self { nodes }
    }

    /// Adds the numbers of all patterns that stand for `action` to `found`: in order, each once.
    pub fn matching(&self, action: &str, found: &mut Vec<u32>) {
        if !is_action(action) {
            return;
        }
        let mut here = vec![0];
        let mut next = Vec::new();
        for segment in action.split('.') {
            for place in &here {
                if let Some(node) = self.nodes.get(*place) {
                    node.follow(*place, segment, &mut next);
                }
            }
            next.sort_unstable();
            next.dedup();
            std::mem::swap(&mut here, &mut next);
            next.clear();
        }
        for place in here {
            if let Some(node) = self.nodes.get(place) {
                found.extend_from_slice(&node.ends);
            }
        }
        found.sort_unstable();
        found.dedup();
    }
}

impl Node {
    /// Adds the places that `segment` leads to from here, which is `place`.
    fn follow(&self, place: usize, segment: &str, next: &mut Vec<usize>) {
        if self.stays {
            next.push(place);
        }
        next.extend(self.star);
        if !self.names.is_empty() {
            next.extend(self.names.get(segment).copied());
        }
        self.globs.follow(segment, next);
    }
}

impl Globs {
    /// Makes ready for use, once all globs are there.
    fn prepare(&mut self) {
        if self.list.len() <= FEW_GLOBS {
            return;
        }
        let mut by_piece: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, (glob, _)) in self.list.iter().enumerate() {
            let piece = glob.split('*').max_by_key(|piece| piece.len());
            by_piece
                .entry(piece.unwrap_or_default())
                .or_default()
                .push(index);
        }
        // Without a finder the globs are tried in turn: slower, and as right.
        if let Ok(pieces) = AhoCorasick::new(by_piece.keys()) {
            self.finder = Some(Finder {
                pieces,
                of_piece: by_piece.into_values().collect(),
            });
        }
    }

    fn follow(&self, segment: &str, next: &mut Vec<usize>) {
        let mut attempt = |(glob, target): &(Box<str>, usize)| {
            if glob_matches(glob, segment) {
                next.push(*target);
            }
        };
        let Some(finder) = &self.finder else {
            self.list.iter().for_each(attempt);
            return;
        };
        let mut seen = Vec::new();
        for hit in finder.pieces.find_overlapping_iter(segment) {
            seen.push(hit.pattern().as_usize());
        }
        seen.sort_unstable();
        seen.dedup();
        for index in seen
            .into_iter()
            .filter_map(|piece| finder.of_piece.get(piece))
            .flatten()
        {
            if let Some(glob) = self.list.get(*index) {
                attempt(glob);
            }
        }
    }
}
