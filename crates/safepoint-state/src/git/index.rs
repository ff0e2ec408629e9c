//! What is staged, read from the bytes of an index. What git keeps there of the files
//! themselves (times, numbers) changes whenever it looks at them, and is passed over.

/// One entry: its mode, its object, its stage and flags, and its name.
type Staged = (u32, Vec<u8>, u16, Vec<u8>);

/// Bytes of an entry before its object: times, numbers, mode, owner, size.
const STAT_BYTES: usize = 40;
/// Where the mode is among them.
const MODE_AT: usize = 24;
const OBJECT_BYTES: usize = 20;
/// The bits of the flags that are not the length of the name.
const FLAGS: u16 = 0xb000;
const EXTENDED: u16 = 0x4000;

/// The entries of an index; `None` for one that is not of versions 2 to 4 over SHA-1.
pub(crate) fn staged(bytes: &[u8]) -> Option<Vec<Staged>> {
    let header = bytes.get(..12)?;
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if header.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut found = Vec::new();
    let mut at = 12;
    let mut last: Vec<u8> = Vec::new();
    for _ in 0..number(8)? {
        let begin = at;
        let entry = bytes.get(at..at + STAT_BYTES + OBJECT_BYTES + 2)?;
        let mode = u32::from_be_bytes(entry.get(MODE_AT..MODE_AT + 4)?.try_into().ok()?);
        let object = entry.get(STAT_BYTES..STAT_BYTES + OBJECT_BYTES)?.to_vec();
        let end = entry.get(STAT_BYTES + OBJECT_BYTES..)?;
        let flags = u16::from_be_bytes(end.try_into().ok()?);
        at += STAT_BYTES + OBJECT_BYTES + 2;
        let mut more = 0;
        if flags & EXTENDED != 0 {
            more = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
            at += 2;
        }
        let kept = match version {
            4 => {
                let dropped = offset(bytes, &mut at)?;
                last.len().checked_sub(dropped)?
            }
            _ => 0,
        };
        let rest = bytes.get(at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        let mut name = last.get(..kept)?.to_vec();
        name.extend_from_slice(rest.get(..length)?);
        at += length + 1;
        if version < 4 {
            at = begin + (at - begin).next_multiple_of(8);
        }
        last.clone_from(&name);
        found.push((mode, object, (flags & FLAGS) ^ more, name));
    }
    Some(found)
}

/// A number of as many bytes as it needs, as git writes it.
fn offset(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_mul(128)? + usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time: u8, object: u8, name: &[u8]) -> Vec<u8> {
        let mut entry = vec![0; STAT_BYTES];
        entry[3] = time;
        entry.extend([object; OBJECT_BYTES]);
        entry.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        entry.extend(name);
        entry.push(0);
        entry.resize(entry.len().next_multiple_of(8), 0);
        entry
    }

    fn index(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x02".to_vec();
        bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        bytes.extend(entries.concat());
        bytes
    }

    #[test]
    fn st_35_an_index_that_was_only_refreshed_stages_the_same() {
        let first = index(&[entry(1, 1, b"a"), entry(1, 2, b"longer/name")]);
        let refreshed = index(&[entry(9, 1, b"a"), entry(9, 2, b"longer/name")]);
        let added = index(&[entry(1, 1, b"a"), entry(1, 3, b"longer/name")]);
        assert_eq!(staged(&first).unwrap().len(), 2);
        assert_eq!(staged(&first), staged(&refreshed));
        assert_ne!(staged(&first), staged(&added));
        assert_eq!(staged(b"DIRC"), None);
        assert_eq!(staged(&first[..40]), None);
    }
}
