//! YAML, for the files that people write: policies and settings.
//!
//! The only place that names the YAML crate. Everything YAML does behind the
//! writer's back is off: `yes` and `no` are texts, a key counts once, merge
//! keys and unknown tags are refused, and aliases cannot be piled up into more
//! than was written. Whether unknown fields are refused is up to the type.

mod quick;

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use crate::text;

/// The longest document that is read, in bytes: 4 MiB.
pub const MAX_BYTES: usize = 4 << 20;
/// The most scalars, lists and mappings, and their ends, in one document.
const MAX_NODES: usize = 1_000_000;
/// How many lists and mappings lie inside each other.
const MAX_DEPTH: usize = 64;

/// A document that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// What is wrong.
    pub message: String,
    /// The line, from 1, when the fault has a place.
    pub line: Option<usize>,
    /// The column, from 1, in characters.
    pub column: Option<usize>,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::line(&self.message).text)?;
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, " at line {line} column {column}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for YamlError {}

/// Reads exactly one YAML document as a `T`.
pub fn read_as<T: DeserializeOwned>(input: &str) -> Result<T, YamlError> {
    if input.len() > MAX_BYTES {
        return Err(YamlError {
            message: format!(
                "document of {} bytes is too large: at most {MAX_BYTES} are read",
                input.len()
            ),
            line: None,
            column: None,
        });
    }
    if let Some(value) = quick::read(input) {
        return Ok(value);
    }
    read_strictly(input)
}

/// Reads with the YAML crate, which alone decides what is right.
fn read_strictly<T: DeserializeOwned>(input: &str) -> Result<T, YamlError> {
    let value = serde_saphyr::from_str_with_options(input, options()).map_err(refusal)?;
    // The crate forgives nonsense behind the marker that ends a document
    // (`...`); reading on as a stream of documents does not.
    if input.contains("...") {
        serde_saphyr::from_str_multiple_with_options::<IgnoredAny, Vec<_>>(input, options())
            .map_err(refusal)?;
    }
    Ok(value)
}

fn refusal(error: Error) -> YamlError {
    let place = error.location();
    let number = |number: u64| usize::try_from(number).ok();
    YamlError {
        message: message(&error),
        line: place.and_then(|place| number(place.line())),
        column: place.and_then(|place| number(place.column())),
    }
}

