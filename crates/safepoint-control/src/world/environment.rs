//! The variables that a command gets, and how they are shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use safepoint_trail::Trail;
use serde_json::{Map, Value};

use crate::ControlError;

/// Variables that say where a terminal is, not what a command does. They differ from one
/// terminal to the next, so an approval bound to them could not be used; they are not passed on.
const LEFT_OUT: [&str; 22] = [
    "_",
    "COLUMNS",
    "GPG_TTY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "SYSTEMD_EXEC_PID",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "VTE_VERSION",
    "WINDOW",
    "WINDOWID",
    "WT_SESSION",
    "XDG_SESSION_ID",
];

/// Variables by which somebody else's code gets into a program that is known: what was judged
/// would not be what runs. They are not passed on.
const CHOOSING: [&str; 20] = [
    "BASHOPTS",
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "IFS",
    "LD_AUDIT",
    "LD_PRELOAD",
    "LESSCLOSE",
    "LESSOPEN",
    "PERL5DB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONINSPECT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SHELLOPTS",
    "TAR_OPTIONS",
];
const CHOOSING_FAMILIES: [&str; 3] = ["BASH_FUNC_", "GIT_CONFIG_", "SAFEPOINT_"];

fn chooses_code(name: &str) -> bool {
    CHOOSING.contains(&name) || CHOOSING_FAMILIES.iter().any(|it| name.starts_with(it))
}

/// Variables as they are passed on, and as they are shown.
pub(crate) struct Variables {
    /// What the command gets.
    pub(crate) real: Vec<(OsString, OsString)>,
    /// The same, with a keyed digest in place of whatever looks like a secret.
    pub(crate) shown: BTreeMap<String, String>,
}

/// The variables that a command gets.
pub(crate) fn pass_on(
    variables: &[(OsString, OsString)],
    directory: &Path,
    trail: &Trail,
) -> Result<Variables, ControlError> {
    let mut real = Vec::new();
    let mut shown = Map::new();
    for (name, value) in variables {
        let (Some(name_text), Some(value_text)) = (name.to_str(), value.to_str()) else {
            return Err(ControlError::Proposal {
                reason: format!(
                    "the variable `{}` is not UTF-8, so nobody could be shown it; unset it",
                    name.display()
                ),
            });
        };
        if LEFT_OUT.contains(&name_text) || chooses_code(name_text) {
            continue;
        }
        real.push((name.clone(), value.clone()));
        shown.insert(name_text.to_owned(), Value::from(value_text));
    }
    real.push(("PWD".into(), directory.into()));
    let mut shown = Value::Object(shown);
    trail.redact(&mut shown);
    let shown = match shown {
        Value::Object(shown) => shown
            .into_iter()
            .map(|(name, value)| {
                let value = match value {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                (name, value)
            })
            .collect(),
        _ => BTreeMap::new(),
    };
    Ok(Variables { real, shown })
}
