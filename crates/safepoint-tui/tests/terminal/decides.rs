//! What it takes to decide, and what never decides anything.

use crate::holds::{final_hold, hostile_hold, seal};
use crate::support::{Bench, before, plain, verdict};
use safepoint_authority::{Choice, Hold, HoldState};
use safepoint_tui::{App, Drawn, Effect, Ended, Event, Key, Until};

const NARROW: (u16, u16) = (72, 24);

fn final_bench() -> (Bench, String) {
    let hold = final_hold(2, before(90));
    let word = hold.confirm().unwrap();
    let mut bench = Bench::new(NARROW, &[hold]);
    bench.read_all();
    (bench, word)
}

#[test]
fn au_40_y_is_refused_until_the_end_of_the_form_was_on_screen() {
    let mut bench = Bench::new(NARROW, &[plain(1, 150)]);
    assert!(bench.key('y').is_empty());
    assert!(bench.shows("Not read to the end yet"));
    for key in ['e', 's'] {
        assert!(bench.key(key).is_empty());
        assert!(bench.shows("Not read to the end yet"), "{key}");
    }
    // The last line but one is not the end.
    let last = bench.drawn.total - bench.drawn.height;
    while bench.drawn.top + 1 < last {
        bench.key('j');
    }
    assert!(bench.key('y').is_empty());
    bench.key('j');
    let verdict = verdict(&bench.key('y')).unwrap();
    let pending = plain(1, 150).pending();
    assert_eq!(verdict.hold_id, pending.hold_id);
    assert_eq!(verdict.fingerprint, pending.fingerprint);
    assert_eq!(verdict.choice, Choice::Continue);
    assert_eq!((verdict.confirm, verdict.envelope), (None, None));
}

#[test]
fn au_40_every_way_to_the_end_counts_and_no_other_page_does() {
    for way in [
        Key::End,
        Key::PageDown,
        Key::Down,
        Key::Char('G'),
        Key::Char(' '),
    ] {
        let mut bench = Bench::new(NARROW, &[plain(1, 150)]);
        for _ in 0..100 {
            bench.press(way);
        }
        assert!(verdict(&bench.key('y')).is_some(), "{way:?}");
    }
    for page in ['c', 't', 'i'] {
        let mut bench = Bench::new(NARROW, &[plain(1, 150)]);
        bench.key(page);
        bench.key('G');
        assert!(bench.key('y').is_empty());
        assert!(bench.shows("was not read yet: d shows it"), "{page}");
    }
    // What lies under help or a question was not seen.
    let mut bench = Bench::new(NARROW, &[plain(1, 150)]);
    bench.happen(Event::Keys(vec![Key::Char('G'), Key::Char('?')]));
    assert!(bench.drawn.top > 0 && bench.shows("before you approve"));
    let drawn = Drawn {
        form_end: true,
        ..bench.drawn
    };
    bench.happen(Event::Drawn(drawn));
    assert!(bench.shows("before you approve"));
    bench.key('x');
    assert!(bench.shows("✓ Read to the end"));
}

#[test]
fn au_20_a_final_action_needs_its_word_typed() {
    let (mut bench, word) = final_bench();
    assert!(bench.key('y').is_empty());
    for _ in 0..5 {
        assert!(bench.key('y').is_empty());
        assert!(bench.press(Key::Enter).is_empty());
    }
    assert!(bench.shows("That is not the word"));
    assert!(bench.type_in(&word.to_uppercase()).is_empty());
    assert!(bench.press(Key::Enter).is_empty());
    assert!(bench.type_in(&word).is_empty());
    let verdict = verdict(&bench.press(Key::Enter)).unwrap();
    assert_eq!(verdict.confirm, Some(word));
    assert_eq!(verdict.choice, Choice::Continue);
}

