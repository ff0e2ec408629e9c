//! Visits of people who have shown a token, on both databases.

#![expect(clippy::unwrap_used, reason = "tests fail loudly")]

use std::sync::Arc;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use safepoint_control::{
    Asker, Control, NewToken, NoCaller, Secret, Surroundings, Token, TokenRole,
};
use safepoint_model::{Clock, Digest, Frame};
use safepoint_store::{StoreError, query_all};
use testkit::{Database, Room, Seeded, on_every_store};

const MINUTE: i64 = 60 * 1_000_000;

/// A server of the store: what it remembers is its own.
fn server(room: &Room, seed: u64) -> Control {
    let around = Surroundings {
        clock: room.clock.clone(),
        entropy: Arc::new(Seeded::new(seed)),
        actor: "user:test".parse().unwrap(),
        caller: Box::new(NoCaller),
    };
    Control::open(room.trail(), around).unwrap()
}

fn token(control: &Control, name: &str) -> Secret {
    let new = NewToken {
        name: name.to_owned(),
        role: TokenRole::Auditor,
        operator: None,
        scopes: Vec::new(),
        expires_at: None,
    };
    control.create_token(&new).unwrap().1
}

fn sign_in(control: &Control, token: &Secret) -> String {
    let cookie = control.begin_visit(token.reveal()).unwrap();
    cookie.unwrap().reveal().to_owned()
}

fn name(token: Option<Token>) -> Option<String> {
    token.map(|token| token.name)
}

/// Who is signed in with this cookie.
fn who(control: &Control, cookie: &str) -> Option<String> {
    name(control.visit(cookie, Asker::Person).unwrap())
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    cookie: Vec<u8>,
    sealed: Vec<u8>,
    began: i64,
    latest: i64,
}

/// What somebody sees who reads the database.
fn rows(room: &Room) -> Vec<Row> {
    let statement =
        "SELECT cookie, sealed, began, latest FROM control_visits ORDER BY began, latest";
    room.store()
        .read::<_, StoreError>(|sql| {
            query_all(sql, statement, &[], |row| {
                Ok(Row {
                    cookie: row.blob(0)?.to_owned(),
                    sealed: row.blob(1)?.to_owned(),
                    began: row.integer(2)?,
                    latest: row.integer(3)?,
                })
            })
        })
        .unwrap()
}

/// Bytes, as the database has them in a statement.
fn literal(room: &Room, bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match room.database() {
        Database::Sqlite => format!("x'{digits}'"),
        Database::Postgres => format!("'\\x{digits}'"),
    }
}

/// Puts rows in the place of all there are, as somebody can who writes to the database.
fn put(room: &Room, rows: &[Row]) {
    let mut statements = "DELETE FROM control_visits;".to_owned();
    for row in rows {
        statements.push_str(&format!(
            "INSERT INTO control_visits (cookie, sealed, began, latest) VALUES ({}, {}, {}, {});",
            literal(room, &row.cookie),
            literal(room, &row.sealed),
            row.began,
            row.latest
        ));
    }
    room.tamper(&statements);
}

/// What a row is found by.
fn digest(cookie: &str) -> Vec<u8> {
    let cookie: Digest = cookie.parse().unwrap();
    let mut frame = Frame::new("safepoint/visit/v1");
    frame.field(cookie.as_bytes()).digest().as_bytes().to_vec()
}

/// A row as a server would make it, by somebody who knows how it is made.
fn made(cookie: &str, shown: &str, like: &Row) -> Row {
    let bytes: Digest = cookie.parse().unwrap();
    let mut key = Frame::new("safepoint/visit-key/v1");
    let key = key.field(bytes.as_bytes()).digest();
    let (began, latest) = (like.began.to_be_bytes(), like.latest.to_be_bytes());
    let mut times = Frame::new("safepoint/visit-times/v1");
    times.field(&began).field(&latest);
    let mut nonce = latest.to_vec();
    nonce.resize(12, 0);
    let payload = Payload {
        msg: shown.as_bytes(),
        aad: times.as_bytes(),
    };
    let cipher = ChaCha20Poly1305::new(key.as_bytes().into());
    Row {
        cookie: digest(cookie),
        sealed: cipher.encrypt(nonce.as_slice().into(), payload).unwrap(),
        ..like.clone()
    }
}

