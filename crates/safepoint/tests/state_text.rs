//! What people read: the text of checkpoints, roll backs and conflicts.

#![expect(
    clippy::disallowed_methods,
    reason = "tests do what the product may not"
)]

use insta::assert_snapshot;
use testkit::TestEnv;

fn env() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    env.write("project/src/main.rs", "fn main() {\n    run();\n}\n");
    env.write("project/notes.txt", "one\ntwo\nthree\n");
    env.write("project/.env", "KEY=value\n");
    env.write("project/node_modules/x/index.js", "");
    env
}

#[test]
fn st_04_a_checkpoint_says_what_it_holds_and_what_not() {
    let env = env();
    assert_snapshot!(env.snapshot(&["checkpoint", "--reason", "before the agent"]), @r"
    exit 0
    ----- stdout
    checkpoint chk_[id]
      2 files, 6 lines, 39 B, last modified [time], [size] new
      sha256:[hash]
      before the agent
      undo with  safepoint rollback chk_[id]
    ----- stderr
    warning: sensitive files are not captured, and will not be restored: .env
    warning: left out: node_modules
    ");
    assert_snapshot!(env.snapshot(&["list"]), @r"
    exit 0
    ----- stdout
    chk_[id]         2 files        39 B  before the agent
    ");
    assert_snapshot!(env.snapshot(&["show", "chk_"]), @r"
    exit 0
    ----- stdout
    checkpoint  chk_[id]
    type        file_backup
    made        [time]
    reason      before the agent
    workspace   [root]/project
    content     2 files, 39 B
    expiry      never
    hash        sha256:[hash]
    restore     safepoint rollback chk_[id]
    left out    node_modules (packages that npm, yarn or pnpm installs)
    sensitive   .env (environment file)
    ");
}

#[test]
fn st_32_the_plan_is_shown_with_a_diff() {
    let env = env();
    env.json(&["checkpoint"]);
    env.write("project/notes.txt", "one\n2\nthree\n");
    env.write("project/new.txt", "x");
    std::fs::remove_file(env.project().join("src/main.rs")).unwrap();
    assert_snapshot!(env.snapshot(&["diff", "chk_"]), @r"
    exit 0
    ----- stdout
    diff --git a/new.txt b/new.txt
    new file mode 100644
    --- /dev/null
    +++ b/new.txt
    @@ -0,0 +1 @@
    +x
    \ No newline at end of file
    diff --git a/notes.txt b/notes.txt
    --- a/notes.txt
    +++ b/notes.txt
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    diff --git a/src/main.rs b/src/main.rs
    deleted file mode 100644
    --- a/src/main.rs
    +++ /dev/null
    @@ -1,3 +0,0 @@
    -fn main() {
    -    run();
    -}
    ");
    assert_snapshot!(env.snapshot(&["diff", "chk_", "--stat"]), @r"
    exit 0
    ----- stdout
             +1 −0  new.txt
             +1 −1  notes.txt
             +0 −3  src/main.rs
    3 paths changed, 2 lines added, 4 removed
    ");
    assert_snapshot!(env.snapshot(&["diff", "chk_", "--name-only"]), @r"
    exit 0
    ----- stdout
    new.txt
    notes.txt
    src/main.rs
    ");
    assert_snapshot!(env.snapshot(&["rollback", "chk_", "--dry-run"]), @r"
    exit 0
    ----- stdout
    would change 3 paths
      deleted   new.txt
      modified  notes.txt
      created   src/main.rs
    diff --git a/new.txt b/new.txt
    deleted file mode 100644
    --- a/new.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -x
    \ No newline at end of file
    diff --git a/notes.txt b/notes.txt
    --- a/notes.txt
    +++ b/notes.txt
    @@ -1,3 +1,3 @@
     one
    -2
    +two
     three
    diff --git a/src/main.rs b/src/main.rs
    new file mode 100644
    --- /dev/null
    +++ b/src/main.rs
    @@ -0,0 +1,3 @@
    +fn main() {
    +    run();
    +}
    ");
    assert_snapshot!(env.snapshot(&["rollback", "chk_"]), @r"
    exit 0
    ----- stdout
    verified  rolled back to chk_[id], 3 paths
      deleted   new.txt
      modified  notes.txt
      created   src/main.rs
      `safepoint redo` brings back what was there before
    ");
    assert_snapshot!(env.snapshot(&["log"]), @r"
    exit 0
    ----- stdout
    act_[id]  [time]  checkpoint.rollback  ok
      roll back to chk_[id]
      deleted   new.txt
      modified  notes.txt
      created   src/main.rs
    act_[id]  [time]  workspace.change  observed
      1 created, 1 modified, 1 deleted
      created   new.txt
      modified  notes.txt
      deleted   src/main.rs
    ");
    assert_snapshot!(env.snapshot(&["redo"]), @r"
    exit 0
    ----- stdout
    verified  taken back act_[id] (roll back to chk_[id]), 3 paths
      created   new.txt
      modified  notes.txt
      deleted   src/main.rs
      `safepoint undo act_[id]` takes it back again
    ");
}

#[test]
fn st_35_a_conflict_shows_its_lines() {
    let env = env();
    env.json(&["checkpoint"]);
    env.write("project/notes.txt", "one\nagent\nthree\n");
    env.json(&["checkpoint"]);
    let log = env.json(&["log"]);
    let action = log["actions"][0]["action_id"].as_str().unwrap();
    env.write("project/notes.txt", "one\nhuman\nthree\n");
    assert_snapshot!(env.snapshot(&["undo", action]), @r"
    exit 9
    ----- stderr
    error: `notes.txt` later changed in the same places
    notes.txt: it was changed in the same lines since
      line 2
      what the action wrote
        agent
      what is there now
        human
      what was there before the action
        two
    hint: nothing was changed; undo the later change first, or roll back the whole file with `safepoint rollback ID PATH`
    ");
}

#[test]
fn st_42_errors_name_what_and_what_next() {
    let env = env();
    assert_snapshot!(env.snapshot(&["rollback", "chk_nothing"]), @r"
    exit 8
    ----- stderr
    error: there is no checkpoint `chk_nothing`
    hint: `safepoint list` shows the checkpoints, `safepoint log` the actions
    ");
    assert_snapshot!(env.snapshot(&["checkpoint", "no/such/file"]), @r"
    exit 7
    ----- stderr
    error: the scope `no/such/file` matches nothing
    hint: check the spelling; a scope is relative to the directory you are in
    ");
    assert_snapshot!(env.snapshot(&["checkpoint", "--expiry", "soon"]), @r"
    exit 7
    ----- stderr
    error: `soon` is neither a length of time such as `30m` or `7d`, nor an RFC 3339 time such as `[time]`, nor `never`
    hint: for example `--expiry 24h`
    ");
    assert_snapshot!(env.snapshot(&["checkpoint", "../outside"]), @r"
    exit 7
    ----- stderr
    error: the scope `../outside` cannot be used: it lies outside the workspace
    hint: a scope is a file, a directory or a pattern inside the workspace
    ");
    assert_snapshot!(env.snapshot(&["redo"]), @r"
    exit 8
    ----- stderr
    error: there is no roll back or undo to take back in `[root]/project`
    hint: `safepoint list` shows the checkpoints, `safepoint log` the actions
    ");
    assert_snapshot!(env.snapshot(&["undo"]), @r"
    exit 8
    ----- stderr
    error: there is no action to undo in `[root]/project`
    hint: `safepoint list` shows the checkpoints, `safepoint log` the actions
    ");
}
