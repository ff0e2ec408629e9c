//! Agents in directories of their own, and how their work is taken over: from outside.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/workspaces.rs"]
mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Agent, ask, below, env, record, root, run, text};
use testkit::TestEnv;
use testkit::tree::git;

const ASKS: &str = r#"
atlas_version: "1.0"
atlas_id: "test.integrate"
version: "1.0.0"
name: "Asks"
description: "A person looks at what is taken over"
capabilities:
  - capability_id: "all"
    name: "All"
    actions: ["file.*", "process.*", "shell.*", "workspace.*"]
policies:
  - policy_id: "look"
    type: requires_approval
    actions: ["workspace.integrate"]
    reason: "Somebody looks first"
"#;

/// A project with a file, and a run in it.
fn project() -> (TestEnv, Agent) {
    let env = env();
    env.write("project/notes.txt", "one\ntwo\nthree\nfour\nfive\n");
    let root = root(&env);
    (env, root)
}

/// An agent in a directory of its own.
#[track_caller]
fn apart(env: &TestEnv, parent: &Agent) -> (Agent, PathBuf) {
    let place = ["--parent", &parent.id, "--role", "worker", "--isolated"];
    let make = [
        &["workspace", "create"],
        &place[..],
        &["--directive", "work"],
    ]
    .concat();
    let made = env.json(&make);
    let agent = Agent {
        id: text(&made["workspace_id"]),
        token: text(&made["token"]),
    };
    (agent, text(&made["path"]).into())
}

fn change(directory: &Path, name: &str, from: &str, to: &str) {
    let path = directory.join(name);
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, before.replace(from, to)).unwrap();
}

/// Says that it is done, with what its directory shows.
#[track_caller]
fn deliver(env: &TestEnv, agent: &Agent) -> Value {
    let body = json!({
        "type": "artifact", "payload": {"content": "done", "artifacts": []}, "intent": "deliver",
        "parent": null, "status": "final", "confidence": "high",
    });
    let (code, reply) = ask(env, agent, &body);
    assert_eq!(code, 0, "{reply}");
    complete(env, agent);
    reply["checkpoint"].clone()
}

#[track_caller]
fn complete(env: &TestEnv, agent: &Agent) {
    let said = ["workspace", "signal", &agent.id, "complete"];
    let (code, reply) = run(env, &[&said[..], &["--token", &agent.token]].concat());
    assert_eq!(
        (code, &reply["state"]),
        (0, &json!("integrating")),
        "{reply}"
    );
}

#[track_caller]
fn notes(env: &TestEnv) -> String {
    fs::read_to_string(env.project().join("notes.txt")).unwrap()
}

#[test]
fn pr_32_a_project_whose_roll_back_was_cut_off_is_still_the_origin() {
    for fault in ["restore.journalled", "restore.step", "restore.recorded"] {
        let (env, root) = project();
        let (agent, directory) = apart(&env, &root);
        change(&directory, "notes.txt", "one", "ONE");
        deliver(&env, &agent);
        let checkpoint = text(&env.json(&["checkpoint"])["checkpoint_id"]);
        fs::remove_dir_all(env.project()).unwrap();
        let project = env.project().display().to_string();
        let back = ["rollback", &checkpoint, "-C", &project];
        let mut killed = env.command(&back);
        killed.current_dir(env.root()).env("SAFEPOINT_FAULT", fault);
        let killed = killed.output().unwrap();
        assert_eq!(killed.status.signal(), Some(9), "{fault}: {killed:?}");
        if fault == "restore.journalled" {
            // Nothing was touched, and it was dropped.
            assert_eq!(env.run(&back).code, 0);
        }
        let (code, reply) = run(&env, &["workspace", "integrate", &agent.id]);
        assert_eq!(code, 0, "{fault}: {reply}");
        assert!(notes(&env).starts_with("ONE\n"), "{fault}");
    }
}

#[test]
fn pr_07_what_a_directory_lacks_is_named_when_it_is_made() {
    let (env, root) = project();
    env.write("project/vendor/a", "a\n");
    git(&env.project().join("vendor"), &["init", "-q"]);
    let make = ["workspace", "create", "--parent", &root.id];
    let make = [&make[..], &["--role", "worker", "--isolated"]].concat();
    let made = env.json(&make);
    let [left_out] = made["left_out"].as_array().unwrap().as_slice() else {
        panic!("{made}");
    };
    assert_eq!(left_out["path"], "vendor");
    let shown = env.run(&make).stdout;
    let line =
        "left out   vendor (a repository of its own: its files are here, its git state is not)";
    assert!(shown.contains(line), "{shown}");
    let plain = [
        "workspace",
        "create",
        "--parent",
        &root.id,
        "--role",
        "worker",
    ];
    assert_eq!(env.json(&plain)["left_out"], json!([]));
}

#[test]
fn pr_32_two_agents_are_taken_over_one_after_the_other_and_undone() {
    let (env, root) = project();
    let ((one, first), (two, second)) = (apart(&env, &root), apart(&env, &root));
    change(&first, "notes.txt", "one", "ONE");
    fs::write(first.join("new.txt"), "new\n").unwrap();
    change(&second, "notes.txt", "five", "FIVE");
    let record = deliver(&env, &one);
    assert_eq!(
        record["payload"]["files_changed"],
        json!(["new.txt", "notes.txt"])
    );
    deliver(&env, &two);
    assert_eq!(
        notes(&env),
        "one\ntwo\nthree\nfour\nfive\n",
        "untouched so far"
    );

    let done = env.json(&["workspace", "integrate", &one.id, "--no-tui"]);
    assert_eq!(done["integration"]["result"], "success", "{done}");
    assert_eq!(done["integration"]["checkpoint_ref"], record["id"]);
    assert_eq!(
        done["changes"],
        json!([{"path": "new.txt", "change": "created"}, {"path": "notes.txt", "change": "modified"}])
    );
    env.json(&["workspace", "integrate", &two.id, "--no-tui"]);
    assert_eq!(notes(&env), "ONE\ntwo\nthree\nfour\nFIVE\n", "both");
    assert!(env.project().join("new.txt").exists());
    for agent in [&one, &two] {
        let shown = env.json(&["workspace", "show", &agent.id]);
        assert_eq!(shown["workspace"]["state"], "closed");
    }

    // One of them is taken back, and the other stays.
    env.json(&["undo", &text(&done["action_id"])]);
    assert_eq!(notes(&env), "one\ntwo\nthree\nfour\nFIVE\n");
    assert!(!env.project().join("new.txt").exists());

    // The states say what happened; that it was taken back is said beside them.
    let shown = |agent: &Agent| env.json(&["workspace", "show", &agent.id])["workspace"].clone();
    let back = shown(&one);
    assert_eq!(back["state"], "closed");
    assert!(back["taken_back_by"].is_string(), "{back}");
    assert_eq!(shown(&two)["taken_back_by"], json!(null));
    let list = env.run(&["workspace", "list"]).stdout;
    assert_eq!(list.matches("taken back").count(), 1, "{list}");
    env.json(&["redo"]);
    assert!(env.project().join("new.txt").exists());
    assert_eq!(shown(&one)["taken_back_by"], json!(null));
}

