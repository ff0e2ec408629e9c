//! Secrets are taken out before anything is hashed or stored.
//!
//! What is taken out leaves a mark with its kind and a keyed digest, so that
//! two uses of one secret can still be seen to be the same without anybody
//! being able to guess it. Finding secrets is a best effort: known shapes of
//! tokens and keys, values that stand behind a telling name, credentials in
//! addresses. It errs on the side of taking out too much.

use hmac::{Hmac, KeyInit, Mac};
use safepoint_model::Digest;
use serde_json::Value;
use sha2::Sha256;

use crate::shape::{SERVER_TOKEN, Shapes, WORKSPACE_TOKEN};

/// Names whose text value is a secret, whatever it looks like. Compared with the end of a field's name.
const TELLING_NAMES: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "access_key",
    "private_key",
    "authorization",
    "credential",
];

/// Behind `--max-tokens` a number of at most so many digits says how many.
const LONGEST_COUNT: usize = 7;

/// Finds secrets and puts marks in their place.
pub struct Redactor {
    shapes: Shapes,
    key: Digest,
}

impl Redactor {
    /// A redactor whose marks are keyed with `key`.
    pub fn new(key: Digest) -> Self {
        Self {
            shapes: Shapes::new(),
            key,
        }
    }

    /// Takes the secrets out of every text in `value`, names of fields included.
    pub fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(clean) = self.redact_text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => {
                // The words of a command: what an option that tells is followed by.
                let mut before = String::new();
                for item in items {
                    let word = item.as_str().unwrap_or_default().to_owned();
                    match is_told_by(&before, &word) {
                        true => self.redact_all(item),
                        false => self.redact(item),
                    }
                    before = word;
                }
            }
            Value::Object(fields) => {
                let dirty = |name: &String| self.redact_text(name).is_some();
                if fields.keys().any(dirty) {
                    let old = std::mem::take(fields);
                    fields.extend(
                        old.into_iter()
                            .map(|(name, value)| (self.redact_text(&name).unwrap_or(name), value)),
                    );
                }
                for (name, value) in fields {
                    if is_telling(name) {
                        self.redact_all(value);
                    } else {
                        self.redact(value);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Takes out every text below a telling name. Numbers stay: `tokens` counts more often than it opens.
    fn redact_all(&self, value: &mut Value) {
        match value {
            Value::String(text) if !text.is_empty() && !is_mark(text) => {
                *text = self.mark("named", text);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_all(item)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.redact_all(value)),
            _ => {}
        }
    }

    /// The text without its secrets; `None` when it has none.
    pub fn redact_text(&self, text: &str) -> Option<String> {
        self.redact_kinds(text, |_| true)
    }

    /// The text without tokens of workspaces and servers; `None` when it has none. Everything
    /// else stays: whoever decides about a command must see the rest of it as it is.
    pub fn redact_tokens(&self, text: &str) -> Option<String> {
        self.redact_kinds(text, |kind| [WORKSPACE_TOKEN, SERVER_TOKEN].contains(&kind))
    }

    fn redact_kinds(&self, text: &str, wanted: impl Fn(&str) -> bool) -> Option<String> {
        if text.len() < 8 || is_id(text) {
            return None;
        }
        let mut clean: Option<String> = None;
        let suspected = self.shapes.suspected(text);
        for (name, shape) in suspected.filter(|(name, _)| wanted(name)) {
            let Some(shape) = shape else {
                return Some(self.mark(name, text)); // cannot happen; what is not looked at is not kept
            };
            if !shape.is_match(text) {
                continue;
            }
            let before = clean.as_deref().unwrap_or(text);
            let after = shape
                .replace_all(before, |captures: &regex::Captures<'_>| {
                    let whole = captures.get_match();
                    let group = ["s", "d", "q"].iter().find_map(|name| captures.name(name));
                    let secret = group.unwrap_or(whole);
                    if is_mark(secret.as_str()) {
                        return whole.as_str().to_owned();
                    }
                    let inside =
                        |range: std::ops::Range<usize>| before.get(range).unwrap_or_default();
                    format!(
                        "{}{}{}",
                        inside(whole.start()..secret.start()),
                        self.mark(name, secret.as_str()),
                        inside(secret.end()..whole.end()),
                    )
                })
                .into_owned();
            clean = Some(after);
        }
        clean
    }

    /// What stands in place of the value of a variable, whatever it looks like. It depends on
    /// the name too, so that equal values do not show.
    pub fn mark_variable(&self, name: &str, value: &str) -> String {
        self.mark("variable", &format!("{name}={value}"))
    }

    /// What stands in place of `secret`.
    fn mark(&self, kind: &str, secret: &str) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.key.as_bytes()) else {
            return format!("[redacted::{kind}]"); // cannot happen: any key length is accepted
        };
        mac.update(secret.as_bytes());
        let digest = Digest::from_bytes(mac.finalize().into_bytes().into()).to_string();
        let short = digest.get(..32).unwrap_or_default();
        // The kind comes last: `token:` before a value would look like another secret.
        format!("[redacted:{short}:{kind}]")
    }
}

