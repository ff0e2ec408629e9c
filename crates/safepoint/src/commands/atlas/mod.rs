//! `safepoint atlas …`: what a steward wrote, checked, tried out and signed.

pub(crate) mod check;
pub(crate) mod init;
pub(crate) mod replay;
pub(crate) mod show;
pub(crate) mod sign;
pub(crate) mod suggest;
pub(crate) mod test;

use clap::Subcommand;
use safepoint_model::Exit;

use crate::context::Context;
use crate::error::CliError;

/// What can be done with an atlas
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a commented atlas for coding agents to start from
    Init(init::Arguments),
    /// List everything that is wrong with atlases
    Check(check::Arguments),
    /// Show the rules that apply here
    Show(show::Arguments),
    /// Print the JSON Schema of atlases, for editors
    Schema,
    /// Run the examples that an atlas has in it
    Test(test::Arguments),
    /// Sign an atlas, so that nobody else can change it unseen
    Sign(sign::Arguments),
    /// Judge recorded requests again under another atlas, and show what would change
    Replay(replay::Arguments),
    /// Print settings for what commands reached and were refused here; nothing is written
    Suggest(suggest::Arguments),
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Init(arguments) => init::run(context, &arguments),
        Command::Check(arguments) => check::run(context, &arguments),
        Command::Show(arguments) => show::run(context, &arguments),
        Command::Schema => schema(context),
        Command::Test(arguments) => test::run(context, &arguments),
        Command::Sign(arguments) => sign::run(context, &arguments),
        Command::Replay(arguments) => replay::run(context, &arguments),
        Command::Suggest(arguments) => suggest::run(context, &arguments),
    }
}

/// What stands for an atlas on standard input.
const GIVEN: &str = "-";

/// The most that is read of an atlas on standard input.
const LARGEST: u64 = 16 << 20;

/// The text of an atlas that is handed in; `None` when `path` is a file.
fn given(context: &Context, path: &std::path::Path) -> Result<Option<String>, CliError> {
    if path != std::path::Path::new(GIVEN) {
        return Ok(None);
    }
    let read = context.input(LARGEST).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| std::io::ErrorKind::InvalidData.into())
    });
    read.map(Some).map_err(|error| CliError::File {
        action: "read",
        path: GIVEN.into(),
        error,
    })
}

fn schema(context: &mut Context) -> Result<Exit, CliError> {
    let schema = safepoint_gates::load::schema();
    let text = serde_json::to_string_pretty(&schema)?;
    context.console.print(&format!("{text}\n"))?;
    Ok(Exit::Done)
}
