//! What the tools of each client mean.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod common;

use std::path::PathBuf;

use safepoint_clients::{Client, Ended, Event, FileChange, Tool, hear};
use serde_json::{Value, json};

/// The document of a call before it is made, or of one after with `result`.
fn document(client: Client, name: &str, input: Value, result: Option<Value>) -> Vec<u8> {
    let mut document = match client {
        Client::Copilot => json!({"sessionId": "s", "cwd": "/w", "toolName": name,
            "toolArgs": input}),
        Client::Opencode => json!({"hook_event_name": "tool.execute.before", "cwd": "/w",
            "tool_name": name, "tool_input": input, "input": {"sessionID": "s"}}),
        _ => json!({"session_id": "s", "cwd": "/w", "tool_name": name, "tool_input": input,
        "hook_event_name": match client {
            Client::Gemini => "BeforeTool",
            Client::Cursor => "preToolUse",
            _ => "PreToolUse",
        }}),
    };
    if let Some(result) = result {
        let (key, event) = match client {
            Client::ClaudeCode | Client::Codex => ("tool_response", "PostToolUse"),
            Client::Gemini => ("tool_response", "AfterTool"),
            Client::Cursor => ("tool_output", "postToolUse"),
            Client::Copilot => ("toolResult", ""),
            Client::Opencode => ("output", "tool.execute.after"),
        };
        document[key] = result;
        if client != Client::Copilot {
            document["hook_event_name"] = json!(event);
        }
    }
    document.to_string().into_bytes()
}

fn tool(client: Client, name: &str, input: Value) -> Result<Tool, String> {
    let heard = hear(client, &document(client, name, input, None), common::here());
    match heard.map_err(|unheard| unheard.reason)?.event {
        Event::Before(call) => Ok(call.tool),
        other => panic!("{other:?}"),
    }
}

fn ended(client: Client, name: &str, input: Value, result: Value) -> Ended {
    let document = document(client, name, input, Some(result));
    match hear(client, &document, common::here()).unwrap().event {
        Event::After { ended, .. } => ended,
        other => panic!("{other:?}"),
    }
}

fn shell(line: &str, directory: Option<&str>, background: bool, field: &'static str) -> Tool {
    Tool::Shell {
        line: line.to_owned(),
        directory: directory.map(PathBuf::from),
        background,
        field,
    }
}

fn writes(path: &str) -> Tool {
    Tool::Files(vec![FileChange::Write(PathBuf::from(path))])
}

fn reads(paths: &[&str]) -> Tool {
    Tool::Read(paths.iter().map(PathBuf::from).collect())
}

fn fetches(url: Option<&str>) -> Tool {
    Tool::Fetch {
        url: url.map(str::to_owned),
    }
}

fn server(server: &str, tool: &str) -> Tool {
    Tool::Mcp {
        server: server.to_owned(),
        tool: tool.to_owned(),
    }
}

/// Each tool, what it is given, what that means.
fn check(client: Client, calls: &[(&str, Value, Tool)]) {
    for (name, input, expected) in calls {
        let found = tool(client, name, input.clone());
        assert_eq!(found.as_ref(), Ok(expected), "{client} {name} {input}");
    }
}

