//! The language of `awk`, as far as it touches files or runs programs.
//!
//! A slash begins a pattern or divides, and versions do not agree on every case: where the
//! text alone does not tell, both ways are followed, and the program must be harmless both
//! ways. What branches too often is not followed.

use crate::deed::Role;

use super::actions::{self, SECRET, WRITE};
use super::code::script;
use super::options;
use super::parse::is_name;
use super::run::Call;
use super::state::{Argument, State};
use super::walk::Walker;

/// More ways to read a program than this are not followed.
const WAYS: usize = 64;

/// Words that no operand ends with: what follows begins one.
const KEYWORDS: [&str; 8] = [
    "print", "printf", "return", "in", "do", "else", "case", "exit",
];

/// `awk`
pub(super) fn follow(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    if call
        .arguments
        .iter()
        .any(|argument| argument.shown().contains("ENVIRON"))
    {
        let why = "`awk` can show every variable".to_owned();
        walker.add(actions::deed(SECRET, why));
    }
    let mut operands = parsed.operands.as_slice();
    let files = parsed.values(&["-f", "--file"]);
    for file in &files {
        script(walker, call, Some(file), state);
    }
    if files.is_empty()
        && let Some((program, rest)) = operands.split_first()
    {
        operands = rest;
        match program.known().map(effects) {
            Some(Some(outputs)) => {
                for output in outputs {
                    let target = match output {
                        Some(file) => Argument::Known(file),
                        None => Argument::Dynamic {
                            start: String::new(),
                            written: "a file that awk chooses".to_owned(),
                            splits: false,
                        },
                    };
                    let written = [(target, Role::Write)];
                    walker.file(WRITE, &written, "`awk` prints to a file", state);
                }
            }
            Some(None) => walker.opaque("`awk` is given code that runs programs"),
            None => walker.opaque("`awk` is given a program that is not known"),
        }
    }
    let files: Vec<Argument> = operands
        .iter()
        .filter(|operand| {
            let assigned = operand.start().split_once('=');
            !assigned.is_some_and(|(name, _)| is_name(name))
        })
        .cloned()
        .collect();
    super::special::read_all(walker, &files, call, state);
}

/// The files a program prints to; none when it runs programs or is not understood.
fn effects(program: &str) -> Option<Vec<Option<String>>> {
    let letters: Vec<char> = program.chars().collect();
    let mut ways = vec![Scan::default()];
    let mut outputs = Vec::new();
    let mut taken = 0;
    while let Some(mut scan) = ways.pop() {
        taken += 1;
        if taken > WAYS {
            return None;
        }
        scan.follow(&letters, &mut ways)?;
        for output in scan.outputs {
            if !outputs.contains(&output) {
                outputs.push(output);
            }
        }
    }
    Some(outputs)
}

/// What stands before the place that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// Nothing that a slash could divide.
    #[default]
    Operator,
    /// Something that it divides.
    Operand,
    /// Either.
    Unsure,
}

/// One way to read a program.
#[derive(Clone, Debug, Default)]
struct Scan {
    at: usize,
    before: Before,
    /// Within what is printed, outside of parentheses a `>` names a file.
    printing: bool,
    depth: i32,
    /// An end of line does not end the statement here.
    goes_on: bool,
    outputs: Vec<Option<String>>,
}

impl Scan {
    fn peek(&self, letters: &[char]) -> Option<char> {
        letters.get(self.at).copied()
    }

    fn follow(&mut self, letters: &[char], ways: &mut Vec<Self>) -> Option<()> {
        while let Some(letter) = self.peek(letters) {
            self.at += 1;
            if letter.is_alphanumeric() || letter == '_' {
                self.word(letter, letters)?;
                continue;
            }
            match letter {
                ' ' | '\t' | '\r' => continue,
                '\\' => {
                    // At the end of a line it joins the next one to it.
                    if self.peek(letters) == Some('\n') {
                        self.at += 1;
                    }
                    continue;
                }
                '"' => {
                    self.text(letters);
                    self.before = Before::Operand;
                }
                '/' => self.slash(letters, ways),
                '#' => {
                    while self.peek(letters).is_some_and(|next| next != '\n') {
                        self.at += 1;
                    }
                    continue;
                }
                '|' => {
                    if self.peek(letters) != Some('|') {
                        return None;
                    }
                    self.at += 1;
                    self.before = Before::Operator;
                }
                '@' => return None,
                '(' | '[' => {
                    self.depth += 1;
                    self.before = Before::Operator;
                }
                ')' => {
                    self.depth -= 1;
                    // `(a) / b`, but also `if (a) /b/`.
                    self.before = Before::Unsure;
                }
                ']' => {
                    self.depth -= 1;
                    self.before = Before::Operand;
                }
                '+' | '-' if self.peek(letters) == Some(letter) => {
                    self.at += 1;
                    self.before = Before::Unsure;
                }
                ';' | '{' | '}' => {
                    self.printing = false;
                    self.before = Before::Operator;
                }
                '\n' => {
                    if !self.goes_on {
                        self.printing = false;
                    }
                    self.before = Before::Operator;
                    continue;
                }
                '>' if self.printing && self.depth <= 0 => {
                    self.output(letters);
                    self.before = Before::Operand;
                }
                _ => self.before = Before::Operator,
            }
            self.goes_on = matches!(letter, ',' | '&' | '|' | '{');
        }
        Some(())
    }

