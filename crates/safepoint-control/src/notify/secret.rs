//! The secret of a webhook, by the scheme of Standard Webhooks: HMAC-SHA256 over id, time
//! and body. It is never shown, also not by `Debug`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use safepoint_model::{Entropy, EntropyError};
use sha2::Sha256;

/// What every secret begins with.
const PREFIX: &str = "whsec_";

/// How many bytes it has, by the scheme.
const SIZES: std::ops::RangeInclusive<usize> = 24..=64;

/// What a webhook and its receiver share.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// A text that is no secret of this scheme. What it is, is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret is `whsec_` and the base64 of 24 to 64 bytes")]
pub struct SecretError;

impl Secret {
    /// A new one.
    pub fn generate(entropy: &dyn Entropy) -> Result<Self, EntropyError> {
        let mut bytes = vec![0; 32];
        entropy.fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(SecretError)?;
        let bytes = BASE64.decode(encoded).map_err(|_| SecretError)?;
        match SIZES.contains(&bytes.len()) {
            true => Ok(Self(bytes)),
            false => Err(SecretError),
        }
    }

    /// The text of it, for the file of its receiver and for nothing else.
    pub fn to_text(&self) -> String {
        format!("{PREFIX}{}", BASE64.encode(&self.0))
    }

    /// The value of `webhook-signature`.
    pub(super) fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        // A key of any length is one for HMAC; an empty signature would be refused by all.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            return String::new();
        };
        mac.update(format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_10_signatures_are_those_of_the_published_example() {
        // The example of the Standard Webhooks specification.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(
            secret.sign(
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                r#"{"test": 2432232314}"#
            ),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(Secret::parse(&secret.to_text()), Ok(secret));
    }

    #[test]
    fn su_10_what_is_no_secret_is_refused() {
        for text in [
            "",
            "whsec_",
            "whsec_c2hvcnQ=",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_!!",
        ] {
            assert_eq!(Secret::parse(text), Err(SecretError), "{text}");
        }
    }
}
