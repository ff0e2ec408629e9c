//! Trees as bytes. `docs/formats/objects.md` has the layout; reading is strict,
//! and whatever is not exactly what `encode` writes is refused.

use safepoint_model::Digest;

use super::{Attributes, Entry, Moment, Node, Special, Subtree};
use crate::ContentId;

/// What a tree begins with: the last character is the version.
const MAGIC: &[u8] = b"SPT1";

const FILE: u8 = 0;
const DIRECTORY: u8 = 1;
const SYMLINK: u8 = 2;
const FIFO: u8 = 3;
const SOCKET: u8 = 4;
const CHARACTER_DEVICE: u8 = 5;
const BLOCK_DEVICE: u8 = 6;

const SPARSE: u8 = 1;
const LINKED: u8 = 2;

/// The bytes of a tree with these entries.
pub fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAGIC.len() + 4 + entries.len() * 72);
    out.extend_from_slice(MAGIC);
    number(&mut out, entries.len() as u64);
    for entry in entries {
        encode_entry(&mut out, entry);
    }
    out
}

fn encode_entry(out: &mut Vec<u8>, entry: &Entry) {
    bytes(out, &entry.name);
    number(out, u64::from(entry.mode));
    number(out, u64::from(entry.owner));
    number(out, u64::from(entry.group));
    number(out, zigzag(entry.modified.seconds));
    number(out, u64::from(entry.modified.nanos));
    number(out, entry.attributes.len() as u64);
    for (name, value) in &entry.attributes {
        bytes(out, name);
        bytes(out, value);
    }
    match &entry.node {
        Node::File {
            size,
            content,
            sparse,
            link,
        } => {
            out.push(FILE);
            number(out, *size);
            out.extend_from_slice(content.as_bytes());
            out.push(if *sparse { SPARSE } else { 0 } | if link.is_some() { LINKED } else { 0 });
            if let Some(link) = link {
                number(out, *link);
            }
        }
        Node::Directory(subtree) => {
            out.push(DIRECTORY);
            out.extend_from_slice(subtree.tree.as_bytes());
            out.extend_from_slice(subtree.hash.as_bytes());
            number(out, subtree.files);
            number(out, subtree.bytes);
            out.push(u8::from(subtree.links));
        }
        Node::Symlink { target } => {
            out.push(SYMLINK);
            bytes(out, target);
        }
        Node::Special { kind, device } => {
            out.push(match kind {
                Special::Fifo => FIFO,
                Special::Socket => SOCKET,
                Special::CharacterDevice => CHARACTER_DEVICE,
                Special::BlockDevice => BLOCK_DEVICE,
            });
            number(out, *device);
        }
    }
}

/// The entries of a tree; `None` when the bytes are not a tree that `encode` could have written.
pub fn decode(tree: &[u8]) -> Option<Vec<Entry>> {
    let mut input = Input(tree.strip_prefix(MAGIC)?);
    let count = usize::try_from(input.number()?).ok()?;
    if count > input.0.len() {
        return None;
    }
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    for _ in 0..count {
        let entry = decode_entry(&mut input)?;
        if entries.last().is_some_and(|last| last.name >= entry.name) {
            return None;
        }
        entries.push(entry);
    }
    input.0.is_empty().then_some(entries)
}

fn decode_entry(input: &mut Input<'_>) -> Option<Entry> {
    let name = input.bytes()?.to_vec();
    if name.is_empty()
        || name == b"."
        || name == b".."
        || name.iter().any(|b| matches!(b, 0 | b'/'))
    {
        return None; // such a name could lead out of the workspace
    }
    let mode = input.small()?;
    let owner = input.small()?;
    let group = input.small()?;
    let modified = Moment {
        seconds: unzigzag(input.number()?),
        nanos: input.small().filter(|nanos| *nanos < 1_000_000_000)?,
    };
    let attributes = decode_attributes(input)?;
    let node = match input.byte()? {
        FILE => {
            let size = input.number()?;
            let content = input.content()?;
            let flags = input
                .byte()
                .filter(|flags| flags & !(SPARSE | LINKED) == 0)?;
            Node::File {
                size,
                content,
                sparse: flags & SPARSE != 0,
                link: if flags & LINKED == 0 {
                    None
                } else {
                    Some(input.number()?)
                },
            }
        }
        DIRECTORY => Node::Directory(Subtree {
            tree: input.content()?,
            hash: Digest::from_bytes(input.take(32)?.try_into().ok()?),
            files: input.number()?,
            bytes: input.number()?,
            links: match input.byte()? {
                0 => false,
                1 => true,
                _ => return None,
            },
        }),
        SYMLINK => Node::Symlink {
            target: input.bytes()?.to_vec(),
        },
        kind @ FIFO..=BLOCK_DEVICE => Node::Special {
            kind: match kind {
                FIFO => Special::Fifo,
                SOCKET => Special::Socket,
                CHARACTER_DEVICE => Special::CharacterDevice,
                _ => Special::BlockDevice,
            },
            device: input.number()?,
        },
        _ => return None,
    };
    Some(Entry {
        name,
        mode,
        owner,
        group,
        modified,
        attributes,
        node,
    })
}