#[test]
fn pr_32_a_conflict_is_decided_and_nothing_is_overwritten_before() {
    let (env, root) = project();
    let ((one, first), (two, second)) = (apart(&env, &root), apart(&env, &root));
    change(&first, "notes.txt", "two", "deux");
    change(&second, "notes.txt", "two", "zwei");
    deliver(&env, &one);
    deliver(&env, &two);
    env.json(&["workspace", "integrate", &one.id, "--no-tui"]);
    let (code, held) = run(&env, &["workspace", "integrate", &two.id, "--no-tui"]);
    assert_eq!(
        (code, &held["integration"]["result"]),
        (9, &json!(null)),
        "{held}"
    );
    let conflict = &held["integration"]["conflicts"][0];
    assert_eq!(
        (&conflict["id"], &conflict["path"]),
        (&json!("c1"), &json!("notes.txt"))
    );
    assert_eq!(notes(&env), "one\ndeux\nthree\nfour\nfive\n");
    let shown = env.json(&["workspace", "show", &two.id]);
    assert_eq!(shown["workspace"]["state"], "conflicted");

    let resolve = ["workspace", "resolve", &two.id];
    assert_eq!(run(&env, &resolve).0, 9, "it is only shown");
    let (code, shown) = run(&env, &[&resolve[..], &["c1"]].concat());
    assert_eq!(code, 9, "it is only shown, too");
    let sides = &shown["sides"][0];
    assert_eq!(sides["choices"], json!(["ours", "theirs"]));
    let both = format!(
        "one\n<<<<<<< here\ndeux\n||||||| where the work began\ntwo\n=======\nzwei\n>>>>>>> {}\nthree\nfour",
        two.id
    );
    assert_eq!(text(&sides["text"]), both);
    assert_eq!(held["sides"], shown["sides"]);
    let page = env.run(&["workspace", "resolve", &two.id]);
    assert!(
        page.stdout.contains("--use ours|theirs,"),
        "{}",
        page.stdout
    );
    assert!(page.stdout.contains("      zwei\n"), "{}", page.stdout);
    assert_eq!(
        run(&env, &[&resolve[..], &["c9", "--use", "ours"]].concat()).0,
        8
    );
    let (code, done) = run(&env, &[&resolve[..], &["c1", "--use", "theirs"]].concat());
    assert_eq!(code, 0, "{done}");
    assert_eq!(done["integration"]["result"], "conflict_resolved");
    assert_eq!(notes(&env), "one\nzwei\nthree\nfour\nfive\n");
    env.json(&["undo"]);
    assert_eq!(notes(&env), "one\ndeux\nthree\nfour\nfive\n");
}

#[test]
fn pr_32_a_directory_against_a_file_is_one_question_and_its_answer_holds() {
    for (choice, becomes) in [("ours", None), ("theirs", Some("a file\n"))] {
        let env = env();
        env.write("project/dd/f", "1\n");
        let root = root(&env);
        let (agent, directory) = apart(&env, &root);
        env.write("project/dd/f", "2\n");
        fs::remove_dir_all(directory.join("dd")).unwrap();
        fs::write(directory.join("dd"), "a file\n").unwrap();
        deliver(&env, &agent);
        let (code, held) = run(&env, &["workspace", "integrate", &agent.id, "--no-tui"]);
        let conflicts = held["integration"]["conflicts"].as_array().unwrap();
        assert_eq!((code, conflicts.len()), (9, 1), "{held}");
        assert_eq!(conflicts[0]["path"], "dd");
        let resolve = ["workspace", "resolve", &agent.id, "c1", "--use", choice];
        let done = env.json(&resolve);
        assert_eq!(done["integration"]["result"], "conflict_resolved", "{done}");
        let path = env.project().join("dd");
        match becomes {
            Some(text) => assert_eq!(fs::read_to_string(path).unwrap(), text),
            None => assert_eq!(fs::read_to_string(path.join("f")).unwrap(), "2\n"),
        }
    }
}

/// What is shown of the conflict of a path.
#[track_caller]
fn sides_of<'a>(reply: &'a Value, path: &str) -> &'a Value {
    let conflicts = reply["integration"]["conflicts"].as_array().unwrap();
    let found = conflicts.iter().find(|it| it["path"] == path).unwrap();
    let sides = reply["sides"].as_array().unwrap();
    sides
        .iter()
        .find(|it| it["conflict"] == found["id"])
        .unwrap()
}

