//! `safepoint token …`: who may ask over a connection, and for what.
//!
//! A token is shown once, when it is made; what is kept of it opens nothing.

mod scope;

use clap::Subcommand;
use safepoint_control::{Control, NewToken, Secret, Token, TokenRole};
use safepoint_model::{Clock, Exit, Expiry, Timestamp, text};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::scope::{Scope, plain};

use super::operator::refuse_agents;
use crate::console::{BAD, FAINT, GOOD, STRONG};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// What can be done with tokens
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a token; it is shown once
    Create(Create),
    /// List tokens, the newest first
    List,
    /// Exchange a token for another one; the old one opens nothing from then on
    Rotate {
        /// Its name
        name: String,
    },
    /// Take a token back, at once and for good
    Revoke {
        /// Its name
        name: String,
    },
}

/// Arguments of `token create`
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Its name; for an operator's token also the operator's, unless `--operator` says so
    name: String,
    /// What it lets somebody do
    #[arg(long, value_enum, value_name = "ROLE")]
    role: Role,
    /// The operator whose token it is
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// Limit it to the files of `workspace:PATH`, below a root of the server; can be given several times
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<Scope>,
    /// Until when: `24h`, `90d`, an RFC 3339 time or `never`
    #[arg(long, value_name = "WHEN", default_value = "90d")]
    expires: String,
}

/// What a token lets somebody do
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// Work in sessions of its own
    Agent,
    /// Decide, with a signature of the operator's key
    Operator,
    /// Try out rules
    Steward,
    /// Read everything
    Auditor,
}

impl From<Role> for TokenRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Agent => Self::Agent,
            Role::Operator => Self::Operator,
            Role::Steward => Self::Steward,
            Role::Auditor => Self::Auditor,
        }
    }
}

/// A token, as it is listed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TokenDocument {
    /// Its name.
    name: String,
    /// What it lets somebody do.
    role: TokenRole,
    /// The operator whose token it is.
    operator: Option<String>,
    /// What it is limited to.
    scopes: Vec<String>,
    /// `good`, `expired` or `revoked`.
    state: &'static str,
    /// Since when.
    created: String,
    /// Until when; for ever without it.
    expires_at: Option<String>,
    /// When it was last exchanged.
    rotated: Option<String>,
    /// When it was taken back.
    revoked: Option<String>,
}

/// What `token create` and `token rotate` print.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TokenReply {
    /// The token itself. It is not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// What it is.
    about: TokenDocument,
}

/// What `token list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TokenList {
    /// The newest first.
    tokens: Vec<TokenDocument>,
}

impl TokenDocument {
    fn new(token: &Token, now: Timestamp) -> Self {
        let shown = |time: Option<Timestamp>| time.map(|time| time.to_string());
        Self {
            name: token.name.clone(),
            role: token.role,
            operator: token.operator.clone(),
            scopes: token.scopes.clone(),
            state: match (token.revoked, token.is_good(now)) {
                (Some(_), _) => "revoked",
                (None, true) => "good",
                (None, false) => "expired",
            },
            created: token.created.to_string(),
            expires_at: shown(token.expires_at),
            rotated: shown(token.rotated),
            revoked: shown(token.revoked),
        }
    }
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    let control = context.control()?;
    let now = SystemClock.now();
    if let Command::List = command {
        let tokens = control.tokens()?;
        let reply = TokenList {
            tokens: tokens
                .iter()
                .map(|token| TokenDocument::new(token, now))
                .collect(),
        };
        context
            .console
            .value(&reply, |reply| match reply.tokens.is_empty() {
                true => {
                    "There are no tokens yet: `safepoint token create NAME --role ROLE`\n".into()
                }
                false => reply.tokens.iter().map(line).collect(),
            })?;
        return Ok(Exit::Done);
    }
    refuse_agents(context, &control)?;
    let (token, secret) = change(&control, command, now)?;
    let reply = TokenReply {
        token: secret.map(|secret| secret.reveal().to_owned()),
        about: TokenDocument::new(&token, now),
    };
    context.console.value(&reply, |reply| {
        let mut shown = line(&reply.about);
        if let Some(token) = &reply.token {
            shown.push_str(&format!("{token}\n"));
        }
        shown
    })?;
    if reply.token.is_some() {
        context
            .console
            .say("this is shown once: keep it where only its owner reads");
    }
    Ok(Exit::Done)
}

fn change(
    control: &Control,
    command: Command,
    now: Timestamp,
) -> Result<(Token, Option<Secret>), CliError> {
    match command {
        Command::Create(arguments) => {
            let (token, secret) = control.create_token(&wanted(&arguments, now)?)?;
            Ok((token, Some(secret)))
        }
        Command::Rotate { name } => {
            let (token, secret) = control.rotate_token(&name)?;
            Ok((token, Some(secret)))
        }
        Command::Revoke { name } => Ok((control.revoke_token(&name)?, None)),
        Command::List => Err(CliError::Usage("nothing is changed by a list".to_owned())),
    }
}

fn wanted(arguments: &Create, now: Timestamp) -> Result<NewToken, CliError> {
    let name = &arguments.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(CliError::Invalid {
            message: format!("`{}` cannot be the name of a token", text::line(name).text),
            suggestion: "use at most 64 letters, digits, `-`, `_`, `.` or `@`",
        });
    }
    let operator = match (arguments.role, &arguments.operator) {
        (Role::Operator, Some(operator)) => Some(operator.clone()),
        (Role::Operator, None) => Some(name.clone()),
        (_, None) => None,
        (_, Some(_)) => {
            return Err(CliError::Invalid {
                message: "only an operator's token belongs to an operator".to_owned(),
                suggestion: "leave out `--operator`, or say `--role operator`",
            });
        }
    };
    let expiry = Expiry::parse(&arguments.expires, now)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(NewToken {
        name: name.clone(),
        role: arguments.role.into(),
        operator,
        scopes: arguments.scope.iter().map(ToString::to_string).collect(),
        expires_at: match expiry {
            Expiry::Never => None,
            Expiry::At(end) => Some(end),
        },
    })
}

fn line(token: &TokenDocument) -> String {
    let style = if token.state == "good" { GOOD } else { BAD };
    let until = match &token.expires_at {
        Some(end) => format!("until {}", end.get(..19).unwrap_or(end)),
        None => "for ever".to_owned(),
    };
    let of = token.operator.as_ref().map(|name| format!(" of {name}"));
    let scopes = match token.scopes.is_empty() {
        true => String::new(),
        false => format!("  {}", text::line(&token.scopes.join(" ")).text),
    };
    format!(
        "{STRONG}{}{STRONG:#}  {}{}  {style}{}{style:#}  {FAINT}{until}{FAINT:#}{scopes}\n",
        text::line(&token.name).text,
        token.role.as_str(),
        of.unwrap_or_default(),
        token.state,
    )
}
