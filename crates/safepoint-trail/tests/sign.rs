//! What the key of a trail signs besides heads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_trail::head::SignedHead;
use testkit::{Database, Room};

#[test]
fn a_statement_for_another_purpose_is_never_taken_for_a_head() {
    let room = Room::new(Database::Sqlite);
    let trail = room.filled_trail(3);
    let key = trail.key();
    let note_of = |text: &str, signature: &str| {
        let mut bytes = u32::from_str_radix(&key.id(), 16)
            .unwrap()
            .to_be_bytes()
            .to_vec();
        bytes.extend(BASE64.decode(signature).unwrap());
        format!("{text}\n— {} {}\n", key.name(), BASE64.encode(bytes))
    };
    // Even where it says what a head says.
    let head = trail.head().unwrap().head().to_text();
    let (_, rest) = head.split_once('\n').unwrap();
    for text in [rest.to_owned(), head.clone(), format!("\n{head}")] {
        let statement = trail.statement("test/v1", &text);
        let note = note_of(&statement, &trail.sign("test/v1", &text));
        assert_eq!(key.open(&note).unwrap(), statement);
        assert!(SignedHead::open(&note, key).is_err(), "{note}");
        let other = note_of(&statement, &trail.sign("test/v2", &text));
        assert!(key.open(&other).is_err());
    }
}