#[test]
fn au_20_an_unknown_outcome_is_final_too_and_each_hold_has_its_own_word() {
    let hostile = hostile_hold(3, before(20));
    let mut bench = Bench::new(NARROW, std::slice::from_ref(&hostile));
    bench.read_all();
    bench.key('y');
    bench.type_in(&final_hold(2, before(90)).confirm().unwrap());
    assert!(bench.press(Key::Enter).is_empty());
    bench.type_in(&hostile.confirm().unwrap());
    assert!(verdict(&bench.press(Key::Enter)).is_some());
}

#[test]
fn au_20_a_paste_is_never_a_key() {
    let (mut bench, word) = final_bench();
    let all: Vec<Key> = format!("y\n{word}\n").chars().map(as_key).collect();
    // With and without the terminal telling that it is a paste.
    assert!(bench.happen(Event::Paste).is_empty());
    assert!(bench.shows("A paste is not a key"));
    assert!(bench.happen(Event::Keys(all.clone())).is_empty());
    assert!(bench.shows("none of them counts"));
    assert!(!bench.shows("second confirmation"));
    // Neither does it answer the question.
    bench.key('y');
    let word_keys: Vec<Key> = word.chars().map(as_key).collect();
    for keys in [all, word_keys] {
        assert!(bench.happen(Event::Keys(keys)).is_empty());
        assert!(bench.shows("came too fast to be typed"));
        assert!(bench.press(Key::Enter).is_empty());
        assert!(bench.shows("That is not the word"));
    }
}

#[test]
fn au_20_what_comes_in_one_burst_never_counts_as_two() {
    let (mut bench, word) = final_bench();
    assert!(
        bench
            .happen(Event::Keys(vec![Key::Char('y'), Key::Enter]))
            .is_empty()
    );
    assert!(!bench.shows("second confirmation"));
    bench.key('y');
    let (last, rest) = word.split_at(word.len() - 1);
    bench.type_in(last);
    let burst = vec![as_key(rest.chars().next().unwrap()), Key::Enter];
    assert!(bench.happen(Event::Keys(burst)).is_empty());
    assert!(bench.shows("press Enter alone"));
    assert!(verdict(&bench.press(Key::Enter)).is_some());
}

#[test]
fn au_20_a_key_held_down_does_not_decide_the_next_hold() {
    let holds = [plain(1, 150), plain(4, 100)];
    // Tall enough that the whole form is in view at once.
    let mut bench = Bench::new((120, 100), &holds);
    assert!(verdict(&bench.key('y')).is_some());
    assert!(bench.key('y').is_empty(), "not twice about one");
    bench.happen(Event::Decided(Ok("done".to_owned())));
    bench.queue(&holds[1..]);
    for _ in 0..50 {
        bench.wait(30);
        assert!(bench.key('y').is_empty());
        assert!(bench.shows("only just come on screen"));
    }
    bench.wait(800);
    let verdict = verdict(&bench.key('y')).unwrap();
    assert_eq!(verdict.hold_id, holds[1].hold_id);
}

#[test]
fn au_20_what_changes_under_the_operator_must_be_read_again() {
    let (mut bench, word) = final_bench();
    bench.key('y');
    bench.type_in(&word);
    let mut other = final_hold(2, before(90));
    other.canonical.argv.push("--tags".to_owned());
    let other = seal(other);
    bench.queue(std::slice::from_ref(&other));
    assert!(bench.shows("It has changed while you looked at it"));
    assert!(!bench.shows("second confirmation"));
    assert!(bench.press(Key::Enter).is_empty());
    bench.wait(2_000);
    assert!(bench.key('y').is_empty());
    assert!(bench.shows("Not read to the end yet"));
    bench.read_all();
    bench.key('y');
    bench.type_in(&word);
    assert!(bench.press(Key::Enter).is_empty(), "the old word");
    bench.type_in(&other.confirm().unwrap());
    let verdict = verdict(&bench.press(Key::Enter)).unwrap();
    assert_eq!(verdict.fingerprint, other.fingerprint);
}

