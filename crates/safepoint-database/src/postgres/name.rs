//! Names and texts, as SQL takes them and as people read them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of something that lies in a schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Name {
    pub(super) schema: String,
    pub(super) name: String,
}

impl Name {
    pub(super) fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            schema: schema.into(),
            name: name.into(),
        }
    }

    /// As SQL takes it, whatever characters it has.
    pub(super) fn sql(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }
}

/// For people, and for addresses: `public.users`.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", shown(&self.schema), shown(&self.name))
    }
}

/// A name as an identifier of SQL.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal of SQL, whatever `standard_conforming_strings` says.
pub(super) fn literal(text: &str) -> String {
    let text = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!(" E'{}'", text.replace('\\', "\\\\")),
        false => format!("'{text}'"),
    }
}

/// Several texts as a list of literals that is never empty.
pub(super) fn literals<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let listed: Vec<String> = texts.into_iter().map(literal).collect();
    match listed.is_empty() {
        true => "NULL".to_owned(),
        false => listed.join(", "),
    }
}

/// One part of a name for people: quoted only where a dot or a quote of its own could be
/// taken for ours.
pub(super) fn shown(part: &str) -> String {
    match part.contains(['.', '"']) {
        true => quote(part),
        false => part.to_owned(),
    }
}

/// The same as [`shown`], for the server to do.
pub(super) fn shown_sql(expression: &str) -> String {
    format!(
        "CASE WHEN {expression} ~ '[.\"]' THEN '\"' || replace({expression}, '\"', '\"\"') || '\"' \
         ELSE {expression}::text END"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_sql_and_for_people() {
        let plain = Name::new("public", "users");
        assert_eq!(plain.sql(), "\"public\".\"users\"");
        assert_eq!(plain.to_string(), "public.users");
        let hostile = Name::new("a.b", "x\"; --");
        assert_eq!(hostile.sql(), "\"a.b\".\"x\"\"; --\"");
        assert_eq!(hostile.to_string(), "\"a.b\".\"x\"\"; --\"");
    }

    #[test]
    fn literals_hold_whatever_they_are_given() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\b'"), " E'a\\\\b'''");
        assert_eq!(literals(["a", "b"]), "'a', 'b'");
        assert_eq!(literals([]), "NULL");
    }
}
