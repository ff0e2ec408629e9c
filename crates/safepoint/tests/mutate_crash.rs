//! A change that is killed at any instant: the next command finds the tree as it
//! was before or as it was to be, the checkpoint used up exactly in the second
//! case, and says so where nobody can know.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/points.rs"]
mod points;
#[path = "support/mutation.rs"]
mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{
    Still, actions, assert_sound, batch, checkpoint, env, kinds, listed, spent_by, text,
};
use testkit::tree::{Tree, look};
use testkit::{Run, TestEnv};

/// A workspace, a checkpoint of it, and a change.
struct Scene {
    env: TestEnv,
    id: String,
    before: Still,
    operations: String,
}

/// Where the tree was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    After,
}

/// Everything but times, which are new in what was changed.
fn shape(top: &Path) -> Tree {
    let mut tree = look(top);
    tree.values_mut().for_each(|seen| seen.modified = 0);
    tree
}

impl Scene {
    fn new(operations: &Value) -> Self {
        let env = env();
        let top = env.project();
        for name in ["a", "deep/b", "deep/er/c", "gone/d", "moved"] {
            env.write(&format!("project/{name}"), &format!("{name} before\n"));
        }
        symlink("a", top.join("link")).unwrap();
        fs::set_permissions(top.join("deep"), fs::Permissions::from_mode(0o750)).unwrap();
        let id = checkpoint(&env, &[".", "--state", "note=\"before\""]);
        Self {
            before: Still::of(&top),
            env,
            id,
            operations: operations.to_string(),
        }
    }

    fn of_files() -> Self {
        Self::new(&json!([
            { "target": "a", "type": "edit", "changes": [{ "old": "before", "new": "after" }] },
            { "target": "new/er/e", "type": "write", "content": "e after\n", "mode": "0600" },
            { "target": "gone", "type": "delete", "recursive": true },
            { "target": "moved", "type": "move", "to": "deep/moved" },
            { "target": "link", "type": "symlink", "to": "deep", "overwrite": true },
            { "target": "deep/b", "type": "chmod", "mode": "0755" },
        ]))
    }

    fn of_command() -> Self {
        let line = "echo after > a; rm -r gone; mkdir made; echo new > made/new";
        Self::new(&json!([{ "target": ".", "type": "command", "argv": ["sh", "-c", line] }]))
    }

    fn of_state() -> Self {
        Self::new(&json!([{ "target": "state:note", "type": "state", "value": "after" }]))
    }

    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec!["mutate", "--checkpoint", &self.id];
        all.extend(["--operation", &self.operations]);
        all.extend(more);
        all
    }

    /// Runs a command that is killed at a fault point. False when it did not pass there.
    #[track_caller]
    fn killed(&self, fault: &str, arguments: &[&str]) -> bool {
        let mut command = self.env.command(arguments);
        let output = command.env("SAFEPOINT_FAULT", fault).output().unwrap();
        match output.status.signal() {
            Some(9) => true,
            None => false,
            _ => panic!("{fault}: {output:?}"),
        }
    }

    /// What the next command finds, all of which must fit together.
    #[track_caller]
    fn recovered(&self, when: &str, after: &Tree) -> (Place, Run) {
        let run = self.env.run(&["gc"]);
        assert_eq!(run.code, 0, "{when}: {run:?}");
        let place = if Still::of(&self.env.project()) == self.before || self.is_before() {
            Place::Before
        } else {
            assert_eq!(*after, shape(&self.env.project()), "{when}: half-way");
            Place::After
        };
        assert_sound(&self.env);
        let spent = spent_by(&self.env, &self.id);
        assert_eq!(spent.is_some(), place == Place::After, "{when}: {spent:?}");
        for id in ids(&self.env) {
            let run = self.env.run(&["verify", &id]);
            assert_eq!(run.code, 0, "{when}: {id}: {run:?}");
        }
        if let Some(action) = spent {
            assert_eq!(self.env.json(&["verify", &action])["verdict"], "PASS");
            assert_eq!(actions(&self.env)[0]["outcome"], "ok", "{when}");
        }
        (place, run)
    }

    /// The same bytes, modes and times as before.
    fn is_before(&self) -> bool {
        self.before.is_back()
    }

    /// The change can be made, or taken back, so that nothing is stuck.
    #[track_caller]
    fn works(&self, place: Place, after: &Tree) {
        match place {
            Place::Before => {
                let operations: Value = serde_json::from_str(&self.operations).unwrap();
                batch(&self.env, &self.id, &operations, &[]).done();
                assert_eq!(*after, shape(&self.env.project()));
            }
            Place::After => {
                self.env.json(&["undo"]);
                self.before.assert_back();
            }
        }
    }
}

