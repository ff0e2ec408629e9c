//! Our signed notes and heads beside `signed_note` and `tlog_tiles`, which share no code with them.

#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use safepoint_model::Digest;
use safepoint_trail::head::{Head, HeadError, SignedHead};
use safepoint_trail::note::{NoteError, PublicKey, Signer};
use signed_note::{Note, StandardSigner, StandardVerifier, VerifierList};
use testkit::Seeded;
use tlog_tiles::{Checkpoint, Hash};

const TEXT: &str = "log.example/ä\n17\nsome text\n";

// The example of the documentation of Go's `golang.org/x/mod/sumdb/note`. The
// second key is what its `GenerateKey` makes of 32 zero bytes.
const PETER_PRIVATE: &str =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const ENOCH_PRIVATE: &str =
    "PRIVATE+KEY+EnochRoot+af0cfe78+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const ENOCH: &str = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
const GO_TEXT: &str = "If you think cryptography is the answer to your problem,\n\
                       then you don't know what your problem is.\n";
const PETER_LINE: &str = "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const ENOCH_LINE: &str = "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n";

fn config() -> ProptestConfig {
    let usual = ProptestConfig::default(); // it has read PROPTEST_CASES
    ProptestConfig {
        cases: if usual.cases == 256 { 128 } else { usual.cases },
        failure_persistence: None,
        ..usual
    }
}

fn signer(name: &str, seed: u64) -> Signer {
    Signer::generate(name, &Seeded::new(seed)).unwrap()
}

/// The text of the note, if they find that the key of this text has signed it.
fn they_open(note: &str, key: &str) -> Option<String> {
    let verifier = StandardVerifier::new(key).ok()?;
    let note = Note::from_bytes(note.as_bytes()).ok()?;
    note.verify(&VerifierList::new(vec![Box::new(verifier)]))
        .ok()?;
    String::from_utf8(note.text().to_vec()).ok()
}

/// The note that they make of this text with this private key.
fn they_sign(text: &str, private: &str) -> String {
    let signer = StandardSigner::new(private).unwrap();
    let mut note = Note::new(text.as_bytes(), &[]).unwrap();
    note.add_sigs(&[&signer]).unwrap();
    String::from_utf8(note.to_bytes()).unwrap()
}

#[test]
fn tr_03_the_notes_of_the_go_documentation() {
    for (private, public, line) in [
        (PETER_PRIVATE, PETER, PETER_LINE),
        (ENOCH_PRIVATE, ENOCH, ENOCH_LINE),
    ] {
        let signer = Signer::parse(private).unwrap();
        assert_eq!(signer.to_text(), private);
        assert_eq!(signer.public().to_string(), public);
        assert_eq!(signer.sign(GO_TEXT), format!("{GO_TEXT}\n{line}"));
        let key: PublicKey = public.parse().unwrap();
        assert_eq!(&key, signer.public());
        let both = format!("{GO_TEXT}\n{PETER_LINE}{ENOCH_LINE}");
        assert_eq!(key.open(&both), Ok(GO_TEXT));
        assert_eq!(they_open(&both, public).as_deref(), Some(GO_TEXT));
    }
}

