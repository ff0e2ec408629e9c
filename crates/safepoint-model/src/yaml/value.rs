//! Values whose types nobody knows: read by the core schema of YAML 1.2, and numbers as our JSON.
//!
//! The YAML crate rounds integers that are too large, and takes `1_000` for a number. Here an
//! integer is exact or refused, so that two documents that differ are never read as one value.
//! What is right as a document the YAML crate decides all the same: it reads first, and the
//! values that are made here must agree with its own in everything but numbers.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Number, Value};

use super::{YamlError, quick, read_as};
use crate::json::{MAX_INTEGER, is_inexact_integer};

/// Reads exactly one YAML document as a value that our JSON can write, too.
pub fn read_value(input: &str) -> Result<Value, YamlError> {
    let by_crate: Value = read_as(input)?;
    // The short way knows only whole numbers that it reads exactly.
    if quick::read::<Value>(input).is_some() && are_small(&by_crate) {
        return Ok(by_crate);
    }
    // The default of the parser, so that another crate cannot switch comments on.
    let mut options = Options::default();
    options.emit_comments = false;
    let mut reader = Reader {
        parser: Parser::new_from_str_with_options(input, options),
        anchors: HashMap::new(),
    };
    let value = reader.document()?;
    match agrees(&by_crate, &value) {
        true => Ok(value),
        false => Err(refusal(
            None,
            "it can be read in more than one way; write it as JSON",
        )),
    }
}

/// Whether all integers in it are exact in every reader.
fn are_small(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(are_small),
        Value::Object(members) => members.values().all(are_small),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number <= MAX_INTEGER,
            (None, Some(number)) => number.unsigned_abs() <= MAX_INTEGER,
            (None, None) => false,
        },
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// Whether two readings differ in numbers at most: in their size, or in that one of them takes
/// for a text what the other takes for a number.
fn agrees(by_crate: &Value, value: &Value) -> bool {
    match (by_crate, value) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| agrees(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut members = one.iter();
            one.len() == other.len()
                && members.all(|(name, a)| other.get(name).is_some_and(|b| agrees(a, b)))
        }
        (Value::Number(_), Value::Number(_) | Value::String(_)) => true,
        (one, other) => one == other,
    }
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Value>,
}

impl<'t> Reader<'t> {
    fn document(&mut self) -> Result<Value, YamlError> {
        self.next()?; // the start of the stream
        match self.next()? {
            (Event::StreamEnd, _) => Ok(Value::Null),
            (Event::DocumentStart(..), _) => {
                let first = self.next()?;
                self.value(first)
            }
            (_, span) => Err(refusal(Some(span), "expected a document")),
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), YamlError> {
        match self.parser.next() {
            Some(Ok(next)) => Ok(next),
            // The YAML crate has read it to its end.
            Some(Err(_)) | None => Err(refusal(None, "document ends too early")),
        }
    }

    /// The value that begins with this event. How deep they lie, the YAML crate has limited.
    fn value(&mut self, (event, span): (Event<'t>, Span)) -> Result<Value, YamlError> {
        let (value, anchor) = match event {
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                return known.ok_or_else(|| refusal(Some(span), "alias has no anchor before it"));
            }
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag, span)?;
                let value = match style == ScalarStyle::Plain {
                    true => plain(text, span)?,
                    false => Value::String(text.into_owned()),
                };
                (value, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_tag(tag, span)?;
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break (Value::Array(items), anchor),
                        first => items.push(self.value(first)?),
                    }
                }
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_tag(tag, span)?;
                (self.members()?, anchor)
            }
            _ => return Err(refusal(Some(span), "expected a value")),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn members(&mut self) -> Result<Value, YamlError> {
        let mut members = Map::new();
        loop {
            let name = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(members)),
                (Event::Scalar(text, _, 0, None), _) => text.into_owned(),
                (_, span) => return Err(refusal(Some(span), "expected a plain key")),
            };
            let first = self.next()?;
            let value = self.value(first)?;
            members.insert(name, value);
        }
    }
}

fn refuse_tag(tag: Option<Cow<'_, Tag>>, span: Span) -> Result<(), YamlError> {
    match tag {
        None => Ok(()),
        Some(_) => Err(refusal(
            Some(span),
            "tags are not read; a text has quotation marks around it",
        )),
    }
}

/// A scalar without quotation marks.
fn plain(text: Cow<'_, str>, span: Span) -> Result<Value, YamlError> {
    if quick::is_null(&text) {
        return Ok(Value::Null);
    }
    for (word, value) in [("true", true), ("false", false)] {
        if text.eq_ignore_ascii_case(word) {
            return Ok(Value::Bool(value));
        }
    }
    match number(&text) {
        None => Ok(Value::String(text.into_owned())),
        Some(Some(number)) => Ok(Value::Number(number)),
        Some(None) => Err(refusal(
            Some(span),
            &format!(
                "number `{text}` is beyond ±{MAX_INTEGER} and not exact for every reader; write it as a text, in quotation marks"
            ),
        )),
    }
}

/// The number that a text is in the core schema; nothing inside where it is out of range.
fn number(text: &str) -> Option<Option<Number>> {
    let (is_negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let whole = |digits: &str, radix: u32| -> Option<Number> {
        let size = u64::from_str_radix(digits, radix).ok()?;
        let number = i64::try_from(size).ok().filter(|_| size <= MAX_INTEGER)?;
        Some(if is_negative { -number } else { number }.into())
    };
    let is_of = |digits: &str, radix: u32| {
        !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
    };
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix).filter(|it| is_of(it, radix)) {
            return Some(whole(digits, radix));
        }
    }
    if is_of(unsigned, 10) {
        return Some(whole(unsigned, 10));
    }
    if !is_decimal(unsigned) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    let is_exact = number.is_finite() && !is_inexact_integer(number);
    Some(Number::from_f64(number).filter(|_| is_exact))
}

/// Whether it is `1.5`, `.5`, `1.` or one of them with an exponent.
fn is_decimal(text: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !(whole.is_empty() && fraction.is_empty());
    let exponent_is_good = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    has_digits && all_digits(whole) && all_digits(fraction) && exponent_is_good
}

fn refusal(span: Option<Span>, message: &str) -> YamlError {
    YamlError {
        message: message.to_owned(),
        line: span.map(|span| span.start.line()),
        column: span.map(|span| span.start.col() + 1),
    }
}