#[test]
fn su_05_claude_code_tools() {
    check(
        Client::ClaudeCode,
        &[
            (
                "Bash",
                json!({"command": "ls"}),
                shell("ls", None, false, "command"),
            ),
            (
                "Bash",
                json!({"command": "npm start", "run_in_background": true}),
                shell("npm start", None, true, "command"),
            ),
            (
                "Monitor",
                json!({"command": "sync"}),
                shell("sync", None, true, "command"),
            ),
            ("Read", json!({"file_path": "/w/a"}), reads(&["/w/a"])),
            (
                "Write",
                json!({"file_path": "/w/a", "content": ""}),
                writes("/w/a"),
            ),
            (
                "MultiEdit",
                json!({"file_path": "a", "edits": []}),
                writes("a"),
            ),
            (
                "NotebookEdit",
                json!({"notebook_path": "/w/n.ipynb"}),
                writes("/w/n.ipynb"),
            ),
            ("Glob", json!({"pattern": "**/*.rs"}), reads(&["."])),
            (
                "Glob",
                json!({"pattern": "/etc/*", "path": "/w"}),
                reads(&["/w", "/etc"]),
            ),
            ("Glob", json!({"pattern": "../x/*"}), reads(&[".", "../x"])),
            ("Glob", json!({"pattern": "*/../../x"}), reads(&[".", "/"])),
            (
                "Glob",
                json!({"pattern": "{/etc/passwd,a}"}),
                reads(&[".", "/"]),
            ),
            ("Glob", json!({"pattern": "*.{rs,toml}"}), reads(&["."])),
            (
                "Grep",
                json!({"pattern": "/x", "path": "src"}),
                reads(&["src"]),
            ),
            ("LS", json!({"path": "/w"}), reads(&["/w"])),
            (
                "WebFetch",
                json!({"url": "https://a.example"}),
                fetches(Some("https://a.example")),
            ),
            ("WebSearch", json!({"query": "a"}), fetches(None)),
            ("Task", json!({"prompt": "a"}), Tool::Delegate),
            ("Agent", json!({"prompt": "a"}), Tool::Delegate),
            ("TodoWrite", json!({"todos": []}), Tool::Own),
            ("AskUserQuestion", json!({"questions": []}), Tool::Own),
            ("KillShell", json!({"shell_id": "1"}), Tool::Own),
            ("mcp__a__b__c", json!({}), server("a", "b__c")),
            (
                "ReadMcpResourceTool",
                json!({"server": "a", "uri": "x"}),
                server("a", "resources/read"),
            ),
            ("mcp__a", json!({}), Tool::Unknown),
            ("PowerShell", json!({"command": "ls"}), Tool::Unknown),
            ("bash", json!({"command": "ls"}), Tool::Unknown),
            ("EnterWorktree", json!({}), Tool::Unknown),
        ],
    );
}

#[test]
fn su_05_codex_tools() {
    check(
        Client::Codex,
        &[
            (
                "Bash",
                json!({"command": "ls"}),
                shell("ls", None, false, "command"),
            ),
            (
                "shell",
                json!({"command": ["bash", "-lc", "rm -rf src"], "workdir": "/w/a"}),
                shell("rm -rf src", Some("/w/a"), false, "command"),
            ),
            (
                "local_shell",
                json!({"command": ["echo", "it's", ""]}),
                shell(r"echo 'it'\''s' ''", None, false, "command"),
            ),
            (
                "exec_command",
                json!({"cmd": "ls"}),
                shell("ls", None, false, "cmd"),
            ),
            (
                "write_stdin",
                json!({"chars": "y\n"}),
                shell("y\n", None, false, "chars"),
            ),
            ("update_plan", json!({"plan": []}), Tool::Own),
            ("view_image", json!({"path": "a.png"}), reads(&["a.png"])),
            ("web_search", json!({}), fetches(None)),
            ("mcp__x__y", json!({}), server("x", "y")),
            ("spawn_agent", json!({}), Tool::Delegate),
            ("something", json!({}), Tool::Unknown),
        ],
    );
    let patch = "*** Begin Patch\n*** Add File: a\n+*** Delete File: not\n*** Update File: b\n\
        *** Move to: c\n@@ x\n-1\n+2\n*** End of File\n*** Delete File: d\n*** Update File: e\n\
        @@\n 1\n\n*** End Patch";
    let expected = vec![
        FileChange::Write("a".into()),
        FileChange::Move {
            from: "b".into(),
            to: "c".into(),
        },
        FileChange::Delete("d".into()),
        FileChange::Write("e".into()),
    ];
    check(
        Client::Codex,
        &[(
            "apply_patch",
            json!({"command": patch}),
            Tool::Files(expected),
        )],
    );
}

