//! The tools as clients see them.

use safepoint_server::mcp::ToolNote;

use super::table::{TOOLS, Tool};
use crate::commands::form::{Naming, schema};

/// All tools.
pub(super) fn notes() -> Vec<ToolNote> {
    TOOLS.iter().map(note).collect()
}

/// The names of all tools.
pub(crate) fn names() -> Vec<&'static str> {
    TOOLS.iter().map(|tool| tool.form.name).collect()
}

fn note(tool: &Tool) -> ToolNote {
    ToolNote {
        name: tool.form.name.to_owned(),
        title: tool.title.to_owned(),
        description: tool.description.to_owned(),
        input: schema::input(&tool.form, Naming::Lenient),
        output: schema::output(tool.form.replies),
        hints: tool.hints,
    }
}
