//! From what is given to the words of a command.
//!
//! A value never stands where it could be taken for a flag: it follows a `=`, or the `--`
//! after which there are none, or goes to standard input, where no file can be named by it.

use serde_json::{Map, Value};

use super::{Field, Form, Place, Session, Shape};

/// A command, ready to be run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// The words.
    pub(crate) words: Vec<String>,
    /// What it reads on standard input.
    pub(crate) input: Option<String>,
}

/// Under which names fields are known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Under all of them, and what is null is not given. Models are not exact.
    Lenient,
    /// Under the first one alone, and null is a value like others.
    Strict,
}

/// What was given, by field.
pub(crate) struct Given<'a> {
    tool: &'a Form,
    values: Vec<(&'static Field, &'a Value)>,
}

impl<'a> Given<'a> {
    /// Checks what is given. A name that is not known is refused: whoever gives it means
    /// something by it.
    pub(crate) fn check(
        tool: &'a Form,
        given: &'a Map<String, Value>,
        naming: Naming,
    ) -> Result<Self, String> {
        let refuse = |message: String| Err(message);
        let mut values: Vec<(&'static Field, &Value)> = Vec::new();
        let absent = |value: &Value| naming == Naming::Lenient && value.is_null();
        for (name, value) in given.iter().filter(|(_, value)| !absent(value)) {
            let known = |field: &&Field| match naming {
                Naming::Lenient => field.names.contains(&name.as_str()),
                Naming::Strict => field.name() == name.as_str(),
            };
            let Some(field) = tool.fields.iter().find(known) else {
                return refuse(format!("`{}` takes no `{name}`", tool.name));
            };
            if values.iter().any(|(there, _)| there.names == field.names) {
                return refuse(format!("`{}` is given twice", field.name()));
            }
            if let Some(wanted) = field.shape.fault(value, naming) {
                return refuse(format!("`{name}` must be {wanted}"));
            }
            values.push((field, value));
        }
        let this = Self { tool, values };
        let whole = |group: &[&str]| group.iter().all(|name| this.value(name).is_some());
        if !tool.needs.is_empty() && !tool.needs.iter().any(|group| whole(group)) {
            let groups: Vec<String> = tool.needs.iter().map(|group| listed(group)).collect();
            return refuse(format!("`{}` needs {}", tool.name, groups.join(", or ")));
        }
        if tool.name == "record" && this.value("request_id").is_some() == this.is_note() {
            return refuse("`record` takes `request_id`, or `intent`, not both".into());
        }
        let of_chain = ["workspace", "token", "request_key"];
        if let Some(name) = of_chain.iter().find(|name| this.value(name).is_some())
            && tool.name == "record"
            && !this.is_record()
        {
            return refuse(format!(
                "`{name}` is for a record with `intent` and `workspace`"
            ));
        }
        Ok(this)
    }

    /// The session that is named, if one is.
    pub(crate) fn session(&self) -> Option<&str> {
        self.value("session_id").and_then(Value::as_str)
    }

    /// Whether a session is needed, and none is named.
    pub(crate) fn needs_session(&self) -> bool {
        self.tool.session != Session::None && self.session().is_none() && !self.is_record()
    }

    /// What was given under a name.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        let (_, value) = self
            .values
            .iter()
            .find(|(it, _)| it.names.contains(&name))?;
        Some(value)
    }

    fn is_note(&self) -> bool {
        self.value("intent").is_some()
    }

    /// Whether it goes into the chain of a workspace.
    fn is_record(&self) -> bool {
        self.is_note() && self.value("workspace").is_some()
    }

    /// The words of the command.
    pub(crate) fn words(&self, session: Option<&str>) -> Words {
        match (self.is_record(), self.is_note()) {
            (true, _) => self.record(),
            (false, true) => self.note(session),
            (false, false) => self.command(session),
        }
    }

    fn command(&self, session: Option<&str>) -> Words {
        let mut made = Words {
            words: owned(self.tool.command),
            input: None,
        };
        let mut after: Vec<String> = Vec::new();
        if self.tool.session == Session::Word {
            after.extend(session.map(str::to_owned));
        }
        // In the order of the table: words are told apart by their places.
        for field in self.tool.fields {
            let mine = |(there, _): &&(&Field, &Value)| there.names == field.names;
            let Some((_, value)) = self.values.iter().find(mine) else {
                continue;
            };
            match field.place {
                Place::Option(option) => made.words.push(format!("{option}={}", plain(value))),
                Place::Switch(option) if *value == &Value::Bool(true) => {
                    made.words.push(option.to_owned());
                }
                Place::Switch(_) | Place::Session | Place::Note | Place::Apart => {}
                Place::Each(option) => {
                    let each = texts(value).into_iter();
                    made.words.extend(each.map(|it| format!("{option}={it}")));
                }
                Place::Text(option) => {
                    made.words.push(format!("{option}=-"));
                    made.input = Some(plain(value));
                }
                Place::TextWord => {
                    after.push("-".to_owned());
                    made.input = Some(plain(value));
                }
                Place::Pairs(option) => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        made.words.push(format!("{option}={name}={value}"));
                    }
                }
                Place::Input(option) => {
                    made.words.push(format!("{option}=-"));
                    made.input = Some(value.to_string());
                }
                Place::Before => made.words.push(plain(value)),
                Place::Word => after.extend(texts(value)),
            }
        }
        if !after.is_empty() {
            made.words.push("--".to_owned());
            made.words.append(&mut after);
        }
        made
    }

    /// A record in the chain of a workspace: what it says goes to standard input.
    fn record(&self) -> Words {
        let mut words = owned(&["workspace", "checkpoint", "--body=-"]);
        let mut after = owned(&["--"]);
        let mut fields = Map::new();
        for (field, value) in &self.values {
            match field.place {
                Place::Option(option) if option != "--action" => {
                    words.push(format!("{option}={}", plain(value)));
                }
                Place::Word => after.push(plain(value)),
                Place::Note => {
                    fields.insert(field.name().to_owned(), (*value).clone());
                }
                _ => {}
            }
        }
        words.append(&mut after);
        Words {
            words,
            input: Some(Value::Object(fields).to_string()),
        }
    }

    /// A record without a workspace is a note in the trail.
    fn note(&self, session: Option<&str>) -> Words {
        let mut words = owned(&["trail", "note"]);
        if let Some(session) = session {
            words.push(format!("--stream={session}"));
        }
        if let Some(action) = self.value("action_id") {
            words.push(format!("--action={}", plain(action)));
        }
        words.extend(owned(&["--", "-"]));
        let of_note = |(field, _): &&(&Field, &Value)| field.place == Place::Note;
        let told: Vec<_> = self.values.iter().filter(of_note).collect();
        let text = match told.as_slice() {
            [(_, intent)] => plain(intent),
            _ => {
                let fields = told.iter().map(|(field, value)| {
                    let value: Value = (*value).clone();
                    (field.name().to_owned(), value)
                });
                Value::Object(fields.collect()).to_string()
            }
        };
        Words {
            words,
            input: Some(text),
        }
    }
}