    fn word(&mut self, first: char, letters: &[char]) -> Option<()> {
        let mut word = String::from(first);
        while let Some(next) = self
            .peek(letters)
            .filter(|next| next.is_alphanumeric() || *next == '_')
        {
            word.push(next);
            self.at += 1;
        }
        match word.as_str() {
            "system" | "getline" => return None,
            "print" | "printf" => {
                self.printing = true;
                self.depth = 0;
            }
            _ => {}
        }
        self.before = if KEYWORDS.contains(&word.as_str()) {
            Before::Operator
        } else {
            Before::Operand
        };
        self.goes_on = matches!(word.as_str(), "do" | "else");
        Some(())
    }

    fn text(&mut self, letters: &[char]) -> String {
        let mut text = String::new();
        while let Some(letter) = self.peek(letters) {
            self.at += 1;
            match letter {
                '"' => break,
                '\\' => {
                    text.push(letter);
                    text.extend(self.peek(letters));
                    self.at += 1;
                }
                _ => text.push(letter),
            }
        }
        text
    }

    fn slash(&mut self, letters: &[char], ways: &mut Vec<Self>) {
        let mut divides = self.clone();
        divides.before = Before::Operator;
        match self.before {
            Before::Operand => *self = divides,
            Before::Unsure => {
                ways.push(divides);
                self.pattern(letters, ways);
            }
            Before::Operator => self.pattern(letters, ways),
        }
    }

    /// A pattern, up to its slash. Some versions end it within a set, others do not.
    fn pattern(&mut self, letters: &[char], ways: &mut Vec<Self>) {
        let mut set = false;
        while let Some(letter) = self.peek(letters) {
            self.at += 1;
            match letter {
                '\\' => self.at += 1,
                '[' => set = true,
                ']' => set = false,
                '/' if set => {
                    let mut ended = self.clone();
                    ended.before = Before::Operand;
                    ways.push(ended);
                }
                '/' => break,
                _ => {}
            }
        }
        self.before = Before::Operand;
    }

    /// What follows a `>`: a file, when it is written out and nothing is added to it.
    fn output(&mut self, letters: &[char]) {
        let blank = |next: char| matches!(next, '>' | ' ' | '\t' | '\\' | '\n');
        while self.peek(letters).is_some_and(blank) {
            self.at += 1;
        }
        let mut target = None;
        if self.peek(letters) == Some('"') {
            self.at += 1;
            let text = self.text(letters);
            let mut rest = letters.iter().skip(self.at);
            let next = rest.find(|next| !matches!(next, ' ' | '\t'));
            if next.is_none_or(|next| matches!(next, '}' | ';' | '\n')) && !text.contains('\\') {
                target = Some(text);
            }
        }
        self.outputs.push(target);
    }
}

#[cfg(test)]
mod tests {
    use super::effects;

    #[test]
    fn au_04_a_slash_hides_nothing() {
        for program in [
            "{print /\"/; system(\"id\"); print /\"/}",
            "{x = 1 + /\"/; system(\"id\"); y = 1 + /\"/}",
            "x=1\n/\"/{system(\"id\")}\n/\"/",
            "{if (1) /\"/; system(\"id\"); if (1) /\"/}",
            "{x++ / system(\"id\") / 1}",
            "/[/]\"/{system(\"id\")}/[/]\"/",
            "{return /\"/; \"id\" | getline; /\"/}",
        ] {
            assert_eq!(effects(program), None, "{program}");
        }
    }

    #[test]
    fn au_04_files_are_found_over_ends_of_lines() {
        let file = |name: &str| Some(vec![Some(name.to_owned())]);
        for program in [
            "{print > \"out\"}",
            "{print $1,\n $2 > \"out\"}",
            "{print $1 \\\n > \"out\"}",
            "{printf(\"%s\", $1) >> \"out\"; next}",
            "{ if ($1 > 2) print $1 > \"out\" }",
        ] {
            assert_eq!(effects(program), file("out"), "{program}");
        }
        assert_eq!(effects("{print > $1}"), Some(vec![None]));
        assert_eq!(effects("{print > \"a\" $1}"), Some(vec![None]));
        assert_eq!(effects("$3 > 100 {print $1/2, ($2 > 3)}"), Some(Vec::new()));
    }
}