#[test]
fn pr_32_every_kind_of_conflict_is_shown_with_what_each_side_has() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let env = env();
    for name in ["gone", "lost", "mode"] {
        env.write(&format!("project/{name}"), "one\ntwo\n");
    }
    env.write("project/binary", "\0old\n");
    env.write("project/dir/kept", "old\n");
    symlink("old", env.project().join("link")).unwrap();
    let root = root(&env);
    let (agent, directory) = apart(&env, &root);
    for (side, mode, word) in [
        (env.project(), 0o700, "ours"),
        (directory.clone(), 0o755, "theirs"),
    ] {
        fs::set_permissions(side.join("mode"), fs::Permissions::from_mode(mode)).unwrap();
        fs::remove_file(side.join("link")).unwrap();
        symlink(word, side.join("link")).unwrap();
        fs::write(side.join("binary"), format!("\0{word}\n")).unwrap();
    }
    fs::remove_file(env.project().join("gone")).unwrap();
    fs::write(directory.join("gone"), "one\nwork\n").unwrap();
    env.write("project/lost", "here\ntwo\n");
    fs::remove_file(directory.join("lost")).unwrap();
    env.write("project/made", "");
    fs::write(directory.join("made"), "made\n").unwrap();
    env.write("project/dir/new", "new\n");
    fs::remove_dir_all(directory.join("dir")).unwrap();
    fs::write(directory.join("dir"), "a file\n").unwrap();
    fs::write(directory.join("safepoint.yaml"), "atlases: []\n").unwrap();
    deliver(&env, &agent);

    let (code, held) = run(&env, &["workspace", "integrate", &agent.id, "--no-tui"]);
    assert_eq!(code, 9, "{held}");
    let shown = |path: &str| sides_of(&held, path).clone();
    let mode = shown("mode");
    assert_eq!(mode["ours"]["mode"], "0700", "{mode}");
    assert_eq!(
        (&mode["base"]["mode"], &mode["theirs"]["mode"]),
        (&json!("0644"), &json!("0755"))
    );
    let link = shown("link");
    let target = |side: &str| text(&link[side]["target"]);
    assert_eq!(
        [target("base"), target("ours"), target("theirs")],
        ["old", "ours", "theirs"]
    );
    let gone = shown("gone");
    assert_eq!(
        (&gone["ours"], &gone["text_is"]),
        (&json!(null), &json!("theirs"))
    );
    assert_eq!(gone["text"], "@@ -1,2 +1,2 @@\n one\n-two\n+work");
    let lost = shown("lost");
    assert_eq!(
        (&lost["theirs"], &lost["text_is"]),
        (&json!(null), &json!("ours"))
    );
    assert_eq!(lost["text"], "@@ -1,2 +1,2 @@\n-one\n+here\n two");
    assert_eq!(shown("made")["text"], "@@ -0,0 +1 @@\n+made");
    let rules = shown("safepoint.yaml");
    assert_eq!(
        (&rules["text"], &rules["choices"]),
        (&json!("@@ -0,0 +1 @@\n+atlases: []"), &json!(["ours"]))
    );
    let binary = shown("binary");
    assert_eq!(
        (
            &binary["text"],
            &binary["ours"]["size"],
            &binary["theirs"]["size"]
        ),
        (&json!(null), &json!(6), &json!(8))
    );
    assert_eq!(
        shown("dir")["ours"]["changes"],
        json!([{"path": "dir/new", "change": "created"}])
    );

    let page = env.run(&["workspace", "resolve", &agent.id]).stdout;
    for line in [
        "both sides changed it, and it is not text",
        "      here: file, 6 bytes, mode 0644\n",
        "      here: file, 8 bytes, mode 0700\n",
        "      in the work: link to `theirs`\n",
        "      here: nothing\n",
        "      what the work changed:\n",
        "      +work\n",
        "      what was changed here:\n",
        "      +here\n",
        "      +made\n",
        "      +atlases: []\n",
        "      here: directory, mode 0755\n        created   dir/new\n",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}

