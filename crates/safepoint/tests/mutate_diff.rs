//! What a change says of itself is exact: its diff makes the tree after out of
//! the tree before, and its roll back command brings the tree before back.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/mutation.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::{assert_sound, batch, checkpoint, env, mutate, paste, text};
use testkit::TestEnv;
use testkit::tree::{Tree, assert_same, look};

/// The files and links below a directory, with modes and contents.
fn files(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let tree = look(top).into_iter();
    let is_directory = |mode: u32| mode & 0o170_000 == 0o040_000;
    let files = tree.filter(|(_, seen)| !is_directory(seen.mode));
    files
        .map(|(path, seen)| (path, (seen.mode, seen.content)))
        .collect()
}

/// Everything but the times of directories, which move with whatever happens in them.
fn contents(top: &Path) -> Tree {
    let mut tree = look(top);
    for seen in tree.values_mut() {
        if seen.mode & 0o170_000 == 0o040_000 {
            seen.modified = 0;
        }
    }
    tree
}

/// Makes the change, applies its diff to a copy of the tree before with `patch`, and
/// expects the tree after.
#[track_caller]
fn applies(env: &TestEnv, operations: &Value) -> Value {
    let id = checkpoint(env, &[]);
    let copy = env.root().join("copy");
    let _ = fs::remove_dir_all(&copy);
    let run = |program: &str, arguments: &[&str], directory: &Path| {
        let mut command = Command::new(program);
        let output = command.args(arguments).current_dir(directory).output();
        let output = output.unwrap();
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {output:?}"
        );
    };
    run("cp", &["-a", "project", "copy"], env.root());
    for own in [".checkpoints", ".audit"] {
        let _ = fs::remove_dir_all(copy.join(own));
    }
    let reply = batch(env, &id, operations, &[]).done();
    assert_eq!(reply["diff"]["type"], "unified", "{reply}");
    fs::write(env.root().join("diff"), text(&reply["diff"]["content"])).unwrap();
    assert_ne!(files(&copy), files(&env.project()), "{reply}");
    let arguments = ["-p1", "--batch", "--no-backup-if-mismatch", "-i", "../diff"];
    run("patch", &arguments, &copy);
    assert_eq!(files(&copy), files(&env.project()), "{reply}");
    reply
}

fn write(target: &str, content: &str) -> Value {
    json!({ "target": target, "type": "write", "content": content })
}

#[test]
fn st_24_a_unified_diff_applies_with_patch() {
    let env = env();
    env.write("project/a.txt", "one\ntwo\nthree\n");
    env.write("project/d/b.txt", "no end of line");
    env.write("project/empty", "");
    env.write("project/x", "#!/bin/sh\n");
    symlink("a.txt", env.project().join("link")).unwrap();
    applies(&env, &json!([write("a.txt", "one\n2\nthree\nfour")]));
    applies(&env, &json!([write("d/b.txt", "no end\nof line\n")]));
    applies(&env, &json!([write("new/deep/c.txt", "new\n")]));
    applies(&env, &json!([write("nothing", "")]));
    let executable = json!({ "target": "run", "type": "write", "content": "x\n", "mode": "0755" });
    applies(&env, &json!([executable]));
    applies(
        &env,
        &json!([{ "target": "x", "type": "chmod", "mode": "0755" }]),
    );
    let private = json!({ "target": "x", "type": "write", "content": "y\n", "mode": "0700" });
    applies(&env, &json!([private]));
    applies(&env, &json!([{ "target": "d/b.txt", "type": "delete" }]));
    applies(&env, &json!([{ "target": "empty", "type": "delete" }]));
    applies(
        &env,
        &json!([{ "target": "a.txt", "type": "move", "to": "m/a.txt" }]),
    );
    applies(
        &env,
        &json!([{ "target": "new", "type": "delete", "recursive": true }]),
    );
    let link = |target: &str, to: &str| json!({ "target": target, "type": "symlink", "to": to, "overwrite": true });
    applies(&env, &json!([link("other", "nowhere")]));
    applies(&env, &json!([link("other", "elsewhere")]));
    applies(&env, &json!([link("run", "x")]));
    applies(&env, &json!([{ "target": "link", "type": "delete" }]));
    // And all of it at once.
    let all = json!([
        write("m/a.txt", "1\n"),
        write("n/b.txt", "2\n"),
        write("n/c.txt", ""),
        { "target": "x", "type": "delete" },
        { "target": "nothing", "type": "delete" },
        { "target": "other", "type": "delete" },
        { "target": "n/b.txt", "type": "chmod", "mode": "0600" },
    ]);
    applies(&env, &all);
    assert_sound(&env);
}