/// What is wrong, in our words where people are likely to meet it.
fn message(error: &Error) -> String {
    match error.without_snippet() {
        Error::AliasError { error, .. } => message(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("key `{key}` occurs twice"),
        Error::InvalidBooleanStrict { .. } => "expected `true` or `false`".to_owned(),
        Error::MergeKeyNotAllowed { .. } => {
            "merge keys (`<<`) are not read; write the fields out".to_owned()
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins here; only one is read".to_owned()
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "aliases repeat too much; write the values out".to_owned()
        }
        Error::UnknownAnchor { .. } => "alias has no anchor before it".to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "alias stands inside its own anchor".to_owned()
        }
        Error::Budget { .. } => "document is too large or too deeply nested".to_owned(),
        other => UserMessageFormatter.format_message(other).into_owned(),
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_events: 2 * MAX_NODES,
            max_nodes: MAX_NODES,
            max_anchors: 256,
            max_aliases: 1_024,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
            max_replay_stack_depth: 8,
            max_alias_expansions_per_anchor: 256,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Policy {
        name: String,
        strict: bool,
    }

    fn refused(input: &str) -> String {
        read_as::<Value>(input).unwrap_err().to_string()
    }

    #[test]
    fn yes_and_no_are_texts() {
        let value: Value = read_as("a: yes\nb: no\nc: on\nd: true\ne: NO\n").unwrap();
        let expected = json!({"a": "yes", "b": "no", "c": "on", "d": true, "e": "NO"});
        assert_eq!(value, expected);
        let policy: Policy = read_as("name: no\nstrict: false\n").unwrap();
        assert_eq!(policy.name, "no");
        let error = read_as::<Policy>("name: x\nstrict: yes\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected `true` or `false` at line 2 column 9"
        );
    }

    #[test]
    fn tells_what_is_wrong_and_where() {
        let cases = [
            (
                "a: 1\nb: 2\na: 3\n",
                "key `a` occurs twice at line 3 column 1",
            ),
            (
                "a: [1, 2\nb: 3\n",
                "illegal placement of ':' indicator at line 2 column 2",
            ),
            (
                "a: 1\n---\nb: 2\n",
                "a second document begins here; only one is read at line 3 column 1",
            ),
            (
                "a: 1\n---\n",
                "a second document begins here; only one is read at line 2 column 4",
            ),
            (
                "a: 1\n...\nb: 2\n",
                "a second document begins here; only one is read at line 3 column 1",
            ),
            ("a: 1\n...\n]", "misplaced bracket at line 3 column 1"),
            (
                "a: *x\n",
                "alias has no anchor before it at line 1 column 4",
            ),
            (
                "a: &x [*x]\n",
                "alias stands inside its own anchor at line 1 column 8",
            ),
            (
                "a: &x {b: 1}\nc:\n  <<: *x\n",
                "merge keys (`<<`) are not read; write the fields out at line 3 column 3",
            ),
            (
                "a: !secret x\n",
                "unsupported tag `!secret` at line 1 column 12",
            ),
            (
                "a: .nan\n",
                "value `.nan` is not a finite number at line 1 column 4",
            ),
        ];
        for (input, message) in cases {
            assert_eq!(refused(input), message, "{input}");
        }
        let unknown = read_as::<Policy>("name: x\nstrict: true\nstrickt: true\n").unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "unknown field `strickt`, expected one of name, strict at line 3 column 1"
        );
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let alias = format!("*a{}", level - 1);
            let list = [alias.as_str(); 9].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
        }
        let error = read_as::<BTreeMap<String, Value>>(&bomb).unwrap_err();
        assert_eq!(
            error.to_string(),
            "aliases repeat too much; write the values out at line 5 column 10"
        );
        let honest = "a: &a [1]\nb: *a\n";
        assert_eq!(
            read_as::<Value>(honest).unwrap(),
            json!({"a": [1], "b": [1]})
        );
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let long = format!("a: {}", "x".repeat(MAX_BYTES));
        assert!(refused(&long).contains("too large"));
        let deep = "[".repeat(10_000);
        assert!(read_as::<Value>(&deep).is_err());
    }

    #[test]
    fn a_message_draws_nothing() {
        let error = read_as::<Policy>("\"\\e[2J\": 1\n")
            .unwrap_err()
            .to_string();
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }

    /// What the short way reads, the long way reads in the same way.
    fn agree(input: &str) {
        let short: Option<Value> = quick::read(input);
        if let Some(short) = short {
            assert_eq!(read_strictly::<Value>(input), Ok(short), "{input:?}");
        }
        let short: Option<BTreeMap<String, String>> = quick::read(input);
        if let Some(short) = short {
            assert_eq!(
                read_strictly::<BTreeMap<String, String>>(input),
                Ok(short),
                "{input:?}"
            );
        }
        let short: Option<BTreeMap<String, Option<bool>>> = quick::read(input);
        if let Some(short) = short {
            let long = read_strictly::<BTreeMap<String, Option<bool>>>(input);
            assert_eq!(long, Ok(short), "{input:?}");
        }
        let short: Option<BTreeMap<String, i16>> = quick::read(input);
        if let Some(short) = short {
            let long = read_strictly::<BTreeMap<String, i16>>(input);
            assert_eq!(long, Ok(short), "{input:?}");
        }
        let short: Option<BTreeMap<String, f64>> = quick::read(input);
        if let Some(short) = short {
            let long = read_strictly::<BTreeMap<String, f64>>(input);
            assert_eq!(long, Ok(short), "{input:?}");
        }
    }

    #[test]
    fn plain_documents_take_the_short_way() {
        let plain = "a: 1\nb: [x, \"y\", 'z']\nc: {d: true, e: ~}\nf: |\n  g\n  h\n";
        let expected = json!({
            "a": 1, "b": ["x", "y", "z"], "c": {"d": true, "e": null}, "f": "g\nh\n"
        });
        assert_eq!(quick::read::<Value>(plain), Some(expected));
        for other in [
            "a: &x 1\nb: *x\n",
            "a: !!str 1\n",
            "a: 1\na: 2\n",
            "a: 1\n\"a\": 2\n",
            "<<: {a: 1}\n",
            "a: 0x10\n",
            "a: .nan\n",
            "a: 1\n---\nb: 2\n",
            "a: 1\n...\n]",
            "? [a]\n: b\n",
            "",
        ] {
            assert_eq!(quick::read::<Value>(other), None, "{other}");
        }
    }

    #[test]
    fn many_keys_are_told_apart() {
        let mut text = String::new();
        for number in 0..40 {
            text.push_str(&format!("key{number}: {number}\n"));
        }
        assert!(quick::read::<Value>(&text).is_some());
        for number in [0, 15, 16, 17, 39] {
            let twice = format!("{text}key{number}: again\n");
            assert_eq!(quick::read::<Value>(&twice), None, "{number}");
        }
    }

    proptest::proptest! {
        #[test]
        fn both_ways_agree_on_scalars(
            scalar in "[-+.~0-9a-zA-Z_: #'\"!&*<|>%@,\\[\\]{}]{0,8}",
            key in "[-a-c1~<.]{1,2}",
        ) {
            agree(&format!("{key}: {scalar}\nk: x\n"));
            agree(&format!("- {scalar}\n- {{{key}: [{scalar}]}}\n"));
        }

        #[test]
        fn both_ways_agree_on_words(
            scalar in "(true|True|yes|no|null|NULL|inf|nan|infinity|NaN|-?0?[0-9]{1,20}|[0-9]{1,3}\\.[0-9]{0,3}|-?[0-9]e[0-9]|0[xob][0-9a-f]{1,3}|[0-9]_[0-9]|[0-9]{4}-[0-9]{2}-[0-9]{2})",
            quote in "['\"]?",
        ) {
            agree(&format!("a: {quote}{scalar}{quote}\n"));
            agree(&format!("{quote}{scalar}{quote}: 1\n"));
        }

        #[test]
        fn both_ways_agree_on_lines(
            lines in proptest::collection::vec("( {0,4})(- )?([a-d]:|\\.\\.\\.|---|#|%YAML 1.2|\\? a|: b)?( [a-d]| \\||  >| \\[| \\])?", 0..7),
        ) {
            agree(&lines.join("\n"));
        }
    }
}
