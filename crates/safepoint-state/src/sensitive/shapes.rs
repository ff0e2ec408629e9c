//! The shapes that tokens have, and how to tell a token from a placeholder.

use super::{Reason, key_block};

/// No token is longer; a longer run of its characters is data.
const LONGEST: usize = 512;

/// What must stand behind an opening.
#[derive(Clone, Copy)]
enum Check {
    /// A run of characters, of a length within bounds.
    Run(fn(u8) -> bool, usize, usize),
    /// The same as the value of a setting: behind blanks and quotes.
    Value(fn(u8) -> bool, usize, usize),
    /// The rest of `sk-…`, in one of the forms of its providers.
    ModelKey,
    /// Two runs with a dot between them.
    SendGrid,
    /// A block of a private key, of which the opening is the middle.
    KeyBlock,
    /// The private lines of a key of `PuTTY`.
    Putty,
}

/// Openings, what they begin, and what must follow.
pub(super) struct Shape {
    pub(super) openings: &'static [&'static str],
    reason: Reason,
    check: Check,
}

const fn shape(openings: &'static [&'static str], reason: Reason, check: Check) -> Shape {
    Shape {
        openings,
        reason,
        check,
    }
}

/// Every shape. No opening begins another one.
pub(super) const SHAPES: &[Shape] = &[
    shape(&["PRIVATE KEY"], Reason::PrivateKey, Check::KeyBlock),
    shape(&["Private-Lines: "], Reason::PrivateKey, Check::Putty),
    shape(
        &["AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"],
        Reason::PrivateKey,
        Check::Run(capital, 58, 80),
    ),
    shape(
        &["AKIA", "ASIA"],
        Reason::AwsKey,
        Check::Run(capital, 16, 16),
    ),
    shape(
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        Reason::GithubToken,
        Check::Run(letter, 36, LONGEST),
    ),
    shape(
        &["github_pat_"],
        Reason::GithubToken,
        Check::Run(word, 36, LONGEST),
    ),
    shape(
        &["glpat-", "gldt-", "glrt-", "glptt-"],
        Reason::GitlabToken,
        Check::Run(word, 20, LONGEST),
    ),
    shape(
        &[
            "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xapp-",
        ],
        Reason::SlackToken,
        Check::Run(word, 20, LONGEST),
    ),
    shape(
        &["hooks.slack.com/services/"],
        Reason::SlackToken,
        Check::Run(base64, 40, 60),
    ),
    shape(&["AIza"], Reason::GoogleKey, Check::Run(word, 35, 35)),
    shape(&["GOCSPX-"], Reason::GoogleKey, Check::Run(word, 28, 28)),
    shape(&["npm_"], Reason::RegistryToken, Check::Run(letter, 36, 36)),
    shape(
        &["_authToken=", "npmAuthToken:"],
        Reason::RegistryToken,
        Check::Value(word, 20, LONGEST),
    ),
    shape(
        &["pypi-AgE"],
        Reason::RegistryToken,
        Check::Run(word, 32, LONGEST),
    ),
    shape(
        &["dckr_pat_"],
        Reason::RegistryToken,
        Check::Run(word, 20, 64),
    ),
    shape(
        &["sk_live_", "rk_live_"],
        Reason::StripeKey,
        Check::Run(letter, 16, LONGEST),
    ),
    shape(&["sk-"], Reason::ModelKey, Check::ModelKey),
    shape(&["gsk_"], Reason::ModelKey, Check::Run(letter, 40, 64)),
    shape(&["xai-"], Reason::ModelKey, Check::Run(letter, 60, 100)),
    shape(&["hf_"], Reason::ModelKey, Check::Run(letter, 34, 40)),
    shape(
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        Reason::DigitalOceanToken,
        Check::Run(letter, 64, 64),
    ),
    shape(&["SG."], Reason::SendGridKey, Check::SendGrid),
    shape(
        &["AccountKey="],
        Reason::AzureKey,
        Check::Value(base64, 86, 88),
    ),
];