/// Names that shells, patches and terminals read as something else.
const NAMES: &[&str] = &[
    "with space",
    " around ",
    "it's",
    "\"quoted\"",
    "$HOME",
    "`id`",
    "$(id)",
    "new\nline",
    "tab\tbed",
    "back\\slash",
    "*",
    "[ab].txt",
    "?",
    "{a,b}",
    "~",
    "-rf",
    "--help",
    "#comment",
    "semi;colon & more | even > more",
    "naïve 日本語",
    "\u{1b}[31mred",
    "\u{202e}gnp.exe",
    "state:x",
    "directory with space/and 'quotes'/f",
];

/// The same operation on a file of every name, all at once.
fn on_every_name(operation: &Value) -> Value {
    let one = |name: &&str| {
        let mut operation = operation.clone();
        operation["target"] = format!("./in/{name}").into();
        operation
    };
    NAMES.iter().map(one).collect()
}

/// A file of every name, with this content.
fn write_every_name(env: &TestEnv, content: &str) {
    for name in NAMES {
        env.write(&format!("project/in/{name}"), content);
    }
}

#[test]
fn st_24_a_unified_diff_applies_whatever_the_names_are() {
    let env = env();
    write_every_name(&env, "one\n");
    let write = |content: &str| on_every_name(&json!({ "type": "write", "content": content }));
    applies(&env, &write("two\n"));
    applies(&env, &on_every_name(&json!({ "type": "delete" })));
    applies(&env, &write("three\n"));
    assert_sound(&env);
}

#[test]
fn st_24_structured_files_are_told_by_pointer_and_others_by_line() {
    let env = env();
    env.write("project/a.json", "{\n  \"a\": 1\n}\n");
    env.write("project/b.txt", "b\n");
    let json = |target: &str, value: &str| json!({ "target": target, "type": "json", "merge": { "a": value } });
    let id = checkpoint(&env, &[]);
    let reply = batch(&env, &id, &json!([json("a.json", "one")]), &[]).done();
    assert_eq!(
        reply["diff"],
        json!({ "type": "structural", "content": "~ a.json /a\n" })
    );
    // With other files, every line of all of them.
    let both = json!([
        json("a.json", "two"),
        write("b.txt", "B\n"),
        write("c.txt", "c\n")
    ]);
    applies(&env, &both);
    // With a state, the names of other files.
    let id = checkpoint(&env, &[".", "--state", "deploy=1"]);
    let both = json!([
        { "target": "state:deploy", "type": "state", "value": 2 },
        json("a.json", "three"),
        write("b.txt", "again\n"),
        { "target": "c.txt", "type": "delete" },
    ]);
    let reply = batch(&env, &id, &both, &[]).done();
    assert_eq!(reply["diff"]["type"], "structural");
    assert_eq!(
        text(&reply["diff"]["content"]),
        "state:deploy\n@@ -1 +1 @@\n-1\n+2\n~ a.json /a\nmodified b.txt\ndeleted c.txt\n"
    );
    assert_sound(&env);
}

