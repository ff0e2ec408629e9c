//! What commands of git put other content in the place of, as their words say it.
//!
//! What is not understood reaches further, never less far: a word that is not known, a list
//! of paths in a file. Which files that are, git is asked elsewhere.

use std::path::Path;

use safepoint_state::{Others, Overwrites, Reach};

use super::push_words::{GLOBAL_VALUES, candidates};

/// Options of these subcommands that are followed by a value.
const VALUES: [&str; 16] = [
    "-s",
    "--source",
    "-m",
    "--message",
    "-b",
    "-B",
    "-c",
    "-C",
    "--create",
    "--force-create",
    "--orphan",
    "-X",
    "--strategy-option",
    "--strategy",
    "--onto",
    "--conflict",
];

/// What the commands of a line overwrite, wherever it goes.
pub(crate) fn overwrites(commands: &[Vec<Option<String>>], start: &Path) -> Vec<Overwrites> {
    let mut all: Vec<Overwrites> = Vec::new();
    for command in commands {
        let Some((kept, others, trees)) = of_command(command, start) else {
            continue;
        };
        if kept == Reach::Nothing && trees.is_empty() {
            continue;
        }
        for directory in candidates(commands, start) {
            let one = Overwrites {
                directory,
                kept: kept.clone(),
                others,
                trees: trees.clone(),
            };
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    all
}

/// The words after a subcommand, apart.
#[derive(Default)]
struct Words<'a> {
    /// Options, without their values.
    options: Vec<&'a str>,
    /// What is no option.
    operands: Vec<String>,
    /// The value of `--source`.
    source: Option<String>,
    /// Whether a word is not known before it runs, or the paths are in a file.
    unknown: bool,
}

impl<'a> Words<'a> {
    fn of(words: &'a [Option<String>], subcommand: &str) -> Self {
        let mut all = Self::default();
        let mut rest = words.iter();
        let mut options = true;
        while let Some(word) = rest.next() {
            let Some(word) = word else {
                all.unknown = true;
                continue;
            };
            match word.as_str() {
                "--" if options => options = false,
                option if options && option.starts_with('-') && option.len() > 1 => {
                    let (name, value) = match option.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None => (option, None),
                    };
                    // Of `checkout` it is a kind of force, and of `reset` none at all.
                    let is_flag = name == "-m" && !matches!(subcommand, "stash" | "merge");
                    let value = match value {
                        None if VALUES.contains(&name) && !is_flag => {
                            rest.next().cloned().flatten()
                        }
                        value => value,
                    };
                    if matches!(name, "-s" | "--source") && subcommand == "restore" {
                        all.source = value;
                    }
                    all.unknown |= name.starts_with("--pathspec");
                    all.options.push(name);
                }
                operand => all.operands.push(operand.to_owned()),
            }
        }
        all
    }

    /// Whether an option is there: written out, cut short as git allows, or among others.
    fn has(&self, long: &str, short: Option<char>) -> bool {
        self.options
            .iter()
            .any(|option| match option.strip_prefix("--") {
                Some(name) => !name.is_empty() && long.starts_with(name),
                None => short.is_some_and(|short| option.contains(short)),
            })
    }

    /// The files that its operands name.
    fn named(&self) -> Reach {
        match self.unknown {
            true => Reach::Whole,
            false => Reach::Paths(self.operands.clone()),
        }
    }

    /// Everything, if so; else nothing.
    fn whole_if(&self, so: bool) -> Reach {
        match so || self.unknown {
            true => Reach::Whole,
            false => Reach::Nothing,
        }
    }
}

/// What one command overwrites, if it is one of git.
fn of_command(command: &[Option<String>], start: &Path) -> Option<(Reach, Others, Vec<String>)> {
    let (program, mut rest) = command.split_first()?;
    if !is_git(program.as_deref()?, start) {
        return None;
    }
    let subcommand = loop {
        let (word, after) = rest.split_first()?;
        rest = after;
        match word.as_deref() {
            // Nobody knows which it is: that is asked about anyway.
            None => return None,
            Some(option) if GLOBAL_VALUES.contains(&option) => rest = rest.get(1..)?,
            Some(option) if option.starts_with('-') => {}
            Some(name) => break name,
        }
    };
    let words = Words::of(rest, subcommand);
    let trees = words.operands.clone();
    let whole = |so| words.whole_if(so);
    let none = Others::Nothing;
    Some(match subcommand {
        "reset" => (
            whole(words.has("hard", None) || words.has("merge", None)),
            none,
            trees,
        ),
        "checkout" => {
            let forced = words.has("force", Some('f')) || words.has("merge", Some('m'));
            match forced {
                true => (Reach::Whole, none, trees),
                // A name may be that of a branch, or of a file.
                false => (words.named(), none, trees),
            }
        }
        "switch" => {
            let forced = words.has("force", Some('f')) || words.has("merge", Some('m'));
            (
                whole(forced || words.has("discard-changes", None)),
                none,
                trees,
            )
        }
        "restore" => {
            let staged = words.has("staged", Some('S')) && !words.has("worktree", Some('W'));
            match staged {
                true => (Reach::Nothing, none, Vec::new()),
                false => (words.named(), none, words.source.into_iter().collect()),
            }
        }
        "read-tree" => (whole(words.has("reset", Some('u'))), none, trees),
        "checkout-index" => (whole(words.has("force", Some('f'))), none, Vec::new()),
        "stash" => stashed(words),
        "mv" => (words.named(), none, Vec::new()),
        "merge" | "rebase" | "cherry-pick" | "revert" | "am" | "pull" => {
            let back = ["abort", "skip", "quit", "autostash"];
            (
                whole(back.iter().any(|it| words.has(it, None))),
                none,
                trees,
            )
        }
        "apply" => {
            let looks = ["check", "stat", "numstat", "summary", "cached"];
            let only = looks
                .iter()
                .any(|it| words.options.contains(&format!("--{it}").as_str()));
            (whole(!only), none, Vec::new())
        }
        "filter-repo" => (Reach::Whole, none, Vec::new()),
        _ => return None,
    })
}

