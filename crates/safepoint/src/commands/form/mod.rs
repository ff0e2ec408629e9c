//! What a command looks like to somebody who does not type it: its fields, where each goes,
//! and what it prints. Tools of the MCP server and endpoints of the API are made of these;
//! none of them is named here.

mod given;
pub(crate) mod schema;

pub(crate) use given::{Given, LARGEST_PAGE, Naming, Words};

/// A command, and what can be filled in.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    /// One of these groups of fields must be there.
    pub(crate) needs: &'static [&'static [&'static str]],
    pub(crate) command: &'static [&'static str],
    /// The schemas of what the command prints, as `safepoint schema` names them.
    pub(crate) replies: &'static [&'static str],
    pub(crate) session: Session,
}

/// What a command has to do with the session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// Nothing.
    None,
    /// It works in it.
    Within,
    /// It is about it: the command takes it as its first word.
    Word,
}

/// Something that is given.
pub(crate) struct Field {
    /// Its name, and others under which it is known.
    pub(crate) names: &'static [&'static str],
    pub(crate) shape: Shape,
    pub(crate) place: Place,
    pub(crate) about: &'static str,
}

/// What it looks like.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Text,
    /// A text that may be long.
    Long,
    /// The beginning of an id is enough.
    Id,
    /// One text, or several.
    Texts,
    /// Several paths or patterns; nothing that names a state, a variable or a database.
    Paths,
    Choice(&'static [&'static str]),
    Count,
    /// How many on a page.
    Limit,
    /// Where a page began.
    Cursor,
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
pub(crate) enum Place {
    /// `--option=VALUE`.
    Option(&'static str),
    /// `--option` alone.
    Switch(&'static str),
    /// `--option=NAME=JSON`, for each field of an object.
    Pairs(&'static str),
    /// `--option=VALUE`, for each of several.
    Each(&'static str),
    /// To standard input as JSON, with `--option=-`.
    Input(&'static str),
    /// To standard input as it is, with `--option=-`.
    Text(&'static str),
    /// To standard input as it is, with the word `-` in its place.
    TextWord,
    /// A word, after everything that begins with a dash.
    Word,
    /// A word before the `--`.
    Before,
    /// The session that it is about.
    Session,
    /// To standard input as a document, with the others that go there.
    Note,
    /// Nowhere: whoever offers the command deals with it.
    Apart,
}

/// A field, for tables.
pub(crate) const fn field(
    names: &'static [&'static str],
    shape: Shape,
    place: Place,
    about: &'static str,
) -> Field {
    Field {
        names,
        shape,
        place,
        about,
    }
}

/// How something that was let through ended, as whoever did it says.
pub(crate) const OUTCOME: Field = field(
    &["outcome"],
    Shape::Choice(&["ok", "error"]),
    Place::Option("--outcome"),
    "How it ended",
);

/// What came of it.
pub(crate) const RESULT: Field = field(
    &["result"],
    Shape::Anything,
    Place::Input("--result"),
    "What came of it",
);
