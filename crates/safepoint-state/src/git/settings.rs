//! What git is told at every call, so that it runs nothing but itself.
//!
//! A repository is written by whoever wrote the work tree: its configuration
//! must never decide which programs run under our name. Of the user's
//! environment and configuration everything else is left as it is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A setting of git and the value it must have.
pub(super) type Setting = (OsString, OsString);

/// Comes back from `git config` when git reads settings from the environment.
pub(super) const PROBE: &str = "safepoint.probe";

/// What every call is told.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    (PROBE, "true"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "keep"),
    ("core.quotePath", "false"),
    ("core.pager", "cat"),
    ("core.askPass", ""),
    ("credential.helper", ""),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    // Would run gpg for every signed commit that is listed.
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
];

/// The variables that every call gets.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // For a git that does not know the line above: no transport is allowed.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PAGER", "cat"),
    // Set and not removed: `trace2.*` of the configuration counts otherwise.
    ("GIT_TRACE2", "0"),
    ("GIT_TRACE2_EVENT", "0"),
    ("GIT_TRACE2_PERF", "0"),
    ("GIT_AUTHOR_NAME", "Safepoint"),
    ("GIT_AUTHOR_EMAIL", "safepoint@localhost"),
    ("GIT_COMMITTER_NAME", "Safepoint"),
    ("GIT_COMMITTER_EMAIL", "safepoint@localhost"),
];

/// The variables of git that say where the user's configuration is. All others
/// of its variables are dropped.
const KEPT: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_ATTR_NOSYSTEM",
];

/// Commands that may show differences, for which programs can be configured.
pub(super) const SHOWING: &[&str] = &[
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "log",
    "show",
];

/// Whether a variable of the user's process is passed on.
pub(super) fn is_inherited(name: &OsStr) -> bool {
    !name.as_bytes().starts_with(b"GIT_") || KEPT.iter().any(|kept| name == *kept)
}

/// The settings that switch off the filter or hook that the setting `name`
/// belongs to.
pub(super) fn silenced(name: &[u8]) -> Vec<Setting> {
    let Some(end) = name.iter().rposition(|&byte| byte == b'.') else {
        return Vec::new();
    };
    let subject = name.get(..end).unwrap_or_default();
    let values: &[(&str, &str)] = if subject.starts_with(b"filter.") {
        &[
            ("clean", ""),
            ("smudge", ""),
            ("process", ""),
            ("required", "false"),
        ]
    } else if subject.starts_with(b"hook.") {
        &[("enabled", "false")]
    } else {
        &[]
    };
    let full = |key: &str| [subject, b".", key.as_bytes()].concat();
    values
        .iter()
        .map(|&(key, value)| (OsString::from_vec(full(key)), value.into()))
        .collect()
}
