//! `install`, `uninstall` and `doctor` from outside: foreign settings stay, twice is once, and
//! a hook that does not deny is found out.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::TestEnv;

const CLIENTS: [&str; 6] = [
    "claude-code",
    "codex",
    "gemini",
    "copilot",
    "cursor",
    "opencode",
];

/// A person with a home of their own.
fn person() -> TestEnv {
    let mut env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    env.write("project/safepoint.yaml", "");
    fs::create_dir_all(env.root().join("person")).unwrap();
    let home = env.root().join("person").display().to_string();
    env.set("HOME", &home);
    env
}

fn claude_settings(env: &TestEnv) -> PathBuf {
    env.root().join("person/.claude/settings.json")
}

fn client(reply: &Value, name: &str) -> Value {
    let all = reply["clients"].as_array().unwrap();
    all.iter().find(|it| it["client"] == name).unwrap().clone()
}

#[track_caller]
fn doctor(env: &TestEnv) -> (i32, Value) {
    let run = env.run(&["--json", "doctor"]);
    (run.code, serde_json::from_str(&run.stdout).unwrap())
}

#[test]
fn su_04_foreign_settings_stay_and_come_back_exactly() {
    let env = person();
    let original = "{\n    \"permissions\": {\"allow\": [\"Bash(ls:*)\"]},\n    \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]}\n}\n";
    let path = env.write("person/.claude/settings.json", original);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let reply = env.json(&["install", "claude-code"]);
    assert_eq!(reply["changed"], true);
    let backup = reply["files"][0]["backup"].as_str().unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), original);
    let first = fs::read_to_string(&path).unwrap();
    let settings: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(settings["permissions"]["allow"][0], "Bash(ls:*)");
    assert!(first.contains("say done"));
    let hook = &settings["hooks"]["PreToolUse"][0]["hooks"][0];
    let command = hook["command"].as_str().unwrap();
    assert!(command.starts_with('/'), "by absolute path: {command}");
    assert_eq!(hook["onFailure"], "block");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // Once more is the same.
    let again = env.json(&["install", "claude-code"]);
    assert_eq!(again["changed"], false);
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    env.json(&["uninstall", "claude-code"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), original);
    assert!(!PathBuf::from(backup).exists());
}

#[test]
fn su_04_a_dry_run_writes_nothing_and_every_client_can_be_left_again() {
    let env = person();
    for name in CLIENTS {
        let reply = env.json(&["install", name, "--dry-run"]);
        let path = PathBuf::from(reply["files"][0]["path"].as_str().unwrap());
        assert!(!path.exists(), "{name}");
        assert!(
            reply["files"][0]["content"]
                .as_str()
                .unwrap()
                .contains("hook")
        );
        env.json(&["install", name]);
        assert!(path.exists(), "{name}");
        env.json(&["uninstall", name]);
        assert!(!path.exists(), "{name}");
    }
}

#[test]
fn su_04_settings_that_cannot_be_read_are_left_alone() {
    let env = person();
    let broken = "{ \"hooks\": // mine\n }";
    let path = env.write("person/.claude/settings.json", broken);
    let run = env.run(&["install", "claude-code"]);
    assert_eq!(run.code, 7, "{run:?}");
    assert!(run.stderr.contains("line 1"), "{run:?}");
    assert_eq!(fs::read_to_string(path).unwrap(), broken);
    assert_eq!(env.run(&["install", "someone"]).code, 7);
}

#[test]
fn su_04_a_link_to_settings_stays_a_link() {
    let env = person();
    let real = env.write("person/dotfiles/claude.json", "{}\n");
    fs::create_dir_all(env.root().join("person/.claude")).unwrap();
    symlink(&real, claude_settings(&env)).unwrap();
    env.json(&["install", "claude-code"]);
    assert!(
        claude_settings(&env)
            .symlink_metadata()
            .unwrap()
            .is_symlink()
    );
    assert!(
        fs::read_to_string(&real)
            .unwrap()
            .contains("hook claude-code")
    );
}

#[test]
fn su_04_the_project_is_another_place() {
    let env = person();
    env.json(&["install", "gemini", "--project"]);
    assert!(env.project().join(".gemini/settings.json").exists());
    assert!(!env.root().join("person/.gemini/settings.json").exists());
    let (code, reply) = doctor(&env);
    assert_eq!((code, &client(&reply, "gemini")["live"]), (0, &json!(true)));
}

