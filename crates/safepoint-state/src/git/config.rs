//! The few settings of a repository that say what it is.
//!
//! Git reads these from the repository's own file alone, without includes, so
//! they can be read without starting git. It is not a reader of git
//! configuration in general: everything else is asked of git.

/// The last value of `section.key` in `text`, where `section` has no subsection.
/// Both names are given in lower case.
pub(super) fn value(text: &str, section: &str, key: &str) -> Option<String> {
    let mut inside = false;
    let mut found = None;
    for line in text.lines() {
        let mut rest = line.trim();
        if let Some(header) = rest.strip_prefix('[') {
            let (name, after) = header.split_once(']').unwrap_or((header, ""));
            inside = name.trim().eq_ignore_ascii_case(section);
            rest = after.trim();
        }
        let (name, written) = rest.split_once('=').unwrap_or((rest, "true"));
        if inside && name.trim().eq_ignore_ascii_case(key) {
            found = Some(unquoted(written));
        }
    }
    found
}

/// All values of `key` in the subsections of `section`. Both names are given in lower case.
pub(super) fn values_of_subsections(text: &str, section: &str, key: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim();
        if let Some(header) = rest.strip_prefix('[') {
            let (name, after) = header.split_once(']').unwrap_or((header, ""));
            let name = name.split_once(char::is_whitespace);
            inside = name.is_some_and(|(name, _)| name.eq_ignore_ascii_case(section));
            rest = after.trim();
        }
        if let Some((name, written)) = rest.split_once('=')
            && inside
            && name.trim().eq_ignore_ascii_case(key)
        {
            found.push(unquoted(written));
        }
    }
    found
}

/// Whether `section.key` is switched on in `text`.
pub(super) fn is_on(text: &str, section: &str, key: &str) -> bool {
    value(text, section, key).is_some_and(|value| {
        ["true", "yes", "on", "1"]
            .iter()
            .any(|on| value.eq_ignore_ascii_case(on))
    })
}

/// A value without its quotes, escapes and comment.
fn unquoted(written: &str) -> String {
    let mut value = String::new();
    let mut quoted = false;
    let mut characters = written.trim().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '\\' => value.extend(characters.next()),
            '#' | ';' if !quoted => break,
            other => value.push(other),
        }
    }
    value.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{is_on, value, values_of_subsections};

    #[test]
    fn the_last_value_of_the_right_section_counts() {
        let text =
            "[core]\n\tbare = false\n[Core] Bare = yes ; now\n[remote \"core\"]\nbare = no\n";
        assert!(is_on(text, "core", "bare"));
        assert!(is_on("[core]\nbare\n", "core", "bare"));
        assert!(!is_on("[x]\nbare=true\n", "core", "bare"));
    }

    #[test]
    fn fe_11_values_of_subsections_are_found_in_each_of_them() {
        let text = "[remote]\nurl = none\n[Remote \"a\"]\n\tURL = one ; x\n[core]\nurl = no\n\
                    [remote \"b]\"] \n url = \"two\"\n pushurl = no\n";
        assert_eq!(values_of_subsections(text, "remote", "url"), ["one", "two"]);
    }

    #[test]
    fn a_value_loses_quotes_and_comment() {
        let text = "[core]\nworktree = \"../a # b\" # c\n[extensions]\nrefStorage = reftable\n";
        assert_eq!(value(text, "core", "worktree").as_deref(), Some("../a # b"));
        assert_eq!(
            value(text, "extensions", "refstorage").as_deref(),
            Some("reftable")
        );
    }
}
