//! Understanding command lines, before they run.
//!
//! A line is parsed, every command in it is found, each program is told by
//! what it is and not by what it is called, and what it would do is looked up
//! in tables (`rules/*.toml`). What cannot be understood is a deed of its own,
//! `shell.opaque`: a line is never said to do less than it does because a part
//! of it was too hard. Nothing is run and nothing is read from the machine,
//! except through the `Programs` that the caller gives.

mod actions;
mod assign;
mod awk;
mod brace;
mod builtin;
mod code;
mod compound;
mod copy;
mod database;
mod draft;
mod expand;
mod files;
mod git;
mod guard;
mod guarded;
mod home;
mod net;
mod operator;
mod options;
mod parameter;
mod parse;
mod place;
mod program;
mod redirect;
mod remote;
mod run;
mod safepoint;
mod search;
mod sed;
mod special;
mod sql;
mod state;
mod subcommand;
mod syntax;
mod table;
mod tilde;
mod tools;
mod transfer;
mod variables;
mod walk;
mod word;

use crate::deed::{Surroundings, Understanding};

pub use safepoint::{AGENT_COMMANDS, AgentCommand, AgentReach, AgentUse, agent_command};
use state::{Argument, State};
use walk::{Input, Walker};

/// What a line for the shell would do.
pub fn line(text: &str, around: &Surroundings<'_>) -> Understanding {
    let mut walker = Walker::new(around);
    let mut state = State::new(around.directory);
    walker.text(text, &mut state, &Input::Inherited);
    finish(walker)
}

/// What a program with these arguments would do.
pub fn command(argv: &[String], around: &Surroundings<'_>) -> Understanding {
    let mut walker = Walker::new(around);
    let mut state = State::new(around.directory);
    let words: Vec<Argument> = argv.iter().cloned().map(Argument::Known).collect();
    if argv.is_empty() {
        walker.opaque("there is no program");
    }
    walker.start(&words, &Input::Inherited, &mut state);
    finish(walker)
}

/// What only the whole line tells.
fn finish(mut walker: Walker<'_>) -> Understanding {
    walker.named_secrets();
    // A line that only prints still is something that was done.
    if walker.out.deeds.is_empty() {
        walker.add(actions::deed(actions::READ, "it only looks".to_owned()));
    }
    walker.out
}
