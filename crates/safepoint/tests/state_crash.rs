//! Killed at any instant: the next command finds the tree as it was before or
//! as it was to be, nothing lies about, and what was acknowledged is whole.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/points.rs"]
mod points;
#[path = "../../safepoint-state/tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use support::{Recording, Repositories, differences, leftovers, record};
use testkit::TestEnv;

/// A command that ends what was cut off, and changes nothing else.
const RECOVERING: &[&str] = &["gc", "--dry-run"];

/// A workspace with a repository, a checkpoint of it, and what was done since.
struct Scene {
    env: TestEnv,
    /// The checkpoint that was acknowledged.
    id: String,
    /// The tree at that time, and now.
    then: Recording,
    now: Recording,
    then_git: String,
    now_git: String,
}

impl Scene {
    fn new() -> Self {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
        let top = env.project();
        git(&top, &["init", "--quiet", "--initial-branch=main"]);
        for name in ["a", "b", "deep/er/c", "deep/d", "gone/e"] {
            env.write(&format!("project/{name}"), &format!("{name} before\n"));
        }
        symlink("a", top.join("link")).unwrap();
        fs::hard_link(top.join("b"), top.join("deep/b too")).unwrap();
        fs::create_dir(top.join("empty")).unwrap();
        git(&top, &["add", "--all"]);
        git(&top, &["commit", "--quiet", "--message=first"]);
        let id = checkpoint(&env);
        let (then, then_git) = (look(&env), said(&top));
        env.write("project/a", "a after\n");
        env.write("project/later/f", "f after\n");
        env.write("project/later/g/h", "h after\n");
        fs::remove_dir_all(top.join("gone")).unwrap();
        fs::write(top.join("gone"), "a file now\n").unwrap();
        fs::remove_file(top.join("deep/b too")).unwrap();
        fs::remove_file(top.join("link")).unwrap();
        fs::create_dir(top.join("link")).unwrap();
        fs::set_permissions(top.join("deep"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(top.join("deep/d"), fs::Permissions::from_mode(0o600)).unwrap();
        git(&top, &["add", "--all"]);
        git(&top, &["commit", "--quiet", "--message=second"]);
        let (now, now_git) = (look(&env), said(&top));
        Self {
            env,
            id,
            then,
            now,
            then_git,
            now_git,
        }
    }

    /// Runs a command that is killed at a fault point. False when it did not pass there.
    fn killed(&self, fault: &str, arguments: &[&str]) -> bool {
        let mut command = self.env.command(arguments);
        let output = command.env("SAFEPOINT_FAULT", fault).output().unwrap();
        match output.status.signal() {
            Some(9) => true,
            None if output.status.success() => false,
            _ => panic!("{fault}: {output:?}"),
        }
    }

    /// What the next command finds. Returns whether the tree is that of the checkpoint.
    #[track_caller]
    fn recovered(&self, when: &str) -> bool {
        let run = self.env.run(RECOVERING);
        assert_eq!(run.code, 0, "{when}: {run:?}");
        self.whole(when)
    }

    #[track_caller]
    fn whole(&self, when: &str) -> bool {
        let found = look(&self.env);
        let to_then = differences(&self.then, &found);
        let to_now = differences(&self.now, &found);
        assert!(
            to_then.is_empty() || to_now.is_empty(),
            "{when}: half-way\nfrom the checkpoint: {}\nfrom before: {}",
            to_then.join("\n"),
            to_now.join("\n")
        );
        let wanted = if to_then.is_empty() {
            &self.then_git
        } else {
            &self.now_git
        };
        assert_eq!(*wanted, said(&self.env.project()), "{when}: git");
        self.sound(when);
        to_then.is_empty()
    }

    /// Nothing lies about, and everything that is listed is whole.
    #[track_caller]
    fn sound(&self, when: &str) {
        // A manifest may be cut off while it is written: nothing reads it.
        let mut left = leftovers(&self.env.project());
        left.retain(|name| {
            !(name.starts_with(".checkpoints/chk_") && name.contains(".manifest.json."))
        });
        assert!(left.is_empty(), "{when}: left over: {left:?}");
        let listed = ids(&self.env);
        assert!(listed.contains(&self.id), "{when}: {} is gone", self.id);
        for id in &listed {
            let run = self.env.run(&["verify", id]);
            assert_eq!(run.code, 0, "{when}: {id}: {run:?}");
        }
        let run = self.env.run(&["trail", "verify"]);
        assert_eq!(run.code, 0, "{when}: {run:?}");
        let journals = self.env.home().join("state/journals");
        let is_journal = |entry: &fs::DirEntry| entry.path().extension() == Some("json".as_ref());
        let listing = fs::read_dir(&journals).into_iter().flatten().flatten();
        let left = listing.filter(is_journal).count();
        assert_eq!(left, 0, "{when}: a journal is left");
    }

    /// It can be gone back and forth, so that nothing is stuck.
    #[track_caller]
    fn works(&self, when: &str) {
        let run = self.env.run(&["rollback", &self.id]);
        assert_eq!(run.code, 0, "{when}: {run:?}");
        assert!(self.whole(when), "{when}: the roll back after it");
    }
}

fn git(top: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .env_clear()
        .envs(["PATH", "LANG"].map(|name| (name, std::env::var_os(name).unwrap_or_default())))
        .env("HOME", top.parent().unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=User", "-c", "user.email=user@localhost"])
        .args(["-c", "gc.auto=0", "--no-optional-locks"])
        .args(arguments)
        .current_dir(top)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn said(top: &Path) -> String {
    let status = git(top, &["status", "--porcelain=v2", "--branch"]);
    status + &git(top, &["for-each-ref", "refs/heads"])
}

fn look(env: &TestEnv) -> Recording {
    record(&env.project(), Repositories::Apart)
}

fn checkpoint(env: &TestEnv) -> String {
    let reply = env.json(&["checkpoint", "--reason", "before"]);
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

/// All checkpoints there are.
fn ids(env: &TestEnv) -> Vec<String> {
    let mut found = Vec::new();
    let reply = env.json(&["list", "--automatic"]).to_string();
    for (at, _) in reply.match_indices("\"chk_") {
        let id: String = reply[at + 1..].chars().take_while(|c| *c != '"').collect();
        if !found.contains(&id) {
            found.push(id);
        }
    }
    found
}

/// The points that a checkpoint passes.
const CHECKPOINT: &[&str] = &[
    "objects.written",
    "objects.packed",
    "objects.indexed",
    "checkpoint.stored",
    "checkpoint.manifest",
    "checkpoint.prepared",
    "checkpoint.recorded",
];
/// The points of going back before the tree is touched.
const BEFORE: &[&str] = &["restore.secured", "restore.journalled", "restore.staged"];
/// Those from which on it is finished.
const AFTER: &[&str] = &[
    "restore.applying",
    "restore.parts",
    "restore.removed",
    "restore.step",
    "restore.looked",
    "restore.taken",
    "restore.renamed",
    "restore.applied",
    "restore.verified",
    "restore.recorded",
    "restore.cleaned",
];
const RECOVERY: &[&str] = &["recover.begun", "recover.planned"];
const COLLECTION: &[&str] = &[
    "collect.noted",
    "collect.recorded",
    "collect.removed",
    "collect.packed",
    "collect.indexed",
];
/// The point of an action that has been looked at; `meanwhile.rs` of `safepoint-state` is there.
const ACTION: &[&str] = &["action.looked"];
/// The points of sharing objects; `teams.rs` kills there.
const SHARED: &[&str] = &["objects.uploaded", "objects.shared"];

/// The points of making a directory for work that is done apart; `cut_off.rs` in
/// `safepoint-progress` kills there.
const APART: &[&str] = &[
    "isolate.begun",
    "isolate.made",
    "isolate.filled",
    "isolate.recorded",
];
/// The points that every write of a file or of the database passes.
const STORE: &[&str] = &[
    "file.written",
    "file.renamed",
    "write.begun",
    "write.changed",
    "write.sealed",
    "write.committed",
    "write.durable",
];

#[test]
fn st_32_every_fault_point_is_exercised() {
    let mut known = BTreeSet::new();
    let mutation = points::MUTATION; // `mutate_crash.rs` kills there
    for list in [
        CHECKPOINT, BEFORE, AFTER, RECOVERY, COLLECTION, STORE, APART, SHARED, ACTION, mutation,
    ] {
        known.extend(list.iter().map(|point| (*point).to_owned()));
    }
    let mut found = BTreeSet::new();
    for name in ["safepoint-state", "safepoint-store"] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(name)
            .join("src");
        collect(&sources, &mut found);
    }
    assert_eq!(known, found);
}

fn collect(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for part in text.split("fault::point(\"").skip(1) {
            found.insert(part.split('"').next().unwrap().to_owned());
        }
    }
}

#[test]
fn st_32_a_killed_checkpoint_is_whole_or_not_there() {
    for point in CHECKPOINT {
        let scene = Scene::new();
        let before = ids(&scene.env);
        assert!(
            scene.killed(point, &["checkpoint"]),
            "{point} was never passed"
        );
        assert!(!scene.recovered(point), "{point}: the tree was touched");
        let after = ids(&scene.env);
        assert!(after.len() <= before.len() + 1 && before.iter().all(|id| after.contains(id)));
        let kept = after.len() > before.len();
        let recorded = ["checkpoint.recorded", "checkpoint.manifest"];
        assert_eq!(kept, recorded.contains(point), "{point}");
        checkpoint(&scene.env);
        scene.works(point);
    }
}

#[test]
fn st_32_a_roll_back_killed_before_it_touches_anything_is_dropped() {
    for point in BEFORE {
        let scene = Scene::new();
        assert!(
            scene.killed(point, &["rollback", &scene.id]),
            "{point} was never passed"
        );
        assert!(!scene.recovered(point), "{point}: the tree was touched");
        scene.works(point);
    }
}

#[test]
fn st_32_a_roll_back_killed_later_is_finished() {
    for point in AFTER {
        let scene = Scene::new();
        assert!(
            scene.killed(point, &["rollback", &scene.id]),
            "{point} was never passed"
        );
        assert!(scene.recovered(point), "{point}: not finished");
        // And can be taken back as if nothing had happened.
        let run = scene.env.run(&["redo"]);
        assert_eq!(run.code, 0, "{point}: {run:?}");
        assert!(!scene.whole(point), "{point}: the redo");
        scene.works(point);
    }
}

#[test]
fn st_32_a_roll_back_killed_at_any_step_is_finished() {
    for nth in 2.. {
        let scene = Scene::new();
        let fault = format!("restore.step:{nth}");
        if !scene.killed(&fault, &["rollback", &scene.id]) {
            assert!(nth > 10, "only {nth} steps");
            return;
        }
        assert!(scene.recovered(&fault), "{fault}: not finished");
        if nth % 4 == 0 {
            scene.works(&fault);
        }
    }
}

#[test]
fn st_32_a_killed_undo_is_dropped_or_finished() {
    let steps: Vec<String> = [1, 4, 9].map(|nth| format!("restore.step:{nth}")).into();
    let all = BEFORE.iter().chain(AFTER).map(|point| (*point).to_owned());
    for point in all.chain(steps) {
        let scene = Scene::new();
        // What was only seen to change is taken back by its name.
        scene.env.json(&["checkpoint"]);
        let log = scene.env.json(&["log"]);
        let action = log["actions"][0]["action_id"].as_str().unwrap();
        let undo = ["undo", action];
        assert!(scene.killed(&point, &undo), "{point} was never passed");
        let undone = scene.recovered(&point);
        assert_eq!(undone, !BEFORE.contains(&point.as_str()), "{point}");
        scene.works(&point);
    }
}

#[test]
fn st_32_writes_of_files_and_of_the_database_may_be_cut_off_anywhere() {
    for point in STORE {
        for nth in 1..40 {
            let scene = Scene::new();
            let fault = format!("{point}:{nth}");
            if !scene.killed(&fault, &["rollback", &scene.id]) {
                assert!(nth > 1, "{point} was never passed");
                break;
            }
            scene.recovered(&fault);
            if nth == 2 {
                scene.works(&fault);
            }
        }
        let scene = Scene::new();
        for nth in 1..40 {
            let fault = format!("{point}:{nth}");
            if !scene.killed(&fault, &["checkpoint"]) {
                assert!(nth > 1, "{point} was never passed");
                break;
            }
            assert!(!scene.recovered(&fault), "{fault}: the tree was touched");
        }
    }
}

#[test]
fn st_32_a_recovery_that_is_killed_is_recovered_from() {
    let again = [
        "recover.begun",
        "recover.planned",
        "restore.staged",
        "restore.step:1",
        "restore.step:3",
        "restore.removed",
        "restore.renamed",
        "objects.indexed",
        "file.written:1",
        "file.renamed:1",
        "write.committed:1",
        "write.durable:2",
    ];
    for first in ["restore.applying", "restore.step:5", "restore.step:12"] {
        let scene = Scene::new();
        assert!(
            scene.killed(first, &["rollback", &scene.id]),
            "{first} was never passed"
        );
        let mut kills = 0;
        for fault in again {
            // Each recovery begins where the last was cut off.
            kills += u32::from(scene.killed(fault, RECOVERING));
        }
        assert!(kills >= 6, "{first}: only {kills} recoveries were killed");
        assert!(scene.recovered(first), "{first}: not finished");
        scene.works(first);
    }
}

#[test]
fn st_32_a_killed_collection_loses_nothing() {
    for point in COLLECTION.iter().chain(STORE) {
        let scene = Scene::new();
        // In a directory of its own: the undo of no change by hand needs it.
        let top = scene.env.root().join("other");
        fs::create_dir(&top).unwrap();
        git(&top, &["init", "--quiet"]);
        fs::write(top.join("f"), "only here\n").unwrap();
        git(&top, &["add", "--all"]);
        git(&top, &["commit", "--quiet", "--message=first"]);
        let there = |arguments: &[&str]| {
            let named = ["-C", top.to_str().unwrap()];
            scene.env.json(&[&named, arguments].concat())
        };
        let passing = there(&["checkpoint", "--expiry", "1ms"]);
        let passing = passing["checkpoint_id"].as_str().unwrap().to_owned();
        let reference = format!("refs/safepoint/checkpoints/{passing}");
        let kept_by_git = || !git(&top, &["for-each-ref", &reference]).is_empty();
        let directory = top.join(".checkpoints").join(&passing);
        let has_manifest = || directory.join("manifest.json").exists();
        let counts = || there(&["list"]).to_string().contains(&passing);
        assert!(counts() && kept_by_git() && has_manifest(), "{point}");
        if !scene.killed(point, &["gc"]) {
            assert!(!COLLECTION.contains(point), "{point} was never passed");
            continue;
        }
        // As long as it counts, it has all that belongs to it.
        assert!(!counts() || kept_by_git() && has_manifest(), "{point}");
        let run = scene.env.run(&["gc"]);
        assert_eq!(run.code, 0, "{point}: {run:?}");
        assert!(
            !counts() && !kept_by_git() && !directory.exists(),
            "{point}"
        );
        scene.sound(point);
        scene.works(point);
    }
}

#[test]
fn st_32_a_killed_merge_of_small_packs_loses_nothing() {
    // Where no checkpoint is deleted, none is noted before.
    for point in COLLECTION.iter().filter(|point| **point != "collect.noted") {
        let scene = Scene::new();
        for number in 0..10 {
            let name = format!("project/small{number}");
            scene.env.write(&name, &format!("{number}\n"));
            checkpoint(&scene.env);
        }
        let packs = || {
            let listing = fs::read_dir(scene.env.objects().join("packs")).unwrap();
            listing.count()
        };
        let known = packs();
        assert!(known >= 10, "{known}");
        assert!(scene.killed(point, &["gc"]), "{point} was never passed");
        scene.sound(point);
        assert_eq!(scene.env.run(&["gc"]).code, 0);
        assert!(packs() < known - 8, "{point}: {}", packs());
        scene.sound(point);
    }
}

#[test]
fn st_32_what_only_reads_leaves_it_and_says_what_finishes_it() {
    let commands: [&[&str]; 6] = [
        &["status"],
        &["list"],
        &["log"],
        &["du"],
        &["trail", "list"],
        &["trail", "verify"],
    ];
    let scene = Scene::new();
    assert!(scene.killed("restore.step:6", &["rollback", &scene.id]));
    let half_way = look(&scene.env);
    for command in commands {
        let run = scene.env.run(command);
        assert_eq!(run.code, 0, "{command:?}: {run:?}");
        let found = differences(&half_way, &look(&scene.env));
        assert!(found.is_empty(), "{command:?}: {}", found.join("\n"));
        assert!(run.stderr.contains("finishes it"), "{command:?}: {run:?}");
    }
    let run = scene.env.run(&["checkpoint"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("recovered"), "{run:?}");
    let found = differences(&scene.then, &look(&scene.env));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn st_35_plain_undo_takes_back_the_action_of_which_an_undo_was_cut_off_and_put_back() {
    let scene = Scene::new();
    let env = &scene.env;
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    env.write("project/lines", &lines("1", "8"));
    let script = "for n in 1 2 3 4; do echo made >made$n; done; sed -i 's/^1$/agent/' lines\n";
    env.write("project/act.sh", script);
    let acted = env.run(&["exec", "--no-tui", "--", "sh", "act.sh"]);
    assert_eq!(acted.code, 0, "{acted:?}");
    assert!(scene.killed("restore.step:3", &["undo"]));
    assert!(!env.project().join("made4").exists());
    // A person works on in a file that the undo had not come to: it is put back.
    env.write("project/lines", &lines("agent", "person"));
    let run = env.run(RECOVERING);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(env.project().join("made4").exists());
    let log = env.json(&["log"]);
    assert!(log.to_string().contains("checkpoint.back_out"), "{log:#}");
    // Whoever asks again means the action.
    env.json(&["undo"]);
    for n in 1..=4 {
        assert!(!env.project().join(format!("made{n}")).exists(), "made{n}");
    }
    let found = fs::read_to_string(env.project().join("lines")).unwrap();
    assert_eq!(found, lines("1", "person"));
}
