//! What a tool is: its command, and what it takes. No tool is named here.

use safepoint_server::mcp::Hints;

/// One tool, and the command behind it.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) fields: &'static [Field],
    /// One of these groups of fields must be there.
    pub(super) needs: &'static [&'static [&'static str]],
    pub(super) command: &'static [&'static str],
    /// The schemas of what the command prints, as `safepoint schema` names them.
    pub(super) replies: &'static [&'static str],
    pub(super) session: Session,
    pub(super) hints: Hints,
}

/// What a tool has to do with the session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// Nothing.
    None,
    /// It works in it.
    Within,
    /// It is about it: the command takes it as its first word.
    Word,
}

/// Something that a tool is given.
pub(super) struct Field {
    /// Its name, and others under which it is known.
    pub(super) names: &'static [&'static str],
    pub(super) shape: Shape,
    pub(super) place: Place,
    pub(super) about: &'static str,
}

/// What it looks like.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Text,
    /// The beginning of an id is enough.
    Id,
    /// One text, or several.
    Texts,
    Choice(&'static [&'static str]),
    Count,
    Flag,
    Object,
    /// An object of things that have names.
    Named,
    /// An object, or several.
    Objects,
    Anything,
}

/// Where it goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `--option=VALUE`.
    Option(&'static str),
    /// `--option` alone.
    Switch(&'static str),
    /// `--option=NAME=JSON`, for each field of an object.
    Pairs(&'static str),
    /// To standard input, with `--option=-`.
    Input(&'static str),
    /// A word, after everything that begins with a dash.
    Word,
    /// A word before the `--`.
    Before,
    /// The session that it is about.
    Session,
    /// To standard input as a document, with the others that go there.
    Note,
}
