//! The tools of each client, and which of their fields mean what.
//!
//! Names of fields that stand together are spellings of the same thing, from different
//! versions of a client. A tool that is not here is unknown, which is not an error.

use crate::Client;

/// Spellings of one field.
pub(crate) type Field = &'static [&'static str];

/// What a tool does, and where its input says so.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// Runs a line in a shell.
    Shell {
        /// The line.
        line: Field,
        /// Where.
        directory: Field,
        /// `true`, or another word than `sync`: nobody waits for the end. See [`ALWAYS`].
        background: Field,
    },
    /// Writes a file.
    Write(Field),
    /// Removes a file.
    Delete(Field),
    /// Changes files by a patch that names them.
    Patch(Field),
    /// Writes, or reads, by its `command`.
    Editor(Field),
    /// Reads a file.
    ReadFile(Field),
    /// Lists or searches.
    Read {
        /// What; several in a list; the directory of the client if there is none.
        path: Field,
        /// A pattern for names of files, which may lead elsewhere.
        pattern: Field,
    },
    /// Fetches from a machine.
    Fetch {
        /// From where.
        url: Field,
        /// A text with addresses in it.
        text: Field,
    },
    /// Calls a server, both named in the input.
    Server {
        /// The server.
        server: Field,
        /// Its tool; a resource is read if there is none.
        tool: Field,
    },
    /// Starts a sub-agent.
    Delegate,
    /// Changes only what the client keeps for itself.
    Own,
}

/// Tools with one meaning.
type Row = (&'static [&'static str], Meaning);

const NONE: Field = &[];
/// In the place of a field: it is so, whatever the tool is given.
pub(crate) const ALWAYS: Field = &["*"];
const PATH: Field = &[
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "target_file",
];
const WHERE: Field = &["path", "dir_path", "target_directory"];
const PATTERN: Field = &["pattern", "glob_pattern"];

const fn read(path: Field) -> Meaning {
    Meaning::Read {
        path,
        pattern: NONE,
    }
}

const fn find(path: Field) -> Meaning {
    Meaning::Read {
        path,
        pattern: PATTERN,
    }
}

const fn fetch(url: Field) -> Meaning {
    Meaning::Fetch { url, text: NONE }
}

const CLAUDE_CODE: &[Row] = &[
    (
        &["Bash"],
        Meaning::Shell {
            line: &["command"],
            directory: NONE,
            background: &["run_in_background"],
        },
    ),
    (
        &["Monitor"],
        Meaning::Shell {
            line: &["command"],
            directory: NONE,
            background: ALWAYS,
        },
    ),
    (&["Read"], Meaning::ReadFile(PATH)),
    (&["Edit", "MultiEdit", "Write"], Meaning::Write(PATH)),
    (&["NotebookEdit"], Meaning::Write(&["notebook_path"])),
    (&["NotebookRead"], Meaning::ReadFile(&["notebook_path"])),
    (&["Glob"], find(WHERE)),
    (&["Grep", "LS"], read(WHERE)),
    (&["LSP"], Meaning::ReadFile(PATH)),
    (&["WebFetch"], fetch(&["url"])),
    (&["WebSearch"], fetch(NONE)),
    (&["Agent", "Task"], Meaning::Delegate),
    (
        &["ReadMcpResourceTool", "ReadMcpResource"],
        Meaning::Server {
            server: &["server"],
            tool: NONE,
        },
    ),
    (
        &[
            "AgentOutputTool",
            "AskUserQuestion",
            "BashOutput",
            "CronCreate",
            "CronDelete",
            "CronList",
            "EnterPlanMode",
            "ExitPlanMode",
            "KillBash",
            "KillShell",
            "ListMcpResources",
            "ListMcpResourcesTool",
            "SendMessage",
            "Skill",
            "SlashCommand",
            "StructuredOutput",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskOutput",
            "TaskStop",
            "TaskUpdate",
            "TodoRead",
            "TodoWrite",
            "ToolSearch",
            "WaitForMcpServers",
        ],
        Meaning::Own,
    ),
];

const CODEX: &[Row] = &[
    (
        &[
            "Bash",
            "shell",
            "local_shell",
            "shell_command",
            "exec_command",
            "unified_exec",
        ],
        Meaning::Shell {
            line: &["command", "cmd"],
            directory: &["workdir", "working_directory", "cwd"],
            background: NONE,
        },
    ),
    (
        &["write_stdin"],
        Meaning::Shell {
            line: &["chars", "command"],
            directory: NONE,
            background: NONE,
        },
    ),
    (
        &["apply_patch"],
        Meaning::Patch(&["command", "input", "patch"]),
    ),
    (&["view_image", "read_file"], Meaning::ReadFile(PATH)),
    (&["list_dir"], read(&["dir_path", "path"])),
    (&["grep_files"], read(WHERE)),
    (&["web_search"], fetch(NONE)),
    (
        &["spawn_agent", "send_input", "resume_agent"],
        Meaning::Delegate,
    ),
    (
        &[
            "close_agent",
            "list_mcp_resource_templates",
            "list_mcp_resources",
            "request_user_input",
            "tool_search",
            "update_plan",
            "wait",
            "wait_agent",
        ],
        Meaning::Own,
    ),
    (
        &["read_mcp_resource"],
        Meaning::Server {
            server: &["server"],
            tool: NONE,
        },
    ),
];

