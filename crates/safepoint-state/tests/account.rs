//! The account of a look: what has changed since the last one is told once, whatever goes on.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::fs;
use std::sync::{Arc, Mutex};

use safepoint_fence::Writes;
use safepoint_model::ActionId;
use safepoint_state::{
    Errand, OpenAction, OpenWrites, Progress, Share, Snapshot, State, StateError, path,
};
use safepoint_store::fault;
use support::{Bench, Place};
use testkit::Seeded;

type Open = Arc<Mutex<Vec<OpenAction>>>;

/// A bench whose state hears from this list what goes on.
fn bench(seed: u64) -> (Bench, Open) {
    let open = Open::default();
    let told = Arc::clone(&open);
    let mut bench = Bench::new(seed);
    let open_actions = Arc::new(move |_: &std::path::Path| Ok(told.lock().unwrap().clone()));
    bench.state = bench.state.with_open_actions(open_actions);
    (bench, open)
}

fn id(number: u64) -> ActionId {
    ActionId::generate(&Seeded::new(number)).unwrap()
}

fn supervised(id: &ActionId) -> OpenAction {
    OpenAction {
        id: id.clone(),
        writes: OpenWrites::JournalOf(id.clone()),
    }
}

/// Says what the processes of an action have written.
fn journal(state: &State, place: &Place<'_>, id: &ActionId, names: &[&str]) {
    let file = state.write_journal(id);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut bytes = b"safepoint-writes 1\0".to_vec();
    for name in names {
        bytes.extend(format!("p{}\0", place.at(name).display()).into_bytes());
    }
    fs::write(file, bytes).unwrap();
}

fn before(place: &Place<'_>, id: &ActionId) -> Snapshot {
    let state = &place.bench.state;
    state
        .before(&place.workspace, id, &Progress::default())
        .unwrap()
}

fn after(place: &Place<'_>, id: &ActionId, before: &Snapshot, names: &[&str]) {
    let errand = Errand {
        id: id.clone(),
        session: None,
        action: "process.exec".to_owned(),
        summary: id.to_string(),
        decision: "allow".to_owned(),
        left_by: None,
    };
    let share = Share::of_writes(
        &place.workspace.root,
        &Writes {
            paths: names.iter().map(|name| place.at(name)).collect(),
            ..Writes::default()
        },
    );
    let beside = |_: &mut safepoint_trail::Writing<'_>, _: &[_]| Ok::<(), StateError>(());
    let (state, progress) = (&place.bench.state, Progress::default());
    state
        .after(
            &place.workspace,
            before,
            &errand,
            "ok",
            &share,
            &progress,
            beside,
        )
        .unwrap();
}

/// What each action changed, the oldest first; observed ones are `-`.
fn told(place: &Place<'_>) -> Vec<String> {
    let state = &place.bench.state;
    let mut actions = state.actions(&place.workspace.root, 100).unwrap();
    actions.reverse();
    let tell = |action: &safepoint_state::Action| {
        let before = state.find(action.before.as_str()).unwrap();
        let after = state.find(action.after.as_str()).unwrap();
        let changes = state.changes_of(action, &before, &after).unwrap();
        let paths: Vec<String> = changes.iter().map(|it| path::display(&it.path)).collect();
        let by = if action.is_observed() { "-" } else { "action" };
        format!("{by}: {}", paths.join(" "))
    };
    actions.iter().map(tell).collect()
}

#[test]
fn fe_33_two_that_end_after_each_other_tell_a_persons_file_once() {
    let (bench, open) = bench(1);
    let place = bench.place("project");
    place.write("first", "");
    let (one, other) = (id(1), id(2));
    let (began, other_began) = (before(&place, &one), before(&place, &other));
    *open.lock().unwrap() = vec![supervised(&one), supervised(&other)];
    place.write("one", "1");
    journal(&bench.state, &place, &one, &["one"]);
    place.write("other", "2");
    journal(&bench.state, &place, &other, &["other"]);
    place.write("essay", "mine");
    after(&place, &one, &began, &["one"]);
    *open.lock().unwrap() = vec![supervised(&other)];
    place.write("later", "mine");
    after(&place, &other, &other_began, &["other"]);
    open.lock().unwrap().clear();
    before(&place, &id(3));
    assert_eq!(
        told(&place),
        ["-: essay", "action: one", "-: later", "action: other"]
    );
}

#[test]
fn fe_33_what_changes_beside_something_unseen_is_told_after_it() {
    let (bench, open) = bench(2);
    let place = bench.place("project");
    place.write("first", "");
    let (seen, unseen) = (id(1), id(2));
    before(&place, &unseen);
    *open.lock().unwrap() = vec![supervised(&unseen)];
    place.write("essay", "mine");
    let began = before(&place, &seen);
    place.write("seen", "1");
    after(&place, &seen, &began, &["seen"]);
    assert_eq!(told(&place), ["action: seen"]);
    // It is gone, and nobody has told what it did.
    open.lock().unwrap().clear();
    before(&place, &id(3));
    assert_eq!(told(&place), ["action: seen", "-: essay"]);
    before(&place, &id(4));
    place.write("essay", "mine again");
    before(&place, &id(5));
    assert_eq!(told(&place), ["action: seen", "-: essay", "-: essay"]);
}

#[test]
fn fe_33_an_end_that_another_process_has_recorded_is_not_recorded_again() {
    let (bench, _) = bench(4);
    let place = bench.place("project");
    place.write("first", "");
    let began = before(&place, &id(1));
    place.write("one", "1");
    after(&place, &id(1), &began, &["one"]);
    let errand = Errand {
        id: id(1),
        session: None,
        action: "process.exec".to_owned(),
        summary: "again".to_owned(),
        decision: "allow".to_owned(),
        left_by: None,
    };
    let faster = |_: &mut safepoint_trail::Writing<'_>, _: &[_]| {
        Err(StateError::Busy {
            what: "somebody was faster".to_owned(),
        })
    };
    let (state, progress, share) = (&bench.state, Progress::default(), Share::All);
    let ended = state.after(
        &place.workspace,
        &began,
        &errand,
        "unknown",
        &share,
        &progress,
        faster,
    );
    assert!(matches!(ended, Err(StateError::Busy { .. })), "{ended:?}");
    assert_eq!(told(&place), ["action: one"]);
}

#[test]
fn fe_33_one_process_at_a_time_looks_and_records() {
    let (bench, _) = bench(3);
    let place = bench.place("project");
    place.write("first", "");
    let looks = std::rc::Rc::new(std::cell::Cell::new(0));
    let (locks, seen) = (bench.root.join("state/locks"), std::rc::Rc::clone(&looks));
    fault::disturbed(move |point| {
        if point != "action.looked" && point != "checkpoint.stored" {
            return;
        }
        seen.set(seen.get() + 1);
        let files = fs::read_dir(&locks).unwrap().map(|it| it.unwrap().path());
        let files: Vec<_> = files
            .filter(|it| it.extension().is_some_and(|it| it == "look"))
            .collect();
        assert_eq!(files.len(), 1);
        for file in files {
            assert!(fs::File::open(file).unwrap().try_lock().is_err(), "{point}");
        }
    });
    let began = before(&place, &id(1));
    place.write("one", "1");
    after(&place, &id(1), &began, &["one"]);
    place.checkpoint().unwrap();
    fault::undisturbed();
    assert_eq!(looks.get(), 4);
}
