//! Only what is meant is captured and restored; the rest is never touched.

use safepoint_database::DatabaseError;

use crate::support::Room;

const SHOP: &str = "
    CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), touched INT);
    CREATE TABLE orders (id INT PRIMARY KEY, user INT, CONSTRAINT who FOREIGN KEY (user) REFERENCES users (id) ON DELETE CASCADE);
    CREATE TABLE invoices (id INT PRIMARY KEY, order_id INT, CONSTRAINT for_order FOREIGN KEY (order_id) REFERENCES orders (id));
    CREATE TABLE log (line TEXT);
    CREATE TRIGGER stamp BEFORE INSERT ON users FOR EACH ROW SET NEW.touched = 1;
    CREATE TRIGGER logged AFTER INSERT ON orders FOR EACH ROW INSERT INTO log VALUES (NEW.id);
    CREATE VIEW names AS SELECT name FROM users;
    INSERT INTO users (name) VALUES ('Ann'), ('Bob');
    INSERT INTO orders VALUES (1, 1), (2, 2);
    INSERT INTO invoices VALUES (1, 1);
";

#[test]
fn st_16_only_named_tables_are_restored() {
    let room = Room::with(SHOP);
    let users = room.part("#users").capture(&room.store).unwrap();
    assert_eq!(users.tables.len(), 1);
    room.sql(
        "INSERT INTO users (name) VALUES ('Eve'); INSERT INTO log VALUES ('stays'); UPDATE users SET name = 'x' WHERE id = 1; \
         DROP TRIGGER stamp; ALTER TABLE users ADD extra INT; ALTER TABLE orders ADD stays INT; CREATE TABLE stays (a INT); \
         DROP VIEW names;",
    );
    let restored = room.part("#users").restore(&users, &room.store).unwrap();
    assert_eq!(restored.warnings, Vec::<String>::new());
    room.assert_part_is("#users", &users);
    assert_eq!(
        room.sql("SELECT COUNT(*) FROM log; SELECT stays FROM orders; SELECT * FROM stays"),
        "3\nNULL\nNULL\n"
    );
    // The foreign key of the table that stayed points to the one that came, and works.
    let create = room.sql("SHOW CREATE TABLE orders");
    assert!(
        create.contains(
            "CONSTRAINT `who` FOREIGN KEY (`user`) REFERENCES `users` (`id`) ON DELETE CASCADE"
        ),
        "{create}"
    );
    assert_eq!(
        room.sql("DELETE FROM users WHERE id = 2; SELECT id FROM orders"),
        "1\n"
    );
    assert_eq!(room.sql("INSERT INTO users (name) VALUES ('New'); SELECT id, touched FROM users WHERE name = 'New'"), "3\t1\n");
}

#[test]
fn st_16_a_child_in_scope_keeps_its_parents_and_children_outside() {
    let room = Room::with(SHOP);
    let whole = room.capture();
    let orders = room.part("#orders").capture(&room.store).unwrap();
    room.sql("DELETE FROM invoices; DELETE FROM orders; INSERT INTO users (name) VALUES ('Eve')");
    let restored = room.part("#orders").restore(&orders, &room.store).unwrap();
    assert_eq!(restored.warnings, Vec::<String>::new());
    room.assert_part_is("#orders", &orders);
    let shown = room.sql("SHOW CREATE TABLE orders; SHOW CREATE TABLE invoices");
    assert!(
        shown.contains("REFERENCES `users` (`id`) ON DELETE CASCADE"),
        "{shown}"
    );
    assert!(shown.contains("REFERENCES `orders` (`id`)"), "{shown}");
    room.restore(&whole);
}

#[test]
fn st_16_rows_that_point_nowhere_are_told() {
    let room = Room::with(SHOP);
    let users = room.part("#users").capture(&room.store).unwrap();
    room.sql("INSERT INTO users (id, name) VALUES (9, 'Eve'); INSERT INTO orders VALUES (9, 9)");
    let restored = room.part("#users").restore(&users, &room.store).unwrap();
    let [warning] = restored.warnings.as_slice() else {
        panic!("{restored:?}");
    };
    assert!(
        warning.starts_with("1 rows of") && warning.contains("`who`"),
        "{warning}"
    );
}