/// The secret at `start`, if what stands there has the shape that its opening promises.
pub(super) fn secret_at(bytes: &[u8], start: usize) -> Option<Reason> {
    let (before, rest) = bytes.split_at_checked(start)?;
    let (shape, after) = SHAPES.iter().find_map(|shape| {
        let strip = |opening: &&str| rest.strip_prefix(opening.as_bytes());
        Some((shape, shape.openings.iter().find_map(strip)?))
    })?;
    let is_secret = match shape.check {
        Check::KeyBlock => key_block::is_block(before, after),
        Check::Putty => key_block::is_putty(after),
        Check::Value(alphabet, least, most) => {
            let blank = |byte: &&u8| matches!(byte, b' ' | b'"' | b'\'');
            let blanks = after.iter().take(4).take_while(blank).count();
            is_token(after.get(blanks..)?, alphabet, least, most)
        }
        _ if !begins_word(before) => false,
        Check::Run(alphabet, least, most) => is_token(after, alphabet, least, most),
        Check::ModelKey => is_model_key(after),
        Check::SendGrid => is_send_grid(after),
    };
    is_secret.then_some(shape.reason)
}

/// Whether a word may begin behind `before`: the middle of a name or of base64 is no token.
fn begins_word(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true, // a line break in a quoted text
        [.., last] => !word(*last),
        [] => true,
    }
}

fn capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn word(byte: u8) -> bool {
    letter(byte) || matches!(byte, b'_' | b'-')
}

fn base64(byte: u8) -> bool {
    letter(byte) || matches!(byte, b'+' | b'/' | b'=')
}

/// The run of characters of an alphabet that `bytes` begin with; its length stops beyond `most`.
fn run(bytes: &[u8], alphabet: fn(u8) -> bool, most: usize) -> &[u8] {
    let taken = bytes.iter().take(most.saturating_add(1));
    let length = taken.take_while(|byte| alphabet(**byte)).count();
    bytes.get(..length).unwrap_or_default()
}

/// Whether `bytes` begin with a token of this alphabet and length, and nothing prolongs it.
fn is_token(bytes: &[u8], alphabet: fn(u8) -> bool, least: usize, most: usize) -> bool {
    let token = run(bytes, alphabet, most);
    let next = bytes.get(token.len()).copied().unwrap_or_default();
    (least..=most).contains(&token.len()) && !(letter(next) || next == b'_') && is_plausible(token)
}

fn is_model_key(bytes: &[u8]) -> bool {
    let providers: [&[u8]; 5] = [b"ant-", b"proj-", b"svcacct-", b"admin-", b"or-v1-"];
    match providers.iter().find_map(|name| bytes.strip_prefix(*name)) {
        Some(rest) => is_token(rest, word, 24, LONGEST),
        // Names of styles begin like this too, but they are words.
        None => {
            is_token(bytes, letter, 24, LONGEST)
                && run(bytes, letter, LONGEST).iter().any(u8::is_ascii_digit)
        }
    }
}

fn is_send_grid(bytes: &[u8]) -> bool {
    let first = run(bytes, word, 32);
    let second = bytes
        .get(first.len()..)
        .and_then(|rest| rest.strip_prefix(b"."));
    (16..=32).contains(&first.len()) && second.is_some_and(|rest| is_token(rest, word, 32, 64))
}

/// Whether a token looks drawn by lot: not a placeholder, and not a published example.
fn is_plausible(token: &[u8]) -> bool {
    // Of the storage emulator of Azure, the same everywhere.
    const PUBLISHED: &[u8] = b"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1";
    const WORDS: [&[u8]; 6] = [
        b"example",
        b"placeholder",
        b"redacted",
        b"changeme",
        b"xxxxx",
        b"insert",
    ];
    let contains = |sought: &[u8]| {
        token
            .windows(sought.len())
            .any(|window| window.eq_ignore_ascii_case(sought))
    };
    let mut seen = [false; 256];
    for byte in token {
        if let Some(seen) = seen.get_mut(usize::from(*byte)) {
            *seen = true;
        }
    }
    let varied = seen.iter().filter(|seen| **seen).count() >= 4;
    // Words with hyphens between them, such as `your-key-here`, have neither digits nor two cases.
    let mixed = token.iter().any(u8::is_ascii_digit)
        || (token.iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase))
        || token.iter().copied().all(letter);
    let your = token
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"your"));
    varied
        && mixed
        && !your
        && !token.starts_with(PUBLISHED)
        && !WORDS.iter().any(|word| contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_08_no_opening_begins_another() {
        let openings = || SHAPES.iter().flat_map(|shape| shape.openings);
        for one in openings() {
            let begun = openings().filter(|other| other.starts_with(one)).count();
            assert_eq!(begun, 1, "{one}");
        }
    }
}