#[test]
fn tr_03_bad_keys_are_refused() {
    let bad_private = [
        "",
        PETER,
        &PETER_PRIVATE.replace("PRIVATE", "private"),
        &PETER_PRIVATE.replace("PeterNeumann", "Peter Neumann"),
        &PETER_PRIVATE.replace("PeterNeumann", ""),
        &PETER_PRIVATE.replace("PeterNeumann", "PeterNeuman"),
        &PETER_PRIVATE.replace("c74f20a3", "c74f20a4"),
        &PETER_PRIVATE.replace("c74f20a3", "74f20a3"),
        &PETER_PRIVATE.replace("+AYEK", "+AoEK"), // another algorithm
        &PETER_PRIVATE.replace("+AYEK", "+AYEL"),
        &PETER_PRIVATE.replace("KDFz", ""),
        &PETER_PRIVATE.replace("KDFz", "KDFzAAAA"),
    ];
    for bad in bad_private {
        assert!(Signer::parse(bad).is_err(), "{bad}");
        assert!(StandardSigner::new(bad).is_err(), "they: {bad}");
    }
    let bad_public = [
        "",
        PETER_PRIVATE,
        &PETER.replace("PeterNeumann", "Peter Neumann"),
        &PETER.replace("PeterNeumann", ""),
        &PETER.replace("PeterNeumann", "PeterNeuman"),
        &PETER.replace("c74f20a3", "c74f20a4"),
        &PETER.replace("c74f20a3", "0c74f20a3"),
        &PETER.replace("+ARpc", "+Ahpc"),
        &PETER.replace("10TW", "10TX"),
        &PETER.replace("10TW", "10TWAAAA"),
        &PETER.replace("10TW", "10Q="),
    ];
    for bad in bad_public {
        assert!(bad.parse::<PublicKey>().is_err(), "{bad}");
        assert!(StandardVerifier::new(bad).is_err(), "they: {bad}");
    }
}

#[test]
fn tr_03_a_private_key_is_not_shown_by_accident() {
    let signer = signer("log.example", 1);
    let private = signer.to_text();
    let secret = private.rsplit('+').next().unwrap();
    assert!(!format!("{signer:?} {}", signer.public()).contains(secret));
}

