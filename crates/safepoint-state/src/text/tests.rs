//! Properties of the diff and the merge, and the real tools as second opinion.
#![expect(
    clippy::disallowed_methods,
    reason = "tests run the real tools on files of their own"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// Contents with everything that is easily lost: CRLF, empty lines, invalid
/// UTF-8, a missing last line end, lines that look like parts of a diff.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        b"a\n".as_slice(),
        b"b\n",
        b"a\r\n",
        b"\n",
        b"\r\n",
        b"\tc\n",
        b"    d\n",
        b"\xFF\xC3\n",
        b"-- x\n",
        b"++ x\n",
        b"@@ -1 +1 @@\n",
        b"\\ No newline at end of file\n",
        b"e\rf\n",
    ]);
    let end = prop::sample::select(vec![b"".as_slice(), b"", b"a", b"b", b"\r", b"\xFF"]);
    (prop::collection::vec(line, 0..30), end)
        .prop_map(|(lines, end)| [lines.concat(), end.to_vec()].concat())
}

/// Edits that a content of distinct lines goes through: line, how many lines
/// are removed there, how many new ones put in their place.
type Edits = Vec<(usize, usize, usize)>;

const LINES: usize = 12;

fn edits() -> impl Strategy<Value = Edits> {
    prop::collection::vec((0..=LINES, 0..3_usize, 0..3_usize), 0..4)
}

/// The numbered lines after the edits. New lines say where they stand and, now
/// and then, whose they are: so both sides also make equal changes.
fn edited(edits: &Edits, name: &str, line_end: &str) -> Vec<u8> {
    let mut text = String::new();
    let mut kept = 0;
    for line in 0..=LINES {
        for (_, removed, added) in edits.iter().filter(|(at, _, _)| *at == line) {
            kept = kept.max(line + removed);
            let owner = if line % 3 == 0 { "both" } else { name };
            for number in 0..*added {
                text.push_str(&format!("new {line} {removed} {number} {owner}{line_end}"));
            }
        }
        if line >= kept && line < LINES {
            text.push_str(&format!("line {line}{line_end}"));
        }
    }
    text.into_bytes()
}

fn run(directory: &Path, program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(directory)
        // Neither the developer's settings nor a repository around the tests.
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", directory)
        .output()
        .unwrap()
}

/// What `program` makes of `old` with the patch.
fn patched(old: &[u8], patch: &[u8], program: &str, arguments: &[&str]) -> Vec<u8> {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("file"), old).unwrap();
    let headed = [b"--- a/file\n+++ b/file\n".as_slice(), patch].concat();
    fs::write(directory.path().join("patch"), headed).unwrap();
    let output = run(directory.path(), program, arguments);
    assert!(output.status.success(), "{output:?}");
    fs::read(directory.path().join("file")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn the_real_tools_apply_the_diff(old in content(), new in content(), context in 0_usize..4) {
        let Comparison::Text(hunks) = compare(&old, &new, context) else {
            prop_assert_eq!(old, new);
            return Ok(());
        };
        let patch = unified(&hunks);
        let by_patch = patched(&old, &patch, "patch", &["-p1", "--binary", "-i", "patch"]);
        prop_assert_eq!(&by_patch, &new);
        // Without context git puts a removal at the end of a file in another place, also from
        // the patches of GNU diff: `a\na` without a newline to `b\na\n`.
        if context > 0 {
            let by_git = patched(&old, &patch, "git", &["apply", "patch"]);
            prop_assert_eq!(&by_git, &new);
        }
    }

    // Distinct lines leave one way to align them. With repeated lines git's
    // Myers and our histogram at times see the same change in another place,
    // and then one of them, two times in a thousand, finds the changes touching
    // where the other does not.
    #[test]
    fn st_35_git_merges_distinct_lines_alike(
        ours in edits(),
        theirs in edits(),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
        cut in prop::array::uniform3(prop::bool::weighted(0.2)),
    ) {
        let mut contents = [
            edited(&Vec::new(), "", line_end),
            edited(&ours, "ours", line_end),
            edited(&theirs, "theirs", line_end),
        ];
        for (content, cut) in contents.iter_mut().zip(cut) {
            if cut {
                content.truncate(content.len().saturating_sub(line_end.len()));
            }
        }
        let [base, ours, theirs] = contents;
        let (clean, merged) = merged_by_git(&base, &ours, &theirs);
        match merge(&base, &ours, &theirs) {
            Merge::Clean(bytes) => {
                prop_assert!(clean, "git conflicts: {}", String::from_utf8_lossy(&merged));
                prop_assert_eq!(bytes, merged);
            }
            Merge::Conflict(conflicts) => prop_assert!(!clean, "git is clean: {conflicts:?}"),
        }
    }
}

