//! Claude Code's shell prefix: a program that it starts every shell through, with the text for
//! the shell as its only argument.
//!
//! The lines of the agent come that way, and so do hooks, servers and the other commands that
//! people have configured.

use serde_json::Value;

/// The variable that names the prefix.
pub const SHELL_PREFIX: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// What stands before the name of the program in the prefix.
const MARK: &str = "/./";

/// Settings whose value is a command.
const COMMAND_SETTINGS: [&str; 6] = [
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "command",
    "gcpAuthRefresh",
    "otelHeadersHelper",
];

/// Options of the client that name settings, or files of servers.
const SETTINGS_OPTIONS: [&str; 2] = ["--mcp-config", "--settings"];

/// The prefix that makes Claude Code start its shells through `program`: its path, written in a
/// way that nobody types. A word behind it would not do, since for servers Claude Code takes all
/// of the prefix for the name of a program.
pub fn shell_prefix(program: &str) -> String {
    match program.rsplit_once('/') {
        Some((directory, name)) => format!("{directory}{MARK}{name}"),
        None => program.to_owned(),
    }
}

/// The program, if the prefix is ours.
pub fn shell_prefix_program(prefix: &str) -> Option<String> {
    let (directory, name) = prefix.rsplit_once(MARK)?;
    (!name.is_empty() && !name.contains('/')).then(|| format!("{directory}/{name}"))
}

/// The words of a command, if it can be taken apart without running it.
pub fn words(text: &str) -> Option<Vec<String>> {
    shlex::split(text)
}

/// What may be the line of the agent in a text: Claude Code gives it to `eval`, between what
/// restores the shell's state and what keeps the working directory, and may evaluate lines of its
/// own beside it.
pub fn agent_lines(text: &str) -> Vec<String> {
    let words = words(text).unwrap_or_default();
    let evaluated = words.iter().zip(words.iter().skip(1));
    let lines = evaluated.filter(|(word, _)| *word == "eval");
    lines.map(|(_, line)| line.clone()).collect()
}

/// A command that somebody has configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredCommand {
    text: String,
    arguments: Vec<String>,
}

impl ConfiguredCommand {
    /// Whether a shell that is given this text runs it, and nothing else.
    pub fn is(&self, text: &str) -> bool {
        if self.arguments.is_empty() && self.text == text {
            return true;
        }
        let quoted = std::iter::once(&self.text).chain(&self.arguments);
        let mut own = words(&self.text).unwrap_or_default();
        own.extend(self.arguments.iter().cloned());
        words(text).is_some_and(|words| words.iter().eq(quoted) || words == own)
    }
}

/// The commands that settings, or a file of servers, name.
pub fn configured_commands(settings: &Value) -> Vec<ConfiguredCommand> {
    let mut found = Vec::new();
    collect(settings, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<ConfiguredCommand>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if COMMAND_SETTINGS.contains(&name.as_str()) => {
                        let arguments = fields.get("args").and_then(Value::as_array);
                        let arguments = arguments.into_iter().flatten();
                        found.push(ConfiguredCommand {
                            text: text.to_owned(),
                            arguments: arguments
                                .filter_map(|it| it.as_str().map(str::to_owned))
                                .collect(),
                        });
                    }
                    _ => collect(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// Settings and files of servers that a person has named on the client's own command line: each
/// is a path, or JSON itself.
pub fn named_settings(arguments: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_listing = false;
    for argument in arguments {
        match argument.split_once('=') {
            Some((name, value)) if SETTINGS_OPTIONS.contains(&name) => found.push(value),
            _ if argument.starts_with("--") => {
                is_listing = SETTINGS_OPTIONS.contains(&argument.as_str());
                continue;
            }
            _ if is_listing => found.push(argument),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fe_02_the_line_of_an_agent_is_found_in_what_the_shell_is_given() {
        let around = |line: &str| {
            format!(
                "source /h/.claude/shell-snapshots/snapshot-bash-1-a.sh 2>/dev/null || true && \
                 shopt -u extglob 2>/dev/null || true && eval {line} < /dev/null && pwd -P >| /tmp/claude-1-cwd"
            )
        };
        assert_eq!(agent_lines(&around("'ls -l'")), ["ls -l"]);
        assert_eq!(agent_lines(&around("date")), ["date"]);
        let quoted = around(r#"'echo '"'"'a b'"'"' && eval "$x"'"#);
        assert_eq!(agent_lines(&quoted), [r#"echo 'a b' && eval "$x""#]);
        let lines = around("'cat <<E\n'\"'\"'eval x'\"'\"'\nE'");
        assert_eq!(agent_lines(&lines), ["cat <<E\n'eval x'\nE"]);
        let beside = format!("\\builtin eval 'alias x=y' && {}", around("ls"));
        assert_eq!(agent_lines(&beside), ["alias x=y", "ls"]);
    }

    #[test]
    fn fe_02_what_is_no_line_of_an_agent_is_told_apart() {
        for text in ["", "/bin/hook --flag", "eval", "echo 'eval a'", "eval 'a"] {
            assert!(agent_lines(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn fe_02_commands_that_people_have_configured_are_known() {
        let settings = json!({
            "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "a hook > file"}]}]},
            "statusLine": {"command": "line"},
            "mcpServers": {"x": {"command": "/a b/server", "args": ["--port", "1 2"]}},
            "apiKeyHelper": "key",
            "model": "opus",
        });
        let found = configured_commands(&settings);
        let is_known = |text: &str| found.iter().any(|command| command.is(text));
        for text in ["a hook > file", "line", "key", "'/a b/server' --port '1 2'"] {
            assert!(is_known(text), "{text}");
        }
        for text in ["", "opus", "line; rm x", "'/a b/server' --port 1 2", "a"] {
            assert!(!is_known(text), "{text}");
        }
    }

    #[test]
    fn fe_02_settings_are_found_on_the_command_line_of_a_client() {
        let words = "claude -p hi --mcp-config a.json {\"b\":1} --model x --settings=c.json y";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(named_settings(&words), ["a.json", "{\"b\":1}", "c.json"]);
    }

    #[test]
    fn fe_02_the_prefix_names_the_program_also_with_spaces() {
        let prefix = shell_prefix("/opt/a b/safepoint");
        assert_eq!(prefix, "/opt/a b/./safepoint");
        let program = shell_prefix_program(&prefix);
        assert_eq!(program.as_deref(), Some("/opt/a b/safepoint"));
        for other in [
            "/usr/bin/env -S x",
            "/opt/safepoint",
            "/opt/./",
            "/opt/./a/b",
        ] {
            assert_eq!(shell_prefix_program(other), None, "{other}");
        }
    }
}
