//! Which commands are run for an agent outside its fence, and how one is told from a person.
//!
//! The list of commands is `AGENT_COMMANDS` in `safepoint-authority`; here is what their
//! arguments may say. Nothing is run here.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use safepoint_authority::shell::{AgentReach, agent_command};

use crate::cli::Cli;
use crate::context::real_path;

/// Since when what nobody else is known to have changed is the agent's own work. Only this
/// program sets it, for what it runs for an agent.
pub(crate) const WORKS_SINCE: &str = "SAFEPOINT_WORKS_SINCE";

/// What an agent is called whose program nobody knows: one that `run` keeps.
pub(crate) const KEPT_AGENT: &str = "1";

/// The workspace that a client speaks of whose hooks are served for `run`.
pub(crate) const HOOK_ROOT: &str = "SAFEPOINT_HOOK_ROOT";

/// The directory that is the workspace, set by this program for what it runs for an agent: the
/// agent can change what a search for it would find.
pub(crate) const PINNED_ROOT: &str = "SAFEPOINT_ROOT";

/// Runs a command without a fence, which is a person's to choose.
const NO_FENCE: &str = "--no-fence";

/// Set for what `run` serves to the agent that it keeps: sessions of the agent's client are its own.
pub(crate) const KEPT_BY_RUN: &str = "SAFEPOINT_KEPT";

/// Options that name a file, a place, a store or a session, or widen what is looked at: behind
/// them an agent could reach what its fence keeps from it.
const REACHING_OPTIONS: [&str; 7] = [
    "--all-workspaces",
    "--identity",
    "--into",
    "--key",
    "--out",
    "--session",
    "--store",
];

/// Arguments whose values are words for people, or paths in the workspace: `@` has no meaning
/// in them. In all others it may begin the name of a file that is read.
const PLAIN_ARGUMENTS: [(&str, &str); 12] = [
    ("checkpoint", "reason"),
    ("checkpoint", "scope"),
    ("diff", "paths"),
    ("exec", "objective"),
    ("log", "paths"),
    ("audit", "scope"),
    ("mutate", "target"),
    ("mutate", "verify"),
    ("rollback", "paths"),
    ("rollback", "reason"),
    ("session ask", "topic"),
    ("trail note", "text"),
];

/// Why a command is not run for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentRefusal {
    /// It is an operator's, or one that only runs where the agent is.
    Command,
    /// One of its arguments names a file, a store or a session.
    Argument,
    /// It asks for no fence.
    Fence,
    /// It would work in another directory than the agent's workspace.
    Directory,
}

impl AgentRefusal {
    /// What the agent is told.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Command => {
                "error: this is not for agents, or not in this place\n\
                 hint: `safepoint help` lists the commands; ask a person for what only operators do\n"
            }
            Self::Argument => {
                "error: this is not for agents: an argument names a file, a store, a session or other workspaces\n\
                 hint: give the value itself, or `-` and the value on standard input\n"
            }
            Self::Fence => {
                "error: what an agent runs stays behind the fence\n\
                 hint: leave out `--no-fence`; what is refused inside becomes a question to a person\n"
            }
            Self::Directory => {
                "error: this is not for agents, or not in this place: it is outside the workspace\n\
                 hint: call it from inside the workspace, or name a directory in it with `-C`\n"
            }
        }
    }
}

