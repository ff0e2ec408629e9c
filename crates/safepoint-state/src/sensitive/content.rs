//! Secrets by content: the search for private keys and tokens in a file.
//!
//! One automaton finds the openings of all shapes at the speed of memory; each
//! place it finds is then looked at closely, with a bounded reach, so that no
//! content can make the search slower than linear.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::Reason;
use super::shapes::{SHAPES, secret_at};

/// `None` when the automaton cannot be built: then every place is looked at.
static AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst) // with this kind it uses vector instructions
        .build(SHAPES.iter().flat_map(|shape| shape.openings))
        .ok()
});

/// Whether there is a private key or a token in `bytes`: the first that is found.
///
/// Takes time linear in the length. Placeholders do not count, nor does what a
/// provider publishes as an example.
pub fn by_content(bytes: &[u8]) -> Option<Reason> {
    match &*AUTOMATON {
        Some(automaton) => search(automaton, bytes),
        None => search_plainly(bytes),
    }
}

fn search(automaton: &AhoCorasick, bytes: &[u8]) -> Option<Reason> {
    let mut from = 0;
    loop {
        let start = automaton.find(Input::new(bytes).range(from..))?.start();
        if let Some(reason) = secret_at(bytes, start) {
            return Some(reason);
        }
        from = start + 1; // openings may overlap
    }
}

fn search_plainly(bytes: &[u8]) -> Option<Reason> {
    (0..bytes.len()).find_map(|start| secret_at(bytes, start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Characters as a token has them. Put behind an opening only at run time,
    /// so that this file is not taken for a secret itself.
    fn lot(length: usize) -> String {
        "q7Rk2Zp9LmX4tVb8Wc3Ny6Hd1Jf5Gs0A"
            .chars()
            .cycle()
            .take(length)
            .collect()
    }

    fn secrets() -> Vec<(String, Reason)> {
        let capitals = |length| lot(length).to_uppercase();
        vec![
            (
                format!("AGE-SECRET-KEY-1{}", capitals(58)),
                Reason::PrivateKey,
            ),
            (format!("AKIA{}", capitals(16)), Reason::AwsKey),
            (format!("ASIA{}", capitals(16)), Reason::AwsKey),
            (format!("ghp_{}", lot(36)), Reason::GithubToken),
            (format!("ghs_{}", lot(36)), Reason::GithubToken),
            (
                format!("github_pat_{}_{}", lot(22), lot(59)),
                Reason::GithubToken,
            ),
            (format!("glpat-{}", lot(20)), Reason::GitlabToken),
            (format!("xoxb-123456789012-{}", lot(24)), Reason::SlackToken),
            (
                format!(
                    "https://hooks.slack.com/services/T0{}/B1{}/{}",
                    capitals(8),
                    capitals(8),
                    lot(24)
                ),
                Reason::SlackToken,
            ),
            (format!("AIza{}", lot(35)), Reason::GoogleKey),
            (format!("npm_{}", lot(36)), Reason::RegistryToken),
            (
                format!("//registry.example/:_authToken={}", lot(36)),
                Reason::RegistryToken,
            ),
            (
                format!("npmAuthToken: \"{}\"", lot(36)),
                Reason::RegistryToken,
            ),
            (
                format!("pypi-AgEIcHlwaS5vcmc{}", lot(80)),
                Reason::RegistryToken,
            ),
            (format!("sk_live_{}", lot(24)), Reason::StripeKey),
            (format!("sk-{}", lot(48)), Reason::ModelKey),
            (
                format!("sk-proj-{}-_{}", lot(40), lot(40)),
                Reason::ModelKey,
            ),
            (format!("sk-ant-api03-{}", lot(93)), Reason::ModelKey),
            (
                format!("dop_v1_{}", "0123456789abcdef".repeat(4)),
                Reason::DigitalOceanToken,
            ),
            (format!("SG.{}.{}", lot(22), lot(43)), Reason::SendGridKey),
            (
                format!("AccountName=a;AccountKey={}==;", lot(86)),
                Reason::AzureKey,
            ),
        ]
    }

    #[test]
    fn st_08_tokens_are_found_wherever_they_stand() {
        for (secret, reason) in secrets() {
            for text in [
                secret.clone(),
                format!("TOKEN={secret}\n"),
                format!("{{\"token\": \"{secret}\"}}"),
                format!("\"first\\n{secret}\\n\""),
                format!(
                    "{}\n\0{secret}\0{}",
                    "sk-AKIAghp_".repeat(99),
                    "x".repeat(99)
                ),
            ] {
                assert_eq!(by_content(text.as_bytes()), Some(reason), "{text}");
                assert_eq!(search_plainly(text.as_bytes()), Some(reason), "{text}");
            }
        }
    }

    #[test]
    fn st_08_placeholders_and_examples_do_not_count() {
        for text in [
            format!("ghp_{}", "x".repeat(36)),
            format!("ghp_{}", "0".repeat(36)),
            "sk-your-key-here".to_owned(),
            "sk-ant-your-very-own-secret-api-key-here".to_owned(),
            "sk-proj-put-the-key-of-your-project-here".to_owned(),
            "sk-circle-fade-dot sk-cubeGridScaleDelayAnimationName".to_owned(),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            "xoxb-not-a-real-token-at-all".to_owned(),
            "hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX".to_owned(),
            "npm_config_user_agent npm_package_dependencies_something_long1".to_owned(),
            "//registry.npmjs.org/:_authToken=${NPM_TOKEN}".to_owned(),
            "task-1234567890abcdef1234567890abcdef".to_owned(),
            format!("sha512-{}AKIA{}", lot(9), lot(16).to_uppercase()),
            format!("AKIA{}", lot(17).to_uppercase()),
            format!("npm_{}", lot(37)),
            "MSG.SG.some.thing".to_owned(),
        ] {
            assert_eq!(by_content(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn st_08_hostile_content_is_read_once() {
        let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
        for piece in [
            "-----BEGIN ",
            &begin,
            &format!("{begin}\nA-B: c\n"),
            "sk-",
            "\"sk-ant-",
            "SG.a",
            "ghp_",
            " AKIA",
        ] {
            let text = piece.repeat((4 << 20) / piece.len());
            assert_eq!(by_content(text.as_bytes()), None, "{piece}");
        }
    }

    proptest! {
        #[test]
        fn st_08_any_bytes_are_content(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
            by_content(&bytes);
        }

        #[test]
        fn st_08_both_searches_agree(pieces in prop::collection::vec(0_usize..50, 0..40)) {
            let parts: Vec<String> = SHAPES.iter().flat_map(|shape| shape.openings).map(|opening| (*opening).to_owned())
                .chain(["-----BEGIN ", "-----", "\n", " ", "=", "."].map(str::to_owned))
                .chain([lot(36)])
                .collect();
            let text: String = pieces.iter().filter_map(|piece| parts.get(*piece)).cloned().collect();
            prop_assert_eq!(by_content(text.as_bytes()), search_plainly(text.as_bytes()));
        }
    }
}
