//! Proofs of a real trail, checked by us and by code that shares nothing with
//! us; and the bytes of an entry, laid out a second time by hand.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use proptest::prelude::*;
use safepoint_model::{ActionId, Digest, EntryId, Timestamp};
use safepoint_store::Durability;
use safepoint_trail::head::{Head, SignedHead};
use safepoint_trail::note::{PublicKey, Signer};
use safepoint_trail::proof::{ProofError, Proven, check, write_consistency, write_inclusion};
use safepoint_trail::{Actor, Entry, Kind, Stream, Surroundings, Trail, TrailError, tree};
use signed_note::{Note, StandardVerifier, VerifierList};
use testkit::{Database, Room, Seeded, append, draft};
use tlog_tiles::{Checkpoint, Hash};

const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn config() -> ProptestConfig {
    let usual = ProptestConfig::default(); // it has read PROPTEST_CASES
    ProptestConfig {
        cases: if usual.cases == 256 { 128 } else { usual.cases },
        failure_persistence: None,
        ..usual
    }
}

// --- A stranger's checker: none of our code, only the specification. ---

/// Base64 of RFC 4648, section 4, in its only canonical spelling.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    let data = text.trim_end_matches('=');
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for character in data.chars() {
        bits = bits << 6 | ALPHABET.find(character)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    let padded =
        text.len().is_multiple_of(4) && text.len() - data.len() == [0, 2, 1][bytes.len() % 3];
    (bits == 0 && count < 6 && padded).then_some(bytes)
}

/// What a stranger reads in a proof: the lines before the head, and the head.
fn stranger_reads<'a>(text: &'a str, key: &str) -> Option<(Vec<&'a str>, Checkpoint)> {
    let (lines, note) = text.split_once("\n\n")?;
    let note = Note::from_bytes(note.as_bytes()).ok()?;
    let verifier = StandardVerifier::new(key).ok()?;
    note.verify(&VerifierList::new(vec![Box::new(verifier)]))
        .ok()?;
    let head = Checkpoint::from_bytes(note.text()).ok()?;
    Some((lines.split('\n').collect(), head))
}

fn stranger_hashes(lines: &[&str]) -> Option<Vec<Hash>> {
    lines
        .iter()
        .map(|line| Some(Hash(unbase64(line)?.try_into().ok()?)))
        .collect()
}

/// The index and the leaf that the text proves to be in the log of that key.
fn stranger_includes(text: &str, key: &str) -> Option<(u64, Vec<u8>)> {
    let (lines, head) = stranger_reads(text, key)?;
    let ["c2sp.org/tlog-proof@v1", extra, index, path @ ..] = lines.as_slice() else {
        return None;
    };
    let leaf = unbase64(extra.strip_prefix("extra ")?)?;
    let index = index.strip_prefix("index ")?.parse().ok()?;
    let path = stranger_hashes(path)?;
    let hash = tlog_tiles::record_hash(&leaf);
    tlog_tiles::check_record(&path, head.size(), *head.hash(), index, hash).ok()?;
    Some((index, leaf))
}

/// The old size and root that the text proves the log of that key to continue.
fn stranger_extends(text: &str, key: &str) -> Option<(u64, Hash)> {
    let (lines, head) = stranger_reads(text, key)?;
    let ["safepoint/consistency-proof/v1", old, path @ ..] = lines.as_slice() else {
        return None;
    };
    let (old, root) = old.strip_prefix("old ")?.split_once(' ')?;
    let old: u64 = old.parse().ok()?;
    let root = Hash(unbase64(root)?.try_into().ok()?);
    let path = stranger_hashes(path)?;
    if old == 0 {
        // The empty tree is the beginning of every tree, and theirs do not say so.
        return (path.is_empty() && root == tlog_tiles::EMPTY_HASH).then_some((old, root));
    }
    tlog_tiles::check_tree(&path, head.size(), *head.hash(), old, root).ok()?;
    Some((old, root))
}

// --- The bytes of an entry, a second time. ---