#[test]
fn pr_32_what_fits_beside_a_conflict_is_told_before_a_whole_file_is_chosen() {
    let env = env();
    let numbers: Vec<String> = (1..20).map(|number| format!("{number}\n")).collect();
    for name in ["fits", "clashes"] {
        env.write(&format!("project/{name}"), &numbers.concat());
    }
    let root = root(&env);
    let (agent, directory) = apart(&env, &root);
    change(&env.project(), "fits", "2\n3", "two\n3");
    change(&directory, "fits", "17", "seventeen");
    change(&env.project(), "clashes", "\n5\n", "\nours\n");
    change(&env.project(), "clashes", "\n11\n", "\nmine\n");
    change(&env.project(), "clashes", "\n14\n", "\nmine\n");
    change(&directory, "clashes", "\n5\n", "\ntheirs\n");
    change(&directory, "clashes", "17", "seventeen");
    deliver(&env, &agent);
    let integrate = ["workspace", "integrate", &agent.id, "--no-tui"];
    let (code, held) = run(
        &env,
        &[&integrate[..], &["--strategy", "evaluated"]].concat(),
    );
    assert_eq!(code, 9, "{held}");
    let fits = sides_of(&held, "fits");
    assert_eq!(fits["text_is"], "merged", "{fits}");
    let merged = text(&fits["text"]);
    assert!(merged.contains("-17\n+seventeen"), "{merged}");
    assert!(!merged.contains("two"), "it is here already: {merged}");
    let clashes = sides_of(&held, "clashes");
    assert_eq!(
        (&clashes["more_ours"], &clashes["more_theirs"]),
        (&json!(2), &json!(1))
    );
    let page = env.run(&["workspace", "resolve", &agent.id]).stdout;
    for line in [
        "`theirs` is the whole file as the work has it: 2 more changes of the parent would go",
        "`ours` is the whole file as it is here: 1 more change of the work would not come",
        "`merged` has the changes of both sides, line by line",
        "what `merged` would change here:",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}

#[test]
fn pr_32_a_decision_that_cannot_be_carried_out_says_why_and_asks_nothing_again() {
    for moves_it_away in [true, false] {
        let env = env();
        env.write("project/dd/f", "1\n");
        let root = root(&env);
        let (agent, directory) = apart(&env, &root);
        env.write("project/dd/.env", "TOKEN=a\n");
        fs::remove_dir_all(directory.join("dd")).unwrap();
        fs::write(directory.join("dd"), "a file\n").unwrap();
        deliver(&env, &agent);
        let (code, held) = run(&env, &["workspace", "integrate", &agent.id, "--no-tui"]);
        assert_eq!(code, 9, "{held}");
        let resolve = ["workspace", "resolve", &agent.id];
        let theirs = [&resolve[..], &["c1", "--use", "theirs"]].concat();
        let refused = env.run(&theirs);
        assert_eq!(refused.code, 9, "{refused:?}");
        assert!(
            refused.stderr.contains("`c1` was decided for `theirs`"),
            "{refused:?}"
        );
        let shown = env.json(&["workspace", "show", &agent.id]);
        let conflicts = shown["integration"]["conflicts"].as_array().unwrap();
        assert_eq!(conflicts.len(), 1, "{shown}");
        let path = env.project().join("dd");
        if moves_it_away {
            fs::remove_file(path.join(".env")).unwrap();
            env.json(&resolve);
            assert_eq!(fs::read_to_string(path).unwrap(), "a file\n");
        } else {
            env.json(&[&resolve[..], &["c1", "--use", "ours"]].concat());
            assert_eq!(fs::read_to_string(path.join("f")).unwrap(), "1\n");
            assert!(path.join(".env").exists());
        }
    }
}

#[test]
fn pr_32_a_finding_without_a_path_takes_no_content() {
    let (env, root) = project();
    let (agent, directory) = apart(&env, &root);
    change(&directory, "notes.txt", "one", "ONE");
    deliver(&env, &agent);
    let finding = ["--finding", "semantic_contradiction=they disagree"];
    let integrate = ["workspace", "integrate", &agent.id, "--no-tui"];
    let page = env.run(&[&integrate[..], &["--strategy", "evaluated"], &finding[..]].concat());
    assert_eq!(page.code, 9, "{page:?}");
    assert!(!page.stdout.contains("--content"), "{page:?}");
    let resolve = ["workspace", "resolve", &agent.id, "c1"];
    let (code, refused) = run(&env, &[&resolve[..], &["--content", "x"]].concat());
    assert_eq!(code, 7, "{refused}");
    for word in ["bogus", "content"] {
        let refused = env.run(&[&resolve[..], &["--use", word]].concat());
        assert_eq!(refused.code, 7, "{refused:?}");
        assert!(
            refused
                .stderr
                .contains("it is one of ours, theirs, merged;"),
            "{refused:?}"
        );
    }
    let (code, done) = run(&env, &[&resolve[..], &["--use", "theirs"]].concat());
    assert_eq!(code, 0, "{done}");
    assert!(notes(&env).starts_with("ONE\n"));
}

#[test]
fn pr_40_edits_made_after_a_killed_integration_are_kept_by_whoever_comes_next() {
    use std::os::unix::process::ExitStatusExt;
    let (env, root) = project();
    let (agent, directory) = apart(&env, &root);
    for number in 0..8 {
        fs::write(directory.join(format!("n{number}")), "new\n").unwrap();
    }
    change(&directory, "notes.txt", "one", "ONE");
    deliver(&env, &agent);
    let integrate = ["workspace", "integrate", &agent.id, "--no-tui"];
    // In the order of their names: some are there, `notes.txt` is not written yet.
    let killed = env
        .command(&integrate)
        .env("SAFEPOINT_FAULT", "restore.step:5")
        .output()
        .unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    let edited = |name: &str| {
        let path = env.project().join(name);
        let text = fs::read_to_string(&path).unwrap() + "USER EDIT\n";
        fs::write(&path, &text).unwrap();
        text
    };
    let (first, last) = (edited("n0"), edited("notes.txt"));
    let next = env.run(&["workspace", "list"]);
    assert_eq!(next.code, 0, "{next:?}");
    for name in ["`n0`", "`notes.txt`", "taken back"] {
        assert!(next.stderr.contains(name), "{next:?}");
    }
    let read = |name: &str| fs::read_to_string(env.project().join(name)).ok();
    assert_eq!(
        (read("n0"), read("notes.txt"), read("n1")),
        (Some(first), Some(last), None)
    );
    // Nothing was taken over, and it can be tried again: `n0` is there twice now.
    let (code, reply) = run(&env, &["workspace", "recover"]);
    assert_eq!(code, 0, "{reply}");
    let (code, reply) = run(&env, &integrate);
    assert_eq!(code, 9, "{reply}");
    let (code, reply) = run(
        &env,
        &["workspace", "resolve", &agent.id, "c1", "--use", "ours"],
    );
    assert_eq!(code, 0, "{reply}");
    assert_eq!(notes(&env), "ONE\ntwo\nthree\nfour\nfive\nUSER EDIT\n");
    assert_eq!(read("n1").as_deref(), Some("new\n"));
}

#[test]
fn pr_32_an_integration_whose_process_is_gone_is_ended_by_the_next_one() {
    use std::os::unix::process::ExitStatusExt;
    // Nothing is done yet; and half done, which is carried on.
    for (point, carried_on) in [("integrate.started", false), ("restore.step:1", true)] {
        for same in [true, false] {
            let (env, root) = project();
            let ((one, first), (two, second)) = (apart(&env, &root), apart(&env, &root));
            change(&first, "notes.txt", "one", "ONE");
            change(&second, "notes.txt", "five", "FIVE");
            deliver(&env, &one);
            deliver(&env, &two);
            let integrate = |agent: &Agent| {
                let asked = ["workspace", "integrate", &agent.id, "--no-tui"];
                env.run(&asked)
            };
            let killed = env
                .command(&["workspace", "integrate", &one.id, "--no-tui"])
                .env("SAFEPOINT_FAULT", point)
                .output()
                .unwrap();
            assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
            let next = integrate(if same { &one } else { &two });
            assert_eq!(next.code, 0, "{point}: {next:?}");
            if !same && !carried_on {
                assert_eq!(notes(&env), "one\ntwo\nthree\nfour\nFIVE\n", "{point}");
                assert_eq!(integrate(&one).code, 0, "{point}");
            }
            assert!(notes(&env).starts_with("ONE\n"), "{point}");
            let shown = env.json(&["workspace", "show", &one.id]);
            assert_eq!(shown["workspace"]["state"], "closed", "{point}");
        }
    }
}

#[test]
fn pr_32_an_integration_that_was_carried_out_and_cut_off_is_told_as_done() {
    use std::os::unix::process::ExitStatusExt;
    for recovers in [false, true] {
        let (env, root) = project();
        let (agent, directory) = apart(&env, &root);
        change(&directory, "notes.txt", "one", "ONE");
        deliver(&env, &agent);
        let integrate = ["workspace", "integrate", &agent.id, "--no-tui"];
        let killed = env
            .command(&integrate)
            .env("SAFEPOINT_FAULT", "restore.recorded")
            .output()
            .unwrap();
        assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
        let next = match recovers {
            true => env.run(&["workspace", "recover"]),
            false => env.run(&integrate),
        };
        assert_eq!(next.code, 0, "{next:?}");
        let told = match recovers {
            true => "1 integration ended that had been cut off",
            false => "integrated",
        };
        assert!(next.stdout.contains(told), "{next:?}");
        assert!(notes(&env).starts_with("ONE\n"));
        let shown = env.json(&["workspace", "show", &agent.id]);
        assert_eq!(shown["workspace"]["state"], "closed");
    }
}

#[test]
fn pr_32_a_roll_back_past_an_integration_takes_it_back() {
    let (env, root) = project();
    let (agent, directory) = apart(&env, &root);
    fs::write(directory.join("new.txt"), "new\n").unwrap();
    deliver(&env, &agent);
    let checkpoint = || text(&env.json(&["checkpoint"])["checkpoint_id"]);
    let by = || env.json(&["workspace", "show", &agent.id])["workspace"]["taken_back_by"].clone();
    let before = checkpoint();
    env.json(&["workspace", "integrate", &agent.id, "--no-tui"]);
    env.write("project/other.txt", "other\n");
    let with = checkpoint();
    env.json(&["rollback", &before, "notes.txt"]);
    assert_eq!(by(), json!(null), "a part of the directory says nothing");

    let back = env.json(&["rollback", &before]);
    assert!(!env.project().join("new.txt").exists());
    assert_eq!(by(), back["action_id"], "{back}");
    let list = env.run(&["workspace", "list"]).stdout;
    assert_eq!(list.matches("taken back").count(), 1, "{list}");

    // Back to a state that has it, away from that, and each taken back in turn.
    env.write("project/third.txt", "third\n");
    let without = checkpoint();
    env.json(&["rollback", &with]);
    assert!(env.project().join("new.txt").exists());
    assert_eq!(by(), json!(null));
    let back = env.json(&["rollback", &without]);
    assert_eq!(
        by(),
        back["action_id"],
        "made later, and without it all the same"
    );
    env.json(&["undo"]);
    assert!(env.project().join("new.txt").exists());
    assert_eq!(by(), json!(null));
    let again = env.json(&["redo"]);
    assert!(!env.project().join("new.txt").exists());
    assert_eq!(by(), again["action_id"]);
}

#[test]
fn pr_32_names_that_are_no_text_and_links_that_lead_out_are_taken_over() {
    use std::os::unix::ffi::OsStrExt;
    let (env, root) = project();
    let (agent, directory) = apart(&env, &root);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(directory.join(name), "x\n").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", directory.join("out")).unwrap();
    deliver(&env, &agent);
    let done = env.run(&["workspace", "integrate", &agent.id, "--no-tui"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stderr.contains("`out` is a link that leads out"),
        "{done:?}"
    );
    assert!(env.project().join(name).exists());
}

#[test]
fn pr_32_integration_is_an_action_that_passes_the_gates() {
    let (env, root) = project();
    env.write("project/safepoint.yaml", "atlases: [atlas.yaml]\n");
    env.write("project/atlas.yaml", ASKS);
    let (agent, directory) = apart(&env, &root);
    change(&directory, "notes.txt", "one", "ONE");
    deliver(&env, &agent);
    env.json(&["operator", "add", "ada"]);
    let integrate = ["workspace", "integrate", &agent.id, "--no-tui"];
    let (code, denied) = run(&env, &integrate);
    assert_eq!(
        (code, &denied["denial"]["code"]),
        (2, &json!("APPROVAL_REQUIRED")),
        "{denied}"
    );
    assert!(notes(&env).starts_with("one"), "nothing was changed");
    let shown = env.json(&["workspace", "show", &agent.id]);
    assert_eq!(shown["workspace"]["state"], "integrating");

    let hold = text(&denied["denial"]["hold_id"]);
    let form = env.json(&["hold", "show", &hold]);
    let paths = form["canonical_form"]["paths"].to_string();
    assert!(paths.contains("notes.txt"), "{form}");
    let print = text(&form["fingerprint"]);
    env.json(&[
        "hold",
        "approve",
        &hold,
        "--fingerprint",
        &print,
        "--operator",
        "ada",
    ]);
    let done = env.json(&integrate);
    assert!(notes(&env).starts_with("ONE"));
    let entries = env.json(&["trail", "list", "--action", &text(&done["action_id"])]);
    let kinds: Vec<&str> = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["kind"].as_str().unwrap())
        .collect();
    for kind in [
        "action_intended",
        "integration_started",
        "integration_completed",
        "action_ended",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn pr_32_an_agent_does_not_change_the_rules_by_being_taken_over() {
    let (env, root) = project();
    let (agent, directory) = apart(&env, &root);
    fs::write(directory.join("safepoint.yaml"), "checkpoint: never\n").unwrap();
    deliver(&env, &agent);
    let (code, held) = run(&env, &["workspace", "integrate", &agent.id, "--no-tui"]);
    assert_eq!(code, 9, "somebody has to look: {held}");
    // Nobody lets it in: that is said at once, and whoever wants it writes it.
    let resolve = ["workspace", "resolve", &agent.id, "c1", "--no-tui", "--use"];
    let (code, refused) = run(&env, &[&resolve[..], &["theirs"]].concat());
    assert_eq!(code, 2, "{refused}");
    assert!(
        refused.to_string().contains("says what agents may do"),
        "{refused}"
    );
    let (code, done) = run(&env, &[&resolve[..], &["ours"]].concat());
    assert_eq!(code, 0, "{done}");
    assert!(!env.project().join("safepoint.yaml").exists());
}

#[test]
fn pr_32_an_atlas_that_is_named_is_kept_as_it_is() {
    let (env, root) = project();
    env.write("project/safepoint.yaml", "atlases: [atlas.yaml]\n");
    let free = ASKS.split("policies:").next().unwrap();
    env.write("project/atlas.yaml", free);
    let (agent, directory) = apart(&env, &root);
    change(
        &directory,
        "atlas.yaml",
        "\"file.*\", ",
        "\"file.*\", \"net.*\", ",
    );
    change(&directory, "notes.txt", "one", "ONE");
    deliver(&env, &agent);
    let (code, held) = run(&env, &["workspace", "integrate", &agent.id, "--no-tui"]);
    assert_eq!(code, 9, "there is something to decide: {held}");
    let conflict = &held["integration"]["conflicts"][0];
    assert_eq!(conflict["path"], "atlas.yaml", "{held}");
    let resolve = ["workspace", "resolve", &agent.id, "c1", "--no-tui", "--use"];
    assert_eq!(run(&env, &[&resolve[..], &["theirs"]].concat()).0, 2);
    let (code, done) = run(&env, &[&resolve[..], &["ours"]].concat());
    assert_eq!(code, 0, "{done}");
    assert!(notes(&env).starts_with("ONE"));
    let kept = fs::read_to_string(env.project().join("atlas.yaml")).unwrap();
    assert_eq!(kept, free);
}

#[test]
fn pr_31_without_a_final_record_it_is_failed_and_salvaged() {
    let (env, root) = project();
    let worker = below(&env, &root, "worker");
    let made = record(&env, &worker, "half", &Value::Null, "provisional");
    complete(&env, &worker);
    let integrate = ["workspace", "integrate", &worker.id, "--no-tui"];
    let (code, refused) = run(&env, &integrate);
    assert_eq!(code, 9, "{refused}");
    env.json(&["workspace", "decline", &worker.id, "--revise"]);
    assert_eq!(run(&env, &integrate).0, 9, "it has failed");
    let done = env.json(&[&integrate[..], &["--salvage"]].concat());
    let one = &done["integration"];
    assert_eq!(
        (&one["mode"], &one["strategy"], &one["checkpoint_ref"]),
        (&json!("salvage"), &json!("evaluated"), &made)
    );
    let shown = env.json(&["workspace", "show", &worker.id]);
    assert_eq!(shown["workspace"]["state"], "failed", "it stays failed");
}

#[test]
fn pr_07_a_claim_that_the_directory_does_not_show_is_rejected() {
    let (env, root) = project();
    let (agent, directory) = apart(&env, &root);
    change(&directory, "notes.txt", "one", "ONE");
    let claimed = support::body("claims", &Value::Null, "final");
    let (code, reply) = ask(&env, &agent, &claimed);
    assert_eq!(
        (code, &reply["rejected"]["reason"]),
        (2, &json!("invalid_structure"))
    );
}

#[test]
fn pr_42_statements_name_files_by_the_digest_of_what_they_hold() {
    use sha2::Digest;
    let (env, root) = project();
    env.write("project/gone.txt", "gone\n");
    let (agent, directory) = apart(&env, &root);
    change(&directory, "notes.txt", "one", "ONE");
    fs::remove_file(directory.join("gone.txt")).unwrap();
    deliver(&env, &agent);
    let export = ["workspace", "export", &agent.id, "--format", "intoto"];
    let statement: Value = serde_json::from_str(env.run(&export).stdout.trim()).unwrap();
    let digest = sha2::Sha256::digest("ONE\ntwo\nthree\nfour\nfive\n");
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        statement["predicate"]["files"],
        json!([{"name": "gone.txt"}, {"name": "notes.txt", "digest": {"sha256": digest}}])
    );
}

#[test]
fn pr_07_in_a_repository_it_is_a_worktree_and_is_removed_at_the_end() {
    let (env, root) = project();
    git(&env.project(), &["init", "-q", "-b", "main"]);
    git(&env.project(), &["add", "-A"]);
    git(&env.project(), &["commit", "-qm", "first"]);
    let (mut agent, directory) = apart(&env, &root);
    assert!(directory.join(".git").is_file(), "a worktree");
    let moved = env.json(&["workspace", "migrate", &agent.id]);
    assert_eq!(text(&moved["path"]), directory.display().to_string());
    agent.token = text(&moved["token"]);
    let none = env.run(&["workspace", "list", "--confidence", "low"]);
    assert!(
        none.stderr.contains("no workspace is like that"),
        "{}",
        none.stderr
    );
    change(&directory, "notes.txt", "one", "ONE");
    deliver(&env, &agent);
    assert_eq!(
        run(&env, &["workspace", "remove", &agent.id]).0,
        9,
        "not yet"
    );
    env.json(&["workspace", "integrate", &agent.id, "--no-tui"]);
    env.json(&["workspace", "remove", &agent.id]);
    assert!(!directory.exists());
    assert!(notes(&env).starts_with("ONE"));
    let log = env.json(&["workspace", "log", &agent.id]);
    assert_eq!(
        log["checkpoints"].as_array().unwrap().len(),
        1,
        "the chain stays"
    );
}

#[test]
fn pr_07_what_a_session_does_there_carries_the_workspace() {
    let (env, root) = project();
    let (agent, directory) = apart(&env, &root);
    let place = directory.display().to_string();
    let touch = ["exec", "--no-tui", "--", "touch"];
    let (code, done) = run(&env, &[&["-C", &place], &touch[..], &["made.txt"]].concat());
    assert_eq!(code, 0, "{done}");
    let action = text(&done["action_id"]);
    let made = deliver(&env, &agent);
    assert!(made["actions"].to_string().contains(&action), "{made}");
    let entries = env.json(&["trail", "list", "--workspace", &agent.id]);
    let entries = entries["entries"].as_array().unwrap();
    let intended = entries
        .iter()
        .find(|entry| entry["kind"] == "action_intended");
    let intended = intended.unwrap_or_else(|| panic!("{entries:#?}"));
    assert_eq!(intended["action_id"], json!(action));
    assert_eq!(intended["body"]["workspace_id"], json!(agent.id));
    let log = env.json(&["-C", &place, "log"]);
    assert_eq!(log["actions"][0]["workspace_id"], json!(agent.id), "{log}");
    // Elsewhere nothing is said of it.
    assert_eq!(run(&env, &[&touch[..], &["here.txt"]].concat()).0, 0);
    let log = env.json(&["log"]);
    assert_eq!(log["actions"][0]["workspace_id"], json!(null));
    assert_eq!(env.json(&["workspace", "verify", &agent.id])["valid"], true);
}

#[test]
fn pr_07_the_directories_of_others_are_out_of_reach() {
    let (env, root) = project();
    let ((_, first), (_, second)) = (apart(&env, &root), apart(&env, &root));
    let place = first.display().to_string();
    let exec = |words: &[&str]| {
        let exec = ["-C", &place, "exec", "--no-tui", "--"];
        run(&env, &[&exec[..], words].concat())
    };
    for words in [&["cat", "notes.txt"][..], &["rm", "notes.txt"]] {
        let (code, done) = exec(words);
        assert_eq!(code, 0, "its own: {words:?}: {done}");
    }
    let other = second.join("notes.txt").display().to_string();
    for words in [&["cat", &other][..], &["rm", &other]] {
        let (code, denied) = exec(words);
        assert_eq!(
            (code, &denied["denial"]["code"]),
            (2, &json!("CONTROL_FORBIDDEN")),
            "{words:?}: {denied}"
        );
    }
    let keys = env.home().join("data/keys").display().to_string();
    assert_eq!(exec(&["ls", &keys]).0, 2, "nor is anything else of ours");
}

#[test]
fn pr_34_a_task_follows_its_workspace_to_the_end() {
    let env = env();
    let root = root(&env);
    let first = env.json(&["task", "create", "write"])["task"].clone();
    let id = text(&first["task_id"]);
    let second = env.json(&["task", "create", "review", "--after", &id]);
    let second = text(&second["task"]["task_id"]);
    let place = [
        "--parent",
        &root.id,
        "--role",
        "worker",
        "--directive",
        "go",
    ];
    let worker = support::create(&env, &[&place[..], &["--task", &id]].concat());
    assert_eq!(
        env.json(&["task", "show", &id])["task"]["status"],
        "in_progress"
    );
    let other = below(&env, &root, "worker");
    assert_eq!(
        run(&env, &["task", "assign", &second, &other.id]).0,
        9,
        "it waits"
    );
    let made = record(&env, &worker, "deliver", &Value::Null, "final");
    complete(&env, &worker);
    let task = env.json(&["task", "show", &id])["task"].clone();
    assert_eq!(
        (&task["status"], &task["checkpoint_ref"]),
        (&json!("completed"), &made)
    );
    env.json(&["workspace", "integrate", &worker.id, "--no-tui"]);
    assert_eq!(
        env.json(&["task", "show", &id])["task"]["status"],
        "integrated"
    );
    let assigned = env.json(&["task", "assign", &second, &other.id]);
    assert_eq!(assigned["task"]["status"], "in_progress");
    env.json(&["task", "cancel", &second]);
    assert_eq!(run(&env, &["task", "retry", &second]).0, 9);
    let (code, blank) = run(&env, &["task", "create", "  "]);
    assert_eq!(
        (code, &blank["error"]["name"]),
        (7, &json!("INVALID_INPUT"))
    );
    let again = ["workspace", "integrate", &worker.id, "--no-tui"];
    let (code, closed) = run(&env, &again);
    assert_eq!(
        (code, &closed["error"]["name"]),
        (9, &json!("WORKSPACE_STATE"))
    );
    let listed = env.json(&["task", "list", "--status", "cancelled"]);
    assert_eq!(listed["tasks"][0]["task_id"], json!(second));
}

#[test]
fn pr_20_a_budget_is_enforced_from_what_the_surface_reports() {
    let env = env();
    let root = root(&env);
    let place = [
        "--parent",
        &root.id,
        "--role",
        "worker",
        "--directive",
        "go",
    ];
    let worker = support::create(&env, &[&place[..], &["--budget-tokens", "1000"]].concat());
    let metered = env.json(&["workspace", "meter", &worker.id, "--tokens", "900"]);
    assert_eq!(metered["meter"]["tokens_consumed"], 900);
    env.json(&[
        "workspace",
        "meter",
        &worker.id,
        "--tokens",
        "200",
        "--cost",
        "0.5",
    ]);
    let shown = env.json(&["workspace", "show", &worker.id]);
    assert_eq!(shown["workspace"]["state"], "failed");
    let kinds = support::kinds(&env, &worker.id);
    assert!(kinds.contains(&"budget_warning".to_owned()), "{kinds:?}");
    assert!(kinds.contains(&"budget_exceeded".to_owned()), "{kinds:?}");
}

/// Changes the store behind our back.
fn tamper(env: &TestEnv, statements: &str) {
    let store = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    store.execute_batch(statements).unwrap();
}

#[test]
fn pr_16_a_flipped_bit_in_the_stored_files_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let (env, root) = project();
    let (work, place) = apart(&env, &root);
    change(&place, "notes.txt", "one", "ONE");
    let record = deliver(&env, &work);
    let good = env.json(&["workspace", "verify", &work.id]);
    assert_eq!(
        (&good["valid"], &good["files_read"]),
        (&json!(true), &json!(1)),
        "{good}"
    );
    for pack in fs::read_dir(env.objects().join("packs")).unwrap() {
        let pack = pack.unwrap().path();
        let mut bytes = fs::read(&pack).unwrap();
        // Behind the header, in the first object.
        bytes[60] ^= 1;
        fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&pack, bytes).unwrap();
    }
    let (code, bad) = run(&env, &["workspace", "verify", &work.id]);
    assert_eq!((code, &bad["valid"]), (1, &json!(false)), "{bad}");
    assert_eq!(bad["first_bad"]["id"], record["id"], "{bad}");
    assert!(
        text(&bad["first_bad"]["reason"]).contains("damaged"),
        "{bad}"
    );
}

