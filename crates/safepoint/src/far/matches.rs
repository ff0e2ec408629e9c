//! From a command line to the fields of an endpoint, by the same tables that turn fields into
//! words: no second list of commands exists.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Map, Value};

use crate::commands::form::{Field, Place, Shape};
use crate::commands::outside;
use crate::commands::serve::endpoint::{Endpoint, List};
use crate::commands::serve::table::endpoints;
use crate::context::Context;
use crate::error::CliError;

/// How many are listed where nobody says how many: as many as one page can have.
const PAGE: u64 = crate::commands::form::LARGEST_PAGE;

/// A command line, taken apart.
pub(super) struct Line {
    /// The command, such as `hold approve`.
    pub(super) path: Vec<String>,
    command: clap::Command,
    matches: ArgMatches,
}

impl Line {
    /// The innermost command of a line, with what it was given.
    pub(super) fn of(mut command: clap::Command, mut matches: ArgMatches) -> Self {
        let mut path = Vec::new();
        while let Some((name, inner)) = matches.remove_subcommand() {
            let found = command.find_subcommand(&name).cloned();
            command = found.unwrap_or_else(|| clap::Command::new(""));
            path.push(name);
            matches = inner;
        }
        Self {
            path,
            command,
            matches,
        }
    }

    /// Whether an option was given.
    pub(super) fn has(&self, option: &str) -> bool {
        matches!(self.matches.try_contains_id(option), Ok(true))
    }

    /// The endpoints of this command.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = &'static Endpoint> {
        let path: Vec<String> = self.path.clone();
        endpoints().filter(move |endpoint| {
            let words = path.iter().map(String::as_str);
            // Behind its name may stand what it is always given there.
            let command = endpoint.form.command.iter().copied();
            words.eq(command.take_while(|word| !word.starts_with('-')))
        })
    }

    /// The endpoint that takes all that was given, with its fields.
    pub(super) fn fields(
        &self,
        context: &Context,
    ) -> Result<(&'static Endpoint, Map<String, Value>), CliError> {
        let mut refused = None;
        for endpoint in self.endpoints() {
            match self.fields_of(context, endpoint)? {
                Ok(fields) => return Ok((endpoint, fields)),
                Err(flag) => refused = refused.or(Some(flag)),
            }
        }
        let command = self.path.join(" ");
        Err(match refused {
            Some(flag) => CliError::Invalid {
                message: format!(
                    "`{flag}` of `safepoint {command}` is not available where the store is a server"
                ),
                suggestion: "leave it out, or run the command where the server is",
            },
            None => CliError::Invalid {
                message: format!(
                    "`safepoint {command}` is not available where the store is a server"
                ),
                suggestion: "run it where the server is; nothing was changed",
            },
        })
    }

    /// The fields of one endpoint, or the first thing that it does not take.
    fn fields_of(
        &self,
        context: &Context,
        endpoint: &Endpoint,
    ) -> Result<Result<Map<String, Value>, String>, CliError> {
        let mut fields = Map::new();
        let mut words = endpoint.form.fields.iter().filter(|it| is_word(it.place));
        for arg in self.command.get_positionals() {
            let field = words.next();
            if !self.is_given(arg) {
                continue;
            }
            let Some(field) = field else {
                return Ok(Err(shown(arg)));
            };
            let value = value(context, field, self.texts(arg))?;
            fields.insert(field.name().to_owned(), value);
        }
        let options = self.command.get_arguments();
        for arg in options.filter(|arg| !arg.is_positional() && !arg.is_global_set()) {
            if !self.is_given(arg) {
                continue;
            }
            let Some(field) = field_of(endpoint, arg) else {
                if endpoint.form.command.contains(&shown(arg).as_str()) {
                    continue; // given there in any case
                }
                // What is set for every command is not asked for by this one.
                match self.matches.value_source(arg.get_id().as_str()) {
                    Some(ValueSource::CommandLine) => return Ok(Err(shown(arg))),
                    _ => continue,
                }
            };
            let value = match arg.get_action() {
                ArgAction::SetTrue => Value::Bool(true),
                _ => value(context, field, self.texts(arg))?,
            };
            fields.insert(field.name().to_owned(), value);
        }
        if matches!(endpoint.list, List::Cut(..)) && !fields.contains_key("limit") {
            fields.insert("limit".to_owned(), PAGE.into());
        }
        Ok(Ok(fields))
    }

    /// Whether somebody gave it, rather than it having a value by itself.
    fn is_given(&self, arg: &Arg) -> bool {
        let id = arg.get_id().as_str();
        let present = matches!(self.matches.try_contains_id(id), Ok(true));
        let source = self.matches.value_source(id);
        present && source.is_some_and(|source| source != ValueSource::DefaultValue)
    }

    fn texts(&self, arg: &Arg) -> Vec<String> {
        let raw = self.matches.get_raw(arg.get_id().as_str());
        let raw = raw.into_iter().flatten();
        raw.map(|it| it.to_string_lossy().into_owned()).collect()
    }
}

fn is_word(place: Place) -> bool {
    matches!(
        place,
        Place::Word | Place::Before | Place::Session | Place::TextWord
    )
}

/// The field that an option fills in.
fn field_of(endpoint: &Endpoint, arg: &Arg) -> Option<&'static Field> {
    let long = format!("--{}", arg.get_long()?);
    endpoint.form.fields.iter().find(|field| match field.place {
        Place::Option(option)
        | Place::Switch(option)
        | Place::Pairs(option)
        | Place::Each(option)
        | Place::Input(option)
        | Place::Text(option) => option == long,
        Place::Apart => {
            [("--limit", "limit"), ("--from", "cursor")].contains(&(long.as_str(), field.name()))
        }
        _ => false,
    })
}

/// What was given, in the shape of its field.
fn value(context: &Context, field: &Field, texts: Vec<String>) -> Result<Value, CliError> {
    let wrong = |message: String| CliError::Invalid {
        message: format!("`{}`: {message}", field.name()),
        suggestion: "`--help` tells what it looks like",
    };
    let one = texts.first().cloned().unwrap_or_default();
    let whole = |given: &str| -> Result<String, CliError> {
        let bytes = outside::text_or_file(context, given)?;
        String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))
    };
    Ok(match (field.place, field.shape) {
        (Place::Input(_), _) => {
            let text = outside::json_or_yaml(context, &one)?;
            let read = safepoint_model::json::read(&text, safepoint_model::json::Limits::default());
            read.map_err(|error| wrong(error.to_string()))?
        }
        (Place::Text(_) | Place::TextWord, _) => whole(&one)?.into(),
        (Place::Pairs(_), _) => {
            let pairs = texts.iter().map(|text| {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
                (name.to_owned(), value)
            });
            Value::Object(pairs.collect())
        }
        (Place::Each(_), _) | (_, Shape::Texts | Shape::Paths) => texts.into(),
        (_, Shape::Count | Shape::Limit) => {
            let number: u64 = one
                .parse()
                .map_err(|_| wrong("it is no number".to_owned()))?;
            match field.shape {
                Shape::Limit => number.clamp(1, PAGE).into(),
                _ => number.into(),
            }
        }
        (_, Shape::Flag) => Value::Bool(one == "true"),
        _ => one.into(),
    })
}

fn shown(arg: &Arg) -> String {
    match arg.get_long() {
        Some(long) => format!("--{long}"),
        None => arg.get_id().to_string(),
    }
}
