//! The short way into a type, for documents in which nothing is wrong.
//!
//! It reads straight from the text, without a tree in between. At anything that
//! [`read`](super::read()) refuses, and at anything that the type refuses, it
//! gives up without saying why; whoever asked reads the document again the long
//! way, which alone decides and explains. So it never accepts what the long way
//! refuses; a test holds both against each other.
//!
//! A structure is a mapping here, never a list, and a word is a text.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::CowStrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Limits, MAX_DEPTH, MAX_INTEGER, is_special};
use crate::keys::Keys;

/// So many digits always fit into 64 bits.
const FEW_DIGITS: usize = 18;

/// Reads a document of which everything fits; `None` when something does not, or may not.
pub fn read_plain<T: DeserializeOwned>(input: &[u8], limits: Limits) -> Option<T> {
    if input.len() > limits.bytes {
        return None;
    }
    let mut reader = Reader {
        text: str::from_utf8(input).ok()?,
        at: 0,
        room: limits.depth.min(MAX_DEPTH),
    };
    reader.skip_space();
    let value = T::deserialize(&mut reader).ok()?;
    reader.skip_space();
    (reader.at == reader.text.len()).then_some(value)
}

/// Something does not fit, or may not.
#[derive(Debug)]
struct GivesUp;

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

    // What the defaults would say is put together at some cost, and never read.
    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// How many more levels may be entered.
    room: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, byte: u8) -> Result<(), GivesUp> {
        match self.take(byte) {
            true => Ok(()),
            false => Err(GivesUp),
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn word(&mut self, word: &str) -> Result<(), GivesUp> {
        if !self.rest().starts_with(word) {
            return Err(GivesUp);
        }
        self.at += word.len();
        Ok(())
    }

    /// A string; the place is at its first quote.
    fn string(&mut self) -> Result<Cow<'t, str>, GivesUp> {
        self.want(b'"')?;
        let rest = self.rest();
        let end = rest.bytes().position(is_special).ok_or(GivesUp)?;
        let plain = rest.get(..end).ok_or(GivesUp)?;
        self.at += end;
        if self.take(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut string = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(string));
                }
                Some(b'\\') => string.push(self.escape()?),
                _ => return Err(GivesUp),
            }
            let rest = self.rest();
            let end = rest.bytes().position(is_special).ok_or(GivesUp)?;
            string.push_str(rest.get(..end).ok_or(GivesUp)?);
            self.at += end;
        }
    }

    fn escape(&mut self) -> Result<char, GivesUp> {
        self.at += 1;
        let letter = self.peek().ok_or(GivesUp)?;
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let digits = self.rest().get(..4).ok_or(GivesUp)?;
                if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return Err(GivesUp);
                }
                self.at += 4;
                let code = u32::from_str_radix(digits, 16).map_err(|_| GivesUp)?;
                // One half of a pair is no character.
                char::from_u32(code).ok_or(GivesUp)?
            }
            _ => return Err(GivesUp),
        })
    }

    /// A whole number that is written in the only way there is.
    fn number<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivesUp> {
        let start = self.at;
        let negative = self.take(b'-');
        let first = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        let digits = self.text.get(first..self.at).ok_or(GivesUp)?;
        let odd = digits.starts_with('0') && (negative || digits.len() > 1);
        if odd || digits.is_empty() || matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return self.fraction(start, digits, visitor);
        }
        if digits.len() > FEW_DIGITS {
            return Err(GivesUp);
        }
        let size: u64 = digits.parse().map_err(|_| GivesUp)?;
        match (size <= MAX_INTEGER, negative) {
            (false, _) => Err(GivesUp),
            (true, false) => visitor.visit_u64(size),
            (true, true) => visitor.visit_i64(-i64::try_from(size).map_err(|_| GivesUp)?),
        }
    }

    /// A decimal number without an exponent, and not too long.
    fn fraction<'de, V: Visitor<'de>>(
        &mut self,
        start: usize,
        whole: &str,
        visitor: V,
    ) -> Result<V::Value, GivesUp> {
        let odd = whole.starts_with('0') && whole.len() > 1;
        if odd || whole.is_empty() || whole.len() >= FEW_DIGITS - 3 || !self.take(b'.') {
            return Err(GivesUp);
        }
        let first = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == first || matches!(self.peek(), Some(b'e' | b'E')) {
            return Err(GivesUp);
        }
        let text = self.text.get(start..self.at).ok_or(GivesUp)?;
        visitor.visit_f64(text.parse().map_err(|_| GivesUp)?)
    }

    fn list<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivesUp> {
        self.enter()?;
        let mut items = Items {
            reader: &mut *self,
            state: State::Begun,
        };
        let value = visitor.visit_seq(&mut items)?;
        items.state.ended()?;
        self.room += 1;
        Ok(value)
    }

    fn map<'de, V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, GivesUp> {
        self.enter()?;
        let mut entries = Entries {
            reader: &mut *self,
            state: State::Begun,
            keys: Keys::default(),
        };
        let value = visitor.visit_map(&mut entries)?;
        entries.state.ended()?;
        self.room += 1;
        Ok(value)
    }

    fn enter(&mut self) -> Result<(), GivesUp> {
        self.room = self.room.checked_sub(1).ok_or(GivesUp)?;
        self.at += 1;
        self.skip_space();
        Ok(())
    }
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
        match self.peek() {
            Some(b'{') => self.map(visitor),
            Some(b'[') => self.list(visitor),
            Some(b'"') => visit(self.string()?, visitor),
            Some(b'-' | b'0'..=b'9') => self.number(visitor),
            Some(b't') => {
                self.word("true")?;
                visitor.visit_bool(true)
            }
            Some(b'f') => {
                self.word("false")?;
                visitor.visit_bool(false)
            }
            Some(b'n') => {
                self.word("null")?;
                visitor.visit_unit()
            }
            _ => Err(GivesUp),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GivesUp> {
        match self.peek() {
            Some(b'{') => self.map(visitor),
            _ => Err(GivesUp),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GivesUp> {
        let name: CowStrDeserializer<'_, GivesUp> = self.string()?.into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivesUp> {
        match self.peek() {
            Some(b'n') => {
                self.word("null")?;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, GivesUp> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple tuple_struct map
        identifier ignored_any
    }
}

/// How far a list or a mapping has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Begun,
    Within,
    Ended,
}

impl State {
    /// Whoever reads a part of a list or mapping has not seen the rest.
    fn ended(self) -> Result<(), GivesUp> {
        match self {
            Self::Ended => Ok(()),
            Self::Begun | Self::Within => Err(GivesUp),
        }
    }

    /// Whether another item follows; `close` ends them.
    fn goes_on(&mut self, reader: &mut Reader<'_>, close: u8) -> Result<bool, GivesUp> {
        if *self == Self::Ended {
            return Ok(false);
        }
        if *self == Self::Within {
            reader.skip_space();
        }
        if reader.take(close) {
            *self = Self::Ended;
            return Ok(false);
        }
        if *self == Self::Within {
            reader.want(b',')?;
            reader.skip_space();
        }
        *self = Self::Within;
        Ok(true)
    }
}

/// The items of a list.
struct Items<'a, 't> {
    reader: &'a mut Reader<'t>,
    state: State,
}

impl<'de> SeqAccess<'de> for &mut Items<'_, '_> {
    type Error = GivesUp;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, GivesUp> {
        match self.state.goes_on(self.reader, b']')? {
            true => seed.deserialize(&mut *self.reader).map(Some),
            false => Ok(None),
        }
    }
}

/// The entries of a mapping.
struct Entries<'a, 't> {
    reader: &'a mut Reader<'t>,
    state: State,
    keys: Keys<'t>,
}

impl<'de> MapAccess<'de> for &mut Entries<'_, '_> {
    type Error = GivesUp;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, GivesUp> {
        if !self.state.goes_on(self.reader, b'}')? {
            return Ok(None);
        }
        let key = self.reader.string()?;
        if !self.keys.is_new(key.clone()) {
            return Err(GivesUp);
        }
        let key: CowStrDeserializer<'_, GivesUp> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, GivesUp> {
        self.reader.skip_space();
        self.reader.want(b':')?;
        self.reader.skip_space();
        seed.deserialize(&mut *self.reader)
    }
}

#[cfg(test)]
mod tests;
