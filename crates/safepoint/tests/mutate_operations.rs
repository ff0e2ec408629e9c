//! Every operation on files: what it does, and that it does nothing where it
//! does not fit.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/mutation.rs"]
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use support::{Still, assert_sound, batch, checkpoint, env, mutate, spent_by, text};
use testkit::TestEnv;

/// A workspace with some of everything.
fn everything() -> TestEnv {
    let env = env();
    let top = env.project();
    env.write("project/src/a.txt", "one\ntwo\nthree\ntwo\n");
    env.write("project/src/deep/b.txt", "b\n");
    env.write("project/read-only.txt", "fixed\n");
    mode(&top.join("read-only.txt"), 0o444);
    fs::write(top.join("binary"), b"two\0\xff\xfe").unwrap();
    fs::create_dir(top.join("empty")).unwrap();
    symlink("src/a.txt", top.join("link")).unwrap();
    symlink("src", top.join("linked")).unwrap();
    env
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn read(env: &TestEnv, path: &str) -> String {
    fs::read_to_string(env.project().join(path)).unwrap()
}

/// Does it under a new checkpoint, and expects success.
#[track_caller]
fn done(env: &TestEnv, target: &str, operation: &Value) -> Value {
    let id = checkpoint(env, &[]);
    let reply = mutate(env, &id, target, operation, &[]).done();
    assert_eq!(reply["side_effects"], json!([]), "{reply}");
    reply
}

/// Does it under a new checkpoint, and expects that it does not fit, with these words.
#[track_caller]
fn unfitting(env: &TestEnv, target: &str, operation: &Value, words: &str) {
    let id = checkpoint(env, &[]);
    let still = Still::of(&env.project());
    let reply = mutate(env, &id, target, operation, &[]).failed(1, "F511");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains(words), "{message}");
    let suggestion = text(&reply["error"]["suggestion"]);
    assert!(
        suggestion.starts_with("nothing was changed"),
        "{suggestion}"
    );
    still.assert_untouched();
    assert_eq!(spent_by(env, &id), None);
}

#[test]
fn st_23_edit_replaces_what_is_there() {
    let env = everything();
    let edit = |changes: Value| json!({ "type": "edit", "changes": changes });
    let by_line = edit(json!([{ "line": 4, "old": "two", "new": "TWO" }]));
    let reply = done(&env, "src/a.txt", &by_line);
    assert_eq!(read(&env, "src/a.txt"), "one\ntwo\nthree\nTWO\n");
    assert_eq!(reply["evidence_anchors"][0], "src/a.txt:4");
    done(
        &env,
        "src/a.txt",
        &edit(json!([{ "old": "two", "new": "2" }])),
    );
    assert_eq!(read(&env, "src/a.txt"), "one\n2\nthree\nTWO\n");
    let several = edit(json!([
        { "line": 1, "old": "one\n2", "new": "1" },
        { "old": "TWO", "new": "" },
    ]));
    done(&env, "src/a.txt", &several);
    assert_eq!(read(&env, "src/a.txt"), "1\nthree\n\n");
    let all = edit(json!([{ "old": "e", "new": "E", "all": true }]));
    done(&env, "src/a.txt", &all);
    assert_eq!(read(&env, "src/a.txt"), "1\nthrEE\n\n");
    assert_sound(&env);
}

#[test]
fn st_23_edit_that_does_not_fit_changes_nothing() {
    let env = everything();
    let edit = |old: &str| json!({ "type": "edit", "changes": [{ "old": old, "new": "x" }] });
    unfitting(&env, "src/a.txt", &edit("zwei"), "does not occur");
    unfitting(&env, "src/a.txt", &edit("two"), "occurs 2 times");
    unfitting(&env, "src/missing.txt", &edit("two"), "it is not there");
    unfitting(&env, "src/a.txt/b", &edit("two"), "it is not there");
    unfitting(&env, "src", &edit("two"), "it is a directory");
    unfitting(&env, ".", &edit("two"), "it is the workspace itself");
    unfitting(&env, "binary", &edit("two"), "binary");
    unfitting(&env, "read-only.txt", &edit("fixed"), "it is read-only");
    let line = json!({ "type": "edit", "changes": [{ "line": 9, "old": "two", "new": "x" }] });
    unfitting(&env, "src/a.txt", &line, "there is no line 9");
    let line = json!({ "type": "edit", "changes": [{ "line": 1, "old": "two", "new": "x" }] });
    unfitting(&env, "src/a.txt", &line, "does not occur in line 1");
    let pipe = env.project().join("pipe");
    let kind = rustix::fs::FileType::Fifo;
    let permissions = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, permissions, 0).unwrap();
    unfitting(&env, "pipe", &edit("two"), "it is no regular file");
}

