//! `safepoint trail witness`.

use std::path::{Path, PathBuf};

use safepoint_control::Https;
use safepoint_model::{Exit, text};
use safepoint_trail::Trail;
use safepoint_trail::cosign::{self, Cosigned, WitnessError, WitnessKey};
use schemars::JsonSchema;
use serde::Serialize;

use super::check_proof::read_key;
use super::head::root;
use crate::console::{FAINT, GOOD, count};
use crate::context::Context;
use crate::error::CliError;

/// How often a witness may say that it knows another size.
const MOST_ATTEMPTS: usize = 4;

/// Arguments of `trail witness`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The address below which the witness has add-checkpoint
    url: String,
    /// The public key of the witness, or a file that holds it
    #[arg(long, value_name = "KEY")]
    key: String,
    /// Trust the certificates in this file (PEM) and no others
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// What `trail witness` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WitnessReply {
    /// The name of the witness.
    witness: String,
    /// How many entries it cosigned.
    size: u64,
    /// The root of the tree over them, in base64.
    root: String,
    /// When, as it says, RFC 3339.
    time: String,
    /// The note with both signatures.
    note: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let published = "a witness publishes its key in the form `NAME+HASH+KEY`";
    let witness: WitnessKey = read_key(&context.directory, &arguments.key, published)?;
    let https = https(&context.directory, arguments.ca.as_deref())?;
    let url = format!("{}/add-checkpoint", arguments.url.trim_end_matches('/'));
    let cosigned = ask(&trail, &witness, &https, &url)?;
    trail.keep_cosigned(&cosigned)?;
    let reply = WitnessReply {
        witness: witness.name().to_owned(),
        size: cosigned.head.size(),
        root: root(&cosigned.head),
        time: cosigned.time.to_string(),
        note: cosigned.note(),
    };
    context.console.value(&reply, show)?;
    Ok(Exit::Done)
}

/// Asks until the witness and we agree on what it saw last.
fn ask(
    trail: &Trail,
    witness: &WitnessKey,
    https: &Https,
    url: &str,
) -> Result<Cosigned, CliError> {
    let known = trail.cosigned()?;
    let known = known.iter().find(|one| one.witness == *witness);
    let mut old = known.map_or(0, |one| one.head.size());
    let mut refused = None;
    for _ in 0..MOST_ATTEMPTS {
        let (request, head) = trail.witness_request(old)?;
        let headers = [("content-type", "text/plain; charset=utf-8")];
        let answer = https
            .send(url, &headers, request.as_bytes())
            .map_err(|error| CliError::Service {
                what: "witness",
                error,
            })?;
        match cosign::answer(answer.status, &answer.body, &head, witness) {
            Err(WitnessError::OtherSize(size)) if size != old && size <= head.size() => {
                refused = Some(WitnessError::OtherSize(size));
                old = size;
            }
            answered => return Ok(answered?),
        }
    }
    Err(refused.unwrap_or(WitnessError::Fork).into())
}

fn show(reply: &WitnessReply) -> String {
    format!(
        "{GOOD}cosigned{GOOD:#}  {} by {}\n{FAINT}          {}{FAINT:#}\n",
        count(reply.size, "entry", "entries"),
        text::line(&reply.witness).text,
        reply.time,
    )
}

/// What carries messages, trusting the certificates in `ca` if it is given.
pub(super) fn https(directory: &Path, ca: Option<&Path>) -> Result<Https, CliError> {
    let Some(ca) = ca else {
        return Ok(Https::new());
    };
    let path = directory.join(ca);
    let pem = std::fs::read_to_string(&path).map_err(|error| CliError::File {
        action: "read",
        path: path.clone(),
        error,
    })?;
    Https::new()
        .with_roots(&pem)
        .map_err(|error| CliError::Invalid {
            message: format!("`{}`: {error}", path.display()),
            suggestion: "`--ca` takes a file with certificates in PEM form",
        })
}
