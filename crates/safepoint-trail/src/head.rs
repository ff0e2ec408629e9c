//! The head of the trail: how many entries there are and the root over them,
//! signed. On the wire this is a C2SP `tlog-checkpoint`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_model::Digest;

use crate::note::{NoteError, PublicKey, Signer};

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which log this is.
    pub origin: String,
    /// How many entries it has.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Digest,
}

/// A head and the signed note that vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHead {
    head: Head,
    note: String,
}

/// Why a signed head was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum HeadError {
    /// The note around it is not in order.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The text of the note is not a head.
    #[error("the note is signed, but its text is not a head: expected origin, size and root")]
    Shape,
    /// A head of another log.
    #[error("the head is of the log `{found}`, not of `{expected}`")]
    OtherLog {
        /// The log it is of.
        found: String,
        /// The log it should be of.
        expected: String,
    },
}

impl Head {
    /// The three lines that are signed.
    pub fn to_text(&self) -> String {
        let root = BASE64.encode(self.root.as_bytes());
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }

    /// Reads those lines. Further lines are extensions, which mean nothing to us.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
        let number: u64 = size.parse().ok()?;
        if origin.is_empty() || number.to_string() != size || lines.any(str::is_empty) {
            return None;
        }
        let root = Digest::from_slice(&BASE64.decode(root).ok()?).ok()?;
        Some(Self {
            origin: origin.to_owned(),
            size: number,
            root,
        })
    }

    /// Signs the head.
    pub fn sign(self, signer: &Signer) -> SignedHead {
        let note = signer.sign(&self.to_text());
        SignedHead { head: self, note }
    }
}

impl SignedHead {
    /// Opens a note, checking that `key` signed it and that it is the head of that key's log.
    pub fn open(note: &str, key: &PublicKey) -> Result<Self, HeadError> {
        let text = key.open(note)?;
        let head = Head::parse(text).ok_or(HeadError::Shape)?;
        if head.origin != key.name() {
            return Err(HeadError::OtherLog {
                found: head.origin,
                expected: key.name().to_owned(),
            });
        }
        Ok(Self {
            head,
            note: note.to_owned(),
        })
    }

    /// The head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// How many entries it covers.
    pub fn size(&self) -> u64 {
        self.head.size
    }

    /// The root over them.
    pub fn root(&self) -> Digest {
        self.head.root
    }

    /// The signed note, as others read it.
    pub fn note(&self) -> &str {
        &self.note
    }
}