/// All checkpoints there are.
fn ids(env: &TestEnv) -> Vec<String> {
    let list = env.json(&["list", "--automatic"]);
    let all = list["checkpoints"].as_array().unwrap().iter();
    all.map(|one| text(&one["id"])).collect()
}

/// The tree that a change leads to.
fn after(scene: Scene) -> Tree {
    let operations: Value = serde_json::from_str(&scene.operations).unwrap();
    batch(&scene.env, &scene.id, &operations, &[]).done();
    shape(&scene.env.project())
}

#[test]
fn st_32_a_killed_change_of_files_is_there_or_not() {
    let wanted = after(Scene::of_files());
    for point in points::MUTATION {
        let scene = Scene::of_files();
        let passed = scene.killed(point, &scene.arguments(&["--verify", "true"]));
        let is_outside = ["mutate.outside", "mutate.stepped", "mutate.looked"].contains(point);
        assert_eq!(passed, !is_outside, "{point}");
        if !passed {
            continue;
        }
        let (place, run) = scene.recovered(point, &wanted);
        let recorded = *point == "mutate.recorded";
        assert_eq!(place == Place::After, recorded, "{point}");
        let told = match *point {
            "mutate.begun" => "was cut off before it touched",
            "mutate.recorded" => "is now finished",
            _ => "what it had done was taken back",
        };
        assert!(run.stderr.contains(told), "{point}: {run:?}");
        scene.works(place, &wanted);
    }
}

#[test]
fn st_32_a_change_killed_at_any_step_is_there_or_not() {
    let wanted = after(Scene::of_files());
    let mut passed = 0;
    for point in [
        "restore.staged",
        "restore.removed",
        "restore.step",
        "restore.renamed",
    ] {
        for nth in 1.. {
            let scene = Scene::of_files();
            let fault = format!("{point}:{nth}");
            if !scene.killed(&fault, &scene.arguments(&[])) {
                assert!(nth > 1, "{point} was never passed");
                break;
            }
            passed += 1;
            let (place, _) = scene.recovered(&fault, &wanted);
            assert_eq!(place, Place::Before, "{fault}");
            if nth % 3 == 1 {
                scene.works(place, &wanted);
            }
        }
    }
    assert!(passed > 8, "only {passed} steps");
}

#[test]
fn st_32_writes_of_a_change_may_be_cut_off_anywhere() {
    let wanted = after(Scene::of_files());
    for point in [
        "file.written",
        "file.renamed",
        "write.begun",
        "write.changed",
        "write.sealed",
        "write.committed",
        "write.durable",
        "objects.written",
        "objects.packed",
        "objects.indexed",
    ] {
        for nth in 1..40 {
            let scene = Scene::of_files();
            let fault = format!("{point}:{nth}");
            if !scene.killed(&fault, &scene.arguments(&[])) {
                assert!(nth > 1, "{point} was never passed");
                break;
            }
            let (place, _) = scene.recovered(&fault, &wanted);
            if nth == 1 {
                scene.works(place, &wanted);
            }
        }
    }
}

#[test]
fn st_32_a_failed_change_killed_while_it_is_taken_back_is_taken_back() {
    let wanted = after(Scene::of_files());
    let line = "false";
    let faults = [
        "mutate.checked",
        "restore.staged:2",
        "restore.removed:2",
        "restore.renamed:2",
        "restore.step:8",
        "restore.step:10",
        "restore.step:12",
        "write.committed:2",
        "write.committed:3",
        "write.durable:3",
        "file.renamed:6",
    ];
    let mut kills = 0;
    for fault in faults {
        let scene = Scene::of_files();
        let killed = scene.killed(fault, &scene.arguments(&["--verify", line]));
        kills += usize::from(killed);
        let (place, _) = scene.recovered(fault, &wanted);
        assert_eq!(place, Place::Before, "{fault}");
        scene.works(place, &wanted);
    }
    assert!(kills > 7, "only {kills}");
}

