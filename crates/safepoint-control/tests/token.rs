//! Tokens, and answers that are given again, on both databases.

#![expect(clippy::unwrap_used, reason = "tests fail loudly")]

use std::sync::Arc;

use safepoint_control::{
    Begun, Control, ControlError, NewToken, NoCaller, StoredReply, Surroundings, TokenRole,
};
use safepoint_model::{Clock, Digest, Span};
use safepoint_store::{Durability, StoreError};
use testkit::{Room, Seeded, on_every_store};

const SECOND: i64 = 1_000_000;

fn control(room: &Room) -> Control {
    let around = Surroundings {
        clock: room.clock.clone(),
        entropy: Arc::new(Seeded::new(7)),
        actor: "user:test".parse().unwrap(),
        caller: Box::new(NoCaller),
    };
    Control::open(room.trail(), around).unwrap()
}

fn auditor(name: &str) -> NewToken {
    NewToken {
        name: name.to_owned(),
        role: TokenRole::Auditor,
        operator: None,
        scopes: Vec::new(),
        expires_at: None,
    }
}

on_every_store! {
    fn su_07_a_token_opens_until_it_is_exchanged_revoked_or_expired(room: Room) {
        let control = control(&room);
        let (token, secret) = control.create_token(&auditor("one")).unwrap();
        let found = control.token_of(secret.reveal()).unwrap();
        assert_eq!(found, Some(token.clone()));
        // Neither its hash nor anything like it opens anything.
        let other = format!("spt_{}", token.digest);
        for wrong in [other.as_str(), "", "spt_", "one", secret.reveal().get(..67).unwrap()] {
            assert_eq!(control.token_of(wrong).unwrap(), None, "{wrong}");
    }
    assert_eq!(format!("{secret:?}"), "Secret(…)");
    let again = control.create_token(&auditor("one")).unwrap_err();
    assert!(matches!(again, ControlError::TokenExists { .. }), "{again}");
    let (_, fresh) = control.rotate_token("one").unwrap();
    assert_eq!(control.token_of(secret.reveal()).unwrap(), None);
    assert!(control.token_of(fresh.reveal()).unwrap().is_some());
    control.revoke_token("one").unwrap();
    assert_eq!(control.token_of(fresh.reveal()).unwrap(), None);
    assert!(control.rotate_token("one").is_err());
    let (_, short) = control
        .create_token(&NewToken {
            expires_at: Some(room.clock.now().saturating_add_micros(SECOND)),
            ..auditor("short")
        })
        .unwrap();
    assert!(control.token_of(short.reveal()).unwrap().is_some());
    room.clock.move_by(2 * SECOND);
    assert_eq!(control.token_of(short.reveal()).unwrap(), None);
    let nobody = NewToken {
        operator: Some("nobody".to_owned()),
        role: TokenRole::Operator,
        ..auditor("op")
    };
    assert!(control.create_token(&nobody).is_err());
    }

    fn su_07_an_answer_is_kept_for_its_time_and_its_caller(room: Room) {
        let control = control(&room);
        let life: Span = "10s".parse().unwrap();
        let (one, two) = (Digest::of_parts(&[b"1"]), Digest::of_parts(&[b"2"]));
        let begin = |caller: &str, digest| control.begin_reply(caller, "k", digest, life).unwrap();
        assert_eq!(begin("a", one), Begun::New);
        assert_eq!(begin("a", one), Begun::Taken);
        assert_eq!(begin("a", two), Begun::Other);
        assert_eq!(begin("b", two), Begun::New);
        // Given back: nothing was done.
        control.drop_reply("b", "k").unwrap();
        assert_eq!(begin("b", one), Begun::New);
        let reply = StoredReply {
            status: 200,
            body: "{\"a\":\"é\"}".to_owned(),
        };
        control.keep_reply("a", "k", &reply).unwrap();
        assert_eq!(begin("a", one), Begun::Answered(reply.clone()));
        assert_eq!(begin("a", two), Begun::Other);
        // Whoever has the database alone reads none of it, and puts none in another's place.
        let store = room.store();
        let sealed = store.read(|sql| {
            let statement = "SELECT sealed FROM control_replies WHERE caller = 'a'";
            safepoint_store::query_one(sql, statement, &[], |row| Ok(row.blob(0)?.to_vec()))
        });
        let sealed: Vec<u8> = sealed.map_err(|error: StoreError| error).unwrap().unwrap();
        assert!(!sealed.windows(4).any(|bytes| bytes == b"\"a\":"), "{sealed:?}");
        let moved = store.write(Durability::Sync, |sql| {
            let statement = "UPDATE control_replies SET status = 200, sealed = ?1 WHERE caller = 'b'";
            sql.execute(statement, &[safepoint_store::Value::Blob(&sealed)])
        });
        moved.map_err(|error: StoreError| error).unwrap();
        assert_eq!(begin("b", one), Begun::Taken);
        // What was answered is not given back.
        control.drop_reply("a", "k").unwrap();
        assert_eq!(begin("a", one), Begun::Answered(reply));
        room.clock.move_by(11 * SECOND);
        assert_eq!(begin("a", two), Begun::New);
    }
}