/// Says whether an agent that works in `root` may have these words, without the name of the
/// program, run outside its fence, from `directory`. Words that cannot be parsed explain
/// themselves, and do nothing.
pub(crate) fn check_agent_call(
    words: &[OsString],
    root: &Path,
    directory: &Path,
) -> Result<(), AgentRefusal> {
    let all = || std::iter::once(OsString::from("safepoint")).chain(words.iter().cloned());
    let Ok(cli) = Cli::try_parse_from(all()) else {
        return Ok(());
    };
    match reach_of(all()) {
        Some(AgentReach::Outside) => {}
        _ => return Err(AgentRefusal::Command),
    }
    let mut ours = words.iter().take_while(|word| *word != "--");
    if ours.clone().any(|word| word == NO_FENCE) {
        return Err(AgentRefusal::Fence);
    }
    if ours.any(|word| reaches_out(&word.to_string_lossy())) || names_file(all()) {
        return Err(AgentRefusal::Argument);
    }
    let place = match &cli.global.directory {
        Some(named) => directory.join(named),
        None => directory.to_owned(),
    };
    match real_path(&place).starts_with(root) {
        true => Ok(()),
        false => Err(AgentRefusal::Directory),
    }
}

/// Whether a command line, with the name of the program, is one for agents that runs where it is
/// called.
pub(crate) fn runs_inside(words: &[OsString]) -> bool {
    reach_of(words.iter().cloned()) == Some(AgentReach::Inside)
}

/// Where a command line runs that an agent calls; `None` if it is not for agents.
fn reach_of(words: impl Iterator<Item = OsString>) -> Option<AgentReach> {
    let (name, _) = command_of(words)?;
    let name: Vec<&str> = name.iter().map(String::as_str).collect();
    agent_command(&name).map(|command| command.reach)
}

