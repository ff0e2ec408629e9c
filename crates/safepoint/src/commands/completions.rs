//! `safepoint completions`: the script for a shell.

use clap_complete::Shell;
use safepoint_model::Exit;

use crate::context::Context;
use crate::error::CliError;

pub(crate) fn run(context: &mut Context, shell: Shell) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::command_line(), "safepoint", &mut script);
    context.console.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
