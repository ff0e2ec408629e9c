//! An agent client, as far as hooks see one: it asks before a tool and tells after it.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use serde_json::{Value, json};
use testkit::{Run, TestEnv};

/// Claude Code in one session.
pub(crate) struct Claude<'e> {
    pub(crate) env: &'e TestEnv,
    pub(crate) session: &'e str,
    /// What `hook` is given besides.
    pub(crate) flags: Vec<&'e str>,
}

impl<'e> Claude<'e> {
    pub(crate) fn new(env: &'e TestEnv) -> Self {
        Self {
            env,
            session: "s-1",
            flags: Vec::new(),
        }
    }

    /// One event, with these fields besides.
    pub(crate) fn says(&self, event: &str, fields: Value) -> Run {
        let mut said = json!({
            "session_id": self.session, "transcript_path": "/dev/null",
            "cwd": self.env.project(), "permission_mode": "default", "hook_event_name": event,
        });
        let all = said.as_object_mut().unwrap();
        all.extend(fields.as_object().unwrap().clone());
        self.raw(said.to_string().as_bytes())
    }

    pub(crate) fn raw(&self, bytes: &[u8]) -> Run {
        let words = [&["hook", "claude-code"], self.flags.as_slice()].concat();
        let run = self.env.run_with(&words, bytes);
        assert!(
            run.code == 0 || run.code == 2,
            "a hook ends with 0 or 2: {run:?}"
        );
        run
    }

    pub(crate) fn before(&self, id: &str, tool: &str, input: Value) -> Run {
        self.says(
            "PreToolUse",
            json!({"tool_name": tool, "tool_input": input, "tool_use_id": id}),
        )
    }

    pub(crate) fn after(&self, id: &str, tool: &str, input: Value) -> Run {
        self.says(
            "PostToolUse",
            json!({"tool_name": tool, "tool_input": input, "tool_use_id": id, "tool_response": {"stdout": ""}}),
        )
    }

    /// Before a line of the shell.
    pub(crate) fn asks(&self, id: &str, line: &str) -> Run {
        self.before(id, "Bash", json!({"command": line}))
    }

    /// A line that is let through, run and told of.
    #[track_caller]
    pub(crate) fn does(&self, id: &str, line: &str) {
        let line = passes(&self.asks(id, line)).unwrap_or_else(|| line.to_owned());
        let output = self.shell(&line);
        assert!(output.status.success(), "{line}: {output:?}");
        passes(&self.after(id, "Bash", json!({"command": line})));
    }

    /// The client's own shell runs a line.
    pub(crate) fn shell(&self, line: &str) -> std::process::Output {
        let mut shell = self.env.command(&[]);
        let variables: Vec<_> = shell
            .get_envs()
            .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
            .collect();
        shell = std::process::Command::new("bash");
        shell.args(["-c", line]).current_dir(self.env.project());
        for (name, value) in variables {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.output().unwrap()
    }

    /// A file that is written by the client's own tool.
    #[track_caller]
    pub(crate) fn writes(&self, id: &str, path: &str, content: &str) {
        let input = json!({"file_path": self.env.project().join(path), "content": content});
        passes(&self.before(id, "Write", input.clone()));
        self.env.write(&format!("project/{path}"), content);
        passes(&self.after(id, "Write", input));
    }
}

/// It was let through; the line that is to be run instead, if another is.
#[track_caller]
pub(crate) fn passes(run: &Run) -> Option<String> {
    assert_eq!(run.code, 0, "{run:?}");
    assert!(!run.stdout.contains("deny"), "{run:?}");
    if run.stdout.trim().is_empty() {
        return None;
    }
    let said: Value = serde_json::from_str(&run.stdout).unwrap();
    let line = &said["hookSpecificOutput"]["updatedInput"]["command"];
    line.as_str().map(str::to_owned)
}

/// It was denied; what the model is told.
#[track_caller]
pub(crate) fn denied(run: &Run) -> String {
    assert_eq!(run.code, 2, "{run:?}");
    assert!(!run.stderr.trim().is_empty(), "{run:?}");
    run.stderr.clone()
}
