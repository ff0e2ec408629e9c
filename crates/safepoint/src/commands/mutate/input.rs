//! A change as one document: the target, the operation and the checkpoint that allows it.

use safepoint_model::json;
use serde::Deserialize;
use serde_json::Value;

use super::Arguments;
use crate::commands::outside;
use crate::context::Context;
use crate::error::CliError;

/// What `--input` is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    target: Option<String>,
    /// Read as `--operation` is.
    operation: Value,
    checkpoint_id: Option<String>,
}

/// The arguments, with what a document says in their places.
pub(super) fn filled(context: &Context, arguments: &Arguments) -> Result<Arguments, CliError> {
    let Some(given) = &arguments.input else {
        return Ok(arguments.clone());
    };
    let bytes = outside::json_or_yaml(context, given)?;
    let input: Input =
        json::read_as(&bytes, json::Limits::default()).map_err(|error| CliError::Invalid {
            message: format!("`--input`: {error}"),
            suggestion: "for example `{\"target\": \"a.txt\", \"operation\": {\"type\": \"edit\", \"changes\": [{\"old\": \"a\", \"new\": \"b\"}]}, \"checkpoint_id\": \"chk_…\"}`",
        })?;
    if arguments.auto_checkpoint && input.checkpoint_id.is_some() {
        return Err(CliError::Invalid {
            message: "`--input` names a checkpoint, and `--auto-checkpoint` makes one".to_owned(),
            suggestion: "leave one of them out",
        });
    }
    Ok(Arguments {
        target: input.target,
        checkpoint: input.checkpoint_id,
        operation: Some(serde_json::to_string(&input.operation)?),
        input: None,
        ..arguments.clone()
    })
}