#[test]
fn st_24_what_is_no_text_is_summed_up() {
    let env = env();
    env.write("project/text", "text\n");
    fs::write(env.project().join("latin"), b"caf\xe9\n").unwrap();
    fs::write(env.project().join("binary"), b"\0\x01").unwrap();
    let append = |target: &str, base64: &str| json!([{ "target": target, "type": "append", "base64": base64 }]);
    for (operations, content) in [
        (append("binary", "/w=="), "modified binary"),
        (append("latin", "6Q=="), "modified latin"),
        (append("text", "AA=="), "modified text"),
        (json!([{ "target": "d", "type": "mkdir" }]), "created d"),
        (
            json!([{ "target": "binary", "type": "delete" }]),
            "deleted binary",
        ),
    ] {
        let id = checkpoint(&env, &[]);
        let reply = batch(&env, &id, &operations, &[]).done();
        assert_eq!(
            reply["diff"],
            json!({ "type": "summary", "content": content })
        );
    }
    // A diff that nobody would read to its end.
    let id = checkpoint(&env, &[]);
    let long = "a line of text\n".repeat(30_000);
    let operation = json!({ "type": "write", "content": long });
    env.write("operation", &operation.to_string());
    let arguments = ["--checkpoint", &id, "long", "--operation", "@../operation"];
    let reply = support::run(&env, &arguments).done();
    assert_eq!(reply["diff"]["type"], "summary");
    assert_eq!(reply["new_state"]["snapshot"]["size"], 450_000);
    assert!(reply["new_state"]["snapshot"]["blake3"].is_string());
}

#[test]
fn st_24_the_new_state_is_what_is_there() {
    let env = env();
    env.write("project/a.txt", "a\n");
    env.write("project/b.txt", "b\n");
    let id = checkpoint(&env, &[]);
    // The check is the last to touch the file: what it leaves is not what was meant.
    let operation = json!({ "type": "write", "content": "meant\n" });
    let line = "printf 'other\\n' > a.txt";
    let more = ["--verify", line, "--keep-failed"];
    let answer = mutate(&env, &id, "a.txt", &operation, &more);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_eq!(answer.reply["new_state"]["snapshot"], "other\n");
    assert_eq!(answer.reply["verification"]["verdict"], "FAIL");
    let failures = answer.reply["verification"]["failures"].to_string();
    assert!(failures.contains("target_as_meant"), "{failures}");
}

#[test]
fn st_25_the_roll_back_command_works_as_printed_whatever_the_names_are() {
    let env = env();
    env.write("project/bystander", "as it was\n");
    env.write("project/in/stays", "stays\n");
    write_every_name(&env, "previous\n");
    let before = contents(&env.project().join("in"));
    let write = on_every_name(&json!({ "type": "write", "content": "changed\n" }));
    let delete = on_every_name(&json!({ "type": "delete" }));
    for operations in [&write, &delete] {
        let id = checkpoint(&env, &[]);
        let reply = batch(&env, &id, operations, &[]).done();
        assert_ne!(before, contents(&env.project().join("in")));
        // What others do later is not taken back with it, but where it is in the way.
        write_every_name(&env, "edited by hand since\n");
        env.write("project/bystander", "changed by hand\n");
        paste(&env, &text(&reply["rollback_command"]));
        assert_same(&before, &contents(&env.project().join("in")));
        let bystander = fs::read_to_string(env.project().join("bystander")).unwrap();
        assert_eq!(bystander, "changed by hand\n");
    }
    // Files that were made, and one of them deleted by hand since.
    fs::remove_dir_all(env.project().join("in")).unwrap();
    env.write("project/in/stays", "stays\n");
    let before = contents(&env.project());
    let id = checkpoint(&env, &[]);
    let reply = batch(&env, &id, &write, &[]).done();
    fs::remove_file(env.project().join("in/[ab].txt")).unwrap();
    paste(&env, &text(&reply["rollback_command"]));
    assert_same(&before, &contents(&env.project()));
    assert_sound(&env);
}

#[test]
fn st_25_in_text_it_is_printed_as_exactly() {
    let env = env();
    for name in NAMES {
        let path = env.write(&format!("project/in/{name}"), "previous\n");
        let id = checkpoint(&env, &[]);
        let target = format!("./in/{name}");
        let change = r#"{"type":"write","content":"changed\n"}"#;
        let arguments = [
            "mutate",
            "--checkpoint",
            &id,
            "--operation",
            change,
            "--",
            &target,
        ];
        let run = env.run(&arguments);
        assert_eq!(run.code, 0, "{run:?}");
        let line = run.stdout.lines().last().unwrap();
        let command = line.trim_start().strip_prefix("undo with").unwrap();
        assert!(!command.contains(char::is_control), "{command:?}");
        paste(&env, command);
        assert_eq!(fs::read_to_string(&path).unwrap(), "previous\n", "{name:?}");
    }
}

