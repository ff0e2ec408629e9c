//! Where a change may be made: inside the workspace and inside the scope of its
//! checkpoint, whatever names, links and other processes say.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/mutation.rs"]
mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use support::{Answer, Still, assert_sound, checkpoint, env, mutate, paste, run, spent_by, text};
use testkit::TestEnv;
use testkit::tree::git;

fn write() -> Value {
    json!({ "type": "write", "content": "written\n" })
}

/// A workspace, and a directory outside it that nothing may touch.
fn scene() -> (TestEnv, Still) {
    let env = env();
    env.write("project/src/a.txt", "a\n");
    env.write("project/src/deep/b.txt", "b\n");
    env.write("project/other.txt", "other\n");
    env.write("outside/a.txt", "theirs\n");
    env.write("outside/deep/b.txt", "theirs too\n");
    let outside = Still::of(&env.root().join("outside"));
    (env, outside)
}

/// It was refused for want of a checkpoint that covers it.
#[track_caller]
fn out_of_reach(answer: Answer) -> Value {
    let reply = answer.failed(2, "F501");
    assert_eq!(reply["error"]["name"], "CHECKPOINT_REQUIRED");
    reply
}

/// It was refused because it is never changed.
#[track_caller]
fn protected(answer: Answer, words: &str) {
    let reply = answer.failed(2, "F504");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains(words), "{message}");
}

#[test]
fn st_22_paths_that_lead_out_are_refused() {
    let (env, outside) = scene();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let absolute = env.root().join("outside/a.txt");
    let new = env.root().join("new.txt");
    let sibling = format!("{}-sibling", env.project().display());
    for target in [
        "../outside/a.txt",
        "src/../../outside/a.txt",
        "src/deep/../../../outside/a.txt",
        "../new.txt",
        "..",
        "/",
        "/etc/hostname",
        "/proc/self/environ",
        "/dev/null",
        absolute.to_str().unwrap(),
        new.to_str().unwrap(),
        sibling.as_str(),
    ] {
        for operation in [
            write(),
            json!({ "type": "delete", "recursive": true }),
            json!({ "type": "mkdir" }),
            json!({ "type": "symlink", "to": "x", "overwrite": true }),
            json!({ "type": "command", "argv": ["touch", "x"] }),
        ] {
            out_of_reach(mutate(&env, &id, target, &operation, &[]));
        }
    }
    // Both ends of a move.
    for to in ["../moved", "/tmp/moved", absolute.to_str().unwrap()] {
        let away = json!({ "type": "move", "to": to, "overwrite": true });
        out_of_reach(mutate(&env, &id, "src/a.txt", &away, &[]));
    }
    let here = json!({ "type": "move", "to": "src/taken.txt" });
    out_of_reach(mutate(&env, &id, "../outside/a.txt", &here, &[]));
    still.assert_untouched();
    outside.assert_untouched();
    assert!(!new.exists() && !Path::new("/tmp/moved").exists());
    assert_eq!(spent_by(&env, &id), None);
    // Paths that come back are fine, absolute ones inside too.
    mutate(&env, &id, "../project/src/a.txt", &write(), &[]).done();
    let id = checkpoint(&env, &[]);
    let inside = env.project().join("other.txt");
    mutate(&env, &id, inside.to_str().unwrap(), &write(), &[]).done();
    assert_eq!(fs::read_to_string(inside).unwrap(), "written\n");
}

#[test]
fn st_22_links_that_lead_out_are_refused() {
    let (env, outside) = scene();
    let top = env.project();
    symlink("../outside/a.txt", top.join("file")).unwrap();
    symlink(env.root().join("outside"), top.join("directory")).unwrap();
    symlink("../outside/new.txt", top.join("dangling")).unwrap();
    symlink("directory", top.join("twice")).unwrap();
    symlink("/proc/self/cwd", top.join("magic")).unwrap();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&top);
    let edit = json!({ "type": "edit", "changes": [{ "old": "theirs", "new": "x" }] });
    for target in [
        "file",
        "directory/a.txt",
        "directory/new.txt",
        "directory/new/deep.txt",
        "twice/deep/b.txt",
        "directory/../outside/a.txt",
    ] {
        out_of_reach(mutate(&env, &id, target, &edit, &[]));
        out_of_reach(mutate(&env, &id, target, &write(), &[]));
    }
    for target in ["dangling", "magic/a.txt"] {
        let answer = mutate(&env, &id, target, &write(), &[]);
        assert!(matches!(answer.code, 1 | 2 | 7), "{answer:?}");
    }
    let away = json!({ "type": "move", "to": "directory/a.txt", "overwrite": true });
    out_of_reach(mutate(&env, &id, "other.txt", &away, &[]));
    let patch = "--- a/directory/a.txt\n+++ b/directory/a.txt\n@@ -1 +1 @@\n-theirs\n+x\n";
    let patch = json!({ "type": "patch", "patch": patch });
    out_of_reach(mutate(&env, &id, ".", &patch, &[]));
    let command = json!({ "type": "command", "argv": ["touch", "x"] });
    out_of_reach(mutate(&env, &id, "directory", &command, &[]));
    still.assert_untouched();
    outside.assert_untouched();
    // The link itself is inside, and may go.
    let delete = json!({ "type": "delete", "recursive": true });
    mutate(&env, &id, "directory", &delete, &[]).done();
    assert!(!top.join("directory").is_symlink());
    outside.assert_untouched();
    assert_sound(&env);
}

