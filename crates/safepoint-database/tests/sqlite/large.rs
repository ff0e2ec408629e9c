//! More than a gigabyte: beyond the page that SQLite locks and never uses.

use crate::child::Other;
use crate::support::Room;
use crate::writers::bank;

#[test]
#[ignore = "it takes 5 GiB of disk and 3 GiB of memory"]
fn st_16_more_than_a_gigabyte_comes_back() {
    for (mode, page_size) in [("wal", 4096), ("delete", 65536)] {
        let room = Room::new();
        bank(&room, "app.db", mode, page_size);
        room.run(
            "app.db",
            "CREATE TABLE large(id INTEGER PRIMARY KEY, content);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 560)
             INSERT INTO large SELECT i, randomblob(2000000) FROM n;
             CREATE TABLE last(x); INSERT INTO last VALUES ('behind it')",
        );
        let writer = Other::start("write", &room.path("app.db"));
        let image = room.capture("app.db");
        writer.end();
        assert!(image.piece("file").unwrap().size > 0x4000_0000 + 65536);
        room.restore("copy.db", &image);
        assert_eq!(room.capture("copy.db").digest(), image.digest());
        room.restore("copy.db", &image);
        room.assert_sound("copy.db");
        let sum = room.ask("copy.db", "SELECT sum(balance) FROM accounts");
        assert_eq!(sum, "300000");
    }
}