#[test]
fn st_23_write_makes_and_replaces_files() {
    let env = everything();
    let write = |content: &str| json!({ "type": "write", "content": content });
    done(&env, "src/a.txt", &write("new\n"));
    assert_eq!(read(&env, "src/a.txt"), "new\n");
    let reply = done(&env, "some/where/else.txt", &write("made\n"));
    assert_eq!(read(&env, "some/where/else.txt"), "made\n");
    assert_eq!(reply["previous_state"]["snapshot"], Value::Null);
    assert_eq!(reply["new_state"]["snapshot"], "made\n");
    done(&env, "nothing", &write(""));
    assert_eq!(read(&env, "nothing"), "");
    let bytes = json!({ "type": "write", "base64": "AP/+AQ==", "mode": "0751" });
    let reply = done(&env, "bytes", &bytes);
    let path = env.project().join("bytes");
    assert_eq!(fs::read(&path).unwrap(), b"\0\xff\xfe\x01");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    assert_eq!(reply["new_state"]["snapshot"]["size"], 4);
    assert_eq!(reply["diff"]["type"], "summary");
    let with_mode = json!({ "type": "write", "content": "x", "mode": "600" });
    done(&env, "src/a.txt", &with_mode);
    let found = fs::metadata(env.project().join("src/a.txt")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o600);
    // A link is followed, and stays one.
    done(&env, "link", &write("through\n"));
    assert_eq!(read(&env, "src/a.txt"), "through\n");
    assert!(env.project().join("link").is_symlink());
    done(&env, "linked/new.txt", &write("n\n"));
    assert_eq!(read(&env, "src/new.txt"), "n\n");
    assert_sound(&env);
}

#[test]
fn st_23_write_that_does_not_fit_changes_nothing() {
    let env = everything();
    let write = json!({ "type": "write", "content": "x" });
    unfitting(&env, "src", &write, "it is a directory");
    unfitting(&env, ".", &write, "it is the workspace itself");
    unfitting(&env, "read-only.txt", &write, "it is read-only");
    unfitting(
        &env,
        "src/a.txt/below",
        &write,
        "`src/a.txt` is no directory",
    );
    unfitting(&env, "src/a.txt/b/c", &write, "`src/a.txt` is no directory");
}

#[test]
fn st_23_names_are_neither_made_nor_deleted_in_a_read_only_directory() {
    let env = everything();
    let top = env.project();
    mode(&top.join("src/deep"), 0o555);
    let write = json!({ "type": "write", "content": "x\n" });
    let to = |to: &str| json!({ "type": "move", "to": to });
    let why = "`src/deep` is read-only";
    unfitting(&env, "src/deep/new", &write, why);
    unfitting(&env, "src/deep/b.txt", &json!({ "type": "delete" }), why);
    unfitting(&env, "src/deep/b.txt", &to("elsewhere"), why);
    unfitting(&env, "binary", &to("src/deep/binary"), why);
    unfitting(&env, "src/deep/x", &json!({ "type": "mkdir" }), why);
    unfitting(
        &env,
        "src/deep/x",
        &json!({ "type": "symlink", "to": "y" }),
        why,
    );
    // A file in it is another matter.
    done(&env, "src/deep/b.txt", &write);
    let found = fs::metadata(top.join("src/deep")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o555);
    let id = checkpoint(&env, &[]);
    let opened = json!([
        { "target": "src/deep", "type": "chmod", "mode": "0755" },
        { "target": "src/deep/new", "type": "write", "content": "x\n" },
    ]);
    batch(&env, &id, &opened, &[]).done();
    assert_eq!(read(&env, "src/deep/new"), "x\n");
}

#[test]
fn st_23_append_adds_to_the_end() {
    let env = everything();
    let append = json!({ "type": "append", "content": "four" });
    done(&env, "src/deep/b.txt", &append);
    assert_eq!(read(&env, "src/deep/b.txt"), "b\nfour");
    let bytes = json!({ "type": "append", "base64": "/w==" });
    done(&env, "binary", &bytes);
    let found = fs::read(env.project().join("binary")).unwrap();
    assert_eq!(found, b"two\0\xff\xfe\xff");
    done(&env, "log/new.log", &append);
    assert_eq!(read(&env, "log/new.log"), "four");
    unfitting(&env, "src", &append, "it is a directory");
    unfitting(&env, "read-only.txt", &append, "it is read-only");
}

