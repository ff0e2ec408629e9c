//! Git that Safepoint runs itself, and repositories that are not the workspace's.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

#[expect(dead_code, reason = "other test files use the rest")]
mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use support::{commit, repository};
use testkit::TestEnv;
use testkit::tree::git;

/// Runs a script in a directory, as an action behind the fence.
fn act(env: &TestEnv, directory: &Path, script: &str) -> testkit::Run {
    fs::write(directory.join("work.sh"), format!("set -e\n{script}\n")).unwrap();
    let at = directory.to_str().unwrap();
    env.run(&[
        "-C", at, "exec", "--no-tui", "--json", "--", "sh", "work.sh",
    ])
}

/// A repository of somebody's, with a commit and one that is only in its work tree.
fn victim(place: &Path) -> PathBuf {
    let victim = place.join("victim");
    fs::create_dir(&victim).unwrap();
    git(&victim, &["init", "-q", "-b", "main"]);
    fs::write(victim.join("theirs.txt"), "theirs\n").unwrap();
    commit(&victim, "theirs");
    victim
}

/// Every file of a repository, by name and content.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false => found.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn fe_01_a_filter_of_a_submodule_is_not_run_by_a_look_at_what_git_overwrites() {
    let env = repository();
    let project = env.project();
    // Where nothing behind the agent's fence writes.
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let mark = outside.path().join("mark");
    let trap = env.root().join("trap");
    fs::write(&trap, format!("#!/bin/sh\ntouch {}\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!(
        "git config user.name a; git config user.email a@b
        git init -q sub; cd sub; git config user.name a; git config user.email a@b
        echo one > s.txt; git add .; git commit -qm s; cd ..
        git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub
        printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > .gitmodules
        git add .gitmodules; git commit -qm sub
        git -C sub config filter.evil.clean {trap}
        mkdir -p sub/.git/info; echo '* filter=evil' > sub/.git/info/attributes
        touch -d '1 hour ago' sub/s.txt
        mkdir -p node_modules/p; echo 1 > node_modules/p/i.js",
        trap = trap.display()
    );
    let planted = act(&env, &project, &script);
    assert_eq!(planted.code, 0, "{planted:?}");
    let _ = fs::remove_file(&mark);
    for line in ["git checkout -- .", "git reset --hard", "git stash -u"] {
        act(&env, &project, line);
        assert!(!mark.exists(), "{line}");
    }
    // The trap works: plain git runs it.
    git(&project, &["diff", "--name-only", "HEAD"]);
    assert!(mark.exists());
}

#[test]
fn fe_05_a_git_file_that_an_agent_wrote_leads_to_no_other_repository() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let project = env.project();
    env.write("project/a.txt", "one\n");
    let victim = victim(env.root());
    env.json(&["checkpoint"]);
    let script = format!("echo 'gitdir: {}' > .git", victim.join(".git").display());
    assert_eq!(act(&env, &project, &script).code, 0);
    env.write("project/a.txt", "two\n");
    let before = files(&victim);
    let made = env.json(&["checkpoint"]);
    assert!(
        made["warnings"]
            .to_string()
            .contains("not known to be its repository"),
        "{made:#}"
    );
    let id = made["checkpoint_id"].as_str().unwrap();
    git(&victim, &["commit", "-q", "--allow-empty", "-m", "since"]);
    let since = files(&victim);
    assert_ne!(before, since);
    env.run(&["rollback", id]);
    assert_eq!(files(&victim), since);
    // The workspace's own repository is used as ever.
    fs::remove_file(project.join(".git")).unwrap();
    git(&project, &["init", "-q", "-b", "main"]);
    commit(&project, "mine");
    env.write("project/a.txt", "three\n");
    env.json(&["checkpoint"]);
    let kept = git(&project, &["for-each-ref"]) + &git(&project, &["stash", "list"]);
    assert!(kept.contains("safepoint"), "{kept}");
}

#[test]
fn st_13_a_repository_that_its_person_turned_into_a_linked_tree_is_accepted_once() {
    let env = repository();
    let (project, root) = (env.project(), env.root());
    env.json(&["checkpoint"]);
    // The repository goes elsewhere, and the project is one of its work trees from then on.
    let main = root.join("main");
    fs::create_dir(&main).unwrap();
    fs::rename(project.join(".git"), main.join(".git")).unwrap();
    let made = root.join("made");
    git(
        &main,
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "side",
            made.to_str().unwrap(),
        ],
    );
    fs::rename(made.join(".git"), project.join(".git")).unwrap();
    git(&main, &["worktree", "repair", project.to_str().unwrap()]);
    let refused = env.json(&["checkpoint"]);
    let warnings = refused["warnings"].to_string();
    assert!(
        warnings.contains("`--accept-repository` of `init`"),
        "{refused:#}"
    );

    let words = ["init", "--accept-repository", "--yes"];
    // Not by an agent, and not without being asked.
    let mut agent = env.command(&words);
    let run = agent.env("SAFEPOINT_AGENT", "someone").output().unwrap();
    assert_eq!(run.status.code(), Some(7), "{run:?}");
    assert_eq!(env.run(&["init", "--accept-repository"]).code, 7);
    let accepted = env.json(&words);
    let repository = accepted["accepted_repository"].as_str().unwrap();
    assert!(repository.contains("worktrees"), "{accepted:#}");
    let told = env.json(&["trail", "list", "--kind", "repository_accepted"]);
    assert_eq!(told["entries"].as_array().unwrap().len(), 1, "{told:#}");

    let kept = env.json(&["checkpoint"]);
    assert_eq!(
        kept["warnings"].to_string().find("--accept-repository"),
        None
    );
    let head = git(&project, &["rev-parse", "HEAD"]);
    fs::write(project.join("more"), "more\n").unwrap();
    commit(&project, "more");
    assert_ne!(git(&project, &["rev-parse", "HEAD"]), head);
    env.json(&["rollback", kept["checkpoint_id"].as_str().unwrap()]);
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head);

    // Its own repository needs no leave.
    let own = env.run(&[
        "-C",
        main.to_str().unwrap(),
        "init",
        "--accept-repository",
        "--yes",
    ]);
    assert_eq!(own.code, 8, "{own:?}");
}