/// Whether git merges without a conflict, and what it makes of it.
fn merged_by_git(base: &[u8], ours: &[u8], theirs: &[u8]) -> (bool, Vec<u8>) {
    let directory = TempDir::new().unwrap();
    for (name, content) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let arguments = ["merge-file", "-p", "ours", "base", "theirs"];
    let output = run(directory.path(), "git", &arguments);
    // The number of conflicts, or 255 for an error.
    let conflicts = output.status.code().unwrap();
    assert!(conflicts < 128, "{output:?}");
    (conflicts == 0, output.stdout)
}

/// Both sides, put together from the hunks and the old lines between them.
fn sides(old: &[u8], hunks: &[Hunk]) -> (Vec<u8>, Vec<u8>) {
    let lines: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut done = 0;
    for hunk in hunks {
        // Without a line on the old side, the start names the line before.
        let start = hunk.old_start - usize::from(hunk.old_lines > 0);
        let between = lines[done..start].concat();
        before.extend_from_slice(&between);
        after.extend_from_slice(&between);
        for line in &hunk.lines {
            if line.side != Side::Added {
                before.extend_from_slice(&line.text);
            }
            if line.side != Side::Removed {
                after.extend_from_slice(&line.text);
            }
        }
        done = start + hunk.old_lines;
    }
    let rest = lines[done..].concat();
    before.extend_from_slice(&rest);
    after.extend_from_slice(&rest);
    (before, after)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn hunks_carry_both_sides(old in content(), new in content(), context in 0_usize..5) {
        match compare(&old, &new, context) {
            Comparison::Same => prop_assert_eq!(old, new),
            Comparison::Binary => prop_assert!(false, "there is no NUL"),
            Comparison::Text(hunks) => prop_assert_eq!(sides(&old, &hunks), (old, new)),
        }
    }

    #[test]
    fn any_bytes_are_compared(
        old in prop::collection::vec(any::<u8>(), 0..60),
        new in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        match compare(&old, &new, 1) {
            Comparison::Same => prop_assert_eq!(old, new),
            Comparison::Binary => prop_assert!(old.contains(&0) || new.contains(&0)),
            Comparison::Text(hunks) => prop_assert_eq!(sides(&old, &hunks), (old, new)),
        }
    }

    #[test]
    fn st_35_one_change_alone_is_taken_over(base in content(), other in content()) {
        let expected = Merge::Clean(other.clone());
        prop_assert_eq!(&merge(&base, &other, &base), &expected);
        prop_assert_eq!(&merge(&base, &base, &other), &expected);
        prop_assert_eq!(&merge(&base, &other, &other), &expected);
    }

    #[test]
    fn st_35_both_directions_agree(base in content(), ours in content(), theirs in content()) {
        prop_assert!(agree(&merge(&base, &ours, &theirs), &merge(&base, &theirs, &ours)));
    }

    #[test]
    fn st_35_both_directions_agree_on_small_edits(ours in edits(), theirs in edits()) {
        let base = edited(&Vec::new(), "", "\n");
        let (ours, theirs) = (edited(&ours, "ours", "\n"), edited(&theirs, "theirs", "\n"));
        prop_assert!(agree(&merge(&base, &ours, &theirs), &merge(&base, &theirs, &ours)));
    }
}

/// Whether two merges with exchanged sides came to the same.
fn agree(one: &Merge, other: &Merge) -> bool {
    match (one, other) {
        (Merge::Clean(one), Merge::Clean(other)) => one == other,
        (Merge::Conflict(one), Merge::Conflict(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| {
                    (&one.base, &one.ours, &one.theirs) == (&other.base, &other.theirs, &other.ours)
                })
        }
        _ => false,
    }
}
