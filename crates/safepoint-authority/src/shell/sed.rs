//! The language of `sed`, as far as it touches files or runs programs.

use crate::deed::Role;

/// The files a script reads and writes; none when it runs programs or is not understood.
///
/// Some versions end a pattern at a mark within a set (`s/[/]/x/`), others do not: the script
/// must be harmless to both. One that does not understand it runs nothing.
pub(super) fn effects(script: &str) -> Option<Vec<(String, Role)>> {
    let mut files = follow(script, Sets::Whole).ok()?;
    match follow(script, Sets::Plain) {
        Ok(more) => files.extend(more),
        Err(Trouble::Strange) => {}
        Err(Trouble::Runs) => return None,
    }
    files.dedup();
    Some(files)
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// It runs programs.
    Runs,
    /// It is not understood.
    Strange,
}

/// Whether a mark in a set ends a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sets {
    /// It does not.
    Whole,
    /// It does.
    Plain,
}

fn follow(script: &str, sets: Sets) -> Result<Vec<(String, Role)>, Trouble> {
    let mut scan = Scan {
        letters: script.chars().collect(),
        at: 0,
        sets,
    };
    let mut files = Vec::new();
    loop {
        while matches!(scan.peek(), Some(next) if next.is_whitespace() || next == ';' || next == '}')
        {
            scan.at += 1;
        }
        scan.address().ok_or(Trouble::Strange)?;
        match scan.bump() {
            None => return Ok(files),
            Some(
                '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z'
                | 'F',
            ) => {}
            Some('q' | 'Q' | 'l' | 'L') => {
                while matches!(scan.peek(), Some(next) if next.is_ascii_digit() || next == ' ') {
                    scan.at += 1;
                }
            }
            Some('a' | 'i' | 'c') => scan.text(),
            Some('b' | 't' | 'T' | ':') => {
                while matches!(scan.peek(), Some(next) if next != ';' && next != '\n' && next != '}')
                {
                    scan.at += 1;
                }
            }
            Some('#') => {
                scan.line();
            }
            Some('r' | 'R') => files.push((scan.line(), Role::Read)),
            Some('w' | 'W') => files.push((scan.line(), Role::Write)),
            Some('y') => {
                let mark = scan.bump().ok_or(Trouble::Strange)?;
                scan.until(mark).ok_or(Trouble::Strange)?;
                scan.until(mark).ok_or(Trouble::Strange)?;
            }
            Some('s') => {
                let mark = scan.bump().ok_or(Trouble::Strange)?;
                scan.pattern(mark).ok_or(Trouble::Strange)?;
                scan.until(mark).ok_or(Trouble::Strange)?;
                loop {
                    match scan.peek() {
                        Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => scan.at += 1,
                        Some('w') => {
                            scan.at += 1;
                            files.push((scan.line(), Role::Write));
                            break;
                        }
                        None | Some(';' | '\n' | '}' | ' ' | '\t') => break,
                        Some('e') => return Err(Trouble::Runs),
                        _ => return Err(Trouble::Strange),
                    }
                }
            }
            Some('e') => return Err(Trouble::Runs),
            Some(_) => return Err(Trouble::Strange),
        }
    }
}

struct Scan {
    letters: Vec<char>,
    at: usize,
    sets: Sets,
}

impl Scan {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    /// Skips addresses.
    fn address(&mut self) -> Option<()> {
        loop {
            match self.peek() {
                Some('0'..='9' | '$' | ',' | '~' | '+' | '!' | ' ' | '\t') => self.at += 1,
                Some('/') => {
                    self.at += 1;
                    self.pattern('/')?;
                    self.flags();
                }
                Some('\\') => {
                    self.at += 1;
                    let mark = self.bump()?;
                    self.pattern(mark)?;
                    self.flags();
                }
                _ => return Some(()),
            }
        }
    }

    fn flags(&mut self) {
        while matches!(self.peek(), Some('I' | 'M')) {
            self.at += 1;
        }
    }

    /// Skips a pattern, up to a mark that no backslash hides and, in most versions, no set.
    fn pattern(&mut self, mark: char) -> Option<()> {
        if self.sets == Sets::Plain {
            return self.until(mark);
        }
        loop {
            match self.bump()? {
                '\\' => {
                    self.bump()?;
                }
                '[' => self.set()?,
                next if next == mark => return Some(()),
                _ => {}
            }
        }
    }

    /// Skips a set, after its opening.
    fn set(&mut self) -> Option<()> {
        if self.peek() == Some('^') {
            self.at += 1;
        }
        if self.peek() == Some(']') {
            self.at += 1;
        }
        loop {
            match self.bump()? {
                ']' => return Some(()),
                '[' => {
                    if let Some(kind @ (':' | '.' | '=')) = self.peek() {
                        self.at += 1;
                        while !(self.bump()? == kind && self.peek() == Some(']')) {}
                        self.at += 1;
                    }
                }
                _ => {}
            }
        }
    }

    /// Skips to a mark that no backslash hides.
    fn until(&mut self, mark: char) -> Option<()> {
        loop {
            match self.bump()? {
                '\\' => {
                    self.bump()?;
                }
                next if next == mark => return Some(()),
                _ => {}
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        while let Some(next) = self.bump() {
            if next == '\n' {
                break;
            }
            line.push(next);
        }
        line.trim().to_owned()
    }

    /// The text of `a`, `i` and `c`: lines, as long as they end in a backslash.
    fn text(&mut self) {
        loop {
            let line = self.line();
            if !line.ends_with('\\') {
                return;
            }
        }
    }
}