/// What `git stash` puts away.
fn stashed(mut words: Words<'_>) -> (Reach, Others, Vec<String>) {
    let first = words.operands.first().map(String::as_str);
    match first {
        Some("push") => drop(words.operands.remove(0)),
        // What is said after it is no path.
        Some("save") => words.operands.clear(),
        None => {}
        Some(_) => return (Reach::Nothing, Others::Nothing, Vec::new()),
    }
    let others = match (
        words.has("all", Some('a')),
        words.has("include-untracked", Some('u')),
    ) {
        (true, _) => Others::Ignored,
        (false, true) => Others::Untracked,
        (false, false) => Others::Nothing,
    };
    let kept = match words.operands.is_empty() {
        true => Reach::Whole,
        false => words.named(),
    };
    (kept, others, Vec::new())
}

/// Whether a program is git, by its name or by what that leads to.
fn is_git(program: &str, start: &Path) -> bool {
    let called = program.rsplit('/').next() == Some("git");
    let leads_to_it = || {
        let real = std::fs::canonicalize(start.join(program));
        real.is_ok_and(|real| real.file_name().is_some_and(|name| name == "git"))
    };
    called || (program.contains('/') && leads_to_it())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<(Reach, Others, Vec<String>)> {
        let word = |it: &str| (it != "?").then(|| it.to_owned());
        let words: Vec<Option<String>> = line.split(' ').map(word).collect();
        of_command(&words, Path::new("/"))
    }

    #[test]
    fn au_03_what_git_overwrites_is_in_its_words() {
        let paths = |all: &[&str]| Reach::Paths(all.iter().map(|it| (*it).to_owned()).collect());
        for (line, kept) in [
            ("git reset --hard", Reach::Whole),
            ("git -C x -c a=b reset --har HEAD~1", Reach::Whole),
            ("git reset", Reach::Nothing),
            ("git reset --soft HEAD~1", Reach::Nothing),
            ("git reset ?", Reach::Whole),
            ("git checkout -- .", paths(&["."])),
            ("git checkout main", paths(&["main"])),
            ("git checkout -f main", Reach::Whole),
            ("git checkout -b new", paths(&[])),
            ("git checkout --pathspec-from-file=x", Reach::Whole),
            ("git switch main", Reach::Nothing),
            ("git switch --discard-changes main", Reach::Whole),
            ("git restore .", paths(&["."])),
            ("git restore --staged .", Reach::Nothing),
            ("git restore -SW a", paths(&["a"])),
            ("git restore -s HEAD~1 a", paths(&["a"])),
            ("git read-tree -u --reset HEAD", Reach::Whole),
            ("git read-tree HEAD", Reach::Nothing),
            ("git checkout-index -fa", Reach::Whole),
            ("git stash", Reach::Whole),
            ("git stash -m words", Reach::Whole),
            ("git stash push -- a", paths(&["a"])),
            ("git stash save words", Reach::Whole),
            ("git stash list", Reach::Nothing),
            ("git stash pop", Reach::Nothing),
            ("git merge --abort", Reach::Whole),
            ("git merge main", Reach::Nothing),
            ("git apply x.patch", Reach::Whole),
            ("git apply --check x.patch", Reach::Nothing),
        ] {
            assert_eq!(said(line).map(|it| it.0), Some(kept), "{line}");
        }
        for (line, others) in [
            ("git stash", Others::Nothing),
            ("git stash -u", Others::Untracked),
            ("git stash push --include-untracked", Others::Untracked),
            ("git stash -a", Others::Ignored),
        ] {
            assert_eq!(said(line).map(|it| it.1), Some(others), "{line}");
        }
        for line in ["git status", "git commit -m x", "git ?", "hg reset --hard"] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