#[test]
fn st_23_delete_removes_files_links_and_directories() {
    let env = everything();
    let top = env.project();
    let (delete, all) = (
        json!({ "type": "delete" }),
        json!({ "type": "delete", "recursive": true }),
    );
    unfitting(&env, "missing", &delete, "it is not there");
    unfitting(
        &env,
        "src",
        &delete,
        "it is a directory with something in it",
    );
    unfitting(&env, ".", &all, "it is the workspace itself");
    done(&env, "link", &delete);
    assert!(!top.join("link").is_symlink() && top.join("src/a.txt").exists());
    done(&env, "linked", &all);
    assert!(!top.join("linked").is_symlink() && top.join("src/a.txt").exists());
    done(&env, "empty", &delete);
    assert!(!top.join("empty").exists());
    done(&env, "read-only.txt", &delete);
    let reply = done(&env, "src", &all);
    assert!(!top.join("src").exists());
    assert_eq!(reply["new_state"]["snapshot"], Value::Null);
    assert_eq!(reply["previous_state"]["snapshot"]["files"], 2);
    assert_eq!(reply["changes"].as_array().unwrap().len(), 4, "{reply}");
    assert_sound(&env);
}

#[test]
fn st_23_move_gives_another_path() {
    let env = everything();
    let top = env.project();
    let to = |to: &str| json!({ "type": "move", "to": to });
    mode(&top.join("src/a.txt"), 0o640);
    done(&env, "src/a.txt", &to("far/away/c.txt"));
    assert_eq!(read(&env, "far/away/c.txt"), "one\ntwo\nthree\ntwo\n");
    let found = fs::metadata(top.join("far/away/c.txt")).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o640);
    assert!(!top.join("src/a.txt").exists());
    done(&env, "src", &to("moved"));
    assert_eq!(read(&env, "moved/deep/b.txt"), "b\n");
    assert!(!top.join("src").exists());
    done(&env, "link", &to("renamed"));
    let target = fs::read_link(top.join("renamed")).unwrap();
    assert_eq!(target, Path::new("src/a.txt"));
    unfitting(
        &env,
        "moved/deep/b.txt",
        &to("far/away/c.txt"),
        "it is there",
    );
    let over = json!({ "type": "move", "to": "far/away/c.txt", "overwrite": true });
    done(&env, "moved/deep/b.txt", &over);
    assert_eq!(read(&env, "far/away/c.txt"), "b\n");
    unfitting(&env, "missing", &to("x"), "it is not there");
    unfitting(&env, "moved", &to("moved/inside"), "into itself");
    unfitting(&env, "binary", &to("moved"), "a directory is there already");
    let over = json!({ "type": "move", "to": "moved", "overwrite": true });
    unfitting(&env, "binary", &over, "a directory is there already");
    unfitting(&env, "binary", &to("renamed"), "it is there already");
    unfitting(&env, "binary", &to("."), "it is the workspace itself");
    unfitting(
        &env,
        "moved/deep",
        &to("binary/x"),
        "`binary` is no directory",
    );
    assert_sound(&env);
}

#[test]
fn st_23_mkdir_chmod_and_symlink() {
    let env = everything();
    let top = env.project();
    let mode_of = |path: &str| fs::metadata(top.join(path)).unwrap().mode() & 0o7777;
    done(&env, "x/y/z", &json!({ "type": "mkdir", "mode": "0750" }));
    assert_eq!(mode_of("x/y/z"), 0o750);
    unfitting(
        &env,
        "x/y",
        &json!({ "type": "mkdir" }),
        "it is there already",
    );
    unfitting(
        &env,
        "src/a.txt",
        &json!({ "type": "mkdir" }),
        "it is there",
    );
    let below = json!({ "type": "mkdir" });
    unfitting(&env, "src/a.txt/x", &below, "`src/a.txt` is no directory");

    let chmod = |mode: &str| json!({ "type": "chmod", "mode": mode });
    let reply = done(&env, "src/a.txt", &chmod("0755"));
    assert_eq!(mode_of("src/a.txt"), 0o755);
    assert_eq!(reply["changes"][0]["change"], "metadata");
    done(&env, "src", &chmod("2770"));
    assert_eq!(mode_of("src"), 0o2770);
    done(&env, "link", &chmod("0o600"));
    assert_eq!(mode_of("src/a.txt"), 0o600);
    unfitting(&env, "missing", &chmod("0755"), "it is not there");
    // What is read-only can be made writable and changed at once.
    let id = checkpoint(&env, &[]);
    let both = json!([
        { "target": "read-only.txt", "type": "chmod", "mode": "0644" },
        { "target": "read-only.txt", "type": "write", "content": "loose\n" },
    ]);
    batch(&env, &id, &both, &[]).done();
    assert_eq!(read(&env, "read-only.txt"), "loose\n");

    let link = |to: &str| json!({ "type": "symlink", "to": to });
    done(&env, "new/link", &link("../binary"));
    assert_eq!(
        fs::read(top.join("new/link")).unwrap(),
        fs::read(top.join("binary")).unwrap()
    );
    done(&env, "dangling", &link("nowhere at all"));
    assert!(top.join("dangling").is_symlink());
    unfitting(&env, "link", &link("binary"), "it is there already");
    unfitting(&env, "src", &link("binary"), "a directory is there already");
    let over = json!({ "type": "symlink", "to": "binary", "overwrite": true });
    done(&env, "link", &over);
    assert_eq!(
        fs::read_link(top.join("link")).unwrap(),
        Path::new("binary")
    );
    done(&env, "src/deep/b.txt", &over);
    assert!(top.join("src/deep/b.txt").is_symlink());
    unfitting(&env, "src/deep", &over, "a directory is there already");
    unfitting(&env, "z", &link(""), "somewhere to point");
    assert_sound(&env);
}