#[test]
fn pr_16_a_tampered_record_is_recorded_and_never_taken_over() {
    let (env, root) = project();
    let (work, place) = apart(&env, &root);
    let (other, _) = apart(&env, &root);
    change(&place, "notes.txt", "one", "ONE");
    let record = deliver(&env, &work);
    let id = text(&record["id"]);
    tamper(
        &env,
        "DROP TRIGGER progress_records_no_update; \
         UPDATE progress_records SET body = CAST(replace(CAST(body AS TEXT), 'deliver', 'DELIVER') AS BLOB);",
    );
    let (code, _) = run(&env, &["workspace", "integrate", &work.id]);
    assert_ne!(code, 0);
    let told = support::kinds(&env, &work.id);
    assert!(told.contains(&"integration_aborted".to_owned()), "{told:?}");
    let all = env.run(&["trail", "export", "--format", "jsonl"]).stdout;
    let violations = all.matches("\"integrity_violation\"").count();
    assert!(violations >= 1 && all.contains(&id), "{all}");
    assert!(notes(&env).starts_with("one\n"), "the parent is untouched");
    // It is shown as what it is, and hides nobody else.
    let list = env.json(&["workspace", "list"]);
    let tampered = |wanted: &str| {
        let mut all = list["workspaces"].as_array().unwrap().iter();
        let found = all.find(|it| it["workspace_id"] == wanted).unwrap();
        (found["tampered"].clone(), found["state"].clone())
    };
    assert_eq!(tampered(&work.id), (json!(true), json!("failed")));
    assert_eq!(tampered(&other.id).0, json!(false));
    let shown = env.json(&["workspace", "show", &work.id]);
    assert_eq!(
        (&shown["workspace"]["tampered"], &shown["final"]),
        (&json!(true), &json!(null))
    );
    for one in [&work, &root] {
        let log = env.run(&["--json", "workspace", "log", &one.id]);
        assert_eq!(log.code, 0, "{log:?}");
        assert!(
            log.stdout.contains(&id) && !log.stdout.contains("DELIVER"),
            "{log:?}"
        );
    }
}

