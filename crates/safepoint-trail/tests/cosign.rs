//! Cosignatures: those of the specification, of a witness that we play, and forged ones.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signer as _, SigningKey};
use safepoint_model::{Digest, Timestamp};
use safepoint_trail::cosign::{self, WitnessError, WitnessKey, with_cosignatures};
use safepoint_trail::head::SignedHead;
use safepoint_trail::{Trail, tree};
use testkit::{Database, Room, append, on_every_store};

/// A witness, as the specification describes it.
struct Played {
    name: &'static str,
    key: SigningKey,
    /// Size and root of what it saw last.
    seen: (u64, Digest),
}

impl Played {
    fn new(name: &'static str, seed: u8) -> Self {
        Self {
            name,
            key: SigningKey::from_bytes(&[seed; 32]),
            seen: (0, tree::empty_root()),
        }
    }

    fn printed(&self, algorithm: u8) -> String {
        let mut data = vec![algorithm];
        data.extend_from_slice(self.key.verifying_key().as_bytes());
        let id = self.id(algorithm);
        let id = u32::from_be_bytes(id);
        format!("{}+{id:08x}+{}", self.name, BASE64.encode(data))
    }

    fn id(&self, algorithm: u8) -> [u8; 4] {
        let key = self.key.verifying_key();
        let digest = Digest::of_parts(&[self.name.as_bytes(), b"\n", &[algorithm], key.as_bytes()]);
        digest.as_bytes()[..4].try_into().unwrap()
    }

    fn key(&self) -> WitnessKey {
        self.printed(4).parse().unwrap()
    }

    fn line(&self, text: &str, seconds: u64) -> String {
        let message = format!("cosignature/v1\ntime {seconds}\n{text}");
        let mut bytes = self.id(4).to_vec();
        bytes.extend_from_slice(&seconds.to_be_bytes());
        bytes.extend_from_slice(&self.key.sign(message.as_bytes()).to_bytes());
        format!("— {} {}\n", self.name, BASE64.encode(bytes))
    }

    /// Answers a request for the log of `trail`.
    fn answer(&mut self, request: &str, trail: &Trail) -> (u16, String) {
        let (lines, note) = request.split_once("\n\n").unwrap();
        let mut lines = lines.split('\n');
        let old: u64 = lines
            .next()
            .unwrap()
            .strip_prefix("old ")
            .unwrap()
            .parse()
            .unwrap();
        let path: Vec<Digest> = lines
            .map(|line| Digest::from_slice(&BASE64.decode(line).unwrap()).unwrap())
            .collect();
        let Ok(head) = SignedHead::open(note, trail.key()) else {
            return (403, String::new());
        };
        if old != self.seen.0 {
            return (409, format!("{}\n", self.seen.0));
        }
        if !tree::extends(old, &self.seen.1, head.size(), &head.root(), &path) {
            return (422, String::new());
        }
        self.seen = (head.size(), head.root());
        let text = format!("{}\n", note.split_once("\n\n").unwrap().0);
        (200, self.line(&text, 1_794_800_000))
    }
}

on_every_store! {
    fn tr_06_a_witness_cosigns_head_after_head(room: Room) {
        let trail = room.filled_trail(5);
        let mut witness = Played::new("witness.example/w1", 7);
        let mut old = 0;
        for number in 0..4 {
            let (request, head) = trail.witness_request(old).unwrap();
            let (status, body) = witness.answer(&request, &trail);
            let cosigned =
                cosign::answer(status, body.as_bytes(), &head, &witness.key()).unwrap();
            assert_eq!(cosigned.time, Timestamp::from_micros(1_794_800_000_000_000));
            trail.keep_cosigned(&cosigned).unwrap();
            old = head.size();
            let kept = trail.cosigned().unwrap();
            assert_eq!((kept.len(), kept[0].note()), (1, cosigned.note()));
            room.clock.move_by(1_000);
            append(&trail, "more", number);
        }
        // The cosignature is of an older head now, and is not put under the present one.
        let present = trail.head().unwrap();
        assert_eq!(with_cosignatures(&present, &trail.cosigned().unwrap()), present.note());
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }

    fn tr_06_what_a_witness_saw_must_be_continued(room: Room) {
        let trail = room.filled_trail(20);
        let mut witness = Played::new("witness.example/w1", 7);
        let (request, head) = trail.witness_request(0).unwrap();
        let (status, body) = witness.answer(&request, &trail);
        let cosigned = cosign::answer(status, body.as_bytes(), &head, &witness.key()).unwrap();
        trail.keep_cosigned(&cosigned).unwrap();
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
        // A head of the same key over other entries: whoever has the key can make one.
        let key = std::fs::read_dir(room.path().join("keys")).unwrap();
        let key = key.map(|file| file.unwrap().path()).next().unwrap();
        let signer = std::fs::read_to_string(key).unwrap();
        let signer = safepoint_trail::note::Signer::parse(&signer).unwrap();
        for (size, root) in [(21, tree::empty_root()), (500, tree::empty_root())] {
            let forged = safepoint_trail::head::Head {
                origin: trail.key().name().to_owned(),
                size,
                root,
            };
            let forged = forged.sign(&signer);
            let text = forged.head().to_text();
            let note = format!("{}{}", forged.note(), witness.line(&text, 1));
            let cosigned = witness.key().cosignature(&note, &forged).unwrap();
            trail.keep_cosigned(&cosigned).unwrap();
            let bad = trail.verify(|_| {}).unwrap().first_bad.unwrap();
            assert!(bad.reason.contains("witness.example/w1"), "{bad}");
        }
    }
}

