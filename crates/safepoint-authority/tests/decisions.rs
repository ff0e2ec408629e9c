//! Holds, decisions, permits, envelopes and trust: who may say yes, to what, how often.

#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeSet;

use proptest::prelude::*;
use safepoint_authority::{
    Boundaries, Boundary, Canonical, Choice, Decision, DenialCode, Envelope, EnvelopeError, Hold,
    HoldError, HoldState, Level, PermitState, Reversibility, Risk, SideEffect, SignedDecision,
    Standing, Trigger, Trust,
};
use safepoint_trail::note::PublicKey;
use support::{at, decision, digest, form, hold, permit, signed, signer, trust, words};

fn yes(hold: &Hold, operator: &str) -> Result<Hold, HoldError> {
    let decision = decision(hold, operator, Choice::Continue);
    hold.decide(&decision, signed(&decision), at(1))
}

#[test]
fn au_20_one_yes_is_enough_where_it_can_be_undone() {
    for class in [Reversibility::Reversible, Reversibility::Partly] {
        let hold = hold(class, 1);
        assert_eq!(hold.confirm(), None);
        assert_eq!(yes(&hold, "ann").unwrap().state, HoldState::Approved);
    }
}

#[test]
fn au_20_what_cannot_be_undone_needs_a_word_of_its_own() {
    for class in [Reversibility::Irreversible, Reversibility::Unknown] {
        let hold = hold(class, 1);
        let word = hold.confirm().unwrap();
        for said in [None, Some("y"), Some(""), Some("yes"), Some("final-")] {
            let decision = Decision {
                confirm: said.map(str::to_owned),
                ..decision(&hold, "ann", Choice::Continue)
            };
            let refused = hold.decide(&decision, signed(&decision), at(1));
            assert_eq!(refused, Err(HoldError::Confirm(word.clone())), "{said:?}");
        }
        assert_eq!(yes(&hold, "ann").unwrap().state, HoldState::Approved);
        // A no needs no second word.
        let no = Decision {
            confirm: None,
            ..decision(&hold, "ann", Choice::Deny)
        };
        assert!(hold.decide(&no, signed(&no), at(1)).is_ok());
        // The word of another hold is another one.
        let mut other = hold.clone();
        other.hold_id = "hld_0000000000000002".parse().unwrap();
        assert_ne!(other.confirm().unwrap(), word);
        other = hold.clone();
        other.fingerprint = digest("other");
        assert_ne!(other.confirm().unwrap(), word);
    }
}

#[test]
fn au_20_a_decision_about_something_else_does_not_count() {
    let hold = hold(Reversibility::Reversible, 1);
    let other = Decision {
        fingerprint: digest("other"),
        ..decision(&hold, "ann", Choice::Continue)
    };
    let refused = hold.decide(&other, signed(&other), at(1));
    assert_eq!(refused, Err(HoldError::Fingerprint));
    let other = Decision {
        hold_id: "hld_0000000000000002".parse().unwrap(),
        ..decision(&hold, "ann", Choice::Continue)
    };
    let refused = hold.decide(&other, signed(&other), at(1));
    assert_eq!(refused, Err(HoldError::Fingerprint));
}

#[test]
fn au_21_two_operators_are_two_different_ones() {
    let hold = hold(Reversibility::Reversible, 2);
    let once = yes(&hold, "ann").unwrap();
    assert_eq!(once.state, HoldState::Pending);
    assert_eq!(yes(&once, "ann"), Err(HoldError::Again("ann".to_owned())));
    let twice = yes(&once, "bernd").unwrap();
    assert_eq!(twice.state, HoldState::Approved);
    assert_eq!(twice.approvers(), words(&["ann", "bernd"]));
    // One no among them is a no.
    let no = decision(&once, "bernd", Choice::Deny);
    let denied = once.decide(&no, signed(&no), at(1)).unwrap();
    assert_eq!(denied.state, HoldState::Denied);
    assert_eq!(yes(&denied, "carla"), Err(HoldError::Settled("denied")));
}

#[test]
fn au_23_one_operator_does_not_widen_what_two_must_agree_to() {
    let hold = hold(Reversibility::Reversible, 2);
    let once = yes(&hold, "ann").unwrap();
    let wide = Decision {
        envelope: Some(envelope()),
        ..decision(&once, "bernd", Choice::Modify)
    };
    let refused = once.decide(&wide, signed(&wide), at(1));
    assert_eq!(refused, Err(HoldError::Disagrees("ann".to_owned())));
    // Both of them can.
    let first = Decision {
        operator: "ann".to_owned(),
        ..wide.clone()
    };
    let once = hold.decide(&first, signed(&first), at(1)).unwrap();
    let twice = once.decide(&wide, signed(&wide), at(1)).unwrap();
    assert_eq!(twice.state, HoldState::Approved);
}

