//! The parser of parameters: `${…}` and what may be done to them.
//!
//! Only what is listed here is read. Values that would be evaluated again are
//! refused.

use super::parse::{Parser, Refusal, is_name};
use super::syntax::{Operation, Parameter, Piece};
use super::word::Stop;

impl Parser<'_> {
    /// A parameter, after `${`.
    pub(super) fn parameter(&mut self, quoted: bool) -> Result<Parameter, Refusal> {
        self.deeper()?;
        let length = self.starts("#") && !self.starts("#}");
        if length {
            self.at += 1;
        }
        let rest = self.rest();
        let end = rest
            .find(|next: char| !(next.is_ascii_alphanumeric() || next == '_'))
            .unwrap_or(rest.len());
        let mut name = rest.get(..end).unwrap_or_default().to_owned();
        if name.is_empty() {
            match self.peek() {
                Some(next) if "@*#?-$!".contains(next) => {
                    name.push(next);
                    self.at += 1;
                    if next == '!' && !self.starts("}") {
                        return Err("a variable named by another");
                    }
                }
                _ => return Err("a parameter that is not looked into"),
            }
        } else {
            if !is_name(&name) && !name.chars().all(|next| next.is_ascii_digit()) {
                return Err("a parameter that is not looked into");
            }
            self.at += end;
        }
        let mut operation = Operation::Value;
        if self.take("[") {
            operation = Operation::Element(self.arithmetic("]")?);
        }
        if !self.starts("}") {
            operation = self.operation(operation, quoted)?;
        }
        if !self.take("}") {
            return Err("a parameter that is not looked into");
        }
        self.depth -= 1;
        Ok(Parameter {
            name,
            quoted,
            operation: if length { Operation::Length } else { operation },
        })
    }

    fn operation(&mut self, base: Operation, quoted: bool) -> Result<Operation, Refusal> {
        let plain = matches!(base, Operation::Value);
        let tests = [
            (":-", false),
            (":=", true),
            (":+", false),
            (":?", false),
            ("-", false),
            ("=", true),
            ("+", false),
            ("?", false),
        ];
        for (mark, assign) in tests {
            if self.take(mark) {
                let word = self.parameter_word(quoted)?;
                return Ok(if plain {
                    Operation::Otherwise { assign, word }
                } else {
                    Operation::Changed(word)
                });
            }
        }
        for (mark, suffix) in [("%%", true), ("%", true), ("##", false), ("#", false)] {
            if self.take(mark) {
                let pattern = self.parameter_word(quoted)?;
                return Ok(if plain {
                    Operation::Cut { suffix, pattern }
                } else {
                    Operation::Changed(pattern)
                });
            }
        }
        for mark in ["//", "/", "^^", "^", ",,", ",", ":"] {
            if self.take(mark) {
                self.seen.arithmetic |= mark == ":";
                return Ok(Operation::Changed(self.parameter_word(quoted)?));
            }
        }
        Err("a parameter that is not looked into")
    }

    fn parameter_word(&mut self, quoted: bool) -> Result<Vec<Piece>, Refusal> {
        let mut pieces = Vec::new();
        if !quoted {
            self.tilde(&mut pieces);
        }
        let stop = if quoted {
            Stop::QuotedBrace
        } else {
            Stop::Brace
        };
        self.pieces(&mut pieces, stop)?;
        Ok(pieces)
    }
}