fn is_mark(text: &str) -> bool {
    text.starts_with("[redacted:") && text.ends_with(']')
}

/// Whether this is an id that most entries have several of: nobody gets in by it.
fn is_id(text: &str) -> bool {
    let ours = ["wsp_", "rec_", "sig_"];
    text.len() <= 30
        && text.get(..4).is_some_and(|kind| ours.contains(&kind))
        && text
            .bytes()
            .skip(4)
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

/// Whether a word is a secret by the one before it: `--password`, `--api-key`. How many
/// `--max-tokens` is none, nor is another option that tells.
fn is_told_by(before: &str, word: &str) -> bool {
    let tells = |word: &str| word.starts_with('-') && !word.contains('=') && is_telling(word);
    let is_count = before.to_ascii_lowercase().ends_with("tokens")
        && word.len() <= LONGEST_COUNT
        && word.bytes().all(|byte| byte.is_ascii_digit());
    tells(before) && !tells(word) && !is_count
}

/// Whatever its case, with `-` for `_`, and in the plural too. Every field of every entry is asked.
fn is_telling(name: &str) -> bool {
    let name = name.as_bytes();
    let name = match name {
        [one @ .., b's' | b'S'] => one,
        _ => name,
    };
    let ends_alike = |telling: &&str| {
        let telling = telling.as_bytes();
        let same = |(one, other): (&u8, &u8)| {
            one.eq_ignore_ascii_case(other) || (*one, *other) == (b'-', b'_')
        };
        let ends = name.iter().rev().zip(telling.iter().rev());
        name.len() >= telling.len() && ends.into_iter().all(same)
    };
    TELLING_NAMES.iter().any(ends_alike)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(Digest::of_parts(&[b"test key"]))
    }

    fn redacted(value: Value) -> String {
        let mut value = value;
        redactor().redact(&mut value);
        value.to_string()
    }

    #[test]
    fn tr_09_known_shapes_are_taken_out() {
        let a = |n| "a1B2".repeat(n);
        for secret in [
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("ghp_{}", a(9)),
            format!("github_pat_{}", a(10)),
            format!("glpat-{}", a(5)),
            format!("xoxb-{}", a(4)),
            format!("AIza{}x-_", a(8)),
            format!("npm_{}", a(9)),
            format!("sk_live_{}", a(6)),
            format!("sk-ant-{}", a(9)),
            format!("eyJ{}.{}.{}", a(4), a(4), a(4)),
            format!("AGE-SECRET-KEY-1{}", "ABCD2345".repeat(4)),
            format!("wst_{}", "0123abcd".repeat(8)),
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n-----END OPENSSH PRIVATE KEY-----"
                .to_owned(),
            "-----BEGIN RSA PRIVATE KEY-----\ncut off".to_owned(),
        ] {
            let text = redacted(
                json!({"command": format!("run {secret} now"), "deep": [[{"x": secret}]]}),
            );
            assert!(!text.contains(&secret), "{text}");
            assert!(!text.contains("abc\\n"), "{text}");
            assert!(text.contains("run [redacted:"), "{text}");
        }
    }

    #[test]
    fn tr_09_ids_stay_and_what_only_begins_like_one_is_looked_at() {
        let id = "wsp_0123456789abcdef";
        assert_eq!(redactor().redact_text(id), None);
        for secret in [
            format!("{id} password=hunter22"),
            "rec_password=hunter22".to_owned(),
            "sig_ password:hunter22".to_owned(),
        ] {
            let clean = redactor().redact_text(&secret).unwrap();
            assert!(!clean.contains("hunter22"), "{clean}");
        }
    }

    #[test]
    fn tr_09_values_behind_telling_names_are_taken_out() {
        for text in [
            "psql postgres://me:hunter22@db/x",
            "export DB_PASSWORD=hunter22",
            "mysql --password hunter22",
            "curl -H 'Authorization: Bearer hunter22hunter22'",
            "{\"api_key\": \"hunter22\"}",
            "password=\"hunter22 and more\" next",
            "password=ab,hunter22",
            "curl -u ada:hunter22 https://example.com",
            "mysql -h db -phunter22 app",
            "DB_PASS=hunter22",
            "pwd='my hunter22'",
            "Cookie: session=hunter22",
            "git clone https://hunter22hunter22@example.com/x",
            "postgres://me:p@ss/hunter22@db/x",
        ] {
            let clean = redacted(json!(text));
            assert!(!clean.contains("hunter22"), "{clean}");
        }
        let clean = redacted(
            json!({"client_secret": "x", "Tokens": "y y", "AWS-Access-Key": "z", "token_count": 5}),
        );
        assert!(clean.contains("\"token_count\":5"), "{clean}");
        assert_eq!(clean.matches(":named]").count(), 3, "{clean}");
        let deep = redacted(
            json!({"credentials": {"user": "ada", "keys": ["one", "two"]}, "tokens": 1234}),
        );
        assert_eq!(deep.matches(":named]").count(), 3, "{deep}");
        assert!(deep.contains("1234"), "{deep}");
        let key = redacted(json!({"ghp_abcdefghijklmnopqrstuvwxyz0123456789": 1}));
        assert!(!key.contains("ghp_"), "{key}");
    }

    #[test]
    fn tr_09_the_word_behind_a_telling_option_is_taken_out() {
        let words =
            json!({"argv": ["mysql", "--password", "hunter22", "--api-key", "hunter22", "app"]});
        let clean = redacted(words);
        assert!(!clean.contains("hunter22"), "{clean}");
        assert!(clean.ends_with(",\"app\"]}"), "{clean}");
        for words in [
            json!(["vault", "--secrets", "839201"]),
            json!(["login", "--credentials", "12345678"]),
            json!(["login", "--api-tokens", "987654321012"]),
        ] {
            assert!(redacted(words.clone()).contains("redacted"), "{words}");
        }
        for words in [
            json!(["rm", "-f", "password", "notes.txt"]),
            json!(["agent", "--max-tokens", "500"]),
            json!(["login", "--token", "--password"]),
            json!(["--tokens=5", "file"]),
        ] {
            assert!(!redacted(words.clone()).contains("redacted"), "{words}");
        }
    }

    #[test]
    fn tr_09_equal_secrets_have_equal_marks_under_one_key_only() {
        let one = redactor().redact_text("password=correct-horse").unwrap();
        let same = redactor().redact_text("secret: correct-horse").unwrap();
        let other = redactor().redact_text("password=battery-staple").unwrap();
        let mark = |text: &str| text.rsplit(':').nth(1).unwrap().to_owned();
        assert_eq!(mark(&one), mark(&same));
        assert_ne!(mark(&one), mark(&other));
        let other_key = Redactor::new(Digest::of_parts(&[b"another"]));
        assert_ne!(
            one,
            other_key.redact_text("password=correct-horse").unwrap()
        );
    }

    #[test]
    fn pr_05_only_tokens_are_taken_out_of_what_somebody_decides_about() {
        let token = format!("wst_{}", "0123abcd".repeat(8));
        let line = format!("SAFEPOINT_TOKEN={token} x --token={token} --password hunter22");
        let clean = redactor().redact_tokens(&line).unwrap();
        assert!(!clean.contains("wst_"), "{clean}");
        assert!(clean.ends_with(" --password hunter22"), "{clean}");
        assert_eq!(redactor().redact_tokens(&clean), None);
        let server = format!("echo spt_{}", "0123abcd".repeat(8));
        let clean = redactor().redact_tokens(&server).unwrap();
        assert!(!clean.contains("spt_"), "{clean}");
        assert_eq!(redactor().redact_tokens("--password hunter22 wst_1"), None);
    }

    #[test]
    fn tr_09_a_mark_is_not_taken_for_a_secret() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let alone = redactor().redact_text(&token).unwrap();
        for text in ["GITHUB_TOKEN=", "password=hunter22 and ", "API_KEY: "] {
            let clean = redactor().redact_text(&format!("{text}{token}")).unwrap();
            assert!(clean.ends_with(&alone), "{clean}");
        }
    }

    #[test]
    fn tr_09_redacting_twice_changes_nothing_more() {
        let mut value =
            json!({"password": "hunter22", "line": "token=abcdefgh postgres://a:secret99@h/d"});
        redactor().redact(&mut value);
        let once = value.clone();
        redactor().redact(&mut value);
        assert_eq!(value, once);
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "cargo test --workspace",
            "the token ring was a network",
            "/home/ada/src/secret_santa.rs",
            "https://example.com/a:b/c",
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "ünïcödé and 日本語",
        ] {
            assert_eq!(redacted(json!(text)), json!(text).to_string());
        }
    }
}
