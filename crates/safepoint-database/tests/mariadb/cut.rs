//! A restore that is cut off, anywhere, is undone or finished.

use std::os::unix::fs::PermissionsExt;

use safepoint_database::{Database, DatabaseError, Image};

use crate::failure::{DAMAGE, shop};
use crate::support::Room;

/// A client that counts the statements of a restore from its journal on, and after the one
/// with the number in `limit` does `then` and goes, as when our process is gone. While there
/// is a file `down`, it reaches nobody.
fn install_client(room: &Room, then: &str) -> Database {
    let bin = room.directory.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        r#"#!/bin/bash
PATH=${{PATH#*:}}
if [ "$1" = --version ]; then exec mariadb --version; fi
if [ -e "$HOME/down" ]; then echo "ERROR 2002 (HY000): down" >&2; exit 1; fi
feed() {{
    local count=0 counting="" limit
    limit=$(cat "$HOME/limit")
    while IFS= read -r line; do
        printf '%s\n' "$line"
        case "$line" in
        "REPLACE INTO "*) counting=1 ;;
        sp????????????)
            if [ -n "$counting" ]; then
                count=$((count + 1))
                if [ "$count" = "$limit" ]; then {then}; return; fi
            fi
            ;;
        esac
    done
    [ -z "$counting" ] || touch "$HOME/whole"
}}
feed | mariadb "$@"
"#
    );
    let program = bin.join("mariadb");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut access = room.access();
    let path = access.variables[std::ffi::OsStr::new("PATH")].clone();
    let path = format!("{}:{}", bin.display(), path.to_string_lossy());
    access.variables.insert("PATH".into(), path.into());
    Database::new(room.address("root", ""), access)
}

/// The client reaches nobody any more: what is left is for the next command.
const FOR_GOOD: &str = "touch \"$HOME/down\"";
/// The next connection goes through.
const ONCE: &str = "[ -e \"$HOME/cut\" ] || { touch \"$HOME/cut\"; return; }";

/// What came of a restore, and whether the database is then restored.
type Outcome = (Result<(), DatabaseError>, bool);

/// Cuts a restore off after one of its statements after the other. Each time, the database
/// must be what it was `before`, or what the image says.
fn cut_off_everywhere(room: &Room, image: &Image, then: &str, step: usize) -> Vec<Outcome> {
    let before = room.capture();
    let database = install_client(room, then);
    let file = |name: &str| room.directory.path().join(name);
    let mut outcomes = Vec::new();
    // Each statement has two marks behind it, which do nothing.
    for limit in (1..).step_by(3 * step) {
        std::fs::write(file("limit"), limit.to_string()).unwrap();
        let result = database.restore(image, &room.store).map(|_| ());
        let whole = file("whole").exists();
        for name in ["down", "whole", "cut"] {
            let _ = std::fs::remove_file(file(name));
        }
        let found = room.capture();
        room.assert_nothing_left();
        let restored = found.digest() == image.digest();
        if !restored {
            assert_eq!(room.difference(&before, &found), "", "after {limit}");
            assert_eq!(found.digest(), before.digest(), "after {limit}");
        }
        outcomes.push((result, restored));
        if whole {
            return outcomes;
        }
        if restored {
            room.sql(DAMAGE);
        }
    }
    unreachable!()
}

/// A damaged shop, and what it was.
fn damaged() -> (Room, Image) {
    let room = shop(20);
    let image = room.capture();
    room.sql(DAMAGE);
    (room, image)
}

#[test]
fn st_16_a_restore_cut_off_anywhere_is_undone_or_finished_by_the_next_command() {
    let (room, image) = damaged();
    let outcomes = cut_off_everywhere(&room, &image, FOR_GOOD, 1);
    let undone = outcomes.iter().filter(|one| !one.1).count();
    let finished = outcomes
        .iter()
        .filter(|one| one.0.is_err() && one.1)
        .count();
    assert!(
        undone > 2 && finished > 2,
        "{undone} {finished} {outcomes:?}"
    );
    assert!(outcomes.last().unwrap().0.is_ok());
}

#[test]
fn st_16_a_connection_lost_anywhere_is_undone_or_finished_over_a_new_one() {
    let (room, image) = damaged();
    let outcomes = cut_off_everywhere(&room, &image, ONCE, 2);
    let undone = outcomes.iter().filter(|one| one.0.is_err()).count();
    let finished = outcomes.iter().filter(|one| one.0.is_ok()).count();
    assert!(
        undone > 2 && finished > 2,
        "{undone} {finished} {outcomes:?}"
    );
    for (result, restored) in outcomes {
        assert_eq!(result.is_ok(), restored, "{result:?}");
    }
}

/// A shop of which a part cannot be brought back: a view needs what is elsewhere, and gone.
fn unfinishable() -> (Room, Image, Room) {
    let room = shop(20);
    let other = Room::with("CREATE FUNCTION two() RETURNS INT DETERMINISTIC RETURN 2");
    room.sql(&format!(
        "CREATE VIEW far AS SELECT `{}`.two() AS two",
        other.name
    ));
    let image = room.capture();
    room.sql(DAMAGE);
    room.sql("DROP VIEW far; CREATE VIEW instead AS SELECT 1; CREATE PROCEDURE instead() SELECT 1");
    other.sql("DROP FUNCTION two");
    (room, image, other)
}

#[test]
fn st_16_what_cannot_be_finished_is_undone() {
    let (room, image, other) = unfinishable();
    let before = room.capture();
    let error = room.database().restore(&image, &room.store).unwrap_err();
    assert!(error.to_string().contains("two"), "{error}");
    room.assert_is(&before);
    other.sql("CREATE FUNCTION two() RETURNS INT DETERMINISTIC RETURN 2");
    room.restore(&image);
}

#[test]
fn st_16_what_cannot_be_finished_is_undone_even_when_that_is_cut_off() {
    let (room, image, _other) = unfinishable();
    let outcomes = cut_off_everywhere(&room, &image, FOR_GOOD, 2);
    assert!(
        outcomes.iter().all(|one| one.0.is_err() && !one.1),
        "{outcomes:?}"
    );
}
