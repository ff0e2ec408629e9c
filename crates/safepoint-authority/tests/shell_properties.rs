//! Properties: whatever a line is, it is answered; wrapping it loses nothing.

mod common;

use common::{actions, understand, unescape};
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn lines() -> Vec<String> {
    let everyday = include_str!("corpus/everyday.txt");
    let evasions = include_str!("corpus/evasions.txt");
    everyday
        .lines()
        .chain(evasions.lines())
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" | "))
        .map(|(_, line)| unescape(line))
        .collect()
}

/// Lines that parse, and that may be put inside of something else.
fn whole_lines() -> Vec<String> {
    lines()
        .into_iter()
        .filter(|line| {
            // A here-document must end in a line of its own, and a comment or a refused
            // construct swallows what comes after it.
            !line.contains("<<")
                && !line.contains('#')
                && !line.contains('\n')
                && understand(line)
                    .deeds
                    .iter()
                    .all(|deed| deed.action != "shell.opaque")
        })
        .collect()
}

fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', "'\\''"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn au_04_any_text_is_answered(text in any::<String>()) {
        prop_assert!(!understand(&text).deeds.is_empty());
    }

    #[test]
    fn au_04_any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(!understand(&text).deeds.is_empty());
    }

    #[test]
    fn au_04_pieces_of_shell_are_answered(pieces in proptest::collection::vec(select(vec![
        "$(", ")", "`", "\"", "'", "${", "}", "((", "))", "[[", "]]", "{", "(", ";", "&&", "||", "|", "&",
        "<", ">", "<<E\n", "E\n", "\n", " ", "if", "then", "fi", "for x in", "do", "done", "case", "esac",
        "rm", "-rf", "~", "/", "$x", "=", "x=", "x=(", "#", "\\", "*", "?", "[", "echo", "a", "$'", "!", "find", "-exec",
        "{}", "\\;", "sh", "-c", "xargs", "git", "sed", "awk", "eval", "$((", "1", ":-", "%", "@", "function f",
    ]), 0..40)) {
        let text = pieces.join("");
        prop_assert!(!understand(&text).deeds.is_empty());
        let text = pieces.join(" ");
        prop_assert!(!understand(&text).deeds.is_empty());
    }

    #[test]
    fn au_04_mutations_are_answered(line in select(lines()), at in any::<Index>(), other in select(lines()), cut in any::<Index>()) {
        let letters: Vec<char> = line.chars().collect();
        let at = at.index(letters.len() + 1);
        let tail: Vec<char> = other.chars().collect();
        let cut = cut.index(tail.len() + 1);
        let mixed: String = letters[..at].iter().chain(&tail[cut..]).collect();
        prop_assert!(!understand(&mixed).deeds.is_empty());
    }
}

#[test]
fn au_04_wrapping_loses_no_action() {
    for line in whole_lines() {
        let plain = actions(&understand(&line));
        let bare = line.trim_end().trim_end_matches('&').to_owned();
        let wrapped = [
            format!("( {bare} )"),
            format!("{{ {bare}; }}"),
            format!("true && {{ {bare}; }}"),
            format!("true; {bare}"),
            format!("{{ {bare}; }} | cat"),
            format!("sh -c {}", quoted(&bare)),
            format!("env A=b timeout 5 bash -lc {}", quoted(&bare)),
            format!("echo \"$({bare})\""),
            format!("if true; then {bare}; fi"),
            format!("for i in 1 2; do {bare}; done"),
            format!("cat <<EOF\n$({bare})\nEOF"),
        ];
        for outer in wrapped {
            let found = actions(&understand(&outer));
            for action in &plain {
                // A line that only looks has no other action to lose; what is refused
                // altogether is held more strictly than anything.
                let lost = !found.contains(action)
                    && action != "file.read"
                    && !found.contains("shell.opaque");
                assert!(!lost, "{outer:?} loses {action}: {found:?}");
            }
        }
    }
}

#[test]
fn au_04_work_is_bounded() {
    let deep = |open: &str, close: &str, times: usize| {
        format!("{}ls{}", open.repeat(times), close.repeat(times))
    };
    let lines = [
        deep("( ", " )", 5000),
        deep("$(", ")", 4000),
        deep("{ ", "; }", 2000),
        deep("if true; then ", "; fi", 800),
        deep("while true; do ", "; done", 15),
        deep("for i in a b c; do x=$i; ", "; done", 15),
        format!("echo {}", "$((".repeat(3000)),
        format!("echo {}", "${a:-".repeat(2500)),
        format!("echo {}", "{a,b}".repeat(40)),
        format!("echo {}", "{".repeat(3000)),
        format!("echo {}", "\"$(".repeat(3000)),
        format!("echo {}", "`".repeat(9999)),
        "a;".repeat(8000),
        "a|".repeat(5000),
        "f() { f; f; }; f".to_owned(),
        format!("f() {{ {} f {} ; }}; f", "( ".repeat(17), " )".repeat(17)),
        (0..18).rev().fold("ls".to_owned(), |inner, level| {
            let (open, close) = ("( ".repeat(17), " )".repeat(17));
            format!("bash <<'E{level}'\n{open}\n{inner}\n{close}\nE{level}")
        }),
        (0..18).rev().fold("ls".to_owned(), |inner, level| {
            let (open, close) = ("echo $(".repeat(17), ")".repeat(17));
            format!("sh <<'E{level}'\n{open}\n{inner}\n{close}\nE{level}\n")
        }),
        "f() { g; g; }; g() { f; f; }; f".to_owned(),
        format!("x=a; {}echo $x", "x=$x$x; ".repeat(1000)),
        format!(
            "x=(a b); {}echo \"${{x[@]}}\"",
            "x+=(\"${x[@]}\"); ".repeat(600)
        ),
        "cat <<E ".repeat(2000),
        "'".repeat(16000),
        "a".repeat(20000),
    ];
    for line in lines {
        let understanding = understand(&line);
        let shown: String = line.chars().take(60).collect();
        assert!(!understanding.deeds.is_empty(), "{shown}");
        assert!(understanding.commands.len() <= 210, "{shown}");
    }
}