#[test]
fn st_22_a_link_in_the_place_of_our_own_directories_leads_nowhere() {
    let (env, _) = scene();
    let top = env.project();
    let id = checkpoint(&env, &[]);
    env.write("outside/.staging/theirs", "theirs\n");
    env.write("outside/checkpoint-operations.log", "theirs\n");
    let outside = Still::of(&env.root().join("outside"));
    for own in [".checkpoints", ".audit"] {
        fs::remove_dir_all(top.join(own)).unwrap();
        symlink("../outside", top.join(own)).unwrap();
    }
    // It goes on without its manifest, and what needs the directory puts the link aside.
    env.json(&["checkpoint"]);
    outside.assert_untouched();
    mutate(&env, &id, "src/a.txt", &write(), &[]).done();
    outside.assert_untouched();
    env.json(&["rollback", &id]);
    outside.assert_untouched();
    assert!(top.join(".checkpoints").is_dir() && !top.join(".checkpoints").is_symlink());
    assert_sound(&env);
}

#[test]
fn st_22_links_inside_are_followed_and_stay_links() {
    let (env, _) = scene();
    let top = env.project();
    symlink("a.txt", top.join("src/link")).unwrap();
    symlink("src", top.join("short")).unwrap();
    let id = checkpoint(&env, &[]);
    let edit = json!({ "type": "edit", "changes": [{ "old": "a", "new": "A" }] });
    let reply = mutate(&env, &id, "short/link", &edit, &[]).done();
    assert_eq!(reply["changes"][0]["path"], "src/a.txt");
    assert_eq!(reply["target"], "short/link");
    assert_eq!(fs::read_to_string(top.join("src/a.txt")).unwrap(), "A\n");
    assert_eq!(
        fs::read_link(top.join("src/link")).unwrap(),
        Path::new("a.txt")
    );
    assert!(top.join("short").is_symlink());
}

#[test]
fn st_22_only_what_the_checkpoint_covers_is_changed() {
    let (env, _) = scene();
    let top = env.project();
    symlink("../other.txt", top.join("src/link")).unwrap();
    symlink("..", top.join("src/up")).unwrap();
    let id = checkpoint(&env, &["src"]);
    let still = Still::of(&top);
    for target in ["other.txt", "src/link", "src/up/other.txt", "new.txt", "."] {
        out_of_reach(mutate(&env, &id, target, &write(), &[]));
    }
    let away = json!({ "type": "move", "to": "other.txt", "overwrite": true });
    out_of_reach(mutate(&env, &id, "src/a.txt", &away, &[]));
    let taken = json!({ "type": "move", "to": "src/c.txt" });
    out_of_reach(mutate(&env, &id, "other.txt", &taken, &[]));
    let patch = "--- a/other.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-other\n+x\n";
    let patch = json!({ "type": "patch", "patch": patch });
    out_of_reach(mutate(&env, &id, ".", &patch, &[]));
    out_of_reach(mutate(&env, &id, "src/up", &patch, &[]));
    still.assert_untouched();
    // A new file below it is covered.
    mutate(&env, &id, "src/new/c.txt", &write(), &[]).done();
    let id = checkpoint(&env, &["*.txt"]);
    out_of_reach(mutate(&env, &id, "src/a.txt", &write(), &[]));
    mutate(&env, &id, "new.txt", &write(), &[]).done();
    // In a directory of which nothing is covered yet, which stays as it is otherwise.
    fs::set_permissions(top.join("src/deep"), fs::Permissions::from_mode(0o710)).unwrap();
    env.write("project/src/main.rs", "\n");
    let id = checkpoint(&env, &["src/**/*.rs"]);
    mutate(&env, &id, "src/deep/new.rs", &write(), &[]).done();
    assert!(top.join("src/deep/new.rs").exists());
    let found = fs::metadata(top.join("src/deep")).unwrap();
    assert_eq!(found.permissions().mode() & 0o7777, 0o710);
    let content = fs::read_to_string(top.join("src/deep/b.txt")).unwrap();
    assert_eq!(content, "b\n");
    // From a directory further in, names are meant as they are typed there.
    let id = checkpoint(&env, &["src"]);
    let here = top.join("src/deep");
    let operation = write().to_string();
    let arguments = ["mutate", "../a.txt", "--checkpoint", &id, "--operation"];
    let mut command = env.command(&[&arguments[..], &[&operation]].concat());
    let output = command.current_dir(here).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        fs::read_to_string(top.join("src/a.txt")).unwrap(),
        "written\n"
    );
}

