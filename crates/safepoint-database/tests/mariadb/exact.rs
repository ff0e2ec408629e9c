//! What is captured comes back exactly.

use crate::support::Room;

/// Something of everything that a database can hold.
const EVERYTHING: &str = r#"
CREATE TABLE customers (
    id INT AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(40) NOT NULL COMMENT 'it''s, (a) name',
    mail VARCHAR(80) CHARACTER SET latin1 COLLATE latin1_german1_ci UNIQUE,
    kind ENUM('new', 'it''s', 'old') DEFAULT 'new',
    flags SET('a', 'b', 'c'),
    balance DECIMAL(12,2) NOT NULL DEFAULT 0 CHECK (balance >= 0),
    double_balance DECIMAL(12,2) AS (balance * 2) VIRTUAL,
    shout VARCHAR(40) AS (UPPER(name)) STORED,
    secret INT INVISIBLE DEFAULT 7,
    CONSTRAINT named_check CHECK (name <> ''),
    FULLTEXT KEY words (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin COMMENT='with AUTO_INCREMENT=9 in it';
CREATE TABLE orders (
    id BIGINT UNSIGNED NOT NULL,
    part SMALLINT NOT NULL,
    customer INT,
    placed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
    due DATETIME,
    PRIMARY KEY (id, part),
    KEY by_customer (customer, due DESC),
    CONSTRAINT who FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE SET NULL ON UPDATE CASCADE
);
CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id));
CREATE TABLE places (id INT PRIMARY KEY, at POINT NOT NULL, area POLYGON, SPATIAL KEY (at));
CREATE TABLE parts (id INT NOT NULL, year YEAR, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 3;
CREATE TABLE plain (a INT, b TEXT);
CREATE TABLE empty_one (a INT);
CREATE TABLE only_computed (a INT AS (1) VIRTUAL);
CREATE TABLE documents (id UUID PRIMARY KEY, body JSON, peer INET6);
CREATE SEQUENCE numbers START WITH 5 INCREMENT BY 3 MAXVALUE 1000 CACHE 10 CYCLE;
CREATE SEQUENCE ids NOCACHE;
CREATE TABLE numbered (id INT NOT NULL DEFAULT NEXTVAL(ids) PRIMARY KEY, n INT);
CREATE TABLE aria_one (a INT PRIMARY KEY, b TEXT) ENGINE=Aria;
CREATE TABLE isam_one (a INT AUTO_INCREMENT PRIMARY KEY, b TEXT) ENGINE=MyISAM;
CREATE TABLE in_memory (a INT, b VARCHAR(20)) ENGINE=MEMORY;
CREATE TABLE packed (a INT, b TEXT) ENGINE=InnoDB ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8;

INSERT INTO customers (name, mail, kind, flags, balance) VALUES
    ('Ann', 'ann@example.org', 'it''s', 'a,c', 10), ('Бob', NULL, 'old', '', 2.50), ('NULL', 'NULL', NULL, NULL, 0);
INSERT INTO customers (id, name, secret) VALUES (100, 'tab\tnew\nline\\', NULL);
DELETE FROM customers WHERE id = 100;
INSERT INTO orders VALUES (18446744073709551615, 1, 1, '2026-03-29 01:30:00.123', '0000-00-00 00:00:00'), (1, -3, NULL, '2026-10-25 00:30:00', NULL);
INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2);
INSERT INTO places VALUES (1, ST_GeomFromText('POINT(1 -2.5)', 4326), NULL), (2, ST_GeomFromText('POINT(0 0)'), ST_GeomFromText('POLYGON((0 0, 0 1, 1 1, 0 0))'));
INSERT INTO parts SELECT seq, 2000 + seq % 50 FROM seq_1_to_200;
INSERT INTO plain VALUES (NULL, NULL), (NULL, NULL), (1, ''), (1, ''), (3, 'NULL'), (2, '\0\n\t\r\Z\\''"`');
INSERT INTO only_computed VALUES (), ();
INSERT INTO documents VALUES ('123e4567-e89b-12d3-a456-426614174000', '{"a": "it''s \\"x\\" \\\\"}', '2001:db8::1');
SELECT NEXTVAL(numbers), NEXTVAL(numbers), NEXTVAL(ids);
INSERT INTO numbered (n) VALUES (1), (2);
INSERT INTO aria_one VALUES (2, 'x'), (1, NULL);
INSERT INTO isam_one (b) VALUES ('a'), ('b'), ('c');
DELETE FROM isam_one WHERE a = 2;
INSERT INTO in_memory VALUES (1, 'm');
INSERT INTO packed VALUES (1, REPEAT('x', 1000));

