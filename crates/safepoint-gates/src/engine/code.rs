//! A steward's code as the engine has it: here in a sandbox, or far away.

use std::sync::{Arc, OnceLock};

use safepoint_model::{Digest, json};
use serde_json::Value;

use crate::atlas::Runner;
use crate::event::{Callback, Facts};
use crate::sandbox::{Program, Said, SandboxError};

/// A steward's code.
#[derive(Debug)]
pub(crate) struct Code {
    runner: Runner,
    module: Option<Arc<[u8]>>,
    /// Made when it is first run.
    program: OnceLock<Result<Program, SandboxError>>,
}

/// What came of running it.
pub(crate) enum Ran {
    /// It spoke.
    Said(Said),
    /// It failed; fails closed.
    Failed(String),
    /// It is far away, and must be asked first.
    Wanted(Callback),
}

impl Code {
    pub(crate) fn new(runner: Runner, module: Option<Arc<[u8]>>) -> Self {
        Self {
            runner,
            module,
            program: OnceLock::new(),
        }
    }

    pub(crate) fn run(&self, input: &Value, facts: &Facts) -> Ran {
        if let Runner::Callback { .. } = self.runner {
            return self.ask(input, facts);
        }
        let program = match self.program() {
            Ok(program) => program,
            Err(error) => return Ran::Failed(error.to_string()),
        };
        match program.run(input) {
            Ok(said) => Ran::Said(said),
            Err(error) => Ran::Failed(error.to_string()),
        }
    }

    /// The program, compiled; what is wrong with it otherwise.
    pub(crate) fn program(&self) -> Result<&Program, &SandboxError> {
        self.program
            .get_or_init(|| match (&self.runner, &self.module) {
                (Runner::Cel(expression), _) => Program::cel(expression),
                (Runner::Wasm(_), Some(module)) => Program::wasm(module),
                (Runner::Wasm(path), None) => Err(SandboxError::Invalid(format!(
                    "module `{path}` is not there"
                ))),
                (Runner::Callback { url, .. }, _) => {
                    Err(SandboxError::Invalid(format!("`{url}` does not run here")))
                }
            })
            .as_ref()
    }

    /// Whether it is not here.
    pub(crate) fn is_far(&self) -> bool {
        matches!(self.runner, Runner::Callback { .. })
    }

    fn ask(&self, input: &Value, facts: &Facts) -> Ran {
        let Runner::Callback {
            url,
            timeout_ms,
            allow_private_addresses,
        } = &self.runner
        else {
            return Ran::Failed("it is not a callback".to_owned());
        };
        let Ok(body) = json::canonical(input) else {
            return Ran::Failed("its input cannot be written as JSON".to_owned());
        };
        let key = Digest::of_parts(&[b"safepoint/callback/v1\n", url.as_bytes(), b"\n", &body]);
        match facts.callbacks.get(&key) {
            Some(Ok(said)) => Ran::Said(said.clone()),
            Some(Err(error)) => Ran::Failed(error.clone()),
            None => Ran::Wanted(Callback {
                key,
                url: url.clone(),
                timeout_ms: *timeout_ms,
                allow_private_addresses: *allow_private_addresses,
                input: input.clone(),
            }),
        }
    }
}