#[test]
fn st_22_a_command_outside_the_scope_is_refused() {
    let (env, _) = scene();
    let id = checkpoint(&env, &["src"]);
    let still = Still::of(&env.project());
    let command = json!({ "type": "command", "argv": ["touch", "x"] });
    out_of_reach(mutate(&env, &id, ".", &command, &[]));
    still.assert_untouched();
    mutate(&env, &id, "src", &command, &[]).done();
    assert!(env.project().join("src/x").exists());
}

#[test]
fn st_08_what_no_checkpoint_holds_is_not_changed() {
    let (env, _) = scene();
    env.write("project/.env", "TOKEN=secret\n");
    env.write("project/src/keys/id_rsa", "private\n");
    env.write("project/src/node_modules/m/index.js", "m\n");
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    for target in [".env", ".env.local", "src/keys/id_rsa", "src/../.env"] {
        protected(mutate(&env, &id, target, &write(), &[]), "it is sensitive");
    }
    let all = json!({ "type": "delete", "recursive": true });
    protected(mutate(&env, &id, "src/keys", &all, &[]), "src/keys/id_rsa");
    let away = json!({ "type": "move", "to": "elsewhere" });
    protected(mutate(&env, &id, "src", &away, &[]), "src/keys/id_rsa");
    let to = json!({ "type": "move", "to": ".env" });
    protected(mutate(&env, &id, "other.txt", &to, &[]), "it is sensitive");
    let patch = "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-TOKEN=secret\n+TOKEN=x\n";
    let patch = json!({ "type": "patch", "patch": patch });
    protected(mutate(&env, &id, ".", &patch, &[]), "it is sensitive");
    let cached = "src/node_modules/m/index.js";
    protected(
        mutate(&env, &id, cached, &write(), &[]),
        "no checkpoint holds it",
    );
    for own in [".checkpoints/x", ".audit/checkpoint-operations.log"] {
        protected(mutate(&env, &id, own, &write(), &[]), "Safepoint's own");
    }
    still.assert_untouched();
    assert_eq!(spent_by(&env, &id), None);
    // That there is a secret somewhere hinders nothing that is not done to it.
    let patch = "--- a/other.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-other\n+x\n";
    let patch = json!({ "type": "patch", "patch": patch });
    mutate(&env, &id, ".", &patch, &[]).done();
    let id = checkpoint(&env, &[]);
    let command = json!({ "type": "command", "argv": ["touch", "made"] });
    mutate(&env, &id, ".", &command, &[]).done();
    let id = checkpoint(&env, &[]);
    let chmod = json!({ "type": "chmod", "mode": "0700" });
    mutate(&env, &id, "src/keys", &chmod, &[]).done();
    assert_sound(&env);
}

#[test]
fn st_22_what_belongs_to_git_is_changed_by_git_alone() {
    let (env, _) = scene();
    let top = env.project();
    git(&top, &["init", "-q", "-b", "main"]);
    fs::create_dir(top.join("nested")).unwrap();
    git(&top.join("nested"), &["init", "-q"]);
    env.write("project/nested/file.txt", "n\n");
    let id = checkpoint(&env, &[]);
    let still = Still::of(&top);
    let hook = ".git/hooks/post-checkout";
    protected(mutate(&env, &id, hook, &write(), &[]), "it belongs to git");
    let head = "nested/.git/HEAD";
    protected(mutate(&env, &id, head, &write(), &[]), "it belongs to git");
    let all = json!({ "type": "delete", "recursive": true });
    protected(mutate(&env, &id, ".git", &all, &[]), "it belongs to git");
    protected(mutate(&env, &id, "nested", &all, &[]), "nested/.git");
    let away = json!({ "type": "move", "to": "elsewhere" });
    protected(mutate(&env, &id, "nested", &away, &[]), "nested/.git");
    still.assert_untouched();
    assert!(!top.join(hook).exists() && top.join(head).exists());
    // Files of a repository are files, and git itself may be the command.
    let edit = json!({ "type": "write", "content": "N\n" });
    let reply = mutate(&env, &id, "nested/file.txt", &edit, &[]).done();
    // The stash entry of the checkpoint itself is nothing that happened since.
    assert_eq!(reply["before_checkpoint_id"], id.as_str());
    let id = checkpoint(&env, &[]);
    let commit = [
        "git",
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "first",
    ];
    let command = json!({ "type": "command", "argv": commit });
    let reply = mutate(&env, &id, ".", &command, &[]).done();
    assert_eq!(git(&top, &["log", "--format=%s"]), "first\n");
    let undo = text(&reply["rollback_command"]);
    paste(&env, &undo);
    let head = testkit::tree::git_command(&top, &["rev-parse", "-q", "--verify", "HEAD"]);
    assert!(!{ head }.output().unwrap().status.success());
}

