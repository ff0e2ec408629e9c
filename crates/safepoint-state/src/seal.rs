//! Sensitive files under lock: encrypted to the operator's key, in the format of age.
//!
//! Whoever takes the checkpoint needs only the public half. What was sealed
//! opens with `age` itself too, should safepoint not be at hand.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

pub use age::secrecy::ExposeSecret;
use age::secrecy::SecretString;
use age::secrecy::zeroize::Zeroizing;
use age::{DecryptError, Decryptor, EncryptError, Encryptor, x25519};

/// Why something could not be sealed or opened. None of these carries a secret.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The text is not a public key.
    #[error("not an age recipient: it begins with age1")]
    BadRecipient,

    /// A line of an identity file is neither a key nor a comment.
    #[error("line {line} of the identity file is not an age identity")]
    BadIdentity {
        /// The number of the line, from one. Not its text: that may be a key with a typing error.
        line: usize,
    },

    /// An identity file without a key.
    #[error("the identity file holds no age identity")]
    NoIdentity,

    /// An identity file with several keys where one is meant.
    #[error("the identity file holds more than one age identity")]
    SeveralIdentities,

    /// There is nobody to seal for.
    #[error("no recipient to seal for")]
    NoRecipient,

    /// Encryption failed.
    #[error("cannot seal")]
    Failed(#[source] io::Error),

    /// The bytes are not a sealed file, or its beginning is damaged.
    #[error("not a sealed file, or its header is damaged")]
    NotSealed,

    /// It was sealed for somebody else.
    #[error("sealed for another key")]
    WrongKey,

    /// The end is missing.
    #[error("the sealed file is cut short")]
    Truncated,

    /// The bytes are not those that were sealed.
    #[error("the sealed file was changed after it was sealed")]
    Tampered,
}

/// A public key: whom to seal for.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient(x25519::Recipient);

impl FromStr for Recipient {
    type Err = SealError;

    fn from_str(text: &str) -> Result<Self, SealError> {
        let recipient = text.trim().parse().map_err(|_| SealError::BadRecipient)?;
        Ok(Self(recipient))
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Recipient({})", self.0)
    }
}

/// A private key: opens what was sealed for its [`Recipient`].
#[derive(Clone)]
pub struct Identity(x25519::Identity);

impl Identity {
    /// A new key, from the randomness of the operating system.
    pub fn generate() -> Self {
        Self(x25519::Identity::generate())
    }

    /// All keys in the text of an identity file, of which there must be one.
    ///
    /// Empty lines and comments, which begin with `#`, are passed over.
    pub fn all_of(text: &str) -> Result<Vec<Self>, SealError> {
        let lines = text.lines().map(str::trim).enumerate();
        let identities = lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(index, line)| match line.parse() {
                Ok(identity) => Ok(Self(identity)),
                Err(_) => Err(SealError::BadIdentity { line: index + 1 }),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if identities.is_empty() {
            return Err(SealError::NoIdentity);
        }
        Ok(identities)
    }

    /// The public half.
    pub fn recipient(&self) -> Recipient {
        Recipient(self.0.to_public())
    }

    /// The text of an identity file with this key, as `age-keygen` writes it.
    pub fn to_file_text(&self) -> SecretString {
        let key = self.0.to_string();
        let text = Zeroizing::new(format!(
            "# public key: {}\n{}\n",
            self.recipient(),
            key.expose_secret()
        ));
        SecretString::from(text.as_str())
    }
}

impl FromStr for Identity {
    type Err = SealError;

