//! The trail as tiles, read back by `tlog_tiles`, which shares no code with us.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safepoint_store::Durability;
use safepoint_trail::note::PublicKey;
use safepoint_trail::{Draft, Entry, Trail, TrailError};
use signed_note::{Note, StandardVerifier, VerifierList};
use testkit::{Database, Room, draft, on_every_store};
use tlog_tiles::{Checkpoint, HashReader, Tile, TileHashReader, TileReader};

/// Adds `count` entries in one transaction.
fn grow(room: &Room, trail: &Trail, count: usize) {
    room.clock.move_by(1_000);
    trail
        .write(Durability::Async, |writing| -> Result<(), TrailError> {
            for number in 0..count {
                writing.append(draft(&format!("stream-{}", number % 7), number))?;
            }
            Ok(())
        })
        .unwrap();
}

/// A directory of tiles, as a stranger sees it.
struct Stranger<'a>(&'a Path);

impl Stranger<'_> {
    fn read(&self, tile: &Tile) -> Option<Vec<u8>> {
        // The path of C2SP has no height in it.
        let path = tile.path().replacen("tile/8/", "tile/", 1);
        let path = path.replacen("tile/data/", "tile/entries/", 1);
        std::fs::read(self.0.join(path)).ok()
    }

    fn checkpoint(&self, key: &PublicKey) -> Checkpoint {
        let text = std::fs::read(self.0.join("checkpoint")).unwrap();
        let note = Note::from_bytes(&text).unwrap();
        let verifier = StandardVerifier::new(&key.to_string()).unwrap();
        note.verify(&VerifierList::new(vec![Box::new(verifier)]))
            .unwrap();
        Checkpoint::from_bytes(note.text()).unwrap()
    }

    /// Checks every hash of the tree against the root, and gives the entries of all bundles.
    fn verify(&self, key: &PublicKey) -> Vec<Vec<u8>> {
        let head = self.checkpoint(key);
        let hashes = TileHashReader::new(head.size(), *head.hash(), self);
        let mut entries = Vec::new();
        for bundle in 0..head.size().div_ceil(256) {
            let width = (head.size() - bundle * 256).min(256);
            let tile = Tile::new(8, 0, bundle, u32::try_from(width).unwrap(), true);
            let mut bytes = &self.read(&tile).unwrap()[..];
            while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
                let (entry, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)));
                entries.push(entry.to_vec());
                bytes = rest;
            }
        }
        assert_eq!(entries.len() as u64, head.size());
        let indexes: Vec<u64> = (0..head.size())
            .map(|number| tlog_tiles::stored_hash_index(0, number))
            .collect();
        for (indexes, entries) in indexes.chunks(500).zip(entries.chunks(500)) {
            let found = hashes.read_hashes(indexes).unwrap();
            for (hash, entry) in found.iter().zip(entries) {
                assert_eq!(*hash, tlog_tiles::record_hash(entry));
            }
        }
        entries
    }
}

impl TileReader for Stranger<'_> {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        tiles
            .iter()
            .map(|tile| self.read(tile).ok_or(tlog_tiles::Error::InvalidTile))
            .collect()
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

/// Every file below a directory, and what is in it.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

on_every_store! {
    fn tr_06_a_stranger_reads_and_verifies_the_tiles(room: Room) {
        let trail = room.trail();
        let place = room.path().join("tiles");
        // Sizes on and around the boundaries of tiles; the first entry is the trail's own.
        for count in [0, 1, 253, 1, 1, 255, 2, 700] {
            grow(&room, &trail, count);
            let written = trail.write_tiles(&place, |_| {}).unwrap();
            assert_eq!(written.head, trail.head().unwrap());
            let leaves = Stranger(&place).verify(trail.key());
            let known: Vec<Vec<u8>> = room.entries(&trail).iter().map(Entry::to_leaf).collect();
            assert_eq!(leaves, known);
        }
    }
}

#[test]
fn tr_06_a_tree_of_three_levels_has_the_tiles_of_the_specification() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    grow(&room, &trail, 69_999);
    let place = room.path().join("tiles");
    trail.write_tiles(&place, |_| {}).unwrap();
    // "A tree of size 70,000 will be represented by 273 full level 0 tiles, one partial level
    // 0 tile of width 112, one full level 1 tile, one partial level 1 tile of width 17, and
    // one partial level 2 tile of width 1."
    let all = files(&place);
    let count = |prefix: &str| {
        let prefix = place.join(prefix);
        all.keys().filter(|path| path.starts_with(&prefix)).count()
    };
    assert_eq!(
        (
            count("tile/0"),
            count("tile/1"),
            count("tile/2"),
            count("tile/entries")
        ),
        (274, 2, 1, 274)
    );
    for path in [
        "tile/0/273.p/112",
        "tile/1/001.p/17",
        "tile/2/000.p/1",
        "tile/entries/273.p/112",
    ] {
        assert!(place.join(path).is_file(), "{path}");
    }
    Stranger(&place).verify(trail.key());
    // And once more, further on, from what is there.
    grow(&room, &trail, 1_000);
    let written = trail.write_tiles(&place, |_| {}).unwrap();
    assert_eq!(written.before, 70_000);
    assert!(written.files < 20, "{}", written.files);
    Stranger(&place).verify(trail.key());
}