CREATE VIEW rich AS SELECT id, name FROM customers WHERE balance > 5 WITH CASCADED CHECK OPTION;
CREATE DEFINER = 'nobody'@'nowhere' SQL SECURITY INVOKER VIEW a_view_on_views AS SELECT name FROM rich;
CREATE ALGORITHM = MERGE VIEW joined AS SELECT c.name, o.id FROM customers c JOIN orders o ON o.customer = c.id;
SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES';
CREATE TRIGGER "first" BEFORE INSERT ON customers FOR EACH ROW SET NEW.mail = CONCAT(NEW.mail, '\');
SET sql_mode = DEFAULT;
DELIMITER //
CREATE TRIGGER `third` AFTER INSERT ON customers FOR EACH ROW BEGIN INSERT INTO plain VALUES (NEW.id, 'third'); END//
CREATE TRIGGER `second` AFTER INSERT ON customers FOR EACH ROW PRECEDES `third` INSERT INTO plain VALUES (NEW.id, 'second');//
CREATE TRIGGER `on` BEFORE DELETE ON orders FOR EACH ROW BEGIN DECLARE x INT; SET x = 1; END//
CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC BEGIN RETURN x * 2; /* ; */ END//
CREATE PROCEDURE fill(IN n INT) MODIFIES SQL DATA COMMENT 'fills' BEGIN WHILE n > 0 DO INSERT INTO plain VALUES (n, 'ü'); SET n = n - 1; END WHILE; END//
CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 03:00:00' ON COMPLETION PRESERVE DISABLE COMMENT 'x' DO BEGIN DELETE FROM plain; END//
DELIMITER ;
SET NAMES latin1;
CREATE PROCEDURE written_in_latin1() SELECT 'x';
"#;

/// Damages everything that `EVERYTHING` makes, and adds to it.
const DAMAGE: &str = r#"
SET foreign_key_checks = 0;
DROP TRIGGER `first`;
DROP TRIGGER `third`;
CREATE TRIGGER `third` BEFORE INSERT ON orders FOR EACH ROW SET @x = 1;
INSERT INTO customers (name) VALUES ('intruder');
UPDATE customers SET balance = balance + 1;
ALTER TABLE customers DROP COLUMN kind, DROP KEY words, ADD COLUMN added INT, MODIFY flags TEXT;
ALTER TABLE orders DROP FOREIGN KEY who;
DROP TABLE tree;
DROP TABLE places;
TRUNCATE parts;
ALTER TABLE parts REMOVE PARTITIONING;
DELETE FROM plain LIMIT 2;
DROP TABLE empty_one;
CREATE VIEW empty_one AS SELECT 1 AS a;
DROP TABLE only_computed;
DROP TABLE numbered;
DROP SEQUENCE ids;
DROP SEQUENCE numbers;
CREATE TABLE numbers (a INT);
UPDATE documents SET body = '{}';
DELETE FROM aria_one;
INSERT INTO isam_one (b) VALUES ('z');
DROP TABLE in_memory;
ALTER TABLE packed ENGINE=Aria ROW_FORMAT=DEFAULT KEY_BLOCK_SIZE=0;
DROP VIEW joined;
CREATE TABLE joined (a INT);
CREATE OR REPLACE VIEW rich AS SELECT 1 AS id, 'x' AS name;
DROP VIEW a_view_on_views;
CREATE VIEW added_view AS SELECT 1;
CREATE TABLE added_table (a INT PRIMARY KEY);
CREATE TABLE added_child (a INT, FOREIGN KEY (a) REFERENCES added_table (a));
CREATE TRIGGER added_trigger BEFORE INSERT ON added_table FOR EACH ROW SET @y = 1;
CREATE SEQUENCE added_sequence;
DROP FUNCTION twice;
CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 3;
DROP PROCEDURE fill;
CREATE PROCEDURE added_procedure() SELECT 1;
ALTER EVENT nightly COMMENT 'y';
CREATE EVENT added_event ON SCHEDULE EVERY 1 HOUR DISABLE DO DELETE FROM plain;
"#;

#[test]
fn st_16_everything_comes_back() {
    let room = Room::with(EVERYTHING);
    let image = room.capture();
    assert_eq!(image.not_covered, Vec::<String>::new());
    room.sql(DAMAGE);
    room.sql(&format!(
        "ALTER DATABASE `{}` CHARACTER SET latin1",
        room.name
    ));
    assert_ne!(room.capture().digest(), image.digest());
    room.restore(&image);
    // It works, too: triggers fire in their order, constraints hold, counters go on.
    let seen = room.sql(
        "INSERT INTO customers (name, mail) VALUES ('New', 'm'); SELECT id, mail, secret, shout FROM customers WHERE name = 'New'; \
         SELECT b FROM plain WHERE a = 101; SELECT twice(4); SELECT NEXTVAL(ids), NEXTVAL(numbers); SELECT COUNT(*) FROM a_view_on_views;",
    );
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(
        lines,
        ["101\tm\\\\\t7\tNEW", "second", "third", "8", "4\t35", "1"]
    );
    // And once more, from the state that the restore has made.
    room.restore(&image);
}

#[test]
fn st_16_a_restore_of_the_same_state_changes_nothing() {
    let room = Room::with(EVERYTHING);
    let image = room.capture();
    assert_eq!(room.capture().digest(), image.digest());
    room.restore(&image);
}

#[test]
fn st_16_numbers_keep_every_digit() {
    let room = Room::with(
        "CREATE TABLE n (id INT PRIMARY KEY, f FLOAT, g FLOAT(7,3), d DOUBLE, h DOUBLE(20,5), b BIT(64), s BIT(1), z INT(5) ZEROFILL, y YEAR, t TIME(6), c DECIMAL(65,30));
         INSERT INTO n VALUES
            (1, 1.2345678, 1234.5678, 1.7976931348623157e308, 123456789012345.12345, b'1', b'0', 7, 1901, '-838:59:59.000000', 12345678901234567890123456789012345.123456789012345678901234567891),
            (2, 16777217, -0.001, -2.2250738585072014e-308, -1e14, ~0, b'1', 0, 0, '00:00:00.000001', -0.000000000000000000000000000001),
            (3, '-0', 0, '-0', 0, 0, NULL, NULL, NULL, NULL, NULL),
            (4, 3.402823e38, 0.1, 0.1, 0.1, 256, 1, 99999, 2155, '838:59:59', 1),
            (5, 1e-45, 0.333, 5e-324, 1, 255, 1, 1, 1970, '12:00', 0);",
    );
    let exact = "SELECT id, f * 1e0, g * 1e0, d * 1e0, h * 1e0, b + 0, s + 0, z, y, t, c, f = d FROM n ORDER BY id";
    let before = room.sql(exact);
    assert!(before.contains("1.2345677614212036"), "{before}");
    let image = room.capture();
    room.sql("UPDATE n SET f = f, d = d + 1, b = 3, y = 2000; DELETE FROM n WHERE id IN (2, 4)");
    room.restore(&image);
    assert_eq!(room.sql(exact), before);
}

#[test]
fn st_16_bytes_and_character_sets_come_back() {
    let room = Room::with(
        "CREATE TABLE b (id INT PRIMARY KEY, raw BLOB, fixed BINARY(4), some VARBINARY(300), one LONGTEXT CHARACTER SET utf8mb4);
         CREATE TABLE c (id INT PRIMARY KEY, l VARCHAR(300) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET ucs2, v VARCHAR(20) CHARACTER SET utf16, j VARCHAR(20) CHARACTER SET sjis, w VARCHAR(20) CHARACTER SET cp932, g CHAR(20) CHARACTER SET gbk, e ENUM('ü', 'NULL') CHARACTER SET latin1, k VARCHAR(20) CHARACTER SET koi8r);",
    );
    let all: String = (0..=255).map(|byte| format!("{byte:02x}")).collect();
    room.sql(&format!(
        "INSERT INTO b VALUES (1, x'{all}', x'00', x'{all}', '\u{1F600} \u{10FFFF} é'), (2, '', '', '', ''), (3, NULL, NULL, NULL, NULL), (4, 'NULL', 'NULL', 'NULL', 'NULL');
         INSERT INTO c VALUES (1, CONVERT(x'{all}' USING latin1), 'aあ', 'b\u{1F600}', _sjis x'8E5C815F', _cp932 x'815F81608754FA4A', 'c中', 'NULL', 'Ж'), (2, '', '', '', '', '', '', 'ü', NULL), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);",
    ));
    let exact = "SELECT id, HEX(raw), HEX(fixed), HEX(some), HEX(one) FROM b; SELECT id, HEX(l), HEX(u), HEX(v), HEX(j), HEX(w), HEX(g), e, HEX(k) FROM c";
    let before = room.sql(exact);
    let image = room.capture();
    room.sql("DROP TABLE b; UPDATE c SET l = 'x', u = 'x', v = 'x', j = 'x', w = 'x', g = 'x', e = NULL, k = ''");
    room.restore(&image);
    assert_eq!(room.sql(exact), before);
}