#[test]
fn au_20_a_form_under_another_fingerprint_cannot_be_approved() {
    let mut hold = plain(1, 150);
    hold.canonical.argv.push("--amend".to_owned());
    let mut bench = Bench::new(NARROW, &[hold]);
    bench.read_all();
    for key in ['y', 'e', 's'] {
        assert!(bench.key(key).is_empty());
        assert!(bench.shows("fingerprint does not belong"), "{key}");
    }
    bench.key('n');
    assert!(verdict(&bench.press(Key::Enter)).is_some());
}

#[test]
fn au_20_a_final_action_without_a_word_cannot_be_approved() {
    let mut pending = final_hold(2, before(90)).pending();
    pending.confirm = None;
    let mut bench = Bench::new(NARROW, &[]);
    bench.happen(Event::Queue(Ok(vec![pending])));
    bench.read_all();
    bench.wait(2_000);
    for key in ['y', 'e', 's'] {
        assert!(bench.key(key).is_empty());
        assert!(bench.shows("confirmation was given"), "{key}");
    }
}

#[test]
fn au_13_the_oldest_is_decided_first_whatever_the_order_given() {
    let holds = [plain(5, 10), plain(6, 200), plain(7, 100)];
    let mut bench = Bench::new(NARROW, &holds);
    let screen = bench.screen();
    assert!(screen.contains("hld_0000000000000006"), "{screen}");
    bench.press(Key::Tab);
    assert!(bench.shows("hld_0000000000000007"));
    bench.read_all();
    bench.wait(2_000);
    for key in ['y', 'n', 'e', 's', 'h'] {
        assert!(bench.key(key).is_empty());
        assert!(bench.shows("An older one is decided first"), "{key}");
    }
    bench.key('o');
    bench.read_all();
    bench.wait(2_000);
    let verdict = verdict(&bench.key('y')).unwrap();
    assert_eq!(verdict.hold_id, holds[1].hold_id);
    // It is gone on the next reading, and the next one is on screen.
    bench.happen(Event::Decided(Ok("approved".to_owned())));
    bench.queue(&[plain(5, 10), plain(7, 100)]);
    assert!(bench.shows("hld_0000000000000007"));
    assert!(bench.shows("✓ approved"));
}

#[test]
fn au_13_what_expired_is_marked_and_holds_up_nobody() {
    let mut old = plain(1, 590);
    let young = plain(4, 100);
    let mut bench = Bench::new(NARROW, &[old.clone(), young.clone()]);
    bench.key('n');
    bench.wait(10_000);
    assert!(bench.shows("It has expired: nothing was decided."));
    assert!(bench.shows("EXPIRED"));
    assert!(bench.press(Key::Enter).is_empty());
    assert!(bench.key('n').is_empty());
    assert!(bench.shows("It has expired"));
    bench.key('o');
    bench.wait(2_000);
    bench.key('n');
    let denied = verdict(&bench.press(Key::Enter)).unwrap();
    assert_eq!(denied.hold_id, young.hold_id);
    // Also when it is the queue that brings the time.
    let mut bench = Bench::new(NARROW, std::slice::from_ref(&old));
    bench.key('n');
    bench.now = bench.now.saturating_add_micros(10_000_000);
    bench.queue(std::slice::from_ref(&old));
    assert!(bench.shows("It has expired: nothing was decided."));
    // The operator's own halt is no surprise to them.
    let mut bench = Bench::new(NARROW, std::slice::from_ref(&young));
    bench.key('h');
    assert!(verdict(&bench.press(Key::Enter)).is_some());
    bench.happen(Event::Decided(Ok("halted".to_owned())));
    let mut halted = young.clone();
    halted.state = HoldState::Halted;
    bench.queue(&[halted]);
    assert!(bench.shows("✓ halted") && bench.shows("HALTED"));
    // One that is halted can be decided whenever somebody wants to, and holds up nobody either.
    old.state = HoldState::Halted;
    let mut bench = Bench::new(NARROW, &[old.clone(), young.clone()]);
    assert!(bench.shows("HALTED"));
    for (hold, keys) in [(&young, None), (&old, Some(Key::BackTab))] {
        keys.map(|key| bench.press(key));
        bench.wait(2_000);
        bench.key('n');
        let denied = verdict(&bench.press(Key::Enter)).unwrap();
        assert_eq!(denied.hold_id, hold.hold_id);
        bench.queue(&[old.clone(), young.clone()]);
    }
}

