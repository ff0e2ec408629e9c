//! Our Merkle tree beside `tlog_tiles`, which shares no code with it, and beside published vectors.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::convert::Infallible;
use std::sync::LazyLock;

use proptest::prelude::*;
use safepoint_model::Digest;
use safepoint_trail::tree::{self, Frontier, Nodes};
use tlog_tiles::{Hash, HashReader};

/// One tree of some leaves, grown by both implementations.
struct Grown {
    /// Ours: for each height, the roots of the complete subtrees of that height.
    levels: Vec<Vec<Digest>>,
    /// Theirs, in their own order.
    stored: Stored,
}

struct Stored(Vec<Hash>);

impl HashReader for Stored {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<Hash>, tlog_tiles::Error> {
        Ok(indexes.iter().map(|at| self.0[*at as usize]).collect())
    }
}

impl Nodes for Grown {
    type Error = Infallible;

    fn node(&self, height: u32, index: u64) -> Result<Digest, Infallible> {
        Ok(self.levels[height as usize][index as usize])
    }
}

impl Grown {
    fn new(size: u64) -> Self {
        let mut frontier = Frontier::empty();
        let mut levels: Vec<Vec<Digest>> = Vec::new();
        let mut stored = Stored(Vec::new());
        for number in 0..size {
            let data = format!("leaf {number}");
            frontier.push(tree::leaf_hash(data.as_bytes()), |height, node| {
                if levels.len() <= height as usize {
                    levels.push(Vec::new());
                }
                levels[height as usize].push(node);
            });
            let more = tlog_tiles::stored_hashes(number, data.as_bytes(), &stored).unwrap();
            stored.0.extend(more);
        }
        Self { levels, stored }
    }

    fn leaf(&self, index: u64) -> Digest {
        self.levels[0][index as usize]
    }

    /// The root by their reckoning.
    fn root(&self, size: u64) -> Digest {
        ours(&tlog_tiles::tree_hash(size, &self.stored).unwrap())
    }

    fn inclusion(&self, index: u64, size: u64) -> Vec<Digest> {
        let Ok(path) = tree::prove_inclusion(self, index, size);
        path
    }

    fn consistency(&self, old: u64, size: u64) -> Vec<Digest> {
        let Ok(path) = tree::prove_consistency(self, old, size);
        path
    }

    fn their_inclusion(&self, index: u64, size: u64) -> Vec<Digest> {
        let path = tlog_tiles::prove_record(size, index, &self.stored).unwrap();
        path.iter().map(ours).collect()
    }

    fn their_consistency(&self, old: u64, size: u64) -> Vec<Digest> {
        let path = tlog_tiles::prove_tree(size, old, &self.stored).unwrap();
        path.iter().map(ours).collect()
    }
}

fn ours(hash: &Hash) -> Digest {
    Digest::from_bytes(hash.0)
}

fn theirs(digest: &Digest) -> Hash {
    Hash(*digest.as_bytes())
}

/// Their verdict on an inclusion proof, with the arguments in our order.
fn they_include(leaf: &Digest, index: u64, size: u64, root: &Digest, path: &[Digest]) -> bool {
    let path = path.iter().map(theirs).collect();
    tlog_tiles::check_record(&path, size, theirs(root), index, theirs(leaf)).is_ok()
}

/// Their verdict on a consistency proof. They have none for an old tree without leaves.
fn they_extend(old: u64, old_root: &Digest, size: u64, root: &Digest, path: &[Digest]) -> bool {
    let path = path.iter().map(theirs).collect();
    tlog_tiles::check_tree(&path, size, theirs(root), old, theirs(old_root)).is_ok()
}

fn flipped(digest: &Digest, bit: usize) -> Digest {
    let mut bytes = *digest.as_bytes();
    bytes[bit / 8 % 32] ^= 1 << (bit % 8);
    Digest::from_bytes(bytes)
}

/// Every small change to a path: another bit in each hash, one left out, one
/// too many, two in each other's place.
fn corruptions(path: &[Digest]) -> Vec<Vec<Digest>> {
    let mut all = Vec::new();
    for at in 0..path.len() {
        for bit in [0, 7, 8 * at + 3, 255] {
            let mut other = path.to_vec();
            other[at] = flipped(&path[at], bit);
            all.push(other);
        }
        let mut less = path.to_vec();
        less.remove(at);
        all.push(less);
        for with in at + 1..path.len() {
            let mut other = path.to_vec();
            other.swap(at, with);
            all.push(other);
        }
    }
    for at in 0..=path.len() {
        let doubled = path.get(at).or(path.last()).copied();
        for extra in [Some(tree::empty_root()), doubled].into_iter().flatten() {
            let mut more = path.to_vec();
            more.insert(at, extra);
            all.push(more);
        }
    }
    all
}

