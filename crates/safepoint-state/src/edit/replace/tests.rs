//! The rules of replacing one by one, and properties.

use proptest::prelude::*;

use super::*;
use crate::edit::{Difference, Nearest};

fn change(old: &str, new: &str) -> Replacement {
    Replacement {
        line: None,
        old: old.to_owned(),
        new: new.to_owned(),
        all: false,
    }
}

fn in_line(line: usize, old: &str, new: &str) -> Replacement {
    Replacement {
        line: Some(line),
        ..change(old, new)
    }
}

fn everywhere(old: &str, new: &str) -> Replacement {
    Replacement {
        all: true,
        ..change(old, new)
    }
}

fn replaced(content: &str, changes: &[Replacement]) -> Result<(String, Vec<usize>), EditError> {
    let Replaced { bytes, lines } = replace(content.as_bytes(), changes)?;
    Ok((String::from_utf8(bytes).unwrap(), lines))
}

fn text(content: &str, changes: &[Replacement]) -> String {
    replaced(content, changes).unwrap().0
}

#[test]
fn st_23_a_unique_text_is_replaced() {
    assert_eq!(
        replaced("a\nb\nc\n", &[change("b\nc", "x")]).unwrap(),
        ("a\nx\n".to_owned(), vec![2])
    );
    assert_eq!(text("a b", &[change("b", "")]), "a ");
    assert_eq!(text("ä€𝄞", &[change("€", "é")]), "äé𝄞");
}

#[test]
fn st_23_a_line_says_which_one() {
    let content = "x = 1\ny = 1\nx = 1\n";
    assert_eq!(
        text(content, &[in_line(3, "x = 1", "x = 2")]),
        "x = 1\ny = 1\nx = 2\n"
    );
    assert_eq!(
        text(content, &[in_line(2, "1\nx", "2\nz")]),
        "x = 1\ny = 2\nz = 1\n"
    );
    // It has to begin there; the line end belongs to the line.
    assert_eq!(
        text(content, &[in_line(1, "\ny", "\nz")]),
        "x = 1\nz = 1\nx = 1\n"
    );
    assert_eq!(
        replaced(content, &[in_line(1, "y", "z")]),
        Err(EditError::NotFound {
            change: 1,
            line: Some(1),
            nearest: None,
            elsewhere: vec![2]
        })
    );
}

