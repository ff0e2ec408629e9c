//! What builds find behind the fence: caches of their own, and a word of ours where something is
//! refused that looks like an error of their own.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/client.rs"]
mod client;
#[path = "support/passage.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use client::{Claude, passes};
use serde_json::Value;
use support::{bare, entries, exec_command, is_denied, reply_of, run, runs, text};
use testkit::TestEnv;

const SAFEPOINT: &str = env!("CARGO_BIN_EXE_safepoint");

/// A project with a script.
fn project(script: &str) -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/run.sh", script);
    env
}

/// The private caches of agents.
fn private(env: &TestEnv) -> PathBuf {
    env.home().join("caches")
}

/// Runs the script with more variables.
#[track_caller]
fn runs_where(env: &TestEnv, variables: &[(&str, &Path)]) -> Value {
    let mut command = exec_command(env, &[], &["sh", "run.sh"]);
    command.envs(variables.iter().copied());
    let (code, reply) = reply_of(&mut command);
    assert_eq!(code, 0, "{reply:#}");
    reply
}

fn lines(reply: &Value) -> Vec<String> {
    text(&reply["stdout"]).lines().map(str::to_owned).collect()
}

/// What is told of refusals.
fn refusals(reply: &Value) -> Vec<String> {
    let refused = reply["refused"].as_array().unwrap();
    refused.iter().map(text).collect()
}

const SHOWS_CACHES: &str = "\
echo $XDG_CACHE_HOME
echo $npm_config_cache
mkdir -p $XDG_CACHE_HOME/pip $npm_config_cache/_npx && echo x > $XDG_CACHE_HOME/pip/made
";

#[test]
fn fe_07_tools_of_agents_have_caches_of_their_own_and_nothing_of_the_users() {
    let env = project(SHOWS_CACHES);
    let reply = runs(&env, &["sh", "run.sh"]);
    let place = private(&env);
    let shown = |path: &Path| path.to_str().unwrap().to_owned();
    assert_eq!(lines(&reply), [shown(&place), shown(&place.join("npm"))]);
    let mode = fs::metadata(&place).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(place.join("pip/made").exists() && place.join("npm/_npx").exists());
    // What a cache holds is nobody's work, and no reach outside.
    assert_eq!(
        reply["reached"]["outside"],
        serde_json::json!([]),
        "{reply:#}"
    );
    assert!(refusals(&reply).is_empty(), "{reply:#}");
    assert_eq!(reply["changes"], serde_json::json!([]), "{reply:#}");
    // Nothing was made in a home where the project needs nothing.
    assert!(!env.root().join("user/.npm").exists());
    // Another project finds what is there.
    let again = runs(&env, &["sh", "-c", "cat $XDG_CACHE_HOME/pip/made"]);
    assert_eq!(text(&again["stdout"]), "x\n");
}

#[test]
fn fe_07_a_variable_leads_to_the_private_cache_only_where_its_place_is_closed() {
    let env = project("echo $PIP_CACHE_DIR; echo x > $PIP_CACHE_DIR/made\n");
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let inside = env.project().join("cache");
    fs::create_dir(&inside).unwrap();
    let reply = runs_where(&env, &[("PIP_CACHE_DIR", &inside)]);
    assert_eq!(lines(&reply), [inside.to_str().unwrap()]);
    assert!(inside.join("made").exists());

    let reply = runs_where(&env, &[("PIP_CACHE_DIR", place.path())]);
    assert_eq!(lines(&reply), [private(&env).join("pip").to_str().unwrap()]);
    assert!(private(&env).join("pip/made").exists());
    assert!(!place.path().join("made").exists());
}

