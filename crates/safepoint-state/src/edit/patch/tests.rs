//! The rules of patches one by one, properties, and the real tools as second
//! opinion.
#![expect(
    clippy::disallowed_methods,
    reason = "tests run the real tools on files of their own"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::edit::{Difference, EditError};
use crate::text::{Comparison, compare, unified};

fn one(patch: &str) -> FilePatch {
    let mut files = parse(patch.as_bytes()).unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

fn applied(content: &str, patch: &str) -> Result<String, EditError> {
    let patch = parse(patch.as_bytes())?.remove(0);
    let bytes = apply(Some(content.as_bytes()), &patch)?.bytes.unwrap();
    Ok(String::from_utf8(bytes).unwrap())
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
const FIVE: &str = "--- a/f\n+++ b/f\n@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n";

#[test]
fn st_23_a_plain_diff_is_applied() {
    assert_eq!(
        applied(TEN, FIVE).unwrap(),
        "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n"
    );
    let file =
        one("--- old/f.orig\t2026-01-01 00:00:00\n+++ old/f\t2026-01-01\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!(file.old.as_deref(), Some(b"old/f".as_slice()));
    assert_eq!(file.new, file.old);
}

#[test]
fn st_23_headers_of_git_are_read() {
    let file = one(concat!(
        "From 1234 Mon Sep 17 00:00:00 2001\nSubject: x\n\n---\n f | 2 +-\n\n",
        "diff --git a/d/f b/d/f\nold mode 100644\nnew mode 100755\nindex 1..2\n",
        "--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@ fn x()\n-a\n+b\n-- \n2.47.3\n\n"
    ));
    assert_eq!(file.new.as_deref(), Some(b"d/f".as_slice()));
    assert_eq!(
        (file.old_mode, file.new_mode),
        (Some(0o100644), Some(0o100755))
    );

    let file = one("diff --git a/x y b/x y\nnew file mode 100644\nindex 0..0\n");
    assert!(file.creates() && file.hunks.is_empty());
    assert_eq!(file.new.as_deref(), Some(b"x y".as_slice()));
    assert_eq!(apply(None, &file).unwrap().bytes, Some(Vec::new()));

    let file = one(
        "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
    );
    assert!(file.deletes());
    assert_eq!(apply(Some(b"a\n"), &file).unwrap().bytes, None);
    assert_eq!(apply(Some(b"a\nb\n"), &file), Err(EditError::NotAllDeleted));
    assert_eq!(apply(None, &file), Err(EditError::AlreadyApplied));

    let file =
        one("diff --git a/x b/new/y\nsimilarity index 100%\nrename from x\nrename to new/y\n");
    assert_eq!(file.old.as_deref(), Some(b"x".as_slice()));
    assert_eq!(file.new.as_deref(), Some(b"new/y".as_slice()));
    assert_eq!(apply(Some(b"a"), &file).unwrap().bytes, Some(b"a".to_vec()));
    assert_eq!(apply(None, &file), Err(EditError::NoFile));

    let file = one("diff --git a/x b/y\nsimilarity index 90%\ncopy from x\ncopy to y\n");
    assert!(file.copied);
}

#[test]
fn st_23_names_come_out_as_they_are() {
    let name = |patch: &str| one(patch).new.unwrap();
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    let plain = |old: &str, new: &str| name(&format!("--- {old}\n+++ {new}\n{hunk}"));
    assert_eq!(
        plain("\"a/f\\303\\266\\t\\\"\"", "\"b/f\\303\\266\\t\\\"\""),
        "fö\t\"".as_bytes()
    );
    assert_eq!(plain("a/b c\t", "b/b c\t"), b"b c");
    assert_eq!(plain("f", "f.new"), b"f");
    assert_eq!(plain("/dev/null", "b/f"), b"f");
    assert_eq!(plain("a/f", "a/f"), b"a/f");
    let git = |old: &str, new: &str| {
        name(&format!(
            "diff --git {old} {new}\n--- {old}\n+++ {new}\n{hunk}"
        ))
    };
    assert_eq!(git("i/f", "w/f"), b"f");
    assert_eq!(git("a/f", "a/f"), b"a/f");
    assert_eq!(
        name("diff --git \"a/\\\\x\" \"b/\\\\x\"\nold mode 100644\nnew mode 100755\n"),
        b"\\x"
    );
    for broken in ["\"a/\\9\"", "\"a", "\"\"", "\"a\\"] {
        let patch = format!("--- {broken}\n+++ b/f\n{hunk}");
        assert!(matches!(
            parse(patch.as_bytes()),
            Err(EditError::NotAPatch { line: 1, .. })
        ));
    }
}

#[test]
fn st_23_several_files_are_read() {
    let patch = format!("{FIVE}{}", FIVE.replace("/f", "/g"));
    let files = parse(patch.as_bytes()).unwrap();
    let names: Vec<_> = files.iter().map(|file| file.new.clone().unwrap()).collect();
    assert_eq!(names, [b"f", b"g"]);
}

#[test]
fn st_23_a_hunk_is_found_at_its_only_other_place() {
    let shifted = format!("0\n0\n{TEN}");
    let result = apply(Some(shifted.as_bytes()), &one(FIVE)).unwrap();
    assert_eq!(
        result.moved,
        [Moved {
            hunk: 1,
            stated: 4,
            found: 6
        }]
    );
    let twice = format!("0\n{TEN}{TEN}");
    assert_eq!(
        apply(Some(twice.as_bytes()), &one(FIVE)),
        Err(EditError::HunkSeveral {
            hunk: 1,
            line: 4,
            lines: vec![5, 15]
        })
    );
    // At its own place it is right, however often it stands elsewhere.
    let twice = format!("{TEN}{TEN}");
    let result = apply(Some(twice.as_bytes()), &one(FIVE)).unwrap();
    assert_eq!(result.moved, []);
}

#[test]
fn st_23_a_place_that_two_shifts_explain_is_refused() {
    // The first hunk moved by three; the second would fit at its own place as
    // well as three lines further on.
    let content = "x\nx\nx\na\nsame\nsame\nsame\nsame\nsame\nsame\nsame\n";
    let patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n@@ -5 +5 @@\n-same\n+other\n";
    assert_eq!(
        applied(content, patch),
        Err(EditError::HunkSeveral {
            hunk: 2,
            line: 5,
            lines: vec![8, 5]
        })
    );
}

#[test]
fn st_23_context_is_never_ignored() {
    let content = TEN.replace("6\n", "six\n");
    let error = applied(&content, FIVE).unwrap_err();
    let EditError::HunkNotFound {
        hunk: 1,
        line: 4,
        difference: Some(difference),
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(
        (difference.line, difference.difference),
        (6, Difference::Words)
    );
    assert_eq!(
        error.to_string(),
        "hunk 1 does not apply at line 4 nor anywhere else: line 6 is `six` and not `6`"
    );
    let error = applied(&TEN.replace("6\n", "6 \n"), FIVE).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("line 6, `6 `, differs only in white space"),
        "{error}"
    );
    let error = applied("1\n2\n3\n4\n5\n6", FIVE).unwrap_err();
    assert!(
        error.to_string().ends_with("differs only in its line ends"),
        "{error}"
    );
    let error = applied("1\n2\n3\n4\n", FIVE).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("it wants `5` in line 5, behind the end of the file"),
        "{error}"
    );
}

#[test]
fn st_23_an_applied_patch_is_told() {
    let done = applied(TEN, FIVE).unwrap();
    assert_eq!(applied(&done, FIVE), Err(EditError::AlreadyApplied));
    let two = format!("{FIVE}@@ -8,2 +8,3 @@\n 8\n+8.5\n 9\n");
    assert_eq!(
        applied(&done, &two),
        Err(EditError::PartlyApplied {
            applied: vec![1],
            missing: vec![2]
        })
    );
    let all = applied(TEN, &two).unwrap();
    assert_eq!(applied(&all, &two), Err(EditError::AlreadyApplied));
    let shifted = format!("0\n0\n{all}");
    assert_eq!(applied(&shifted, &two), Err(EditError::AlreadyApplied));
    // A file that is created.
    let created = one("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n");
    assert_eq!(apply(None, &created).unwrap().bytes, Some(b"a\n".to_vec()));
    assert_eq!(
        apply(Some(b"a\n"), &created),
        Err(EditError::AlreadyApplied)
    );
    assert_eq!(apply(Some(b"b\n"), &created), Err(EditError::FileExists));
}

#[test]
fn st_23_hunks_out_of_order_are_refused() {
    let hunk = |line: usize| format!("@@ -{line},2 +{line},2 @@\n {line}\n-{}\n+x\n", line + 1);
    let header = "--- a/f\n+++ b/f\n";
    let order = format!("{header}{}{}", hunk(5), hunk(2));
    assert_eq!(
        applied(TEN, &order),
        Err(EditError::HunkOrder { hunk: 2, line: 2 })
    );
    let overlap = format!("{header}{}{}", hunk(2), hunk(3));
    assert_eq!(
        applied(TEN, &overlap),
        Err(EditError::HunkOrder { hunk: 2, line: 3 })
    );
    let good = format!("{header}{}{}", hunk(2), hunk(4));
    assert!(applied(TEN, &good).is_ok());
}

#[test]
fn st_23_line_ends_of_a_patch() {
    // CRLF in the content is content.
    let crlf = TEN.replace('\n', "\r\n");
    let exact = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-1\r\n+one\n 2\r\n";
    assert!(applied(&crlf, exact).unwrap().starts_with("one\n2\r\n"));
    // A patch that lost it, and one that was given it.
    let expected = applied(TEN, FIVE).unwrap().replace('\n', "\r\n");
    for patch in [FIVE.to_owned(), FIVE.replace('\n', "\r\n")] {
        let result = apply(Some(crlf.as_bytes()), &one(&patch)).unwrap();
        assert!(result.line_ends_adapted);
        assert_eq!(result.bytes.unwrap(), expected.as_bytes());
    }
    assert_eq!(
        applied(TEN, &FIVE.replace('\n', "\r\n")),
        applied(TEN, FIVE)
    );
    // In a file of both kinds nobody can tell.
    let mixed = format!("0\n{crlf}");
    assert!(matches!(
        applied(&mixed, FIVE),
        Err(EditError::HunkNotFound { .. })
    ));
}

#[test]
fn st_23_a_missing_last_line_end_is_kept_exactly() {
    let patch = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n";
    assert_eq!(applied("a\nb", patch).unwrap(), "a\nc\n");
    assert!(matches!(
        applied("a\nb\n", patch),
        Err(EditError::HunkNotFound { .. })
    ));
    let patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
    assert_eq!(applied("a\n", patch).unwrap(), "b");
    assert!(matches!(
        applied("a\nz\n", patch),
        Err(EditError::BadHunk { .. })
    ));
    // The end of the patch itself says nothing.
    assert_eq!(applied("a\n", "@@ -1 +1 @@\n-a\n+b").unwrap(), "b\n");
}

#[test]
fn st_23_broken_patches_are_refused_with_their_line() {
    let refused = |patch: &str| match parse(patch.as_bytes()) {
        Err(EditError::NotAPatch { line, why }) => (line, why),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("").0, 1);
    assert_eq!(refused("just text\n").0, 1);
    let header = "--- a/f\n+++ b/f\n";
    assert_eq!(refused(&format!("{header}@@ -1,2 +1 @@\n-a\n")).0, 5);
    assert_eq!(refused(&format!("{header}@@ -1 +1 @@\n-a\n+b\n+c\n")).0, 6);
    assert_eq!(refused(&format!("{header}@@ -1 +1 @@\n-a\n-b\n")).0, 5);
    assert_eq!(refused(&format!("{header}@@ -1 +1 @@\n*a\n")).0, 4);
    assert_eq!(refused(&format!("{header}@@ -0,2 +1 @@\n-a\n")).0, 3);
    assert_eq!(
        refused(&format!("{header}@@ -99999999999999999999 +1 @@\n-a\n")).0,
        3
    );
    assert_eq!(
        refused(&format!("{header}@@ -1,2 +1,2 @@\n a\n\\ No newline\n b\n")).0,
        6
    );
    assert_eq!(
        refused(&format!("{header}@@ -1 +1 @@\n-a\n\\ x\n\\ x\n+b\n")).0,
        6
    );
    assert_eq!(refused("diff --cc f\n@@@ -1 -1 +1 @@@\n").0, 2);
    assert_eq!(refused("diff --git a/x b/y\nold mode 100644\n").0, 3);
    assert_eq!(refused("diff --git a/x b/x\nnew mode 9\n").0, 2);
}

#[test]
fn st_23_binary_patches_are_refused() {
    let binary = |patch: &str| match parse(patch.as_bytes()) {
        Err(EditError::BinaryPatch { line, name }) => (line, name),
        other => panic!("{other:?}"),
    };
    let git = "diff --git a/x.png b/x.png\nindex 1..2 100644\n";
    assert_eq!(
        binary(&format!("{git}Binary files a/x.png and b/x.png differ\n")),
        (3, "x.png".to_owned())
    );
    assert_eq!(
        binary(&format!("{git}GIT binary patch\nliteral 3\nabc\n")).0,
        3
    );
    assert_eq!(binary("Binary files x and y differ\n").0, 1);
}

#[test]
fn st_23_a_blank_that_was_cut_is_still_context() {
    let patch = "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n";
    assert_eq!(applied("a\n\nb\n", patch).unwrap(), "a\n\nc\n");
}

#[test]
fn st_23_hostile_patches_end_soon() {
    // Lines that are all the same, hunks that nearly fit everywhere.
    let content = "a\n".repeat(200_000);
    let near = format!(
        "@@ -1,{0} +1,{0} @@\n{1}-a\n+b\n",
        50_001,
        " a\n".repeat(50_000)
    );
    let missing = near.replace("-a\n", "-z\n");
    let patch = one(&missing);
    assert!(matches!(
        apply(Some(content.as_bytes()), &patch),
        Err(EditError::HunkNotFound { .. })
    ));
    let half = format!("{}b\n{}", "a\n".repeat(100_000), "a\n".repeat(100_000));
    let far = format!(
        "@@ -100001,{0} +100001,{0} @@\n{1}-a\n+b\n",
        50_001,
        " a\n".repeat(50_000)
    );
    let result = apply(Some(half.as_bytes()), &one(&far));
    assert!(
        matches!(
            result,
            Err(EditError::HunkSeveral { .. } | EditError::TooLarge { .. })
        ),
        "{result:?}"
    );
    // Numbers at the edge.
    let mut hunk = one("@@ -1 +1 @@\n-a\n+b\n");
    hunk.hunks[0].old_start = usize::MAX;
    assert!(apply(Some(b"x\n"), &hunk).is_err());
    hunk.hunks[0].old_lines = usize::MAX;
    assert!(apply(Some(b"x\n"), &hunk).is_err());
    let nul = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\0\n+b\0\n";
    assert_eq!(applied("a\0\n", nul).unwrap(), "b\0\n");
}

/// Contents with everything that is easily lost.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        b"a\n".as_slice(),
        b"b\n",
        b"a\r\n",
        b"\n",
        b"\r\n",
        b"    d\n",
        b"\xFF\xC3\n",
        b"-- x\n",
        b"++ x\n",
        b"@@ -1 +1 @@\n",
        b"\\ No newline at end of file\n",
    ]);
    let end = prop::sample::select(vec![b"".as_slice(), b"", b"a", b"\r", b"\xFF"]);
    (prop::collection::vec(line, 0..25), end)
        .prop_map(|(lines, end)| [lines.concat(), end.to_vec()].concat())
}