on_every_store! {
    fn su_08_a_visit_goes_on_at_every_server_and_ends_at_all(room: Room) {
        let (one, two) = (server(&room, 1), server(&room, 2));
        let ann = token(&one, "ann");
        let cookie = sign_in(&one, &ann);
        assert_eq!(who(&one, &cookie).as_deref(), Some("ann"));
        assert_eq!(who(&two, &cookie).as_deref(), Some("ann"));
        two.end_visit(&cookie).unwrap();
        assert_eq!(who(&one, &cookie), None);
        assert_eq!(who(&two, &cookie), None);
        // Others stay, and one who was started anew knows them.
        let (cookie, other) = (sign_in(&one, &ann), sign_in(&two, &ann));
        assert_ne!(cookie, other);
        one.end_visit(&other).unwrap();
        drop(one);
        let one = server(&room, 3);
        assert_eq!(who(&one, &cookie).as_deref(), Some("ann"));
        // With its token a visit ends everywhere at once.
        two.rotate_token("ann").unwrap();
        assert_eq!(who(&one, &cookie), None);
        let bob = token(&two, "bob");
        let cookie = sign_in(&one, &bob);
        two.revoke_token("bob").unwrap();
        assert_eq!(who(&one, &cookie), None);
        assert_eq!(rows(&room), [], "what is over is deleted");
        assert!(one.begin_visit(bob.reveal()).unwrap().is_none());
        for nothing in ["", "spt_", "ann"] {
            assert!(one.begin_visit(nothing).unwrap().is_none(), "{nothing}");
            assert_eq!(who(&one, nothing), None, "{nothing}");
        }
    }

    fn su_08_a_visit_ends_when_nobody_is_there_and_after_a_day_of_work(room: Room) {
        let (one, two) = (server(&room, 1), server(&room, 2));
        let ann = token(&one, "ann");
        let cookie = sign_in(&one, &ann);
        for server in [&two, &one, &two] {
            room.clock.move_by(29 * MINUTE);
            assert!(who(server, &cookie).is_some(), "in use");
        }
        room.clock.move_by(30 * MINUTE);
        assert_eq!(who(&one, &cookie), None, "idle");
        // A page that is open and asks by itself does not keep the visit alive.
        let cookie = sign_in(&one, &ann);
        for expected in [Some("ann".to_owned()), None] {
            room.clock.move_by(20 * MINUTE);
            let seen = two.visit(&cookie, Asker::Page).unwrap();
            assert_eq!(name(seen), expected);
        }
        let cookie = sign_in(&one, &ann);
        for _ in 0..23 {
            room.clock.move_by(20 * MINUTE);
            assert!(who(&two, &cookie).is_some(), "in use");
        }
        room.clock.move_by(20 * MINUTE);
        assert_eq!(who(&two, &cookie), None, "eight hours");
        assert_eq!(rows(&room), [], "what is over is deleted");
        // Also where nobody comes back.
        sign_in(&one, &ann);
        two.forget_visits().unwrap();
        assert_eq!(rows(&room).len(), 1);
        room.clock.move_by(30 * MINUTE);
        two.forget_visits().unwrap();
        assert_eq!(rows(&room), []);
    }

    fn su_08_looking_costs_no_write_more_than_once_a_minute(room: Room) {
        let (one, two) = (server(&room, 1), server(&room, 2));
        let cookie = sign_in(&one, &token(&one, "ann"));
        let begun = rows(&room);
        room.clock.move_by(MINUTE - 1);
        for server in [&one, &two] {
            assert!(who(server, &cookie).is_some());
        }
        assert_eq!(rows(&room), begun);
        room.clock.move_by(1);
        assert!(two.visit(&cookie, Asker::Page).unwrap().is_some());
        assert_eq!(rows(&room), begun, "nobody was there");
        for server in [&one, &two] {
            assert!(who(server, &cookie).is_some());
        }
        let noted = rows(&room);
        let now = room.clock.now().as_micros();
        assert_eq!(noted.iter().map(|row| row.latest).collect::<Vec<_>>(), [now]);
        room.clock.move_by(MINUTE - 1);
        assert!(who(&one, &cookie).is_some());
        assert_eq!(rows(&room), noted);
    }

    fn su_08_who_is_in_can_look_where_nothing_can_be_written(room: Room) {
        let one = server(&room, 1);
        let ann = token(&one, "ann");
        let cookie = sign_in(&one, &ann);
        // A trail that was tampered with is not written to: that is when people must look.
        room.tamper("UPDATE trail_head SET size = size + 1;");
        room.clock.move_by(29 * MINUTE);
        assert_eq!(who(&one, &cookie).as_deref(), Some("ann"));
        assert!(one.begin_visit(ann.reveal()).is_err());
        assert!(one.end_visit(&cookie).is_err(), "it says what it could not do");
        room.clock.move_by(MINUTE);
        assert_eq!(who(&one, &cookie), None, "nobody has written that they are there");
    }

    fn su_08_of_too_many_visits_the_quietest_go(room: Room) {
        let one = server(&room, 1);
        let ann = token(&one, "ann");
        let quiet = sign_in(&one, &ann);
        room.clock.move_by(MINUTE);
        let busy = sign_in(&one, &ann);
        let mut filled = rows(&room);
        let now = room.clock.now().as_micros();
        for number in 0..998_i64 {
            let bytes = Digest::of_parts(&[&number.to_be_bytes()]).as_bytes().to_vec();
            let (began, latest) = (now, now);
            filled.push(Row { cookie: bytes.clone(), sealed: bytes, began, latest });
        }
        put(&room, &filled);
        assert_eq!(rows(&room).len(), 1_000);
        let new = sign_in(&one, &ann);
        assert_eq!(rows(&room).len(), 1_000);
        assert_eq!(who(&one, &quiet), None);
        for cookie in [busy, new] {
            assert_eq!(who(&one, &cookie).as_deref(), Some("ann"));
        }
    }

    fn su_08_who_reads_the_visits_can_use_none(room: Room) {
        let one = server(&room, 1);
        let ann = token(&one, "ann");
        let cookie = sign_in(&one, &ann);
        let secret: Digest = ann.reveal().strip_prefix("spt_").unwrap().parse().unwrap();
        let halves: [Digest; 2] = [cookie.parse().unwrap(), secret];
        let seen = rows(&room);
        assert_eq!(seen.len(), 1);
        for column in seen.iter().flat_map(|row| [&row.cookie, &row.sealed]) {
            for half in &halves {
                let text = half.to_string();
                let has = |bytes: &[u8]| column.windows(bytes.len()).any(|it| it == bytes);
                assert!(!has(half.as_bytes()) && !has(text.as_bytes()), "{column:?}");
            }
            for part in column.windows(32) {
                let shown = Digest::from_slice(part).unwrap().to_string();
                assert_eq!(who(&one, &shown), None);
                assert_eq!(one.token_of(&format!("spt_{shown}")).unwrap(), None);
            }
        }
        assert_eq!(who(&one, &cookie).as_deref(), Some("ann"));
    }

    fn su_08_who_writes_visits_signs_nobody_in(room: Room) {
        let one = server(&room, 1);
        let (ann, eve) = (token(&one, "ann"), token(&one, "eve"));
        let anns = sign_in(&one, &ann);
        room.clock.move_by(1);
        let eves = sign_in(&one, &eve);
        let [victim, own] = <[Row; 2]>::try_from(rows(&room)).unwrap();
        // The rows are what they are taken for.
        assert_eq!((digest(&anns), digest(&eves)), (victim.cookie.clone(), own.cookie.clone()));
        let forged = |row: Row, cookie: &str| {
            put(&room, &[row]);
            let seen = who(&one, cookie);
            let rest = rows(&room);
            assert_eq!(rest, [], "a row that does not hold is deleted");
            seen
        };
        // Ann's row under a cookie that Eve has chosen.
        let chosen = Digest::of_parts(&[b"eve"]).to_string();
        let moved = Row { cookie: digest(&chosen), ..victim.clone() };
        assert_eq!(forged(moved, &chosen), None);
        // What is sealed in Ann's row, in Eve's.
        let taken = Row { cookie: own.cookie.clone(), ..victim.clone() };
        assert_eq!(forged(taken, &eves), None);
        // What the database has of Ann's token, sealed as it should be. The token itself would
        // do, but then Eve has it.
        let known = one.tokens().unwrap().into_iter().find(|it| it.name == "ann").unwrap();
        for known in [format!("spt_{}", known.digest), known.digest.to_string(), known.name] {
            assert_eq!(forged(made(&eves, &known, &own), &eves), None, "{known}");
        }
        put(&room, &[made(&eves, ann.reveal(), &own)]);
        assert_eq!(who(&one, &eves).as_deref(), Some("ann"));
        // Not sealed at all, or cut.
        let bare = Row { sealed: ann.reveal().as_bytes().to_vec(), ..own.clone() };
        assert_eq!(forged(bare, &eves), None);
        for cut in [0, 1, victim.sealed.len() - 1] {
            let cut = Row { sealed: victim.sealed.iter().take(cut).copied().collect(), ..victim.clone() };
            assert_eq!(forged(cut, &anns), None);
        }
        // Nor does a visit go on for longer than it should.
        for (began, latest) in [(MINUTE, 0), (0, MINUTE), (MINUTE, MINUTE), (-1, 0)] {
            let longer = Row { began: victim.began + began, latest: victim.latest + latest, ..victim.clone() };
            assert_eq!(forged(longer, &anns), None);
        }
        // One that is put back as it was is good for whoever has the cookie, for as long as before.
        put(&room, &[victim.clone(), own]);
        assert_eq!(who(&one, &anns).as_deref(), Some("ann"));
        assert_eq!(who(&one, &eves).as_deref(), Some("eve"));
        room.clock.move_by(30 * MINUTE);
        assert_eq!(forged(victim, &anns), None);
    }
}