fn decode_attributes(input: &mut Input<'_>) -> Option<Attributes> {
    let count = usize::try_from(input.number()?).ok()?;
    if count > input.0.len() {
        return None;
    }
    (0..count)
        .map(|_| Some((input.bytes()?.to_vec(), input.bytes()?.to_vec())))
        .collect()
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
pub(crate) fn number(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

pub(crate) fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    number(out, value.len() as u64);
    out.extend_from_slice(value);
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// What is left to read.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                return None;
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                // One way to write each number: no zero at the high end.
                return (low != 0 || shift == 0).then_some(value);
            }
        }
        None
    }

    pub(crate) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    pub(crate) fn content(&mut self) -> Option<ContentId> {
        ContentId::from_slice(self.take(ContentId::LENGTH)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let node = prop_oneof![
            (
                any::<u64>(),
                any::<[u8; 32]>(),
                any::<bool>(),
                any::<Option<u64>>()
            )
                .prop_map(|(size, content, sparse, link)| Node::File {
                    size,
                    content: ContentId::from_slice(&content).unwrap(),
                    sparse,
                    link
                }),
            any::<([u8; 32], [u8; 32], u64, u64, bool)>().prop_map(
                |(tree, hash, files, bytes, links)| Node::Directory(Subtree {
                    tree: ContentId::from_slice(&tree).unwrap(),
                    hash: Digest::from_bytes(hash),
                    files,
                    bytes,
                    links
                })
            ),
            any::<Vec<u8>>().prop_map(|target| Node::Symlink { target }),
            any::<u64>().prop_map(|device| Node::Special {
                kind: Special::BlockDevice,
                device
            }),
        ];
        (
            proptest::collection::vec(1_u8..=255, 1..40)
                .prop_map(|name| {
                    name.into_iter()
                        .map(|b| if b == b'/' { b'_' } else { b })
                        .collect::<Vec<_>>()
                })
                .prop_filter("a name", |name| name != b"." && name != b".."),
            any::<(u32, u32, u32, i64)>(),
            0..1_000_000_000_u32,
            any::<Attributes>(),
            node,
        )
            .prop_map(
                |(name, (mode, owner, group, seconds), nanos, attributes, node)| Entry {
                    name,
                    mode,
                    owner,
                    group,
                    modified: Moment { seconds, nanos },
                    attributes,
                    node,
                },
            )
    }

    proptest! {
        #[test]
        fn st_11_every_tree_comes_back_from_its_bytes(
            entries in proptest::collection::btree_map(any::<u16>(), entry(), 0..20)
        ) {
            let mut entries: Vec<Entry> = entries.into_values().collect();
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            entries.dedup_by(|a, b| a.name == b.name);
            let encoded = encode(&entries);
            let decoded = decode(&encoded);
            prop_assert_eq!(decoded.as_ref(), Some(&entries));
            // Cut short or with something behind it, it is no tree.
            let shorter = encoded.get(..encoded.len() - 1).unwrap();
            prop_assert_eq!(decode(shorter), None);
            let longer = [&encoded[..], &[0]].concat();
            prop_assert_eq!(decode(&longer), None);
        }

        #[test]
        fn st_11_what_reads_as_a_tree_is_written_the_same(bytes: Vec<u8>) {
            let tree = [MAGIC, &bytes].concat();
            if let Some(entries) = decode(&tree) {
                prop_assert_eq!(encode(&entries), tree);
            }
        }
    }

    #[test]
    fn st_11_a_name_that_leads_elsewhere_is_refused() {
        for name in [&b".."[..], b".", b"", b"a/b", b"a\0"] {
            let mut tree = MAGIC.to_vec();
            number(&mut tree, 1);
            bytes(&mut tree, name);
            tree.extend([0, 0, 0, 0, 0, 0, SYMLINK, 1, b'x']);
            assert_eq!(decode(&tree), None, "{name:?}");
        }
    }
}
