//! The name of a snapshot: when it was made, and a few random characters.

use std::fmt;
use std::str::FromStr;

use safepoint_model::{Entropy, Timestamp};

use crate::StateError;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Forty random bits: within one second nobody meets another.
const RANDOM: usize = 8;

/// `chk_YYYYMMDD_HHMMSS_xxxxxxxx`, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(String);

impl SnapshotId {
    /// What every one begins with.
    pub const PREFIX: &'static str = "chk_";

    /// A new one.
    pub fn generate(now: Timestamp, entropy: &dyn Entropy) -> Result<Self, StateError> {
        let mut random = [0; RANDOM];
        entropy.fill(&mut random)?;
        // `2026-11-15T10:07:15.123456Z`, without its punctuation
        let time: String = now
            .to_string()
            .chars()
            .take(19)
            .filter_map(|c| match c {
                'T' => Some('_'),
                c if c.is_ascii_digit() => Some(c),
                _ => None,
            })
            .collect();
        let tail: String = random
            .iter()
            .map(|byte| {
                char::from(
                    ALPHABET
                        .get(usize::from(byte & 31))
                        .copied()
                        .unwrap_or(b'0'),
                )
            })
            .collect();
        Ok(Self(format!("{}{time}_{tail}", Self::PREFIX)))
    }

    /// The name as it is printed and stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SnapshotId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let known = |c: u8| c.is_ascii_digit() || c.is_ascii_lowercase() || c == b'_';
        let shaped = text.starts_with(Self::PREFIX)
            && text.len() == Self::PREFIX.len() + 16 + RANDOM
            && text.bytes().all(known);
        shaped.then(|| Self(text.to_owned())).ok_or(())
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for SnapshotId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for SnapshotId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|()| serde::de::Error::custom("not the id of a checkpoint"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_03_an_id_tells_its_time_in_utc() {
        struct Fixed;
        impl Entropy for Fixed {
            fn fill(&self, bytes: &mut [u8]) -> Result<(), safepoint_model::EntropyError> {
                bytes.fill(31);
                Ok(())
            }
        }
        let now = Timestamp::parse("2024-01-15T14:30:22.9Z").unwrap();
        let id = SnapshotId::generate(now, &Fixed).unwrap();
        assert_eq!(id.as_str(), "chk_20240115_143022_zzzzzzzz");
        assert_eq!(id.as_str().parse(), Ok(id));
        assert_eq!("chk_2024".parse::<SnapshotId>(), Err(()));
    }
}
