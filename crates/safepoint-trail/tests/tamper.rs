//! Every tampering is found and named, on both databases; nothing is found on an honest trail.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

use safepoint_model::Digest;
use safepoint_store::{Durability, StoreError};
use safepoint_trail::head::Head;
use safepoint_trail::note::Signer;
use safepoint_trail::tree::Frontier;
use safepoint_trail::{Bad, Copy, Entry, Trail, TrailError, Verification};
use testkit::{Database, Room, Seeded, append, draft, on_every_store};

/// How many entries the trails here have, besides the first.
const COUNT: usize = 20;

fn verify(room: &Room) -> Verification {
    room.trail().verify(|_| {}).unwrap()
}

#[track_caller]
fn expect_bad(room: &Room, seq: u64, reason: &str) {
    let bad = verify(room).first_bad.expect("the tampering is not found");
    assert_eq!(bad.seq, seq, "{bad}");
    assert!(bad.reason.contains(reason), "{bad}");
}

/// The entry with another body and everything else, hash included, made to fit.
fn forged(entry: &Entry, change: impl FnOnce(&mut Entry)) -> Entry {
    let mut entry = entry.clone();
    change(&mut entry);
    rehashed(&entry)
}

fn rehashed(entry: &Entry) -> Entry {
    Entry::from_leaf(&entry.to_leaf()).unwrap()
}

/// Chains `entries` anew from `start` on: what somebody who knows the format would do.
fn rechained(entries: &mut [Entry], start: usize) {
    for place in start..entries.len() {
        let stream = entries[place].stream.clone();
        let before = entries[..place]
            .iter()
            .rev()
            .find(|entry| entry.stream == stream);
        entries[place].prev_hash = before.map(|entry| entry.hash);
        entries[place] = rehashed(&entries[place]);
    }
}

/// Puts a head over `entries` into the database, signed by a key of the forger's own.
fn forge_head(room: &Room, entries: &[Entry], origin: &str) {
    let mut frontier = Frontier::empty();
    for entry in entries {
        frontier.push(entry.hash, |_, _| {});
    }
    let head = Head {
        origin: origin.to_owned(),
        size: frontier.size(),
        root: frontier.root(),
    };
    let forger = Signer::generate(origin, &Seeded::new(99)).unwrap();
    let peaks: String = frontier.peaks().iter().map(Digest::to_string).collect();
    let blob = |hex: &str| match room.database() {
        Database::Sqlite => format!("x'{hex}'"),
        Database::Postgres => format!("'\\x{hex}'"),
    };
    room.tamper(&format!(
        "UPDATE trail_head SET size = {}, peaks = {}, note = '{}'",
        frontier.size(),
        blob(&peaks),
        head.sign(&forger).note(),
    ));
}

fn origin(trail: &Trail) -> String {
    trail.key().name().to_owned()
}