#[test]
fn st_32_a_recovery_of_a_change_that_is_killed_is_recovered_from() {
    let wanted = after(Scene::of_files());
    // Each is passed however far the recovery before it came.
    let again = [
        "recover.begun",
        "file.renamed:1",
        "write.committed:1",
        "restore.staged",
        "restore.step:1",
        "restore.removed",
        "restore.renamed",
        "write.changed:2",
        "write.durable:2",
    ];
    for first in ["restore.step:3", "restore.step:5", "mutate.applied"] {
        let scene = Scene::of_files();
        assert!(scene.killed(first, &scene.arguments(&[])), "{first}");
        let mut kills = 0;
        for fault in again {
            kills += u32::from(scene.killed(fault, &["gc"]));
        }
        assert!(kills >= 7, "{first}: only {kills} were killed");
        let (place, _) = scene.recovered(first, &wanted);
        assert_eq!(place, Place::Before, "{first}");
        scene.works(place, &wanted);
    }
}

#[test]
fn st_32_of_a_killed_command_it_is_told_that_nobody_saw_its_end() {
    let wanted = after(Scene::of_command());
    for point in [
        "mutate.begun",
        "mutate.outside",
        "mutate.acted",
        "mutate.checked",
    ] {
        let scene = Scene::of_command();
        assert!(scene.killed(point, &scene.arguments(&[])), "{point}");
        let run = scene.env.run(&["gc"]);
        assert_eq!(run.code, 0, "{point}: {run:?}");
        assert_sound(&scene.env);
        // It allows another change: this one was never recorded as a success.
        assert_eq!(spent_by(&scene.env, &scene.id), None, "{point}");
        if point == "mutate.begun" {
            assert!(run.stderr.contains("dropped"), "{run:?}");
            scene.before.assert_untouched();
            assert!(actions(&scene.env).is_empty());
            continue;
        }
        assert!(run.stderr.contains("nobody saw how far it came"), "{run:?}");
        let ran = point != "mutate.outside";
        assert_eq!(shape(&scene.env.project()) == wanted, ran, "{point}");
        let log = actions(&scene.env);
        assert_eq!(log.len(), 1, "{point}: {log:?}");
        assert_eq!(log[0]["outcome"], "unknown", "{point}");
        let action = text(&log[0]["action_id"]);
        assert_eq!(
            kinds(&scene.env, &action),
            ["mutation_started", "mutation_unknown"]
        );
        let changes = log[0]["changes"].as_array().unwrap().len();
        assert_eq!(changes > 0, ran, "{log:?}");
        let audit = scene.env.json(&["audit"]);
        assert_eq!(audit["audit_record"]["outcome"], "failure", "{audit}");
        scene.env.json(&["undo"]);
        scene.before.assert_back();
        assert_sound(&scene.env);
    }
    let scene = Scene::of_command();
    assert!(scene.killed("mutate.recorded", &scene.arguments(&[])));
    let (place, run) = scene.recovered("mutate.recorded", &wanted);
    assert_eq!(place, Place::After);
    assert!(run.stderr.contains("is now finished"), "{run:?}");
    scene.works(place, &wanted);
}

#[test]
fn st_32_a_killed_change_of_a_state_is_told_and_can_be_undone() {
    for point in ["mutate.outside", "mutate.acted", "mutate.checked"] {
        let scene = Scene::of_state();
        assert!(scene.killed(point, &scene.arguments(&[])), "{point}");
        let run = scene.env.run(&["gc"]);
        assert!(run.stderr.contains("nobody saw how far it came"), "{run:?}");
        assert_sound(&scene.env);
        let diff = scene.env.json(&["diff", &scene.id]);
        let changed = diff["changes"].as_array().unwrap().len();
        assert_eq!(changed, usize::from(point != "mutate.outside"), "{point}");
        scene.env.json(&["undo"]);
        let diff = scene.env.json(&["diff", &scene.id]);
        assert_eq!(diff["changes"], json!([]), "{point}");
        scene.before.assert_untouched();
    }
}

#[test]
fn st_32_a_roll_back_of_files_and_states_killed_between_them_is_finished() {
    for point in [
        "restore.applying",
        "restore.parts",
        "restore.step:2",
        "restore.applied",
    ] {
        let scene = Scene::of_state();
        let both = json!([
            { "target": "state:note", "type": "state", "value": "after" },
            { "target": "a", "type": "write", "content": "after\n" },
            { "target": "deep/er", "type": "delete", "recursive": true },
        ]);
        batch(&scene.env, &scene.id, &both, &[]).done();
        assert!(scene.killed(point, &["rollback", &scene.id]), "{point}");
        let run = scene.env.run(&["gc"]);
        assert!(run.stderr.contains("is now finished"), "{point}: {run:?}");
        scene.before.assert_back();
        let diff = scene.env.json(&["diff", &scene.id]);
        assert_eq!(diff["changes"], json!([]), "{point}");
        assert_sound(&scene.env);
    }
}