/// Every field behind its length, in plain code.
fn framed(fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        for shift in [24, 16, 8, 0] {
            bytes.push((field.len() >> shift) as u8);
        }
        bytes.extend(*field);
    }
    bytes
}

fn leaf_by_hand(entry: &Entry) -> Vec<u8> {
    framed(&[
        b"safepoint/entry/v1",
        &entry.seq.to_be_bytes(),
        entry.id.as_str().as_bytes(),
        &entry.time.as_micros().to_be_bytes(),
        entry.stream.as_str().as_bytes(),
        entry.actor.as_str().as_bytes(),
        entry.kind.as_str().as_bytes(),
        entry
            .action_id
            .as_ref()
            .map_or("", ActionId::as_str)
            .as_bytes(),
        entry.body.as_bytes(),
        entry
            .prev_hash
            .as_ref()
            .map_or(&[][..], |hash| hash.as_bytes()),
    ])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An entry with the hash that belongs to it.
fn hashed(mut entry: Entry) -> Entry {
    entry.hash = Digest::from_bytes(tlog_tiles::record_hash(&leaf_by_hand(&entry)).0);
    entry
}

fn sample(seq: u64) -> Entry {
    let mut prev = [0; 32];
    for (number, byte) in (0..).zip(&mut prev) {
        *byte = number;
    }
    hashed(Entry {
        seq,
        id: "ent_0000000000000000000000000a".parse().unwrap(),
        time: Timestamp::from_micros(1_794_726_000_123_456),
        stream: "ses_0123456789abcdef".parse().unwrap(),
        actor: "агент:тест".parse().unwrap(),
        kind: "checkpoint_created".parse().unwrap(),
        action_id: Some("act_zzzzzzzzzzzzzzzz".parse().unwrap()),
        body: r#"{"text":"naïve 日本語 😀"}"#.to_owned(),
        prev_hash: Some(Digest::from_bytes(prev)),
        hash: tree::empty_root(),
    })
}

#[test]
fn tr_02_the_golden_entries() {
    // Both computed with Python's struct and hashlib.
    let full = sample(7);
    assert_eq!(
        hex(&full.to_leaf()),
        "0000001273616665706f696e742f656e7472792f76310000000800000000000000070000001e656e745f3030303030303030303030303030303030303030303030303061000000080006604b35b4de40000000147365735f3031323334353637383961626364656600000013d0b0d0b3d0b5d0bdd1823ad182d0b5d181d18200000012636865636b706f696e745f63726561746564000000146163745f7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a000000207b2274657874223a226e61c3af766520e697a5e69cace8aa9e20f09f9880227d00000020000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    );
    let bare = Entry {
        seq: 0,
        id: "ent_7zzzzzzzzzzzzzzzzzzzzzzzzz".parse().unwrap(),
        time: Timestamp::from_micros(-1),
        stream: Stream::store(),
        actor: Actor::safepoint(),
        kind: Kind::fixed("trail_created").into(),
        action_id: None,
        body: "{}".to_owned(),
        prev_hash: None,
        hash: tree::empty_root(),
    };
    assert_eq!(
        hex(&bare.to_leaf()),
        "0000001273616665706f696e742f656e7472792f76310000000800000000000000000000001e656e745f377a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a00000008ffffffffffffffff0000000573746f72650000000973616665706f696e740000000d747261696c5f6372656174656400000000000000027b7d00000000"
    );
    for (entry, hash) in [
        (
            full,
            "34cce484c281afa841b1ce03d753e447bcec22d3573fb1c253af1d3504d446ee",
        ),
        (
            bare,
            "36547eeab1cfaf89091e6210654cfd5db21a7876bca7a9f4f8fbee8982d61702",
        ),
    ] {
        let leaf = entry.to_leaf();
        assert_eq!(leaf, leaf_by_hand(&entry));
        assert_eq!(hex(&tlog_tiles::record_hash(&leaf).0), hash);
        let read = Entry::from_leaf(&leaf).unwrap();
        assert_eq!(read.hash.to_string(), hash);
        assert_eq!(read, hashed(entry));
    }
}

#[test]
fn tr_02_every_field_is_hashed() {
    let entry = sample(7);
    let changes: [fn(&mut Entry); 11] = [
        |e| e.seq = 8,
        |e| e.id = "ent_0000000000000000000000000b".parse().unwrap(),
        |e| e.time = e.time.next(),
        |e| e.stream = Stream::store(),
        |e| e.actor = Actor::safepoint(),
        |e| e.kind = "checkpoint_create".parse().unwrap(),
        |e| e.action_id = None,
        |e| e.action_id = Some("act_zzzzzzzzzzzzzzzy".parse().unwrap()),
        |e| e.body.push(' '),
        |e| e.prev_hash = None,
        |e| e.prev_hash = Some(tree::empty_root()),
    ];
    let mut leaves = vec![entry.to_leaf()];
    for change in changes {
        let mut other = entry.clone();
        change(&mut other);
        assert!(!leaves.contains(&other.to_leaf()), "{other:?}");
        leaves.push(other.to_leaf());
    }
}

#[test]
fn tr_02_what_is_not_quite_an_entry_is_not_read_as_one() {
    let entry = sample(7);
    let leaf = entry.to_leaf();
    let parts = safepoint_model::split_frame(&leaf).unwrap();
    assert_eq!(parts.len(), 10);
    let with = |at: usize, part: &'static [u8]| {
        let mut parts = parts.clone();
        parts[at] = part;
        framed(&parts)
    };
    let mut bad = vec![
        Vec::new(),
        leaf[1..].to_vec(),
        framed(&parts[..9]),
        framed(&[&parts[..], &[b""]].concat()),
        [&leaf[..], b"\0"].concat(),
        with(0, b"safepoint/entry/v2"),
        with(1, b"\x07"),
        with(2, b"ent_0"),
        with(3, b""),
        with(7, b"act_"),
        with(8, b"\xff"),
        with(9, b"short"),
    ];
    for name in [4, 5, 6] {
        bad.extend([
            with(name, b""),
            with(name, b"a b"),
            with(name, b"a\n"),
            with(name, b"\xc3"),
        ]);
    }
    for cut in 0..leaf.len() {
        bad.push(leaf[..cut].to_vec());
    }
    for bad in bad {
        assert_eq!(Entry::from_leaf(&bad), None, "{}", hex(&bad));
    }
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let name = |longest: usize| {
        prop::collection::vec(any::<char>(), 1..longest).prop_map(|characters| {
            let plain = |c: &char| !c.is_whitespace() && !c.is_control();
            let text: String = characters.into_iter().filter(plain).collect();
            if text.is_empty() {
                "x".to_owned()
            } else {
                text
            }
        })
    };
    (
        any::<u64>(),
        "ent_[0-9a-hjkmnp-tv-z]{26}",
        any::<i64>(),
        (name(200), name(200), name(100)),
        prop::option::of("act_[0-9a-hjkmnp-tv-z]{16}"),
        any::<String>(),
        prop::option::of(any::<[u8; 32]>()),
    )
        .prop_map(
            |(seq, id, time, (stream, actor, kind), action, body, prev)| {
                hashed(Entry {
                    seq,
                    id: id.parse::<EntryId>().unwrap(),
                    time: Timestamp::from_micros(time),
                    stream: stream.parse().unwrap(),
                    actor: actor.parse().unwrap(),
                    kind: kind.parse().unwrap(),
                    action_id: action.map(|id| id.parse().unwrap()),
                    body: serde_json::json!({ "text": body }).to_string(),
                    prev_hash: prev.map(Digest::from_bytes),
                    hash: tree::empty_root(),
                })
            },
        )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn tr_02_an_entry_is_read_back_from_its_leaf(entry in any_entry()) {
        let leaf = entry.to_leaf();
        prop_assert_eq!(&leaf, &leaf_by_hand(&entry));
        prop_assert_eq!(Entry::from_leaf(&leaf), Some(entry));
    }

    /// One leaf is one entry: bytes that are read as an entry are that entry's bytes.
    #[test]
    fn tr_02_no_two_leaves_are_one_entry(
        entry in any_entry(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut leaf = entry.to_leaf();
        let at = at.index(leaf.len());
        prop_assume!(leaf[at] != byte);
        leaf[at] = byte;
        if let Some(other) = Entry::from_leaf(&leaf) {
            prop_assert_eq!(other.to_leaf(), leaf);
            prop_assert_ne!(other, entry);
        }
    }

    #[test]
    fn tr_02_any_bytes_are_read_without_panic(bytes: Vec<u8>, tail: Vec<u8>) {
        prop_assert_eq!(Entry::from_leaf(&bytes), None);
        let mut leaf = framed(&[b"safepoint/entry/v1", &[0; 8]]);
        leaf.extend(&tail);
        prop_assert_eq!(Entry::from_leaf(&leaf), None);
        let fields: Vec<&[u8]> = tail.chunks(8).collect();
        let leaf = framed(&[&[&b"safepoint/entry/v1"[..]], &fields[..]].concat());
        prop_assert_eq!(Entry::from_leaf(&leaf), None);
    }

    #[test]
    fn tr_05_any_text_is_checked_without_panic(text: String, lines: Vec<String>) {
        let key = Signer::generate("log", &Seeded::new(1)).unwrap().public().clone();
        prop_assert!(check(&text, &key).is_err());
        for first in ["c2sp.org/tlog-proof@v1", "safepoint/consistency-proof/v1"] {
            let text = format!("{first}\n{}", lines.join("\n"));
            prop_assert!(check(&text, &key).is_err());
        }
    }
}

/// The roots over the first 0, 1, 2 … leaves, by a stranger's reckoning.
fn stranger_roots(entries: &[Entry]) -> Vec<Hash> {
    struct Stored(Vec<Hash>);
    impl tlog_tiles::HashReader for Stored {
        fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<Hash>, tlog_tiles::Error> {
            Ok(indexes.iter().map(|at| self.0[*at as usize]).collect())
        }
    }
    let mut stored = Stored(Vec::new());
    let mut roots = vec![tlog_tiles::EMPTY_HASH];
    for (index, entry) in (0..).zip(entries) {
        let more = tlog_tiles::stored_hashes(index, &leaf_by_hand(entry), &stored).unwrap();
        stored.0.extend(more);
        roots.push(tlog_tiles::tree_hash(index + 1, &stored).unwrap());
    }
    roots
}

#[test]
fn tr_05_every_proof_of_a_trail_is_believed_by_us_and_by_strangers() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    let key = trail.key().clone();
    let mut size = 1;
    // From 257 on, hashes are read from the stored level over 256 leaves, and
    // from 512 on there are two of them; those entries come in one transaction.
    for target in [1, 2, 3, 7, 64, 257, 300, 520_u64] {
        if target == 520 {
            room.clock.move_by(1_000);
            trail
                .write(Durability::Sync, |writing| -> Result<(), TrailError> {
                    for number in size..target {
                        writing.append(draft("batch", number as usize))?;
                    }
                    Ok(())
                })
                .unwrap();
        }
        for number in trail.head().unwrap().size()..target {
            room.clock.move_by(1_000);
            append(&trail, &format!("stream-{}", number % 3), number as usize);
        }
        size = target;

        let entries = room.entries(&trail);
        assert_eq!(entries.len() as u64, size);
        let roots = stranger_roots(&entries);
        let now = |head: &SignedHead| (head.size(), Hash(*head.root().as_bytes()));
        for (index, entry) in (0..).zip(&entries) {
            let text = trail.prove(entry).unwrap();
            let Proven::Inclusion {
                entry: proven,
                head,
            } = check(&text, &key).unwrap()
            else {
                panic!("another kind of proof: {text}");
            };
            assert_eq!(&*proven, entry);
            assert_eq!(now(&head), (size, roots[size as usize]));
            let leaf = leaf_by_hand(entry);
            let believed = stranger_includes(&text, &key.to_string());
            assert_eq!(believed, Some((index, leaf)), "{index} of {size}\n{text}");
        }
        for old in 0..=size {
            let text = trail.prove_consistency(old).unwrap();
            let Proven::Consistency {
                old_size,
                old_root,
                head,
            } = check(&text, &key).unwrap()
            else {
                panic!("another kind of proof: {text}");
            };
            let root = roots[old as usize];
            assert_eq!((old_size, Hash(*old_root.as_bytes())), (old, root));
            assert_eq!(now(&head), (size, roots[size as usize]));
            let believed = stranger_extends(&text, &key.to_string());
            assert_eq!(believed, Some((old, root)), "{old} of {size}\n{text}");
        }
        assert!(matches!(
            trail.prove_consistency(size + 1),
            Err(TrailError::NotFound(_))
        ));
    }
}

/// A log in memory: a signer, and a proof of each kind.
struct Log {
    signer: Signer,
    entries: Vec<Entry>,
    nodes: Vec<Vec<Digest>>,
}

impl tree::Nodes for Log {
    type Error = std::convert::Infallible;

    fn node(&self, height: u32, index: u64) -> Result<Digest, Self::Error> {
        Ok(self.nodes[height as usize][index as usize])
    }
}

impl Log {
    fn new(size: u64) -> Self {
        let entries: Vec<_> = (0..size).map(sample).collect();
        let mut frontier = tree::Frontier::empty();
        let mut nodes = vec![Vec::new(); 64];
        for entry in &entries {
            frontier.push(entry.hash, |height, node| nodes[height as usize].push(node));
        }
        Self {
            signer: Signer::generate("log.example/ä", &Seeded::new(1)).unwrap(),
            entries,
            nodes,
        }
    }

    fn key(&self) -> &PublicKey {
        self.signer.public()
    }

    fn root(&self, size: u64) -> Digest {
        let Ok(frontier) = tree::frontier(self, size);
        frontier.root()
    }

    fn head(&self) -> SignedHead {
        let size = self.entries.len() as u64;
        let head = Head {
            origin: self.key().name().to_owned(),
            size,
            root: self.root(size),
        };
        head.sign(&self.signer)
    }

    fn inclusion(&self, index: u64) -> String {
        let Ok(path) = tree::prove_inclusion(self, index, self.entries.len() as u64);
        write_inclusion(&self.entries[index as usize], &path, &self.head())
    }

    fn consistency(&self, old: u64) -> String {
        let Ok(path) = tree::prove_consistency(self, old, self.entries.len() as u64);
        write_consistency(old, &self.root(old), &path, &self.head())
    }

    /// Proofs with no hashes, with few, and of both kinds.
    fn proofs() -> Vec<(Self, String)> {
        [(1, 0, 0), (1, 0, 1), (7, 6, 4), (11, 10, 7)]
            .into_iter()
            .flat_map(|(size, index, old)| {
                let (one, two) = (Self::new(size), Self::new(size));
                let (inclusion, consistency) = (one.inclusion(index), two.consistency(old));
                [(one, inclusion), (two, consistency)]
            })
            .collect()
    }
}

#[test]
fn tr_05_one_other_character_anywhere_spoils_a_proof() {
    for (log, text) in Log::proofs() {
        assert!(check(&text, log.key()).is_ok(), "{text}");
        let characters: Vec<char> = text.chars().collect();
        let is = |altered: &str| {
            let believed = check(altered, log.key());
            assert!(believed.is_err(), "{altered}\nis believed like\n{text}");
        };
        for (at, old) in characters.iter().enumerate() {
            let before: String = characters[..at].iter().collect();
            let after: String = characters[at + 1..].iter().collect();
            is(&format!("{before}{after}"));
            is(&format!("{before}{old}{old}{after}"));
            // Where base64 ends, bits may be left over: try the whole alphabet.
            let mut others = "A1=\n \u{301}".to_owned();
            if after.starts_with(['=', '\n']) {
                others.push_str(ALPHABET);
            }
            if old.is_ascii_alphabetic() {
                others.push(char::from(*old as u8 ^ 0x20));
            }
            if old.is_ascii() {
                others.push(char::from(*old as u8 ^ 1));
            }
            for other in others.chars().filter(|other| other != old) {
                is(&format!("{before}{other}{after}"));
            }
            for more in ['\n', '=', ' ', '0'] {
                is(&format!("{before}{more}{old}{after}"));
            }
        }
        for more in ["\n", " ", "=", "x", "\n\n", "— x AQIDBAU="] {
            is(&format!("{text}{more}"));
        }
        is(&text.replace('\n', "\r\n"));
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn tr_05_an_altered_proof_is_refused(
        which in 0..8_usize,
        at: prop::sample::Index,
        with in prop_oneof![any::<char>(), prop::char::range(' ', '~'), Just('\n')],
    ) {
        let (log, text) = Log::proofs().swap_remove(which);
        let mut characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len());
        prop_assume!(characters[at] != with);
        characters[at] = with;
        let altered: String = characters.into_iter().collect();
        prop_assert!(check(&altered, log.key()).is_err(), "{}", altered);
        let key = log.key().to_string();
        prop_assert_eq!(stranger_includes(&altered, &key), None);
        prop_assert_eq!(stranger_extends(&altered, &key), None);
    }
}

#[test]
fn tr_05_lines_cannot_be_dropped_doubled_or_exchanged() {
    for (log, text) in Log::proofs() {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for at in 0..lines.len() {
            let mut other = lines.clone();
            other.remove(at);
            assert!(
                check(&other.concat(), log.key()).is_err(),
                "without {at}: {text}"
            );
            let mut other = lines.clone();
            other.insert(at, lines[at]);
            // Its last line is a signature, and that one may be there twice.
            let harmless = at + 1 == lines.len();
            assert_eq!(
                check(&other.concat(), log.key()).is_ok(),
                harmless,
                "{at} twice: {text}"
            );
            for with in (at + 1..lines.len()).filter(|with| lines[*with] != lines[at]) {
                let mut other = lines.clone();
                other.swap(at, with);
                assert!(
                    check(&other.concat(), log.key()).is_err(),
                    "{at} for {with}: {text}"
                );
            }
        }
    }
}

#[test]
fn tr_05_a_proof_needs_the_key_of_its_log() {
    let (room, other_room) = (Room::new(Database::Sqlite), Room::new(Database::Sqlite));
    let trail = room.filled_trail(6);
    let around = Surroundings {
        entropy: Arc::new(Seeded::new(0xbad5eed)),
        ..other_room.surroundings()
    };
    let other = Trail::open(other_room.store(), &around).unwrap();
    let namesake = Signer::generate(trail.key().name(), &Seeded::new(9)).unwrap();
    assert_ne!(trail.key(), other.key());
    let entries = room.entries(&trail);
    for text in [
        trail.prove(&entries[3]).unwrap(),
        trail.prove_consistency(3).unwrap(),
    ] {
        assert!(check(&text, trail.key()).is_ok());
        for key in [other.key(), namesake.public()] {
            assert!(
                matches!(check(&text, key), Err(ProofError::Head(_))),
                "{key}"
            );
        }
    }
    // The head of another log under the proof, with its own good signature.
    let text = trail.prove(&entries[0]).unwrap();
    let (lines, _) = text.split_once("\n\n").unwrap();
    let mixed = format!("{lines}\n\n{}", other.head().unwrap().note());
    assert_eq!(check(&mixed, other.key()), Err(ProofError::NotIncluded));
    assert!(matches!(
        check(&mixed, trail.key()),
        Err(ProofError::Head(_))
    ));
}

#[test]
fn tr_05_an_entry_is_proven_at_its_own_place_only() {
    let log = Log::new(7);
    for index in 0..7 {
        let text = log.inclusion(index);
        for other in (0..9).filter(|other| *other != index) {
            let moved = text.replace(&format!("\nindex {index}\n"), &format!("\nindex {other}\n"));
            assert_eq!(check(&moved, log.key()), Err(ProofError::NotIncluded));
            if other < 7 {
                let extra = |text: &str| text.lines().nth(1).unwrap().to_owned();
                let swapped = text.replace(&extra(&text), &extra(&log.inclusion(other)));
                assert_eq!(check(&swapped, log.key()), Err(ProofError::NotIncluded));
            }
        }
        let unnamed = text.replace(text.split_inclusive('\n').nth(1).unwrap(), "");
        assert_eq!(check(&unnamed, log.key()), Err(ProofError::NoEntry));
        for odd in ["+", "0", " "] {
            let odd = text.replace("\nindex ", &format!("\nindex {odd}"));
            assert!(
                matches!(check(&odd, log.key()), Err(ProofError::Shape(_))),
                "{odd}"
            );
        }
    }
}

#[test]
fn tr_05_a_signed_log_of_something_else_proves_no_entry() {
    // Properly signed and properly hashed, but the leaf says that it is number
    // 5, or is no entry at all.
    let signer = Signer::generate("log.example", &Seeded::new(1)).unwrap();
    let misplaced = sample(5).to_leaf();
    for leaf in [&misplaced[..], b"", b"not an entry"] {
        let head = Head {
            origin: "log.example".into(),
            size: 1,
            root: tree::leaf_hash(leaf),
        };
        let text = format!(
            "c2sp.org/tlog-proof@v1\nextra {}\nindex 0\n\n{}",
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, leaf),
            head.sign(&signer).note()
        );
        let key = signer.public();
        let believed = stranger_includes(&text, &key.to_string());
        assert_eq!(
            believed,
            Some((0, leaf.to_vec())),
            "a stranger knows no entries"
        );
        assert!(matches!(check(&text, key), Err(ProofError::Shape(_))));
    }
}