on_every_store! {
    fn tr_04_an_honest_trail_is_good(room: Room) {
        let trail = room.filled_trail(COUNT);
        let found = trail.verify(|_| {}).unwrap();
        let entries = COUNT as u64 + 1;
        assert_eq!(found, Verification { checked: entries, witnessed: entries, copy: Copy::Kept, first_bad: None });
        drop(trail);
        assert_eq!(verify(&room), found);
    }

    fn tr_04_an_edit_is_found(room: Room) {
        drop(room.filled_trail(COUNT));
        room.tamper("UPDATE trail_entries SET body = '{\"number\":0}' WHERE seq = 7");
        expect_bad(&room, 7, "does not match its hash");
        let id = verify(&room).first_bad.unwrap().id.unwrap();
        assert!(id.starts_with("ent_"), "{id}");
    }

    fn tr_04_an_edit_of_any_field_is_found(room: Room) {
        drop(room.filled_trail(COUNT));
        for change in [
            "id = 'ent_00000000000000000000000000'",
            "time = time + 1",
            "stream = 'stream-9'",
            "actor = 'somebody'",
            "kind = 'else'",
            "action_id = 'act_0000000000000000'",
            "body = body || ' '",
            "prev_hash = hash",
            "hash = prev_hash",
        ] {
            room.tamper(&format!(
                "CREATE TABLE saved AS SELECT * FROM trail_entries; UPDATE trail_entries SET {change} WHERE seq = 9"
            ));
            let bad = verify(&room).first_bad.unwrap_or_else(|| Bad::at(0, change));
            assert_eq!(bad.seq, 9, "{change}: {bad}");
            room.tamper("DELETE FROM trail_entries; INSERT INTO trail_entries SELECT * FROM saved; DROP TABLE saved");
        }
        assert_eq!(verify(&room).first_bad, None);
    }

    fn tr_04_a_deletion_is_found(room: Room) {
        drop(room.filled_trail(COUNT));
        room.tamper("DELETE FROM trail_entries WHERE seq = 5");
        expect_bad(&room, 5, "missing");
    }

    fn tr_04_a_deletion_that_closes_the_gap_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let mut entries = room.entries(&trail);
        entries.remove(5);
        for (place, entry) in entries.iter_mut().enumerate() {
            entry.seq = place as u64;
        }
        rechained(&mut entries, 5);
        room.rewrite(&entries);
        forge_head(&room, &entries, &origin(&trail));
        expect_bad(&room, 5, "not the entry that was signed");
    }

    fn tr_04_a_swap_is_found(room: Room) {
        drop(room.filled_trail(COUNT));
        room.tamper("UPDATE trail_entries SET seq = -1 WHERE seq = 4; UPDATE trail_entries SET seq = 4 WHERE seq = 11; UPDATE trail_entries SET seq = 11 WHERE seq = -1");
        expect_bad(&room, 4, "does not match its hash");
    }

    fn tr_04_an_insertion_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let mut entries = room.entries(&trail);
        let inserted = forged(&entries[6], |entry| entry.body = "{\"number\":-1}".into());
        entries.insert(6, inserted);
        for (place, entry) in entries.iter_mut().enumerate().skip(6) {
            entry.seq = place as u64;
            entry.time = entry.time.next();
        }
        rechained(&mut entries, 6);
        room.rewrite(&entries);
        expect_bad(&room, 6, "not the entry that was signed");
    }

    fn tr_04_an_insertion_between_is_found(room: Room) {
        drop(room.filled_trail(COUNT));
        room.tamper("INSERT INTO trail_entries SELECT -1, id, time, stream, actor, kind, action_id, body, prev_hash, hash FROM trail_entries WHERE seq = 3");
        expect_bad(&room, 0, "before the first");
    }

    fn tr_04_an_addition_at_the_end_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let mut entries = room.entries(&trail);
        let added = forged(&entries[COUNT], |entry| {
            entry.seq += 1;
            entry.time = entry.time.next();
            entry.prev_hash = Some(entry.hash);
        });
        entries.push(added);
        room.rewrite(&entries);
        expect_bad(&room, COUNT as u64 + 1, "not covered by the signed head");
    }

    fn tr_04_a_changed_time_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let mut entries = room.entries(&trail);
        entries[8] = forged(&entries[8], |entry| entry.time = entry.time.next());
        room.rewrite(&entries);
        expect_bad(&room, 8, "not the entry that was signed");
    }

    fn tr_04_a_consistent_rewrite_of_one_chain_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let mut entries = room.entries(&trail);
        entries[10] = forged(&entries[10], |entry| entry.body = "{\"number\":666}".into());
        rechained(&mut entries, 10);
        room.rewrite(&entries);
        expect_bad(&room, 10, "not the entry that was signed");
    }

    fn tr_04_a_rewrite_of_all_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let mut entries = room.entries(&trail);
        for entry in &mut entries {
            *entry = forged(entry, |entry| entry.actor = "nobody".parse().unwrap());
        }
        rechained(&mut entries, 0);
        room.rewrite(&entries);
        forge_head(&room, &entries, &origin(&trail));
        expect_bad(&room, 0, "not the entry that was signed");
    }

    fn tr_04_an_edited_last_entry_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let mut entries = room.entries(&trail);
        entries[COUNT] = forged(&entries[COUNT], |entry| entry.body = "{}".into());
        room.rewrite(&entries);
        forge_head(&room, &entries, &origin(&trail));
        expect_bad(&room, COUNT as u64, "not the entry that was signed");
    }

    fn tr_04_a_cut_tail_is_found(room: Room) {
        drop(room.filled_trail(COUNT));
        room.tamper("DELETE FROM trail_entries WHERE seq > 15");
        expect_bad(&room, 16, "missing");
    }

    fn tr_04_an_older_copy_of_the_database_is_found(room: Room) {
        // The head it holds is genuinely signed: only the copy outside knows of more.
        let trail = room.filled_trail(10);
        room.tamper("CREATE TABLE old_entries AS SELECT * FROM trail_entries; CREATE TABLE old_head AS SELECT * FROM trail_head");
        for number in 0..5 {
            append(&trail, "stream-1", number);
        }
        drop(trail);
        room.tamper("DELETE FROM trail_entries; INSERT INTO trail_entries SELECT * FROM old_entries; DELETE FROM trail_head; INSERT INTO trail_head SELECT * FROM old_head");
        expect_bad(&room, 11, "missing");
        let error = room.trail().append(draft("s", 1), Durability::Sync).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
    }

    fn tr_04_a_wrong_key_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let entries = room.entries(&trail);
        forge_head(&room, &entries, &origin(&trail));
        expect_bad(&room, COUNT as u64 + 1, "not signed by the key");
        let error = room.trail().append(draft("s", 1), Durability::Sync).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
    }

    fn tr_04_a_wrong_key_outside_the_database_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let forger = Signer::generate(&origin(&trail), &Seeded::new(5)).unwrap();
        let head = trail.head().unwrap().head().clone().sign(&forger);
        let id = origin(&trail).rsplit('/').next().unwrap().to_owned();
        let mut slots = head.note().as_bytes().to_vec();
        slots.resize(1024, b'\n');
        let path = room.witnesses().join(id).join("head");
        safepoint_store::durable::write(&path, &slots, safepoint_store::durable::Access::Private).unwrap();
        expect_bad(&room, 0, "not signed by the key");
    }

    fn tr_04_another_key_in_the_database_is_found(room: Room) {
        let trail = room.filled_trail(COUNT);
        let forger = Signer::generate(&origin(&trail), &Seeded::new(5)).unwrap();
        room.tamper(&format!("UPDATE trail_log SET verifier_key = '{}'", forger.public()));
        let error = Trail::open(room.store(), &room.surroundings()).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
    }

    fn tr_04_a_hostile_name_of_the_log_leads_nowhere(room: Room) {
        drop(room.filled_trail(1));
        for name in ["safepoint/..", "safepoint/../../keys", "../log_0123456789abcdef", "safepoint/log_"] {
            let forger = Signer::generate(name, &Seeded::new(5)).unwrap();
            room.tamper(&format!("UPDATE trail_log SET verifier_key = '{}'", forger.public()));
            let error = Trail::open(room.store(), &room.surroundings()).unwrap_err();
            assert!(matches!(error, TrailError::Tampered(_)), "{name}: {error}");
        }
    }

    fn tr_04_a_deleted_trail_is_found(room: Room) {
        drop(room.filled_trail(COUNT));
        room.tamper("DELETE FROM trail_entries; DELETE FROM trail_head; DELETE FROM trail_log");
        let error = Trail::open(room.store(), &room.surroundings()).unwrap_err();
        let TrailError::StoreLost { size, .. } = error else { panic_with(&error) };
        // Whoever takes the key away with it has not made it another trail.
        remove_directory(&room.surroundings().keys);
        let again = Trail::open(room.store(), &room.surroundings()).unwrap_err();
        assert!(matches!(again, TrailError::StoreLost { .. }), "{again}");
        assert_eq!(size, COUNT as u64 + 1);
        // Whoever decides to go on leaves a record of the loss.
        let mut around = room.surroundings();
        around.lost_store = safepoint_trail::LostStore::StartAnew;
        around.entropy = std::sync::Arc::new(Seeded::new(4711));
        let trail = Trail::open(room.store(), &around).unwrap();
        let first = trail.find("0").unwrap();
        assert!(first.body.contains("\"size\":21"), "{}", first.body);
    }

    fn tr_04_a_deleted_copy_is_told_of(room: Room) {
        drop(room.filled_trail(5));
        remove_directory(&room.witnesses());
        let found = verify(&room);
        let since = 6;
        assert_eq!((found.first_bad, found.copy), (None, Copy::MadeAnew { since }));
        // It stays known, and the trail has an entry about it.
        let found = verify(&room);
        assert_eq!((found.first_bad, found.copy), (None, Copy::MadeAnew { since }));
        let last = room.trail().find("6").unwrap();
        assert_eq!(last.kind.as_str(), "trail_copy_made_anew");
        assert!(last.body.contains("\"size\":6"), "{}", last.body);
        assert!(room.trail().find("7").is_err(), "it is recorded once");
    }

    fn tr_04_a_cut_tail_is_found_though_the_head_outside_was_deleted(room: Room) {
        let trail = room.filled_trail(10);
        room.tamper("CREATE TABLE old_entries AS SELECT * FROM trail_entries; CREATE TABLE old_head AS SELECT * FROM trail_head");
        for number in 0..5 {
            append(&trail, "stream-1", number);
        }
        drop(trail);
        room.tamper("DELETE FROM trail_entries; INSERT INTO trail_entries SELECT * FROM old_entries; DELETE FROM trail_head; INSERT INTO trail_head SELECT * FROM old_head");
        let mut logs = std::fs::read_dir(room.witnesses()).unwrap();
        let head = logs.next().unwrap().unwrap().path().join("head");
        std::fs::remove_file(head).unwrap();
        let error = Trail::open(room.store(), &room.surroundings()).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
    }

    fn tr_04_a_missing_large_body_is_found(room: Room) {
        let trail = room.filled_trail(3);
        let mut large = draft("s", 1);
        large.body = serde_json::json!({"text": "x".repeat(100_000)});
        let entry = trail.append(large, Durability::Sync).unwrap();
        assert!(entry.body.len() < 200 && trail.body(&entry).unwrap().len() > 100_000);
        assert_eq!(verify(&room).first_bad, None);
        remove_directory(&room.path().join("blobs"));
        expect_bad(&room, 4, "blob");
        let error = room.trail().body(&entry).unwrap_err();
        assert!(matches!(error, TrailError::Store(StoreError::Corrupted { .. })), "{error}");
    }

    fn tr_04_a_forged_time_of_the_last_entry_is_not_built_upon(room: Room) {
        drop(room.filled_trail(5));
        room.tamper("UPDATE trail_entries SET time = 253402300000000000 WHERE seq = 5");
        let error = room.trail().append(draft("s", 1), Durability::Sync).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
        expect_bad(&room, 5, "does not match its hash");
    }

    fn tr_04_a_forged_last_entry_of_a_stream_is_not_chained_to(room: Room) {
        let trail = room.filled_trail(6);
        let mut entries = room.entries(&trail);
        assert_eq!(entries[5].stream.as_str(), "stream-1");
        entries[5] = forged(&entries[5], |entry| entry.body = "{}".into());
        room.rewrite(&entries);
        let error = room.trail().append(draft("stream-1", 1), Durability::Sync).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
        room.trail().append(draft("stream-2", 1), Durability::Sync).unwrap();
    }

    fn tr_04_nothing_is_signed_on_top_of_a_fork(room: Room) {
        // Another machine has seen less than the database once held.
        drop(room.filled_trail(4));
        let mut other = room.surroundings();
        other.witnesses = room.path().join("other");
        drop(Trail::open(room.store(), &other).unwrap());
        let trail = room.trail();
        append(&trail, "s", 1);
        let forked = room.entries(&trail);
        append(&trail, "s", 2);
        drop(trail);
        // An entry behind the other machine's witness is changed; the head stays genuine.
        let mut entries = room.entries(&room.trail());
        entries[6] = forged(&forked[6], |entry| entry.body = "{}".into());
        room.rewrite(&entries);
        let trail = Trail::open(room.store(), &other).unwrap();
        let before = room.entries(&trail).len();
        let error = trail.append(draft("s", 3), Durability::Sync).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
        assert_eq!(room.entries(&trail).len(), before, "nothing was added");
    }

    fn tr_04_an_entry_far_behind_the_end_is_found(room: Room) {
        drop(room.filled_trail(5));
        let far = i64::MAX;
        room.tamper(&format!("INSERT INTO trail_entries SELECT {far}, id, time, stream, actor, kind, action_id, body, prev_hash, hash FROM trail_entries WHERE seq = 3"));
        expect_bad(&room, 6, "not covered by the signed head");
        let query = safepoint_trail::Query {
            since: Some(safepoint_model::Timestamp::from_micros(0)),
            ..Default::default()
        };
        let listed = room.trail().entries(&query, |_| Ok::<_, TrailError>(safepoint_store::Flow::More));
        listed.unwrap();
    }

    fn tr_04_changed_peaks_are_found(room: Room) {
        drop(room.filled_trail(5));
        let zeros = match room.database() {
            Database::Sqlite => "zeroblob(64)",
            Database::Postgres => "decode(repeat('00', 64), 'hex')",
        };
        room.tamper(&format!("UPDATE trail_head SET peaks = {zeros}"));
        expect_bad(&room, 5, "peaks");
    }

    fn tr_04_a_deleted_head_is_found(room: Room) {
        drop(room.filled_trail(5));
        room.tamper("DELETE FROM trail_head");
        expect_bad(&room, 6, "gone");
    }

    fn tr_05_an_entry_that_was_tampered_with_has_no_proof(room: Room) {
        drop(room.filled_trail(5));
        room.tamper("UPDATE trail_entries SET body = '{}' WHERE seq = 3");
        let trail = room.trail();
        let error = trail.prove(&trail.find("3").unwrap()).unwrap_err();
        assert!(matches!(error, TrailError::Tampered(_)), "{error}");
        trail.prove(&trail.find("2").unwrap()).unwrap();
    }

    fn tr_04_hiding_entries_from_queries_is_found(room: Room) {
        for what in ["kind:tested", "actor:agent:test"] {
            let room = Room::new(room.database());
            drop(room.filled_trail(3));
            room.tamper(&format!("DELETE FROM trail_blocks WHERE name LIKE '{what}'"));
            expect_bad(&room, 0, "table of blocks");
        }
    }

    fn tr_04_the_block_that_misses_something_is_named(room: Room) {
        let trail = room.trail();
        let added: Result<(), TrailError> = trail.write(Durability::Sync, |writing| {
            (0..1_000).try_for_each(|number| writing.append(draft("s", number)).map(drop))
        });
        added.unwrap();
        drop(trail);
        room.tamper("DELETE FROM trail_blocks WHERE name = 'kind:tested' AND block = 2");
        expect_bad(&room, 512, "is missing from the table");
        // Also where an entry further on is bad.
        room.tamper("UPDATE trail_entries SET body = '{}' WHERE seq = 900");
        expect_bad(&room, 512, "is missing from the table");
    }

    fn tr_04_what_the_table_of_blocks_has_too_much_is_named(room: Room) {
        let trail = room.trail();
        let added: Result<(), TrailError> = trail.write(Durability::Sync, |writing| {
            (0..600).try_for_each(|number| writing.append(draft("s", number)).map(drop))
        });
        added.unwrap();
        drop(trail);
        room.tamper("INSERT INTO trail_blocks (name, block) VALUES ('kind:tested', 3)");
        expect_bad(&room, 601, "beyond the last entry");
        room.tamper("INSERT INTO trail_blocks (name, block) VALUES ('kind:other', 1)");
        expect_bad(&room, 256, "names a kind, actor or action that is not here");
        let huge = "INSERT INTO trail_blocks (name, block) VALUES ('kind:tested', 9223372036854775807)";
        let refused = room.store().write(Durability::Sync, |sql| sql.execute(huge, &[]));
        assert!(refused.is_err());
    }

    fn tr_04_nothing_but_the_entries_says_what_comes_last_in_a_stream(room: Room) {
        let trail = room.trail();
        let added: Result<(), TrailError> = trail.write(Durability::Sync, |writing| {
            (0..600).try_for_each(|number| writing.append(draft("s", number)).map(drop))
        });
        added.unwrap();
        drop(trail);
        room.tamper("DELETE FROM trail_blocks");
        // Somebody who knows nothing of the stream chains to its end all the same.
        let trail = room.trail();
        let entry = trail.append(draft("s", 600), Durability::Sync).unwrap();
        let last = trail.find(&(entry.seq - 1).to_string()).unwrap();
        assert_eq!(entry.prev_hash, Some(last.hash));
    }

    fn tr_05_what_tells_which_entry_was_changed_is_not_written_over(room: Room) {
        let mut entries = room.entries(&room.filled_trail(5));
        entries[5].body = "{}".to_owned();
        entries[5] = rehashed(&entries[5]);
        room.rewrite(&entries);
        let trail = room.trail();
        assert!(!trail.is_genuine(&entries[5]).unwrap());
        trail.prove(&entries[5]).unwrap_err();
        expect_bad(&room, 5, "not the entry that was signed");
    }

    fn tr_01_the_database_refuses_to_change_entries(room: Room) {
        let trail = room.filled_trail(3);
        for statement in [
            "UPDATE trail_entries SET body = '{}' WHERE seq = 1",
            "DELETE FROM trail_entries WHERE seq = 3",
            "UPDATE trail_log SET verifier_key = 'x'",
            "DELETE FROM trail_log",
            "DELETE FROM trail_head",
            "INSERT INTO trail_entries SELECT seq + 10, id, time, stream, actor, kind, action_id, body, prev_hash, hash FROM trail_entries WHERE seq = 1",
        ] {
            let refused = room.store().write(Durability::Sync, |sql| sql.execute(statement, &[]));
            assert!(refused.is_err(), "{statement}");
        }
        if room.database() == Database::Sqlite {
            let replace = "INSERT OR REPLACE INTO trail_entries SELECT * FROM trail_entries WHERE seq = 1";
            assert!(room.store().write(Durability::Sync, |sql| sql.execute(replace, &[])).is_err());
        }
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }
}

