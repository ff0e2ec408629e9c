//! Codex skips a hook, without a word, until a person has looked at exactly this one. Codex
//! itself says whether one has.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::context::Context;

/// How long Codex may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

const NOT_TRUSTED: &str =
    "Codex skips hooks until you have looked at them: open Codex and say yes under `/hooks`";

/// Why Codex would not run the hooks of `place`, if it would not.
pub(super) fn skips(context: &Context, place: &Path) -> Option<String> {
    let search = context.environment.path("PATH").unwrap_or_default();
    let program = std::env::split_paths(&search)
        .map(|directory| directory.join("codex"))
        .find(|program| program.is_file());
    let asked = program.and_then(|program| ask(context, &program));
    match asked {
        Some(hooks) => untrusted(&hooks, place),
        None => no_record(context, place),
    }
}

/// What Codex says of its hooks here; `None` where it does not answer.
fn ask(context: &Context, program: &Path) -> Option<Value> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the client, which knows best what it runs"
    )]
    let mut child = Command::new(program)
        .arg("app-server")
        .current_dir(&context.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let mut input = child.stdin.take()?;
    let about = json!({"clientInfo": {"name": "safepoint", "title": "Safepoint",
        "version": env!("CARGO_PKG_VERSION")}});
    let said = [
        json!({"id": 1, "method": "initialize", "params": about}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "hooks/list", "params": {"cwds": [context.directory]}}),
    ];
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if message.get("id") == Some(&json!(2)) {
                let _ = send.send(message);
                return;
            }
        }
    });
    let lines = said.iter().map(|message| format!("{message}\n"));
    let written = input.write_all(lines.collect::<String>().as_bytes());
    let answer = match written.and_then(|()| input.flush()) {
        Ok(()) => receive.recv_timeout(PATIENCE).ok(),
        Err(_) => None,
    };
    let _ = child.kill();
    let _ = child.wait();
    answer?.get("result").cloned()
}

/// What of our hooks Codex would not run.
fn untrusted(answer: &Value, place: &Path) -> Option<String> {
    let list = |value: &Value, name: &str| -> Vec<Value> {
        let list = value.get(name).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let text = |hook: &Value, name: &str| {
        let text = hook.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let hooks = list(answer, "data")
        .iter()
        .flat_map(|one| list(one, "hooks"))
        .filter(|hook| Path::new(&text(hook, "sourcePath")) == place)
        .filter(|hook| text(hook, "command").ends_with(" hook codex"))
        .collect::<Vec<_>>();
    if hooks.is_empty() {
        return Some("Codex does not read these hooks here".to_owned());
    }
    let runs = |hook: &Value| {
        let trusted = matches!(text(hook, "trustStatus").as_str(), "trusted" | "managed");
        trusted && hook.get("enabled") == Some(&json!(true))
    };
    match hooks.iter().all(runs) {
        true => None,
        false => Some(NOT_TRUSTED.to_owned()),
    }
}

/// Where there is no Codex to be asked: whether it has written down that somebody looked.
fn no_record(context: &Context, place: &Path) -> Option<String> {
    let variables = &context.environment;
    let home = variables
        .path("CODEX_HOME")
        .or_else(|| Some(variables.path("HOME")?.join(".codex")));
    let config: PathBuf = home.unwrap_or_default().join("config.toml");
    let config = std::fs::read_to_string(config).unwrap_or_default();
    let record = format!("[hooks.state.\"{}:pre_tool_use:", place.display());
    match config.lines().any(|line| line.starts_with(&record)) {
        true => None,
        false => Some(NOT_TRUSTED.to_owned()),
    }
}
