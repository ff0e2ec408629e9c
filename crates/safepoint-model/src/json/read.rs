//! The reader: recursive descent over RFC 8259, and nothing beyond it.
//!
//! The path of an error costs nothing until there is one: each level adds its
//! step while the error passes through it.

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::{
    Limits, MAX_DEPTH, MAX_INTEGER, ReadError, ReadErrorKind, is_inexact_integer, is_special,
};

/// Reads one JSON document, and nothing after it.
pub fn read(input: &[u8], limits: Limits) -> Result<Value, ReadError> {
    if input.len() > limits.bytes {
        let kind = ReadErrorKind::TooLarge {
            length: input.len(),
            limit: limits.bytes,
        };
        return Err(Fault::at(0, kind).locate(""));
    }
    let text = match str::from_utf8(input) {
        Ok(text) => text,
        Err(error) => {
            let sound = input.get(..error.valid_up_to()).unwrap_or_default();
            let sound = str::from_utf8(sound).unwrap_or_default();
            return Err(Fault::at(sound.len(), ReadErrorKind::NotUtf8).locate(sound));
        }
    };
    let mut reader = Reader {
        text,
        at: 0,
        room: limits.depth.min(MAX_DEPTH),
        limit: limits.depth.min(MAX_DEPTH),
    };
    reader.document().map_err(|fault| fault.locate(text))
}

/// One step of a path.
enum Step {
    Key(String),
    Index(usize),
}

/// An error on its way out of the reader.
struct Fault {
    kind: ReadErrorKind,
    at: usize,
    /// Innermost first.
    steps: Vec<Step>,
}

/// Boxed, so that the results of the reader stay small.
type Reading<T> = Result<T, Box<Fault>>;

impl Fault {
    fn at(at: usize, kind: ReadErrorKind) -> Box<Self> {
        Box::new(Self {
            kind,
            at,
            steps: Vec::new(),
        })
    }

    fn within(mut self: Box<Self>, step: Step) -> Box<Self> {
        self.steps.push(step);
        self
    }

    fn locate(self, text: &str) -> ReadError {
        let before = text.get(..self.at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let on_line = before.get(line_start..).unwrap_or_default();
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            path.push('/');
            match step {
                Step::Key(key) => path.push_str(&key.replace('~', "~0").replace('/', "~1")),
                Step::Index(index) => path.push_str(&index.to_string()),
            }
        }
        ReadError {
            kind: self.kind,
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: on_line.chars().count() + 1,
            offset: self.at,
            path,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many more levels may be entered.
    room: usize,
    limit: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Reading<Value> {
        if self.text.starts_with('\u{feff}') {
            return Err(Fault::at(0, ReadErrorKind::ByteOrderMark));
        }
        self.skip_space();
        let value = self.value()?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.unexpected("the end of the document"));
        }
        Ok(value)
    }

