//! Places that mean more than files: credentials, and what guards an agent.
//!
//! The patterns are data (`rules/secrets.toml`, `rules/control.toml`).

use std::path::Path;
use std::sync::OnceLock;

use crate::deed::{Role, Touch, Where};

const SECRETS: &str = include_str!("../../rules/secrets.toml");
const CONTROL: &str = include_str!("../../rules/control.toml");

/// The patterns.
#[derive(Debug, Default)]
pub(super) struct Rules {
    secret: Vec<Pattern>,
    harmless: Vec<Pattern>,
    samples: Vec<String>,
    control: Vec<Pattern>,
    control_whole: Vec<Pattern>,
    control_samples: Vec<String>,
}

/// Where a pattern begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    /// In somebody's home.
    Home,
    /// At the root.
    Root,
    /// Anywhere.
    Anywhere,
}

/// A pattern, taken apart.
#[derive(Debug)]
struct Pattern {
    anchor: Anchor,
    parts: Vec<String>,
    /// Everything below fits.
    below: bool,
}

/// A path, taken apart.
struct Parts<'p> {
    all: Vec<&'p str>,
    home: Option<usize>,
}

impl<'p> Parts<'p> {
    fn of(path: &'p str, home: Option<&Path>) -> Self {
        let all: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let home = home.and_then(Path::to_str);
        let own = home.map(|home| home.trim_end_matches('/')).filter(|home| {
            path.strip_prefix(home)
                .is_some_and(|rest| rest.starts_with('/'))
        });
        let home = match (own, all.as_slice()) {
            (Some(home), _) => Some(home.split('/').filter(|part| !part.is_empty()).count()),
            (None, ["home" | "Users", _, ..]) => Some(2),
            (None, ["root", ..]) => Some(1),
            _ => None,
        };
        Self { all, home }
    }
}

impl Pattern {
    fn new(text: &str) -> Self {
        let (anchor, rest) = if let Some(rest) = text.strip_prefix("~/") {
            (Anchor::Home, rest)
        } else if let Some(rest) = text.strip_prefix('/') {
            (Anchor::Root, rest)
        } else {
            (Anchor::Anywhere, text)
        };
        let below = rest.ends_with("/**");
        let parts = rest
            .trim_end_matches("/**")
            .split('/')
            .map(str::to_owned)
            .collect();
        Self {
            anchor,
            parts,
            below,
        }
    }

    fn fits(&self, path: &Parts<'_>) -> bool {
        self.fits_by(path, glob)
    }

    /// The same, by another way to compare a part of the pattern with a part of the path.
    fn fits_by(&self, path: &Parts<'_>, compare: fn(&str, &str) -> bool) -> bool {
        let length = self.parts.len();
        let fits_at = |start: usize| {
            let Some(rest) = path.all.get(start..) else {
                return false;
            };
            let enough = if self.below {
                rest.len() > length
            } else {
                rest.len() == length
            };
            enough
                && self
                    .parts
                    .iter()
                    .zip(rest)
                    .all(|(pattern, part)| compare(pattern, part))
        };
        match self.anchor {
            Anchor::Home => path.home.is_some_and(fits_at),
            Anchor::Root => fits_at(0),
            Anchor::Anywhere if self.below => (0..path.all.len()).any(fits_at),
            Anchor::Anywhere => path.all.len().checked_sub(length).is_some_and(fits_at),
        }
    }
}

/// The patterns, read once.
pub(super) fn rules() -> &'static Rules {
    static RULES: OnceLock<Rules> = OnceLock::new();
    RULES.get_or_init(|| {
        let secrets = lists(SECRETS, ["secret", "harmless", "samples"]);
        let [secret, harmless, samples] = secrets;
        let [control, whole, control_samples] = lists(CONTROL, ["control", "whole", "samples"]);
        let patterns = |list: Vec<String>| list.iter().map(|text| Pattern::new(text)).collect();
        Rules {
            secret: patterns(secret),
            harmless: patterns(harmless),
            samples,
            control: patterns(control),
            control_whole: patterns(whole),
            control_samples,
        }
    })
}

fn lists(file: &'static str, keys: [&str; 3]) -> [Vec<String>; 3] {
    let document = toml_edit::Document::parse(file).ok();
    keys.map(|key| {
        document
            .as_ref()
            .and_then(|document| document.get(key)?.as_str())
            .map(|text| text.split_ascii_whitespace().map(str::to_owned).collect())
            .unwrap_or_default()
    })
}

fn any(list: &[Pattern], path: &Parts<'_>) -> bool {
    list.iter().any(|pattern| pattern.fits(path))
}

impl Rules {
    /// Whether reading here shows a credential.
    pub(super) fn is_secret(
        &self,
        place: &Where,
        written: Option<&str>,
        home: Option<&Path>,
    ) -> bool {
        let special = |path: &str| {
            let path = Parts::of(path, home);
            any(&self.secret, &path) && !any(&self.harmless, &path)
        };
        match place {
            Where::Exact(path) => special(&path.to_string_lossy()),
            Where::Below(path) => {
                let path = path.to_string_lossy();
                special(&format!("{path}/x"))
                    || sampled(&self.samples, written, &path, special)
                    || self.may_match(&path, written, home)
            }
            Where::Unknown(_) => false,
        }
    }

    /// Whether a pattern as written, in this directory, may match a credential.
    fn may_match(&self, directory: &str, written: Option<&str>, home: Option<&Path>) -> bool {
        let Some(written) = written else { return false };
        let whole = as_written(directory, written);
        let path = Parts::of(&whole, home);
        may_fit(&self.secret, &path) && !any(&self.harmless, &path)
    }