#[test]
fn au_27_too_late_is_no() {
    let hold = hold(Reversibility::Reversible, 1);
    let decision = decision(&hold, "ann", Choice::Continue);
    let at_the_end = hold.decide(&decision, signed(&decision), at(1_000));
    assert_eq!(at_the_end, Err(HoldError::Expired));
    assert!(hold.decide(&decision, signed(&decision), at(999)).is_ok());
    for (state, error) in [
        (HoldState::Approved, HoldError::Settled("approved")),
        (HoldState::Denied, HoldError::Settled("denied")),
        (HoldState::Expired, HoldError::Expired),
    ] {
        let settled = Hold {
            state,
            ..hold.clone()
        };
        assert_eq!(yes(&settled, "ann"), Err(error));
    }
}

#[test]
fn au_22_a_halt_lasts_until_somebody_acts() {
    let hold = hold(Reversibility::Reversible, 1);
    let halt = decision(&hold, "ann", Choice::Halt);
    let halted = hold.decide(&halt, signed(&halt), at(1)).unwrap();
    assert_eq!(halted.state, HoldState::Halted);
    let late = decision(&halted, "ann", Choice::Continue);
    let resumed = halted.decide(&late, signed(&late), at(1_000_000)).unwrap();
    assert_eq!(resumed.state, HoldState::Approved);
}

#[test]
fn au_21_the_public_key_alone_verifies_a_decision() {
    let hold = hold(Reversibility::Irreversible, 1);
    let decision = Decision {
        reason: Some("line one\nline two — ünïcode".to_owned()),
        envelope: Some(envelope()),
        ..decision(&hold, "ann", Choice::Modify)
    };
    let note = signed(&decision);
    let key: PublicKey = signer("ann").public().to_string().parse().unwrap();
    assert_eq!(note.open(&key).unwrap(), decision);
    let other: PublicKey = signer("bernd").public().to_string().parse().unwrap();
    assert!(note.open(&other).is_err());
    // Somebody else with the same name.
    let impostor = safepoint_trail::note::Signer::generate("ann", &support::Counted(99)).unwrap();
    let forged = SignedDecision::new(impostor.sign(&decision.to_text().unwrap()));
    assert!(forged.open(&key).is_err());
    assert_eq!(forged.claimed().unwrap().operator, "ann");
}

#[test]
fn au_21_one_changed_byte_is_refused() {
    let hold = hold(Reversibility::Reversible, 1);
    let decision = decision(&hold, "ann", Choice::Deny);
    let note = signed(&decision).note().to_owned();
    let key = signer("ann").public().clone();
    let mut tried = 0;
    for place in 0..note.len() {
        for flip in [1_u8, 0x20] {
            let mut bytes = note.clone().into_bytes();
            bytes[place] ^= flip;
            let Ok(text) = String::from_utf8(bytes) else {
                continue;
            };
            tried += 1;
            let opened = SignedDecision::new(text).open(&key);
            assert!(opened.is_err(), "byte {place} ^ {flip}: {opened:?}");
        }
    }
    assert!(tried > note.len(), "{tried}");
    assert!(SignedDecision::new(note).open(&key).is_ok());
}

#[test]
fn au_21_a_signature_over_something_else_is_no_decision() {
    let hold = hold(Reversibility::Reversible, 1);
    let key = signer("ann").public().clone();
    let other = Decision {
        statement: "safepoint/decision/v2".to_owned(),
        ..decision(&hold, "ann", Choice::Continue)
    };
    for text in [
        "{}\n".to_owned(),
        "yes\n".to_owned(),
        other.to_text().unwrap(),
    ] {
        let note = SignedDecision::new(signer("ann").sign(&text));
        assert!(note.open(&key).is_err(), "{text}");
    }
}

fn envelope() -> Envelope {
    Envelope {
        actions: words(&["file.*", "git.commit"]),
        paths: words(&["/srv/site"]),
        side_effects: BTreeSet::from([SideEffect::Read, SideEffect::Write]),
        hosts: words(&["example.org"]),
        uses: Some(2),
        expires_at: Some(at(1_000)),
    }
}

