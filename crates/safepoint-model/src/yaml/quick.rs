//! The short way for plain documents, which nearly all are.
//!
//! It reads straight from the lines of the text where each can be understood by
//! itself, or else from the events of the parser that the YAML crate uses, and knows only what can be read in one way: no tags, no anchors, no
//! odd numbers, no keys that occur twice. At anything else it gives up, without
//! saying why, and the document is read again the long way, which alone decides
//! and explains. So it never accepts what the long way refuses, and never reads
//! it otherwise; a test holds both against each other.

use std::borrow::Cow;
use std::fmt;

use granit_parser::{Event, Options, Parser, ScalarStyle, StrInput};
use serde::de::value::CowStrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::lines::Lines;
use super::{MAX_DEPTH, MAX_NODES};
use crate::keys::Keys;

/// So many digits always fit into 64 bits.
const FEW_DIGITS: usize = 18;

/// Reads a plain document; `None` when it is not one, or not a `T`.
pub(super) fn read<T: DeserializeOwned>(input: &str) -> Option<T> {
    read_lines(input).or_else(|| read_events(input))
}

/// Reads it line by line.
pub(super) fn read_lines<T: DeserializeOwned>(input: &str) -> Option<T> {
    read_from(Source::Lines(Lines::new(input)?))
}

/// Reads it with the parser.
pub(super) fn read_events<T: DeserializeOwned>(input: &str) -> Option<T> {
    // The default of the parser, so that another crate cannot switch comments on.
    let mut options = Options::default();
    options.emit_comments = false;
    let parser = Parser::new_from_str_with_options(input, options);
    read_from(Source::Events(Box::new(parser)))
}

fn read_from<T: DeserializeOwned>(source: Source<'_>) -> Option<T> {
    let mut reader = Reader {
        source,
        ahead: None,
        depth: 0,
        nodes: 0,
    };
    reader.document().ok()
}

/// It is not plain.
#[derive(Debug)]
pub(super) struct GivesUp;

impl fmt::Display for GivesUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not plain")
    }
}

impl std::error::Error for GivesUp {}

impl de::Error for GivesUp {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// One thing in a document.
pub(super) enum Node<'t> {
    /// A scalar, and whether it stands without quotes.
    Scalar(Cow<'t, str>, bool),
    List,
    Map,
    /// The end of a list or a mapping.
    End,
}

/// Where the things in a document come from.
enum Source<'t> {
    Lines(Lines<'t>),
    Events(Box<Parser<'t, StrInput<'t>>>),
}

struct Reader<'t> {
    source: Source<'t>,
    ahead: Option<Node<'t>>,
    depth: usize,
    nodes: usize,
}

impl<'t> Reader<'t> {
    fn document<T: DeserializeOwned>(&mut self) -> Result<T, GivesUp> {
        if let Source::Events(parser) = &mut self.source {
            match (event(parser)?, event(parser)?) {
                (Event::StreamStart, Event::DocumentStart(_, None)) => {}
                _ => return Err(GivesUp),
            }
        }
        let value = T::deserialize(&mut *self)?;
        let ended = match &mut self.source {
            Source::Lines(lines) => lines.is_at_end(),
            Source::Events(parser) => matches!(
                (event(parser)?, event(parser)?),
                (Event::DocumentEnd, Event::StreamEnd)
            ),
        };
        match ended {
            true => Ok(value),
            false => Err(GivesUp),
        }
    }

    fn next(&mut self) -> Result<Node<'t>, GivesUp> {
        if let Some(node) = self.ahead.take() {
            return Ok(node);
        }
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(GivesUp);
        }
        let parser = match &mut self.source {
            Source::Lines(lines) => return lines.next(),
            Source::Events(parser) => parser,
        };
        Ok(match event(parser)? {
            Event::Scalar(text, style, 0, None) => Node::Scalar(text, style == ScalarStyle::Plain),
            Event::SequenceStart(_, 0, None) => Node::List,
            Event::MappingStart(_, 0, None) => Node::Map,
            Event::SequenceEnd | Event::MappingEnd => Node::End,
            _ => return Err(GivesUp),
        })
    }

    fn scalar(&mut self) -> Result<(Cow<'t, str>, bool), GivesUp> {
        match self.next()? {
            Node::Scalar(text, plain) => Ok((text, plain)),
            _ => Err(GivesUp),
        }
    }

    /// A scalar that is a text wherever a text is wanted.
    fn text(&mut self) -> Result<Cow<'t, str>, GivesUp> {
        match self.scalar()? {
            (text, true) if is_null(&text) => Err(GivesUp),
            (text, _) => Ok(text),
        }
    }

    fn list<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivesUp> {
        self.enter()?;
        let value = visitor.visit_seq(Items {
            reader: &mut *self,
            ended: false,
        })?;
        self.depth -= 1;
        Ok(value)
    }

    fn map<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivesUp> {
        self.enter()?;
        let value = visitor.visit_map(Entries {
            reader: &mut *self,
            keys: Keys::default(),
        })?;
        self.depth -= 1;
        Ok(value)
    }

    fn enter(&mut self) -> Result<(), GivesUp> {
        self.depth += 1;
        if self.depth < MAX_DEPTH {
            Ok(())
        } else {
            Err(GivesUp)
        }
    }

    fn integer<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivesUp> {
        match self.scalar()? {
            (text, true) => integer(&text, visitor),
            _ => Err(GivesUp),
        }
    }
}

