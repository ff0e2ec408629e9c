//! Cosignatures of independent witnesses (C2SP `tlog-cosignature`, Ed25519), and what is said
//! to a witness to get one (C2SP `tlog-witness`). From text to text: nothing is sent here.
//!
//! A witness signs that the head it saw continues every head that it saw before. So
//! whoever trusts one need not trust whoever keeps the trail not to show it two faces.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, VerifyingKey};
use safepoint_model::{Digest, Timestamp};

use crate::head::SignedHead;
use crate::note::{NoteError, key_id, split_any_key, split_note, valid_name};
use crate::proof::decimal;

/// The algorithm byte of timestamped Ed25519 cosignatures.
const COSIGNATURE: u8 = 0x04;
/// The algorithm byte of plain Ed25519 keys, which some witnesses print.
const ED25519: u8 = 0x01;
/// C2SP allows no more hashes in a request.
const MOST_HASHES: usize = 63;

/// The public key of a witness.
#[derive(Clone, PartialEq, Eq)]
pub struct WitnessKey {
    name: String,
    id: [u8; 4],
    key: VerifyingKey,
}

/// A head that a witness has cosigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosigned {
    /// The head.
    pub head: SignedHead,
    /// Who cosigned it.
    pub witness: WitnessKey,
    /// When, as the witness says.
    pub time: Timestamp,
    /// The signature line, without its newline.
    line: String,
}

/// Why a witness did not cosign.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum WitnessError {
    /// It last saw a trail of another size.
    #[error("the witness last saw a trail of {0} entries")]
    OtherSize(u64),
    /// It has seen another trail under this name.
    #[error("the witness has seen another trail of the same size under this name")]
    Fork,
    /// It does not know this log.
    #[error("the witness does not know this trail: give its operator the key of the trail")]
    UnknownLog,
    /// It knows other keys for this log.
    #[error("the witness does not trust the key of this trail")]
    UnknownKey,
    /// It does not accept that the trail continues the one it knows.
    #[error("the witness does not accept that the trail continues the one it saw before")]
    NotConsistent,
    /// It answered in a way that the protocol does not have.
    #[error("the witness answered with status {0}")]
    Status(u16),
    /// Its answer is not what it should be.
    #[error("the answer of the witness is malformed: {0}")]
    Shape(&'static str),
    /// Its answer carries no cosignature of the key that is expected.
    #[error("the answer carries no cosignature of the witness `{0}` that matches the head")]
    Unsigned(String),
}

impl WitnessKey {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cosignature of this witness under `note`, if it is there and genuine.
    pub fn cosignature(&self, note: &str, head: &SignedHead) -> Result<Cosigned, WitnessError> {
        let unsigned = || WitnessError::Unsigned(self.name.clone());
        let (text, signatures) = split_note(note).map_err(|_| unsigned())?;
        let (ours, _) = split_note(head.note()).map_err(|_| unsigned())?;
        if text != ours {
            return Err(unsigned());
        }
        signatures
            .iter()
            .filter(|(name, _)| *name == self.name)
            .find_map(|(_, bytes)| self.read(text, bytes, head))
            .ok_or_else(unsigned)
    }

    /// One signature line, if it is this witness's and genuine.
    fn read(&self, text: &str, bytes: &[u8], head: &SignedHead) -> Option<Cosigned> {
        let (id, rest) = bytes.split_first_chunk::<4>()?;
        let (seconds, signature) = rest.split_first_chunk::<8>()?;
        let seconds = u64::from_be_bytes(*seconds);
        let signature = Signature::from_slice(signature).ok()?;
        let message = format!("cosignature/v1\ntime {seconds}\n{text}");
        if *id != self.id
            || self
                .key
                .verify_strict(message.as_bytes(), &signature)
                .is_err()
        {
            return None;
        }
        let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
        Some(Cosigned {
            head: head.clone(),
            witness: self.clone(),
            time: Timestamp::from_micros(micros),
            line: format!("— {} {}", self.name, BASE64.encode(bytes)),
        })
    }
}

impl Cosigned {
    /// The note with the signature of the trail and this cosignature.
    pub fn note(&self) -> String {
        with_cosignatures(&self.head, std::slice::from_ref(self))
    }
}

/// The note of `head` with every one of these cosignatures that is of the same head.
pub fn with_cosignatures(head: &SignedHead, cosigned: &[Cosigned]) -> String {
    let mut note = head.note().to_owned();
    for one in cosigned {
        if one.head.head() == head.head() && !note.contains(&one.line) {
            note.push_str(&one.line);
            note.push('\n');
        }
    }
    note
}

/// What is sent to `add-checkpoint`: the head, and the proof that it continues the one of `old` entries.
pub fn request(old: u64, path: &[Digest], head: &SignedHead) -> Option<String> {
    if path.len() > MOST_HASHES {
        return None;
    }
    let mut text = format!("old {old}\n");
    for hash in path {
        text.push_str(&BASE64.encode(hash.as_bytes()));
        text.push('\n');
    }
    text.push('\n');
    text.push_str(head.note());
    Some(text)
}

/// Reads what a witness answers. Its cosignature is checked.
pub fn answer(
    status: u16,
    body: &[u8],
    head: &SignedHead,
    witness: &WitnessKey,
) -> Result<Cosigned, WitnessError> {
    let text = || std::str::from_utf8(body).map_err(|_| WitnessError::Shape("it is not UTF-8"));
    match status {
        200 => {
            let note = format!("{}{}", head.note(), text()?);
            if split_note(&note).is_err() {
                return Err(WitnessError::Shape("expected lines that begin with `— `"));
            }
            witness.cosignature(&note, head)
        }
        403 => Err(WitnessError::UnknownKey),
        404 => Err(WitnessError::UnknownLog),
        409 => {
            let size = text()?.strip_suffix('\n').and_then(decimal);
            match size.ok_or(WitnessError::Shape("expected the size it last saw"))? {
                same if same == head.size() => Err(WitnessError::Fork),
                other => Err(WitnessError::OtherSize(other)),
            }
        }
        422 => Err(WitnessError::NotConsistent),
        other => Err(WitnessError::Status(other)),
    }
}

impl FromStr for WitnessKey {
    type Err = NoteError;

    /// Reads `NAME+HASH+KEY`, the key being one of cosignatures, or a plain Ed25519 one.
    fn from_str(text: &str) -> Result<Self, NoteError> {
        let (name, id, algorithm, key) =
            split_any_key(text.trim()).ok_or(NoteError::VerifierKey)?;
        valid_name(name)?;
        let known = matches!(algorithm, COSIGNATURE | ED25519);
        if !known || key_id(name, algorithm, &key) != id {
            return Err(NoteError::VerifierKey);
        }
        Ok(Self {
            name: name.to_owned(),
            id: key_id(name, COSIGNATURE, &key),
            key: VerifyingKey::from_bytes(&key).map_err(|_| NoteError::VerifierKey)?,
        })
    }
}

impl fmt::Display for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut data = vec![COSIGNATURE];
        data.extend_from_slice(self.key.as_bytes());
        let id = u32::from_be_bytes(self.id);
        write!(f, "{}+{id:08x}+{}", self.name, BASE64.encode(data))
    }
}

impl fmt::Debug for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WitnessKey({self})")
    }
}