#[test]
fn tr_05_cosignatures_do_not_disturb_a_proof() {
    let witness = Signer::generate("witness.example", &Seeded::new(5)).unwrap();
    for (log, text) in Log::proofs() {
        let note = witness.sign(log.head().head().to_text().as_str());
        let line = note.rsplit("\n\n").next().unwrap();
        let cosigned = format!("{text}{line}");
        assert!(check(&cosigned, log.key()).is_ok());
        let key = log.key().to_string();
        let (plain, more) = (
            stranger_includes(&text, &key),
            stranger_includes(&cosigned, &key),
        );
        assert_eq!(plain, more);
    }
}

#[test]
fn tr_05_the_other_kind_of_proof_is_not_the_same() {
    let log = Log::new(7);
    for (text, first, other) in [
        (
            log.inclusion(3),
            "c2sp.org/tlog-proof@v1",
            "safepoint/consistency-proof/v1",
        ),
        (
            log.consistency(3),
            "safepoint/consistency-proof/v1",
            "c2sp.org/tlog-proof@v1",
        ),
    ] {
        let text = text.strip_prefix(first).unwrap();
        let shape = check(&format!("{other}{text}"), log.key());
        assert!(matches!(shape, Err(ProofError::Shape(_))), "{shape:?}");
        let unknown = check(&format!("{first}0{text}"), log.key());
        assert_eq!(unknown, Err(ProofError::Unknown));
    }
    let many = "A".repeat(43) + "=\n";
    let (lines, note) = {
        let text = log.inclusion(3);
        let (lines, note) = text.split_once("\n\n").unwrap();
        (lines.to_owned(), note.to_owned())
    };
    let long = format!("{lines}\n{}\n{note}", many.repeat(100_000));
    assert!(matches!(check(&long, log.key()), Err(ProofError::Shape(_))));
}
