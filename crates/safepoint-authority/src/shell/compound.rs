//! The parser of compound commands: groups, conditions, loops, tests, functions.
//!
//! What shells read differently is refused.

use std::rc::Rc;

use super::parse::{Parser, Refusal, is_name};
use super::syntax::{Command, Compound, List, Piece, Word};

impl Parser<'_> {
    pub(super) fn command(&mut self) -> Result<Command, Refusal> {
        self.blanks();
        let compound = match self.keyword() {
            "{" => {
                self.at += 1;
                let list = self.body(&["}"])?;
                self.expect_keyword("}")?;
                Compound::Group(list)
            }
            "if" => self.conditional()?,
            word @ ("while" | "until") => {
                self.at += word.len();
                let condition = self.body(&["do"])?;
                Compound::Loop {
                    condition,
                    body: self.do_group()?,
                }
            }
            "for" => self.for_loop()?,
            "case" => self.case()?,
            "[[" => self.test()?,
            "function" => {
                self.at += "function".len();
                self.blanks();
                let name = self.keyword().to_owned();
                self.at += name.len();
                self.blanks();
                if self.take("(") {
                    self.blanks();
                    if !self.take(")") {
                        return Err("it does not parse");
                    }
                }
                return self.function(name);
            }
            "select" | "coproc" | "repeat" | "foreach" | "nocorrect" | "noglob" | "-"
            | "always" | "end" => return Err("a construct that is not looked into"),
            "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "in" | "}" | "]]" => {
                return Err("it does not parse");
            }
            _ if self.starts("((") => {
                self.at += 2;
                let pieces = self.arithmetic("))")?;
                if runs_in_plain_shell(&pieces) {
                    return Err("arithmetic that shells read differently");
                }
                Compound::Arithmetic(Word {
                    pieces,
                    raw: String::new(),
                })
            }
            _ if self.take("(") => {
                let list = self.body(&[])?;
                if !self.take(")") {
                    return Err("it does not parse");
                }
                Compound::Subshell(list)
            }
            _ => return self.simple(),
        };
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => break,
            }
        }
        match self.peek() {
            None | Some(';' | '&' | '|' | '\n' | ')') => {}
            _ if ["}", "then", "do", "fi", "done", "else", "elif", "esac"]
                .contains(&self.keyword()) => {}
            _ => return Err("it does not parse"),
        }
        Ok(Command::Compound(compound, redirects))
    }

    fn conditional(&mut self) -> Result<Compound, Refusal> {
        self.at += 2;
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = self.body(&["then"])?;
            self.expect_keyword("then")?;
            let then = self.body(&["elif", "else", "fi"])?;
            branches.push((condition, then));
            self.lines()?;
            match self.keyword() {
                "elif" => self.at += 4,
                "else" => {
                    self.at += 4;
                    otherwise = Some(self.body(&["fi"])?);
                    self.expect_keyword("fi")?;
                    break;
                }
                _ => {
                    self.expect_keyword("fi")?;
                    break;
                }
            }
        }
        Ok(Compound::If {
            branches,
            otherwise,
        })
    }

    fn do_group(&mut self) -> Result<List, Refusal> {
        self.expect_keyword("do")?;
        let body = self.body(&["done"])?;
        self.expect_keyword("done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Result<Compound, Refusal> {
        self.at += 3;
        self.blanks();
        if self.take("((") {
            let pieces = self.arithmetic("))")?;
            self.blanks();
            self.take(";");
            return Ok(Compound::ArithmeticFor {
                header: Word {
                    pieces,
                    raw: String::new(),
                },
                body: self.do_group()?,
            });
        }
        let name = self.keyword().to_owned();
        if !is_name(&name) {
            return Err("it does not parse");
        }
        self.at += name.len();
        self.lines()?;
        let mut words = None;
        if self.keyword() == "in" {
            self.at += 2;
            let mut list = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    None => return Err("it does not parse"),
                    Some(';' | '\n') => break,
                    _ => list.push(self.word()?),
                }
            }
            words = Some(list);
        }
        self.blanks();
        self.take(";");
        Ok(Compound::For {
            name,
            words,
            body: self.do_group()?,
        })
    }

    fn case(&mut self) -> Result<Compound, Refusal> {
        self.at += 4;
        self.blanks();
        let word = self.word()?;
        self.expect_keyword("in")?;
        let mut arms = Vec::new();
        self.deeper()?;
        loop {
            self.lines()?;
            if self.keyword() == "esac" {
                self.at += 4;
                break;
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.push(self.word()?);
                self.blanks();
                if self.take("|") {
                    continue;
                }
                if self.take(")") {
                    break;
                }
                return Err("it does not parse");
            }
            let list = self.list(&["esac"])?;
            arms.push((patterns, list));
            self.lines()?;
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) && self.keyword() != "esac"
            {
                return Err("it does not parse");
            }
        }
        self.depth -= 1;
        Ok(Compound::Case { word, arms })
    }

    /// `[[ … ]]`: its words, whatever they are compared by.
    fn test(&mut self) -> Result<Compound, Refusal> {
        self.at += 2;
        let mut words: Vec<Word> = Vec::new();
        let mut start = 0;
        loop {
            self.lines()?;
            if self.keyword() == "]]" {
                self.at += 2;
                self.segment(&words, start)?;
                return Ok(Compound::Test(words));
            }
            if self.starts("<(") || self.starts(">(") {
                return Err("a construct that is not looked into");
            }
            if self.take("&&") || self.take("||") {
                self.segment(&words, start)?;
                start = words.len();
                continue;
            }
            if ["<", ">", "(", ")", "|"]
                .into_iter()
                .any(|mark| self.take(mark))
            {
                continue;
            }
            let word = self.word()?;
            let raw = word.raw.as_str();
            if matches!(
                raw,
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R"
            ) {
                self.seen.arithmetic = true;
            }
            words.push(word);
        }
    }

    /// A plain shell reads `[[ … || word ]]` as a list that runs `word`.
    fn segment(&self, words: &[Word], start: usize) -> Result<(), Refusal> {
        match words.get(start..) {
            Some([only]) if start > 0 && !only.raw.starts_with(['$', '"', '-', '!']) => {
                Err("a test that shells read differently")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn function(&mut self, name: String) -> Result<Command, Refusal> {
        if name.is_empty()
            || !name
                .chars()
                .all(|next| next.is_alphanumeric() || "_-.:".contains(next))
        {
            return Err("a function with a strange name");
        }
        self.lines()?;
        self.deeper()?;
        let body = self.command()?;
        self.depth -= 1;
        match body {
            Command::Compound(..) => Ok(Command::Function {
                name,
                body: Rc::new(body),
            }),
            _ => Err("it does not parse"),
        }
    }
}

/// Whether a plain shell, which reads `((…))` as commands, would run this: two words in a row.
pub(super) fn runs_in_plain_shell(pieces: &[Piece]) -> bool {
    let mut expression = String::new();
    for piece in pieces {
        match piece {
            Piece::Plain(text) | Piece::Quoted(text) => expression.push_str(text),
            // Some value.
            _ => expression.push('0'),
        }
    }
    let operand =
        |text: &str| text.starts_with(|next: char| next.is_alphanumeric() || "_/.~".contains(next));
    let mut words = expression.split_ascii_whitespace().peekable();
    while let Some(word) = words.next() {
        let ends = word.ends_with(|next: char| next.is_alphanumeric() || "_/".contains(next));
        if ends && words.peek().is_some_and(|next| operand(next)) {
            return true;
        }
    }
    expression.trim_start().starts_with(['/', '.', '~'])
}
