//! What differs between two captures, as people read it.

use safepoint_database::compare;

use crate::features::everything;
use crate::support::Room;

#[test]
fn st_16_differences_are_told_in_structure_and_rows() {
    let room = Room::new();
    everything(&room, "app.db", "");
    let before = room.capture("app.db");
    room.run(
        "app.db",
        "ALTER TABLE child ADD COLUMN status VARCHAR(20) DEFAULT 'active';
         DELETE FROM child WHERE id = 2; INSERT INTO plain(rowid, a, b) VALUES (6, 'it''s', x'0aff'), (7, NULL, 2.5);
         DROP VIEW names; CREATE TABLE fresh(x); INSERT INTO fresh VALUES (1)",
    );
    let after = room.capture("app.db");
    let difference = compare(&before, &after, &room.memory, &room.scratch(), 10).unwrap();
    let text = difference.to_text();
    let expected = "\
+ column child.status VARCHAR(20) DEFAULT 'active'
+ table fresh
+ column fresh.x
- trigger instead CREATE TRIGGER instead INSTEAD OF INSERT ON names BEGIN INSERT INTO users(name) VALUES (new.name); END
- view names CREATE VIEW names AS SELECT name FROM users UNION SELECT a FROM plain
~ child: 2 → 1 rows, not compared because its columns differ
~ fresh: 0 → 1 rows
+   x=1
~ plain: 3 → 5 rows
+   a='it''s', b=x'0aff'
+   a=NULL, b=2.5
";
    assert_eq!(text, expected);
    let few = compare(&before, &after, &room.memory, &room.scratch(), 1).unwrap();
    assert_eq!(
        few.tables
            .iter()
            .map(|table| table.more)
            .collect::<Vec<_>>(),
        [0, 0, 1]
    );
    assert!(
        compare(&after, &after, &room.memory, &room.scratch(), 9)
            .unwrap()
            .is_empty()
    );
    room.nothing_left_behind();
}
