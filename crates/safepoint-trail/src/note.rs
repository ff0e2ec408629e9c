//! Signed notes (C2SP `signed-note`): a few lines of text and Ed25519 signatures under them.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use safepoint_model::{Digest, Entropy, EntropyError};

/// The algorithm byte of Ed25519 in keys and key ids.
const ED25519: u8 = 0x01;

/// C2SP asks for limits; honest notes are far below these.
const LARGEST_NOTE: usize = 1 << 20;
const MOST_SIGNATURES: usize = 100;

/// Why a key or a note was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoteError {
    /// Not `NAME+HASH+KEY`.
    #[error("not a verifier key of the form `NAME+HASH+KEY`")]
    VerifierKey,
    /// Not `PRIVATE+KEY+NAME+HASH+KEY`.
    #[error("not a signing key of the form `PRIVATE+KEY+NAME+HASH+KEY`")]
    SigningKey,
    /// A name that is empty or has a space or `+` in it.
    #[error("a key name is not empty and has no spaces, control characters or `+`")]
    Name,
    /// Not text, an empty line, and signature lines.
    #[error("not a signed note: expected text, an empty line, and lines that begin with `— `")]
    Shape,
    /// No signature line is of the key asked for.
    #[error("the note carries no signature of the key `{0}`")]
    Unsigned(String),
    /// A signature line is of that key, and does not match.
    #[error("the signature of the key `{0}` does not match the note")]
    Forged(String),
}

/// A private key with its name.
pub struct Signer {
    key: SigningKey,
    public: PublicKey,
}

/// A public key with its name, printed in C2SP's verifier-key form.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    name: String,
    id: [u8; 4],
    key: VerifyingKey,
}

impl Signer {
    /// A new key under `name`, which has no spaces, control characters or `+`.
    ///
    /// [`Signer::valid_name`] tells whether it is one.
    pub fn generate(name: &str, entropy: &dyn Entropy) -> Result<Self, EntropyError> {
        let mut seed = [0; 32];
        entropy.fill(&mut seed)?;
        Ok(Self::from_seed(name, &seed))
    }

    /// Whether a key can have this name.
    pub fn valid_name(name: &str) -> Result<(), NoteError> {
        valid_name(name)
    }

    fn from_seed(name: &str, seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let public = PublicKey::new(name, key.verifying_key());
        Self { key, public }
    }

    /// Reads the text form that [`Signer::to_text`] writes.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let rest = text
            .trim_end()
            .strip_prefix("PRIVATE+KEY+")
            .ok_or(NoteError::SigningKey)?;
        let (name, id, seed) = split_key(rest).ok_or(NoteError::SigningKey)?;
        let signer = Self::from_seed(name, &seed);
        if signer.public.id != id {
            return Err(NoteError::SigningKey);
        }
        valid_name(name)?;
        Ok(signer)
    }

    /// The text form of the private key, as Go's `note` package writes it.
    pub fn to_text(&self) -> String {
        let PublicKey { name, id, .. } = &self.public;
        let data = encode_key(self.key.as_bytes());
        format!("PRIVATE+KEY+{name}+{}+{data}", hex(id))
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// A secret for another purpose, bound to this key by `label`.
    pub fn derive_secret(&self, label: &str) -> Digest {
        let mut frame = safepoint_model::Frame::new(label);
        frame.field(self.key.as_bytes());
        frame.digest()
    }

    /// The signature of `text` alone, in base64.
    pub fn signature(&self, text: &str) -> String {
        BASE64.encode(self.key.sign(text.as_bytes()).to_bytes())
    }

    /// The signature of bytes that say themselves what they are, and are no head.
    pub(crate) fn sign_bytes(&self, bytes: &[u8]) -> [u8; 64] {
        self.key.sign(bytes).to_bytes()
    }

    /// The note with this signature under it. `text` ends with a newline.
    pub fn sign(&self, text: &str) -> String {
        let signature = self.key.sign(text.as_bytes());
        let mut bytes = self.public.id.to_vec();
        bytes.extend_from_slice(&signature.to_bytes());
        format!("{text}\n— {} {}\n", self.public.name, BASE64.encode(bytes))
    }
}

impl fmt::Debug for Signer {
    /// Never the private half.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.public)
    }
}

impl PublicKey {
    fn new(name: &str, key: VerifyingKey) -> Self {
        Self {
            name: name.to_owned(),
            id: key_id(name, ED25519, key.as_bytes()),
            key,
        }
    }

    /// An Ed25519 key that somebody else holds, under `name`.
    pub fn of_ed25519(name: &str, key: &[u8; 32]) -> Result<Self, NoteError> {
        valid_name(name)?;
        let key = VerifyingKey::from_bytes(key).map_err(|_| NoteError::VerifierKey)?;
        Ok(Self::new(name, key))
    }