impl Field {
    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

impl Shape {
    /// What a value should be, if it is not that.
    fn fault(self, value: &Value, naming: Naming) -> Option<String> {
        let objects = |value: &Value| {
            let each = value.as_array();
            value.is_object() || each.is_some_and(|each| each.iter().all(Value::is_object))
        };
        // No store keeps a NUL in a text, and no name of a file has one.
        let text = |value: &Value| value.as_str().is_some_and(|it| !it.contains('\0'));
        let strings = |value: &Value| {
            let each = value.as_array();
            (naming == Naming::Lenient && text(value))
                || each.is_some_and(|each| each.iter().all(text))
        };
        let (fits, wanted) = match self {
            Self::Text => (
                text(value)
                    && value
                        .as_str()
                        .is_some_and(|it| it.chars().count() <= LONGEST_TEXT),
                "a text of at most 10,000 characters, without NUL".to_owned(),
            ),
            Self::Long => (text(value), "a text without NUL".to_owned()),
            Self::Id => (value.as_str().is_some_and(is_id), "an id".to_owned()),
            Self::Texts => (
                strings(value),
                "a text, or an array of texts, without NUL".to_owned(),
            ),
            Self::Paths => (
                value
                    .as_array()
                    .is_some_and(|each| each.iter().all(|it| it.as_str().is_some_and(is_path))),
                "an array of paths; one with a `:` in it begins with `./`".to_owned(),
            ),
            Self::Limit => (
                value
                    .as_u64()
                    .is_some_and(|it| (1..=LARGEST_PAGE).contains(&it)),
                format!("a number from 1 to {LARGEST_PAGE}"),
            ),
            Self::Cursor => (
                value.as_str().is_some_and(is_cursor),
                "the cursor of a page".to_owned(),
            ),
            Self::Choice(known) => (
                value.as_str().is_some_and(|value| known.contains(&value)),
                format!("one of {}", listed(known)),
            ),
            Self::Count => (
                value.as_u64().is_some_and(|it| it <= MOST),
                "a number".to_owned(),
            ),
            Self::Flag => (value.is_boolean(), "true or false".to_owned()),
            Self::Object => (value.is_object(), "an object".to_owned()),
            Self::Named => (
                value.as_object().is_some_and(|it| it.keys().all(is_name)),
                "an object, without `=` in its names".to_owned(),
            ),
            Self::Objects => (objects(value), "an object, or an array of them".to_owned()),
            Self::Anything => (true, String::new()),
        };
        (!fits).then_some(wanted)
    }
}

/// The longest text that is not said to be long.
pub(super) const LONGEST_TEXT: usize = 10_000;

/// The largest count: what JSON can write everywhere.
pub(super) const MOST: u64 = (1 << 53) - 1;

/// The longest id. Those there are are shorter by far.
pub(super) const LONGEST_ID: usize = 100;

/// The characters of ids, which cannot be taken for a flag.
fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.len() <= LONGEST_ID && text.chars().all(plain)
}

/// The most on one page.
pub(crate) const LARGEST_PAGE: u64 = 1_000;

/// Whether it can only be a path or a pattern.
fn is_path(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    !text.is_empty() && !text.contains('\0') && !first.contains(':')
}

/// A place, and perhaps what was there.
fn is_cursor(text: &str) -> bool {
    let (place, id) = match text.split_once('.') {
        Some((place, id)) => (place, Some(id)),
        None => (text, None),
    };
    let digits = place.bytes().all(|c| c.is_ascii_digit());
    digits && (1..=15).contains(&place.len()) && id.is_none_or(is_id)
}

#[expect(clippy::ptr_arg, reason = "it is handed to `all` over keys")]
fn is_name(name: &String) -> bool {
    !name.contains('=')
}

/// A value as one word.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().map(plain).collect(),
        other => vec![plain(other)],
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `a`, `b` and `c`, in back-ticks.
fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
