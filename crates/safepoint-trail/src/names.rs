//! The short texts of an entry: in which stream, by whom, of what kind.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A text that cannot be a stream, an actor or a kind.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("a {what} has 1 to {longest} characters, and no spaces or control characters: `{input}`")]
pub struct NameError {
    what: &'static str,
    longest: usize,
    input: String,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $longest:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let plain = |c: char| !c.is_whitespace() && !c.is_control();
                let length = text.chars().count();
                if length == 0 || length > $longest || !text.chars().all(plain) {
                    return Err(NameError {
                        what: $what,
                        longest: $longest,
                        input: text.chars().take(80).collect(),
                    });
                }
                Ok(Self(text.to_owned()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

name!(
    /// A chain of entries that belong together: a session, a workspace, or `store`.
    Stream, "stream", 200
);
name!(
    /// Who did it, such as `user:ada`, `agent:claude-code` or `safepoint`.
    Actor, "actor", 200
);
name!(
    /// What happened, such as `checkpoint_created`.
    Kind, "kind", 100
);

macro_rules! convert {
    ($($id:ty),*) => {$(
        impl From<&$id> for Stream {
            fn from(id: &$id) -> Self {
                Self(id.as_str().to_owned())
            }
        }
    )*};
}

convert!(
    safepoint_model::SessionId,
    safepoint_model::TaskId,
    safepoint_model::WorkspaceId
);

impl Stream {
    /// The stream of what concerns the store as a whole.
    pub fn store() -> Self {
        Self("store".to_owned())
    }
}

impl Actor {
    /// Safepoint itself.
    pub fn safepoint() -> Self {
        Self("safepoint".to_owned())
    }
}

impl Kind {
    /// A kind that is fixed in the code, and so known to be well formed.
    pub const fn fixed(text: &'static str) -> FixedKind {
        FixedKind(text)
    }
}

/// See [`Kind::fixed`].
#[derive(Clone, Copy, Debug)]
pub struct FixedKind(&'static str);

impl From<FixedKind> for Kind {
    fn from(kind: FixedKind) -> Self {
        Self(kind.0.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        assert!("user:ada".parse::<Actor>().is_ok());
        assert!("пользователь:ада".parse::<Actor>().is_ok());
        for bad in ["", "a b", "a\n", "\u{1b}[2J", "\0", &"x".repeat(201)] {
            assert!(bad.parse::<Actor>().is_err(), "{bad:?}");
        }
    }
}