/// A file system in which case does not matter, for as long as this is there. Its
/// directories list every name in lower case.
struct CaseInsensitive {
    place: PathBuf,
}

impl CaseInsensitive {
    /// Mounts a new one.
    #[track_caller]
    fn at(place: &Path, image: &Path) -> Self {
        fs::File::create(image).unwrap().set_len(8 << 20).unwrap();
        let image = image.to_str().unwrap();
        let options = "ignore_case,permissions";
        let at = place.to_str().unwrap();
        for line in [
            &["/usr/sbin/mkntfs", "-q", "-F", "-f", image][..],
            &["/usr/bin/lowntfs-3g", "-o", options, image, at],
        ] {
            let output = Command::new(line[0]).args(&line[1..]).output();
            let output = output.unwrap_or_else(|error| panic!("{line:?}: {error}; see `./test`"));
            assert!(output.status.success(), "{line:?}: {output:?}");
        }
        Self {
            place: place.to_owned(),
        }
    }
}

impl Drop for CaseInsensitive {
    fn drop(&mut self) {
        let left = Command::new("umount").arg("-l").arg(&self.place).status();
        let left = left.is_ok_and(|status| status.success());
        assert!(left || std::thread::panicking(), "still mounted");
    }
}

#[test]
fn st_22_case_leads_nowhere_where_it_does_not_matter() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root may mount a file system in which case does not matter");
        return;
    }
    let env = env();
    let top = env.project();
    let _mounted = CaseInsensitive::at(&top, &env.root().join("image"));
    env.write("project/src/deep/b.txt", "b\n");
    env.write("project/other.txt", "other\n");
    env.write("project/.env", "TOKEN=secret\n");
    assert!(top.join("SRC/Deep/B.TXT").exists(), "case matters");
    git(&top, &["init", "-q", "-b", "main"]);
    // Outside the scope by any spelling.
    let id = checkpoint(&env, &["src"]);
    for target in ["OTHER.txt", "Src/../Other.TXT", "NEW.txt"] {
        out_of_reach(mutate(&env, &id, target, &write(), &[]));
    }
    let away = json!({ "type": "move", "to": "Other.txt", "overwrite": true });
    out_of_reach(mutate(&env, &id, "SRC/deep/b.txt", &away, &[]));
    // Inside it by any spelling, and known by the one that is written.
    let path = |reply: &Value| text(&reply["changes"][0]["path"]);
    let reply = mutate(&env, &id, "SRC/Deep/B.TXT", &write(), &[]).done();
    assert_eq!(path(&reply), "src/deep/b.txt");
    let read = || fs::read_to_string(top.join("src/deep/b.txt")).unwrap();
    assert_eq!(read(), "written\n");
    paste(&env, &text(&reply["rollback_command"]));
    assert_eq!(read(), "b\n");
    let id = checkpoint(&env, &["src"]);
    let reply = mutate(&env, &id, "Src/DEEP/new.txt", &write(), &["--strict"]).done();
    assert_eq!(path(&reply), "src/deep/new.txt");
    let id = checkpoint(&env, &["src"]);
    let reply = mutate(
        &env,
        &id,
        "SRC/DEEP",
        &json!({ "type": "delete", "recursive": true }),
        &[],
    );
    reply.done();
    assert!(!top.join("src/deep").exists());
    // What is never changed is not changed by another spelling.
    let id = checkpoint(&env, &[]);
    let content = |name: &str| fs::read(top.join(name)).unwrap();
    let before = (content(".env"), content(".git/HEAD"));
    for (target, words) in [
        (".ENV", "it is sensitive"),
        (".Git/HEAD", "it belongs to git"),
        (".GIT/Hooks/post-checkout", "it belongs to git"),
        (".CHECKPOINTS/x", "Safepoint's own"),
        (".Audit/checkpoint-operations.log", "Safepoint's own"),
    ] {
        protected(mutate(&env, &id, target, &write(), &[]), words);
    }
    assert_eq!(before, (content(".env"), content(".git/HEAD")));
    assert!(!top.join(".git/hooks/post-checkout").exists());
    assert_sound(&env);
}