#[test]
fn st_16_foreign_keys_of_other_databases_go_on_pointing() {
    let room = Room::with(SHOP);
    let other = Room::new();
    other.sql(&format!(
        "CREATE TABLE theirs (id INT PRIMARY KEY, user INT, CONSTRAINT far FOREIGN KEY (user) REFERENCES `{}`.users (id)); INSERT INTO theirs VALUES (1, 2)",
        room.name
    ));
    let image = room.capture();
    room.sql("INSERT INTO users (name) VALUES ('Eve')");
    room.restore(&image);
    let shown = other.sql("SHOW CREATE TABLE theirs");
    assert!(
        shown.contains(&format!("REFERENCES `{}`.`users` (`id`)", room.name)),
        "{shown}"
    );
    other.sql("INSERT INTO theirs VALUES (2, 1)");
    other.sql("DROP TABLE theirs");
}

#[test]
fn st_16_a_foreign_key_to_a_table_that_must_go_is_refused() {
    let room = Room::with("CREATE TABLE a (id INT PRIMARY KEY)");
    let other = Room::new();
    let image = room.capture();
    room.sql("CREATE TABLE late (id INT PRIMARY KEY)");
    other.sql(&format!(
        "CREATE TABLE theirs (l INT, FOREIGN KEY (l) REFERENCES `{}`.late (id))",
        room.name
    ));
    let before = room.capture();
    let error = room.database().restore(&image, &room.store).unwrap_err();
    assert!(
        matches!(error, DatabaseError::Unsupported { .. }),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("drop the foreign key"),
        "{error}"
    );
    room.assert_is(&before);
    other.sql("DROP TABLE theirs");
}

#[test]
fn st_16_a_part_of_a_whole_image_is_restored() {
    let room = Room::with(SHOP);
    let whole = room.capture();
    let users = room.part("#users").capture(&room.store).unwrap();
    room.sql("DELETE FROM invoices; DELETE FROM orders; DELETE FROM users; INSERT INTO log VALUES ('stays')");
    room.part("#users").restore(&whole, &room.store).unwrap();
    room.assert_part_is("#users", &users);
    assert_eq!(
        room.sql("SELECT COUNT(*) FROM orders; SELECT COUNT(*) FROM log WHERE line = 'stays'"),
        "0\n1\n"
    );
}

#[test]
fn st_16_an_image_of_a_part_never_touches_the_rest() {
    let room = Room::with(SHOP);
    room.sql("CREATE SEQUENCE numbers NOCACHE");
    let log = room
        .part("#log,numbers,names")
        .capture(&room.store)
        .unwrap();
    room.sql("DROP VIEW names; CREATE VIEW names AS SELECT 1; DELETE FROM log; SELECT NEXTVAL(numbers); UPDATE users SET name = 'stays'; CREATE PROCEDURE stays() SELECT 1");
    // The address means everything, but the image does not.
    room.database().restore(&log, &room.store).unwrap();
    room.assert_part_is("#log,numbers,names", &log);
    assert_eq!(
        room.sql("SELECT DISTINCT name FROM names; CALL stays(); SELECT NEXTVAL(numbers)"),
        "stays\n1\n1\n"
    );
    let error = room.part("#users").restore(&log, &room.store).unwrap_err();
    assert!(matches!(error, DatabaseError::NotFound { .. }), "{error:?}");
    assert_eq!(room.sql("SELECT DISTINCT name FROM names"), "stays\n");
}

#[test]
fn st_16_names_that_mean_nothing_are_not_found() {
    let room = Room::with("CREATE TABLE there (a INT); CREATE TABLE merged (a INT) ENGINE=MERGE");
    for name in ["#nosuch", "#there,nosuch", "#THERE"] {
        let error = room.part(name).capture(&room.store).unwrap_err();
        let DatabaseError::NotFound { what: "table", .. } = error else {
            panic!("{error:?}");
        };
    }
    let error = room.part("#merged").capture(&room.store).unwrap_err();
    assert!(
        matches!(error, DatabaseError::Unsupported { .. }),
        "{error:?}"
    );
    let image = room.capture();
    let told: Vec<String> = image
        .not_covered
        .iter()
        .map(|one| one.replace("MyISAM", "MYISAM"))
        .collect();
    assert_eq!(
        told,
        ["table `merged`: the engine `MRG_MYISAM` keeps its rows elsewhere"]
    );
    room.on_server(&format!("DROP DATABASE `{}`", room.name));
    let error = room.database().capture(&room.store).unwrap_err();
    assert!(
        matches!(
            error,
            DatabaseError::NotFound {
                what: "database",
                ..
            }
        ),
        "{error:?}"
    );
}