const GEMINI: &[Row] = &[
    (
        &["run_shell_command"],
        Meaning::Shell {
            line: &["command"],
            directory: &["dir_path", "directory"],
            background: &["is_background"],
        },
    ),
    (&["replace", "write_file"], Meaning::Write(PATH)),
    (&["read_file"], Meaning::ReadFile(PATH)),
    (
        &["read_many_files"],
        Meaning::Read {
            path: NONE,
            pattern: &["include", "paths"],
        },
    ),
    (&["list_directory", "ls"], read(WHERE)),
    (&["glob"], find(WHERE)),
    (&["grep_search", "search_file_content"], read(WHERE)),
    (
        &["web_fetch"],
        Meaning::Fetch {
            url: &["url"],
            text: &["prompt"],
        },
    ),
    (&["google_web_search"], fetch(NONE)),
    (
        &["codebase_investigator", "delegate_to_agent", "invoke_agent"],
        Meaning::Delegate,
    ),
    (
        &[
            "activate_skill",
            "ask_user",
            "complete_task",
            "enter_plan_mode",
            "exit_plan_mode",
            "get_internal_docs",
            "list_background_processes",
            "list_mcp_resources",
            "read_background_output",
            "save_memory",
            "update_topic",
            "write_todos",
        ],
        Meaning::Own,
    ),
];

/// In lower case: with its other names of events Copilot writes `Bash` for `bash`.
const COPILOT: &[Row] = &[
    (
        &["bash"],
        Meaning::Shell {
            line: &["command"],
            directory: NONE,
            background: &["mode", "detach", "run_in_background"],
        },
    ),
    (
        &["write_bash"],
        Meaning::Shell {
            line: &["input"],
            directory: NONE,
            background: NONE,
        },
    ),
    (&["create", "edit", "write"], Meaning::Write(PATH)),
    (&["str_replace_editor"], Meaning::Editor(PATH)),
    (
        &["apply_patch"],
        Meaning::Patch(&["command", "input", "patch"]),
    ),
    (&["read", "show_file", "view"], Meaning::ReadFile(PATH)),
    (&["glob"], find(WHERE)),
    (&["grep", "rg"], read(&["path", "paths"])),
    (&["web_fetch", "webfetch"], fetch(&["url"])),
    (&["web_search", "websearch"], fetch(NONE)),
    (&["task", "agent"], Meaning::Delegate),
    (
        &[
            "ask_user",
            "exit_plan_mode",
            "fetch_copilot_cli_documentation",
            "list_agents",
            "list_bash",
            "read_agent",
            "read_bash",
            "report_intent",
            "skill",
            "stop_bash",
            "store_memory",
            "task_complete",
            "todowrite",
            "update_todo",
        ],
        Meaning::Own,
    ),
];

const CURSOR: &[Row] = &[
    (
        &["Shell", "Bash", "run_terminal_cmd"],
        Meaning::Shell {
            line: &["command"],
            directory: &["working_directory", "cwd"],
            background: &["is_background", "run_in_background"],
        },
    ),
    (
        &["Edit", "MultiEdit", "StrReplace", "TabWrite", "Write"],
        Meaning::Write(PATH),
    ),
    (
        &["EditNotebook", "NotebookEdit"],
        Meaning::Write(&["target_notebook", "notebook_path"]),
    ),
    (&["Delete"], Meaning::Delete(PATH)),
    (&["Read", "TabRead"], Meaning::ReadFile(PATH)),
    (&["Glob"], find(WHERE)),
    (&["Grep", "LS", "ListDir", "List"], read(WHERE)),
    (&["SemanticSearch"], read(&["target_directories", "path"])),
    (&["WebFetch"], fetch(&["url"])),
    (&["WebSearch"], fetch(NONE)),
    (&["Agent", "Subagent", "Task"], Meaning::Delegate),
    (
        &["CallMcpTool"],
        Meaning::Server {
            server: &["server"],
            tool: &["toolName", "tool_name"],
        },
    ),
    (
        &["FetchMcpResource"],
        Meaning::Server {
            server: &["server"],
            tool: NONE,
        },
    ),
    (
        &[
            "AskQuestion",
            "Await",
            "ListMcpResources",
            "ReadLints",
            "SwitchMode",
            "TodoWrite",
        ],
        Meaning::Own,
    ),
];

const OPENCODE: &[Row] = &[
    (
        &["bash"],
        Meaning::Shell {
            line: &["command"],
            directory: &["workdir", "cwd"],
            background: &["run_in_background"],
        },
    ),
    (&["edit", "multiedit", "write"], Meaning::Write(PATH)),
    (
        &["apply_patch", "patch"],
        Meaning::Patch(&["patchText", "patch", "input"]),
    ),
    (&["read"], Meaning::ReadFile(PATH)),
    (&["lsp"], Meaning::ReadFile(PATH)),
    (&["glob"], find(WHERE)),
    (&["grep", "list"], read(WHERE)),
    (&["webfetch"], fetch(&["url"])),
    (&["codesearch", "websearch"], fetch(NONE)),
    (&["task"], Meaning::Delegate),
    (
        &[
            "invalid",
            "plan_enter",
            "plan_exit",
            "question",
            "skill",
            "todoread",
            "todowrite",
        ],
        Meaning::Own,
    ),
];

/// What the tool `name` of `client` means, if it is known.
pub(crate) fn meaning(client: Client, name: &str) -> Option<Meaning> {
    let rows = match client {
        Client::ClaudeCode => CLAUDE_CODE,
        Client::Codex => CODEX,
        Client::Gemini => GEMINI,
        Client::Copilot => COPILOT,
        Client::Cursor => CURSOR,
        Client::Opencode => OPENCODE,
    };
    let same = |known: &&str| match client {
        Client::Copilot => known.eq_ignore_ascii_case(name),
        _ => *known == name,
    };
    let mut found = rows.iter().filter(|(names, _)| names.iter().any(same));
    found.next().map(|(_, meaning)| *meaning)
}