#[test]
fn st_22_where_case_matters_two_spellings_are_two_files() {
    let env = env();
    let top = env.project();
    env.write("project/name.txt", "one file\n");
    fs::hard_link(top.join("name.txt"), top.join("NAME.TXT")).unwrap();
    env.write("project/Ä.txt", "upper\n");
    env.write("project/ä.txt", "lower\n");
    let read = |name: &str| fs::read_to_string(top.join(name)).unwrap();
    for (target, other) in [("NAME.TXT", "name.txt"), ("ä.txt", "Ä.txt")] {
        let before = read(other);
        let id = checkpoint(&env, &[target]);
        out_of_reach(mutate(&env, &id, other, &write(), &[]));
        let reply = mutate(&env, &id, target, &json!({ "type": "delete" }), &[]).done();
        assert_eq!(reply["changes"][0]["path"], target);
        assert!(!top.join(target).exists());
        assert_eq!(read(other), before);
    }
}

/// How often the race is run.
fn rounds() -> usize {
    let given = std::env::var("SAFEPOINT_ROUNDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(15)
}

/// Somebody exchanges a directory in the workspace for a link to one outside, over and
/// over, while a change below it is made.
#[test]
fn st_22_a_parent_that_becomes_a_link_in_mid_flight_leads_nowhere() {
    let (env, outside) = scene();
    let top = env.project();
    let operations = [
        ("swap/deep/b.txt", write()),
        ("swap/deep/new.txt", write()),
        ("swap/new/deep.txt", write()),
        ("swap/deep/b.txt", json!({ "type": "delete" })),
        ("swap/deep", json!({ "type": "delete", "recursive": true })),
        (
            "swap/deep/b.txt",
            json!({ "type": "chmod", "mode": "0600" }),
        ),
        (
            "swap/deep/b.txt",
            json!({ "type": "move", "to": "swap/deep/c.txt" }),
        ),
    ];
    let (done, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for round in 0..rounds() {
        for name in ["swap", "swap-link"] {
            // A link is removed as a link.
            let _ = fs::remove_dir_all(top.join(name));
        }
        env.write("project/swap/deep/b.txt", "ours\n");
        env.write("project/swap/a.txt", "ours\n");
        let (target, operation) = &operations[round % operations.len()];
        // With a scope of its own the directories above keep their metadata, by another way.
        let scope: &[&str] = [&[][..], &["swap/deep"], &["swap/deep/b.txt"]][round % 3];
        let id = checkpoint(&env, scope);
        let stop = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let swapping = threads.spawn(|| swap(&top, &env.root().join("outside"), round, &stop));
            let operation = operation.to_string();
            let arguments = [
                "--checkpoint",
                id.as_str(),
                target,
                "--operation",
                &operation,
            ];
            let answer = run(&env, &arguments);
            stop.store(true, Ordering::Relaxed);
            swapping.join().unwrap();
            match answer.code {
                0 => done.fetch_add(1, Ordering::Relaxed),
                _ => refused.fetch_add(1, Ordering::Relaxed),
            };
        });
        outside.assert_untouched();
        assert_eq!(env.run(&["list"]).code, 0);
        outside.assert_untouched();
        assert_sound(&env);
    }
    eprintln!("{done:?} done, {refused:?} refused");
}

/// Exchanges `swap` for a link and back until it is told to stop; the directory stays last.
fn swap(top: &Path, outside: &Path, seed: usize, stop: &AtomicBool) {
    let (real, link): (PathBuf, PathBuf) = (top.join("swap"), top.join("swap-link"));
    let exchange = || {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let _ = renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE);
    };
    symlink(outside, &link).unwrap();
    // Mostly the directory is there, so that the change gets so far; for how long the
    // link is, and when, is different each time.
    for turn in 0_usize.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let pause = match turn % 2 {
            0 => 37 * (turn + seed) % 4001,
            _ => 13 * (turn + seed) % 101,
        };
        for _ in 0..pause {
            std::thread::yield_now();
        }
        exchange();
    }
    if real.is_symlink() {
        exchange();
    }
}