fn config() -> ProptestConfig {
    let usual = ProptestConfig::default(); // it has read PROPTEST_CASES
    ProptestConfig {
        cases: if usual.cases == 256 { 128 } else { usual.cases },
        failure_persistence: None,
        ..usual
    }
}

#[test]
fn tr_02_roots_are_those_of_another_implementation() {
    let grown = Grown::new(300);
    let mut frontier = Frontier::empty();
    for size in 0..=300 {
        let root = grown.root(size);
        assert_eq!(frontier.size(), size);
        assert_eq!(frontier.root(), root, "pushed: {size}");
        let Ok(read) = tree::frontier(&grown, size);
        assert_eq!(read, frontier, "read back: {size}");
        if size < 300 {
            frontier.push(grown.leaf(size), |_, _| {});
        }
    }
}

#[test]
fn tr_02_hashing_is_that_of_another_implementation() {
    for data in [&b""[..], b"\0", b"leaf", &[0xff; 1000]] {
        assert_eq!(
            tree::leaf_hash(data),
            ours(&tlog_tiles::record_hash(data)),
            "{data:?}"
        );
    }
    let (left, right) = (tree::leaf_hash(b"left"), tree::leaf_hash(b"right"));
    let node = tlog_tiles::node_hash(theirs(&left), theirs(&right));
    assert_eq!(tree::node_hash(&left, &right), ours(&node));
    assert_ne!(tree::node_hash(&right, &left), ours(&node));
    assert_eq!(tree::empty_root(), ours(&tlog_tiles::EMPTY_HASH));
}

#[test]
fn tr_02_growing_tells_of_exactly_the_complete_subtrees() {
    let grown = Grown::new(300);
    let mut frontier = Frontier::empty();
    for number in 0..300_u64 {
        let mut completed = Vec::new();
        frontier.push(grown.leaf(number), |height, node| {
            completed.push((height, node))
        });
        // A subtree of height h is complete after every 2^h leaves.
        let expected: Vec<_> = (0..64)
            .take_while(|height| (number + 1) % (1 << height) == 0)
            .map(|height| {
                let at = tlog_tiles::stored_hash_index(height, number >> height);
                (u32::from(height), ours(&grown.stored.0[at as usize]))
            })
            .collect();
        assert_eq!(completed, expected, "{number}");
    }
}

#[test]
fn tr_02_a_frontier_is_its_peaks() {
    let grown = Grown::new(300);
    for size in 0..300 {
        let Ok(frontier) = tree::frontier(&grown, size);
        let peaks = frontier.peaks().to_vec();
        let mut again = Frontier::from_peaks(size, peaks.clone()).unwrap();
        assert_eq!(again, frontier);
        again.push(grown.leaf(size), |_, _| {});
        assert_eq!(again.root(), grown.root(size + 1), "grown on from {size}");

        let mut more = peaks.clone();
        more.push(tree::empty_root());
        assert_eq!(Frontier::from_peaks(size, more), None, "{size}");
        if let Some((_, fewer)) = peaks.split_last() {
            assert_eq!(Frontier::from_peaks(size, fewer.to_vec()), None, "{size}");
        }
    }
}

#[test]
fn tr_05_inclusion_proofs_pass_between_implementations() {
    let grown = Grown::new(130);
    for size in 1..=130 {
        let root = grown.root(size);
        for index in 0..size {
            let leaf = grown.leaf(index);
            let path = grown.inclusion(index, size);
            assert_eq!(
                path,
                grown.their_inclusion(index, size),
                "{index} of {size}"
            );
            assert!(
                they_include(&leaf, index, size, &root, &path),
                "ours, {index} of {size}"
            );
            assert!(
                tree::includes(&leaf, index, size, &root, &path),
                "theirs, {index} of {size}"
            );
        }
        assert_eq!(grown.inclusion(size, size), [], "there is no leaf {size}");
    }
}

#[test]
fn tr_05_consistency_proofs_pass_between_implementations() {
    let grown = Grown::new(130);
    for size in 1..=130 {
        let root = grown.root(size);
        for old in 1..=size {
            let old_root = grown.root(old);
            let path = grown.consistency(old, size);
            assert_eq!(path, grown.their_consistency(old, size), "{old} of {size}");
            assert!(
                they_extend(old, &old_root, size, &root, &path),
                "ours, {old} of {size}"
            );
            assert!(
                tree::extends(old, &old_root, size, &root, &path),
                "theirs, {old} of {size}"
            );
        }
    }
}

