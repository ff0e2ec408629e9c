//! The events of each client, by its own names.
//!
//! A name that is not here is an event we were never told about. Nobody guesses what it
//! means: the hook refuses it.

use crate::Client;

/// What sort of event a name stands for. It decides what is read and how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A session begins. It cannot be refused.
    SessionStart,
    /// A prompt, before the model sees it.
    Prompt,
    /// A tool, before it is used.
    Before,
    /// A tool, after it was used.
    After,
    /// A tool, after it failed.
    Failure,
    /// The client asks whether it may.
    Permission,
    /// The agent rests. A refusal would make it go on, so there is none.
    Stop,
    /// The session ends. It cannot be refused.
    SessionEnd,
    /// Something that is only told.
    Other,
}

impl Kind {
    /// Whether the client does nothing until it is answered.
    pub(crate) const fn asks(self) -> bool {
        matches!(self, Self::Prompt | Self::Before | Self::Permission)
    }
}

/// The names of one client.
type Names = &'static [(&'static str, Kind)];

const CLAUDE_CODE: Names = &[
    ("PreToolUse", Kind::Before),
    ("PostToolUse", Kind::After),
    ("PostToolUseFailure", Kind::Failure),
    ("UserPromptSubmit", Kind::Prompt),
    ("PermissionRequest", Kind::Permission),
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("Stop", Kind::Stop),
    ("SubagentStop", Kind::Stop),
    ("SubagentStart", Kind::Other),
    ("StopFailure", Kind::Other),
    ("PermissionDenied", Kind::Other),
    ("PostToolBatch", Kind::Other),
    ("Notification", Kind::Other),
    ("PreCompact", Kind::Other),
    ("PostCompact", Kind::Other),
    ("CwdChanged", Kind::Other),
    ("FileChanged", Kind::Other),
    ("InstructionsLoaded", Kind::Other),
    ("TaskCreated", Kind::Other),
    ("TaskCompleted", Kind::Other),
    ("TeammateIdle", Kind::Other),
];

const CODEX: Names = &[
    ("PreToolUse", Kind::Before),
    ("PostToolUse", Kind::After),
    ("UserPromptSubmit", Kind::Prompt),
    ("PermissionRequest", Kind::Permission),
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("Stop", Kind::Stop),
    ("SubagentStop", Kind::Stop),
    ("SubagentStart", Kind::Other),
    ("PreCompact", Kind::Other),
    ("PostCompact", Kind::Other),
    ("Interrupt", Kind::Other),
];

const GEMINI: Names = &[
    ("BeforeTool", Kind::Before),
    ("AfterTool", Kind::After),
    ("BeforeAgent", Kind::Prompt),
    ("AfterAgent", Kind::Stop),
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("PreCompress", Kind::Other),
    ("Notification", Kind::Other),
    ("BeforeModel", Kind::Other),
    ("AfterModel", Kind::Other),
    ("BeforeToolSelection", Kind::Other),
];

/// Both spellings: with the second one the client sends another form of document.
const COPILOT: Names = &[
    ("preToolUse", Kind::Before),
    ("postToolUse", Kind::After),
    ("postToolUseFailure", Kind::Failure),
    ("userPromptSubmitted", Kind::Prompt),
    ("permissionRequest", Kind::Permission),
    ("sessionStart", Kind::SessionStart),
    ("sessionEnd", Kind::SessionEnd),
    ("agentStop", Kind::Stop),
    ("subagentStop", Kind::Stop),
    ("subagentStart", Kind::Other),
    ("errorOccurred", Kind::Other),
    ("notification", Kind::Other),
    ("preCompact", Kind::Other),
    ("PreToolUse", Kind::Before),
    ("PostToolUse", Kind::After),
    ("PostToolUseFailure", Kind::Failure),
    ("UserPromptSubmit", Kind::Prompt),
    ("UserPromptSubmitted", Kind::Prompt),
    ("PermissionRequest", Kind::Permission),
    ("SessionStart", Kind::SessionStart),
    ("SessionEnd", Kind::SessionEnd),
    ("Stop", Kind::Stop),
    ("AgentStop", Kind::Stop),
    ("SubagentStop", Kind::Stop),
    ("SubagentStart", Kind::Other),
    ("ErrorOccurred", Kind::Other),
    ("Notification", Kind::Other),
    ("PreCompact", Kind::Other),
];

const CURSOR: Names = &[
    ("preToolUse", Kind::Before),
    ("postToolUse", Kind::After),
    ("postToolUseFailure", Kind::Failure),
    ("beforeShellExecution", Kind::Before),
    ("afterShellExecution", Kind::After),
    ("beforeMCPExecution", Kind::Before),
    ("afterMCPExecution", Kind::After),
    ("beforeReadFile", Kind::Before),
    ("beforeTabFileRead", Kind::Before),
    ("afterFileEdit", Kind::After),
    ("afterTabFileEdit", Kind::After),
    ("beforeSubmitPrompt", Kind::Prompt),
    ("sessionStart", Kind::SessionStart),
    ("sessionEnd", Kind::SessionEnd),
    ("stop", Kind::Stop),
    ("subagentStop", Kind::Stop),
    ("subagentStart", Kind::Other),
    ("afterAgentResponse", Kind::Other),
    ("afterAgentThought", Kind::Other),
    ("preCompact", Kind::Other),
];

/// What our plugin forwards.
const OPENCODE: Names = &[
    ("tool.execute.before", Kind::Before),
    ("tool.execute.after", Kind::After),
    ("chat.message", Kind::Prompt),
    ("session.created", Kind::SessionStart),
    ("session.deleted", Kind::SessionEnd),
    ("session.idle", Kind::Stop),
    ("session.error", Kind::Other),
    ("session.compacted", Kind::Other),
    ("permission.asked", Kind::Other),
    ("permission.replied", Kind::Other),
    ("file.edited", Kind::Other),
];

const fn names(client: Client) -> Names {
    match client {
        Client::ClaudeCode => CLAUDE_CODE,
        Client::Codex => CODEX,
        Client::Gemini => GEMINI,
        Client::Copilot => COPILOT,
        Client::Cursor => CURSOR,
        Client::Opencode => OPENCODE,
    }
}

/// What `name` stands for in `client`, and our own copy of the name.
pub(crate) fn find(client: Client, name: &str) -> Option<(&'static str, Kind)> {
    let mut all = names(client).iter();
    all.find(|(known, _)| *known == name).copied()
}
