//! Somebody changes files while they are being replaced, or after a crash in the middle:
//! whatever is being done, nothing of theirs is lost.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use safepoint_model::ActionId;
use safepoint_state::{End, Errand, Incoming, Isolated, Progress, Restored, StateError};
use safepoint_store::fault;
use support::{Bench, Place, leftovers};
use testkit::Seeded;

const FILES: usize = 40;

fn name(number: usize) -> String {
    format!("f{number:02}")
}

fn text(first: &str) -> String {
    let rest: String = (1..12).map(|line| format!("line {line}\n")).collect();
    format!("{first}\n{rest}")
}

const EDIT: &str = "USER EDIT\n";

fn edit(path: &Path) {
    let mut file = fs::File::options().append(true).open(path).unwrap();
    file.write_all(EDIT.as_bytes()).unwrap();
}

/// A directory, and work on a copy of it: each file has another first line, one is
/// deleted, one is new.
struct Scene<'a> {
    ours: Place<'a>,
    work: Place<'a>,
    isolated: Isolated,
}

const DELETED: &str = "deleted";

fn scene(bench: &Bench) -> Scene<'_> {
    let ours = bench.place("project");
    for number in 0..FILES {
        ours.write(name(number), text("before"));
    }
    ours.write(DELETED, text("to be deleted"));
    ours.write("aside", "aside\n");
    let progress = Progress::default();
    let isolated = bench.state.isolate(&ours.workspace, "wsp_a", &progress);
    let isolated = isolated.unwrap();
    let work = bench.open(isolated.workspace.root.clone());
    for number in 0..FILES {
        work.write(name(number), text("after"));
    }
    fs::remove_file(work.at(DELETED)).unwrap();
    work.write("new/file", "new\n");
    Scene {
        ours,
        work,
        isolated,
    }
}

impl Scene<'_> {
    fn bring(&self, seed: u64) -> Result<Restored, StateError> {
        let errand = Errand {
            id: ActionId::generate(&Seeded::new(seed)).unwrap(),
            session: None,
            action: "workspace.integrate".to_owned(),
            summary: "integration of wsp_a".to_owned(),
            decision: "allow".to_owned(),
            left_by: None,
        };
        let work = self.work.checkpoint().unwrap().snapshot;
        let incoming = Incoming {
            base: &self.isolated.base,
            work: &work,
            errand: &errand,
            resolutions: &BTreeMap::new(),
            shown: &BTreeMap::new(),
        };
        let state = &self.ours.bench.state;
        state.bring(&self.ours.workspace, &incoming, &Progress::default())
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.ours.at(name)).ok()
    }

    /// Everything is as it was at first, but for what is named here.
    #[track_caller]
    fn assert_before(&self, but: &[(&str, Option<String>)]) {
        let mut wanted: BTreeMap<String, Option<String>> = (0..FILES)
            .map(|number| (name(number), Some(text("before"))))
            .collect();
        wanted.insert(DELETED.to_owned(), Some(text("to be deleted")));
        wanted.insert("aside".to_owned(), Some("aside\n".to_owned()));
        wanted.insert("new/file".to_owned(), None);
        wanted.extend(
            but.iter()
                .map(|(name, text)| ((*name).to_owned(), text.clone())),
        );
        for (name, wanted) in wanted {
            assert_eq!(self.text(&name), wanted, "{name}");
        }
        assert!(leftovers(&self.ours.top).is_empty());
    }
}

/// Does something the `nth` time that a point is passed.
fn at(point: &'static str, nth: usize, mut act: impl FnMut() + 'static) {
    let mut passed = 0;
    fault::disturbed(move |name| {
        passed += usize::from(name == point);
        if name == point && passed == nth {
            act();
        }
    });
}

/// Stops as a killed process does: nothing is tidied up behind it.
fn cut_off(work: impl FnOnce()) {
    let ended = catch_unwind(AssertUnwindSafe(work));
    fault::undisturbed();
    assert!(ended.is_err(), "it was not cut off");
}

fn die() {
    resume_unwind(Box::new("killed"));
}

