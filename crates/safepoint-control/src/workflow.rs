//! Workflows: steps that are written down before they run, each of which passes like any action.

use std::collections::BTreeSet;
use std::path::Path;

use safepoint_authority::{Envelope, SideEffect};
use safepoint_model::{Digest, Span, yaml};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ControlError;
use crate::pass::places::resolve;

/// Steps that run one after another.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// Its name, which trust is about.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// What it keeps to. A step that goes beyond is put before a person; one that does not is
    /// judged like any other. It never widens anything: whoever writes the file is not asked, so
    /// its paths lie in the workspace.
    #[serde(default)]
    pub envelope: Option<Envelope>,
    /// What is done.
    pub steps: Vec<WorkflowStep>,
    /// The digest of the file that it was read from.
    #[serde(skip, default = "empty_digest")]
    #[schemars(skip)]
    digest: Digest,
}

/// Which workflow an action is a step of.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowIdentity {
    /// Its name.
    pub name: String,
    /// The SHA-256 digest of its file, which trust is for.
    pub digest: Digest,
}

fn empty_digest() -> Digest {
    Digest::of_parts(&[])
}

/// One step.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowStep {
    /// Its name.
    pub id: String,
    /// The action that it is. With `argv` it must be what the command comes to.
    #[serde(default)]
    pub action: Option<String>,
    /// A command.
    #[serde(default)]
    pub argv: Option<Vec<String>>,
    /// A change under a checkpoint: an operation with its `target`, or a list of them.
    #[serde(default)]
    pub mutate: Option<Value>,
    /// The parameters of an action that somebody else carries out.
    #[serde(default)]
    pub params: Option<Value>,
    /// A line for the shell that must succeed.
    #[serde(default)]
    pub verify: Option<String>,
    /// What becomes of the rest when it fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// The only effects it may have.
    #[serde(default)]
    pub effects: Option<BTreeSet<SideEffect>>,
    /// How long it may take.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub timeout: Option<Span>,
}

/// What becomes of the rest when a step fails.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing more is done.
    #[default]
    Stop,
    /// The step is taken back, and nothing more is done.
    RollBack,
    /// It goes on.
    Continue,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Doing<'a> {
    /// Runs a command.
    Command(&'a [String]),
    /// Changes something under a checkpoint.
    Change(&'a Value),
    /// Asks the gates about something that somebody else does.
    Request {
        /// The action.
        action: &'a str,
        /// Its parameters.
        params: Value,
    },
}

impl Workflow {
    /// Reads a workflow.
    ///
    /// Relative paths of its envelope are relative to the workspace, `root`.
    pub fn read(path: &Path, root: &Path) -> Result<Self, ControlError> {
        let text = std::fs::read_to_string(path).map_err(|error| ControlError::File {
            path: path.to_owned(),
            error,
        })?;
        let mut workflow: Self =
            yaml::read_as(&text).map_err(|error| wrong(path, &error.to_string()))?;
        workflow.digest = Digest::of_parts(&[text.as_bytes()]);
        if let Some(envelope) = &mut workflow.envelope {
            let root = crate::world::text(root)?;
            envelope.paths = envelope
                .paths
                .iter()
                .map(|it| anchored(it, &root))
                .collect();
        }
        workflow.check().map_err(|reason| wrong(path, &reason))?;
        if let Some(envelope) = &mut workflow.envelope {
            let paths = envelope.paths.iter().map(|it| kept_inside(it, root));
            envelope.paths = paths
                .collect::<Result<_, _>>()
                .map_err(|reason| wrong(path, &reason))?;
        }
        Ok(workflow)
    }

    /// Its name and the digest of its file.
    pub fn identity(&self) -> WorkflowIdentity {
        WorkflowIdentity {
            name: self.name.clone(),
            digest: self.digest,
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.steps.is_empty() {
            return Err("it has no steps".to_owned());
        }
        let mut seen = BTreeSet::new();
        for step in &self.steps {
            if !seen.insert(&step.id) {
                return Err(format!("two steps are called `{}`", step.id));
            }
            step.doing()?;
        }
        match &self.envelope {
            Some(envelope) => envelope
                .check()
                .map_err(|error| format!("the envelope: {error}")),
            None => Ok(()),
        }
    }
}

impl WorkflowStep {
    /// What it does: exactly one thing.
    pub fn doing(&self) -> Result<Doing<'_>, String> {
        let id = &self.id;
        match (&self.argv, &self.mutate, &self.action) {
            (Some(argv), None, _) if argv.is_empty() => Err(format!("step `{id}` has no command")),
            (Some(argv), None, _) => Ok(Doing::Command(argv)),
            (None, Some(operation), _) => Ok(Doing::Change(operation)),
            (None, None, Some(action)) => Ok(Doing::Request {
                action,
                params: self.params.clone().unwrap_or_else(|| serde_json::json!({})),
            }),
            (Some(_), Some(_), _) => {
                Err(format!("step `{id}` has `argv` and `mutate`; it takes one"))
            }
            (None, None, None) => Err(format!(
                "step `{id}` does nothing: give `argv`, `mutate` or `action`"
            )),
        }
    }
}

/// A path of an envelope, absolute. Whatever is not plain stays so, and is refused.
fn anchored(path: &str, root: &str) -> String {
    match path.trim_end_matches('/') {
        "." => root.to_owned(),
        relative if !relative.is_empty() && !path.starts_with('/') => {
            format!("{root}/{}", relative.trim_start_matches("./"))
        }
        _ => path.to_owned(),
    }
}

/// Where a path of an envelope leads. Whoever writes the file is not asked, so that lies in the
/// workspace.
fn kept_inside(path: &str, root: &Path) -> Result<String, String> {
    let resolved = resolve(Path::new(path));
    let inside = resolved.filter(|resolved| resolved.starts_with(root));
    let text = inside.and_then(|it| it.to_str().map(str::to_owned));
    text.ok_or_else(|| {
        format!(
            "the envelope: `{path}` leads out of the workspace; an operator alone can widen what a step may write to"
        )
    })
}

fn wrong(path: &Path, reason: &str) -> ControlError {
    ControlError::Proposal {
        reason: format!("`{}` is not a workflow: {reason}", path.display()),
    }
}
