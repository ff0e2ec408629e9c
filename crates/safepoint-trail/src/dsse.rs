//! DSSE envelopes: a payload, what it is, and Ed25519 signatures over both.
//!
//! What is signed is DSSE's pre-authentication encoding, which begins with
//! `DSSEv1 ` and so can be taken neither for a head nor for anything else that the
//! key of a trail signs. The payload is only read after its signature was checked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use crate::note::{PublicKey, Signer};

/// The type of a payload that is an in-toto statement.
pub const IN_TOTO: &str = "application/vnd.in-toto+json";

/// Why an envelope was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum EnvelopeError {
    /// The payload is of another type.
    #[error("the payload of the envelope is not of the type `{IN_TOTO}`")]
    Type,
    /// Something in it is not base64.
    #[error("the envelope is malformed: its {0} is not base64")]
    Encoding(&'static str),
    /// None of its signatures is of the key.
    #[error("the envelope carries no signature of the key `{0}` that matches it")]
    Unsigned(String),
}

/// An envelope, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// What the payload is.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// The payload in base64.
    pub payload: String,
    /// Who vouches for both.
    pub signatures: Vec<EnvelopeSignature>,
}

/// One signature of an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeSignature {
    /// A hint at the key: its name and id, as its printed form begins.
    #[serde(default)]
    pub keyid: String,
    /// The signature in base64.
    pub sig: String,
}

/// The bytes that are signed: `DSSEv1`, and type and payload with their lengths.
pub fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    )
    .into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

impl Envelope {
    /// Signs an in-toto statement.
    pub(crate) fn sign(signer: &Signer, statement: &[u8]) -> Self {
        let signature = signer.sign_bytes(&pre_authentication_encoding(IN_TOTO, statement));
        Self {
            payload_type: IN_TOTO.to_owned(),
            payload: BASE64.encode(statement),
            signatures: vec![EnvelopeSignature {
                keyid: key_hint(signer.public()),
                sig: BASE64.encode(signature),
            }],
        }
    }

    /// The statement in it, if `key` has signed it. Signatures of others are passed over, and
    /// hints are believed in nothing.
    pub fn open(&self, key: &PublicKey) -> Result<Vec<u8>, EnvelopeError> {
        if self.payload_type != IN_TOTO {
            return Err(EnvelopeError::Type);
        }
        let payload = BASE64
            .decode(&self.payload)
            .map_err(|_| EnvelopeError::Encoding("payload"))?;
        let signed = pre_authentication_encoding(IN_TOTO, &payload);
        for signature in &self.signatures {
            let bytes = BASE64
                .decode(&signature.sig)
                .map_err(|_| EnvelopeError::Encoding("signature"))?;
            if key.has_signed(&signed, &bytes) {
                return Ok(payload);
            }
        }
        Err(EnvelopeError::Unsigned(key.name().to_owned()))
    }
}

/// What hints at a key in an envelope.
pub fn key_hint(key: &PublicKey) -> String {
    format!("{}+{}", key.name(), key.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of the DSSE specification.
    #[test]
    fn tr_07_the_encoding_that_is_signed_is_that_of_the_specification() {
        let encoded = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world");
        assert_eq!(
            encoded,
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }
}
