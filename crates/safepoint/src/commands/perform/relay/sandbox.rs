//! Whether a client may run its lines in a sandbox of its own.
//!
//! Being wrong costs a process that nobody asks, or a line that does not run.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use safepoint_clients::{Client, Heard};
use serde_json::Value;

use super::super::configured::settings_of_client;
use crate::context::Context;
use crate::error::CliError;

/// So much of the end of a transcript is read.
const TAIL_BYTES: u64 = 512 << 10;

/// How Codex writes down, at the beginning of each turn, how it runs lines.
const CODEX_POLICY: &[u8] = b"\"sandbox_policy\":{\"type\":\"";
/// Without a sandbox.
const CODEX_OPEN: &[u8] = b"danger-full-access\"";

/// Whether the client that was heard may run a line in a sandbox.
pub(crate) fn may_be_sandboxed(context: &Context, heard: &Heard) -> Result<bool, CliError> {
    Ok(match heard.client {
        Client::Codex => !is_open_codex(heard.transcript.as_deref()),
        Client::ClaudeCode => settings_of_client(context)?.iter().any(has_sandbox),
        _ => false,
    })
}

fn has_sandbox(settings: &Value) -> bool {
    let enabled = settings.pointer("/sandbox/enabled");
    enabled.is_some_and(|enabled| enabled != &Value::Bool(false))
}

/// Whether Codex says that it uses no sandbox in this turn.
fn is_open_codex(transcript: Option<&Path>) -> bool {
    let Some(tail) = transcript.and_then(|path| tail_of(path).ok()) else {
        return false;
    };
    let last = tail
        .windows(CODEX_POLICY.len())
        .rposition(|part| part == CODEX_POLICY);
    let policy = last.and_then(|at| tail.get(at + CODEX_POLICY.len()..));
    policy.is_some_and(|policy| policy.starts_with(CODEX_OPEN))
}

fn tail_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fe_06_codex_says_how_it_runs_lines() {
        let place = tempfile::tempdir().unwrap();
        let said = |text: &str| {
            let file = place.path().join("rollout.jsonl");
            safepoint_store::durable::write(
                &file,
                text.as_bytes(),
                safepoint_store::durable::Access::Private,
            )
            .unwrap();
            is_open_codex(Some(&file))
        };
        let turn = |policy: &str| format!("{{\"sandbox_policy\":{{\"type\":\"{policy}\"}}}}\n");
        assert!(said(&turn("danger-full-access")));
        assert!(!said(&turn("workspace-write")));
        assert!(!said(""));
        let changed = turn("danger-full-access") + &turn("workspace-write");
        assert!(!said(&changed), "the last turn counts");
        assert!(!is_open_codex(None));
        assert!(!is_open_codex(Some(Path::new("/nowhere"))));
    }

    #[test]
    fn fe_06_claude_code_has_a_sandbox_where_settings_enable_it() {
        assert!(has_sandbox(&json!({"sandbox": {"enabled": true}})));
        assert!(has_sandbox(&json!({"sandbox": {"enabled": "yes"}})));
        assert!(!has_sandbox(&json!({"sandbox": {"enabled": false}})));
        assert!(!has_sandbox(&json!({"sandbox": {}})));
        assert!(!has_sandbox(&json!([])));
    }
}