/// A repository with secrets in it, and a run in it.
fn repository() -> (TestEnv, Agent) {
    let env = env();
    let project = env.project();
    git(&project, &["init", "-q", "-b", "main"]);
    env.write("project/notes.txt", "one\n");
    env.write("project/.env", "KEY=committed\n");
    env.write("project/node_modules/x/index.js", "x\n");
    env.write("project/gen/out.txt", "out\n");
    env.write("project/safepoint.yaml", "exclude: [gen]\n");
    git(&project, &["add", "-A", "-f"]);
    git(&project, &["commit", "-qm", "first"]);
    let root = root(&env);
    (env, root)
}

fn fail(env: &TestEnv, agent: &Agent) {
    let (code, reply) = run(env, &["workspace", "state", &agent.id, "failed"]);
    assert_eq!(code, 0, "{reply}");
}

fn paths(notes: &Value) -> Vec<String> {
    let notes = notes.as_array().cloned().unwrap_or_default();
    notes.iter().map(|note| text(&note["path"])).collect()
}

#[test]
fn pr_07_what_is_committed_is_in_a_new_worktree_captured_or_not() {
    let (env, root) = repository();
    let (_, place) = apart(&env, &root);
    assert_eq!(git(&place, &["status", "--porcelain"]), "");
    let secret = fs::read_to_string(place.join(".env")).unwrap();
    assert_eq!(secret, "KEY=committed\n");
    assert!(place.join("node_modules/x/index.js").exists());
    assert!(place.join("gen/out.txt").exists());
}

