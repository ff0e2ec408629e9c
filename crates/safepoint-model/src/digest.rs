//! SHA-256 digests, as a type.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
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

    /// Its digits, all at once: entries are full of them.
    fn digits(&self) -> [u8; 64] {
        let digit = |nibble: u8| match nibble {
            0..=9 => b'0' + nibble,
            _ => b'a' + nibble - 10,
        };
        let mut digits = [0; 64];
        let (pairs, _) = digits.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(self.0) {
            *pair = [digit(byte >> 4), digit(byte & 0x0f)];
        }
        digits
    }
}

/// Digits are ASCII; nothing is lost here.
fn text(digits: &[u8; 64]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text(&self.digits()))
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
        serializer.serialize_str(text(&self.digits()))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;
        impl Visitor<'_> for Digits {
            type Value = Digest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Digest, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Digits)
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
        let json = serde_json::to_string(&abc).unwrap();
        assert_eq!(json, format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), abc);
        assert!(serde_json::from_str::<Digest>("7").is_err());
        // Every digit stands for itself.
        let all = (0..32)
            .map(|place| place * 8 + place % 8)
            .collect::<Vec<u8>>();
        let all = Digest::from_slice(&all).unwrap();
        assert_eq!(all.to_string().parse(), Ok(all));
    }
}
