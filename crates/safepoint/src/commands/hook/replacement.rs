//! The line that a client is given in the place of the one it wanted to run.
//!
//! A client looks at the line that it is about to run: its own rules may forbid it, or want a
//! person to be asked. So the line as it was written stands in the replacement too, behind
//! commands that never let the shell come so far:
//!
//! ```text
//! exec safepoint perform ACTION -- bash -c 'LINE' || exit 126
//! LINE
//! ```
//!
//! The clients take a line apart into its commands and compare each of them. The first two lines
//! are made of plain words, so that what a client can take apart it can still take apart.

use crate::error::CliError;

/// The kernel takes no longer argument (`MAX_ARG_STRLEN`), and the client's shell gets the whole
/// replacement as one.
const MAX_REPLACEMENT_BYTES: usize = 127 << 10;

/// What runs `line` through `program`, and shows it to the client.
pub(super) fn of_line(program: &str, line: &str) -> Result<String, CliError> {
    let replacement = format!(
        "exec {program} -- bash -c {} || exit 126\n{line}",
        quoted(line)
    );
    match replacement.len() <= MAX_REPLACEMENT_BYTES {
        true => Ok(replacement),
        false => Err(CliError::Invalid {
            message: format!("this line has {} bytes, which is too long", line.len()),
            suggestion: "write it to a file with a file tool, and run that",
        }),
    }
}

/// One word for a shell. Quotes inside are quoted by quotes, not by a backslash: Codex takes no
/// line apart that has one outside of quotes.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r#"'"'"'"#)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_06_the_line_as_it_was_written_stands_behind_what_runs_it() {
        let replacement = of_line("/opt/safepoint perform act_x", "git commit -m 'a b'").unwrap();
        assert_eq!(
            replacement,
            "exec /opt/safepoint perform act_x -- bash -c 'git commit -m '\"'\"'a b'\"'\"'' || exit 126\n\
             git commit -m 'a b'"
        );
    }

    #[test]
    fn fe_06_a_line_that_no_shell_takes_twice_is_refused() {
        let line = "x".repeat(60 << 10);
        assert!(of_line("p", &line).is_ok());
        assert!(of_line("p", &"x".repeat(64 << 10)).is_err());
    }
}
