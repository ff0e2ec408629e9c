//! `safepoint operator …`: who decides, and with which key.

pub(crate) mod sign;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use safepoint_authority::{Operator, OperatorKey};
use safepoint_control::pass::{Desk, Signing, Word};
use safepoint_control::{Control, ControlError};
use safepoint_model::{Exit, text};
use safepoint_store::durable::{self, Access};
use safepoint_trail::note::{PublicKey, Signer};
use schemars::JsonSchema;
use serde::Serialize;

use super::outside;
use crate::console::{FAINT, GOOD, STRONG};
use crate::context::Context;
use crate::error::CliError;
use crate::ssh_agent::SshAgent;
use crate::world::SystemEntropy;

/// What can be done with operators
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Let somebody decide
    Add(Add),
    /// List those who decide
    List,
    /// Sign an operator's word here, to be handed in elsewhere with `--signature`
    Sign(sign::Arguments),
    /// Let somebody decide no longer
    Remove {
        /// Whom
        name: String,
        #[command(flatten)]
        who: Who,
    },
}

/// Arguments of `operator add`
#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// Their name
    name: String,
    /// A key: one that signs, or a public one of somebody elsewhere. Made where there is none
    #[arg(long, value_name = "FILE", conflicts_with = "ssh")]
    key: Option<PathBuf>,
    /// A public key, as `operator list` prints it, of somebody whose key is elsewhere
    #[arg(long, value_name = "KEY", conflicts_with_all = ["ssh", "key"])]
    public: Option<String>,
    /// Use an Ed25519 key of the SSH agent
    #[arg(long)]
    ssh: bool,
    /// Which one of the agent's keys: a part of its comment
    #[arg(long, value_name = "TEXT", requires = "ssh")]
    ssh_key: Option<String>,
    /// Who says so, where there are operators already; without it, one whose key is here
    #[arg(long, value_name = "NAME", env = "SAFEPOINT_OPERATOR")]
    by: Option<String>,
    /// What they have signed elsewhere: the note, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "NOTE")]
    signature: Option<String>,
}

/// Who decides
#[derive(Debug, clap::Args)]
pub(crate) struct Who {
    /// Who decides; without it, the one whose key is here
    #[arg(long, value_name = "NAME", env = "SAFEPOINT_OPERATOR")]
    operator: Option<String>,
    /// The key of that operator, where it lies elsewhere
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// What that operator has signed elsewhere: the note, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "NOTE", conflicts_with = "key")]
    signature: Option<String>,
}

impl Who {
    /// The note that was signed elsewhere, if there is one.
    pub(crate) fn note(&self, context: &Context) -> Result<Option<String>, CliError> {
        let Some(given) = &self.signature else {
            return Ok(None);
        };
        let bytes = outside::text_or_file(context, given)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Their key, where it lies elsewhere.
    pub(crate) fn key(&self) -> Option<&PathBuf> {
        self.key.as_ref()
    }

    /// Who decides, where no store is here to tell who may: the one who was named, or the only
    /// one whose key is here.
    pub(crate) fn of_a_key_here(&self, context: &Context) -> Result<String, CliError> {
        if let Some(name) = &self.operator {
            return Ok(name.clone());
        }
        let keys = std::fs::read_dir(context.paths.data.join("operators"));
        let names = keys.into_iter().flatten().flatten().filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            Some(name.strip_suffix(".key")?.to_owned())
        });
        let mut names: Vec<String> = names.collect();
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => Ok(name),
            (None, _) => Err(nobody(
                "no operator's key is here; say whose with `--operator NAME --key FILE`",
            )),
            (Some(_), false) => Err(nobody(
                "several operators could decide here; say who with `--operator NAME`",
            )),
        }
    }

    /// Whose signature it must be: the one of the token, or the one that was named.
    pub(crate) fn must_be(&self, context: &Context) -> Option<String> {
        match context.served() {
            // One whose token is no operator's gets an operator that nobody is.
            Some(served) => Some(served.operator.clone().unwrap_or_default()),
            None => self.operator.clone(),
        }
    }
}