#[test]
fn pr_07_what_a_record_leaves_out_is_named() {
    let (env, root) = repository();
    let (work, place) = apart(&env, &root);
    change(&place, "notes.txt", "one", "ONE");
    fs::write(place.join("conf.md"), format!("ghp_{}\n", "a1B2".repeat(9))).unwrap();
    fs::write(place.join("gen/more.txt"), "work\n").unwrap();
    let claim = |paths: Value| {
        json!({
            "type": "artifact", "intent": "claim", "parent": null, "status": "final",
            "payload": {"files_changed": paths, "content": "", "artifacts": []}, "confidence": "high",
        })
    };
    let (code, reply) = ask(&env, &work, &claim(json!(["notes.txt", "conf.md"])));
    let detail = text(&reply["rejected"]["detail"]);
    assert_eq!(code, 2, "{reply}");
    assert!(
        detail.contains("not held by any checkpoint: `conf.md` ("),
        "{detail}"
    );
    assert!(!detail.contains("unchanged"), "{detail}");
    let (code, reply) = ask(&env, &work, &claim(json!(["notes.txt"])));
    assert_eq!(code, 0, "{reply}");
    let named = paths(&reply["not_covered"]);
    // What is as git has it is nobody's work, and not spoken of.
    assert_eq!(named, ["conf.md", "gen/more.txt"]);
    complete(&env, &work);
    let (code, reply) = run(&env, &["workspace", "integrate", &work.id]);
    assert_eq!(code, 0, "{reply}");
    assert_eq!(paths(&reply["not_covered"]), named);
    // The only copy is not deleted unless that is asked for.
    let (code, refused) = run(&env, &["workspace", "remove", &work.id]);
    assert_ne!(code, 0, "{refused}");
    let why = refused.to_string();
    assert!(
        why.contains("conf.md") && why.contains("gen/more.txt"),
        "{why}"
    );
    assert!(!why.contains(".env"), "what git has is not lost: {why}");
    assert!(place.join("conf.md").exists());
    let (code, reply) = run(&env, &["workspace", "remove", &work.id, "--discard"]);
    assert_eq!(code, 0, "{reply}");
    assert_eq!(paths(&reply["discarded"]), ["conf.md", "gen/more.txt"]);
    assert!(!place.exists());
    env.json(&["show", &text(&reply["checkpoint_id"])]);
}