#[test]
fn fe_07_downloads_of_the_user_are_read_through_the_private_cache_and_stay_as_they_are() {
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let browser = place.path().join("ms-playwright/chromium-1");
    fs::create_dir_all(&browser).unwrap();
    fs::write(browser.join("chrome"), "browser").unwrap();
    let sourced = place.path().join("p10k-instant-prompt-ada.zsh");
    fs::write(&sourced, "prompt").unwrap();
    let env = project(
        "cd $XDG_CACHE_HOME/ms-playwright && cat chromium-1/chrome
echo bad 2>/dev/null > chromium-1/chrome && echo written
mkdir chromium-2 && echo new > chromium-2/chrome
echo bad 2>/dev/null > $OWN/p10k-instant-prompt-ada.zsh && echo written
true
",
    );
    let own = place.path();
    let reply = runs_where(&env, &[("XDG_CACHE_HOME", own), ("OWN", own)]);
    assert_eq!(text(&reply["stdout"]), "browser", "{reply:#}");
    assert_eq!(fs::read(browser.join("chrome")).unwrap(), b"browser");
    assert_eq!(fs::read(&sourced).unwrap(), b"prompt");
    let made = private(&env).join("ms-playwright/chromium-2/chrome");
    assert_eq!(fs::read(made).unwrap(), b"new\n");
    assert!(!place.path().join("ms-playwright/chromium-2").exists());
    assert_eq!(refusals(&reply).len(), 2, "{reply:#}");
}

/// A shell of Claude Code, which has been asked about the line.
#[track_caller]
fn call(env: &TestEnv, claude: &Claude<'_>, id: &str, line: &str) -> Output {
    assert_eq!(passes(&claude.asks(id, line)), None);
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r#"'"'"'"#));
    let inner = format!("true && eval {} < /dev/null", quoted(line));
    let program = safepoint_clients::shell_prefix(SAFEPOINT);
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("{} {}", quoted(&program), quoted(&inner))])
        .current_dir(env.project())
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in env.command(&[]).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.output().unwrap()
}

#[test]
fn fe_07_lines_of_clients_and_clients_themselves_have_the_same_caches() {
    let mut env = project(SHOWS_CACHES);
    env.set(
        "CLAUDE_CODE_SHELL_PREFIX",
        &safepoint_clients::shell_prefix(SAFEPOINT),
    );
    env.set("CLAUDE_CODE_SESSION_ID", "s-1");
    let claude = Claude::new(&env);
    let output = call(&env, &claude, "t-1", "sh run.sh");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let place = private(&env);
    assert!(
        told.starts_with(&format!("{}\n", place.display())),
        "{output:?}"
    );
    assert!(place.join("pip/made").exists());

    fs::remove_file(place.join("pip/made")).unwrap();
    let agent = env.write("project/agent.sh", "#!/bin/sh\nsh run.sh > shown\n");
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, reply) = run(&env, &["run", "--", "./agent.sh"]);
    assert_eq!(code, 0, "{reply:#}");
    let shown = fs::read_to_string(env.project().join("shown")).unwrap();
    assert!(
        shown.starts_with(&format!("{}\n", place.display())),
        "{shown}"
    );
    assert!(place.join("pip/made").exists());
}

#[test]
fn fe_07_a_refusal_says_whose_it_is_and_where_to_write_instead() {
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let out = place.path().join("out");
    let env = project(&format!("touch {}; true\n", out.display()));
    let reply = runs(&env, &["sh", "run.sh"]);
    assert!(!out.exists());
    let [told] = refusals(&reply).try_into().unwrap();
    for part in [
        format!("Safepoint's fence refused file.write {}", out.display()),
        "A person can allow it".to_owned(),
        "in a temporary folder instead".to_owned(),
    ] {
        assert!(told.contains(&part), "{told}");
    }
    // The control: what may be written is not told of.
    env.write("project/run.sh", "touch inside $XDG_CACHE_HOME/inside\n");
    let reply = runs(&env, &["sh", "run.sh"]);
    assert!(refusals(&reply).is_empty(), "{reply:#}");
}

