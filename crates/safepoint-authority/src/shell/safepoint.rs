//! Safepoint called by a line: an agent may ask and look, never decide.

use super::actions::{self, CONTROL, EXEC, READ, WRITE};
use super::state::{Argument, State};
use super::walk::Walker;
use crate::Role;

/// What a command of Safepoint does for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentUse {
    /// It only looks.
    Look,
    /// It is a step of the agent's own work, judged where it gets there.
    Act,
}

/// Where a command runs when an agent behind the fence calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentReach {
    /// Outside: the process that keeps the fence runs it for the agent, in its workspace and
    /// its session.
    Outside,
    /// Where the agent is: it needs no store, and reads or writes files that the caller names.
    Inside,
}

/// A command that agents may call.
#[derive(Clone, Copy, Debug)]
pub struct AgentCommand {
    /// Its words, such as `session answer`.
    pub name: &'static str,
    /// What it does.
    pub kind: AgentUse,
    /// Where it runs.
    pub reach: AgentReach,
}

const fn look(name: &'static str) -> AgentCommand {
    AgentCommand {
        name,
        kind: AgentUse::Look,
        reach: AgentReach::Outside,
    }
}

const fn look_inside(name: &'static str) -> AgentCommand {
    AgentCommand {
        reach: AgentReach::Inside,
        ..look(name)
    }
}

const fn act(name: &'static str) -> AgentCommand {
    AgentCommand {
        kind: AgentUse::Act,
        ..look(name)
    }
}

/// All commands that agents may call, and the only list of them: hooks, the broker of the
/// fence and the MCP server read it. Whatever is not here is an operator's: to begin or end a
/// session, too, since the next one is under other rules. `hook` is the client's own, which
/// calls it without a line of the agent's.
pub const AGENT_COMMANDS: &[AgentCommand] = &[
    look_inside("atlas check"),
    look_inside("atlas schema"),
    look_inside("atlas show"),
    look_inside("atlas test"),
    look("audit"),
    look("completions"),
    look("diff"),
    look("du"),
    look("help"),
    look("hold list"),
    look("hold show"),
    look("list"),
    look("log"),
    look_inside("man"),
    look("operator list"),
    look("permit list"),
    look("permit show"),
    look("schema"),
    look("session list"),
    look("session show"),
    look("show"),
    look("status"),
    look("task list"),
    look("task show"),
    look_inside("trail check-bundle"),
    look_inside("trail check-proof"),
    look("trail head"),
    look("trail list"),
    look("trail prove"),
    look("trail show"),
    look("trail verify"),
    look("trust list"),
    look("workspace final"),
    look("workspace head"),
    look("workspace list"),
    look("workspace log"),
    look("workspace show"),
    look("workspace signals"),
    look("workspace verify"),
    look("workspace watch"),
    act("checkpoint"),
    act("exec"),
    act("mutate"),
    act("redo"),
    act("rollback"),
    act("session access"),
    act("session answer"),
    act("session ask"),
    act("session input"),
    act("session report"),
    act("session request"),
    act("trail note"),
    act("undo"),
    act("verify"),
    // With the token of its workspace; everything else of it is the coordinator's.
    act("workspace checkpoint"),
    act("workspace signal"),
];

/// The command that these words begin with, if agents may call it.
pub fn agent_command(words: &[&str]) -> Option<&'static AgentCommand> {
    AGENT_COMMANDS.iter().find(|command| {
        let name: Vec<&str> = command.name.split(' ').collect();
        words.starts_with(&name)
    })
}

/// Options that take no value and change nothing but what is printed.
const PLAIN: [&str; 8] = [
    "--json",
    "-q",
    "--quiet",
    "-y",
    "--yes",
    "--help",
    "-h",
    "--version",
];

/// How a line names the repository it works in. What that is, is looked at when it gets there.
const TOP_LEVEL: &str = "$(git rev-parse --show-toplevel)";

/// Options that take the next word, and change nothing but where it works and what is printed.
/// In which directory it may work is decided where it gets there.
const VALUED: [&str; 3] = ["-C", "--output", "--color"];

/// The words that say what is asked for. They end where an option might take the next word
/// for its value; one before them, or another store, leaves nothing certain.
fn certain_words(arguments: &[Argument]) -> Vec<&str> {
    let mut words = Vec::new();
    let mut certain = true;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.known() {
            Some("--") => break,
            Some(text) if VALUED.contains(&text) => match arguments.next() {
                // An unquoted variable could be several words.
                Some(value) if is_several(value) => return vec!["\0"],
                _ => {}
            },
            // `-C.`: with its value in one word.
            Some(text) if text.starts_with("-C") => {}
            Some(text) if PLAIN.contains(&text) => {}
            Some(text) if text.starts_with("--store") => return vec!["\0"],
            Some(text) if text.starts_with('-') => {
                certain &= text.starts_with("--output=") || text.starts_with("--color=");
            }
            Some(text) if certain => words.push(text),
            Some(_) => {}
            None if argument.start().starts_with('-') => return vec!["\0"],
            None if certain => words.push("\0"),
            None => {}
        }
    }
    if !certain && words.is_empty() {
        words.push("\0");
    }
    words
}

/// Whether a word may turn out to be none, or more than one.
fn is_several(argument: &Argument) -> bool {
    match argument {
        Argument::Known(_) => false,
        Argument::Pattern { .. } => true,
        Argument::Dynamic {
            splits, written, ..
        } => *splits && written != TOP_LEVEL,
    }
}

/// The file that what is printed goes to.
fn written(arguments: &[Argument]) -> Option<Argument> {
    let ours = arguments.iter();
    let mut ours = ours.take_while(|word| word.known() != Some("--"));
    while let Some(argument) = ours.next() {
        let text = argument.known().unwrap_or_default();
        if text == "--out" {
            return ours.next().cloned();
        }
        if let Some(file) = text.strip_prefix("--out=") {
            return Some(Argument::Known(file.to_owned()));
        }
    }
    None
}

/// Follows a call of `safepoint`. One that is not this program itself, and does not lie where only
/// the system's owner writes, may be anything of that name, and so may what is put into it when it
/// runs.
pub(super) fn follow(
    walker: &mut Walker<'_>,
    arguments: &[Argument],
    is_known: bool,
    state: &State,
) {
    let is_certain = is_known && arguments.iter().all(|word| word.known().is_some());
    let words = certain_words(arguments);
    let is_cut = arguments.iter().any(|word| word.known() == Some("--"));
    let kind = match words.is_empty() {
        true if is_cut => None,
        true => Some(AgentUse::Look),
        false => agent_command(&words).map(|command| command.kind),
    };
    let action = match kind {
        Some(AgentUse::Look) if is_certain => READ,
        Some(_) => EXEC,
        None => CONTROL,
    };
    let mut deed = actions::deed(
        action,
        match action {
            CONTROL => "`safepoint` is told what only an operator may say".to_owned(),
            _ => "`safepoint` is asked".to_owned(),
        },
    );
    if action == EXEC && words.first() == Some(&"exec") {
        // What it runs is judged when it gets there.
        deed.because = "`safepoint exec` judges what it runs".to_owned();
    }
    walker.add(deed);
    if let Some(file) = written(arguments).filter(|_| action != CONTROL) {
        let because = "`safepoint` writes what it is asked for there";
        walker.file(WRITE, &[(file, Role::Write)], because, state);
    }
}
