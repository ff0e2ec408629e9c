//! A call as a client would say it, to try a hook with.

use std::path::Path;

use serde_json::{Value, json};

use crate::{Client, Wire};

/// Before a shell runs `line` in `directory`.
pub fn canary(client: Client, directory: &Path, line: &str) -> String {
    const NAME: &str = "safepoint-doctor";
    let here = directory.to_string_lossy();
    let said: Value = match client {
        Client::ClaudeCode | Client::Codex => json!({
            "session_id": NAME, "transcript_path": "/dev/null", "cwd": here,
            "permission_mode": "default", "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": line}, "tool_use_id": NAME,
        }),
        Client::Gemini => json!({
            "session_id": NAME, "transcript_path": "/dev/null", "cwd": here,
            "hook_event_name": "BeforeTool", "timestamp": "2026-01-01T00:00:00.000Z",
            "tool_name": "run_shell_command", "tool_input": {"command": line},
        }),
        Client::Copilot => json!({
            "sessionId": NAME, "timestamp": 0, "cwd": here,
            "toolName": "bash", "toolArgs": {"command": line},
        }),
        Client::Cursor => json!({
            "conversation_id": NAME, "generation_id": NAME, "workspace_roots": [here],
            "hook_event_name": "beforeShellExecution", "command": line, "cwd": here,
        }),
        Client::Opencode => json!({
            "hook_event_name": "tool.execute.before", "cwd": here, "worktree": here,
            "tool_name": "bash", "tool_input": {"command": line},
            "input": {"tool": "bash", "sessionID": NAME, "callID": NAME},
            "output": {"args": {"command": line}},
        }),
    };
    said.to_string()
}

/// Whether a client takes an answer for a refusal.
pub fn is_refusal(wire: &Wire) -> bool {
    let denies = |value: &Value| {
        let words = [
            "/hookSpecificOutput/permissionDecision",
            "/permissionDecision",
            "/permission",
            "/decision",
        ];
        let mut words = words
            .into_iter()
            .filter_map(|at| value.pointer(at)?.as_str());
        words.any(|word| matches!(word, "deny" | "block"))
    };
    let said = serde_json::from_str::<Value>(&wire.stdout);
    (wire.exit == 2 && !wire.stderr.trim().is_empty()) || said.is_ok_and(|said| denies(&said))
}