#[test]
fn tr_06_only_what_is_new_is_written() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    let place = room.path().join("tiles");
    grow(&room, &trail, 599);
    let first = trail.write_tiles(&place, |_| {}).unwrap();
    assert_eq!((first.before, first.files), (0, 7));
    let before = files(&place);
    let again = trail.write_tiles(&place, |_| {}).unwrap();
    assert_eq!((again.before, again.files), (600, 0));
    assert_eq!(files(&place), before, "twice is once");

    grow(&room, &trail, 200);
    let more = trail.write_tiles(&place, |_| {}).unwrap();
    // One full tile and bundle, one partial tile and bundle, and one above.
    assert_eq!((more.before, more.files), (600, 5));
    let after = files(&place);
    for (path, content) in &before {
        let partial = path.to_string_lossy().contains(".p/");
        match after.get(path) {
            Some(now) => assert!(now == content || path.ends_with("checkpoint")),
            None => assert!(partial, "{path:?} is gone"),
        }
    }
    // A full tile stands for its partial ones; where none is full yet, they stay.
    assert!(!place.join("tile/0/002.p").exists());
    assert!(!place.join("tile/entries/002.p").exists());
    assert!(place.join("tile/1/000.p/2").is_file());
    Stranger(&place).verify(trail.key());

    // All at once gives the same as bit by bit.
    let other = room.path().join("other");
    trail.write_tiles(&other, |_| {}).unwrap();
    for (path, content) in files(&other) {
        let path = path.strip_prefix(&other).unwrap();
        assert_eq!(
            std::fs::read(place.join(path)).unwrap(),
            content,
            "{path:?}"
        );
    }
}

#[test]
fn tr_06_what_a_crash_left_is_completed() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    let place = room.path().join("tiles");
    grow(&room, &trail, 399);
    trail.write_tiles(&place, |_| {}).unwrap();
    let old = std::fs::read(place.join("checkpoint")).unwrap();
    grow(&room, &trail, 400);
    trail.write_tiles(&place, |_| {}).unwrap();
    // Killed before the checkpoint was written: tiles are ahead of it, and some half done.
    std::fs::write(place.join("checkpoint"), old).unwrap();
    std::fs::write(place.join("tile/0/003.p/32"), b"torn").unwrap();
    std::fs::create_dir_all(place.join("tile/0/001.p")).unwrap();
    let leaves: Vec<u8> = std::fs::read(place.join("tile/0/001")).unwrap();
    std::fs::write(place.join("tile/0/001.p/144"), &leaves[..144 * 32]).unwrap();
    let written = trail.write_tiles(&place, |_| {}).unwrap();
    assert_eq!(written.before, 400);
    Stranger(&place).verify(trail.key());
}

#[test]
fn tr_06_tiles_of_another_or_a_longer_trail_are_not_continued() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    let place = room.path().join("tiles");
    grow(&room, &trail, 299);
    trail.write_tiles(&place, |_| {}).unwrap();

    let stranger = Room::new(Database::Sqlite);
    let error = stranger.trail().write_tiles(&place, |_| {}).unwrap_err();
    assert!(matches!(error, TrailError::Tiles { .. }), "{error}");

    // A damaged right edge.
    let edge = place.join("tile/0/001.p/44");
    let whole = std::fs::read(&edge).unwrap();
    let mut damaged = whole.clone();
    damaged[0] ^= 1;
    std::fs::write(&edge, damaged).unwrap();
    grow(&room, &trail, 1);
    let error = trail.write_tiles(&place, |_| {}).unwrap_err();
    assert!(matches!(error, TrailError::Tiles { .. }), "{error}");
    std::fs::write(&edge, &whole[32..]).unwrap();
    let error = trail.write_tiles(&place, |_| {}).unwrap_err();
    assert!(matches!(error, TrailError::Tiles { .. }), "{error}");
    std::fs::write(&edge, whole).unwrap();
    trail.write_tiles(&place, |_| {}).unwrap();
}

on_every_store! {
    fn tr_06_a_tampered_entry_is_never_published(room: Room) {
        let trail = room.trail();
        let place = room.path().join("tiles");
        grow(&room, &trail, 299);
        trail.write_tiles(&place, |_| {}).unwrap();
        let published = files(&place);
        grow(&room, &trail, 100);
        let mut entries = room.entries(&trail);
        entries[350].body = r#"{"number":0}"#.to_owned();
        room.rewrite(&entries);
        let error = trail.write_tiles(&place, |_| {}).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
        assert_eq!(files(&place), published);
        // One that was published already is named.
        entries[290].body = r#"{"number":0}"#.to_owned();
        room.rewrite(&entries);
        let TrailError::Tampered(bad) = trail.write_tiles(&place, |_| {}).unwrap_err() else {
            unreachable!("it is tampered with");
        };
        assert_eq!(bad.seq, 290);
    }
}

#[test]
fn tr_06_the_longest_entry_fits_its_bundle() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    let wide = "\u{1f600}";
    let body = serde_json::json!({"t": "x".repeat(safepoint_trail::LARGEST_BODY - 8)});
    trail
        .append(
            Draft {
                stream: wide.repeat(200).parse().unwrap(),
                actor: wide.repeat(200).parse().unwrap(),
                kind: wide.repeat(100).parse().unwrap(),
                action_id: Some("act_0000000000000000".parse().unwrap()),
                body,
            },
            Durability::Sync,
        )
        .unwrap();
    let place = room.path().join("tiles");
    trail.write_tiles(&place, |_| {}).unwrap();
    let leaves = Stranger(&place).verify(trail.key());
    assert!(leaves[1].len() > 62_000, "{}", leaves[1].len());
}
