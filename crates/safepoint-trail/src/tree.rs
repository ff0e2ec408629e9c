//! The Merkle tree of RFC 6962: hashing, growing, proving and checking.
//!
//! Nothing here knows what a leaf means or where hashes are kept; a stranger
//! can read this one file beside the RFC. Numbers of sections are those of
//! RFC 9162, which spells the checking algorithms out.

use safepoint_model::Digest;

/// The hash of a leaf: `SHA-256(0x00 || data)`.
pub fn leaf_hash(data: &[u8]) -> Digest {
    Digest::of_parts(&[&[0x00], data])
}

/// The hash of an inner node: `SHA-256(0x01 || left || right)`.
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    Digest::of_parts(&[&[0x01], left.as_bytes(), right.as_bytes()])
}

/// The root of the tree without leaves.
pub fn empty_root() -> Digest {
    Digest::of_parts(&[])
}

/// The right edge of a tree: the roots of its largest complete subtrees, left
/// to right. It is all that growing the tree and telling its root needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    peaks: Vec<Digest>,
}

impl Frontier {
    /// The tree without leaves.
    pub fn empty() -> Self {
        Self {
            size: 0,
            peaks: Vec::new(),
        }
    }

    /// The frontier of a tree of `size` leaves with these peaks; `None` when
    /// the number of peaks cannot be right.
    pub fn from_peaks(size: u64, peaks: Vec<Digest>) -> Option<Self> {
        (peaks.len() == size.count_ones() as usize).then_some(Self { size, peaks })
    }

    /// How many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The roots of the complete subtrees, largest first.
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// Adds a leaf. `completed` hears of every node that this completes, the
    /// leaf itself first, with its height above the leaves.
    pub fn push(&mut self, leaf: Digest, mut completed: impl FnMut(u32, Digest)) {
        completed(0, leaf);
        let mut node = leaf;
        for height in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                node = node_hash(&left, &node);
                completed(height + 1, node);
            }
        }
        self.peaks.push(node);
        self.size += 1;
    }

    /// The root of the tree.
    pub fn root(&self) -> Digest {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else {
            return empty_root();
        };
        peaks.fold(*last, |right, left| node_hash(left, &right))
    }
}

/// Where the hashes of complete subtrees are read from.
pub trait Nodes {
    /// Why a hash could not be read.
    type Error;

    /// The root of the complete subtree over leaves `index << height ..` to
    /// `(index + 1) << height`.
    fn node(&self, height: u32, index: u64) -> Result<Digest, Self::Error>;
}

/// The frontier of the first `size` leaves.
pub fn frontier<N: Nodes>(nodes: &N, size: u64) -> Result<Frontier, N::Error> {
    let peaks = peaks_of(0, size)
        .map(|(height, index)| nodes.node(height, index))
        .collect::<Result<_, _>>()?;
    Ok(Frontier { size, peaks })
}

/// The inclusion proof of leaf `index` in the first `size` leaves (§2.1.3.1).
/// Empty when the leaf is not among them.
pub fn prove_inclusion<N: Nodes>(
    nodes: &N,
    index: u64,
    size: u64,
) -> Result<Vec<Digest>, N::Error> {
    let mut path = Vec::new();
    let (mut start, mut end) = (0, size);
    while end - start > 1 && index < size {
        let middle = start + split(end - start);
        if index < middle {
            path.push(root_of(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(root_of(nodes, start, middle)?);
            start = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// The proof that the first `old` leaves are those of the tree of `size` leaves (§2.1.4.1).
pub fn prove_consistency<N: Nodes>(
    nodes: &N,
    old: u64,
    size: u64,
) -> Result<Vec<Digest>, N::Error> {
    let mut path = Vec::new();
    if old == 0 || old >= size {
        return Ok(path);
    }
    let (mut start, mut end) = (0, size);
    while end != old {
        let middle = start + split(end - start);
        if old <= middle {
            path.push(root_of(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(root_of(nodes, start, middle)?);
            start = middle;
        }
    }
    if start != 0 {
        path.push(root_of(nodes, start, end)?);
    }
    path.reverse();
    Ok(path)
}

/// Whether `path` proves that `leaf` stands at `index` in the tree of `size` leaves with this root (§2.1.3.2).
pub fn includes(leaf: &Digest, index: u64, size: u64, root: &Digest, path: &[Digest]) -> bool {
    if index >= size {
        return false;
    }
    let (mut node, mut last, mut hash) = (index, size - 1, *leaf);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            hash = node_hash(sibling, &hash);
            while node & 1 == 0 && node != 0 {
                (node, last) = (node >> 1, last >> 1);
            }
        } else {
            hash = node_hash(&hash, sibling);
        }
        (node, last) = (node >> 1, last >> 1);
    }
    last == 0 && hash == *root
}

/// Whether `path` proves that the tree of `old` leaves is a prefix of the tree of `size` leaves (§2.1.4.2).
pub fn extends(old: u64, old_root: &Digest, size: u64, root: &Digest, path: &[Digest]) -> bool {
    if old > size {
        return false;
    }
    if old == size {
        return path.is_empty() && old_root == root;
    }
    if old == 0 {
        return path.is_empty() && *old_root == empty_root();
    }
    let mut path = path.iter();
    let (mut node, mut last) = (old - 1, size - 1);
    while node & 1 == 1 {
        (node, last) = (node >> 1, last >> 1);
    }
    // A complete old tree is itself the first node of the path.
    let seed = if node == 0 {
        Some(old_root)
    } else {
        path.next()
    };
    let Some(seed) = seed else { return false };
    let (mut old_hash, mut hash) = (*seed, *seed);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            old_hash = node_hash(sibling, &old_hash);
            hash = node_hash(sibling, &hash);
            while node & 1 == 0 && node != 0 {
                (node, last) = (node >> 1, last >> 1);
            }
        } else {
            hash = node_hash(&hash, sibling);
        }
        (node, last) = (node >> 1, last >> 1);
    }
    last == 0 && old_hash == *old_root && hash == *root
}

/// The largest power of two smaller than `size`, which is at least 2.
fn split(size: u64) -> u64 {
    1 << (u64::BITS - 1 - (size - 1).leading_zeros())
}

/// The complete subtrees over leaves `start..end`, as heights and indexes, left to right.
/// `start` lies on a boundary at least as large as the range, as it does in every proof.
fn peaks_of(start: u64, end: u64) -> impl Iterator<Item = (u32, u64)> {
    let mut at = start;
    std::iter::from_fn(move || {
        let height = (end - at).checked_ilog2()?;
        let index = at >> height;
        at += 1 << height;
        Some((height, index))
    })
}

fn root_of<N: Nodes>(nodes: &N, start: u64, end: u64) -> Result<Digest, N::Error> {
    let peaks = peaks_of(start, end)
        .map(|(height, index)| nodes.node(height, index))
        .collect::<Result<Vec<_>, _>>()?;
    let mut peaks = peaks.into_iter().rev();
    let Some(last) = peaks.next() else {
        return Ok(empty_root());
    };
    Ok(peaks.fold(last, |right, left| node_hash(&left, &right)))
}