#[test]
fn st_23_a_patch_of_one_file_and_of_several() {
    let env = everything();
    let patch = |text: &str| json!({ "type": "patch", "patch": text });
    let one = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n";
    done(&env, "src/a.txt", &patch(one));
    assert_eq!(read(&env, "src/a.txt"), "1\ntwo\nthree\ntwo\n");
    unfitting(&env, "src/a.txt", &patch(one), "applied already");
    let bare = "@@ -1 +1 @@\n-b\n+B\n";
    done(&env, "src/deep/b.txt", &patch(bare));
    assert_eq!(read(&env, "src/deep/b.txt"), "B\n");
    unfitting(&env, ".", &patch(bare), "names no file");
    let several = "diff --git a/src/a.txt b/src/a.txt\n--- a/src/a.txt\n+++ b/src/a.txt\n\
        @@ -4 +4,2 @@\n two\n+five\n\
        diff --git a/made b/made\nnew file mode 100755\n--- /dev/null\n+++ b/made\n\
        @@ -0,0 +1 @@\n+made\n\
        diff --git a/read-only.txt b/read-only.txt\ndeleted file mode 100444\n\
        --- a/read-only.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-fixed\n";
    // It would change a read-only file only by taking it away.
    mode(&env.project().join("read-only.txt"), 0o644);
    done(&env, ".", &patch(several));
    assert_eq!(read(&env, "src/a.txt"), "1\ntwo\nthree\ntwo\nfive\n");
    assert_eq!(read(&env, "made"), "made\n");
    let found = fs::metadata(env.project().join("made")).unwrap();
    assert_eq!(found.mode() & 0o777, 0o755);
    assert!(!env.project().join("read-only.txt").exists());
    let renamed = "diff --git a/made b/renamed\nsimilarity index 100%\n\
        rename from made\nrename to renamed\n";
    done(&env, ".", &patch(renamed));
    assert_eq!(read(&env, "renamed"), "made\n");
    assert!(!env.project().join("made").exists());
    // Below a directory names are relative to it.
    let below = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-B\n+b\n";
    done(&env, "src/deep", &patch(below));
    assert_eq!(read(&env, "src/deep/b.txt"), "b\n");
    assert_sound(&env);
}

#[test]
fn st_23_a_patch_that_does_not_fit_changes_nothing() {
    let env = everything();
    let patch = |text: &str| json!({ "type": "patch", "patch": text });
    unfitting(&env, "src/a.txt", &patch("no patch"), "cannot be read");
    let wrong = "@@ -1 +1 @@\n-uno\n+1\n";
    unfitting(&env, "src/a.txt", &patch(wrong), "does not apply");
    unfitting(&env, "missing", &patch(wrong), "it is not there");
    unfitting(&env, "binary", &patch(wrong), "does not apply");
    let halves = "--- a/src/deep/b.txt\n+++ b/src/deep/b.txt\n@@ -1 +1 @@\n-b\n+B\n\
        --- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-uno\n+1\n";
    unfitting(&env, ".", &patch(halves), "does not apply");
    unfitting(&env, "src/a.txt", &patch(halves), "of several files");
    let locked = "--- a/read-only.txt\n+++ b/read-only.txt\n@@ -1 +1 @@\n-fixed\n+loose\n";
    unfitting(&env, ".", &patch(locked), "it is read-only");
    // Names that lead out are refused, whatever they would do there.
    let id = checkpoint(&env, &[]);
    env.write("outside.txt", "outside\n");
    for name in ["../outside.txt", "src/../../outside.txt", "/etc/hostname"] {
        let text = format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-outside\n+x\n");
        let bare = format!("--- {name}\n+++ {name}\n@@ -1 +1 @@\n-outside\n+x\n");
        for text in [text, bare] {
            let still = Still::of(&env.project());
            let answer = mutate(&env, &id, ".", &patch(&text), &[]);
            assert_ne!(answer.code, 0, "{answer:?}");
            still.assert_untouched();
        }
    }
    let outside = fs::read_to_string(env.root().join("outside.txt")).unwrap();
    assert_eq!(outside, "outside\n");
}