#[test]
fn tr_03_a_bad_note_is_refused_by_both() {
    let signer = signer("log.example", 1);
    let other = Signer::generate("other.example", &Seeded::new(2)).unwrap();
    let twin = Signer::generate("log.example", &Seeded::new(3)).unwrap();
    let key = signer.public();
    let note = signer.sign(TEXT);
    assert_eq!(key.open(&note), Ok(TEXT));
    assert_eq!(they_open(&note, &key.to_string()).as_deref(), Some(TEXT));

    let line = note.rsplit("\n\n").next().unwrap();
    let data = line.rsplit(' ').next().unwrap().trim_end();
    let unpadded = data.trim_end_matches('=');
    // 68 bytes leave two bits over in the last character: `A`, `Q`, `g`, `w` are canonical.
    assert_eq!(data.len() - unpadded.len(), 1, "one pad: {data}");
    let last = unpadded.chars().next_back().unwrap();
    let next = char::from_u32(last as u32 + 1).unwrap();
    let slack = format!("{}{next}=", unpadded.strip_suffix(last).unwrap());

    let shape = |_: &str| NoteError::Shape;
    let forged = |name: &str| NoteError::Forged(name.to_owned());
    let unsigned = |name: &str| NoteError::Unsigned(name.to_owned());
    type Refusal<'a> = &'a dyn Fn(&str) -> NoteError;
    let cases: [(&str, String, Refusal<'_>); 27] = [
        ("empty", String::new(), &shape),
        ("a newline", "\n".into(), &shape),
        ("two newlines", "\n\n".into(), &shape),
        ("no signature", format!("{TEXT}\n"), &shape),
        ("no text", line.to_owned(), &shape),
        ("no empty line", format!("{TEXT}{line}"), &shape),
        ("no last newline", note.trim_end().into(), &shape),
        ("an empty line after", format!("{note}\n"), &shape),
        ("garbage after", format!("{note}garbage\n"), &shape),
        ("a space after", format!("{note} "), &shape),
        ("a space in the line", note.replace('=', "= "), &shape),
        ("another dash", note.replace('—', "-"), &shape),
        ("a tab in the text", signer.sign("a\tb\n"), &shape),
        ("a return in the text", signer.sign("a\r\nb\n"), &shape),
        ("a null in the text", signer.sign("a\0\n"), &shape),
        ("carriage returns", note.replace('\n', "\r\n"), &shape),
        ("no padding", note.replace(data, unpadded), &shape),
        ("more padding", note.replace('=', "=="), &shape),
        ("slack bits set", note.replace(data, &slack), &shape),
        (
            "the other alphabet",
            note.replace(data, &format!("-_{}", data.get(2..).unwrap())),
            &shape,
        ),
        ("no signature bytes", note.replace(data, ""), &shape),
        ("altered text", note.replace("17", "18"), &forged),
        ("a line more", note.replace("17\n", "17\n\n"), &forged),
        (
            "altered signature",
            note.replace(data, &data.replace(data.get(20..21).unwrap(), "/")),
            &forged,
        ),
        (
            "a longer signature",
            note.replace(data, &format!("{}AAAA", data.get(..88).unwrap())),
            &forged,
        ),
        ("another name", other.sign(TEXT), &unsigned),
        ("another key of that name", twin.sign(TEXT), &unsigned),
    ];
    for (what, bad, refusal) in cases {
        assert_eq!(key.open(&bad), Err(refusal("log.example")), "{what}: {bad}");
        assert_eq!(they_open(&bad, &key.to_string()), None, "{what}: {bad}");
    }
    // The id of the key and then the signature of another one.
    let twin_note = twin.sign(TEXT);
    let twin_data = twin_note.rsplit(' ').next().unwrap().trim_end();
    let mixed = format!("{}{}", data.get(..8).unwrap(), twin_data.get(8..).unwrap());
    let bad = note.replace(data, &mixed);
    assert!(key.open(&bad).is_err());
    assert_eq!(they_open(&bad, &key.to_string()), None);
}

#[test]
fn tr_03_signatures_of_strangers_are_passed_over() {
    let signer = signer("log.example", 1);
    let key = signer.public();
    let note = signer.sign(TEXT);
    let (_, line) = note.split_at(TEXT.len() + 1);
    // A name or an id in common is not a key in common, and a signature of an
    // unknown algorithm may have any length.
    let data = line.rsplit(' ').next().unwrap();
    let twin = Signer::generate("log.example", &Seeded::new(3)).unwrap();
    let twin_note = twin.sign(TEXT);
    let (_, twin_line) = twin_note.split_at(TEXT.len() + 1);
    let strangers = format!("{twin_line}— witness.example AQIDBAU=\n— witness.example/2 {data}");
    for all in [
        format!("{TEXT}\n{line}{strangers}"),
        format!("{TEXT}\n{strangers}{line}"),
    ] {
        assert_eq!(key.open(&all), Ok(TEXT));
        assert_eq!(they_open(&all, &key.to_string()).as_deref(), Some(TEXT));
    }
    let alone = format!("{TEXT}\n{strangers}");
    assert_eq!(
        key.open(&alone),
        Err(NoteError::Unsigned("log.example".into()))
    );
}

#[test]
fn tr_03_malformed_lines_of_strangers_spoil_a_note() {
    let signer = signer("log.example", 1);
    let key = signer.public();
    let note = signer.sign(TEXT);
    let (_, line) = note.split_at(TEXT.len() + 1);
    let mut accepted = Vec::new();
    for bad in [
        "—  AQIDBAU=\n",                  // no name
        "— a+b AQIDBAU=\n",               // a plus in the name
        "— a\u{a0}b AQIDBAU=\n",          // a space in the name
        "— a\u{1}b AQIDBAU=\n",           // a control character in the name
        "— stranger AQIDBA==\n",          // an id alone
        "— stranger AQID\n",              // less than an id
        "— stranger \n",                  // nothing
        "— stranger\n",                   // not even a space
        "— stranger AQIDBAU= AQIDBAU=\n", // too much
        "-- stranger AQIDBAU=\n",         // not a signature
    ] {
        for all in [
            format!("{TEXT}\n{line}{bad}"),
            format!("{TEXT}\n{bad}{line}"),
        ] {
            assert_eq!(they_open(&all, &key.to_string()), None, "{all}");
            if key.open(&all).is_ok() {
                accepted.push(all);
            }
        }
    }
    assert!(accepted.is_empty(), "{accepted:#?}");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn tr_03_both_sign_alike(
        seed: [u8; 32],
        name in "[^\\s+\\p{Cc}]{1,30}",
        text in "([^\\p{Cc}]{0,40}\n){1,5}",
    ) {
        struct Given([u8; 32]);
        impl safepoint_model::Entropy for Given {
            fn fill(&self, bytes: &mut [u8]) -> Result<(), safepoint_model::EntropyError> {
                bytes.copy_from_slice(&self.0);
                Ok(())
            }
        }
        let signer = Signer::generate(&name, &Given(seed)).unwrap();
        let (private, public) = (signer.to_text(), signer.public().to_string());
        let note = signer.sign(&text);
        prop_assert_eq!(&they_sign(&text, &private), &note);
        prop_assert_eq!(they_open(&note, &public), Some(text.clone()));
        prop_assert_eq!(signer.public().open(&note), Ok(text.as_str()));
        // Both halves of the key survive being written down.
        prop_assert_eq!(Signer::parse(&private).unwrap().to_text(), private);
        prop_assert_eq!(&public.parse::<PublicKey>().unwrap(), signer.public());
    }

    /// One character of a note, replaced, put in or taken out.
    #[test]
    fn tr_03_an_altered_note_is_refused_by_both(
        at: prop::sample::Index,
        with in prop::option::of(prop_oneof![any::<char>(), prop::char::range(' ', '~'), Just('\n')]),
        insert: bool,
    ) {
        let signer = signer("log.example", 1);
        let note = signer.sign(TEXT);
        let mut characters: Vec<char> = note.chars().collect();
        let at = at.index(characters.len());
        let removed = if insert { None } else { Some(characters.remove(at)) };
        if let Some(with) = with {
            characters.insert(at, with);
        }
        prop_assume!(removed != with);
        let altered: String = characters.into_iter().collect();
        prop_assert!(signer.public().open(&altered).is_err());
        prop_assert_eq!(they_open(&altered, &signer.public().to_string()), None);
    }

    #[test]
    fn tr_03_any_text_is_read_without_panic(text: String, key: String) {
        let signer = signer("log.example", 1);
        let _ = signer.public().open(&text);
        let _ = SignedHead::open(&text, signer.public());
        let _ = Head::parse(&text);
        prop_assert!(Signer::parse(&key).is_err());
        prop_assert!(key.parse::<PublicKey>().is_err());
    }

    #[test]
    fn tr_03_heads_are_read_alike(
        origin in "[^\\p{Cc}]{1,40}",
        size: u64,
        root: [u8; 32],
        extension in "([^\\p{Cc}]{1,20}\n){0,2}",
        at: prop::sample::Index,
        with in prop::option::of(prop_oneof![prop::char::range(' ', '~'), Just('0'), Just('\n')]),
        insert: bool,
    ) {
        let head = Head { origin: origin.clone(), size, root: Digest::from_bytes(root) };
        let text = head.to_text();
        let theirs = Checkpoint::from_bytes(text.as_bytes()).unwrap();
        prop_assert_eq!(theirs.origin(), origin.as_str());
        prop_assert_eq!(theirs.size(), size);
        prop_assert_eq!(theirs.hash(), &Hash(root));
        prop_assert_eq!(theirs.to_bytes(), text.as_bytes());

        let theirs = Checkpoint::new(&origin, size, Hash(root), &extension).unwrap();
        let text = String::from_utf8(theirs.to_bytes()).unwrap();
        prop_assert_eq!(Head::parse(&text), Some(head));

        let mut characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len());
        if !insert {
            characters.remove(at);
        }
        if let Some(with) = with {
            characters.insert(at, with);
        }
        let altered: String = characters.into_iter().collect();
        let ours = Head::parse(&altered);
        let theirs = Checkpoint::from_bytes(altered.as_bytes()).ok();
        prop_assert_eq!(
            ours.map(|head| (head.origin, head.size, *head.root.as_bytes())),
            theirs.map(|head| (head.origin().to_owned(), head.size(), head.hash().0)),
            "{:?}", altered
        );
    }
}

