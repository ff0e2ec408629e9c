//! States that some program owns: captured by one command, taken back by another.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run::{self, Run, What, Whole};
use crate::state::{State, Workspace};
use crate::{Ending, StateError};

/// The commands of a state, as the project's settings name them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Prints the state on standard output.
    pub capture: String,
    /// Takes it back on standard input.
    pub restore: String,
}

/// A provider that takes longer is stuck.
const LIMIT: Duration = Duration::from_secs(300);

impl State {
    /// What the provider says the state is.
    pub(super) fn ask(
        &self,
        workspace: &Workspace,
        key: &str,
        provider: &Provider,
    ) -> Result<Vec<u8>, StateError> {
        self.run_provider(workspace, key, &provider.capture, None)
    }

    /// Hands the provider a state to take back.
    pub(super) fn tell(
        &self,
        workspace: &Workspace,
        key: &str,
        provider: &Provider,
        value: &[u8],
    ) -> Result<(), StateError> {
        self.run_provider(workspace, key, &provider.restore, Some(value))
            .map(drop)
    }

    fn run_provider(
        &self,
        workspace: &Workspace,
        key: &str,
        line: &str,
        input: Option<&[u8]>,
    ) -> Result<Vec<u8>, StateError> {
        let failed = |why: String, ending| StateError::Provider {
            key: key.to_owned(),
            command: line.to_owned(),
            why,
            ending,
        };
        let ran = run::run(&Run {
            what: What::Shell(line),
            directory: &workspace.root,
            variables: &self.around.variables,
            input,
            limit: LIMIT,
            action: None,
            whole: Whole::Yes,
            start: &run::start_unfenced,
        })
        .map_err(|error| failed(error.to_string(), Ending::ByItself))?;
        match ran.succeeded() {
            true => Ok(ran.output),
            false => Err(failed(ran.failure(), ran.ending())),
        }
    }
}
