//! Whose a change is, is observed: an action's changes are what its own processes wrote, or what
//! a client's own file tool names. What a person does beside it is theirs, and stays.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/attribution.rs"]
mod attribution_scene;
#[path = "support/client.rs"]
mod client;
#[path = "support/passage.rs"]
mod support;

use std::fs;

use attribution_scene::{action, end, git, log, observed, project, start, wait_for, wait_for_file};
use client::{Claude, passes};
use serde_json::json;

#[test]
fn fe_33_what_a_person_saves_while_a_test_runs_is_theirs() {
    let env = project();
    let claude = Claude::new(&env);
    let line = "python3 slow.py";
    let child = start(&claude, "t-1", line, false);
    wait_for_file(&env.project().join("begun"));
    env.write("project/essay.md", "mine");
    env.write("project/src/app.py", "mine too\n");
    env.write("project/go", "");
    end(&claude, "t-1", line, child);
    let (slow, changed) = action(&env, "slow.py");
    assert_eq!(changed, ["begun", "made"]);
    assert_eq!(observed(&env), ["essay.md", "go", "src/app.py"]);
    env.json(&["undo", &slow]);
    assert!(!env.project().join("made").exists());
    let read = |path: &str| fs::read_to_string(env.project().join(path)).unwrap();
    assert_eq!(read("essay.md"), "mine");
    assert_eq!(read("src/app.py"), "mine too\n");
    env.json(&["redo"]);
    assert_eq!(read("made"), "by the test");
    assert_eq!(read("essay.md"), "mine");
}

#[test]
fn fe_33_undo_without_a_name_takes_the_agents_action_and_not_the_persons_file() {
    let env = project();
    let claude = Claude::new(&env);
    let child = start(&claude, "t-1", "python3 slow.py", false);
    wait_for_file(&env.project().join("begun"));
    env.write("project/essay.md", "mine");
    env.write("project/go", "");
    end(&claude, "t-1", "python3 slow.py", child);
    env.json(&["undo"]);
    assert!(!env.project().join("made").exists());
    assert!(env.project().join("essay.md").exists());
}

#[test]
fn fe_33_a_commit_by_hand_while_a_server_runs_is_the_persons() {
    let env = project();
    let claude = Claude::new(&env);
    let line = "python3 server.py > server.log";
    let child = start(&claude, "t-1", line, true);
    wait_for_file(&env.project().join("up"));
    env.write("project/essay.md", "mine");
    git(&env, &["add", "essay.md"]);
    git(&env, &["commit", "-q", "-m", "by hand"]);
    git(&env, &["tag", "mine"]);
    let head = git(&env, &["rev-parse", "HEAD"]);
    env.write("project/stop", "");
    end(&claude, "t-1", line, child);
    let (server, changed) = action(&env, "server.py");
    assert_eq!(changed, ["server.log", "up"]);
    env.json(&["undo", &server]);
    assert!(!env.project().join("server.log").exists());
    assert_eq!(git(&env, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&env, &["tag"]), "mine");
    assert!(env.project().join("essay.md").exists());
    assert_eq!(
        git(&env, &["status", "--porcelain", "--", "essay.md", "src"]),
        ""
    );
}

#[test]
fn fe_33_commits_of_other_calls_are_not_the_servers() {
    let env = project();
    let claude = Claude::new(&env);
    let line = "python3 server.py > server.log";
    let child = start(&claude, "t-1", line, true);
    wait_for_file(&env.project().join("up"));
    claude.does(
        "t-2",
        "echo x > new.txt && git add new.txt && git commit -q -m agents",
    );
    claude.does("t-3", "git tag agents");
    let head = git(&env, &["rev-parse", "HEAD"]);
    env.write("project/stop", "");
    end(&claude, "t-1", line, child);
    let (server, changed) = action(&env, "server.py");
    assert_eq!(changed, ["server.log", "up"]);
    let (tag, changed) = action(&env, "git tag");
    assert_eq!(changed, [".git/refs/tags/agents"]);
    env.json(&["undo", &server]);
    assert_eq!(git(&env, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&env, &["tag"]), "agents");
    // A control: those are taken back by their own names.
    env.json(&["undo", &tag]);
    assert_eq!(git(&env, &["tag"]), "");
}

#[test]
fn fe_33_a_file_tool_changes_what_it_names_and_nothing_of_another_client() {
    let env = project();
    let one = Claude::new(&env);
    let other = Claude {
        session: "s-2",
        ..Claude::new(&env)
    };
    let input = |name: &str| json!({"file_path": env.project().join(name), "content": name});
    passes(&one.before("t-1", "Write", input("a7.txt")));
    passes(&other.before("u-1", "Write", input("b8.txt")));
    env.write("project/b8.txt", "b8.txt");
    passes(&other.after("u-1", "Write", input("b8.txt")));
    env.write("project/essay.md", "mine");
    env.write("project/a7.txt", "a7.txt");
    passes(&one.after("t-1", "Write", input("a7.txt")));
    assert_eq!(action(&env, "a7.txt").1, ["a7.txt"]);
    assert_eq!(action(&env, "b8.txt").1, ["b8.txt"]);
    // Alone, too, it has nothing of a person's.
    passes(&one.before("t-2", "Write", input("c9.txt")));
    env.write("project/other.md", "mine");
    env.write("project/c9.txt", "c9.txt");
    passes(&one.after("t-2", "Write", input("c9.txt")));
    let (id, changed) = action(&env, "c9.txt");
    assert_eq!(changed, ["c9.txt"]);
    env.json(&["undo", &id]);
    assert!(env.project().join("other.md").exists() && env.project().join("essay.md").exists());
}

#[test]
fn fe_33_what_a_server_writes_after_its_line_has_ended_is_its_own() {
    let env = project();
    let claude = Claude::new(&env);
    let line = "python3 server.py > server.log 2>&1 & while [ ! -e up ]; do :; done";
    let child = start(&claude, "t-1", line, false);
    wait_for_file(&env.project().join("up"));
    end(&claude, "t-1", line, child);
    env.write("project/request", "a person asks");
    wait_for_file(&env.project().join("reply"));
    env.write("project/essay.md", "mine");
    // The next look takes nothing of it for the person's.
    claude.writes("t-2", "b.txt", "b");
    assert_eq!(observed(&env), ["essay.md", "request"]);
    env.write("project/stop", "");
    let is_recorded = || {
        let all = log(&env);
        all.iter()
            .any(|it| it["summary"].as_str().unwrap().contains("left running by"))
    };
    wait_for("the record of the server", is_recorded);
    let (late, changed) = action(&env, "left running by");
    assert_eq!(changed, ["reply", "server.log"]);
    env.json(&["undo", &late]);
    assert!(!env.project().join("reply").exists());
    for kept in ["essay.md", "request", "b.txt", "stop"] {
        assert!(env.project().join(kept).exists(), "{kept}");
    }
    env.json(&["redo"]);
    assert!(env.project().join("reply").exists());
}