#[test]
fn au_23_what_fits_is_not_asked_and_what_does_not_is_named() {
    let it = envelope();
    assert!(it.delta(&form(), at(1)).is_empty());
    type Change = fn(&mut Canonical);
    let new: [(Change, &str); 7] = [
        (
            |it| {
                it.actions.insert("git.push".to_owned());
            },
            r#""actions":["git.push"]"#,
        ),
        (
            |it| {
                it.actions.insert("filet".to_owned());
            },
            r#""actions":["filet"]"#,
        ),
        (
            |it| it.paths[0].path = "/srv/site2/x".to_owned(),
            r#""paths":["/srv/site2/x"]"#,
        ),
        (
            |it| it.paths[0].path = "/srv".to_owned(),
            r#""paths":["/srv"]"#,
        ),
        (
            |it| {
                it.side_effects.insert(SideEffect::Secret);
            },
            r#""side_effects":["secret"]"#,
        ),
        (
            |it| it.hosts = words(&["evil.example", "example.org"]),
            r#""hosts":["evil.example"]"#,
        ),
        (
            |it| it.hosts = words(&["example.org.evil"]),
            r#""hosts":["example.org.evil"]"#,
        ),
    ];
    for (change, told) in new {
        let mut action = form();
        change(&mut action);
        let delta = it.delta(&action, at(1));
        let shown = serde_json::to_string(&delta).unwrap();
        assert!(!delta.is_empty() && shown.contains(told), "{told}: {shown}");
    }
    // Reading widens nothing.
    let mut reads = form();
    reads.paths[0].path = "/etc/hosts".to_owned();
    reads.paths[0].role = "read".to_owned();
    assert!(it.delta(&reads, at(1)).is_empty());
    assert!(it.delta(&form(), at(1_000)).expired);
    assert!(!it.delta(&form(), at(999)).expired);
    let used = it.used().used();
    assert!(used.delta(&form(), at(1)).used_up);
    assert_eq!(used.used().uses, Some(0), "never below nothing");
}

