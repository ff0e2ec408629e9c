//! `safepoint judge …`: the control plane's half of the passage, for a machine elsewhere.
//!
//! Only a server runs it, for whoever shows a token; nobody types it. It reads one document
//! and prints the one that answers it. It touches no workspace.

use clap::Subcommand;
use safepoint_authority::HoldState;
use safepoint_control::pass::{Asked, Bench, Entering, Foretelling, Told};
use safepoint_control::{AtlasFile, ControlError};
use safepoint_model::{Exit, HoldId, json};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::commands::outside;
use crate::context::Context;
use crate::error::CliError;

/// What can be asked
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// In which session something is judged, and under what
    Enter(Arguments),
    /// Whether something may be done
    Propose(Arguments),
    /// What would be said to it
    Rehearse(Arguments),
    /// How something ended
    End {
        /// The action
        action: String,
        #[command(flatten)]
        arguments: Arguments,
    },
    /// How a hold stands
    Hold {
        /// The hold
        hold: String,
    },
}

/// Arguments of `judge`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The document
    #[arg(long, value_name = "JSON")]
    body: String,
}

/// What `judge hold` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HoldStanding {
    hold_id: String,
    /// Whether somebody still has to decide, has decided, or did not in time.
    state: HoldState,
}

pub(crate) fn run(context: &mut Context, command: &Command) -> Result<Exit, CliError> {
    match command {
        Command::Enter(arguments) => {
            let entering: Entering = read(context, arguments)?;
            let workspace = entering.workspace.clone();
            let entered = at(context, workspace, |bench| bench.receive(&entering))?;
            context.console.json(&entered)?;
        }
        Command::Propose(arguments) => {
            let asked: Asked = read(context, arguments)?;
            let workspace = asked.canonical.workspace.path.clone();
            let settlement = at(context, workspace, |bench| bench.propose(&asked))?;
            context.console.json(&settlement)?;
        }
        Command::Rehearse(arguments) => {
            let Foretelling { entering, asked } = read(context, arguments)?;
            let workspace = entering.workspace.clone();
            let foretold = at(context, workspace, |bench| {
                bench.foretell(&entering, &asked)
            })?;
            context.console.json(&foretold)?;
        }
        Command::End { action, arguments } => {
            let told: Told = read(context, arguments)?;
            if told.action_id.as_str() != action {
                return Err(CliError::Invalid {
                    message: "the outcome is that of another action".to_owned(),
                    suggestion: "name the same one in the path and in the outcome",
                });
            }
            let heard = at(context, String::new(), |bench| bench.ended(&told))?;
            context.console.json(&heard)?;
        }
        Command::Hold { hold } => {
            let id: HoldId = hold.parse().map_err(|_| CliError::NotFound {
                what: "hold",
                name: hold.clone(),
            })?;
            let state = at(context, String::new(), |bench| bench.standing(&id))?;
            let reply = HoldStanding {
                hold_id: id.to_string(),
                state,
            };
            context.console.json(&reply)?;
        }
    }
    Ok(Exit::Done)
}

/// Does something where actions are judged, for the machine that asks.
fn at<T>(
    context: &mut Context,
    root: String,
    work: impl FnOnce(&Bench<'_>) -> Result<T, ControlError>,
) -> Result<T, CliError> {
    let Some(served) = context.served() else {
        return Err(CliError::Invalid {
            message: "only a server judges for other machines".to_owned(),
            suggestion: "`safepoint exec` asks for something to be done here",
        });
    };
    // Told apart from paths and clients, and from what looks like a secret.
    let name = served.actor.to_string();
    let site = format!("@{}", name.strip_prefix("token:").unwrap_or(&name));
    let control = context.control()?;
    let named = context.atlases()?;
    let atlases: Vec<AtlasFile> = match named.is_empty() {
        true => vec![AtlasFile::built_in()?],
        false => named
            .iter()
            .map(|path| AtlasFile::read(path))
            .collect::<Result<_, _>>()?,
    };
    let bench = Bench {
        control: &control,
        atlases: &atlases,
        hold_timeout: context.settings.hold_timeout.value,
        root,
        site: Some(site),
        place: None,
    };
    Ok(work(&bench)?)
}

fn read<T: DeserializeOwned>(context: &Context, arguments: &Arguments) -> Result<T, CliError> {
    let bytes = outside::text_or_file(context, &arguments.body)?;
    json::read_as(&bytes, json::Limits::default()).map_err(|error| CliError::Invalid {
        message: format!("the document cannot be read: {error}"),
        suggestion: "the machine that asks and the server must have the same version of Safepoint",
    })
}
