//! `safepoint state`: the states of this workspace, as they are now.

use std::collections::BTreeMap;

use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::console::STRONG;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `state`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only this one
    key: Option<String>,
}

/// What `state` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StateReply {
    /// The values, by name. One that is not JSON is a text.
    states: BTreeMap<String, Value>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let workspace = context.workspace()?;
    let state = context.state()?;
    let mut states = BTreeMap::new();
    for (key, value) in state.states(&workspace)? {
        if arguments.key.as_ref().is_none_or(|wanted| *wanted == key) {
            states.insert(key, read(&value));
        }
    }
    if let (Some(key), true) = (&arguments.key, states.is_empty()) {
        return Err(CliError::NotFound {
            what: "state",
            name: key.clone(),
        });
    }
    let reply = StateReply { states };
    context.console.value(&reply, |reply| {
        let mut shown = String::new();
        for (key, value) in &reply.states {
            let value = text::line(&value.to_string()).text;
            shown.push_str(&format!("{STRONG}{key}{STRONG:#}  {value}\n"));
        }
        shown
    })?;
    Ok(Exit::Done)
}

fn read(value: &[u8]) -> Value {
    serde_json::from_slice(value)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(value).into_owned()))
}
