//! `safepoint notify add`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use safepoint_control::Control;
use safepoint_control::notify::{Channel, NewTarget, Secret, Target, Topic};
use safepoint_store::durable::{self, Access};

use crate::commands::operator;
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemEntropy;

/// Arguments of `notify add`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Its name
    name: String,
    #[command(flatten)]
    where_to: WhereTo,
    /// What about: holds, decisions, incidents, budget, workspaces, permits [default: all but permits]
    #[arg(long, value_name = "TOPICS", value_delimiter = ',', value_parser = topic)]
    on: Vec<Topic>,
    /// The secret that a webhook is signed with; made there if there is no such file
    #[arg(long, value_name = "FILE", requires = "webhook")]
    secret_file: Option<PathBuf>,
    /// Trust the certificates in this file, and no others
    #[arg(long, value_name = "FILE", conflicts_with = "desktop")]
    ca: Option<PathBuf>,
    /// Let it lie in a private network or on this machine, there also without encryption
    #[arg(long, conflicts_with = "desktop")]
    allow_private: bool,
    #[command(flatten)]
    who: operator::Who,
}

/// One of these
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct WhereTo {
    /// Send signed CloudEvents to this address; `@FILE` reads it from a file
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Write to the chat room behind this address; `@FILE` reads it from a file
    #[arg(long, value_name = "URL")]
    slack: Option<String>,
    /// Ring the bell where `safepoint notify watch NAME` runs
    #[arg(long)]
    desktop: bool,
}

fn topic(text: &str) -> Result<Topic, String> {
    let mut all = Topic::ALL.iter();
    all.find(|topic| topic.as_str() == text)
        .copied()
        .ok_or_else(|| {
            let all: Vec<&str> = Topic::ALL.iter().map(|topic| topic.as_str()).collect();
            format!("it is one of {}", all.join(", "))
        })
}

pub(super) fn add(
    context: &Context,
    control: &Control,
    arguments: &Arguments,
) -> Result<Target, CliError> {
    let (channel, url) = match &arguments.where_to {
        WhereTo {
            webhook: Some(url), ..
        } => (Channel::Webhook, Some(address(context, url)?)),
        WhereTo {
            slack: Some(url), ..
        } => (Channel::Slack, Some(address(context, url)?)),
        _ => (Channel::Desktop, None),
    };
    let secret = match &arguments.secret_file {
        Some(path) => Some(secret(&context.directory.join(path))?),
        None => None,
    };
    let new = NewTarget {
        name: arguments.name.clone(),
        channel,
        on: match arguments.on.is_empty() {
            true => Topic::usual(),
            false => arguments.on.iter().copied().collect::<BTreeSet<_>>(),
        },
        url,
        secret,
        authority: match &arguments.ca {
            Some(path) => Some(read(&context.directory.join(path))?),
            None => None,
        },
        allow_private: arguments.allow_private,
    };
    let desk = context.desk(control);
    let word = operator::word(context, &desk, &arguments.who, &new.says())?;
    Ok(desk.add_target(&new, &super::vault(context, control), &word)?)
}

/// An address, or the one in a file: what is on a command line, others can see.
fn address(context: &Context, given: &str) -> Result<String, CliError> {
    match given.strip_prefix('@') {
        Some(path) => Ok(read(&context.directory.join(path))?.trim().to_owned()),
        None => Ok(given.to_owned()),
    }
}

/// The secret in a file, which is made where there is none. It is shown nowhere.
fn secret(path: &Path) -> Result<Secret, CliError> {
    if path.symlink_metadata().is_ok() {
        return Secret::parse(&read(path)?).map_err(|error| CliError::Invalid {
            message: format!("`{}`: {error}", path.display()),
            suggestion: "name a file that is not there yet, and a secret is made",
        });
    }
    let secret =
        Secret::generate(&SystemEntropy).map_err(|error| CliError::Control(error.into()))?;
    let text = format!("{}\n", secret.to_text());
    durable::write(path, text.as_bytes(), Access::Private)?;
    Ok(secret)
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|error| CliError::File {
        action: "read",
        path: path.to_owned(),
        error,
    })
}