#[test]
fn au_23_an_envelope_is_bounded() {
    let read = |actions: &str, paths: &str| {
        Envelope::read(&format!(
            r#"{{"actions": {actions}, "paths": {paths}, "side_effects": ["write"]}}"#
        ))
    };
    assert!(read(r#"["file.*"]"#, r#"["/srv"]"#).is_ok());
    for all in [
        r#"["*"]"#,
        r#"[".*"]"#,
        r#"["f*le.*"]"#,
        r#"["file.*", "*"]"#,
    ] {
        let refused = read(all, "[]");
        assert!(matches!(refused, Err(EnvelopeError::TooWide(_))), "{all}");
    }
    assert!(matches!(read("[]", "[]"), Err(EnvelopeError::Empty)));
    for path in [r#"["srv"]"#, r#"["/srv/../etc"]"#, r#"[""]"#] {
        let refused = read(r#"["file.*"]"#, path);
        assert!(matches!(refused, Err(EnvelopeError::Path(_))), "{path}");
    }
    let more = r#"{"actions": ["file.*"], "side_effects": ["write"], "everything": true}"#;
    assert!(matches!(Envelope::read(more), Err(EnvelopeError::Read(_))));
    let twice = r#"{"actions": ["file.*"], "actions": ["git.*"], "side_effects": []}"#;
    assert!(matches!(Envelope::read(twice), Err(EnvelopeError::Read(_))));
}

#[test]
fn au_10_the_mandatory_triggers() {
    let plain = Standing::default();
    let of = |action: &Canonical, standing: &Standing| Boundaries::of(action, standing).triggers;
    assert_eq!(of(&form(), &plain), []);
    type Change = fn(&mut Canonical);
    let of_the_action: [(Change, Trigger); 4] = [
        (|it| it.risk = Risk::High, Trigger::HigherRisk),
        (|it| it.risk = Risk::Critical, Trigger::HigherRisk),
        (|it| it.paths[0].inside = false, Trigger::PathScope),
        (
            |it| {
                it.side_effects.insert(SideEffect::Delegate);
            },
            Trigger::Delegation,
        ),
    ];
    for (change, trigger) in of_the_action {
        let mut action = form();
        change(&mut action);
        assert_eq!(of(&action, &plain), [trigger]);
    }
    let of_the_session = [
        (
            Standing {
                provider: Some("other".to_owned()),
                ..plain.clone()
            },
            Trigger::ProviderChange,
        ),
        (
            Standing {
                rules_changed: true,
                ..plain.clone()
            },
            Trigger::PolicyBoundary,
        ),
        (
            Standing {
                violated: true,
                ..plain.clone()
            },
            Trigger::TrustViolation,
        ),
        (
            Standing {
                every_step: true,
                ..plain.clone()
            },
            Trigger::EveryStep,
        ),
    ];
    for (standing, trigger) in of_the_session {
        assert_eq!(of(&form(), &standing), [trigger]);
    }
    let same = Standing {
        provider: Some("acme".to_owned()),
        ..plain
    };
    assert_eq!(of(&form(), &same), []);
    // Reading outside is not changing outside.
    let mut reads = form();
    reads.paths[0].inside = false;
    reads.paths[0].role = "read".to_owned();
    assert_eq!(of(&reads, &same), []);
}

#[test]
fn au_24_a_permit_is_good_once_in_time_and_on_its_trust() {
    let issued = permit();
    let code = |it: Result<_, safepoint_authority::PermitError>| it.unwrap_err().0;
    assert_eq!(
        code(issued.reserve(&trust(3), at(1_000))),
        DenialCode::PermitExpired
    );
    assert_eq!(
        code(issued.reserve(&trust(4), at(1))),
        DenialCode::TrustReset
    );
    assert_eq!(
        code(issued.reserve(&Default::default(), at(1))),
        DenialCode::TrustReset
    );
    let reserved = issued.reserve(&trust(3), at(1)).unwrap();
    assert_eq!(
        code(reserved.reserve(&trust(3), at(1))),
        DenialCode::OutcomeUnknown
    );
    assert!(
        reserved.cancel(DenialCode::PermitRevoked, at(1)).is_err(),
        "it is in use"
    );
    let used = reserved.consume("ok", at(2)).unwrap();
    assert_eq!(
        code(used.reserve(&trust(3), at(3))),
        DenialCode::PermitConsumed
    );
    let lost = reserved.consume("unknown", at(2)).unwrap();
    assert_eq!(
        code(lost.reserve(&trust(3), at(3))),
        DenialCode::OutcomeUnknown
    );
    let void = issued.cancel(DenialCode::PermitRevoked, at(1)).unwrap();
    assert_eq!(
        code(void.reserve(&trust(3), at(1))),
        DenialCode::PermitRevoked
    );
    assert!(issued.consume("ok", at(1)).is_err(), "it was not reserved");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Reserve { trust: u64, time: i64 },
    Consume,
    Cancel,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (2_u64..5, 0_i64..1_500).prop_map(|(trust, time)| Step::Reserve { trust, time }),
        2 => Just(Step::Consume),
        1 => Just(Step::Cancel),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #[test]
    fn au_24_never_reserved_twice_nor_used_twice(steps in steps()) {
        let (mut it, mut reserved, mut consumed, mut void) = (permit(), 0, 0, 0);
        for step in steps {
            let before = it.clone();
            let next = match step {
                Step::Reserve { trust: version, time } => {
                    let next = it.reserve(&trust(version), at(time));
                    if next.is_ok() {
                        prop_assert_eq!(&before.state, &PermitState::Issued {});
                        prop_assert!(version == 3 && time < 1_000);
                        reserved += 1;
                    }
                    next
                }
                Step::Consume => {
                    let next = it.consume("ok", at(1));
                    consumed += u32::from(next.is_ok());
                    next
                }
                Step::Cancel => {
                    let next = it.cancel(DenialCode::PermitRevoked, at(1));
                    void += u32::from(next.is_ok());
                    next
                }
            };
            if let Ok(next) = next {
                prop_assert_eq!(&next.fingerprint, &before.fingerprint);
                it = next;
            }
            prop_assert!(reserved <= 1 && consumed <= reserved && void <= 1);
            prop_assert!(void == 0 || reserved == 0, "called back while in use");
        }
    }

    /// Evidence adds up only between two violations, and every change is a new version.
    #[test]
    fn au_30_trust_grows_by_evidence_and_is_lost_at_once(
        steps in prop::collection::vec(0_u8..5, 0..60),
        enough in 1_u32..6,
    ) {
        let boundary: Boundary = "tool:/usr/bin/git".parse().unwrap();
        let mut it = Trust::new(boundary, at(0));
        let (mut seen, mut granted) = (0, false);
        for step in steps {
            let before = it.clone();
            it = match step {
                // The rules name no evidence: nothing changes at all.
                0 => it.proven(None, digest("p"), at(1)),
                1 | 2 => {
                    seen += 1;
                    it.proven(Some(enough), digest("p"), at(1))
                }
                3 => {
                    (seen, granted) = (0, false);
                    it.violated("it did".to_owned(), at(1))
                }
                _ => {
                    granted = true;
                    it.granted(Level::Trusted, "said so".to_owned(), at(1))
                }
            };
            let rise = u64::from(step != 0);
            prop_assert_eq!(it.version, before.version + rise);
            if step == 3 {
                prop_assert_eq!((it.level, it.evidence), (Level::Untrusted, 0));
            }
            let trusted = granted || seen >= enough;
            prop_assert_eq!(it.level == Level::Trusted, trusted, "{:?}", it);
        }
    }
}

#[test]
fn au_30_a_boundary_is_one_of_five_kinds() {
    for text in [
        "tool:/bin/x",
        "path:/srv",
        "specialist:a",
        "provider:a",
        "workflow:a:b",
    ] {
        assert_eq!(text.parse::<Boundary>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "tool",
        "tool:",
        "tool: ",
        "user:x",
        "Tool:/x",
        "tool:/a\nb",
        "path:\u{1b}[m",
    ] {
        assert!(text.parse::<Boundary>().is_err(), "{text:?}");
    }
    assert!(
        format!("path:{}", "x".repeat(5_000))
            .parse::<Boundary>()
            .is_err()
    );
}
