//! What the words of a push say: which remote, and which names are sent.
//!
//! A guess that is wrong must be wide: what is not understood sends everything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Options of `git` itself that are followed by a value.
pub(super) const GLOBAL_VALUES: [&str; 7] = [
    "-C",
    "-c",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--namespace",
    "--work-tree",
];
/// Options of `git push` that are followed by a value.
const PUSH_VALUES: [&str; 5] = ["-o", "--push-option", "--repo", "--receive-pack", "--exec"];
/// Options that change neither what is sent nor where to.
const HARMLESS: [&str; 21] = [
    "--atomic",
    "--dry-run",
    "--force",
    "--force-if-includes",
    "--force-with-lease",
    "--ipv4",
    "--ipv6",
    "--no-progress",
    "--no-thin",
    "--no-verify",
    "--porcelain",
    "--progress",
    "--quiet",
    "--set-upstream",
    "--thin",
    "--verbose",
    "-f",
    "-n",
    "-q",
    "-u",
    "-v",
];

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    /// What git sends where nothing is named.
    Usual,
    /// What these names stand for here.
    These(Vec<String>),
    /// All there is.
    Everything,
}

/// What the words of one push say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// Where to, if that is said.
    pub(super) remote: Option<String>,
    pub(super) sends: Sends,
}

impl Words {
    /// The pushes among all commands of a line; one that sends everything if none is found.
    pub(super) fn of(commands: &[Vec<Option<String>>]) -> Vec<Self> {
        let found: Vec<Self> = commands.iter().filter_map(|words| push(words)).collect();
        match found.is_empty() {
            false => found,
            true => vec![Self {
                remote: None,
                sends: Sends::Everything,
            }],
        }
    }
}

/// The directories that a line may push from: where it begins, and wherever it goes.
pub(super) fn candidates(commands: &[Vec<Option<String>>], start: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::from([start.to_owned()]);
    let mut here = start.to_owned();
    for words in commands {
        let known: Vec<&str> = words.iter().map(|it| it.as_deref().unwrap_or("")).collect();
        match known.as_slice() {
            ["cd" | "pushd", .., to] => {
                here = here.join(to);
                all.insert(here.clone());
                all.insert(start.join(to));
            }
            [_, rest @ ..] => {
                let mut inside = here.clone();
                for pair in rest.windows(2) {
                    if let ["-C", to] = pair {
                        inside = inside.join(to);
                        all.insert(inside.clone());
                    }
                }
            }
            _ => {}
        }
    }
    all
}

/// What a command says, if it is `git push`.
fn push(words: &[Option<String>]) -> Option<Words> {
    let everything = |remote| {
        Some(Words {
            remote,
            sends: Sends::Everything,
        })
    };
    let mut rest = words.iter();
    let program = rest.next()?.as_deref()?;
    if program.rsplit('/').next() != Some("git") {
        return None;
    }
    // What stands before the subcommand.
    loop {
        let Some(word) = rest.next()? else {
            return everything(None);
        };
        match word.as_str() {
            "push" => break,
            option if GLOBAL_VALUES.contains(&option) => drop(rest.next()),
            option if option.starts_with('-') => {}
            _ => return None,
        }
    }
    let mut operands = Vec::new();
    let mut remote = None;
    let mut wide = false;
    let mut options = true;
    while let Some(word) = rest.next() {
        let Some(word) = word else {
            wide = true;
            continue;
        };
        let name = word.split('=').next().unwrap_or_default();
        match word.as_str() {
            "--" if options => options = false,
            "--repo" if options => remote = rest.next().cloned().flatten(),
            option if options && PUSH_VALUES.contains(&option) => drop(rest.next()),
            option if options && option.starts_with("--repo=") => {
                remote = option.strip_prefix("--repo=").map(str::to_owned);
            }
            option if options && option.starts_with('-') => {
                wide |= !HARMLESS.contains(&name) && !PUSH_VALUES.contains(&name);
            }
            operand => operands.push(operand.to_owned()),
        }
    }
    let mut operands = operands.into_iter();
    let remote = operands.next().or(remote);
    let mut names = Vec::new();
    for operand in operands.filter(|operand| operand != "tag") {
        let operand = operand.strip_prefix('+').unwrap_or(&operand);
        let name = operand.split(':').next().unwrap_or_default();
        wide |= name.contains('*') || name.starts_with('^') || operand == ":";
        // What has no name here is taken away there.
        if !name.is_empty() {
            names.push(name.to_owned());
        } else if operand != ":" {
            names.push("HEAD".to_owned());
        }
    }
    match (wide, names.is_empty()) {
        (true, _) => everything(remote),
        (false, true) => Some(Words {
            remote,
            sends: Sends::Usual,
        }),
        (false, false) => Some(Words {
            remote,
            sends: Sends::These(names),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<Words> {
        let word = |it: &str| (it != "?").then(|| it.to_owned());
        let words: Vec<Option<String>> = line.split(' ').map(word).collect();
        push(&words)
    }

    #[test]
    fn au_25_the_words_of_a_push() {
        let words = |remote: Option<&str>, sends| {
            Some(Words {
                remote: remote.map(str::to_owned),
                sends,
            })
        };
        let these =
            |names: &[&str]| Sends::These(names.iter().map(|it| (*it).to_owned()).collect());
        let origin = Some("origin");
        for (line, expected) in [
            ("git push", words(None, Sends::Usual)),
            ("git push origin", words(origin, Sends::Usual)),
            (
                "git -C x -c a=b push -u origin main",
                words(origin, these(&["main"])),
            ),
            (
                "/usr/bin/git push origin +a:b HEAD:c",
                words(origin, these(&["a", "HEAD"])),
            ),
            ("git push origin tag v1", words(origin, these(&["v1"]))),
            (
                "git push -o ci.skip origin main",
                words(origin, these(&["main"])),
            ),
            ("git push --repo=origin", words(origin, Sends::Usual)),
            ("git push origin :gone", words(origin, these(&["HEAD"]))),
            (
                "git push --force-with-lease=main origin main",
                words(origin, these(&["main"])),
            ),
            (
                "git push origin refs/heads/*",
                words(origin, Sends::Everything),
            ),
            ("git push origin :", words(origin, Sends::Everything)),
            ("git push --all", words(None, Sends::Everything)),
            ("git push --mirror origin", words(origin, Sends::Everything)),
            (
                "git push --tags origin main",
                words(origin, Sends::Everything),
            ),
            ("git push origin ?", words(origin, Sends::Everything)),
            ("git ? push", words(None, Sends::Everything)),
            ("git status", None),
            ("hg push", None),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }

    #[test]
    fn au_25_a_line_may_push_from_wherever_it_goes() {
        let words = |line: &str| line.split(' ').map(|it| Some(it.to_owned())).collect();
        let commands: Vec<Vec<Option<String>>> =
            ["cd a", "cd b", "git -C c push"].map(words).into();
        let all = candidates(&commands, Path::new("/p"));
        for place in ["/p", "/p/a", "/p/a/b", "/p/b", "/p/a/b/c"] {
            assert!(all.contains(Path::new(place)), "{place}: {all:?}");
        }
    }
}
