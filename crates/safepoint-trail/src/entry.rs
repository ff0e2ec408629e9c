//! One entry of the trail, and the bytes that are hashed for it.

use std::borrow::Cow;

use safepoint_model::{ActionId, Digest, EntryId, Frame, Timestamp, split_frame};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::tree;
use crate::{Actor, Kind, Stream};

/// The tag of an entry's frame: what it is, and in which version.
pub const ENTRY_TAG: &str = "safepoint/entry/v1";

/// C2SP entry bundles have 16-bit lengths, so the frame of an entry must stay
/// below 64 KiB; larger bodies go to the blob store.
pub const LARGEST_BODY: usize = 60_000;

/// The field that stands in place of a large body. No other body may have it.
pub(crate) const BLOB_FIELD: &str = "$blob";

/// The digest of the blob that a body stands for, if it is one that we wrote.
pub(crate) fn blob_of(body: &[u8]) -> Option<Digest> {
    let rest = body.strip_prefix(br#"{"$blob":{"sha256":""#)?;
    let (digest, rest) = rest.split_at_checked(64)?;
    let size = rest.strip_prefix(br#"","size":"#)?.strip_suffix(b"}}")?;
    if size.is_empty() || !size.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digest).ok()?.parse().ok()
}

/// One entry, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the trail, and its index in the Merkle tree, from 0.
    pub seq: u64,
    /// Its identifier.
    pub id: EntryId,
    /// When it was made; later than every entry before it.
    pub time: Timestamp,
    /// The chain it belongs to.
    pub stream: Stream,
    /// Who did it.
    pub actor: Actor,
    /// What happened.
    pub kind: Kind,
    /// The action it belongs to.
    pub action_id: Option<ActionId>,
    /// The rest, as RFC 8785 JSON.
    pub body: String,
    /// The hash of the entry before it in its stream.
    pub prev_hash: Option<Digest>,
    /// The hash of this entry: its leaf hash in the tree.
    pub hash: Digest,
}

/// The fields of an entry that its hash covers, wherever they come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) seq: u64,
    pub(crate) id: &'a [u8],
    pub(crate) time: i64,
    pub(crate) stream: &'a [u8],
    pub(crate) actor: &'a [u8],
    pub(crate) kind: &'a [u8],
    pub(crate) action_id: &'a [u8],
    pub(crate) body: &'a [u8],
    pub(crate) prev_hash: &'a [u8],
}

impl Fields<'_> {
    /// Lays the fields out in `frame`, which is emptied first.
    pub(crate) fn frame(&self, frame: &mut Frame) {
        frame.restart(ENTRY_TAG);
        frame
            .number(self.seq)
            .field(self.id)
            .field(&self.time.to_be_bytes())
            .field(self.stream)
            .field(self.actor)
            .field(self.kind)
            .field(self.action_id)
            .field(self.body)
            .field(self.prev_hash);
    }

    /// The entry hash: the RFC 6962 leaf hash over the frame.
    pub(crate) fn hash(&self, frame: &mut Frame) -> Digest {
        self.frame(frame);
        tree::leaf_hash(frame.as_bytes())
    }
}

impl Entry {
    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields {
            seq: self.seq,
            id: self.id.as_str().as_bytes(),
            time: self.time.as_micros(),
            stream: self.stream.as_str().as_bytes(),
            actor: self.actor.as_str().as_bytes(),
            kind: self.kind.as_str().as_bytes(),
            action_id: self
                .action_id
                .as_ref()
                .map_or(&[], |id| id.as_str().as_bytes()),
            body: self.body.as_bytes(),
            prev_hash: self
                .prev_hash
                .as_ref()
                .map_or(&[], |hash| hash.as_bytes().as_slice()),
        }
    }

    /// The bytes that are hashed: the leaf of the tree.
    pub fn to_leaf(&self) -> Vec<u8> {
        let mut frame = Frame::new(ENTRY_TAG);
        self.fields().frame(&mut frame);
        frame.as_bytes().to_vec()
    }

    /// The body, byte for byte as it was hashed. One that is no JSON any more has been
    /// tampered with, and is a text.
    pub(crate) fn raw_body(&self) -> Result<Cow<'_, RawValue>, serde_json::Error> {
        match serde_json::from_str::<&RawValue>(&self.body) {
            Ok(body) => Ok(Cow::Borrowed(body)),
            Err(_) => serde_json::value::to_raw_value(&self.body).map(Cow::Owned),
        }
    }

    /// Reads an entry back from its leaf; `None` when it is not one.
    pub fn from_leaf(leaf: &[u8]) -> Option<Self> {
        let parts = split_frame(leaf)?;
        let [
            tag,
            seq,
            id,
            time,
            stream,
            actor,
            kind,
            action_id,
            body,
            prev_hash,
        ] = parts.as_slice()
        else {
            return None;
        };
        if *tag != ENTRY_TAG.as_bytes() {
            return None;
        }
        fn text<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
            std::str::from_utf8(bytes).ok()?.parse().ok()
        }
        serde_json::from_slice::<serde::de::IgnoredAny>(body).ok()?;
        Some(Self {
            seq: u64::from_be_bytes((*seq).try_into().ok()?),
            id: text(id)?,
            time: Timestamp::from_micros(i64::from_be_bytes((*time).try_into().ok()?)),
            stream: text(stream)?,
            actor: text(actor)?,
            kind: text(kind)?,
            action_id: match *action_id {
                [] => None,
                bytes => Some(text(bytes)?),
            },
            body: text(body)?,
            prev_hash: match *prev_hash {
                [] => None,
                bytes => Some(Digest::from_slice(bytes).ok()?),
            },
            hash: tree::leaf_hash(leaf),
        })
    }
}

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            id: &'a EntryId,
            seq: u64,
            time: Timestamp,
            stream: &'a Stream,
            actor: &'a Actor,
            kind: &'a Kind,
            action_id: &'a Option<ActionId>,
            body: &'a RawValue,
            prev_hash: Option<Digest>,
            hash: Digest,
        }
        let body = self.raw_body().map_err(serde::ser::Error::custom)?;
        Wire {
            id: &self.id,
            seq: self.seq,
            time: self.time,
            stream: &self.stream,
            actor: &self.actor,
            kind: &self.kind,
            action_id: &self.action_id,
            body: &body,
            prev_hash: self.prev_hash,
            hash: self.hash,
        }
        .serialize(serializer)
    }
}
