//! The shape of a shell line, as far as it is understood.
//!
//! Only constructs that are understood have a shape here. Whatever has none is
//! refused by the parser, and the whole line is then opaque. Nothing is
//! expanded here.

use std::cell::OnceCell;
use std::rc::Rc;

/// Commands that run one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct List(pub(super) Vec<Item>);

/// One entry of a list.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Joint, Pipeline)>,
    pub(super) background: bool,
}

/// What ties two pipelines together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands that feed each other.
#[derive(Clone, Debug)]
pub(super) struct Pipeline(pub(super) Vec<Command>);

/// One command.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Simple(Simple),
    Compound(Compound, Vec<Redirect>),
    Function { name: String, body: Rc<Command> },
}

/// Assignments, words and redirections.
#[derive(Clone, Debug, Default)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

/// Commands made of commands.
#[derive(Clone, Debug)]
pub(super) enum Compound {
    Group(List),
    Subshell(List),
    If {
        branches: Vec<(List, List)>,
        otherwise: Option<List>,
    },
    Loop {
        condition: List,
        body: List,
    },
    For {
        name: String,
        words: Option<Vec<Word>>,
        body: List,
    },
    ArithmeticFor {
        header: Word,
        body: List,
    },
    Case {
        word: Word,
        arms: Vec<(Vec<Word>, List)>,
    },
    Arithmetic(Word),
    Test(Vec<Word>),
}

/// `name=value`
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) index: Option<Word>,
    pub(super) append: bool,
    pub(super) value: Assigned,
}

/// What is assigned.
#[derive(Clone, Debug)]
pub(super) enum Assigned {
    Scalar(Word),
    Array(Vec<Word>),
}

/// A redirection.
#[derive(Clone, Debug)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    pub(super) target: Rc<OnceCell<Word>>,
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedirectKind {
    Read,
    Write,
    Append,
    Both,
    Duplicate,
    Here,
}

/// A word before it is expanded.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
    /// As it is written.
    pub(super) raw: String,
}

/// A part of a word.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Unquoted text: braces and patterns in it are special.
    Plain(String),
    /// Quoted text, taken as it is.
    Quoted(String),
    /// `~` or `~name` at the start.
    Tilde(String),
    /// A parameter.
    Parameter(Parameter),
    /// `$(…)` or back-quotes.
    Substitution { list: List, quoted: bool },
    /// `<(…)` or `>(…)`
    Process { list: List, fed: bool },
    /// `$((…))`: a number, but what is in it is looked at.
    Arithmetic(Vec<Piece>),
}

/// A parameter and what is done to it.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) quoted: bool,
    pub(super) operation: Operation,
}

/// What is done to a parameter.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Nothing: its value.
    Value,
    /// Its length: a number.
    Length,
    /// An element, or all of them.
    Element(Vec<Piece>),
    /// Another word in its place, sometimes; may be assigned.
    Otherwise { assign: bool, word: Vec<Piece> },
    /// An end is cut off; the pattern.
    Cut { suffix: bool, pattern: Vec<Piece> },
    /// Anything else that makes new text of it.
    Changed(Vec<Piece>),
}