#[test]
fn tr_05_every_tree_extends_the_empty_one_and_nothing_else_of_size_zero() {
    let grown = Grown::new(5);
    for size in 0..=5 {
        let root = grown.root(size);
        assert_eq!(grown.consistency(0, size), []);
        assert!(tree::extends(0, &tree::empty_root(), size, &root, &[]));
        assert!(!tree::extends(0, &grown.root(1), size, &root, &[]));
        assert!(!tree::extends(0, &tree::empty_root(), size, &root, &[root]));
    }
    let other = grown.root(1);
    assert!(!tree::extends(0, &tree::empty_root(), 0, &other, &[]));
}

#[test]
fn tr_05_a_corrupted_inclusion_proof_is_refused() {
    let grown = Grown::new(40);
    for size in 1..=33 {
        let root = grown.root(size);
        for index in 0..size {
            let leaf = grown.leaf(index);
            let path = grown.inclusion(index, size);
            for other in corruptions(&path) {
                assert!(
                    !tree::includes(&leaf, index, size, &root, &other),
                    "{index} of {size}: {other:?}"
                );
            }
            for other in (0..size + 3).filter(|other| *other != index) {
                assert!(
                    !tree::includes(&leaf, other, size, &root, &path),
                    "{other} for {index} of {size}"
                );
            }
            for bit in [0, 100, 255] {
                let other = flipped(&root, bit);
                assert!(!tree::includes(&leaf, index, size, &other, &path));
                let other = flipped(&leaf, bit);
                assert!(!tree::includes(&other, index, size, &root, &path));
            }
            for other in (0..=40).filter(|other| *other != size) {
                let other_root = grown.root(other);
                assert!(
                    !tree::includes(&leaf, index, size, &other_root, &path),
                    "{index} of {size} against the root of {other}"
                );
                // A path binds the size only as far as the shape of the tree
                // shows in it; the signed head binds the rest.
                assert_eq!(
                    tree::includes(&leaf, index, other, &root, &path),
                    they_include(&leaf, index, other, &root, &path),
                    "{index} of {size} as if of {other}"
                );
            }
        }
    }
}

#[test]
fn tr_05_a_corrupted_consistency_proof_is_refused() {
    let grown = Grown::new(40);
    for size in 1..=33 {
        let root = grown.root(size);
        for old in 1..=size {
            let old_root = grown.root(old);
            let path = grown.consistency(old, size);
            for other in corruptions(&path) {
                assert!(
                    !tree::extends(old, &old_root, size, &root, &other),
                    "{old} of {size}: {other:?}"
                );
            }
            for bit in [0, 100, 255] {
                let other = flipped(&root, bit);
                assert!(!tree::extends(old, &old_root, size, &other, &path));
                let other = flipped(&old_root, bit);
                assert!(!tree::extends(old, &other, size, &root, &path));
            }
            for other in (0..=40).filter(|other| *other != old) {
                assert!(
                    !tree::extends(other, &old_root, size, &root, &path),
                    "{other} for {old} of {size}"
                );
                let other_root = grown.root(other);
                assert!(
                    !tree::extends(old, &other_root, size, &root, &path),
                    "{old} of {size} from the root of {other}"
                );
            }
            for other in (0..=40).filter(|other| *other != size) {
                let other_root = grown.root(other);
                assert!(
                    !tree::extends(old, &old_root, size, &other_root, &path),
                    "{old} of {size} against the root of {other}"
                );
                assert_eq!(
                    tree::extends(old, &old_root, other, &root, &path),
                    they_extend(old, &old_root, other, &root, &path),
                    "{old} of {size} as if of {other}"
                );
            }
        }
    }
}

#[test]
fn tr_05_absurd_sizes_are_refused_and_not_stumbled_over() {
    let (a, b) = (tree::leaf_hash(b"a"), tree::leaf_hash(b"b"));
    let numbers = [0, 1, 2, 3, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 1];
    for first in numbers.into_iter().chain([u64::MAX]) {
        for second in numbers.into_iter().chain([u64::MAX]) {
            for length in [2, 63, 64, 65, 200] {
                let path = vec![b; length];
                assert!(!tree::includes(&a, first, second, &b, &path));
                assert!(!tree::extends(first, &a, second, &b, &path));
            }
        }
    }
}

