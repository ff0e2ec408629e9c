//! A capture is of one moment, and a restore happens at one moment, whoever else is
//! at work.

use safepoint_database::{Contents, Image};

use crate::support::{Room, values};

/// The rows of a captured table, as they are written.
fn rows(room: &Room, image: &Image, table: &str) -> Vec<String> {
    let table = image.tables.iter().find(|one| one.name == table).unwrap();
    let bytes = room.store.read(table.data.as_ref().unwrap()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The sum of the last values of all rows.
fn sum(room: &Room, image: &Image, table: &str) -> i64 {
    rows(room, image, table)
        .iter()
        .map(|row| {
            let last = row.trim_end_matches(')').rsplit([',', '(']).next();
            last.unwrap().parse::<i64>().unwrap()
        })
        .sum()
}

/// Moves amounts between accounts in two tables, in short transactions.
fn transfers(count: usize, seed: usize) -> String {
    (0..count)
        .map(|step| {
            let (from, to) = ((step * 7 + seed) % 50, (step * 13 + seed * 3) % 50);
            format!(
                "BEGIN; UPDATE a SET v = v - 5 WHERE id = {from}; INSERT INTO moved VALUES (NULL, {step}); UPDATE b SET v = v + 5 WHERE id = {to}; COMMIT;\n"
            )
        })
        .collect()
}

const ACCOUNTS: &str = "
    CREATE TABLE a (id INT PRIMARY KEY, v INT NOT NULL);
    CREATE TABLE b (id INT PRIMARY KEY, v INT NOT NULL);
    CREATE TABLE moved (id INT AUTO_INCREMENT PRIMARY KEY, step INT NOT NULL);
";

/// Two tables with fifty accounts each.
fn accounts() -> Room {
    let room = Room::with(ACCOUNTS);
    let rows = values(0..50, |number| format!("{number}, 1000"));
    room.sql(&format!(
        "INSERT INTO a VALUES {rows}; INSERT INTO b VALUES {rows};"
    ));
    room
}

#[test]
fn st_16_a_capture_is_of_one_moment() {
    let room = accounts();
    let mut writers: Vec<_> = (0..3)
        .map(|seed| room.client_at_work(&transfers(1500, seed)))
        .collect();
    let mut captures = 0;
    let mut differing = 0;
    let mut last = None;
    while writers
        .iter_mut()
        .any(|one| one.try_wait().unwrap().is_none())
    {
        let image = room.capture();
        let (a, b) = (sum(&room, &image, "a"), sum(&room, &image, "b"));
        assert_eq!(a + b, 100_000);
        let moved = rows(&room, &image, "moved").len() as i64;
        assert_eq!(
            moved * 5,
            50_000 - a,
            "the table of moves is of the same moment"
        );
        captures += 1;
        differing += u32::from(last != Some(a));
        last = Some(a);
    }
    assert!(
        captures > 1 && differing > 1,
        "{captures} captures, {differing} states"
    );
}

#[test]
fn st_16_a_capture_has_rows_of_the_structure_it_says() {
    let room =
        Room::with("CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL); CREATE TABLE u LIKE t;");
    let filled = values(1..=100, |number| format!("{number}, {number}"));
    room.sql(&format!("INSERT INTO t VALUES {filled}"));
    let mut statements = String::new();
    for number in 0..60 {
        statements.push_str(&format!(
            "ALTER TABLE t ADD extra{number} INT NOT NULL DEFAULT 3 AFTER id; ALTER TABLE t ADD KEY (v); TRUNCATE u; INSERT INTO u SELECT id, v FROM t; \
             ALTER TABLE t DROP extra{number}; RENAME TABLE t TO x, u TO t, x TO u; RENAME TABLE t TO x, u TO t, x TO u; CREATE OR REPLACE VIEW w AS SELECT {number};\n"
        ));
    }
    let mut writer = room.client_at_work(&statements);
    while writer.try_wait().unwrap().is_none() {
        let image = match room.database().capture(&room.store) {
            Ok(image) => image,
            // It never stands still: that is told, and is no capture.
            Err(error) => {
                assert!(error.to_string().contains("again and again"), "{error}");
                continue;
            }
        };
        for table in &image.schema.tables {
            for row in rows(&room, &image, &table.name) {
                assert_eq!(row.split(',').count(), table.columns.len(), "{row}");
            }
        }
    }
    room.capture();
}

#[test]
fn st_16_tables_without_transactions_are_of_the_same_moment() {
    let room = Room::with(
        "CREATE TABLE a (v INT NOT NULL) ENGINE=MyISAM; CREATE TABLE b (v INT NOT NULL) ENGINE=MEMORY; CREATE TABLE c (v INT NOT NULL) ENGINE=InnoDB;",
    );
    let step = "LOCK TABLES a WRITE, b WRITE, c WRITE; INSERT INTO a VALUES (1); INSERT INTO c VALUES (1); INSERT INTO b VALUES (1); UNLOCK TABLES;\n";
    let mut writer = room.client_at_work(&step.repeat(1500));
    let mut captures = 0;
    while writer.try_wait().unwrap().is_none() {
        let image = room.capture();
        let counts: Vec<u64> = image.tables.iter().map(|table| table.rows).collect();
        assert!(
            counts.windows(2).all(|pair| pair[0] == pair[1]),
            "{counts:?}"
        );
        captures += 1;
    }
    assert!(captures > 0);
}

#[test]
fn st_16_a_reader_sees_a_restore_at_one_moment() {
    let room = accounts();
    let image = room.capture();
    let look =
        "SELECT (SELECT SUM(v) FROM a), (SELECT SUM(v) FROM b), (SELECT COUNT(*) FROM moved);\n";
    let reader = room.client_at_work(&look.repeat(4000));
    for _ in 0..5 {
        room.sql("BEGIN; UPDATE a SET v = v - 1; UPDATE b SET v = v + 1; INSERT INTO moved VALUES (NULL, 1); COMMIT");
        room.restore(&image);
    }
    let output = reader.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let seen = String::from_utf8(output.stdout).unwrap();
    for line in seen.lines() {
        assert!(
            ["50000\t50000\t0", "49950\t50050\t1"].contains(&line),
            "{line}"
        );
    }
}

#[test]
fn st_16_no_row_is_written_past_a_trigger_during_a_restore() {
    let room = Room::with(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, stamp INT, other INT, FOREIGN KEY (other) REFERENCES t (id));
         CREATE TRIGGER stamped BEFORE INSERT ON t FOR EACH ROW SET NEW.stamp = 1;
         INSERT INTO t (other) VALUES (NULL);",
    );
    let image = room.capture();
    let writer = room.client_at_work(&"INSERT INTO t (other) VALUES (1);\n".repeat(3000));
    for _ in 0..8 {
        room.database().restore(&image, &room.store).unwrap();
        assert_eq!(
            room.sql("SELECT COUNT(*) FROM t WHERE stamp IS NULL"),
            "0\n"
        );
    }
    let output = writer.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        room.sql("SELECT COUNT(*) FROM t WHERE stamp IS NULL"),
        "0\n"
    );
    room.restore(&image);
}