#[test]
fn au_13_what_vanishes_is_said_and_new_ones_ring_without_pushing_in() {
    let mut bench = Bench::new(NARROW, &[plain(1, 150)]);
    let effects = bench.queue(&[plain(1, 150), plain(4, 5)]);
    assert!(effects.contains(&Effect::Ring));
    assert!(bench.shows("hld_0000000000000001"));
    assert!(
        !bench
            .queue(&[plain(1, 150), plain(4, 5)])
            .contains(&Effect::Ring)
    );
    bench.queue(&[plain(4, 5)]);
    assert!(bench.shows("is gone. This is another one."));
    assert!(bench.shows("hld_0000000000000004"));
    bench.queue(&[]);
    assert!(bench.shows("Nothing waits."));
    assert!(bench.key('y').is_empty());
}

#[test]
fn au_22_all_five_outcomes() {
    let after_reading = |keys: &dyn Fn(&mut Bench) -> Vec<Effect>| {
        let mut bench = Bench::new(NARROW, &[plain(1, 150)]);
        bench.read_all();
        verdict(&keys(&mut bench)).unwrap()
    };
    assert_eq!(after_reading(&|b| b.key('y')).choice, Choice::Continue);

    let stepped = after_reading(&|bench| {
        assert!(bench.key('s').is_empty());
        bench.key('y')
    });
    assert_eq!((stepped.choice, stepped.envelope), (Choice::PerStep, None));

    let widened = after_reading(&|bench| {
        assert!(bench.key('e').is_empty());
        bench.key('y')
    });
    assert_eq!(widened.choice, Choice::Modify);
    let envelope = widened.envelope.unwrap();
    envelope.check().unwrap();
    assert_eq!(envelope.uses, Some(20));
    assert!(
        envelope
            .delta(&plain(1, 150).canonical, crate::support::start())
            .is_empty()
    );

    let denied = after_reading(&|bench| {
        assert!(bench.key('n').is_empty());
        bench.type_in("  not today, y or n ");
        bench.press(Key::Backspace);
        bench.press(Key::Enter)
    });
    assert_eq!(denied.choice, Choice::Deny);
    assert_eq!(denied.reason.as_deref(), Some("not today, y or n"));

    let halted = after_reading(&|bench| {
        bench.key('h');
        bench.press(Key::Enter)
    });
    assert_eq!((halted.choice, halted.reason), (Choice::Halt, None));
}

#[test]
fn au_22_a_denial_needs_no_reading_and_can_be_left() {
    let mut bench = Bench::new(NARROW, &[final_hold(2, before(90))]);
    bench.key('n');
    bench.type_in("no");
    assert!(bench.press(Key::Escape).is_empty());
    assert!(bench.shows("Nothing was decided."));
    bench.key('n');
    assert!(!bench.shows("> no"));
    assert!(verdict(&bench.press(Key::Enter)).is_some());
}

#[test]
fn au_22_other_ways_to_say_yes_need_the_word_too() {
    for (key, choice) in [('e', Choice::Modify), ('s', Choice::PerStep)] {
        let (mut bench, word) = final_bench();
        bench.key(key);
        assert!(bench.key('y').is_empty());
        assert!(bench.shows(&word), "{}", bench.screen());
        bench.type_in(&word);
        let verdict = verdict(&bench.press(Key::Enter)).unwrap();
        assert_eq!((verdict.choice, verdict.confirm), (choice, Some(word)));
        assert_eq!(verdict.envelope.is_some(), choice == Choice::Modify);
    }
}