fn git(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", directory)
        .output()
        .unwrap();
    output.stdout
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn st_23_our_own_diffs_apply_both_ways(old in content(), new in content(), context in 0_usize..5) {
        let Comparison::Text(hunks) = compare(&old, &new, context) else {
            prop_assert_eq!(old, new);
            return Ok(());
        };
        let mut files = parse(&unified(&hunks)).unwrap();
        prop_assert_eq!(files.len(), 1);
        let file = files.remove(0);
        prop_assert_eq!(&file.hunks, &hunks);
        let result = apply(Some(&old), &file).unwrap();
        prop_assert_eq!(result.bytes.as_ref(), Some(&new));
        prop_assert_eq!(result.moved, vec![]);
        let back = apply(Some(&new), &file.reversed()).unwrap();
        prop_assert_eq!(back.bytes, Some(old));
    }

    #[test]
    fn st_23_a_patch_made_for_another_file_does_what_it_says_or_nothing(
        old in content(),
        new in content(),
        other in content(),
    ) {
        let Comparison::Text(hunks) = compare(&old, &new, 2) else {
            return Ok(());
        };
        let file = FilePatch { hunks, ..FilePatch::default() };
        if let Ok(result) = apply(Some(&other), &file) {
            // Put together once more, from the places that were reported.
            let mut lines: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
            for (number, hunk) in file.hunks.iter().enumerate().rev() {
                let moved = result.moved.iter().find(|moved| moved.hunk == number + 1);
                let found = moved.map_or(hunk.old_start, |moved| moved.found);
                let start = found - usize::from(hunk.old_lines > 0);
                let side = |left_out| hunk.lines.iter().filter(move |line| line.side != left_out).map(|line| line.text.as_slice());
                let removed: Vec<&[u8]> = lines.splice(start..start + hunk.old_lines, side(Side::Removed)).collect();
                prop_assert_eq!(removed, side(Side::Added).collect::<Vec<_>>());
            }
            prop_assert_eq!(result.bytes.unwrap(), lines.concat());
        }
    }

    #[test]
    fn st_23_any_bytes_are_read_as_a_patch_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn st_23_any_lines_are_read_as_a_patch_or_refused(
        lines in prop::collection::vec(prop::sample::select(vec![
            "diff --git a/f b/f\n", "--- a/f\n", "+++ b/f\n", "@@ -1 +1 @@\n", "@@ -1,2 +1,2 @@\n",
            " a\n", "-a\n", "+a\n", "\\ no\n", "\n", "rename from x\n", "new file mode 100644\n", "x",
        ]), 0..20),
    ) {
        let patch = lines.concat();
        for file in parse(patch.as_bytes()).unwrap_or_default() {
            let _ = apply(Some(b"a\na\n"), &file);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn st_23_diffs_of_the_real_tools_apply(old in content(), new in content()) {
        let directory = TempDir::new().unwrap();
        let directory = directory.path();
        fs::create_dir(directory.join("a")).unwrap();
        fs::create_dir(directory.join("b")).unwrap();
        fs::write(directory.join("a/ä f"), &old).unwrap();
        fs::write(directory.join("b/ä f"), &new).unwrap();
        let by_git = git(directory, &["diff", "--no-index", "--text", "--no-prefix", "a/ä f", "b/ä f"]);
        let by_diff = Command::new("diff").args(["-u", "--text", "a/ä f", "b/ä f"]).current_dir(directory).output().unwrap().stdout;
        for patch in [by_git, by_diff] {
            if old == new {
                prop_assert!(patch.is_empty());
                continue;
            }
            let files = parse(&patch).unwrap();
            prop_assert_eq!(files.len(), 1);
            prop_assert_eq!(files[0].new.as_deref(), Some("ä f".as_bytes()));
            prop_assert_eq!(apply(Some(&old), &files[0]).unwrap().bytes, Some(new.clone()));
        }
    }
}

#[test]
fn st_23_a_whole_repository_of_changes_is_read() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    let write = |name: &str, content: &str| fs::write(directory.join(name), content).unwrap();
    git(directory, &["init", "-q"]);
    write("changed", TEN);
    write("moved", "1\n2\n3\n4\n5\n6\n7\n");
    write("gone", "x\n");
    write("tab\tname", "x\n");
    git(directory, &["add", "-A"]);
    let commit = [
        "-c",
        "user.name=n",
        "-c",
        "user.email=e",
        "commit",
        "-q",
        "-m",
        "m",
    ];
    git(directory, &commit);
    write("changed", &TEN.replace('5', "five"));
    fs::rename(directory.join("moved"), directory.join("there")).unwrap();
    fs::remove_file(directory.join("gone")).unwrap();
    write("tab\tname", "y\n");
    write("new", "n");
    write("empty", "");
    git(directory, &["add", "-A"]);
    let patch = git(directory, &["diff", "-M", "--cached"]);
    let files = parse(&patch).unwrap();
    let mut seen = Vec::new();
    for file in files {
        let name =
            |name: &Option<Vec<u8>>| name.clone().map(|name| String::from_utf8(name).unwrap());
        seen.push((name(&file.old), name(&file.new), file.hunks.len()));
    }
    let named = |old: &str, new: &str, hunks| {
        let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        (name(old), name(new), hunks)
    };
    seen.sort();
    assert_eq!(
        seen,
        [
            named("", "empty", 0),
            named("", "new", 1),
            named("changed", "changed", 1),
            named("gone", "", 1),
            named("moved", "there", 0),
            named("tab\tname", "tab\tname", 1),
        ]
    );
}