/// What `operator list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OperatorList {
    operators: Vec<Operator>,
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    if let Command::Sign(arguments) = &command {
        return sign::run(context, arguments);
    }
    let control = context.control()?;
    let desk = context.desk(&control);
    match command {
        Command::Sign(_) => {}
        Command::List => {
            let reply = OperatorList {
                operators: desk.operators()?,
            };
            context
                .console
                .value(&reply, |reply| match reply.operators.is_empty() {
                    true => "Nobody decides yet: `safepoint operator add NAME`\n".to_owned(),
                    false => reply.operators.iter().map(line).collect(),
                })?;
        }
        Command::Add(arguments) => {
            refuse_agents(context, &control)?;
            let operator = add(context, &desk, &arguments)?;
            context
                .console
                .value(&operator, |it| format!("{GOOD}added{GOOD:#}  {}", line(it)))?;
        }
        Command::Remove { name, who } => {
            refuse_agents(context, &control)?;
            let known = desk.operators()?;
            if !known.iter().any(|operator| operator.name == name) {
                return Err(CliError::Control(ControlError::NotFound {
                    what: "operator",
                    name,
                }));
            }
            let word = word(context, &desk, &who, &format!("operator remove {name}"))?;
            let operator = desk.remove_operator(&name, &word)?;
            context
                .console
                .value(&operator, |it| format!("removed  {}", line(it)))?;
        }
    }
    Ok(Exit::Done)
}

fn line(operator: &Operator) -> String {
    let held = match operator.held {
        OperatorKey::File => "key file",
        OperatorKey::SshAgent => "ssh-agent",
    };
    format!(
        "{STRONG}{}{STRONG:#}  {FAINT}{held}{FAINT:#}  {}\n",
        text::line(&operator.name).text,
        operator.key
    )
}

fn add(context: &Context, desk: &Desk<'_>, arguments: &Add) -> Result<Operator, CliError> {
    let name = &arguments.name;
    if Signer::valid_name(name).is_err() || name.contains('/') || name.starts_with('.') {
        return Err(CliError::Invalid {
            message: format!("`{}` cannot be the name of a key", text::line(name).text),
            suggestion: "use letters, digits, `-`, `_`, `.` or `@`",
        });
    }
    if let Some(key) = &arguments.public {
        let public: PublicKey = key.parse().map_err(bad_key(Path::new(name)))?;
        same_name(&public, name)?;
        return admit(context, desk, arguments, &public, OperatorKey::File);
    }
    if context.served().is_some() {
        return Err(nobody(
            "a key is made where its owner is; hand in the public one",
        ));
    }
    if arguments.ssh {
        let mut agent = SshAgent::connect(&context.environment)?;
        let key = agent.choose(arguments.ssh_key.as_deref())?;
        let public = PublicKey::of_ed25519(name, &key).map_err(bad_key(Path::new(name)))?;
        return admit(context, desk, arguments, &public, OperatorKey::SshAgent);
    }
    let own = own_key(context, name);
    let path = match &arguments.key {
        Some(given) => context.directory.join(given),
        None => own,
    };
    let public = match std::fs::read_to_string(&path) {
        Ok(text) => match Signer::parse(&text) {
            Ok(signer) => signer.public().clone(),
            Err(_) => text.trim().parse().map_err(bad_key(&path))?,
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let signer = Signer::generate(name, &SystemEntropy)
                .map_err(|error| CliError::Control(error.into()))?;
            if let Some(directory) = path.parent() {
                durable::create_directory(directory)?;
            }
            let text = format!("{}\n", signer.to_text());
            durable::write(&path, text.as_bytes(), Access::Private)?;
            signer.public().clone()
        }
        Err(error) => {
            return Err(CliError::File {
                action: "read",
                path,
                error,
            });
        }
    };
    same_name(&public, name)?;
    admit(context, desk, arguments, &public, OperatorKey::File)
}

fn same_name(public: &PublicKey, name: &str) -> Result<(), CliError> {
    if public.name() == name {
        return Ok(());
    }
    Err(CliError::Invalid {
        message: format!(
            "the key is `{}`'s, not `{}`'s",
            text::line(public.name()).text,
            text::line(name).text
        ),
        suggestion: "an operator has the name of their key",
    })
}

/// Lets somebody decide, by the word of somebody who does.
fn admit(
    context: &Context,
    desk: &Desk<'_>,
    arguments: &Add,
    key: &PublicKey,
    held: OperatorKey,
) -> Result<Operator, CliError> {
    let name = &arguments.name;
    let known = desk.operators()?;
    let is_new = !known.iter().any(|operator| operator.name == *name);
    let needless = known.is_empty() || !is_new;
    let word = match needless && context.served().is_none() && arguments.signature.is_none() {
        true => None,
        false => {
            let who = Who {
                operator: arguments.by.clone(),
                key: None,
                signature: arguments.signature.clone(),
            };
            Some(word(
                context,
                desk,
                &who,
                &format!("operator add {name} {key}"),
            )?)
        }
    };
    Ok(desk.add_operator(name, key, held, word.as_ref())?)
}

