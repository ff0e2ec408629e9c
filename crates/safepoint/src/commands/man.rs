//! `safepoint man`: manual pages, made from the command line itself.

use std::path::PathBuf;

use safepoint_model::Exit;
use safepoint_store::durable::{self, Access};

use crate::context::Context;
use crate::error::CliError;

pub(crate) fn run(context: &mut Context, out: Option<PathBuf>) -> Result<Exit, CliError> {
    let root = crate::command_line();
    let Some(directory) = out else {
        context.console.print(&render(&root)?)?;
        return Ok(Exit::Done);
    };
    let directory = context.directory.join(directory);
    durable::create_directory(&directory).map_err(CliError::Out)?;
    let pages = write_pages(&root, "safepoint", &directory)?;
    context
        .console
        .say(&format!("{pages} pages written to {}", directory.display()));
    Ok(Exit::Done)
}

fn write_pages(
    command: &clap::Command,
    name: &str,
    directory: &std::path::Path,
) -> Result<usize, CliError> {
    let page = render(&command.clone().name(name.to_owned()))?;
    durable::write(
        &directory.join(format!("{name}.1")),
        page.as_bytes(),
        Access::Shared,
    )
    .map_err(CliError::Out)?;
    let mut pages = 1;
    for child in command.get_subcommands() {
        pages += write_pages(child, &format!("{name}-{}", child.get_name()), directory)?;
    }
    Ok(pages)
}

fn render(command: &clap::Command) -> Result<String, CliError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