    /// Whether changing this place changes what guards an agent.
    pub(super) fn is_control(&self, touch: &Touch, written: Option<&str>) -> bool {
        let special = |path: &str| {
            let path = Parts::of(path, None);
            any(&self.control, &path)
                || touch.role == Role::Delete && any(&self.control_whole, &path)
        };
        match &touch.place {
            Where::Exact(path) => special(&path.to_string_lossy()),
            Where::Below(path) => {
                let path = path.to_string_lossy();
                special(&format!("{path}/x"))
                    || sampled(&self.control_samples, written, &path, special)
                    || written.is_some_and(|written| {
                        let whole = as_written(&path, written);
                        may_fit(&self.control, &Parts::of(&whole, None))
                    })
            }
            Where::Unknown(_) => false,
        }
    }
}

/// A pattern as written, from its first open part on, in the directory that it is looked for in.
fn as_written(directory: &str, written: &str) -> String {
    let is_pattern = |part: &&str| part.contains(['*', '?', '[']);
    let parts = written.split('/');
    let open: Vec<&str> = parts.skip_while(|part| !is_pattern(part)).collect();
    format!("{directory}/{}", open.join("/"))
}

/// Whether a path that is a pattern itself may be one of these.
fn may_fit(rules: &[Pattern], path: &Parts<'_>) -> bool {
    rules.iter().any(|rule| rule.fits_by(path, may_be))
}

/// Whether a part of a path, which may be a pattern itself, may be this part of a rule. One
/// that says next to nothing is not taken for everything.
fn may_be(rule: &str, part: &str) -> bool {
    if !part.contains(['*', '?', '[']) {
        return glob(rule, part);
    }
    let hidden = part.starts_with('.') == rule.starts_with('.');
    rule == part || !rule.contains(['*', '?', '[']) && hidden && tells(part) && glob(part, rule)
}

/// Whether a pattern says something about a name, and not only about its ending.
fn tells(pattern: &str) -> bool {
    let stem = pattern.rsplit_once('.').map_or(pattern, |(stem, _)| stem);
    let literal = stem.chars().filter(|next| !"*?[]".contains(*next)).count();
    literal > 1 || pattern.starts_with('.')
}

/// Whether a pattern as written would match the name of something special.
fn sampled(
    samples: &[String],
    written: Option<&str>,
    directory: &str,
    special: impl Fn(&str) -> bool,
) -> bool {
    let Some(written) = written else { return false };
    let name = written.rsplit('/').next().unwrap_or_default();
    let literal = name.chars().filter(|next| !"*?[]".contains(*next)).count();
    if literal < 2 && !name.starts_with('.') {
        return false;
    }
    samples.iter().any(|sample| {
        // Of some, the ending alone makes them what they are.
        let by_ending = sample
            .rsplit_once('.')
            .is_some_and(|(_, ending)| special(&format!("{directory}/any.{ending}")));
        name.starts_with('.') == sample.starts_with('.')
            && (by_ending || tells(name))
            && glob(name, sample)
            && special(&format!("{directory}/{sample}"))
    })
}

/// Whether a name fits a pattern with `*`, `?` and sets. A set fits any letter, and a letter
/// its other case: on some disks they are the same.
pub(super) fn glob(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return pattern.eq_ignore_ascii_case(name);
    }
    let mut rest = name;
    let mut wanted = pattern;
    // Where to go on when a guess of what the last star covers was wrong.
    let mut again: Option<(&str, &str)> = None;
    loop {
        if let Some(after) = wanted.strip_prefix('*') {
            again = Some((after, rest));
            wanted = after;
            continue;
        }
        let step = match (wanted.chars().next(), rest.chars().next()) {
            (None, None) => return true,
            (Some(_), None) => return false,
            (None, Some(_)) => None,
            (Some(expected), Some(found)) => {
                let after = rest.get(found.len_utf8()..).unwrap_or_default();
                let set = wanted
                    .find(']')
                    .filter(|_| expected == '[')
                    .and_then(|end| wanted.get(end + 1..));
                match (set, expected) {
                    (Some(beyond), _) => Some((beyond, after)),
                    (None, expected)
                        if expected == '?' || expected.eq_ignore_ascii_case(&found) =>
                    {
                        let beyond = wanted.get(expected.len_utf8()..).unwrap_or_default();
                        Some((beyond, after))
                    }
                    _ => None,
                }
            }
        };
        match (step, again) {
            (Some((beyond, after)), _) => {
                wanted = beyond;
                rest = after;
            }
            (None, Some((beyond, from))) => {
                let Some(skipped) = from.chars().next() else {
                    return false;
                };
                let from = from.get(skipped.len_utf8()..).unwrap_or_default();
                again = Some((beyond, from));
                wanted = beyond;
                rest = from;
            }
            (None, None) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{glob, rules};

    #[test]
    fn au_04_the_patterns_are_there() {
        let rules = rules();
        assert!(rules.secret.len() > 50);
        assert!(!rules.harmless.is_empty() && !rules.samples.is_empty());
        assert!(rules.control.len() > 10);
        assert!(!rules.control_whole.is_empty() && !rules.control_samples.is_empty());
    }

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "abc", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("*a*b*", "xaybz", true),
            ("*ab", "aab", true),
            ("?", "", false),
            ("?b", "äb", true),
            ("[ab]c", "xc", true),
            (".e*", ".env", true),
            ("*.key", "key", false),
            ("a", "a", true),
            ("", "a", false),
        ] {
            assert_eq!(glob(pattern, name), expected, "{pattern} {name}");
        }
    }
}