#[test]
fn pr_07_commits_of_an_agent_outlive_its_directory() {
    let (env, root) = repository();
    let (work, place) = apart(&env, &root);
    change(&place, "notes.txt", "one", "ONE");
    git(&place, &["commit", "-qam", "work"]);
    let commit = git(&place, &["rev-parse", "HEAD"]);
    let (idle, _) = apart(&env, &root);
    for agent in [&work, &idle] {
        fail(&env, agent);
        let (code, reply) = run(&env, &["workspace", "remove", &agent.id]);
        assert_eq!(code, 0, "{reply}");
        assert!(reply["checkpoint_id"].is_string(), "{reply}");
    }
    let kept = git(
        &env.project(),
        &[
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            "refs/safepoint",
        ],
    );
    let expected = format!("{} refs/safepoint/workspaces/{}", commit.trim(), work.id);
    assert_eq!(
        kept.trim(),
        expected,
        "only where there is something to keep"
    );
}

#[test]
fn pr_07_a_worktree_that_was_deleted_by_hand_is_forgotten_by_git() {
    let (env, root) = repository();
    let (work, place) = apart(&env, &root);
    change(&place, "notes.txt", "one", "ONE");
    git(&place, &["commit", "-qam", "work"]);
    fs::remove_dir_all(&place).unwrap();
    fail(&env, &work);
    let (code, reply) = run(&env, &["workspace", "remove", &work.id]);
    assert_eq!(
        (code, &reply["checkpoint_id"]),
        (0, &json!(null)),
        "{reply}"
    );
    let known = git(&env.project(), &["worktree", "list", "--porcelain"]);
    assert_eq!(known.matches("worktree ").count(), 1, "{known}");
    let kept = git(&env.project(), &["for-each-ref", "refs/safepoint"]);
    assert!(kept.contains(&work.id), "{kept}");
}