const ROOT: &str = "TszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBb0=";

#[test]
fn tr_03_text_that_is_not_a_head_is_refused_by_both() {
    let good = format!("log.example\n123\n{ROOT}\n");
    assert!(Head::parse(&good).is_some());
    for bad in [
        String::new(),
        "\n\n\n".into(),
        format!("\n123\n{ROOT}\n"),
        format!("log.example\n{ROOT}\n123\n"),
        format!("log.example\n\n{ROOT}\n"),
        format!("log.example\n0123\n{ROOT}\n"),
        format!("log.example\n00\n{ROOT}\n"),
        format!("log.example\n+123\n{ROOT}\n"),
        format!("log.example\n-0\n{ROOT}\n"),
        format!("log.example\n 123\n{ROOT}\n"),
        format!("log.example\n123 \n{ROOT}\n"),
        format!("log.example\n1_000\n{ROOT}\n"),
        format!("log.example\n0x7b\n{ROOT}\n"),
        format!("log.example\n١٢٣\n{ROOT}\n"),
        format!("log.example\n18446744073709551616\n{ROOT}\n"),
        format!("log.example\n123\r\n{ROOT}\n"),
        format!("log.example\n123\n{ROOT}\r\n"),
        format!("log.example\n123\n {ROOT}\n"),
        "log.example\n123\n\n".into(),
        "log.example\n123\n".into(),
        good.replace('=', ""),
        good.replace('=', "=="),
        good.replace("Bb0=", "Bb1="), // a bit beyond the 32 bytes
        good.replace("Bb0=", "Bb0A"),
        good.replace("wBb0=", "w=="),
        good.replace('+', "-"),
    ] {
        assert_eq!(Head::parse(&bad), None, "{bad:?}");
        assert!(Checkpoint::from_bytes(bad.as_bytes()).is_err(), "{bad:?}");
    }
    for size in ["0", "18446744073709551615"] {
        let good = good.replace("123", size);
        assert_eq!(Head::parse(&good).unwrap().size.to_string(), size);
        assert!(Checkpoint::from_bytes(good.as_bytes()).is_ok());
    }
}