fn reaches_out(word: &str) -> bool {
    let reaching = |option: &str| {
        word.strip_prefix(option)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    REACHING_OPTIONS.iter().any(|it| reaching(it))
}

/// Whether a value is the name of a file that would be read: `@FILE` or `NAME=@FILE`, but not a
/// value that has `=@` in it.
fn names_file(words: impl Iterator<Item = OsString>) -> bool {
    let Some((name, matches)) = command_of(words) else {
        return false;
    };
    let name = name.join(" ");
    let is_name = |name: &str| {
        let plain = |c: char| c.is_alphanumeric() || "._-/=".contains(c);
        name.chars().all(plain)
    };
    let is_file = |word: &str| match word.split_once('@') {
        Some(("", rest)) => rest != "-",
        Some((name, _)) => name.ends_with('=') && is_name(name),
        None => false,
    };
    let may_be_file = |id: &str| {
        // What is run is judged where it runs.
        !PLAIN_ARGUMENTS.contains(&(name.as_str(), id))
            && (name.as_str(), id) != ("exec", "command")
    };
    matches
        .ids()
        .filter(|id| may_be_file(id.as_str()))
        .any(|id| {
            let values = matches.try_get_raw(id.as_str()).ok().flatten();
            values.is_some_and(|mut values| values.any(|it| is_file(&it.to_string_lossy())))
        })
}

/// The words of the command that a command line names, such as `session`, `answer`, and what is
/// given to it.
fn command_of(words: impl Iterator<Item = OsString>) -> Option<(Vec<String>, clap::ArgMatches)> {
    let mut name = Vec::new();
    let mut matches = crate::command_line().try_get_matches_from(words).ok()?;
    while let Some((word, below)) = matches.remove_subcommand() {
        name.push(word);
        matches = below;
    }
    Some((name, matches))
}

#[cfg(test)]
mod tests {
    use safepoint_clients::skills::Skill;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn checked(line: &str) -> Result<(), AgentRefusal> {
        check_agent_call(&words(line), Path::new("/usr"), Path::new("/usr/bin"))
    }

    #[test]
    fn au_04_what_is_run_for_agents_keeps_to_their_list_and_their_workspace() {
        for line in [
            "checkpoint --reason x=@y",
            "checkpoint --reason @alice @types/x",
            "trail note @bob",
            "diff chk_1 -- @types",
            "exec -- npm install @types/node",
            "-C /usr rollback chk_1 --json",
            "-C .. log",
            "mutate a --checkpoint chk_1 --operation {\"content\":\"a=@b\"}",
            "mutate a --checkpoint chk_1 --operation - --verify true",
            "audit --since 1h",
            "session answer ses_1 gate --answers {}",
            "log --nonsense",
        ] {
            assert_eq!(checked(line), Ok(()), "{line}");
        }
        for line in [
            "gc",
            "operator add me",
            "session start",
            "hook claude-code",
            "doctor",
            "install codex",
        ] {
            assert_eq!(checked(line), Err(AgentRefusal::Command), "{line}");
        }
        for line in [
            "--store=sqlite:x status",
            "mutate a --checkpoint chk_1 --operation @/etc/passwd",
            "checkpoint --state a=@/etc/passwd",
            "rollback chk_1 --identity key",
            "exec --session ses_2 -- ls",
            "session input ses_1 @/etc/passwd",
            "session answer ses_1 gate --answers=@/etc/passwd",
            "log --all-workspaces",
            "list --all-workspaces",
        ] {
            assert_eq!(checked(line), Err(AgentRefusal::Argument), "{line}");
        }
        for line in [
            "exec --no-fence -- git status",
            "--json exec --timeout 1m --no-fence -- ls",
        ] {
            assert_eq!(checked(line), Err(AgentRefusal::Fence), "{line}");
        }
        assert_eq!(checked("exec -- printf --no-fence"), Ok(()));
        for line in ["-C / log", "-C /usr/../etc undo", "-C /nowhere undo"] {
            assert_eq!(checked(line), Err(AgentRefusal::Directory), "{line}");
        }
        let outside = check_agent_call(&words("log"), Path::new("/usr"), Path::new("/"));
        assert_eq!(outside, Err(AgentRefusal::Directory));
    }

    /// The command lines of a text, each as its words: what stands between single or double
    /// quotes is one word, and a redirection ends it.
    fn command_lines(text: &str) -> Vec<Vec<String>> {
        let starts = text.match_indices("PROGRAM ");
        let lines = starts.filter_map(|(start, found)| {
            let rest = text.get(start + found.len()..)?;
            let end = rest.find(['\n', '`']).unwrap_or(rest.len());
            rest.get(..end)
        });
        lines
            .map(|line| split(line.split(" < ").next().unwrap_or(line)))
            .collect()
    }

    fn split(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for c in line.chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '\'' | '"') => quote = Some(c),
                (None, ' ') => words.push(String::new()),
                (_, c) => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn ag_11_every_command_that_a_skill_teaches_parses_and_is_for_agents() {
        let mut taught = std::collections::BTreeSet::new();
        for skill in Skill::all() {
            let lines = command_lines(skill.source);
            assert!(!lines.is_empty(), "{}", skill.name);
            for line in lines {
                let words = line.iter().map(|word| match word.as_str() {
                    "CHECKPOINT" => "chk_1",
                    "ACTION" => "act_1",
                    "TARGET" => "a.txt",
                    other => other,
                });
                let words: Vec<OsString> = words.map(OsString::from).collect();
                let all = || std::iter::once("safepoint".into()).chain(words.iter().cloned());
                let parsed = Cli::try_parse_from(all());
                assert!(parsed.is_ok(), "{}: {line:?}: {parsed:?}", skill.name);
                let place = Path::new("/usr");
                assert_eq!(check_agent_call(&words, place, place), Ok(()), "{line:?}");
                if let Some(place) = words.iter().position(|word| word == "--operation") {
                    let operation = words[place + 1].to_string_lossy().into_owned();
                    let read = safepoint_state::mutate::operation::read(operation.as_bytes());
                    assert!(operation == "-" || read.is_ok(), "{operation}: {read:?}");
                }
                taught.extend(command_of(all()).and_then(|it| it.0.first().cloned()));
            }
        }
        for command in [
            "checkpoint",
            "mutate",
            "verify",
            "diff",
            "rollback",
            "undo",
            "redo",
            "log",
        ] {
            assert!(taught.contains(command), "{command} is taught nowhere");
        }
    }
}