#[test]
fn st_16_rows_longer_than_a_packet_come_back() {
    // Twice as long in hexadecimal, which is more than a statement may have by default.
    let room = Room::with(
        "CREATE TABLE long_ones (id INT PRIMARY KEY, raw LONGBLOB, t LONGTEXT);
         INSERT INTO long_ones VALUES (1, REPEAT(x'00ff27', 2900000), REPEAT('it''s ü\\n', 40000)), (2, NULL, 'x'), (3, 'x', NULL);",
    );
    let exact = "SELECT id, SHA2(raw, 256), SHA2(t, 256), LENGTH(raw), LENGTH(t) FROM long_ones";
    let before = room.sql(exact);
    let image = room.capture();
    room.sql("DELETE FROM long_ones");
    room.restore(&image);
    assert_eq!(room.sql(exact), before);
}

#[test]
fn st_16_the_history_of_rows_comes_back() {
    let room = Room::with(
        "CREATE TABLE hidden (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING;
         CREATE TABLE named (id INT PRIMARY KEY, v INT, since TIMESTAMP(6) GENERATED ALWAYS AS ROW START, till TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (since, till)) WITH SYSTEM VERSIONING;
         CREATE TABLE by_transaction (id INT, a BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, b BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING;
         INSERT INTO hidden VALUES (1, 1), (2, 2); UPDATE hidden SET v = 5 WHERE id = 1; DELETE FROM hidden WHERE id = 2;
         INSERT INTO named (id, v) VALUES (1, 1); UPDATE named SET v = 2;",
    );
    let exact = "SELECT *, row_start, row_end FROM hidden FOR SYSTEM_TIME ALL ORDER BY id, row_end; SELECT id, v, since, till FROM named FOR SYSTEM_TIME ALL ORDER BY id, till";
    let before = room.sql(exact);
    assert_eq!(before.lines().count(), 5);
    let image = room.capture();
    let left_out = "table `by_transaction`: its history goes by transactions rather than by time";
    assert_eq!(image.not_covered, [left_out]);
    room.sql(
        "UPDATE hidden SET v = 9; DROP TABLE named; INSERT INTO by_transaction (id) VALUES (1)",
    );
    room.restore(&image);
    assert_eq!(room.sql(exact), before);
    assert_eq!(room.sql("SELECT id FROM by_transaction"), "1\n");
}

#[test]
fn st_16_hostile_names_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let unique = directory
        .path()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let room = Room::named(&format!("a`b';-- \\ \"{unique}"), directory);
    room.sql(
        "CREATE TABLE `it's; DROP TABLE x -- ``\n\\` (`select` INT PRIMARY KEY, `a``b\nc` TEXT, `--` INT, `) ENGINE=InnoDB AUTO_INCREMENT=5` INT, KEY `k'\"` (`--`));
         CREATE TABLE `таблица 表` (`é` INT PRIMARY KEY, CONSTRAINT `f'k -- ;` FOREIGN KEY (`é`) REFERENCES `it's; DROP TABLE x -- ``\n\\` (`select`));
         CREATE TABLE `t.t` (`a.b` INT);
         CREATE TABLE `Case` (a INT); CREATE TABLE `case` (b INT);
         CREATE TRIGGER `tr``\n'` BEFORE INSERT ON `it's; DROP TABLE x -- ``\n\\` FOR EACH ROW SET @`x``` = 1;
         CREATE VIEW `v``'\nw` AS SELECT `a``b\nc` FROM `it's; DROP TABLE x -- ``\n\\`;
         CREATE PROCEDURE `p``;'`() SELECT ';';
         INSERT INTO `it's; DROP TABLE x -- ``\n\\` VALUES (1, 'safepoint', 2, 3); INSERT INTO `таблица 表` VALUES (1);"
            .replace("\\n", "\n")
            .as_str(),
    );
    let image = room.capture();
    assert_eq!(image.tables.len(), 5);
    room.sql("DROP TABLE `таблица 表`; ALTER TABLE `t.t` ADD `'` INT; INSERT INTO `Case` VALUES (1); DROP PROCEDURE `p``;'`");
    room.restore(&image);
    assert_eq!(room.sql("SELECT * FROM `таблица 表`"), "1\n");
}

