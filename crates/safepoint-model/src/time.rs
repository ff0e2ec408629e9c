//! A moment in UTC, to the microsecond.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Microseconds since 1970-01-01T00:00:00Z.
///
/// Microseconds, because PostgreSQL keeps no more, and because
/// [`next_after`](crate::next_after) needs a step that a clock can outrun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is not an RFC 3339 time.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{input}` is not an RFC 3339 time such as `2026-11-15T07:30:00Z`")]
pub struct TimestampError {
    input: String,
}

impl Timestamp {
    /// The moment `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The smallest later moment.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// This moment moved by `micros`, as far as the type reaches.
    pub const fn saturating_add_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Reads an RFC 3339 time; anything finer than a microsecond is cut off.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        text.parse::<jiff::Timestamp>()
            .map(|moment| Self(moment.as_microsecond()))
            .map_err(|_| TimestampError {
                input: text.to_owned(),
            })
    }
}

impl fmt::Display for Timestamp {
    /// `2026-11-15T07:30:00.000000Z`: always the same length, so that text order is time order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => write!(f, "{moment:.6}"),
            Err(_) => write!(f, "{}us", self.0), // beyond year 9999: still told apart
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_back() {
        let moment = Timestamp::from_micros(1_794_726_000_000_042);
        assert_eq!(moment.to_string(), "2026-11-15T07:00:00.000042Z");
        assert_eq!(Timestamp::parse(&moment.to_string()), Ok(moment));
        assert_eq!(
            Timestamp::parse("2026-11-15T08:00:00+01:00"),
            Timestamp::parse("2026-11-15T07:00:00Z")
        );
    }

    #[test]
    fn refuses_what_is_not_a_time() {
        for text in ["", "tomorrow", "2026-13-01T00:00:00Z", "2026-11-15"] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }
}