#[test]
fn au_22_an_envelope_must_be_read_to_its_end() {
    let mut hold = plain(1, 150);
    for number in 0..40 {
        hold.canonical.actions.insert(format!("file.write{number}"));
    }
    let hold = seal(hold);
    let mut bench = Bench::new(NARROW, std::slice::from_ref(&hold));
    bench.read_all();
    bench.key('e');
    assert!(bench.key('y').is_empty());
    assert!(bench.shows("Not read to the end yet"));
    for _ in 0..60 {
        bench.press(Key::Down);
    }
    let verdict = verdict(&bench.key('y')).unwrap();
    assert_eq!(verdict.envelope.unwrap().actions, hold.canonical.actions);
}

#[test]
fn au_23_a_suggested_envelope_never_reaches_beside_what_was_asked() {
    use safepoint_authority::{NamedPath, Preimage};
    let mut form = plain(1, 150).canonical;
    let named = |path: &str, role: &str, inside| NamedPath {
        path: path.to_owned(),
        role: role.to_owned(),
        inside,
        preimage: Preimage::Absent {},
    };
    form.paths = vec![
        named("/srv/site/a/b/one", "write", true),
        named("/srv/site/a/two", "delete", true),
        named("/srv/site/secret/key", "read", true),
        named("/etc/hosts", "write", false),
    ];
    let envelope = safepoint_tui::suggest(&form, crate::support::start()).unwrap();
    let paths: Vec<&str> = envelope.paths.iter().map(String::as_str).collect();
    assert_eq!(paths, ["/etc/hosts", "/srv/site/a"]);
    let end = envelope.expires_at.unwrap();
    assert_eq!(end.to_string(), "2026-11-15T08:00:00.000000Z");
    form.actions.clear();
    assert!(safepoint_tui::suggest(&form, crate::support::start()).is_err());
}

#[test]
fn it_leaves_when_told_or_when_nothing_waits() {
    let mut bench = Bench::new(NARROW, &[plain(1, 150)]);
    assert_eq!(bench.key('q'), [Effect::Leave(Ended::Left)]);
    bench.key('n');
    assert_eq!(bench.press(Key::Interrupt), [Effect::Leave(Ended::Left)]);
    let mut app = App::new(None, Until::Empty, crate::support::start());
    let mut read = |holds: &[Hold]| {
        let pending = holds.iter().map(Hold::pending).collect();
        app.update(Event::Queue(Ok(pending)), crate::support::start())
    };
    let leaves = Effect::Leave(Ended::Empty);
    assert!(!read(&[plain(1, 150)]).contains(&leaves));
    assert!(read(&[plain(1, 700)]).contains(&leaves), "all expired");
}

fn as_key(c: char) -> Key {
    match c {
        '\n' => Key::Enter,
        c => Key::Char(c),
    }
}

#[test]
fn au_13_sessions_do_not_wait_for_each_other() {
    // One of another session needs two operators, and one of them has said yes.
    let mut quorum = plain(5, 200);
    quorum.canonical.session_id = "ses_0000000000000008".parse().unwrap();
    quorum.quorum = 2;
    let quorum = seal(quorum);
    let (mine, next) = (plain(6, 100), plain(7, 50));
    let mut bench = Bench::new(NARROW, &[quorum.clone(), mine.clone(), next]);
    bench.press(Key::Tab);
    assert!(bench.shows("hld_0000000000000006"));
    bench.read_all();
    bench.wait(2_000);
    let verdict = verdict(&bench.key('y')).unwrap();
    assert_eq!(verdict.hold_id, mine.hold_id);
    // Within a session the oldest comes first, and `o` goes to that one.
    let mut bench = Bench::new(NARROW, &[quorum, mine, plain(7, 50)]);
    bench.press(Key::Tab);
    bench.press(Key::Tab);
    assert!(bench.shows("hld_0000000000000007"));
    bench.read_all();
    bench.wait(2_000);
    assert!(bench.key('y').is_empty());
    assert!(bench.shows("An older one is decided first"));
    bench.key('o');
    assert!(bench.shows("hld_0000000000000006"));
}