#[test]
fn fe_03_a_program_that_builds_a_sandbox_is_told_why_it_cannot() {
    let env = project("unshare -U true || echo failed\n");
    let reply = runs(&env, &["sh", "run.sh"]);
    assert_eq!(text(&reply["stdout"]), "failed\n", "{reply:#}");
    let [told] = refusals(&reply).try_into().unwrap();
    assert!(told.contains("sandbox of its own (`unshare`)"), "{told}");
    assert!(told.contains("--no-sandbox"), "{told}");
    let ended = entries(&env, "action_ended");
    let refused = &ended.last().unwrap()["body"]["refused"];
    assert_eq!(refused[0]["action"], "unshare", "{refused:#}");
    // The control: a process without a sandbox.
    let reply = runs(&env, &["sh", "-c", "sh -c true && echo done"]);
    assert_eq!(text(&reply["stdout"]), "done\n");
    assert!(refusals(&reply).is_empty(), "{reply:#}");
}

/// What one check of `doctor` says.
#[track_caller]
fn check(command: &mut Command, name: &str) -> String {
    let (_, reply) = reply_of(command);
    let checks = reply["checks"].as_array().unwrap();
    let found = checks.iter().find(|it| it["name"] == name);
    text(&found.unwrap_or_else(|| panic!("{reply:#}"))["detail"])
}

#[test]
fn fe_03_the_doctor_names_programs_that_build_sandboxes() {
    let env = project("");
    for name in ["podman", "chromium"] {
        env.write(&format!("bin/{name}"), "");
    }
    let doctor = |path: &Path| {
        let mut command = env.command(&["--json", "doctor"]);
        check(command.env("PATH", path), "sandboxes")
    };
    let told = doctor(&env.root().join("bin"));
    assert_eq!(
        told,
        "these do not work behind the fence: podman; these work there with `--no-sandbox`: chromium"
    );
    let told = doctor(&env.root().join("empty"));
    assert!(told.contains("none that we know is installed"), "{told}");
}

#[test]
fn fe_07_the_doctor_says_where_caches_are() {
    let env = project("");
    let mut doctor = env.command(&["--json", "doctor"]);
    let told = check(&mut doctor, "caches");
    assert!(told.contains(private(&env).to_str().unwrap()), "{told}");
    assert!(told.contains("XDG_CACHE_HOME, npm_config_cache"), "{told}");
    assert!(!private(&env).exists(), "looking makes nothing");
    // The control: a variable that leads to a writable place is not changed.
    let mut doctor = env.command(&["--json", "doctor"]);
    let told = check(doctor.env("XDG_CACHE_HOME", env.project()), "caches");
    assert!(!told.contains("XDG_CACHE_HOME"), "{told}");
}

/// Starts a program where the kernel hands no calls over: `seccomp` fails as on one that cannot.
const WITHOUT_NOTIFICATION: &str = r#"
import ctypes, os, struct, sys
number = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 95), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program)) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"#;

/// The same command, on such a kernel.
fn without_notification(command: &Command) -> Command {
    let mut limited = Command::new("python3");
    limited
        .args(["-c", WITHOUT_NOTIFICATION])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .stdin(Stdio::null());
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            limited.env(name, value);
        }
    }
    limited
}

#[test]
fn fe_15_where_the_kernel_hands_no_calls_over_it_is_said_and_programs_are_asked_about() {
    let env = project("echo made > made\n");
    env.write("project/a", "content of a\n");
    let doctor = env.command(&["--json", "doctor"]);
    let told = check(&mut without_notification(&doctor), "fence");
    for part in [
        "the network, sockets with a path and metadata outside are open",
        "put before a person",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let script = exec_command(&env, &[], &["sh", "run.sh"]);
    let (code, reply) = reply_of(&mut without_notification(&script));
    is_denied(code, &reply, "APPROVAL_REQUIRED");
    assert!(!env.project().join("made").exists());
    // What its words tell goes on.
    let read = exec_command(&env, &[], &["cat", "a"]);
    let (code, reply) = reply_of(&mut without_notification(&read));
    assert_eq!(code, 0, "{reply:#}");

    // The control: a kernel that can.
    let told = check(&mut env.command(&["--json", "doctor"]), "fence");
    assert!(!told.contains("are open"), "{told}");
    runs(&env, &["sh", "run.sh"]);
    assert!(env.project().join("made").exists());
}