#[expect(clippy::panic, reason = "tests")]
fn panic_with(error: &TrailError) -> ! {
    panic!("unexpected: {error}")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test takes the part of the vandal"
)]
fn remove_directory(path: &std::path::Path) {
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn tr_04_another_database_in_its_place_is_found() {
    let room = Room::new(Database::Sqlite);
    drop(room.filled_trail(5));
    let store = room.path().join("store.db");
    let second = safepoint_store::Location::Sqlite(room.path().join("second.db"));
    let options = safepoint_store::Options::default();
    let other = std::sync::Arc::new(safepoint_store::Store::open(&second, options).unwrap());
    let mut around = room.surroundings();
    around.entropy = std::sync::Arc::new(Seeded::new(77));
    drop(Trail::open(other, &around).unwrap());
    std::fs::copy(room.path().join("second.db"), &store).unwrap();
    let error = Trail::open(room.store(), &room.surroundings()).unwrap_err();
    let TrailError::Tampered(bad) = error else {
        panic_with(&error)
    };
    assert!(bad.reason.contains("another trail"), "{bad}");
}

#[test]
fn tr_04_a_restored_copy_without_its_log_file_mode_works() {
    let room = Room::new(Database::Sqlite);
    drop(room.filled_trail(5));
    room.tamper("PRAGMA journal_mode = DELETE");
    append(&room.trail(), "s", 1);
    assert_eq!(verify(&room).first_bad, None);
}