#[test]
fn fe_05_a_link_in_a_git_directory_is_not_written_through() {
    let env = repository();
    let (project, root) = (env.project(), env.root());
    let linked = root.join("linked");
    let add = ["worktree", "add", "-q", linked.to_str().unwrap(), "other"];
    git(&project, &add);
    let own = project.join(".git/worktrees/linked");
    fs::create_dir(own.join("d")).unwrap();
    fs::write(own.join("d/file"), "captured\n").unwrap();
    let at = linked.to_str().unwrap();
    let made = env.json(&["-C", at, "checkpoint"]);
    let id = made["checkpoint_id"].as_str().unwrap();
    // As a file it comes back, and behind a link it does not.
    fs::write(own.join("d/file"), "changed\n").unwrap();
    env.json(&["-C", at, "rollback", id]);
    assert_eq!(fs::read(own.join("d/file")).unwrap(), b"captured\n");
    let outside = root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "theirs\n").unwrap();
    fs::remove_dir_all(own.join("d")).unwrap();
    symlink(&outside, own.join("d")).unwrap();
    let reply = env.json(&["-C", at, "rollback", id]);
    assert_eq!(reply["verification"]["match"], true, "{reply:#}");
    assert_eq!(fs::read(own.join("d/file")).unwrap(), b"captured\n");
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"theirs\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn fe_05_directories_of_a_repository_that_lead_out_are_not_written_through() {
    let env = repository();
    let (project, outside) = (env.project(), env.root().join("outside"));
    fs::create_dir(&outside).unwrap();
    env.json(&["checkpoint", "--type", "git_stash"]);
    // The control: it does write there.
    let kept = || git(&project, &["for-each-ref"]) + &git(&project, &["stash", "list"]);
    assert!(kept().contains("refs/stash"), "{}", kept());
    for (number, name) in ["objects", "refs", "logs"].into_iter().enumerate() {
        let place = project.join(".git").join(name);
        let aside = outside.join(name);
        fs::rename(&place, &aside).unwrap();
        symlink(&aside, &place).unwrap();
        env.write("project/changed.txt", &format!("changed {number}\n"));
        let before = files(&outside);
        env.run(&["checkpoint", "--type", "git_stash"]);
        assert_eq!(files(&outside), before, "{name}");
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
    }
    let whole = outside.join("git");
    fs::rename(project.join(".git"), &whole).unwrap();
    symlink(&whole, project.join(".git")).unwrap();
    let before = files(&outside);
    env.run(&["checkpoint", "--type", "git_stash"]);
    assert_eq!(files(&outside), before);
}

#[test]
fn fe_01_a_work_tree_of_another_repository_is_not_taken_over() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    // Temporary folders can be written from behind the fence.
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let victim = victim(place.path());
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    let tree = temporary.path().join("tree");
    let add = ["worktree", "add", "-q", "-b", "theirs"];
    git(&victim, &[&add[..], &[tree.to_str().unwrap()]].concat());
    let own = temporary.path().join("own");
    git(
        &victim,
        &[&add[..4], &["mine", own.to_str().unwrap()]].concat(),
    );
    let project = env.project();
    git(&project, &["init", "-q", "-b", "main"]);
    env.write("project/a.txt", "one\n");
    commit(&project, "mine");
    let hook = victim.join(".git/hooks/post-checkout");
    let write = format!(
        "mkdir -p {d}/hooks; echo evil > {d}/hooks/post-checkout",
        d = victim.join(".git").display()
    );
    // The control: of its own work tree the repository can be written.
    assert_eq!(act(&env, &own, &write).code, 0);
    fs::remove_file(&hook).unwrap();
    assert_ne!(act(&env, &project, &write).code, 0);
    assert!(!hook.exists());
    let script = format!(
        "mv .git gitold; rm -rf {tree}; ln -s \"$PWD\" {tree}
        echo 'gitdir: {git}' > .git",
        tree = tree.display(),
        git = victim.join(".git/worktrees/tree").display(),
    );
    assert_eq!(act(&env, &project, &script).code, 0);
    assert_ne!(act(&env, &project, &write).code, 0);
    assert!(!hook.exists());
    // Nor where the repository names the workspace, but was not its own when it was first seen.
    let back = victim.join(".git/worktrees/tree/gitdir");
    fs::write(&back, format!("{}\n", project.join(".git").display())).unwrap();
    assert_ne!(act(&env, &project, &write).code, 0);
    assert!(!hook.exists());
}
