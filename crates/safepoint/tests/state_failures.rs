//! What goes wrong, and that nothing is lost by it.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use testkit::tree::{assert_same, git, look};
use testkit::{Run, TestEnv};

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

fn checkpoint(env: &TestEnv) -> String {
    let reply = env.json(&["checkpoint"]);
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Every path at and below `root`, the deepest last.
fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if path.symlink_metadata().unwrap().is_dir() {
            found.extend(fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
        }
    }
    found
}

/// Takes the right to write away, or gives it back.
fn set_writable(root: &Path, writable: bool) {
    let mut paths = below(root);
    if !writable {
        paths.reverse();
    }
    for path in paths {
        let mut mode = path.metadata().unwrap().permissions().mode();
        mode = if writable {
            mode | 0o200
        } else {
            mode & !0o222
        };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Runs the binary as somebody whom permissions bind, whoever runs the tests.
fn run_bound(env: &TestEnv, arguments: &[&str]) -> Run {
    let command = env.command(arguments);
    let output = if is_root() {
        const NOBODY: u32 = 65_534;
        for path in below(env.root()) {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // Where the binary lies others may not be allowed to go.
        let binary = env.root().join("safepoint");
        if !binary.exists() && fs::hard_link(command.get_program(), &binary).is_err() {
            fs::copy(command.get_program(), &binary).unwrap();
        }
        let mut bound = Command::new("setpriv");
        bound
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(binary)
            .args(command.get_args())
            .current_dir(command.get_current_dir().unwrap())
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        bound.output().unwrap()
    } else {
        let mut command = command;
        command.output().unwrap()
    };
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Expects that no checkpoint was made, with an error that says where and why.
#[track_caller]
fn assert_not_made(run: &Run, place: &str) -> Value {
    assert_ne!(run.code, 0, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["checkpoint_created"], json!(false), "{run:?}");
    assert!(reply.get("checkpoint_id").is_none(), "{run:?}");
    for field in ["location", "message"] {
        let text = reply["error"][field].as_str().unwrap_or_default();
        assert!(text.contains(place), "{field} without {place}: {run:?}");
    }
    assert!(reply["error"]["suggestion"].is_string(), "{run:?}");
    reply
}

fn manifests(env: &TestEnv) -> usize {
    let Ok(list) = fs::read_dir(env.project().join(".checkpoints")) else {
        return 0;
    };
    list.filter(|it| {
        let name = it.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("chk_")
    })
    .count()
}

fn packs(env: &TestEnv) -> Vec<PathBuf> {
    let list = fs::read_dir(env.objects().join("packs")).unwrap();
    list.map(|entry| entry.unwrap().path()).collect()
}

fn noise(seed: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(&[seed])
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

#[test]
fn st_40_a_read_only_store_makes_no_checkpoint_and_loses_none() {
    let env = env();
    env.write("project/a", "a");
    let first = run_bound(&env, &["checkpoint", "--json"]);
    assert_eq!(first.code, 0, "{first:?}");
    let listed = run_bound(&env, &["list", "--json"]).stdout;
    env.write("project/b", "b");
    set_writable(&env.home(), false);
    let run = run_bound(&env, &["checkpoint", "--json"]);
    set_writable(&env.home(), true);
    assert_not_made(&run, env.home().to_str().unwrap());
    assert_eq!(manifests(&env), 1);
    assert_eq!(run_bound(&env, &["list", "--json"]).stdout, listed);
    let first: Value = serde_json::from_str(&first.stdout).unwrap();
    let id = first["checkpoint_id"].as_str().unwrap();
    assert_eq!(run_bound(&env, &["verify", id]).code, 0);
    assert_eq!(run_bound(&env, &["checkpoint"]).code, 0);
}

#[test]
fn st_40_a_store_that_cannot_even_be_made_is_said_so() {
    let mut env = env();
    env.write("project/a", "a");
    let closed = env.root().join("closed");
    fs::create_dir(&closed).unwrap();
    set_writable(&closed, false);
    env.set("SAFEPOINT_HOME", closed.join("home").to_str().unwrap());
    let run = run_bound(&env, &["checkpoint", "--json"]);
    assert_not_made(&run, closed.to_str().unwrap());
    assert_eq!(manifests(&env), 0);
    assert!(!env.project().join(".checkpoints").exists());
}

#[test]
fn st_40_a_file_that_may_not_be_read_is_named() {
    let env = env();
    env.write("project/a", "a");
    let path = env.write("project/sub/private", "x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let run = run_bound(&env, &["checkpoint", "--json"]);
    assert_not_made(&run, "sub/private");
    assert_eq!(manifests(&env), 0);
    let listed = run_bound(&env, &["list", "-a", "--json"]).stdout;
    assert_eq!(listed.trim(), r#"{"checkpoints":[]}"#);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(run_bound(&env, &["checkpoint"]).code, 0);
}

/// Runs a command as an action of somebody whom permissions bind.
#[track_caller]
fn exec_bound(env: &TestEnv, words: &[&str]) -> String {
    let words = [&["exec", "--no-tui", "--json", "--"], words].concat();
    let run = run_bound(env, &words);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["outcome"], "ok", "{reply}");
    reply["action_id"].as_str().unwrap().to_owned()
}

#[test]
fn st_35_a_file_made_unreadable_does_not_stop_the_way_back() {
    let env = env();
    let a = env.write("project/a.txt", "a\n");
    env.write("project/b.txt", "b\n");
    env.write("project/close.sh", "echo x > b.txt; chmod 000 a.txt\n");
    let checkpoint = run_bound(&env, &["checkpoint", "--json"]);
    let checkpoint: Value = serde_json::from_str(&checkpoint.stdout).unwrap();
    let id = checkpoint["checkpoint_id"].as_str().unwrap();
    let mode = || a.metadata().unwrap().permissions().mode() & 0o777;
    let known = mode();
    let action = exec_bound(&env, &["sh", "close.sh"]);
    assert_eq!(mode(), 0);
    let log = run_bound(&env, &["log", "--json"]);
    let log: Value = serde_json::from_str(&log.stdout).unwrap();
    assert_eq!(log["actions"][0]["action_id"], action.as_str(), "{log:#}");
    let changes = log["actions"][0]["changes"].to_string();
    assert!(
        changes.contains("a.txt") && changes.contains("b.txt"),
        "{changes}"
    );
    let undone = run_bound(&env, &["undo", "--json"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(
        (mode(), fs::read_to_string(&a).unwrap()),
        (known, "a\n".to_owned())
    );
    assert_eq!(
        fs::read_to_string(env.project().join("b.txt")).unwrap(),
        "b\n"
    );
    // So does rolling everything back.
    exec_bound(&env, &["sh", "close.sh"]);
    let back = run_bound(&env, &["rollback", id, "--json"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert_eq!(
        (mode(), fs::read_to_string(&a).unwrap()),
        (known, "a\n".to_owned())
    );
}

/// Undoes what a script does, and rolls it back, where it takes permissions away.
#[track_caller]
fn assert_way_back(env: &TestEnv, script: &str) {
    let write = |text: &str| env.write("project/close.sh", text);
    write(script);
    let checkpoint = run_bound(env, &["checkpoint", "--json"]);
    let checkpoint: Value = serde_json::from_str(&checkpoint.stdout).unwrap();
    let id = checkpoint["checkpoint_id"].as_str().unwrap();
    let before = look(&env.project());
    for back in [&["undo", "--json"][..], &["rollback", id, "--json"]] {
        let action = exec_bound(env, &["sh", "close.sh"]);
        let log = run_bound(env, &["log", "--json"]);
        let log: Value = serde_json::from_str(&log.stdout).unwrap();
        assert_eq!(log["actions"][0]["action_id"], action.as_str(), "{log:#}");
        let dry = run_bound(env, &[back, &["--dry-run"]].concat());
        assert_eq!(dry.code, 0, "{script}: {dry:?}");
        let run = run_bound(env, back);
        assert_eq!(run.code, 0, "{script}: {run:?}");
        let reply: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(reply["verification"]["match"], true, "{script}: {reply:#}");
        assert_eq!(reply["not_restored"], json!([]), "{script}: {reply:#}");
        assert_same(&before, &look(&env.project()));
    }
}

#[test]
fn st_35_directories_made_unreadable_do_not_stop_the_way_back() {
    for script in [
        "chmod 444 d",
        "chmod -R 644 src d || true",
        "chmod 000 d",
        "echo w > d/e; chmod 000 d",
        "echo w > b.txt; chmod 000 .",
        "echo x > nn; chmod 000 nn",
        "mkdir n; echo x > n/f; chmod 000 n",
        "mv d dd; chmod 000 dd",
        "rm -r src; chmod 000 d; echo w > b.txt",
    ] {
        let env = env();
        env.write("project/b.txt", "b\n");
        env.write("project/d/e", "e\n");
        env.write("project/src/inner/f", "f\n");
        assert_way_back(&env, &format!("{script}\n"));
    }
}

#[test]
fn st_35_a_repository_made_unreadable_does_not_stop_the_way_back() {
    for closed in ["objects", "refs", "logs", "objects/pack", "."] {
        let env = env();
        let root = env.project();
        git(&root, &["init", "-q", "-b", "main"]);
        env.write("project/b.txt", "b\n");
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", "first"]);
        let script = format!("echo w > b.txt; chmod 000 .git/{closed}\n");
        let mode = || {
            let metadata = root.join(".git").join(closed).metadata().unwrap();
            metadata.permissions().mode() & 0o777
        };
        let known = mode();
        assert_way_back(&env, &script);
        assert_eq!(mode(), known, "{closed}");
        git(&root, &["-c", "safe.directory=*", "fsck", "--strict"]);
    }
}

#[test]
fn st_35_a_way_back_that_fails_leaves_what_was_unreadable_so() {
    let env = env();
    env.write("project/b.txt", "b\n");
    let e = env.write("project/d/e", "e\n");
    env.write("project/close.sh", "echo w > b.txt; chmod 000 d\n");
    run_bound(&env, &["checkpoint"]);
    exec_bound(&env, &["sh", "close.sh"]);
    env.write("project/b.txt", "somebody else\n");
    let run = run_bound(&env, &["undo", "--json"]);
    assert_ne!(run.code, 0, "{run:?}");
    let mode = e.parent().unwrap().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0, "{run:?}");
}

#[test]
fn st_35_what_was_closed_is_closed_again_by_a_redo() {
    let env = env();
    let e = env.write("project/d/e", "e\n");
    env.write("project/close.sh", "echo w > d/e; chmod 000 d\n");
    run_bound(&env, &["checkpoint"]);
    exec_bound(&env, &["sh", "close.sh"]);
    run_bound(&env, &["undo"]);
    assert_eq!(fs::read_to_string(&e).unwrap(), "e\n");
    let run = run_bound(&env, &["redo", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let mode = e.parent().unwrap().metadata().unwrap().permissions().mode();
    let text = fs::read_to_string(&e).unwrap();
    assert_eq!((mode & 0o777, text.as_str()), (0, "w\n"), "{run:?}");
}

#[test]
fn st_35_a_directory_nested_without_end_does_not_stop_the_way_back() {
    let env = env();
    let b = env.write("project/b.txt", "b\n");
    let deep = "echo x > b.txt; i=0\nwhile [ $i -lt 1200 ]; do mkdir d; cd d; i=$((i+1)); done\n";
    env.write("project/deep.sh", deep);
    let id = env.json(&["checkpoint"])["checkpoint_id"].clone();
    let run = env.run(&["exec", "--no-tui", "--json", "--", "sh", "deep.sh"]);
    assert_eq!(run.code, 0, "{run:?}");
    let log = env.json(&["log"]);
    let changes = log["actions"][0]["changes"].to_string();
    assert!(changes.contains("b.txt"), "{log:#}");
    let undone = env.run(&["undo", "--json"]);
    assert_eq!(fs::read_to_string(&b).unwrap(), "b\n", "{undone:?}");
    assert!(undone.stdout.contains("nested deeper"), "{undone:?}");
    let stays = |text: &str| text.matches("stays: it holds").count();
    assert_eq!(stays(&undone.stdout), 1, "named once, not at each level");
    fs::write(&b, "y\n").unwrap();
    let back = env.run(&["rollback", id.as_str().unwrap(), "--json"]);
    assert_eq!(fs::read_to_string(&b).unwrap(), "b\n", "{back:?}");
    assert!(back.stdout.contains("`d` stays"), "{back:?}");
    assert_eq!(stays(&back.stdout), 1);
    // Paths this long take a moment.
    std::process::Command::new("rm")
        .args(["-rf", "d"])
        .current_dir(env.project())
        .status()
        .unwrap();
}

#[test]
fn st_40_a_workspace_that_may_not_be_written_is_said_so() {
    let env = env();
    env.write("project/a", "a");
    set_writable(&env.project(), false);
    let run = run_bound(&env, &["checkpoint", "--json"]);
    assert_not_made(&run, "project");
    set_writable(&env.project(), true);
    let listed = run_bound(&env, &["list", "-a", "--json"]).stdout;
    assert_eq!(listed.trim(), r#"{"checkpoints":[]}"#);
}

/// A disk of its own; none where the tests may not mount.
struct Disk(PathBuf);

impl Disk {
    fn at(place: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(place).unwrap();
        let option = format!("size={size}");
        let mounted = is_root()
            && Command::new("mount")
                .args(["-t", "tmpfs", "-o", &option, "tmpfs"])
                .arg(place)
                .output()
                .is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("skipped: only a superuser can mount a small disk");
        }
        mounted.then(|| Self(place.to_owned()))
    }

    fn resize(&self, size: &str) {
        let option = format!("remount,size={size}");
        let mut command = Command::new("mount");
        let output = command.args(["-o", &option]).arg(&self.0).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// An error says which file system is full, and for which path on it space is needed.
fn assert_names_disk(reply: &Value, disk: &Path) {
    let (error, disk) = (&reply["error"], disk.to_str().unwrap());
    let suggestion = error["suggestion"].as_str().unwrap();
    let wanted = format!("the file system at `{disk}`");
    assert!(suggestion.contains(&wanted), "{reply:#}");
    let location = error["location"].as_str().unwrap();
    assert!(location.starts_with(disk), "{reply:#}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(disk), "{reply:#}");
}

#[test]
fn st_40_a_full_disk_under_the_store_leaves_nothing_half_made() {
    let env = env();
    let Some(disk) = Disk::at(&env.home(), "3m") else {
        return;
    };
    env.write("project/a", "a");
    let first = checkpoint(&env);
    fs::write(env.project().join("big"), noise(1, 8 << 20)).unwrap();
    let run = env.run(&["checkpoint", "--json"]);
    let reply = assert_not_made(&run, env.home().to_str().unwrap());
    assert_eq!(run.code, 5, "{reply}");
    assert_names_disk(&reply, &env.home());
    assert_eq!(manifests(&env), 1);
    disk.resize("64m");
    let listed = env.json(&["list"]);
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 1);
    env.json(&["verify", &first]);
    let second = checkpoint(&env);
    env.json(&["verify", &second]);
    assert_eq!(env.run(&["trail", "verify"]).code, 0);
}

#[test]
fn st_40_a_full_disk_under_the_workspace_leaves_it_as_it_was() {
    let env = env();
    let Some(_disk) = Disk::at(&env.project(), "4m") else {
        return;
    };
    fs::write(env.project().join("old"), noise(1, 2 << 20)).unwrap();
    let id = checkpoint(&env);
    fs::remove_file(env.project().join("old")).unwrap();
    fs::write(env.project().join("new"), noise(2, 3 << 20)).unwrap();
    let before = look(&env.project());
    let run = env.run(&["rollback", &id, "--json"]);
    assert_ne!(run.code, 0, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_names_disk(&reply, &env.project());
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(!message.contains("the store"), "{reply:#}");
    assert_same(&before, &look(&env.project()));
    fs::remove_file(env.project().join("new")).unwrap();
    env.json(&["rollback", &id]);
    assert_eq!(
        fs::read(env.project().join("old")).unwrap(),
        noise(1, 2 << 20)
    );
}

#[test]
fn st_14_a_file_that_never_holds_still_fails_the_checkpoint_by_name() {
    let env = env();
    env.write("project/quiet", "quiet");
    let path = env.project().join("busy.log");
    fs::write(&path, noise(3, 4 << 20)).unwrap();
    let stop = AtomicBool::new(false);
    let begun = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            while !stop.load(Ordering::Relaxed) {
                file.write_all(b"one more line\n").unwrap();
                begun.store(true, Ordering::Relaxed);
                if file.metadata().unwrap().len() > 32 << 20 {
                    file.set_len(4 << 20).unwrap();
                }
            }
        });
        while !begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        // On a busy machine the writer may not get its turn while the file is read:
        // then it did hold still, and the checkpoint is right to be made.
        let mut made = 0;
        let run = loop {
            let run = env.run(&["checkpoint", "--json"]);
            if run.code != 0 || made == 20 {
                break run;
            }
            made += 1;
        };
        stop.store(true, Ordering::Relaxed);
        (run, made)
    });
    let (run, made) = run;
    let reply = assert_not_made(&run, "busy.log");
    assert_eq!(reply["error"]["name"], "FILE_UNSTABLE");
    assert_eq!(manifests(&env), made);
    let listed = env.json(&["list"]);
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), made);
    let reply = env.json(&["checkpoint"]);
    assert_eq!(reply["checkpoint_created"], true);
}

/// Enough content for several blocks.
fn stored() -> (TestEnv, String) {
    let env = env();
    for number in 0..24_u8 {
        let path = format!("project/d{}/e{number}/f{number}", number % 4);
        env.write(&path, "");
        fs::write(env.root().join(path), noise(number, 60_000)).unwrap();
    }
    let id = checkpoint(&env);
    (env, id)
}

fn assert_unrestorable(env: &TestEnv, id: &str, why: &str) {
    let before = look(&env.project());
    let run = env.run(&["rollback", id, "--json"]);
    assert_eq!(run.code, 1, "{why}: {run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["error"]["code"], "F503", "{why}: {run:?}");
    assert_eq!(reply["error"]["name"], "ROLLBACK_FAILED");
    assert_same(&before, &look(&env.project()));
    assert_ne!(env.run(&["verify", id]).code, 0, "{why}");
}

#[test]
fn st_33_one_flipped_byte_anywhere_in_the_store_and_nothing_is_touched() {
    let (env, id) = stored();
    let whole = look(&env.project());
    for entry in fs::read_dir(env.project()).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with(".checkpoints") && !path.ends_with(".audit") {
            fs::remove_dir_all(path).unwrap();
        }
    }
    env.write("project/new", "made since");
    let pack = packs(&env).remove(0);
    let bytes = fs::read(&pack).unwrap();
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
    // The list at the end of a pack is needed only when the index is lost.
    for step in 0..20 {
        let at = 16 + step * (bytes.len() * 99 / 100 - 16) / 20;
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&pack, damaged).unwrap();
        assert_unrestorable(&env, &id, &format!("byte {at} of {}", bytes.len()));
    }
    fs::write(&pack, &bytes[..bytes.len() / 2]).unwrap();
    assert_unrestorable(&env, &id, "cut in half");
    fs::remove_file(&pack).unwrap();
    assert_unrestorable(&env, &id, "gone");
    fs::write(&pack, &bytes).unwrap();
    env.json(&["rollback", &id]);
    assert_same(&whole, &look(&env.project()));
}

#[test]
fn st_40_an_index_that_is_lost_or_damaged_is_made_again_from_the_packs() {
    let (env, id) = stored();
    let whole = look(&env.project());
    let index = env.objects().join("index.db");
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("gone", |_| {}),
        ("empty", |path| fs::write(path, "").unwrap()),
        ("not a database", |path| {
            fs::write(path, "x".repeat(9_000)).unwrap()
        }),
        ("cut off", |path| {
            fs::write(path, &b"SQLite format 3\0\x10\0\x01\x01"[..]).unwrap()
        }),
    ];
    for (what, damage) in damages {
        for name in ["index.db", "index.db-wal", "index.db-shm"] {
            let _ = fs::remove_file(index.with_file_name(name));
        }
        damage(&index);
        let run = env.run(&["verify", &id]);
        assert_eq!(run.code, 0, "{what}: {run:?}");
        fs::remove_dir_all(env.project().join("d0")).unwrap();
        env.json(&["rollback", &id]);
        assert_same(&whole, &look(&env.project()));
    }
}

/// It is past before the command that names it has ended.
const SOON: &str = "1us";

#[test]
fn st_07_only_gc_deletes_and_only_what_has_expired_and_is_not_pinned() {
    let env = env();
    // Each of a file of its own: no change by hand lies between two of them.
    let name = |seed: u8| format!("f{seed}");
    let with = |seed: u8, expiry: &str| {
        fs::write(env.project().join(name(seed)), noise(seed, 300_000)).unwrap();
        let reply = env.json(&["checkpoint", &name(seed), "--expiry", expiry]);
        reply["checkpoint_id"].as_str().unwrap().to_owned()
    };
    let (expired, pinned, valid) = (with(1, SOON), with(2, SOON), with(3, "1h"));
    env.json(&["pin", &pinned]);
    let used = env.json(&["du"])["bytes"].as_u64().unwrap();
    let dry = env.json(&["gc", "--dry-run"]);
    assert_eq!(dry["deleted"], json!([expired]));
    assert_eq!(
        env.json(&["list"])["checkpoints"].as_array().unwrap().len(),
        3
    );
    assert_eq!(env.json(&["du"])["bytes"], used);
    let done = env.json(&["gc"]);
    assert_eq!(done["deleted"], json!([expired]));
    assert!(env.json(&["du"])["bytes"].as_u64().unwrap() + 250_000 < used);
    assert_eq!(env.run(&["verify", &expired]).code, 8);
    for (id, seed) in [(&pinned, 2), (&valid, 3)] {
        env.json(&["verify", id]);
        env.write(&format!("project/{}", name(seed)), "changed");
        env.json(&["rollback", id, "--expired"]);
        assert_eq!(
            fs::read(env.project().join(name(seed))).unwrap(),
            noise(seed, 300_000)
        );
    }
    // A second time there is nothing left to do.
    assert_eq!(env.json(&["gc"])["deleted"], json!([]));
    assert_eq!(env.run(&["trail", "verify"]).code, 0);
}

#[test]
fn st_06_what_was_known_of_deleted_content_is_not_trusted_after_the_index_is_lost() {
    let env = env();
    fs::write(env.project().join("f"), noise(1, 100_000)).unwrap();
    env.json(&["checkpoint", "--expiry", SOON]);
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("g"), noise(2, 100_000)).unwrap();
    env.json(&["-C", other.to_str().unwrap(), "checkpoint"]);
    assert_eq!(env.json(&["gc"])["deleted"].as_array().unwrap().len(), 1);
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let _ = fs::remove_file(env.objects().join(name));
    }
    let again = checkpoint(&env);
    env.json(&["verify", &again]);
}

/// Runs a command that may have few files open.
fn run_with_few_files(env: &TestEnv, arguments: &[&str]) -> Value {
    let command = env.command(arguments);
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .arg("--json")
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn st_07_many_packs_need_few_open_files_and_gc_makes_them_one() {
    let env = env();
    let mut ids = Vec::new();
    for number in 0..90_u8 {
        fs::write(env.project().join(format!("f{number}")), noise(number, 400)).unwrap();
        ids.push(checkpoint(&env));
    }
    let files = look(&env.project());
    assert!(packs(&env).len() >= 90);
    run_with_few_files(&env, &["gc", "--dry-run"]);
    assert!(packs(&env).len() >= 90);
    // Everything is read from all of them.
    for number in 0..90 {
        fs::remove_file(env.project().join(format!("f{number}"))).unwrap();
    }
    run_with_few_files(&env, &["rollback", ids.last().unwrap()]);
    assert_same(&files, &look(&env.project()));
    run_with_few_files(&env, &["gc"]);
    assert!(packs(&env).len() <= 3, "{}", packs(&env).len());
    for id in &ids {
        run_with_few_files(&env, &["verify", id]);
    }
    // What is one already is left alone.
    let known = packs(&env);
    run_with_few_files(&env, &["gc"]);
    assert_eq!(packs(&env), known);
}

#[test]
fn st_33_a_sealed_secret_that_is_damaged_keeps_the_tree_untouched() {
    let env = env();
    env.write("project/.env", "A=b\n");
    env.write("project/a", "a\n");
    env.json(&["checkpoint"]);
    // Only the sealed secret is new.
    let known = packs(&env);
    let reply = env.json(&["checkpoint", "--seal-sensitive"]);
    let id = reply["checkpoint_id"].as_str().unwrap();
    let pack = packs(&env)
        .into_iter()
        .find(|it| !known.contains(it))
        .unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    bytes[60] ^= 1;
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&pack, bytes).unwrap();
    env.write("project/.env", "A=changed\n");
    env.write("project/a", "changed\n");
    assert_unrestorable(&env, id, "sealed");
    assert_eq!(env.run(&["list"]).code, 0);
}

#[test]
fn st_41_gc_beside_checkpoints_takes_nothing_that_is_needed() {
    let env = env();
    let start = |arguments: &[&str]| {
        let mut command = env.command(arguments);
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let mut ids = Vec::new();
    for round in 0..6_u8 {
        fs::write(env.project().join("f"), noise(round, 200_000)).unwrap();
        let running = [
            start(&["checkpoint", "--json"]),
            start(&["gc", "--json"]),
            start(&["checkpoint", "--json"]),
        ];
        for child in running {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
            ids.extend(reply["checkpoint_id"].as_str().map(str::to_owned));
        }
    }
    assert_eq!(ids.len(), 12);
    for id in ids {
        env.json(&["verify", &id]);
    }
}

#[test]
fn st_40_a_home_below_a_file_makes_no_checkpoint_and_says_so() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    env.write("project/a.txt", "a\n");
    let mut command = env.command(&["checkpoint", "--json"]);
    let home = env.project().join("a.txt/home");
    let output = command.env("SAFEPOINT_HOME", &home).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["checkpoint_created"], false, "{reply}");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("project/a.txt"), "{message}");
}

#[test]
fn st_07_gc_keeps_what_the_undo_of_a_recent_action_needs() {
    let env = env();
    env.write("project/a", "old\n");
    let reply = env.json(&["checkpoint", "--expiry", "3s"]);
    let id = reply["checkpoint_id"].as_str().unwrap().to_owned();
    let operation = json!({"type": "edit", "changes": [{"old": "old", "new": "new"}]}).to_string();
    let done = env.json(&[
        "mutate",
        "a",
        "--checkpoint",
        &id,
        "--operation",
        &operation,
    ]);
    let action = done["action_id"].as_str().unwrap().to_owned();
    wait_until_expired(&env, &id);
    for arguments in [&["gc", "--dry-run"][..], &["gc"]] {
        let reply = env.json(arguments);
        assert_eq!(reply["deleted"], json!([]), "{reply}");
        let kept = reply["kept_for_undo"].as_array().unwrap();
        let wanted = json!({"checkpoint_id": id, "action_id": action});
        assert!(kept.contains(&wanted), "{reply}");
    }
    let told = env.run(&["gc"]);
    assert!(told.stdout.contains(&id), "{told:?}");
    env.json(&["undo", &action]);
    assert_eq!(
        fs::read_to_string(env.project().join("a")).unwrap(),
        "old\n"
    );
}

/// Asks again until the checkpoint has expired.
#[track_caller]
fn wait_until_expired(env: &TestEnv, id: &str) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while env.run(&["rollback", id, "--dry-run"]).code == 0 {
        assert!(std::time::Instant::now() < end, "{id} never expires");
    }
}

#[test]
fn st_07_one_chosen_checkpoint_is_deleted_on_request() {
    let env = env();
    env.write("project/a", "3\n");
    let make = || {
        let reply = env.json(&["checkpoint"]);
        reply["checkpoint_id"].as_str().unwrap().to_owned()
    };
    let (first, second, third) = (make(), make(), make());
    let listed = |id: &str| env.json(&["list"]).to_string().contains(id);
    let dry = env.json(&["gc", "--checkpoint", &first, "--dry-run"]);
    assert_eq!(dry["deleted"], json!([first]));
    assert!(listed(&first));
    let done = env.json(&["gc", "--checkpoint", &first]);
    assert_eq!(done["deleted"], json!([first]));
    assert!(!listed(&first) && listed(&second) && listed(&third));
    assert_eq!(env.run(&["rollback", &first]).code, 8);
    let told = env.json(&["trail", "list", "--kind", "checkpoints_collected"]);
    assert_eq!(told["entries"][0]["body"]["deleted"], json!([first]));
    // A pinned one stays, forced or not.
    env.json(&["pin", &second]);
    for more in [None, Some("--force")] {
        let mut arguments = vec!["gc", "--checkpoint", &second];
        arguments.extend(more);
        let run = env.run(&arguments);
        assert_eq!(run.code, 9, "{run:?}");
        assert!(run.stderr.contains("pin --remove"), "{run:?}");
    }
    // The only way back of a recent action needs `--force`.
    let operation = json!({"type": "edit", "changes": [{"old": "3", "new": "4"}]}).to_string();
    env.json(&[
        "mutate",
        "a",
        "--checkpoint",
        &third,
        "--operation",
        &operation,
    ]);
    let run = env.run(&["gc", "--checkpoint", &third]);
    assert_eq!(run.code, 9, "{run:?}");
    assert!(run.stderr.contains("--force"), "{run:?}");
    assert!(listed(&third));
    let done = env.json(&["gc", "--checkpoint", &third, "--force"]);
    assert_eq!(done["deleted"], json!([third]));
    assert_eq!(env.run(&["gc", "--force"]).code, 7);
    assert_eq!(env.run(&["trail", "verify"]).code, 0);
}

#[test]
fn st_07_what_would_expire_while_an_action_runs_is_not_its_way_back() {
    let env = env();
    env.write("project/a", "old\n");
    let reply = env.json(&["checkpoint", "--expiry", "1h"]);
    let id = reply["checkpoint_id"].as_str().unwrap().to_owned();
    let ran = env.run(&["exec", "--no-tui", "--json", "--", "rm", "a"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_ne!(ran["checkpoint_id"], json!(id), "{ran}");
    env.json(&["gc", "--checkpoint", &id]);
    env.json(&["undo", ran["action_id"].as_str().unwrap()]);
    assert!(env.project().join("a").exists());
}
