//! The variables that a command gets, and how they are shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use safepoint_trail::Trail;

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

/// Variables by which somebody else's code gets into a program that is known, or by which git
/// works on another repository than the one that was seen: what was judged would not be what
/// runs. They are not passed on.
const CHOOSING: [&str; 28] = [
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "ENV",
    "GCONV_PATH",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_NAMESPACE",
    "GIT_PROXY_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
    "IFS",
    "LESSCLOSE",
    "LESSKEYIN",
    "LESSKEY_CONTENT",
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
    "ZDOTDIR",
];
const CHOOSING_FAMILIES: [&str; 5] = ["BASH_FUNC_", "DYLD_", "GIT_CONFIG", "LD_", "SAFEPOINT_"];

/// Where libraries are looked for. It has honest uses, so it is passed on without the places
/// that an agent can write to.
const LIBRARIES: &str = "LD_LIBRARY_PATH";
/// Folders that everybody can write to.
const FREE_FOR_ALL: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Programs that only show text. Another one would run whenever something is shown.
const PAGERS: [&str; 8] = [
    "bat",
    "batcat",
    "cat",
    "delta",
    "diff-so-fancy",
    "less",
    "more",
    "most",
];

fn chooses_code(name: &str, value: &str) -> bool {
    if CHOOSING.contains(&name) || CHOOSING_FAMILIES.iter().any(|it| name.starts_with(it)) {
        return true;
    }
    match name {
        // `+!command` is done before anything is shown.
        "LESS" | "MORE" => value.contains(['+', '!']),
        name if name.ends_with("PAGER") => !is_pager(value),
        _ => false,
    }
}

fn is_pager(value: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || " -_=./".contains(it);
    let program = value.split(' ').next().unwrap_or_default();
    let name = program.strip_prefix("/usr/bin/").unwrap_or(program);
    value.chars().all(plain) && (value.is_empty() || PAGERS.contains(&name))
}

/// A list of places without those that an agent can write to.
fn guarded_places(value: &str, workspace: &Path) -> String {
    let free = |place: &Path| {
        let real = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
        let within = |top: &Path| place.starts_with(top) || real.starts_with(top);
        within(workspace) || FREE_FOR_ALL.iter().any(|top| within(Path::new(top)))
    };
    let places = value.split(':').filter(|place| {
        let place = Path::new(place);
        place.is_absolute() && !free(place)
    });
    places.collect::<Vec<&str>>().join(":")
}

/// Variables as they are passed on, and as they are shown.
#[derive(Default)]
pub(crate) struct Variables {
    /// What the command gets.
    pub(crate) real: Vec<(OsString, OsString)>,
    /// The same, with a keyed digest in place of each value: any of them may be a secret,
    /// whatever it looks like. A change of a value changes the digest.
    pub(crate) shown: BTreeMap<String, String>,
}

/// The variables that a command gets.
pub(crate) fn pass_on(
    variables: &[(OsString, OsString)],
    directory: &Path,
    workspace: &Path,
    trail: &Trail,
) -> Result<Variables, ControlError> {
    let mut real = Vec::new();
    let mut shown = BTreeMap::new();
    for (name, value) in variables {
        let (Some(name_text), Some(value_text)) = (name.to_str(), value.to_str()) else {
            return Err(ControlError::Proposal {
                reason: format!(
                    "the variable `{}` is not UTF-8, so nobody could be shown it; unset it",
                    name.display()
                ),
            });
        };
        let kept = match name_text {
            LIBRARIES => guarded_places(value_text, workspace),
            _ => value_text.to_owned(),
        };
        let is_library_path = name_text == LIBRARIES && !kept.is_empty();
        if LEFT_OUT.contains(&name_text)
            || (chooses_code(name_text, value_text) && !is_library_path)
        {
            continue;
        }
        real.push((name.clone(), OsString::from(&kept)));
        shown.insert(name_text.to_owned(), trail.mark_variable(name_text, &kept));
    }
    real.push(("PWD".into(), directory.into()));
    Ok(Variables { real, shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au_25_what_chooses_code_is_known_by_name_and_by_value() {
        for (name, value) in [
            ("LD_PRELOAD", "x.so"),
            ("LD_AUDIT", "x.so"),
            ("BASH_ENV", "x"),
            ("BASH_FUNC_ls%%", "() { x; }"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_GLOBAL", "x"),
            ("GIT_DIR", "x"),
            ("GIT_EXEC_PATH", "x"),
            ("LESS", "+!x"),
            ("PAGER", "./x"),
            ("GIT_PAGER", "less; x"),
            ("MANPAGER", "sh -c x"),
        ] {
            assert!(chooses_code(name, value), "{name}");
        }
        for (name, value) in [
            ("LANG", "C"),
            ("GIT_AUTHOR_NAME", "Ann"),
            ("GIT_SSH_COMMAND", "ssh -i key"),
            ("LESS", "-R -F"),
            ("PAGER", "less -R"),
            ("GIT_PAGER", ""),
            ("MANPAGER", "/usr/bin/most"),
            ("PYTHONPATH", "src"),
        ] {
            assert!(!chooses_code(name, value), "{name}");
        }
    }

    #[test]
    fn au_25_libraries_come_from_no_place_an_agent_writes_to() {
        let workspace = Path::new("/srv/site");
        let kept = |value: &str| guarded_places(value, workspace);
        assert_eq!(kept("/opt/cuda/lib:/srv/site/lib"), "/opt/cuda/lib");
        assert_eq!(kept("lib::/tmp/x:/srv/site/../site/x"), "");
        assert_eq!(kept("/srv/sites/lib"), "/srv/sites/lib");
    }
}