    /// The note over `text` with a signature that was made elsewhere. It is checked.
    pub fn note(&self, text: &str, signature: &[u8; 64]) -> Result<String, NoteError> {
        let mut bytes = self.id.to_vec();
        bytes.extend_from_slice(signature);
        let note = format!("{text}\n— {} {}\n", self.name, BASE64.encode(bytes));
        self.open(&note)?;
        Ok(note)
    }

    /// Whether this is the key's signature of `bytes`.
    pub fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.key.verify_strict(bytes, &signature).is_ok())
    }

    /// The key itself.
    pub fn ed25519(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// The name, which is the origin of the log that the key signs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id that tells keys of one name apart: the second part of the printed form.
    pub fn id(&self) -> String {
        hex(&self.id)
    }

    /// The text of a note that this key has signed. Signatures of others are passed over.
    pub fn open<'a>(&self, note: &'a str) -> Result<&'a str, NoteError> {
        let (text, signatures) = split_note(note)?;
        for (name, bytes) in signatures {
            let Some((id, signature)) = bytes.split_first_chunk::<4>() else {
                return Err(NoteError::Shape);
            };
            if name != self.name || *id != self.id {
                continue;
            }
            let genuine = Signature::from_slice(signature)
                .and_then(|signature| self.key.verify_strict(text.as_bytes(), &signature));
            return match genuine {
                Ok(()) => Ok(text),
                Err(_) => Err(NoteError::Forged(self.name.clone())),
            };
        }
        Err(NoteError::Unsigned(self.name.clone()))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = encode_key(self.key.as_bytes());
        write!(f, "{}+{}+{data}", self.name, hex(&self.id))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let (name, id, key) = split_key(text.trim()).ok_or(NoteError::VerifierKey)?;
        valid_name(name)?;
        let key = VerifyingKey::from_bytes(&key).map_err(|_| NoteError::VerifierKey)?;
        let public = Self::new(name, key);
        if public.id == id {
            Ok(public)
        } else {
            Err(NoteError::VerifierKey)
        }
    }
}

pub(crate) fn valid_name(name: &str) -> Result<(), NoteError> {
    let forbidden = |c: char| c == '+' || c.is_whitespace() || c.is_control();
    if name.is_empty() || name.contains(forbidden) {
        return Err(NoteError::Name);
    }
    Ok(())
}

/// Splits `NAME+HASH+BASE64(0x01 || KEY)`.
fn split_key(text: &str) -> Option<(&str, [u8; 4], [u8; 32])> {
    let (name, id, algorithm, key) = split_any_key(text)?;
    (algorithm == ED25519).then_some((name, id, key))
}

/// The same, whatever the algorithm of the 32 bytes is.
pub(crate) fn split_any_key(text: &str) -> Option<(&str, [u8; 4], u8, [u8; 32])> {
    let (name, rest) = text.split_once('+')?;
    let (id, data) = rest.split_once('+')?;
    let id = (id.len() == 8)
        .then(|| u32::from_str_radix(id, 16).ok())??
        .to_be_bytes();
    let data = BASE64.decode(data).ok()?;
    let (algorithm, key) = data.split_first()?;
    Some((name, id, *algorithm, key.try_into().ok()?))
}

/// The id of a key in signature lines.
pub(crate) fn key_id(name: &str, algorithm: u8, key: &[u8; 32]) -> [u8; 4] {
    let digest = Digest::of_parts(&[name.as_bytes(), b"\n", &[algorithm], key]);
    let [a, b, c, d, ..] = *digest.as_bytes();
    [a, b, c, d]
}

fn encode_key(key: &[u8; 32]) -> String {
    let mut bytes = vec![ED25519];
    bytes.extend_from_slice(key);
    BASE64.encode(bytes)
}

fn hex(id: &[u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(*id))
}

/// The signature lines of a note: names and bytes.
pub(crate) type Signatures<'a> = Vec<(&'a str, Vec<u8>)>;

/// Splits a note, and refuses one with anything out of order, in lines of strangers too.
pub(crate) fn split_note(note: &str) -> Result<(&str, Signatures<'_>), NoteError> {
    if note.len() > LARGEST_NOTE || note.contains(|c| c < ' ' && c != '\n') {
        return Err(NoteError::Shape);
    }
    let end = note.rfind("\n\n").ok_or(NoteError::Shape)? + 1;
    let (text, rest) = note.split_at(end);
    let lines = rest
        .strip_prefix('\n')
        .and_then(|lines| lines.strip_suffix('\n'))
        .ok_or(NoteError::Shape)?;
    let signatures: Signatures<'_> = lines
        .split('\n')
        .map(|line| {
            let (name, data) = line.strip_prefix("— ")?.split_once(' ')?;
            valid_name(name).ok()?;
            let bytes = BASE64.decode(data).ok()?;
            (bytes.len() > 4).then_some((name, bytes))
        })
        .collect::<Option<_>>()
        .ok_or(NoteError::Shape)?;
    if signatures.len() > MOST_SIGNATURES {
        return Err(NoteError::Shape);
    }
    Ok((text, signatures))
}
