//! A difference, line by line.

use maud::{Markup, html};
use serde::Deserialize;

use super::show::{badge, block, code, count, text};

/// So many lines are shown; more would be no help.
const MOST_LINES: usize = 4_000;

/// One path, and what became of it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Change {
    /// Where.
    pub(super) path: String,
    /// What: created, modified, deleted, metadata.
    pub(super) change: String,
}

/// Paths, and what became of each.
pub(super) fn changes(changes: &[Change]) -> Markup {
    html! {
        ul.changes {
            @for Change { path, change } in changes {
                li { span class={ "change " (sign(change).1) } aria-hidden="true" { (sign(change).0) }
                    span.unseen { (text(change)) " " } (code(path)) }
            }
        }
    }
}

fn sign(change: &str) -> (&'static str, &'static str) {
    match change {
        "created" => ("+", "added"),
        "deleted" => ("−", "removed"),
        "modified" => ("~", "changed"),
        _ => ("·", "other"),
    }
}

/// A unified diff.
pub(super) fn unified(diff: &str) -> Markup {
    if diff.is_empty() {
        return html! { p.faint { "No lines differ." } };
    }
    let mut room = MOST_LINES;
    let files = split(diff).into_iter().map(|(name, lines)| {
        let shown = lines.len().min(room);
        room -= shown;
        (name, lines, shown)
    });
    html! {
        div.diff {
            @for (name, lines, shown) in files {
                section.file {
                    h3 { (code(name)) }
                    (table(lines.get(..shown).unwrap_or_default()))
                    @if shown < lines.len() {
                        p.faint { (count(lines.len() - shown, "more line is", "more lines are")) " not shown here." }
                    }
                }
            }
        }
    }
}

/// Lines that would come and go, where there is no file to compare with.
pub(super) fn proposed(name: &str, old: &str, new: &str) -> Markup {
    let lines: Vec<String> = old
        .lines()
        .map(|line| format!("-{line}"))
        .chain(new.lines().map(|line| format!("+{line}")))
        .take(MOST_LINES)
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    html! {
        div.diff {
            section.file { h3 { (code(name)) } (table(&lines)) }
        }
    }
}

fn table(lines: &[&str]) -> Markup {
    html! {
        pre tabindex="0" {
            @for line in lines {
                @let (kind, said) = kind(line);
                span class={ "line " (kind) } {
                    @if let Some(said) = said { span.unseen { (said) } }
                    (block(line)) "\n"
                }
            }
        }
    }
}

/// What a line is, and what is said to those who do not see its colour.
fn kind(line: &str) -> (&'static str, Option<&'static str>) {
    match line.as_bytes().first() {
        Some(b'+') => ("added", Some("added: ")),
        Some(b'-') => ("removed", Some("removed: ")),
        Some(b'@') => ("hunk", None),
        _ => ("same", None),
    }
}

/// Each file, with its lines from the first hunk on. What stands before it (modes, renames)
/// stays, what only repeats the names goes.
fn split(diff: &str) -> Vec<(&str, Vec<&str>)> {
    let mut files: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut in_hunk = false;
    for line in diff.split('\n') {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let name = names.split_once(" b/").map_or(names, |(_, name)| name);
            files.push((name, Vec::new()));
            in_hunk = false;
            continue;
        }
        in_hunk |= line.starts_with("@@");
        if !in_hunk && (line.starts_with("--- ") || line.starts_with("+++ ")) {
            continue;
        }
        match files.last_mut() {
            Some((_, lines)) => lines.push(line),
            None => files.push(("", vec![line])),
        }
    }
    for (_, lines) in &mut files {
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
    }
    files
}

/// What is said of a difference before its lines are.
pub(super) fn summary(changes: &[Change]) -> Markup {
    let of = |kind: &str| changes.iter().filter(|it| it.change == kind).count();
    html! {
        @if changes.is_empty() { (badge("nothing")) }
        @for kind in ["created", "modified", "deleted", "metadata"] {
            @if of(kind) > 0 { span.tally { (of(kind)) " " (kind) } " " }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_08_a_diff_is_split_by_file_and_shows_hostile_lines_as_escapes() {
        let diff = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+<b>\u{202e}\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n--- a\n+++ b\n";
        let files = split(diff);
        assert_eq!(files.len(), 2);
        assert_eq!(
            files[0].1,
            ["new file mode 100644", "@@ -0,0 +1 @@", "+<b>\u{202e}"]
        );
        assert_eq!(
            files[1].1,
            ["@@ -1 +1 @@", "--- a", "+++ b"],
            "lines that look like names"
        );
        let shown = unified(diff).into_string();
        assert!(shown.contains("+&lt;b&gt;\\u{202e}"), "{shown}");
    }
}
