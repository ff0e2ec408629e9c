//! The names and modes in the headers of a patch.

/// The old and the new name, nothing for `/dev/null`.
pub(super) type Names = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The prefixes that git puts before names: `a/` and `b/`, or with
/// `diff.mnemonicPrefix` one for what each side is.
const PREFIXES: [u8; 6] = *b"abciow";

/// A name as it stands behind `--- `, `+++ ` or `rename from `; nothing inside
/// for `/dev/null`, nothing at all when it cannot be read.
pub(super) fn name(text: &[u8]) -> Option<Option<Vec<u8>>> {
    let name = match text.strip_prefix(b"\"") {
        Some(quoted) => unquoted(quoted)?.0,
        // Behind a tab stands a time, and git ends names with blanks by one.
        None => text.split(|byte| *byte == b'\t').next()?.to_vec(),
    };
    match name.as_slice() {
        b"" => None,
        b"/dev/null" => Some(None),
        _ => Some(Some(name)),
    }
}

/// The inside of a name in quotes, as C writes it, and what follows the quotes.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    let mut rest = text;
    loop {
        (name, rest) = match rest {
            [b'"', rest @ ..] => return Some((name, rest)),
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                rest @ ..,
            ] => {
                let value = (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0');
                (with(name, value), rest)
            }
            [b'\\', letter, rest @ ..] => {
                let value = match letter {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0B,
                    b'f' => 0x0C,
                    b'r' => b'\r',
                    b'"' | b'\\' => *letter,
                    _ => return None,
                };
                (with(name, value), rest)
            }
            [b'\\'] | [] => return None,
            [byte, rest @ ..] => (with(name, *byte), rest),
        };
    }
}

fn with(mut name: Vec<u8>, byte: u8) -> Vec<u8> {
    name.push(byte);
    name
}

/// The names of a `diff --git` line, with their prefixes. Without quotes
/// nothing parts them for certain; but then both are the same and equally long,
/// or other lines of the header have them.
pub(super) fn git_names(text: &[u8]) -> Option<Names> {
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let (old, rest) = unquoted(quoted)?;
        return Some((Some(old), name(rest.strip_prefix(b" ")?)?));
    }
    if text.ends_with(b"\"") {
        let middle = text.windows(2).position(|pair| pair == b" \"")?;
        let (old, new) = text.split_at_checked(middle)?;
        return Some((Some(old.to_vec()), name(new.strip_prefix(b" ")?)?));
    }
    let (old, new) = text.split_at_checked(text.len() / 2)?;
    let new = new.strip_prefix(b" ")?;
    let same = old == new || (prefix(old).is_some() && old.get(2..) == new.get(2..));
    same.then(|| (Some(old.to_vec()), Some(new.to_vec())))
}

/// The letter of git's prefix.
fn prefix(name: &[u8]) -> Option<u8> {
    match name {
        [letter, b'/', _, ..] if PREFIXES.contains(letter) => Some(*letter),
        _ => None,
    }
}

/// The names of git without its prefixes. They differ on both sides; equal
/// names were written without them.
pub(super) fn without_prefixes(old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> Names {
    let prefixed = match (&old, &new) {
        (Some(old), Some(new)) => old != new && prefix(old).is_some() && prefix(new).is_some(),
        _ => true,
    };
    let strip = |name: Option<Vec<u8>>| {
        name.map(|name| match prefix(&name) {
            Some(_) if prefixed => name.get(2..).unwrap_or_default().to_vec(),
            _ => name,
        })
    };
    (strip(old), strip(new))
}

/// The names of a plain diff. It renames nothing: of two different names, the
/// one is meant that is likely not to be a copy kept aside, as `patch` does it.
pub(super) fn plain_names(old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> Names {
    let begins = |name: &Option<Vec<u8>>, with: &[u8]| {
        let name = name.as_ref();
        name.is_none_or(|name| name.starts_with(with) && name.len() > with.len())
    };
    let (old, new) = match begins(&old, b"a/") && begins(&new, b"b/") {
        true => without_prefixes(old, new),
        false => (old, new),
    };
    match (old, new) {
        (Some(old), Some(new)) if old != new => {
            let name = match weight(&old) < weight(&new) {
                true => old,
                false => new,
            };
            (Some(name.clone()), Some(name))
        }
        names => names,
    }
}

/// Fewer directories, a shorter last part, a shorter name: less weight.
fn weight(name: &[u8]) -> (usize, usize, usize) {
    let last = name.rsplit(|byte| *byte == b'/').next();
    (
        name.iter().filter(|byte| **byte == b'/').count(),
        last.map_or(0, <[u8]>::len),
        name.len(),
    )
}

/// A mode as git writes it: `100644`.
pub(super) fn mode(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    let octal = (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    octal.then(|| u32::from_str_radix(text, 8).ok())?
}