#[test]
fn st_23_a_command_is_run_and_what_it_changed_is_found() {
    let env = everything();
    let command = |argv: &[&str]| json!({ "type": "command", "argv": argv });
    let line =
        "echo said; pwd; cat; echo \"$COLOUR\"; rm src/a.txt; echo n > new; chmod 600 binary";
    let operation = json!({
        "type": "command",
        "argv": ["sh", "-c", line],
        "stdin": "read\n",
        "env": { "COLOUR": "blue" },
    });
    let reply = done(&env, ".", &operation);
    let output = format!("said\n{}\nread\nblue\n", env.project().display());
    assert_eq!(reply["output"], output.as_str());
    let changed: Vec<String> = reply["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {}", it["change"], it["path"]).replace('"', ""))
        .collect();
    assert_eq!(
        changed,
        ["metadata binary", "created new", "deleted src/a.txt"]
    );
    // There is no shell: a name is a name.
    let reply = done(&env, "src", &command(&["touch", "$(id)", "a b"]));
    assert_eq!(reply["changes"][0]["path"], "src/$(id)");
    assert!(env.project().join("src/a b").exists());
    // Beside its target it changes something by accident.
    let id = checkpoint(&env, &[]);
    let reply = mutate(&env, &id, "src", &command(&["touch", "../beside"]), &[]).done();
    assert_eq!(reply["side_effects"], json!(["beside"]));
    assert_sound(&env);
}

#[test]
fn st_23_a_command_that_fails_is_taken_back() {
    let env = everything();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let failed = (1, "F514");
    let cases: &[(&[&str], &str, (i32, &str))] = &[
        (
            &["sh", "-c", "echo x > src/a.txt; echo why >&2; exit 3"],
            "exit status: 3: why",
            failed,
        ),
        (&["sh", "-c", "rm -r src; kill -9 $$"], "signal: 9", failed),
        (&["no-such-program-anywhere"], "No such file", failed),
        (
            &["sh", "-c", "echo x > new; sleep 100"],
            "it took too long",
            (3, "H302"),
        ),
    ];
    for (argv, why, (exit, code)) in cases {
        let operation = json!({ "type": "command", "argv": argv, "timeout": "300ms" });
        let reply = mutate(&env, &id, ".", &operation, &[]).failed(*exit, code);
        let message = text(&reply["error"]["message"]);
        assert!(message.contains(why), "{message}");
        still.assert_back();
    }
    assert_eq!(spent_by(&env, &id), None);
    assert_sound(&env);
}

#[test]
fn st_23_a_batch_mixes_files_and_commands() {
    let env = everything();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let steps = |last: &str| {
        json!([
            { "target": "src/a.txt", "type": "write", "content": "b\na\n" },
            { "target": "src", "type": "command", "argv": ["sort", "-o", "a.txt", "a.txt"] },
            { "target": "src/a.txt", "type": "edit", "changes": [{ "line": 1, "old": "a", "new": last }] },
            { "target": "src/a.txt", "type": "edit", "changes": [{ "line": 1, "old": "c", "new": "d" }] },
        ])
    };
    // The last one shows only when the command has been run.
    let answer = batch(&env, &id, &steps("x"), &[]);
    answer.failed(1, "F511");
    still.assert_back();
    assert_eq!(spent_by(&env, &id), None);
    let reply = batch(&env, &id, &steps("c"), &[]).done();
    assert_eq!(read(&env, "src/a.txt"), "d\nb\n");
    assert_eq!(reply["side_effects"], json!([]));
    assert_eq!(reply["before_checkpoint_id"], id.as_str());
    assert_sound(&env);
}