fn make_pipe(path: &Path) {
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

/// A file of a hundred lines, of which a writer has written 55 when it is killed.
#[test]
fn st_32_a_writer_killed_at_line_55_is_rolled_back_by_another_process() {
    let line = |number: u32| format!("line {number}: as it was\n");
    let original: String = (1..=100).map(line).collect();
    let script = "i=0; while [ $i -lt 55 ]; do i=$((i+1)); echo \"line $i: overwritten\"; done \
        > data.txt; echo $$ > ../scratch/pipe; exec sleep 1000";
    let writer = || {
        let env = env();
        env.write("project/data.txt", &original);
        make_pipe(&env.scratch().join("pipe"));
        let id = checkpoint(&env, &["data.txt"]);
        let still = Still::of(&env.project());
        (env, id, still)
    };
    let cut = |env: &TestEnv| {
        let found = fs::read_to_string(env.project().join("data.txt")).unwrap();
        assert_eq!(found.lines().count(), 55);
    };

    // A plain process, after a checkpoint.
    let (env, id, still) = writer();
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", script]).current_dir(env.project());
    let mut child = shell.spawn().unwrap();
    fs::read_to_string(env.scratch().join("pipe")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    cut(&env);
    let back = env.json(&["rollback", &id]);
    assert_eq!(back["verification"]["match"], true);
    still.assert_back();

    // The same as a change under the checkpoint, killed with Safepoint itself.
    let (env, id, still) = writer();
    let operation = json!({ "type": "command", "argv": ["sh", "-c", script] }).to_string();
    let arguments = ["mutate", "data.txt", "--checkpoint", &id, "--operation"];
    let mut command = env.command(&[&arguments[..], &[&operation]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let writer = fs::read_to_string(env.scratch().join("pipe")).unwrap();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let writer = Pid::from_raw(writer.trim().parse().unwrap()).unwrap();
    kill_process(writer, Signal::KILL).unwrap();
    cut(&env);
    let back = env.json(&["rollback", &id]);
    assert_eq!(back["verification"]["match"], true);
    still.assert_back();
    assert_eq!(actions(&env)[1]["outcome"], "unknown");
    assert_sound(&env);

    // And where only the writer is killed, it has never happened.
    let (env, id, still) = writer_alone(&original);
    let reply = fs::read_to_string(env.root().join("reply")).unwrap();
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(reply["error"]["code"], "F514", "{reply}");
    still.assert_back();
    assert_eq!(spent_by(&env, &id), None);
    assert_eq!(listed(&env, &id)["expired"], false);
}

/// Kills the writer of a change, and not Safepoint; its reply is in a file.
fn writer_alone(original: &str) -> (TestEnv, String, Still) {
    let env = env();
    env.write("project/data.txt", original);
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let script = "head -n 55 data.txt > cut; mv cut data.txt; kill -9 $$";
    let operation = json!([{ "target": ".", "type": "command", "argv": ["sh", "-c", script] }]);
    let answer = batch(&env, &id, &operation, &[]);
    let mut file = fs::File::create(env.root().join("reply")).unwrap();
    write!(file, "{}", answer.reply).unwrap();
    (env, id, still)
}

#[test]
fn st_32_what_the_check_of_a_killed_change_took_is_told_with_the_way_to_bring_it_back() {
    let env = env();
    env.write("project/a", "a\n");
    env.write("project/.env", "PASSWORD=secret\n");
    let operation = json!({ "type": "append", "content": "more\n" }).to_string();
    let change = [
        "mutate",
        "a",
        "--auto-checkpoint",
        "--operation",
        &operation,
    ];
    let check = ["--verify", "rm -f .env"];
    let mut command = env.command(&[&change[..], &check].concat());
    command.env("SAFEPOINT_FAULT", "mutate.checked");
    assert_eq!(command.output().unwrap().status.signal(), Some(9));
    let run = env.run(&["gc"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("`.env` is not as it was"), "{run:?}");
    let told = "`safepoint rollback ";
    let line = run.stderr.split(told).nth(1).unwrap();
    let words: Vec<&str> = line.split('`').next().unwrap().split(' ').collect();
    let back = env.run(&[&["rollback"], words.as_slice()].concat());
    assert_eq!(back.code, 0, "{back:?}");
    let back = fs::read_to_string(env.project().join(".env"));
    assert_eq!(back.unwrap(), "PASSWORD=secret\n");
    let kept = fs::read_to_string(env.project().join("a")).unwrap();
    assert_eq!(kept, "a\n");
}
