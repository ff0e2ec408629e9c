//! A number of bytes as people write it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// How many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) u64);

/// A text that is not a size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a size such as `500MiB` or `20GiB`")]
pub(crate) struct SizeError(String);

const UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl Size {
    /// What the object store may have when nobody says otherwise.
    pub(crate) const DEFAULT_CAP: Self = Self(50 << 30);
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let wrong = || SizeError(text.chars().take(40).collect());
        let (digits, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
            .unwrap_or((text, 1));
        let digits = digits.trim_end();
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        number.checked_mul(factor).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = [
            ("TiB", 1_u64 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
        ]
        .into_iter()
        .find(|(_, factor)| self.0 >= *factor)
        .unwrap_or(("B", 1));
        if self.0.is_multiple_of(factor) {
            return write!(f, "{} {unit}", self.0 / factor);
        }
        let tenths = u128::from(self.0) * 10 / u128::from(factor);
        write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_17_sizes_are_read_and_shown() {
        assert_eq!("20GiB".parse(), Ok(Size(20 << 30)));
        assert_eq!("500 MB".parse(), Ok(Size(500_000_000)));
        assert_eq!("4096".parse(), Ok(Size(4096)));
        for bad in ["", "GiB", "-1", "1.5GiB", "99999999TiB", "5 apples"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        assert_eq!(Size(20 << 30).to_string(), "20 GiB");
        assert_eq!(Size(1536).to_string(), "1.5 KiB");
        assert_eq!(Size(17).to_string(), "17 B");
    }
}