    /// The one key in the text of an identity file.
    fn from_str(text: &str) -> Result<Self, SealError> {
        let mut identities = Self::all_of(text)?;
        let identity = identities.pop().ok_or(SealError::NoIdentity)?;
        if !identities.is_empty() {
            return Err(SealError::SeveralIdentities);
        }
        Ok(identity)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Identity(of {})", self.recipient())
    }
}

/// Encrypts `plain`, so that each of the recipients can open it.
pub fn seal(plain: &[u8], recipients: &[Recipient]) -> Result<Vec<u8>, SealError> {
    let recipients = recipients.iter().map(|recipient| &recipient.0 as _);
    let encryptor = Encryptor::with_recipients(recipients).map_err(|error| match error {
        EncryptError::MissingRecipients => SealError::NoRecipient,
        EncryptError::Io(error) => SealError::Failed(error),
        other => SealError::Failed(io::Error::other(other.to_string())),
    })?;
    let mut sealed = Vec::with_capacity(plain.len());
    let mut writer = encryptor
        .wrap_output(&mut sealed)
        .map_err(SealError::Failed)?;
    writer.write_all(plain).map_err(SealError::Failed)?;
    writer.finish().map_err(SealError::Failed)?;
    Ok(sealed)
}

/// What was sealed, wiped from memory when it is dropped.
pub type Plain = Zeroizing<Vec<u8>>;

/// Decrypts what [`seal`] made with the first of the identities that fits.
///
/// The content is wiped from memory when it is dropped. Nothing is returned
/// unless all of it is as it was sealed.
pub fn open(sealed: &[u8], identities: &[Identity]) -> Result<Plain, SealError> {
    let decryptor = Decryptor::new_buffered(sealed).map_err(|_| SealError::NotSealed)?;
    let identities = identities.iter().map(|identity| &identity.0 as _);
    let mut reader = decryptor.decrypt(identities).map_err(|error| match error {
        DecryptError::NoMatchingKeys => SealError::WrongKey,
        DecryptError::InvalidHeader => SealError::NotSealed,
        _ => SealError::Tampered,
    })?;
    // As large as the content can be: growing would leave copies behind that are not wiped.
    let mut plain = Zeroizing::new(Vec::with_capacity(sealed.len()));
    reader
        .read_to_end(&mut plain)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => SealError::Truncated,
            _ => SealError::Tampered,
        })?;
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed_for(identity: &Identity, plain: &[u8]) -> Vec<u8> {
        seal(plain, &[identity.recipient()]).unwrap()
    }

    #[test]
    fn st_08_what_was_sealed_opens_again() {
        let (one, two) = (Identity::generate(), Identity::generate());
        let large: Vec<u8> = (0..3_u32 << 20).map(|index| (index % 251) as u8).collect();
        for plain in [&b""[..], b"TOKEN=1\n", &large] {
            let sealed = seal(plain, &[one.recipient(), two.recipient()]).unwrap();
            assert!(sealed.len() > plain.len());
            for identity in [&one, &two] {
                let opened = open(&sealed, &[Identity::generate(), identity.clone()]).unwrap();
                assert!(*opened == plain);
            }
        }
        let text = b"DATABASE_PASSWORD=hunter22";
        let sealed = sealed_for(&one, text);
        assert!(!sealed.windows(8).any(|window| window == b"hunter22"));
        assert_ne!(sealed, sealed_for(&one, text));
    }

    #[test]
    fn st_08_another_key_opens_nothing() {
        let sealed = sealed_for(&Identity::generate(), b"secret");
        let other = open(&sealed, &[Identity::generate()]);
        assert!(matches!(other, Err(SealError::WrongKey)));
        assert!(matches!(open(&sealed, &[]), Err(SealError::WrongKey)));
        assert!(matches!(seal(b"x", &[]), Err(SealError::NoRecipient)));
    }

    #[test]
    fn st_08_damage_is_seen_and_told_apart() {
        let identity = Identity::generate();
        let keys = [identity.clone()];
        let sealed = sealed_for(&identity, &[7; 1000]);
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(open(&changed, &keys).is_err(), "byte {index}");
            assert!(open(&sealed[..index], &keys).is_err(), "cut at {index}");
        }
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(matches!(open(&changed, &keys), Err(SealError::Tampered)));
        let mut longer = sealed.clone();
        longer.push(0);
        assert!(matches!(open(&longer, &keys), Err(SealError::Tampered)));
        for bytes in [&b""[..], b"plain text", &sealed[..40]] {
            assert!(matches!(open(bytes, &keys), Err(SealError::NotSealed)));
        }
        // A cut between two chunks of 64 KiB: all that is there is as it was.
        let large = sealed_for(&identity, &[7; 200_000]);
        let header = large.len() - 200_000 - 4 * 16;
        let cut = &large[..header + 65_536 + 16];
        assert!(open(cut, &keys).is_err());
        let nothing = &large[..header];
        assert!(matches!(open(nothing, &keys), Err(SealError::Truncated)));
    }

    #[test]
    fn st_08_keys_are_read_from_their_texts() {
        let identity = Identity::generate();
        let text = identity.to_file_text();
        let text = text.expose_secret();
        assert!(text.contains("\nAGE-SECRET-KEY-1"));
        let again: Identity = text.parse().unwrap();
        assert_eq!(again.recipient(), identity.recipient());
        let recipient: Recipient = format!(" {}\n", identity.recipient()).parse().unwrap();
        assert_eq!(recipient, identity.recipient());

        let two = format!("# old\r\n{text}\r\n\n# new\n{text}");
        assert_eq!(Identity::all_of(&two).unwrap().len(), 2);
        let several = two.parse::<Identity>();
        assert!(matches!(several, Err(SealError::SeveralIdentities)));
        let none = "# nothing\n".parse::<Identity>();
        assert!(matches!(none, Err(SealError::NoIdentity)));
        let public = identity.recipient().to_string();
        let bad = format!("# line 1\n{public}").parse::<Identity>();
        assert!(matches!(bad, Err(SealError::BadIdentity { line: 2 })));
        assert!(text.parse::<Recipient>().is_err());
    }

    #[test]
    fn st_08_no_message_shows_a_secret() {
        let identity = Identity::generate();
        let text = identity.to_file_text();
        let key = text.expose_secret().lines().last().unwrap();
        let broken = key.replace("AGE-SECRET-KEY-1", "AGE-SECRET-KEY-2");
        let error = broken.parse::<Identity>().unwrap_err();
        for shown in [
            format!("{identity:?}"),
            format!("{text:?}"),
            format!("{error} {error:?}"),
        ] {
            assert!(!shown.contains(&key[20..30]), "{shown}");
        }
        assert!(format!("{identity:?}").contains("age1"));
    }
}
