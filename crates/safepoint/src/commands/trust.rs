//! `safepoint trust …`: what is trusted, and how much.

use clap::Subcommand;
use safepoint_authority::{Boundary, Executable, Level, Trust};
use safepoint_control::Workflow;
use safepoint_control::pass::program_content;
use safepoint_model::{Digest, Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use super::{operator, run};
use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// What can be done with trust
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what is known of boundaries
    List,
    /// Trust a boundary (a program or a workflow with the content it has now): `tool:/usr/bin/git`, `path:/srv/site`, `provider:acme`, `workflow:release`
    Grant {
        /// Which one
        boundary: Boundary,
        /// How much
        #[arg(long, value_name = "LEVEL", default_value = "trusted", value_parser = level)]
        level: Level,
        /// Of a workflow, the SHA-256 digest of its file; without it, the file that `run NAME` runs
        #[arg(long, value_name = "SHA256")]
        content: Option<Digest>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        who: operator::Who,
    },
    /// Trust a boundary no more
    Revoke {
        /// Which one
        boundary: Boundary,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        who: operator::Who,
    },
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "trusted" => Ok(Level::Trusted),
        "elevated" => Ok(Level::Elevated),
        _ => Err("it is `trusted` or `elevated`".to_owned()),
    }
}

/// What `trust list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TrustList {
    trust: Vec<Trust>,
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    let control = context.control()?;
    let desk = context.desk(&control);
    let changed = match command {
        Command::List => {
            let reply = TrustList {
                trust: desk.trust()?,
            };
            context
                .console
                .value(&reply, |reply| match reply.trust.is_empty() {
                    true => "Nothing is trusted yet.\n".to_owned(),
                    false => reply.trust.iter().map(line).collect(),
                })?;
            return Ok(Exit::Done);
        }
        Command::Grant {
            boundary,
            level,
            content,
            reason,
            who,
        } => {
            operator::refuse_agents(context, &control)?;
            let content = content_of(context, &boundary, content)?;
            let reason = reason.unwrap_or_else(|| "an operator said so".to_owned());
            let says = format!("trust {boundary} {}", level.as_str());
            let word = operator::word(context, &desk, &who, &says)?;
            desk.grant(boundary, level, &reason, &content, &word)?
        }
        Command::Revoke {
            boundary,
            reason,
            who,
        } => {
            operator::refuse_agents(context, &control)?;
            let reason = reason.unwrap_or_else(|| "an operator said so".to_owned());
            let says = format!("trust {boundary} untrusted");
            let word = operator::word(context, &desk, &who, &says)?;
            desk.distrust(boundary, &reason, &word)?
        }
    };
    context.console.value(&changed, line)?;
    Ok(Exit::Done)
}

/// The content that a boundary is trusted for: a program's, a workflow's, or none.
fn content_of(
    context: &Context,
    boundary: &Boundary,
    digest: Option<Digest>,
) -> Result<Vec<Executable>, CliError> {
    let Some(name) = boundary.workflow_name() else {
        if digest.is_some() {
            return Err(CliError::Usage(
                "`--content` is for workflows: `trust grant workflow:NAME --content SHA256`"
                    .to_owned(),
            ));
        }
        return Ok(match boundary.program() {
            Some(path) => program_content(path, &context.environment.variables())?,
            None => Vec::new(),
        });
    };
    let (path, digest) = match digest {
        Some(digest) => (name.to_owned(), digest),
        None => {
            let path = run::workflow::find(context, name)?;
            let root = context.workspace()?.root;
            let workflow = Workflow::read(&path, &root)?;
            if workflow.name != name {
                return Err(CliError::Invalid {
                    message: format!(
                        "the workflow in `{}` is called `{}`, and trust is for that name",
                        path.display(),
                        workflow.name
                    ),
                    suggestion: "grant trust to that name, with `--content` if `run NAME` would not find the file",
                });
            }
            (path.display().to_string(), workflow.identity().digest)
        }
    };
    Ok(vec![Executable { path, digest }])
}

fn line(trust: &Trust) -> String {
    let mut shown = format!(
        "{STRONG}{}{STRONG:#}  {}  {FAINT}version {}, since {}: {}{FAINT:#}\n",
        text::line(&trust.boundary.to_string()).text,
        trust.level.as_str(),
        trust.version,
        trust.since,
        text::line(&trust.reason).text
    );
    for program in &trust.content {
        let path = text::line(&program.path).text;
        shown.push_str(&format!(
            "  {FAINT}{path}  sha256 {}{FAINT:#}\n",
            program.digest
        ));
    }
    let needs_content =
        trust.boundary.program().is_some() || trust.boundary.workflow_name().is_some();
    if needs_content && trust.content.is_empty() {
        shown.push_str("  for no content: grant it again\n");
    }
    shown
}
