//! SHA-256 digests, as a type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. Printed and read as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text or byte string that is not a SHA-256 digest.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a SHA-256 digest: expected 64 lower-case hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// The digest with exactly these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest held in `bytes`, which must be 32 long.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, DigestError> {
        bytes.try_into().map(Self).map_err(|_| DigestError)
    }

    /// SHA-256 over the parts, one after another, with nothing between them.
    ///
    /// For formats whose framing others have fixed (RFC 6962). Formats of our
    /// own go through [`Frame`](crate::Frame).
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        fn nibble(digit: u8) -> Result<u8, DigestError> {
            match digit {
                b'0'..=b'9' => Ok(digit - b'0'),
                b'a'..=b'f' => Ok(digit - b'a' + 10),
                _ => Err(DigestError),
            }
        }
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(DigestError);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_back() {
        let abc = Digest::of_parts(&[b"a", b"bc"]);
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(abc.to_string(), text);
        assert_eq!(text.parse(), Ok(abc));
        for bad in ["", &text[1..], &text.to_uppercase(), &format!("{text}0")] {
            assert_eq!(bad.parse::<Digest>(), Err(DigestError), "{bad}");
        }
    }
}