#[test]
fn tr_06_answers_of_a_witness_are_read_as_the_protocol_has_them() {
    let room = Room::new(Database::Sqlite);
    let trail = room.filled_trail(3);
    let witness = Played::new("witness.example/w1", 7);
    let (_, head) = trail.witness_request(0).unwrap();
    let answer =
        |status, body: &str| cosign::answer(status, body.as_bytes(), &head, &witness.key());
    assert_eq!(answer(409, "3\n"), Err(WitnessError::OtherSize(3)));
    assert_eq!(answer(409, "4\n"), Err(WitnessError::Fork));
    for odd in ["3", "", "\n", "03\n", "-3\n", "+3\n", "3\n\n", "x\n"] {
        assert!(
            matches!(answer(409, odd), Err(WitnessError::Shape(_))),
            "{odd:?}"
        );
    }
    assert_eq!(answer(404, ""), Err(WitnessError::UnknownLog));
    assert_eq!(answer(403, ""), Err(WitnessError::UnknownKey));
    assert_eq!(answer(422, ""), Err(WitnessError::NotConsistent));
    for status in [201, 204, 301, 400, 429, 500] {
        assert_eq!(answer(status, "x"), Err(WitnessError::Status(status)));
    }
    assert!(cosign::answer(200, b"\xff\n", &head, &witness.key()).is_err());
}

#[test]
fn tr_06_only_a_genuine_cosignature_of_the_expected_witness_counts() {
    let room = Room::new(Database::Sqlite);
    let trail = room.filled_trail(3);
    let witness = Played::new("witness.example/w1", 7);
    let (_, head) = trail.witness_request(0).unwrap();
    let text = head.head().to_text();
    let good = witness.line(&text, 1_679_315_147);
    let check = |body: &str| cosign::answer(200, body.as_bytes(), &head, &witness.key());
    assert!(check(&good).is_ok());
    let stranger = Played::new("witness.example/w2", 8).line(&text, 1);
    assert!(
        check(&format!("{stranger}{good}")).is_ok(),
        "others are passed over"
    );

    let impostor = Played::new("witness.example/w1", 8).line(&text, 1);
    let other_head = witness.line("another/log\n4\nAAAA\n", 1);
    let plain = {
        // The same key, but a plain signature of the text.
        let mut bytes = witness.id(4).to_vec();
        bytes.extend_from_slice(&witness.key.sign(text.as_bytes()).to_bytes());
        format!("— {} {}\n", witness.name, BASE64.encode(bytes))
    };
    for bad in [&stranger, &impostor, &other_head, &plain] {
        let refused = check(bad).unwrap_err();
        assert_eq!(
            refused,
            WitnessError::Unsigned(witness.name.into()),
            "{bad}"
        );
    }
    for shape in ["", "\n", "x\n", &good[..good.len() - 1], "— w\n"] {
        assert!(check(shape).is_err(), "{shape:?}");
    }
    // Any other byte in it spoils it.
    let data = good.rsplit(' ').next().unwrap().trim_end();
    let bytes = BASE64.decode(data).unwrap();
    for place in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[place] ^= 0x10;
        let line = format!("— {} {}\n", witness.name, BASE64.encode(altered));
        assert!(check(&line).is_err(), "byte {place}");
    }
}

#[test]
fn tr_06_the_example_of_the_specification_is_read() {
    // From C2SP tlog-cosignature: nobody published the key, so only its shape can be checked.
    let line = "— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==";
    let bytes = BASE64.decode(line.rsplit(' ').next().unwrap()).unwrap();
    assert_eq!(bytes.len(), 4 + 8 + 64);
    assert_eq!(bytes[4..12], 1_679_315_147_u64.to_be_bytes());
}

#[test]
fn tr_06_keys_of_witnesses_come_in_two_forms_and_mean_the_same() {
    let witness = Played::new("witness.example/w1", 7);
    let key: WitnessKey = witness.printed(4).parse().unwrap();
    assert_eq!(key.to_string(), witness.printed(4));
    assert_eq!(witness.printed(1).parse::<WitnessKey>().unwrap(), key);
    for bad in [
        witness.printed(2),
        witness.printed(6),
        witness.printed(4).replacen("w1", "w2", 1),
        witness.printed(4).replacen('+', " ", 1),
        String::new(),
        "a+b".to_owned(),
    ] {
        assert!(bad.parse::<WitnessKey>().is_err(), "{bad}");
    }
}

#[test]
fn tr_06_a_request_is_the_one_of_the_protocol() {
    let room = Room::new(Database::Sqlite);
    let trail = room.filled_trail(10);
    let (request, head) = trail.witness_request(3).unwrap();
    assert!(request.starts_with("old 3\n"), "{request}");
    assert!(
        request.ends_with(&format!("\n\n{}", head.note())),
        "{request}"
    );
    let (first, head) = trail.witness_request(0).unwrap();
    assert_eq!(first, format!("old 0\n\n{}", head.note()));
    assert!(trail.witness_request(12).is_err());
}
