//! Typed identifiers: a prefix that tells the kind, then base32 characters
//! that are hard to confuse (Crockford's alphabet, lower case).
//!
//! There are two shapes. What people type has 80 random bits, so that its
//! first few characters already tell it apart. What is found again by its
//! place in time has the time first.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Entropy, EntropyError, Timestamp};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A text that is not an identifier of the expected kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{input}` is not an id of the form `{prefix}_…`{}", self.why())]
pub struct IdError {
    input: String,
    prefix: &'static str,
    length: usize,
}

impl IdError {
    /// What is wrong with what follows the prefix; nothing is said where that itself is missing.
    fn why(&self) -> String {
        let rest = self.input.strip_prefix(self.prefix);
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix('_')) else {
            return String::new();
        };
        let is_strange = |letter: &char| u8::try_from(*letter).map_or(true, |byte| !is_digit(byte));
        match rest.chars().find(is_strange) {
            Some(letter) => format!(
                ": `{}` is none of its characters, which are 0 to 9 and a to z without i, l, o and u",
                letter.escape_debug()
            ),
            None => {
                let (length, prefix) = (self.length, self.prefix);
                let (found, relation) = (
                    rest.len(),
                    if rest.len() < length { "short" } else { "long" },
                );
                format!(
                    ": it is too {relation}, {length} characters follow `{prefix}_` and not {found}"
                )
            }
        }
    }
}

