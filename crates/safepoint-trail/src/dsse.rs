//! Statements for other tools, signed by the key of the trail: DSSE envelopes.
//!
//! What is signed begins with `DSSEv1` and a space. A head begins with the name of its log
//! alone, and names have no spaces, so neither can be taken for the other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;

use crate::Trail;

/// A signed payload, as tools of the supply chain read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Envelope {
    /// The payload in base64.
    pub payload: String,
    /// What it is.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// Who has signed it.
    pub signatures: Vec<EnvelopeSignature>,
}

/// One signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvelopeSignature {
    /// The public key: what `trail head` prints.
    pub keyid: String,
    /// Ed25519 over the pre-authentication encoding, in base64.
    pub sig: String,
}

impl Trail {
    /// Signs a payload of some type.
    pub fn envelope(&self, payload_type: &str, payload: &str) -> Envelope {
        let signed = encoding(payload_type, payload);
        Envelope {
            payload: BASE64.encode(payload),
            payload_type: payload_type.to_owned(),
            signatures: vec![EnvelopeSignature {
                keyid: self.key().to_string(),
                sig: self.signature(&signed),
            }],
        }
    }
}

/// The pre-authentication encoding of DSSE v1: lengths in bytes, so that nothing runs into
/// what comes next.
fn encoding(payload_type: &str, payload: &str) -> String {
    format!(
        "DSSEv1 {} {payload_type} {} {payload}",
        payload_type.len(),
        payload.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_42_what_is_signed_is_as_the_specification_has_it() {
        // The example of the DSSE protocol document.
        assert_eq!(
            encoding("http://example.com/HelloWorld", "hello world"),
            "DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_eq!(encoding("é", "ß"), "DSSEv1 2 é 2 ß");
    }
}