fn event<'t>(parser: &mut Parser<'t, StrInput<'t>>) -> Result<Event<'t>, GivesUp> {
    match parser.next() {
        Some(Ok((event, _))) => Ok(event),
        _ => Err(GivesUp),
    }
}

/// An integer that is written in the only way there is.
fn integer<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value, GivesUp> {
    if !is_integer(text) {
        return Err(GivesUp);
    }
    match text.starts_with('-') {
        true => visitor.visit_i64(text.parse().map_err(|_| GivesUp)?),
        false => visitor.visit_u64(text.parse().map_err(|_| GivesUp)?),
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    (1..=FEW_DIGITS).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'))
}

/// Whether it stands for nothing when it stands without quotes.
pub(super) fn is_null(text: &str) -> bool {
    text.is_empty() || text == "~" || text.eq_ignore_ascii_case("null")
}

/// Whether it could be a number of some kind.
fn may_be_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.'))
        || text.parse::<f64>().is_ok()
}

fn visit<'de, V: Visitor<'de>>(text: Cow<'_, str>, visitor: V) -> Result<V::Value, GivesUp> {
    match text {
        Cow::Borrowed(text) => visitor.visit_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'_> {
    type Error = GivesUp;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        let (text, plain) = match self.next()? {
            Node::List => return self.list(visitor),
            Node::Map => return self.map(visitor),
            Node::End => return Err(GivesUp),
            Node::Scalar(text, plain) => (text, plain),
        };
        if !plain {
            visit(text, visitor)
        } else if is_null(&text) {
            visitor.visit_unit()
        } else if text.eq_ignore_ascii_case("true") {
            visitor.visit_bool(true)
        } else if text.eq_ignore_ascii_case("false") {
            visitor.visit_bool(false)
        } else if may_be_number(&text) {
            integer(&text, visitor)
        } else {
            visit(text, visitor)
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        match self.scalar()? {
            (text, true) if text == "true" => visitor.visit_bool(true),
            (text, true) if text == "false" => visitor.visit_bool(false),
            _ => Err(GivesUp),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.integer(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.integer(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.integer(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        let (text, plain) = self.scalar()?;
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
        let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
        if !plain || !is_integer(whole) || fraction.is_empty() || !digits {
            return Err(GivesUp);
        }
        visitor.visit_f64(text.parse().map_err(|_| GivesUp)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        visit(self.text()?, visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        visit(self.text()?, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        match self.next()? {
            Node::Scalar(text, true) if is_null(&text) => visitor.visit_none(),
            Node::End => Err(GivesUp),
            node => {
                self.ahead = Some(node);
                visitor.visit_some(self)
            }
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        match self.next()? {
            Node::List => self.list(visitor),
            _ => Err(GivesUp),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        match self.next()? {
            Node::Map => self.map(visitor),
            _ => Err(GivesUp),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GivesUp> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GivesUp> {
        // With a value it would be a mapping.
        let name: CowStrDeserializer<'_, GivesUp> = self.text()?.into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _visitor: V,
    ) -> Result<V::Value, GivesUp> {
        // The YAML crate gives some of them a meaning of their own.
        Err(GivesUp)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _visitor: V,
    ) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        _visitor: V,
    ) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        _visitor: V,
    ) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_char<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    // The visitors of small integers refuse what does not fit.
    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.integer(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.integer(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.integer(visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.integer(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        self.integer(visitor)
    }
}

/// The items of a list.
struct Items<'a, 't> {
    reader: &'a mut Reader<'t>,
    ended: bool,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = GivesUp;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, GivesUp> {
        if self.ended {
            return Ok(None);
        }
        match self.reader.next()? {
            Node::End => {
                self.ended = true;
                Ok(None)
            }
            node => {
                self.reader.ahead = Some(node);
                seed.deserialize(&mut *self.reader).map(Some)
            }
        }
    }
}

/// The entries of a mapping, and the keys there were.
struct Entries<'a, 't> {
    reader: &'a mut Reader<'t>,
    keys: Keys<'t>,
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = GivesUp;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, GivesUp> {
        let key = match self.reader.next()? {
            Node::End => return Ok(None),
            Node::Scalar(text, true) if is_null(&text) || text == "<<" => return Err(GivesUp),
            Node::Scalar(text, _) => text,
            Node::List | Node::Map => return Err(GivesUp),
        };
        if !self.keys.is_new(key.clone()) {
            return Err(GivesUp);
        }
        seed.deserialize(Key(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, GivesUp> {
        seed.deserialize(&mut *self.reader)
    }
}

/// A key: always a text. What wants a number gives up.
struct Key<'t>(Cow<'t, str>);

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = GivesUp;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, GivesUp> {
        Err(GivesUp)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        visit(self.0, visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        visit(self.0, visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        visit(self.0, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        visit(self.0, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum
    }
}