/// What an operator says, signed: by whom it was said, or by one whose key is here.
pub(crate) fn word(
    context: &Context,
    desk: &Desk<'_>,
    who: &Who,
    says: &str,
) -> Result<Word, CliError> {
    if let Some(note) = who.note(context)? {
        let word = desk.word_from(&note)?;
        if who
            .must_be(context)
            .is_some_and(|name| name != word.operator())
        {
            return Err(nobody("the signature is another operator's"));
        }
        return Ok(word);
    }
    let known = desk.operators()?;
    let here = known.iter().find(|operator| is_here(context, operator));
    let who = Who {
        operator: who
            .operator
            .clone()
            .or_else(|| here.map(|it| it.name.clone())),
        key: who.key.clone(),
        signature: None,
    };
    let (operator, signing) = choose(context, desk, &who)?;
    Ok(desk.word(&operator, &*signing, says)?)
}

fn is_here(context: &Context, operator: &Operator) -> bool {
    match operator.held {
        OperatorKey::File => own_key(context, &operator.name).is_file(),
        OperatorKey::SshAgent => true,
    }
}

pub(super) fn own_key(context: &Context, name: &str) -> PathBuf {
    context
        .paths
        .data
        .join("operators")
        .join(format!("{name}.key"))
}

pub(super) fn bad_key(path: &Path) -> impl Fn(safepoint_trail::note::NoteError) -> CliError {
    let path = path.to_owned();
    move |error| {
        CliError::Control(ControlError::Key {
            path: path.clone(),
            error,
        })
    }
}

/// Whether we were told that an agent calls.
pub(crate) fn is_marked(context: &Context) -> bool {
    let marks = ["SAFEPOINT_AGENT", "SAFEPOINT_ACTION"];
    marks
        .iter()
        .any(|name| context.environment.path(name).is_some())
}

/// An agent decides about nothing, and changes nobody who does.
pub(crate) fn refuse_agents(context: &Context, control: &Control) -> Result<(), CliError> {
    match is_marked(context) || control.is_within_an_action()? {
        true => Err(CliError::Control(ControlError::AgentDecides)),
        false => Ok(()),
    }
}

/// The operator who decides here, and what signs for them.
pub(crate) fn choose(
    context: &Context,
    desk: &Desk<'_>,
    who: &Who,
) -> Result<(Operator, Box<dyn Signing>), CliError> {
    // A server has no keys of operators, whatever lies in its data directory.
    if context.served().is_some() {
        return Err(nobody(
            "over a connection an operator hands in a signature of their own key",
        ));
    }
    let known = desk.operators()?;
    if known.is_empty() {
        return Err(nobody(
            "nobody may decide yet: `safepoint operator add NAME` makes the first operator",
        ));
    }
    let operator = match &who.operator {
        Some(name) => known.iter().find(|it| it.name == *name).ok_or_else(|| {
            CliError::Control(ControlError::NotFound {
                what: "operator",
                name: name.clone(),
            })
        })?,
        None => {
            let here: Vec<&Operator> = known.iter().filter(|it| is_here(context, it)).collect();
            match here.as_slice() {
                [one] => *one,
                [] => {
                    return Err(nobody(
                        "no operator's key is here; say whose with `--operator NAME --key FILE`",
                    ));
                }
                _ => {
                    return Err(nobody(
                        "several operators could decide here; say who with `--operator NAME`",
                    ));
                }
            }
        }
    };
    let signing: Box<dyn Signing> = match (operator.held, &who.key) {
        (OperatorKey::SshAgent, None) => Box::new(SshAgent::connect(&context.environment)?),
        (_, given) => {
            let path = match given {
                Some(given) => context.directory.join(given),
                None => own_key(context, &operator.name),
            };
            let text = std::fs::read_to_string(&path).map_err(|error| CliError::File {
                action: "read",
                path: path.clone(),
                error,
            })?;
            Box::new(Signer::parse(&text).map_err(bad_key(&path))?)
        }
    };
    Ok((operator.clone(), signing))
}

fn nobody(reason: &str) -> CliError {
    CliError::Control(ControlError::Operator {
        reason: reason.to_owned(),
    })
}
