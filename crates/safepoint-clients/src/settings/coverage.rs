//! What the hooks of each client cannot see, said plainly.
//!
//! Much of it was seen; what is said of Cursor, and of switches that nobody tried, is from
//! documentation.

use crate::Client;

/// What does not pass us in `client`, or passes us with less than we would want.
pub const fn not_covered(client: Client) -> &'static [&'static str] {
    match client {
        Client::ClaudeCode => &[
            "files that a prompt names with `@` are read without a tool call",
            "lines that the person runs with `!` are no tool calls",
            "`--bare`, `--safe-mode` and `disableAllHooks` switch all hooks off",
            "before version 2.1.295 a hook that is missing or runs out of time lets the call run; \
             later ones stop, but not on an answer that is cut off",
            "calls that Claude Code itself rejects have no event after them: their outcome stays \
             unknown",
            "in its sandbox (`sandbox.enabled`) nobody but Claude Code holds the network, and \
             `safepoint` beside other commands of a line does not work",
            "commands in the background go on after the event that tells their end",
        ],
        Client::Codex => &[
            "hooks are silently skipped until a person has reviewed them in `/hooks`, and again \
             after every change of their command",
            "`--dangerously-bypass-hook-trust` is for tests; `features.hooks = false` switches all \
             hooks off",
            "a hook that is missing, crashes or runs out of time lets the call run",
            "the exit code of a command is not told: its outcome stays unknown",
            "calls that Codex itself refuses have no event after them",
            "in its sandbox, `safepoint` beside other commands of a line does not work",
            "input to a program that is running already, and searches that the model's provider \
             makes, may not pass hooks",
        ],
        Client::Gemini => &[
            "a hook that crashes or runs out of time lets the call run",
            "hooks of a project run only in a trusted folder; `hooksConfig.enabled` switches all \
             hooks off",
            "calls have no id: two equal calls at the same time cannot be told apart",
            "the model cannot be told anything before a tool, only after it",
            "files that a prompt names with `@`, and lines that the person runs with `!`, are no \
             tool calls",
        ],
        Client::Copilot => &[
            "a hook that runs out of time lets the call run",
            "calls have no id: two equal calls at the same time cannot be told apart",
            "whether a prompt can be held back was not seen",
            "its own rules (`--deny-tool`) do not see lines that run behind our fence: it takes \
             another line only with leave",
            "tools of an MCP server with a hyphen in its name or theirs are taken for unknown tools",
        ],
        Client::Cursor => &[
            "none of this was tried with the program itself; it follows the documentation",
            "versions without `preToolUse` ignore our hook silently",
            "its command line and its cloud agents run only some hooks, or none of yours",
            "inline completions (Tab) are not watched",
            "of an MCP server only its tools are named",
            "the model cannot be told anything before a tool, only after it",
        ],
        Client::Opencode => &[
            "a plugin that opencode does not load cannot stop anything, and opencode goes on \
             without it",
            "calls of sub-agents were reported to pass no plugins in some versions",
            "lines that the person runs with `!` are no tool calls",
            "tools of MCP servers are taken for unknown tools, because their names do not tell the \
             server",
            "a tool that fails has no event after it: its outcome stays unknown",
        ],
    }
}