#[test]
fn tr_03_a_head_without_its_last_newline_is_refused_by_both() {
    for bad in [
        format!("log.example\n123\n{ROOT}"),
        format!("log.example\n123\n{ROOT}\nextension"),
    ] {
        assert!(Checkpoint::from_bytes(bad.as_bytes()).is_err(), "{bad:?}");
        assert_eq!(Head::parse(&bad), None, "{bad:?}");
    }
}

#[test]
fn tr_03_a_head_with_an_empty_extension_line_is_refused_by_both() {
    for bad in [
        format!("log.example\n123\n{ROOT}\n\n"),
        format!("log.example\n123\n{ROOT}\n\nextension\n"),
        format!("log.example\n123\n{ROOT}\nextension\n\n"),
    ] {
        assert!(Checkpoint::from_bytes(bad.as_bytes()).is_err(), "{bad:?}");
        assert_eq!(Head::parse(&bad), None, "{bad:?}");
    }
}

#[test]
fn tr_03_a_signed_head_is_of_the_log_of_its_key() {
    let signer = signer("log.example", 1);
    let head = Head {
        origin: "log.example".into(),
        size: 3,
        root: Digest::from_bytes([7; 32]),
    };
    let signed = head.clone().sign(&signer);
    assert_eq!(signed.head(), &head);
    let opened = SignedHead::open(signed.note(), signer.public()).unwrap();
    assert_eq!(opened, signed);
    let text = they_open(signed.note(), &signer.public().to_string()).unwrap();
    let theirs = Checkpoint::from_bytes(text.as_bytes()).unwrap();
    assert_eq!(theirs.origin(), "log.example");
    assert_eq!((theirs.size(), theirs.hash()), (3, &Hash([7; 32])));

    let other = Head {
        origin: "other.example".into(),
        ..head
    };
    let note = other.sign(&signer).note().to_owned();
    assert!(matches!(
        SignedHead::open(&note, signer.public()),
        Err(HeadError::OtherLog { found, expected })
            if found == "other.example" && expected == "log.example"
    ));
    assert_eq!(
        SignedHead::open(&signer.sign("not a head\n"), signer.public()),
        Err(HeadError::Shape)
    );
}