#[test]
fn st_16_many_tables_come_back() {
    let mut statements = String::new();
    for number in 0..60 {
        statements.push_str(&format!(
            "CREATE TABLE a_table_with_a_rather_long_name_so_that_lists_grow_{number:05} (id INT PRIMARY KEY, up INT{}); INSERT INTO a_table_with_a_rather_long_name_so_that_lists_grow_{number:05} VALUES (1, {});",
            match number {
                0 => String::new(),
                _ => format!(", FOREIGN KEY (up) REFERENCES a_table_with_a_rather_long_name_so_that_lists_grow_{:05} (id)", number - 1),
            },
            if number == 0 { "NULL" } else { "1" },
        ));
    }
    let room = Room::with(&statements);
    let image = room.capture();
    room.sql("UPDATE a_table_with_a_rather_long_name_so_that_lists_grow_00007 SET up = NULL");
    room.restore(&image);
}

#[test]
fn st_16_a_dropped_database_comes_back() {
    let room = Room::with(EVERYTHING);
    let image = room.capture();
    room.on_server(&format!("DROP DATABASE `{}`", room.name));
    room.restore(&image);
}

#[test]
fn st_16_differences_are_shown() {
    let room = Room::with(
        "CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), note TEXT, twice VARCHAR(40) AS (CONCAT(name, name)) VIRTUAL);
         INSERT INTO users (name) VALUES ('Ann'), ('Bob');",
    );
    let before = room.capture();
    room.sql(
        "DELETE FROM users WHERE id = 1; INSERT INTO users (name, note) VALUES ('it''s', 'x')",
    );
    let after = room.capture();
    assert_eq!(
        room.difference(&before, &after),
        "- sequence users.AUTO_INCREMENT 3\n\
         + sequence users.AUTO_INCREMENT 4\n\
         ~ users: 2 → 2 rows\n\
         -   id=1, name='Ann', note=NULL\n\
         +   id=3, name='it\\'s', note='x'\n"
    );
    room.sql("ALTER TABLE users ADD status VARCHAR(20) DEFAULT 'active'");
    let altered = room.capture();
    assert_eq!(
        room.difference(&after, &altered),
        "+ column users.status varchar(20) DEFAULT 'active'\n\
         ~ users: 2 → 2 rows, not compared because its columns differ\n"
    );
}