#[test]
fn su_04_a_plugin_holds_hooks_tools_and_a_skill() {
    let env = person();
    let reply = env.json(&["install", "claude-code", "--plugin", "plugin"]);
    let root = env.project().join("plugin");
    assert!(
        root.join(".claude-plugin/plugin.json").exists(),
        "{reply:#}"
    );
    let hooks = fs::read_to_string(root.join("hooks/hooks.json")).unwrap();
    assert!(hooks.contains("hook claude-code"), "{hooks}");
    assert!(!claude_settings(&env).exists());
}

#[test]
fn su_04_the_doctor_proves_denial_and_leaves_nothing_behind() {
    let env = person();
    let (code, reply) = doctor(&env);
    assert_eq!(
        code, 0,
        "nothing is installed, and nothing is wrong: {reply:#}"
    );
    assert_eq!(client(&reply, "claude-code")["installed"], false);
    for name in ["claude-code", "gemini", "copilot", "opencode"] {
        env.json(&["install", name]);
    }
    let (code, reply) = doctor(&env);
    assert_eq!((code, &reply["ok"]), (0, &json!(true)), "{reply:#}");
    for name in ["claude-code", "gemini", "copilot", "opencode"] {
        let found = client(&reply, name);
        assert_eq!(found["live"], true, "{found:#}");
        assert!(!found["not_covered"].as_array().unwrap().is_empty());
    }
    // The canary sang elsewhere.
    let log = env.json(&["log"]);
    assert_eq!(log["actions"], json!([]));
    assert_eq!(env.json(&["hold", "list"])["holds"], json!([]));
}

#[test]
fn su_04_a_hook_that_lets_everything_through_is_found_out() {
    let env = person();
    env.json(&["install", "claude-code"]);
    let path = claude_settings(&env);
    let installed = fs::read_to_string(&path).unwrap();
    // A program of that name that always says yes.
    let fake = env.write(
        "person/bin/safepoint",
        "#!/bin/sh\ncat > /dev/null\nexit 0\n",
    );
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let real = env!("CARGO_BIN_EXE_safepoint");
    fs::write(&path, installed.replace(real, fake.to_str().unwrap())).unwrap();
    let (code, reply) = doctor(&env);
    assert_eq!(code, 1, "{reply:#}");
    assert_eq!(client(&reply, "claude-code")["live"], false);
    // One that is gone.
    fs::remove_file(&fake).unwrap();
    let (_, reply) = doctor(&env);
    assert_eq!(client(&reply, "claude-code")["live"], false, "{reply:#}");
    // Hooks that are switched off in another file.
    fs::write(&path, &installed).unwrap();
    env.write(
        "project/.claude/settings.local.json",
        "{\"disableAllHooks\": true}",
    );
    let (code, reply) = doctor(&env);
    assert_eq!(
        (code, &client(&reply, "claude-code")["live"]),
        (1, &json!(false))
    );
    fs::remove_file(env.project().join(".claude/settings.local.json")).unwrap();
    assert_eq!(doctor(&env).0, 0);
    // And in the same.
    let off = installed.replacen('{', "{\"disableAllHooks\": true,", 1);
    fs::write(&path, off).unwrap();
    let (code, reply) = doctor(&env);
    assert_eq!(code, 1, "{reply:#}");
    let detail = client(&reply, "claude-code")["detail"].clone();
    assert!(
        detail.as_str().unwrap().contains("disableAllHooks"),
        "{detail}"
    );
}

#[test]
fn su_04_codex_is_not_live_before_a_person_trusts_it() {
    let env = person();
    env.json(&["install", "codex"]);
    let (code, reply) = doctor(&env);
    assert_eq!(code, 1);
    let found = client(&reply, "codex");
    assert_eq!(
        (&found["installed"], &found["live"]),
        (&json!(true), &json!(false))
    );
    assert!(found["detail"].as_str().unwrap().contains("/hooks"));
    let hooks = env.root().join("person/.codex/hooks.json");
    let record = format!(
        "[hooks.state.\"{}:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:00\"\n",
        hooks.display()
    );
    env.write("person/.codex/config.toml", &record);
    let (code, reply) = doctor(&env);
    assert_eq!(
        (code, &client(&reply, "codex")["live"]),
        (0, &json!(true)),
        "{reply:#}"
    );
}

const SKILLS: [&str; 4] = [
    "safepoint-checkpoint",
    "safepoint-mutate",
    "safepoint-verify",
    "safepoint-rollback",
];

/// Where each client looks for skills, of a person and of a project.
const SKILL_PLACES: [(&str, &str, &str); 6] = [
    ("claude-code", ".claude/skills", ".claude/skills"),
    ("codex", ".codex/skills", ".agents/skills"),
    ("gemini", ".gemini/skills", ".gemini/skills"),
    ("copilot", ".copilot/skills", ".github/skills"),
    ("cursor", ".cursor/skills", ".cursor/skills"),
    ("opencode", ".config/opencode/skills", ".opencode/skills"),
];