    fn value(&mut self) -> Reading<Value> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Reading<Value>) -> Reading<Value> {
        let Some(room) = self.room.checked_sub(1) else {
            let limit = self.limit;
            return Err(Fault::at(self.at, ReadErrorKind::TooDeep { limit }));
        };
        self.room = room;
        self.at += 1;
        self.skip_space();
        let value = read(self)?;
        self.room += 1;
        Ok(value)
    }

    /// What follows `[`.
    fn array(&mut self) -> Reading<Value> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            match self.value() {
                Ok(item) => items.push(item),
                Err(fault) => return Err(fault.within(Step::Index(items.len()))),
            }
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.unexpected("`,` or `]`"));
            }
            self.skip_space();
        }
    }

    /// What follows `{`.
    fn object(&mut self) -> Reading<Value> {
        let mut members = Map::new();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            match members.entry(self.string()?) {
                Entry::Occupied(slot) => {
                    let key = slot.key().clone();
                    return Err(Fault::at(start, ReadErrorKind::DuplicateKey { key }));
                }
                Entry::Vacant(slot) => match self.member() {
                    Ok(value) => slot.insert(value),
                    Err(fault) => return Err(fault.within(Step::Key(slot.key().clone()))),
                },
            };
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.take(b',') {
                return Err(self.unexpected("`,` or `}`"));
            }
            self.skip_space();
        }
    }

    /// What follows a key.
    fn member(&mut self) -> Reading<Value> {
        self.skip_space();
        if !self.take(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.skip_space();
        self.value()
    }

    fn word(&mut self, word: &str, value: Value) -> Reading<Value> {
        if !self.rest().starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Reading<Value> {
        let start = self.at;
        let negative = self.take(b'-');
        let first = self.at;
        self.digits()?;
        if self.at - first > 1 && self.text.as_bytes().get(first) == Some(&b'0') {
            return Err(Fault::at(start, ReadErrorKind::LeadingZero));
        }
        let mut whole = true;
        if self.take(b'.') {
            whole = false;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            whole = false;
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        // `-0` is a double: no integer keeps its sign.
        if whole && !(negative && text == "-0") {
            return match text.parse::<i64>() {
                Ok(number) if number.unsigned_abs() <= MAX_INTEGER => Ok(number.into()),
                _ => Err(out_of_range(start, text)),
            };
        }
        let number = text.parse().unwrap_or(f64::NAN);
        if is_inexact_integer(number) {
            return Err(out_of_range(start, text));
        }
        match Number::from_f64(number) {
            Some(number) => Ok(Value::Number(number)),
            None => {
                let number = text.to_owned();
                Err(Fault::at(start, ReadErrorKind::NumberOverflow { number }))
            }
        }
    }

    fn digits(&mut self) -> Reading<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    fn string(&mut self) -> Reading<String> {
        self.at += 1;
        let mut string = String::new();
        loop {
            // Up to a byte below 0x80, so always between two characters.
            let plain = self.rest();
            let plain = match plain.bytes().position(is_special) {
                Some(end) => plain.get(..end).unwrap_or_default(),
                None => plain,
            };
            string.push_str(plain);
            self.at += plain.len();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                Some(control) => {
                    let found = char::from(control);
                    return Err(Fault::at(self.at, ReadErrorKind::Control { found }));
                }
                None => return Err(self.unexpected("`\"`")),
            }
        }
    }

    fn escape(&mut self) -> Reading<char> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.peek() else {
            return Err(self.unexpected("an escape"));
        };
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(start),
            _ => return Err(Fault::at(start, ReadErrorKind::Escape)),
        })
    }

    /// What follows `\u`, and the second half when that is the first of a pair.
    fn unicode_escape(&mut self, start: usize) -> Reading<char> {
        let first = self.four_digits(start)?;
        let mut code = first;
        if (0xd800..0xdc00).contains(&first) && self.take(b'\\') && self.take(b'u') {
            let second = self.four_digits(start)?;
            // Anything else than a second half leaves a code that is no character.
            if (0xdc00..0xe000).contains(&second) {
                code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            }
        }
        char::from_u32(code).ok_or_else(|| Fault::at(start, ReadErrorKind::LoneSurrogate))
    }

    fn four_digits(&mut self, start: usize) -> Reading<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().map(char::from) else {
                return Err(self.unexpected("a hexadecimal digit"));
            };
            let Some(digit) = digit.to_digit(16) else {
                return Err(Fault::at(start, ReadErrorKind::Escape));
            };
            code = code << 4 | digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self, expected: &'static str) -> Box<Fault> {
        let kind = match self.rest().chars().next() {
            Some(found) => ReadErrorKind::Unexpected { found, expected },
            None => ReadErrorKind::End { expected },
        };
        Fault::at(self.at, kind)
    }
}

fn out_of_range(at: usize, number: &str) -> Box<Fault> {
    let number = number.to_owned();
    Fault::at(at, ReadErrorKind::IntegerOutOfRange { number })
}