#[track_caller]
fn changed(result: Result<Restored, StateError>) -> Vec<PathBuf> {
    fault::undisturbed();
    match result {
        Err(StateError::Changed { paths }) => paths,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pr_32_an_edit_made_while_work_is_written_is_kept_and_all_is_taken_back() {
    let bench = Bench::new(1);
    let scene = scene(&bench);
    let (late, early) = (scene.ours.at(name(30)), scene.ours.at(name(2)));
    let paths = vec![early.clone(), late.clone()];
    at("restore.step", 20, move || {
        edit(&late);
        edit(&early);
    });
    assert_eq!(changed(scene.bring(10)), paths);
    let written = text("after") + EDIT;
    let unwritten = text("before") + EDIT;
    scene.assert_before(&[
        (&name(2), Some(written.clone())),
        (&name(30), Some(unwritten)),
    ]);
    // It can be tried again, and the edits are still there.
    let brought = scene.bring(11).unwrap();
    assert!(brought.matches, "{:?}", brought.warnings);
    for number in 0..FILES {
        let edited = if [2, 30].contains(&number) { EDIT } else { "" };
        let wanted = text("after") + edited;
        assert_eq!(scene.text(&name(number)), Some(wanted), "{number}");
    }
    assert_eq!(scene.text("new/file").as_deref(), Some("new\n"));
    assert_eq!(scene.text(DELETED), None);
}

#[test]
fn pr_32_whatever_is_done_in_the_instant_of_replacing_is_kept() {
    type Meddling = fn(&Path);
    let edits: [(&str, Meddling, Option<String>); 5] = [
        ("in place", edit, Some(text("before") + EDIT)),
        (
            "by another file",
            |path| {
                let beside = path.with_extension("swp");
                fs::write(&beside, text("mine")).unwrap();
                fs::rename(beside, path).unwrap();
            },
            Some(text("mine")),
        ),
        (
            "of the same size and time",
            |path| {
                let time = fs::metadata(path).unwrap().modified().unwrap();
                fs::write(path, text("BEFORE")).unwrap();
                let file = fs::File::options().append(true).open(path).unwrap();
                file.set_modified(time).unwrap();
            },
            Some(text("BEFORE")),
        ),
        ("deleted", |path| fs::remove_file(path).unwrap(), None),
        (
            "a link",
            |path| {
                fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("aside", path).unwrap();
            },
            Some("aside\n".to_owned()),
        ),
    ];
    for (seed, (what, act, wanted)) in (0..).zip(edits) {
        for point in ["restore.step", "restore.looked"] {
            // With the same name, size and time as what was looked at, nothing can be told
            // from outside once it is taken out.
            if point == "restore.looked" && what == "of the same size and time" {
                continue;
            }
            let bench = Bench::new(seed);
            let scene = scene(&bench);
            let path = scene.ours.at(name(19));
            // Files come in the order of their names, after the one that is deleted.
            let mut passed = 0;
            let target = path.clone();
            fault::disturbed(move |name| {
                passed += usize::from(name == point);
                if name == point && passed == 21 {
                    act(&target);
                }
            });
            let result = scene.bring(10);
            assert_eq!(changed(result), [path], "{what} at {point}");
            scene.assert_before(&[(&name(19), wanted.clone())]);
        }
    }
}

#[test]
fn pr_32_what_is_about_to_be_deleted_or_made_is_looked_at_too() {
    for point in ["restore.step", "restore.looked"] {
        let bench = Bench::new(3);
        let scene = scene(&bench);
        let path = scene.ours.at(DELETED);
        let target = path.clone();
        at(point, 1, move || edit(&target));
        assert_eq!(changed(scene.bring(10)), [path], "{point}");
        let kept = text("to be deleted") + EDIT;
        scene.assert_before(&[(DELETED, Some(kept))]);
    }
    let bench = Bench::new(4);
    let scene = scene(&bench);
    let path = scene.ours.at("new");
    let target = path.clone();
    at("restore.step", 5, move || {
        fs::create_dir(&target).unwrap();
        fs::write(target.join("file"), "mine\n").unwrap();
    });
    let paths = changed(scene.bring(10));
    assert!(paths.contains(&path), "{paths:?}");
    scene.assert_before(&[("new/file", Some("mine\n".to_owned()))]);
}

#[test]
fn pr_32_what_is_written_by_a_handle_from_before_is_kept() {
    let bench = Bench::new(5);
    let scene = scene(&bench);
    let path = scene.ours.at(name(3));
    let mut open = fs::File::options().append(true).open(&path).unwrap();
    at("restore.step", 30, move || {
        open.write_all(EDIT.as_bytes()).unwrap();
    });
    assert_eq!(changed(scene.bring(10)), [path]);
    scene.assert_before(&[(&name(3), Some(text("before") + EDIT))]);
}

#[test]
fn pr_40_after_a_crash_edits_are_kept_and_the_rest_is_taken_back() {
    let bench = Bench::new(6);
    let scene = scene(&bench);
    at("restore.step", 20, die);
    cut_off(|| drop(scene.bring(10)));
    // One that was written, one that was not, and one that has nothing to do with it.
    for one in [&name(2), &name(30), "aside"] {
        edit(&scene.ours.at(one));
    }
    let recovered = bench.state.recover().unwrap();
    let [one] = recovered.as_slice() else {
        panic!("{recovered:?}")
    };
    let End::Changed(paths) = &one.end else {
        panic!("{one:?}")
    };
    let shown: Vec<String> = paths.iter().map(|path| support::shown(path)).collect();
    assert_eq!(shown, [name(2), name(30)]);
    scene.assert_before(&[
        (&name(2), Some(text("after") + EDIT)),
        (&name(30), Some(text("before") + EDIT)),
        ("aside", Some("aside\n".to_owned() + EDIT)),
    ]);
    assert!(bench.state.recover().unwrap().is_empty());
    assert!(scene.bring(11).unwrap().matches);
}

#[test]
fn pr_40_after_a_crash_edits_elsewhere_are_no_obstacle() {
    let bench = Bench::new(7);
    let scene = scene(&bench);
    at("restore.step", 20, die);
    cut_off(|| drop(scene.bring(10)));
    edit(&scene.ours.at("aside"));
    scene.ours.write("mine/file", "mine\n");
    let recovered = bench.state.recover().unwrap();
    assert!(matches!(recovered.as_slice(), [one] if matches!(one.end, End::Finished)));
    for number in 0..FILES {
        assert_eq!(scene.text(&name(number)), Some(text("after")), "{number}");
    }
    assert_eq!(scene.text("aside"), Some("aside\n".to_owned() + EDIT));
    assert_eq!(scene.text("mine/file").as_deref(), Some("mine\n"));
    assert_eq!(scene.text(DELETED), None);
    assert!(leftovers(&scene.ours.top).is_empty());
    // What is undone is the work alone.
    let action = bench.state.actions(&scene.ours.top, 1).unwrap();
    let action = action.first().unwrap().id.to_string();
    scene.ours.without(&action, "undo").unwrap();
    scene.assert_before(&[("aside", Some("aside\n".to_owned() + EDIT))]);
    assert_eq!(scene.text("mine/file").as_deref(), Some("mine\n"));
}

#[test]
fn pr_40_killed_in_the_instant_in_which_an_edit_was_taken_out_it_comes_back() {
    for (path, nth) in [(DELETED.to_owned(), 1), (name(19), 21)] {
        let bench = Bench::new(8);
        let scene = scene(&bench);
        let before = scene.text(&path).unwrap();
        let target = scene.ours.at(&path);
        let mut looked = 0;
        fault::disturbed(move |point| {
            looked += usize::from(point == "restore.looked");
            match point {
                "restore.looked" if looked == nth => edit(&target),
                "restore.taken" if looked == nth => die(),
                _ => {}
            }
        });
        cut_off(|| drop(scene.bring(10)));
        let recovered = bench.state.recover().unwrap();
        assert!(
            matches!(recovered.as_slice(), [one] if matches!(one.end, End::Changed(_))),
            "{recovered:?}"
        );
        scene.assert_before(&[(&path, Some(before + EDIT))]);
    }
}

#[test]
fn pr_40_a_taking_back_that_is_killed_is_taken_up_again() {
    let bench = Bench::new(9);
    let scene = scene(&bench);
    let target = scene.ours.at(name(30));
    let mut steps = 0;
    fault::disturbed(move |point| {
        steps += usize::from(point == "restore.step");
        match (point, steps) {
            ("restore.step", 20) => edit(&target),
            ("restore.step", 40) => die(), // on the way back
            _ => {}
        }
    });
    cut_off(|| drop(scene.bring(10)));
    let recovered = bench.state.recover().unwrap();
    assert!(
        matches!(recovered.as_slice(), [one] if matches!(one.end, End::Changed(_))),
        "{recovered:?}"
    );
    scene.assert_before(&[(&name(30), Some(text("before") + EDIT))]);
}

#[test]
fn st_32_an_edit_made_during_a_roll_back_or_after_its_crash_is_kept() {
    for killed in [false, true] {
        let bench = Bench::new(10);
        let ours = bench.place("project");
        for number in 0..FILES {
            ours.write(name(number), text("then"));
        }
        let then = ours.checkpoint().unwrap().snapshot;
        for number in 0..FILES {
            ours.write(name(number), text("now"));
        }
        let path = ours.at(name(30));
        if killed {
            at("restore.step", 10, die);
            cut_off(|| drop(ours.roll_back(&then)));
            edit(&path);
            let recovered = bench.state.recover().unwrap();
            assert!(
                matches!(recovered.as_slice(), [one] if matches!(one.end, End::Changed(_))),
                "{recovered:?}"
            );
        } else {
            let target = path.clone();
            at("restore.step", 10, move || edit(&target));
            assert_eq!(changed(ours.roll_back(&then)), [path]);
        }
        for number in 0..FILES {
            let edited = if number == 30 { EDIT } else { "" };
            let found = String::from_utf8(ours.read(name(number))).unwrap();
            assert_eq!(found, text("now") + edited, "{number}");
        }
        assert!(leftovers(&ours.top).is_empty());
    }
}

#[test]
fn st_32_an_edit_made_during_an_undo_is_kept() {
    let bench = Bench::new(11);
    let scene = scene(&bench);
    let brought = scene.bring(10).unwrap();
    let path = scene.ours.at(name(30));
    let target = path.clone();
    at("restore.step", 10, move || edit(&target));
    let undone = scene.ours.without(brought.action.as_str(), "undo");
    assert_eq!(changed(undone), [path]);
    for number in 0..FILES {
        let edited = if number == 30 { EDIT } else { "" };
        assert_eq!(scene.text(&name(number)), Some(text("after") + edited));
    }
    assert_eq!(scene.text(DELETED), None);
    // And then it is done around the edit.
    scene.ours.without(brought.action.as_str(), "undo").unwrap();
    scene.assert_before(&[(&name(30), Some(text("before") + EDIT))]);
}

/// What an action has stored and not yet recorded nobody can collect: the object store is held
/// from the look until the record is written.
#[test]
fn st_41_the_object_store_is_held_between_a_look_and_its_record() {
    let bench = Bench::new(41);
    let place = bench.place("project");
    place.write("file", "before");
    let looks = std::rc::Rc::new(std::cell::Cell::new(0));
    let (root, seen) = (bench.root.clone(), std::rc::Rc::clone(&looks));
    fault::disturbed(move |point| {
        if point != "action.looked" {
            return;
        }
        seen.set(seen.get() + 1);
        let stores = fs::read_dir(root.join("data/objects")).unwrap();
        for store in stores.map(|store| store.unwrap().path()) {
            let lock = fs::File::open(store.join("lock")).unwrap();
            assert!(lock.try_lock().is_err(), "`gc` could run now");
        }
    });
    let id = ActionId::generate(&Seeded::new(1)).unwrap();
    let (state, progress, workspace) = (&bench.state, Progress::default(), &place.workspace);
    let before = state.before(workspace, &id, &progress).unwrap();
    place.write("file", "after");
    let errand = Errand {
        id,
        session: None,
        action: "process.exec".to_owned(),
        summary: "a test".to_owned(),
        decision: "allow".to_owned(),
        left_by: None,
    };
    let share = safepoint_state::Share::All;
    let beside = |_: &mut safepoint_trail::Writing<'_>, _: &[_]| Ok::<(), StateError>(());
    state
        .after(workspace, &before, &errand, "ok", &share, &progress, beside)
        .unwrap();
    fault::undisturbed();
    assert_eq!(looks.get(), 2);
}