#[test]
fn ag_11_skills_are_put_in_where_each_client_looks_and_taken_out_again() {
    let env = person();
    for (name, user, project) in SKILL_PLACES {
        let places = [
            (vec!["install", name], env.root().join("person").join(user)),
            (
                vec!["install", name, "--project"],
                env.project().join(project),
            ),
        ];
        for (words, place) in places {
            let dry = [words.as_slice(), &["--dry-run"]].concat();
            let listed = env.json(&dry)["files"].to_string();
            assert!(!place.exists(), "{name}: a dry run writes nothing");
            env.json(&words);
            for skill in SKILLS {
                let path = place.join(skill).join("SKILL.md");
                assert!(listed.contains(path.to_str().unwrap()), "{name}: {listed}");
                let text = fs::read_to_string(&path).unwrap();
                assert!(text.starts_with(&format!("---\nname: {skill}\n")), "{text}");
                assert!(text.contains(env!("CARGO_BIN_EXE_safepoint")), "{text}");
            }
            let (_, reply) = doctor(&env);
            let skills = client(&reply, name)["skills"].clone();
            assert_eq!(skills.as_array().unwrap().len(), SKILLS.len(), "{skills:#}");
            assert_eq!(skills[0]["state"], "ok", "{skills:#}");
            assert_eq!(env.json(&words)["changed"], false, "once more is the same");
            let mut remove = words.clone();
            remove[0] = "uninstall";
            env.json(&remove);
            assert!(!place.exists(), "{name}: nothing is left");
        }
    }
}

#[test]
fn ag_11_a_skill_that_a_person_changed_or_wrote_stays() {
    let env = person();
    let place = env.root().join("person/.claude/skills");
    env.write("person/.claude/skills/mine/SKILL.md", "mine\n");
    env.write(
        "person/.claude/skills/safepoint-verify/SKILL.md",
        "my own\n",
    );
    let reply = env.json(&["install", "claude-code"]);
    let change = |reply: &Value, skill: &str| {
        let files = reply["files"].as_array().unwrap().clone();
        let found = files
            .into_iter()
            .find(|file| file["path"].as_str().unwrap().contains(skill));
        found.unwrap()["change"].as_str().unwrap().to_owned()
    };
    assert_eq!(change(&reply, "safepoint-verify"), "kept");
    assert_eq!(change(&reply, "safepoint-mutate"), "created");
    let mutate = place.join("safepoint-mutate/SKILL.md");
    let text = fs::read_to_string(&mutate).unwrap();
    fs::write(&mutate, text.replace("## Rules", "## Our rules")).unwrap();
    let (_, told) = doctor(&env);
    assert!(
        client(&told, "claude-code")["skills"]
            .to_string()
            .contains("changed")
    );
    let reply = env.json(&["uninstall", "claude-code"]);
    assert_eq!(change(&reply, "safepoint-verify"), "kept");
    assert_eq!(change(&reply, "safepoint-mutate"), "kept");
    assert_eq!(change(&reply, "safepoint-rollback"), "deleted");
    assert!(mutate.exists() && place.join("mine/SKILL.md").exists());
    assert!(!place.join("safepoint-rollback").exists());
    assert!(!place.join("safepoint-checkpoint").exists());
}

#[test]
fn su_04_what_is_installed_for_a_user_needs_no_project() {
    let env = person();
    let home = env.root().join("person");
    let at_home = |words: &[&str]| {
        let mut command = env.command(words);
        command.current_dir(&home);
        let output = command.output().unwrap();
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap(), reply)
    };
    let (code, reply) = at_home(&["--json", "install", "gemini"]);
    assert_eq!((code, &reply["changed"]), (0, &json!(true)), "{reply:#}");
    assert!(home.join(".gemini/settings.json").exists());
    let (code, reply) = at_home(&["--json", "doctor"]);
    assert_eq!(code, 0, "{reply:#}");
    assert_eq!(client(&reply, "gemini")["live"], true, "{reply:#}");
    let project = &reply["checks"][0];
    assert_eq!(project["name"], "project");
    let detail = project["detail"].as_str().unwrap();
    assert!(detail.contains("only settings and skills of the user"));
    assert_eq!(at_home(&["--json", "uninstall", "gemini"]).0, 0);
    // What goes into a project still needs one.
    assert_eq!(at_home(&["install", "gemini", "--project"]).0, 7);
}