#[test]
fn su_05_a_patch_that_is_not_understood_is_refused() {
    for (patch, expected) in [
        ("", "does not begin"),
        ("*** Begin Patch", "does not end"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\n*** Add File: a\n+x", "does not end"),
        (
            "*** Begin Patch\n*** Add File: \n+x\n*** End Patch",
            "line 2",
        ),
        (
            "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
            "line 3",
        ),
        (
            "*** Begin Patch\n*** Rename File: a\n*** End Patch",
            "line 2",
        ),
        (
            "*** Begin Patch\n*** Add File: a\n*** Move to: b\n*** End Patch",
            "line 3",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n+x\n *** Delete File: b\n*** End Patch",
            "line 5",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n+x\r*** Delete File: b\n*** End Patch",
            "carriage",
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n*** Delete File: b",
            "does not end",
        ),
    ] {
        for client in [Client::Codex, Client::Copilot] {
            let why = tool(client, "apply_patch", json!({"command": patch})).unwrap_err();
            assert!(why.contains(expected), "{patch:?}: {why}");
        }
    }
}

#[test]
fn su_05_gemini_tools() {
    check(
        Client::Gemini,
        &[
            (
                "run_shell_command",
                json!({"command": "ls", "dir_path": "src", "is_background": true}),
                shell("ls", Some("src"), true, "command"),
            ),
            (
                "run_shell_command",
                json!({"command": "ls", "directory": ""}),
                shell("ls", None, false, "command"),
            ),
            (
                "write_file",
                json!({"file_path": "/w/a", "content": ""}),
                writes("/w/a"),
            ),
            ("replace", json!({"file_path": "/w/a"}), writes("/w/a")),
            (
                "read_file",
                json!({"absolute_path": "/w/a"}),
                reads(&["/w/a"]),
            ),
            (
                "read_many_files",
                json!({"paths": ["src/**", "/etc/passwd", "../b"]}),
                reads(&[".", "/etc/passwd", "../b"]),
            ),
            ("list_directory", json!({"dir_path": "/w"}), reads(&["/w"])),
            ("glob", json!({"pattern": "*.rs"}), reads(&["."])),
            ("grep_search", json!({"pattern": "x"}), reads(&["."])),
            (
                "web_fetch",
                json!({"prompt": "read https://a.example now"}),
                fetches(Some("https://a.example")),
            ),
            (
                "web_fetch",
                json!({"prompt": "https://a.example https://b.example"}),
                fetches(None),
            ),
            ("google_web_search", json!({"query": "x"}), fetches(None)),
            ("save_memory", json!({"fact": "x"}), Tool::Own),
            ("delegate_to_agent", json!({}), Tool::Delegate),
            ("mcp_mini_echo", json!({}), Tool::Unknown),
        ],
    );
    let both = json!({"command": "ls", "dir_path": "a", "directory": "b"});
    let why = tool(Client::Gemini, "run_shell_command", both).unwrap_err();
    assert!(why.contains("which differ"), "{why}");
}

#[test]
fn su_05_copilot_tools() {
    check(
        Client::Copilot,
        &[
            (
                "bash",
                json!({"command": "ls", "mode": "sync"}),
                shell("ls", None, false, "command"),
            ),
            (
                "bash",
                json!({"command": "ls", "mode": "async"}),
                shell("ls", None, true, "command"),
            ),
            (
                "Bash",
                json!({"command": "ls"}),
                shell("ls", None, false, "command"),
            ),
            (
                "write_bash",
                json!({"input": "y{enter}", "shellId": "0"}),
                shell("y{enter}", None, false, "input"),
            ),
            (
                "create",
                json!({"path": "/w/a", "file_text": ""}),
                writes("/w/a"),
            ),
            ("edit", json!({"path": "/w/a"}), writes("/w/a")),
            ("view", json!({"path": "/w/a"}), reads(&["/w/a"])),
            (
                "str_replace_editor",
                json!({"command": "view", "path": "/w/a"}),
                reads(&["/w/a"]),
            ),
            (
                "str_replace_editor",
                json!({"command": "create", "path": "/w/a"}),
                writes("/w/a"),
            ),
            (
                "apply_patch",
                json!("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"),
                writes("a"),
            ),
            (
                "grep",
                json!({"pattern": "x", "paths": ["a", "b"]}),
                reads(&["a", "b"]),
            ),
            (
                "web_fetch",
                json!({"url": "https://a.example"}),
                fetches(Some("https://a.example")),
            ),
            ("task", json!({}), Tool::Delegate),
            ("report_intent", json!({}), Tool::Own),
            ("stop_bash", json!({}), Tool::Own),
            ("mini-echo", json!({}), server("mini", "echo")),
            (
                "github-mcp-server-get_me",
                json!({}),
                server("github-mcp-server", "get_me"),
            ),
            ("a-b-c", json!({}), Tool::Unknown),
        ],
    );
}

#[test]
fn su_05_opencode_tools() {
    check(
        Client::Opencode,
        &[
            (
                "bash",
                json!({"command": "ls", "workdir": "/w/a"}),
                shell("ls", Some("/w/a"), false, "command"),
            ),
            ("write", json!({"filePath": "/w/a"}), writes("/w/a")),
            ("multiedit", json!({"filePath": "/w/a"}), writes("/w/a")),
            (
                "patch",
                json!({"patchText": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}),
                writes("a"),
            ),
            ("read", json!({"filePath": "/w/a"}), reads(&["/w/a"])),
            ("list", json!({}), reads(&["."])),
            (
                "webfetch",
                json!({"url": "https://a.example"}),
                fetches(Some("https://a.example")),
            ),
            ("task", json!({}), Tool::Delegate),
            ("todowrite", json!({}), Tool::Own),
            ("mini_echo", json!({}), Tool::Unknown),
        ],
    );
}

#[test]
fn su_05_cursor_tools() {
    check(
        Client::Cursor,
        &[
            (
                "Shell",
                json!({"command": "ls", "is_background": true}),
                shell("ls", None, true, "command"),
            ),
            ("StrReplace", json!({"path": "/w/a"}), writes("/w/a")),
            (
                "EditNotebook",
                json!({"target_notebook": "/w/n"}),
                writes("/w/n"),
            ),
            ("Read", json!({"target_file": "/w/a"}), reads(&["/w/a"])),
            (
                "Glob",
                json!({"glob_pattern": "/etc/*"}),
                reads(&[".", "/etc"]),
            ),
            (
                "CallMcpTool",
                json!({"server": "a", "toolName": "b"}),
                server("a", "b"),
            ),
            ("Task", json!({}), Tool::Delegate),
            ("TodoWrite", json!({}), Tool::Own),
        ],
    );
}

/// A known tool is never taken for harmless when its input is odd.
#[test]
fn su_05_a_known_tool_without_its_fields_is_refused() {
    for (client, name) in [
        (Client::ClaudeCode, "Write"),
        (Client::ClaudeCode, "Read"),
        (Client::ClaudeCode, "WebFetch"),
        (Client::Gemini, "replace"),
        (Client::Copilot, "str_replace_editor"),
        (Client::Copilot, "create"),
        (Client::Cursor, "Delete"),
        (Client::Opencode, "patch"),
        (Client::Opencode, "edit"),
    ] {
        let found = tool(client, name, json!({}));
        assert!(found.is_err(), "{client} {name}: {found:?}");
    }
    for input in [
        json!({"file_path": ""}),
        json!({"file_path": "a\0b"}),
        json!({"file_path": 1}),
    ] {
        assert!(tool(Client::ClaudeCode, "Write", input).is_err());
    }
    let odd = json!({"command": "ls", "run_in_background": 1});
    assert!(tool(Client::ClaudeCode, "Bash", odd).is_err());
}

#[test]
fn su_05_how_a_call_ended() {
    use Client::{ClaudeCode, Codex, Copilot, Cursor, Gemini, Opencode};
    let line = || json!({"command": "x"});
    let path = || json!({"file_path": "/w/a", "filePath": "/w/a"});
    let patch = json!({"command": "*** Begin Patch\n*** Delete File: a\n*** End Patch"});
    let gemini = |text: &str| json!({"llmContent": text});
    let copilot = |kind: &str, text: &str| json!({"resultType": kind, "textResultForLlm": text});
    let opencode = |exit: Value| json!({"metadata": {"exit": exit}, "output": ""});
    let cases = [
        (
            ClaudeCode,
            "Bash",
            line(),
            json!({"interrupted": false}),
            Ended::Ok,
        ),
        (
            ClaudeCode,
            "Bash",
            line(),
            json!({"interrupted": true}),
            Ended::Error,
        ),
        (ClaudeCode, "Monitor", line(), json!({}), Ended::Unsaid),
        (
            ClaudeCode,
            "Agent",
            json!({}),
            json!({"status": "async_launched"}),
            Ended::Unsaid,
        ),
        (
            Codex,
            "Bash",
            line(),
            json!("Exit code: 0\n"),
            Ended::Unsaid,
        ),
        (
            Codex,
            "apply_patch",
            patch.clone(),
            json!("Exit code: 0\nWall"),
            Ended::Ok,
        ),
        (
            Codex,
            "apply_patch",
            patch.clone(),
            json!("Exit code: 1\nWall"),
            Ended::Error,
        ),
        (
            Codex,
            "apply_patch",
            patch,
            json!("something else"),
            Ended::Unsaid,
        ),
        (
            Codex,
            "mcp__a__b",
            json!({}),
            json!({"isError": true}),
            Ended::Error,
        ),
        (
            Gemini,
            "run_shell_command",
            line(),
            gemini("Output: Exit Code: 7\nmore\nProcess Group PGID: 4"),
            Ended::Ok,
        ),
        (
            Gemini,
            "run_shell_command",
            line(),
            gemini("<u>\nOutput: x\nExit Code: 3\nProcess Group PGID: 4\n</u>"),
            Ended::Error,
        ),
        (
            Gemini,
            "run_shell_command",
            line(),
            gemini("Output: x\nSignal: 9\nProcess Group PGID: 4"),
            Ended::Error,
        ),
        (
            Gemini,
            "run_shell_command",
            line(),
            json!({"llmContent": []}),
            Ended::Unsaid,
        ),
        (
            Gemini,
            "write_file",
            path(),
            json!({"error": {"message": "no"}}),
            Ended::Error,
        ),
        (
            Gemini,
            "write_file",
            path(),
            gemini("Exit Code: 3"),
            Ended::Ok,
        ),
        (
            Copilot,
            "bash",
            line(),
            copilot("success", "<shellId: 0 completed with exit code 0>"),
            Ended::Ok,
        ),
        (
            Copilot,
            "bash",
            line(),
            copilot("success", "a\n<exited with exit code 3>"),
            Ended::Error,
        ),
        (
            Copilot,
            "bash",
            line(),
            copilot("success", "exit code 3"),
            Ended::Ok,
        ),
        (
            Copilot,
            "bash",
            line(),
            copilot("failure", ""),
            Ended::Error,
        ),
        (Copilot, "bash", line(), json!({}), Ended::Unsaid),
        (
            Cursor,
            "Shell",
            line(),
            json!("{\"exitCode\":0}"),
            Ended::Ok,
        ),
        (Cursor, "Shell", line(), json!("text"), Ended::Unsaid),
        (Cursor, "Write", path(), json!("text"), Ended::Ok),
        (Opencode, "bash", line(), opencode(json!(0)), Ended::Ok),
        (Opencode, "bash", line(), opencode(json!(3)), Ended::Error),
        (
            Opencode,
            "bash",
            line(),
            opencode(Value::Null),
            Ended::Error,
        ),
        (Opencode, "bash", line(), json!({}), Ended::Unsaid),
        (Opencode, "write", path(), json!({}), Ended::Ok),
    ];
    for (client, name, input, result, expected) in cases {
        let about = format!("{client} {name} {result}");
        assert_eq!(ended(client, name, input, result), expected, "{about}");
    }
}