#[test]
fn st_25_moves_commands_and_changes_of_nothing_are_taken_back_too() {
    let env = env();
    env.write("project/a b.txt", "a\n");
    env.write("project/d/c.txt", "c\n");
    env.write("project/other", "other\n");
    fs::set_permissions(
        env.project().join("d/c.txt"),
        fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    let odd =
        "printf x > \"$(printf 'not\\377utf8')\"; printf y > \"$(printf 'end\\n.')\"; rm d/c.txt";
    let ending = "printf z > 'ends with a line break\n'";
    let many = "i=0; while [ $i -lt 80 ]; do echo $i > many$i; i=$((i+1)); done; rm -r d";
    let command = |line: &str| json!({ "type": "command", "argv": ["sh", "-c", line] });
    for (target, operation) in [
        ("a b.txt", json!({ "type": "move", "to": "new/c d.txt" })),
        ("d", json!({ "type": "move", "to": "e/f" })),
        ("d", json!({ "type": "delete", "recursive": true })),
        ("d/c.txt", json!({ "type": "chmod", "mode": "0600" })),
        ("x/y/z", json!({ "type": "mkdir" })),
        ("d/l", json!({ "type": "symlink", "to": "c.txt" })),
        (".", command(odd)),
        (".", command(ending)),
        (".", command(many)),
        (".", command("true")),
        ("d/c.txt", json!({ "type": "chmod", "mode": "0640" })),
        ("d/c.txt", json!({ "type": "write", "content": "c\n" })),
    ] {
        env.write("project/other", "other\n");
        let id = checkpoint(&env, &[]);
        let before = contents(&env.project());
        let reply = mutate(&env, &id, target, &operation, &[]).done();
        // A command that names nothing must not roll everything back.
        env.write("project/other", "by hand\n");
        let printed = text(&reply["rollback_command"]);
        paste(&env, &printed);
        let other = fs::read_to_string(env.project().join("other")).unwrap();
        assert_eq!(other, "by hand\n", "{printed}");
        paste(
            &env,
            &format!("cd {0} && rm other", env.project().display()),
        );
        env.json(&["rollback", &id, "other"]);
        assert_same(&before, &contents(&env.project()));
    }
    assert_sound(&env);
}

#[test]
fn st_25_it_brings_back_what_was_there_just_before_not_the_checkpoint() {
    let env = env();
    env.write("project/a.txt", "at the checkpoint\n");
    let id = checkpoint(&env, &[]);
    env.write("project/a.txt", "by hand since\n");
    let edit = json!({ "type": "edit", "changes": [{ "old": "hand", "new": "change" }] });
    let reply = mutate(&env, &id, "a.txt", &edit, &[]).done();
    assert_eq!(reply["previous_state"]["snapshot"], "by hand since\n");
    assert_ne!(reply["before_checkpoint_id"], id.as_str());
    let path = env.project().join("a.txt");
    assert_eq!(fs::read_to_string(&path).unwrap(), "by change since\n");
    paste(&env, &text(&reply["rollback_command"]));
    assert_eq!(fs::read_to_string(&path).unwrap(), "by hand since\n");
    // The checkpoint itself is there as well.
    env.json(&["rollback", &id]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "at the checkpoint\n");
}

#[test]
fn st_25_it_names_the_store_and_the_workspace_as_they_were_named() {
    let env = env();
    let workspace = env.root().join("it's \"odd\" $HOME");
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("a.txt"), "previous\n").unwrap();
    let store = format!("sqlite:{}", env.root().join("my store.db").display());
    let here = workspace.to_str().unwrap();
    let general = ["-C", here, "--store", store.as_str()];
    let made = env.json(&[&general[..], &["checkpoint"]].concat());
    let id = text(&made["checkpoint_id"]);
    let change = r#"{"type":"write","content":"changed\n"}"#;
    let arguments = [
        "mutate",
        "a.txt",
        "--checkpoint",
        &id,
        "--operation",
        change,
    ];
    let reply = env.json(&[&general[..], &arguments].concat());
    paste(&env, &text(&reply["rollback_command"]));
    let found = fs::read_to_string(workspace.join("a.txt")).unwrap();
    assert_eq!(found, "previous\n");
}