#[test]
fn st_23_several_occurrences_are_refused_with_their_lines() {
    assert_eq!(
        replaced("a\nb\na\n", &[change("b", "c"), change("a", "x")]),
        Err(EditError::Several {
            change: 2,
            line: None,
            lines: vec![1, 3],
            count: 2
        })
    );
    assert_eq!(
        replaced("ab ab\n", &[in_line(1, "ab", "x")]),
        Err(EditError::Several {
            change: 1,
            line: Some(1),
            lines: vec![1],
            count: 2
        })
    );
    // Either of these could be meant.
    assert!(matches!(
        replaced("aaa", &[change("aa", "x")]),
        Err(EditError::Several { count: 2, .. })
    ));
    let many = "a\n".repeat(100);
    let error = replaced(&many, &[change("a", "b")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "change 1: `old` occurs 100 times in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"
    );
    // Several in a line: fewer lines are known than there are.
    let many = "a b a b\n".repeat(10);
    let error = replaced(&many, &[change("a", "b")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "change 1: `old` occurs 20 times, first in lines 1, 2, 3, 4, 5 and 6"
    );
}

#[test]
fn st_23_all_occurrences_on_request() {
    assert_eq!(
        replaced("a\nb\na\n", &[everywhere("a", "x\ny"), change("b", "z")]).unwrap(),
        ("x\ny\nz\nx\ny\n".to_owned(), vec![1, 3])
    );
    assert_eq!(text("aaaaa", &[everywhere("aa", "b")]), "bba");
    let line = Replacement {
        line: Some(2),
        ..everywhere("a", "b")
    };
    assert_eq!(text("a\naa\na\n", &[line]), "a\nbb\na\n");
    assert!(matches!(
        replaced("a", &[everywhere("b", "c")]),
        Err(EditError::NotFound { .. })
    ));
}

#[test]
fn st_23_changes_are_found_in_the_original_and_stay_apart() {
    // The second is not found in what the first made.
    assert_eq!(text("a b", &[change("a", "b"), change("b", "a")]), "b a");
    assert_eq!(text("ab", &[change("b", "y"), change("a", "x")]), "xy");
    assert_eq!(
        replaced("1\nabc\n", &[change("bc", "x"), change("ab", "y")]),
        Err(EditError::Overlap {
            first: 1,
            second: 2,
            line: 2
        })
    );
    assert!(matches!(
        replaced("abc", &[change("b", "x"), change("b", "x")]),
        Err(EditError::Overlap { .. })
    ));
}

#[test]
fn st_23_an_empty_old_fits_an_empty_file_only() {
    assert_eq!(
        replaced("", &[change("", "a\n")]).unwrap(),
        ("a\n".to_owned(), vec![1])
    );
    assert_eq!(text("\u{FEFF}", &[in_line(1, "", "a")]), "\u{FEFF}a");
    assert_eq!(
        replaced("a", &[change("", "b")]),
        Err(EditError::EmptyOld { change: 1 })
    );
    assert!(matches!(
        replaced("", &[change("", "a"), change("", "b")]),
        Err(EditError::Overlap { .. })
    ));
}

#[test]
fn st_23_lines_that_are_not_there_are_refused() {
    for (content, line, lines) in [
        ("a\nb\n", 3, 2),
        ("a", 0, 1),
        ("", 1, 0),
        ("a\n", usize::MAX, 1),
    ] {
        assert_eq!(
            replaced(content, &[in_line(line, "a", "b")]),
            Err(EditError::LineOutOfRange {
                change: 1,
                line,
                lines
            })
        );
    }
}

#[test]
fn st_23_the_nearest_line_is_told() {
    let content = "fn one() {\n    call(a, b);\n}\n\nfn two() {}\n";
    let nearest = |old: &str| match replaced(content, &[change(old, "")]) {
        Err(EditError::NotFound { nearest, .. }) => nearest,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        nearest("{\n\tcall(a,b);\n}"),
        Some(Nearest {
            line: 1,
            text: "fn one() {".to_owned(),
            difference: Difference::WhiteSpace
        })
    );
    assert_eq!(
        nearest("call(a, b);\r\n}").unwrap().difference,
        Difference::LineEnds
    );
    let words = nearest("    call(a, c);\n").unwrap();
    assert_eq!((words.line, words.difference), (2, Difference::Words));
    assert_eq!(nearest("something else altogether"), None);
    assert_eq!(nearest("\t\t\n\t"), None);
    let error = replaced(content, &[change("call(a,b)", "")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "change 1: `old` does not occur; line 2, `call(a, b);`, differs only in white space"
    );
    assert!(error.suggestion().contains("line 2"));
}

#[test]
fn st_23_binary_contents_are_refused() {
    assert_eq!(
        replace(b"a\0b", &[change("a", "b")]),
        Err(EditError::Binary {
            why: "it has a NUL",
            offset: 1
        })
    );
    assert_eq!(
        replace(b"ab\xFF", &[change("a", "b")]),
        Err(EditError::Binary {
            why: "it is not UTF-8",
            offset: 2
        })
    );
}

#[test]
fn st_23_crlf_throughout_is_kept() {
    assert_eq!(
        text("a\r\nb\r\n", &[change("a\nb\n", "x\ny\nz\n")]),
        "x\r\ny\r\nz\r\n"
    );
    assert_eq!(text("a\r\nb", &[change("b", "x\ny")]), "a\r\nx\r\ny");
    assert_eq!(
        text("a\r\nb\r\n", &[change("a\r\n", "x\r\n")]),
        "x\r\nb\r\n"
    );
    // Of both kinds: only what is really there.
    assert_eq!(text("a\r\nb\n", &[change("b\n", "c\nd\n")]), "a\r\nc\nd\n");
    assert!(matches!(
        replaced("a\r\nb\n", &[change("a\nb", "c")]),
        Err(EditError::NotFound { .. })
    ));
}

#[test]
fn st_23_mark_and_missing_line_end_are_kept() {
    assert_eq!(
        text("\u{FEFF}a\nb", &[in_line(1, "a", "x")]),
        "\u{FEFF}x\nb"
    );
    assert_eq!(text("a\nb", &[change("b", "c")]), "a\nc");
}

#[test]
fn st_23_hostile_replacements_end_soon() {
    let same = "a".repeat(1 << 20);
    let almost = format!("{}b", "a".repeat(1 << 19));
    assert!(matches!(
        replaced(&same, &[change(&almost, "")]),
        Err(EditError::NotFound { .. })
    ));
    assert!(matches!(
        replaced(&same, &[change(&same[..same.len() / 2], "")]),
        Err(EditError::Several { .. })
    ));
    assert!(matches!(
        replaced(&same, &[everywhere("a", &same)]),
        Err(EditError::TooLarge {
            what: "the result",
            ..
        })
    ));
    assert!(replace(&vec![b'a'; 33 << 20], &[change("a", "b")]).is_err());
    assert!(matches!(
        replace(&vec![b'\n'; 5_000_000], &[change("a", "b")]),
        Err(EditError::TooLarge { unit: "lines", .. })
    ));
}

/// Pieces that repeat, so that texts occur several times and overlap.
fn pieces(most: usize) -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec!["a", "b", "aa", " ", "\n", "\r\n", "ä", "𝄞"]);
    prop::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn st_23_one_change_does_what_the_standard_library_does(
        content in pieces(20),
        old in pieces(4),
        new in pieces(4),
        all in any::<bool>(),
    ) {
        prop_assume!(LineEnds::of(content.as_bytes()) != LineEnds::CrLf && !old.is_empty());
        let request = Replacement { line: None, old: old.clone(), new: new.clone(), all };
        let starts = content.char_indices().filter(|(at, _)| content[*at..].starts_with(&old));
        match (starts.count(), replaced(&content, &[request])) {
            (0, result) => {
                let refused = matches!(result, Err(EditError::NotFound { .. }));
                prop_assert!(refused, "{:?}", result);
            }
            (count, Err(error)) => {
                prop_assert!(count > 1 && !all, "{}", error);
            }
            (count, Ok((text, lines))) => {
                prop_assert!(count == 1 || all);
                prop_assert_eq!(&text, &content.replace(&old, &new));
                let at = content.find(&old).unwrap();
                let before = content[..at].matches('\n').count();
                let last = text.trim_end_matches('\n').matches('\n').count().max(text.matches('\n').count().saturating_sub(1));
                prop_assert_eq!(lines, vec![before.min(last) + 1]);
            }
        }
    }

    #[test]
    fn st_23_a_line_means_what_begins_in_it(content in pieces(20), old in pieces(3), line in 0_usize..8) {
        prop_assume!(LineEnds::of(content.as_bytes()) != LineEnds::CrLf && !old.is_empty());
        let number = |at: usize| content[..at].matches('\n').count() + 1;
        let starts: Vec<usize> = content
            .char_indices()
            .map(|(at, _)| at)
            .filter(|at| content[*at..].starts_with(&old) && number(*at) == line)
            .collect();
        match (starts.as_slice(), replaced(&content, &[in_line(line, &old, "NEW")])) {
            ([at], result) => {
                let expected = [&content[..*at], "NEW", &content[at + old.len()..]].concat();
                prop_assert_eq!(result.unwrap().0, expected);
            }
            (_, result) => prop_assert!(result.is_err()),
        }
    }

    #[test]
    fn st_23_any_changes_of_any_bytes_are_made_or_refused(
        content in prop::collection::vec(any::<u8>(), 0..40),
        old in any::<String>(),
        new in any::<String>(),
        line in prop::option::of(any::<usize>()),
        all in any::<bool>(),
    ) {
        let _ = replace(&content, &[Replacement { line, old, new, all }]);
    }
}
