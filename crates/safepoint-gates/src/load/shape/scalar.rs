//! Texts, numbers and words against the schema.

use serde_json::{Number, Value};

use super::{Walk, has_type, is_anything};
use crate::load::Place;
use crate::load::suggest::shown;

/// What a scalar is when nobody says what it should be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Flag,
    Number,
    Text,
}

impl<'a> Walk<'a> {
    pub(super) fn scalar(
        &mut self,
        text: &str,
        plain: bool,
        schema: &'a Value,
        pointer: &str,
        at: Option<Place>,
    ) -> Value {
        let kind = kind(text, plain);
        if is_anything(schema) {
            return free(text, kind);
        }
        if kind == Kind::Nothing {
            return match self.branch(schema, "null") {
                Some(_) => Value::Null,
                None => self.unexpected("nothing", schema, pointer, at),
            };
        }
        let mut names = Vec::new();
        self.names(schema, &mut names);
        if !names.is_empty() {
            if names.contains(&text) {
                return Value::String(text.to_owned());
            }
            let meant = self.unknown_value(Some(text), names.into_iter(), pointer, at);
            return meant.map_or(Value::Null, Value::from);
        }
        let strict = self.strict;
        if self.branch(schema, "string").is_some() {
            if !strict || kind == Kind::Text {
                return Value::String(text.to_owned());
            }
            let message = format!("expected a text, found {}", found(text, kind));
            let hint = Some("put it in quotes".to_owned());
            self.fault(pointer, at, message, hint);
            return Value::Null;
        }
        if self.branch(schema, "boolean").is_some()
            && (!strict || kind == Kind::Flag)
            && let Some(flag) = flag(text)
        {
            return Value::Bool(flag);
        }
        if (!strict || kind == Kind::Number)
            && let Some(schema) = self
                .branch(schema, "integer")
                .or_else(|| self.branch(schema, "number"))
            && let Some(number) = self.number(text, schema, pointer, at)
        {
            return number;
        }
        self.unexpected(&found(text, kind), schema, pointer, at)
    }

    /// The number that `text` is, even if it is out of bounds.
    fn number(
        &mut self,
        text: &str,
        schema: &Value,
        pointer: &str,
        at: Option<Place>,
    ) -> Option<Value> {
        let number = number(text)?;
        if has_type(schema, "integer") && !(number.is_i64() || number.is_u64()) {
            return None;
        }
        let value = number.as_f64()?;
        let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
        if let Some(least) = bound("minimum").filter(|least| value < *least) {
            self.fault(pointer, at, too_small(text, least), None);
        }
        if let Some(most) = bound("maximum").filter(|most| value > *most) {
            let message = format!("`{}` is too large: at most {most} is read", shown(text));
            self.fault(pointer, at, message, None);
        }
        Some(Value::Number(number))
    }

    /// The words that `schema` allows, if it allows only some.
    fn names(&self, schema: &'a Value, names: &mut Vec<&'a str>) {
        let schema = self.resolve(schema);
        if let Some(name) = schema.get("const").and_then(Value::as_str) {
            names.push(name);
        }
        for word in ["enum", "oneOf", "anyOf"] {
            for item in schema
                .get(word)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                match item {
                    Value::String(name) => names.push(name),
                    other => self.names(other, names),
                }
            }
        }
    }

    /// What is expected, in words.
    pub(super) fn expected(&self, schema: &'a Value) -> &'static str {
        let words = [
            ("array", "a list"),
            ("object", "a mapping"),
            ("boolean", "`true` or `false`"),
            ("integer", "a whole number"),
            ("number", "a number"),
            ("string", "a text"),
        ];
        let mut names = Vec::new();
        self.names(schema, &mut names);
        if !names.is_empty() {
            return "one of a few words";
        }
        let found = words
            .iter()
            .find(|(kind, _)| self.branch(schema, kind).is_some());
        found.map_or("something else", |(_, words)| words)
    }
}

/// How a number below its bound is told, here and where the types are checked.
pub(in crate::load) fn too_small(text: &str, least: f64) -> String {
    format!(
        "`{}` is too small: at least {least} is expected",
        shown(text)
    )
}

fn found(text: &str, kind: Kind) -> String {
    let name = match kind {
        Kind::Nothing => return "nothing".to_owned(),
        Kind::Flag => "",
        Kind::Number => "the number ",
        Kind::Text => "the text ",
    };
    format!("{name}`{}`", shown(text))
}

fn kind(text: &str, plain: bool) -> Kind {
    if !plain {
        Kind::Text
    } else if text.is_empty() || text == "~" || text.eq_ignore_ascii_case("null") {
        Kind::Nothing
    } else if flag(text).is_some() {
        Kind::Flag
    } else if number(text).is_some() {
        Kind::Number
    } else {
        Kind::Text
    }
}

fn flag(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    text.parse().ok().and_then(Number::from_f64)
}

fn free(text: &str, kind: Kind) -> Value {
    match kind {
        Kind::Nothing => Value::Null,
        Kind::Flag => flag(text).map_or(Value::Null, Value::Bool),
        Kind::Number => number(text).map_or(Value::Null, Value::Number),
        Kind::Text => Value::String(text.to_owned()),
    }
}