#[test]
fn tr_02_the_vectors_of_certificate_transparency() {
    // The eight leaves of the reference tests of Certificate Transparency.
    let leaves: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    const H1: &str = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
    const H23: &str = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
    const H4567: &str = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";
    const H4: &str = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
    const H45: &str = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";
    const H67: &str = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";

    let mut frontier = Frontier::empty();
    let mut grown = Grown {
        levels: vec![Vec::new(); 4],
        stored: Stored(Vec::new()),
    };
    assert_eq!(frontier.root().to_string(), roots[0]);
    for (leaf, root) in leaves.into_iter().zip(&roots[1..]) {
        frontier.push(tree::leaf_hash(leaf), |height, node| {
            grown.levels[height as usize].push(node);
        });
        assert_eq!(frontier.root().to_string(), *root);
    }
    let hex = |path: Vec<Digest>| -> Vec<String> { path.iter().map(Digest::to_string).collect() };
    assert_eq!(hex(grown.inclusion(0, 1)), [""; 0]);
    assert_eq!(hex(grown.inclusion(0, 8)), [H1, H23, H4567]);
    assert_eq!(hex(grown.inclusion(5, 8)), [H4, H67, roots[4]]);
    assert_eq!(hex(grown.inclusion(2, 3)), [roots[2]]);
    assert_eq!(hex(grown.inclusion(1, 5)), [roots[1], H23, H4]);
    assert_eq!(hex(grown.consistency(1, 1)), [""; 0]);
    assert_eq!(hex(grown.consistency(1, 8)), [H1, H23, H4567]);
    assert_eq!(hex(grown.consistency(6, 8)), [H45, H67, roots[4]]);
    assert_eq!(hex(grown.consistency(2, 5)), [H23, H4]);
}

const LARGE: u64 = 100_000;
static LARGE_TREE: LazyLock<Grown> = LazyLock::new(|| Grown::new(LARGE));

proptest! {
    #![proptest_config(config())]

    #[test]
    fn tr_05_large_trees_prove_alike(size in 1..=LARGE, place: prop::sample::Index, bit in 0..256_usize) {
        let grown = &*LARGE_TREE;
        let root = grown.root(size);
        let Ok(frontier) = tree::frontier(grown, size);
        prop_assert_eq!(frontier.root(), root);

        let index = place.index(size as usize) as u64;
        let leaf = grown.leaf(index);
        let path = grown.inclusion(index, size);
        prop_assert_eq!(&path, &grown.their_inclusion(index, size));
        prop_assert!(they_include(&leaf, index, size, &root, &path));
        prop_assert!(tree::includes(&leaf, index, size, &root, &path));

        let old = index + 1;
        let old_root = grown.root(old);
        let proof = grown.consistency(old, size);
        prop_assert_eq!(&proof, &grown.their_consistency(old, size));
        prop_assert!(they_extend(old, &old_root, size, &root, &proof));
        prop_assert!(tree::extends(old, &old_root, size, &root, &proof));

        for at in 0..path.len() {
            let mut other = path.clone();
            other[at] = flipped(&path[at], bit);
            prop_assert!(!tree::includes(&leaf, index, size, &root, &other));
        }
        for at in 0..proof.len() {
            let mut other = proof.clone();
            other[at] = flipped(&proof[at], bit);
            prop_assert!(!tree::extends(old, &old_root, size, &root, &other));
        }
    }

    /// Right hashes in wrong places: both must judge the same, whatever that is.
    #[test]
    fn tr_05_shuffled_proofs_are_judged_alike(
        size in 1..=70_u64,
        true_size in 1..=70_u64,
        place in 0..70_u64,
        old in 1..=70_u64,
        nodes in prop::collection::vec((0..3_u32, 0..16_u64), 0..8),
        keep in 0..8_usize,
    ) {
        let grown = &*LARGE_TREE;
        let root = grown.root(true_size);
        let leaf = grown.leaf(place);
        let strangers: Vec<_> = nodes
            .iter()
            .map(|(height, index)| grown.levels[*height as usize][*index as usize])
            .collect();
        let honest = grown.inclusion(place.min(true_size - 1), true_size);
        let path: Vec<_> = honest.into_iter().take(keep).chain(strangers.iter().copied()).collect();
        prop_assert_eq!(
            tree::includes(&leaf, place, size, &root, &path),
            they_include(&leaf, place, size, &root, &path)
        );
        let old_root = grown.root(old);
        let honest = grown.consistency(old.min(true_size), true_size);
        let path: Vec<_> = honest.into_iter().take(keep).chain(strangers).collect();
        prop_assert_eq!(
            tree::extends(old, &old_root, size, &root, &path),
            they_extend(old, &old_root, size, &root, &path)
        );
    }
}
