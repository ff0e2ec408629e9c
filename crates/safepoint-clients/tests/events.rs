//! Every event of every client: what it means, and how each reply is told.
//!
//! The documents in `recorded` came from real clients; those in `documented` were written
//! by what the client's documentation says, because none ran here.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

macro_rules! events {
    ($($test:ident = $document:literal;)*) => {$(
        #[test]
        fn $test() {
            insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
                insta::assert_snapshot!(stringify!($test), common::story($document));
            });
        }
    )*

    /// No document lies there unread.
    #[test]
    fn su_05_every_document_has_its_test() {
        let named: Vec<Vec<u8>> = vec![$(common::document($document)),*];
        assert_eq!(named.len(), common::documents().len());
        for (_, document) in common::documents() {
            assert!(named.contains(&document));
        }
    }};
}

events! {
    su_05_claude_code_permission_request_bash = "recorded/claude-code/PermissionRequest-Bash";
    su_05_claude_code_post_tool_use_bash = "recorded/claude-code/PostToolUse-Bash";
    su_05_claude_code_post_tool_use_edit = "recorded/claude-code/PostToolUse-Edit";
    su_05_claude_code_post_tool_use_write = "recorded/claude-code/PostToolUse-Write";
    su_05_claude_code_post_tool_use_failure_bash = "recorded/claude-code/PostToolUseFailure-Bash";
    su_05_claude_code_pre_tool_use_bash_subagent = "recorded/claude-code/PreToolUse-Bash-subagent";
    su_05_claude_code_pre_tool_use_bash = "recorded/claude-code/PreToolUse-Bash";
    su_05_claude_code_pre_tool_use_edit = "recorded/claude-code/PreToolUse-Edit";
    su_05_claude_code_pre_tool_use_write = "recorded/claude-code/PreToolUse-Write";
    su_05_claude_code_pre_tool_use_mcp_mini_echo = "recorded/claude-code/PreToolUse-mcp__mini__echo";
    su_05_claude_code_session_end = "recorded/claude-code/SessionEnd";
    su_05_claude_code_session_start = "recorded/claude-code/SessionStart";
    su_05_claude_code_stop = "recorded/claude-code/Stop";
    su_05_claude_code_subagent_start = "recorded/claude-code/SubagentStart";
    su_05_claude_code_subagent_stop = "recorded/claude-code/SubagentStop";
    su_05_claude_code_user_prompt_submit = "recorded/claude-code/UserPromptSubmit";
    su_05_codex_permission_request_bash = "recorded/codex/PermissionRequest-Bash";
    su_05_codex_post_tool_use_bash = "recorded/codex/PostToolUse-Bash";
    su_05_codex_post_tool_use_apply_patch = "recorded/codex/PostToolUse-apply_patch";
    su_05_codex_post_tool_use_mcp_mini_echo = "recorded/codex/PostToolUse-mcp__mini__echo";
    su_05_codex_pre_tool_use_bash_code_mode = "recorded/codex/PreToolUse-Bash-code-mode";
    su_05_codex_pre_tool_use_bash = "recorded/codex/PreToolUse-Bash";
    su_05_codex_pre_tool_use_apply_patch = "recorded/codex/PreToolUse-apply_patch";
    su_05_codex_session_end = "recorded/codex/SessionEnd";
    su_05_codex_session_start = "recorded/codex/SessionStart";
    su_05_codex_stop = "recorded/codex/Stop";
    su_05_codex_user_prompt_submit = "recorded/codex/UserPromptSubmit";
    su_05_copilot_agent_stop = "recorded/copilot/agentStop";
    su_05_copilot_pascal_pre_tool_use_bash = "recorded/copilot/pascal-PreToolUse-Bash";
    su_05_copilot_permission_request_bash = "recorded/copilot/permissionRequest-bash";
    su_05_copilot_post_tool_use_bash = "recorded/copilot/postToolUse-bash";
    su_05_copilot_pre_tool_use_bash = "recorded/copilot/preToolUse-bash";
    su_05_copilot_pre_tool_use_create = "recorded/copilot/preToolUse-create";
    su_05_copilot_session_end = "recorded/copilot/sessionEnd";
    su_05_copilot_session_start = "recorded/copilot/sessionStart";
    su_05_copilot_user_prompt_submitted = "recorded/copilot/userPromptSubmitted";
    su_05_gemini_after_agent = "recorded/gemini/AfterAgent";
    su_05_gemini_after_tool_run_shell_command = "recorded/gemini/AfterTool-run_shell_command";
    su_05_gemini_after_tool_write_file = "recorded/gemini/AfterTool-write_file";
    su_05_gemini_before_agent = "recorded/gemini/BeforeAgent";
    su_05_gemini_before_tool_mcp_mini_echo = "recorded/gemini/BeforeTool-mcp_mini_echo";
    su_05_gemini_before_tool_replace = "recorded/gemini/BeforeTool-replace";
    su_05_gemini_before_tool_run_shell_command = "recorded/gemini/BeforeTool-run_shell_command";
    su_05_gemini_before_tool_write_file = "recorded/gemini/BeforeTool-write_file";
    su_05_gemini_notification = "recorded/gemini/Notification";
    su_05_gemini_pre_compress = "recorded/gemini/PreCompress";
    su_05_gemini_session_end = "recorded/gemini/SessionEnd";
    su_05_gemini_session_start = "recorded/gemini/SessionStart";
    su_05_opencode_tool_execute_after_bash = "recorded/opencode/tool.execute.after-bash";
    su_05_opencode_tool_execute_before_bash = "recorded/opencode/tool.execute.before-bash";
    su_05_opencode_tool_execute_before_edit = "recorded/opencode/tool.execute.before-edit";
    su_05_opencode_tool_execute_before_write = "recorded/opencode/tool.execute.before-write";
    su_05_copilot_post_tool_use_failure_bash = "documented/copilot/postToolUseFailure-bash";
    su_05_copilot_pre_tool_use_text = "documented/copilot/preToolUse-text";
    su_05_cursor_after_file_edit = "documented/cursor/afterFileEdit";
    su_05_cursor_after_mcpexecution = "documented/cursor/afterMCPExecution";
    su_05_cursor_after_shell_execution = "documented/cursor/afterShellExecution";
    su_05_cursor_before_mcpexecution = "documented/cursor/beforeMCPExecution";
    su_05_cursor_before_read_file = "documented/cursor/beforeReadFile";
    su_05_cursor_before_shell_execution = "documented/cursor/beforeShellExecution";
    su_05_cursor_before_submit_prompt = "documented/cursor/beforeSubmitPrompt";
    su_05_cursor_post_tool_use_shell = "documented/cursor/postToolUse-Shell";
    su_05_cursor_post_tool_use_failure_shell = "documented/cursor/postToolUseFailure-Shell";
    su_05_cursor_pre_tool_use_delete = "documented/cursor/preToolUse-Delete";
    su_05_cursor_pre_tool_use_mcp = "documented/cursor/preToolUse-MCP";
    su_05_cursor_pre_tool_use_shell = "documented/cursor/preToolUse-Shell";
    su_05_cursor_pre_tool_use_write = "documented/cursor/preToolUse-Write";
    su_05_cursor_session_end = "documented/cursor/sessionEnd";
    su_05_cursor_session_start = "documented/cursor/sessionStart";
    su_05_cursor_stop = "documented/cursor/stop";
    su_05_cursor_subagent_start = "documented/cursor/subagentStart";
    su_05_cursor_subagent_stop = "documented/cursor/subagentStop";
    su_05_opencode_chat_message = "documented/opencode/chat.message";
    su_05_opencode_session_created = "documented/opencode/session.created";
    su_05_opencode_session_deleted = "documented/opencode/session.deleted";
    su_05_opencode_session_idle = "documented/opencode/session.idle";
}