/// Defines one identifier type over `$prefix` and the number of characters behind it.
macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $length:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// What every identifier of this kind begins with, before the `_`.
            pub const PREFIX: &'static str = $prefix;

            /// The identifier as it is printed and stored.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(text.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                let known = text
                    .strip_prefix(concat!($prefix, "_"))
                    .is_some_and(|rest| rest.len() == $length && rest.bytes().all(is_digit));
                if known {
                    Ok(Self(text))
                } else {
                    Err(IdError { input: text, prefix: $prefix, length: $length })
                }
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

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::try_from(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Whether a byte is in the alphabet. Millions of identifiers are read in one recovery.
fn is_digit(byte: u8) -> bool {
    const DIGITS: [bool; 256] = {
        let mut digits = [false; 256];
        let mut rest: &[u8] = ALPHABET;
        while let [digit, more @ ..] = rest {
            #[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
            {
                digits[*digit as usize] = true;
            }
            rest = more;
        }
        digits
    };
    DIGITS.get(usize::from(byte)) == Some(&true)
}

/// Gives an identifier type its random constructor.
macro_rules! random_identifier {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {$(
        identifier!($(#[$doc])* $name, $prefix, 16);

        impl $name {
            /// A new identifier that nobody has seen before.
            pub fn generate(entropy: &dyn Entropy) -> Result<Self, EntropyError> {
                let mut bytes = [0; 16];
                let (_, random) = bytes.split_at_mut(6);
                entropy.fill(random)?;
                Ok(Self(base32(concat!($prefix, "_"), u128::from_be_bytes(bytes), 16)))
            }
        }
    )*};
}

random_identifier! {
    /// One thing an agent wants to do, from proposal to undo.
    ActionId, "act";
    /// Something that waits for answers or a decision.
    HoldId, "hld";
    /// One trail: the last part of its origin.
    LogId, "log";
    /// Leave to do one exact action, once.
    PermitId, "prm";
    /// One run of an agent.
    SessionId, "ses";
    /// A piece of work that somebody is to do.
    TaskId, "tsk";
    /// A place where work is done.
    WorkspaceId, "wsp";
}

/// Gives an identifier type the constructor that puts the time first.
macro_rules! timed_identifier {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {$(
        identifier!($(#[$doc])* $name, $prefix, 26);

        impl $name {
            /// The identifier of what was made at `time`. Later ones sort later.
            pub fn new(time: Timestamp, entropy: &dyn Entropy) -> Result<Self, EntropyError> {
                let mut random = [0; 8];
                entropy.fill(&mut random)?;
                let micros = u64::try_from(time.as_micros()).unwrap_or(0);
                let bits = u128::from(micros) << 64 | u128::from(u64::from_be_bytes(random));
                Ok(Self(base32(concat!($prefix, "_"), bits, 26)))
            }
        }
    )*};
}

timed_identifier! {
    /// An entry of the trail: its time, then 64 random bits.
    EntryId, "ent";
    /// A piece of work product in the chain of a workspace.
    RecordId, "rec";
    /// A signal from one workspace to its parent.
    SignalId, "sig";
}

impl EntryId {
    /// The first and last moment at which an entry whose id begins with `prefix` can have been made.
    ///
    /// `None` when no id begins so. This is what finds an entry by its id
    /// without an index: times rise with the sequence.
    pub fn time_range(prefix: &str) -> Option<(Timestamp, Timestamp)> {
        let digits = prefix.strip_prefix("ent_")?;
        if digits.len() > 26 {
            return None;
        }
        let (mut low, mut high) = (0_u128, 0_u128);
        for place in 0..26 {
            let (least, most) = match digits.as_bytes().get(place) {
                Some(digit) => {
                    let value = ALPHABET.iter().position(|known| known == digit)? as u128;
                    (value, value)
                }
                None => (0, 31),
            };
            // 26 characters hold 130 bits; the two highest are always zero.
            if place == 0 && least > 7 {
                return None;
            }
            low = low << 5 | least;
            high = high << 5 | if place == 0 { most.min(7) } else { most };
        }
        let moment =
            |bits: u128| Timestamp::from_micros(i64::try_from(bits >> 64).unwrap_or(i64::MAX));
        Some((moment(low), moment(high)))
    }
}

/// `prefix`, then the lowest `length` base32 digits of `bits`.
fn base32(prefix: &str, bits: u128, length: usize) -> String {
    let mut text = String::with_capacity(prefix.len() + length);
    text.push_str(prefix);
    for place in (0..length).rev() {
        let digit = (bits >> (place * 5)) as usize & 31;
        text.push(char::from(ALPHABET.get(digit).copied().unwrap_or(b'0')));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes(u8);
    impl Entropy for Bytes {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
            bytes.fill(self.0);
            Ok(())
        }
    }

    #[test]
    fn ids_are_told_apart_by_prefix_and_alphabet() {
        let action = ActionId::generate(&Bytes(0xff)).unwrap();
        assert_eq!(action.as_str(), "act_zzzzzzzzzzzzzzzz");
        assert_eq!(action.as_str().parse(), Ok(action));
        for bad in [
            "act_",
            "ses_zzzzzzzzzzzzzzzz",
            "act_zzzzzzzzzzzzzzzu",
            "act_zzzzzzzzzzzzzzzzz",
        ] {
            assert!(bad.parse::<ActionId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn pr_32_what_is_wrong_with_an_id_is_said() {
        for (bad, why) in [
            ("ses_x", ""),
            (
                "act_x",
                ": it is too short, 16 characters follow `act_` and not 1",
            ),
            (
                "act_zzzzzzzzzzzzzzzzz",
                ": it is too long, 16 characters follow `act_` and not 17",
            ),
            (
                "act_zzzzzzzzzzzzzzzU",
                ": `U` is none of its characters, which are 0 to 9 and a to z without i, l, o and u",
            ),
        ] {
            let said = bad.parse::<ActionId>().unwrap_err().to_string();
            let wanted = format!("`{bad}` is not an id of the form `act_…`{why}");
            assert_eq!(said, wanted);
        }
    }

    #[test]
    fn tr_08_an_entry_id_tells_its_time_from_any_prefix() {
        let time = Timestamp::parse("2026-11-15T07:00:00.123456Z").unwrap();
        let id = EntryId::new(time, &Bytes(0xab)).unwrap();
        assert_eq!(EntryId::time_range(id.as_str()), Some((time, time)));
        for length in 4..id.as_str().len() {
            let (low, high) = EntryId::time_range(&id.as_str()[..length]).unwrap();
            assert!(low <= time && time <= high, "{length}");
        }
        for bad in ["ent", "ent_u", "act_0", "ent_8", &format!("{id}0")] {
            assert_eq!(EntryId::time_range(bad), None, "{bad}");
        }
    }

    #[test]
    fn entry_ids_sort_as_their_times() {
        let id =
            |micros, random| EntryId::new(Timestamp::from_micros(micros), &Bytes(random)).unwrap();
        assert!(id(1, 0xff) < id(2, 0));
        assert!(id(1 << 40, 0xff) < id((1 << 40) + 1, 0));
    }
}
