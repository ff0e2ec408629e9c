//! What a client's tool does, in the words of policies: what the command does that would do
//! the same.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use safepoint_authority::{
    Deed, Program, Programs, Risk, SideEffect, Surroundings, Understanding, Undo, shell,
};
use safepoint_clients::{Call, FileChange, Heard, Tool};
use safepoint_model::{Digest, json};
use safepoint_store::fault;
use serde_json::{Value, json};

use super::web_address::is_public_address;
use super::{Act, Passage};
use crate::ControlError;
use crate::world::Search;

/// What a tool is given is kept whole up to so many bytes.
const SHOWN_WHOLE: usize = 64 << 10;
/// So many of the first bytes are shown of what is longer.
const SHOWN: usize = 4 << 10;

/// What a line may set and still only call us: what it says is a secret of the caller's own.
const TOKEN: &str = "SAFEPOINT_TOKEN";

/// Our own MCP server: what its tools do passes here again, one by one.
const OURS: &str = "safepoint";

/// Every tool is there, and is what its name says.
struct AllThere;

impl Programs for AllThere {
    fn find(&self, name: &str, _: &Path) -> Program {
        Program::System(Path::new("/usr/bin").join(name))
    }
}

impl Passage<'_> {
    /// What a client's call would do, and exactly what it is. `own_tools` are those of our own
    /// server, where the client may have it; any other tool of that name is anybody's.
    pub fn tool(
        &self,
        heard: &Heard,
        call: &Call,
        variables: &[(OsString, OsString)],
        own_tools: &[&str],
    ) -> Result<Act, ControlError> {
        let search = Search::new(variables);
        let around = |programs, directory| Surroundings {
            programs,
            directory,
            home: self.home.as_deref(),
            own: &self.own,
        };
        let as_command = |words: &[&str], paths: &[&PathBuf]| -> Result<Vec<Deed>, ControlError> {
            let mut argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            for path in paths {
                argv.push(crate::world::text(&heard.directory.join(path))?);
            }
            Ok(shell::command(&argv, &around(&AllThere, &heard.directory)).deeds)
        };
        let mut deeds = Vec::new();
        match &call.tool {
            Tool::Shell {
                line, directory, ..
            } => {
                let place = match directory {
                    Some(directory) => heard.directory.join(directory),
                    None => heard.directory.clone(),
                };
                let place = std::fs::canonicalize(&place).unwrap_or(place);
                // Nothing depends on being right about words, and tests show that.
                let judged = match fault::is_switched("shell.harmless") {
                    true => "true",
                    false => line,
                };
                return Ok(Act::Tool {
                    name: format!("{}/{}", heard.client, call.name),
                    words: vec![line.clone()],
                    understood: shell::line(judged, &around(&search, &place)),
                    line: Some(line.clone()),
                });
            }
            Tool::Files(changes) => {
                for change in changes {
                    deeds.extend(match change {
                        FileChange::Write(path) => as_command(&["tee", "--"], &[path])?,
                        FileChange::Delete(path) => as_command(&["rm", "-f", "--"], &[path])?,
                        FileChange::Move { from, to } => as_command(&["mv", "--"], &[from, to])?,
                    });
                }
            }
            Tool::Read(paths) => {
                for path in paths {
                    // A directory is searched with all that is in it.
                    let words: &[&str] = match heard.directory.join(path).is_dir() {
                        true => &["grep", "-r", "-e", ".", "--"],
                        false => &["cat", "--"],
                    };
                    deeds.extend(as_command(words, &[path])?);
                }
            }
            Tool::Fetch { url: Some(url) } => {
                let argv = ["curl", "--", url].map(str::to_owned);
                deeds.extend(shell::command(&argv, &around(&AllThere, &heard.directory)).deeds);
                if !is_public_address(url) {
                    deeds.push(deed(
                        "net.connect",
                        SideEffect::Network,
                        Undo::Unknown,
                        "the client asks there itself, outside the fence, and it is no host of the public network",
                    ));
                }
            }
            Tool::Fetch { url: None } => deeds.push(deed(
                "net.fetch",
                SideEffect::Network,
                Undo::NotNeeded,
                "the client searches the web",
            )),
            // It is no authority that is passed on: what a sub-agent does is judged here.
            Tool::Delegate => deeds.push(Deed {
                effects: std::collections::BTreeSet::new(),
                ..deed(
                    "agent.delegate",
                    SideEffect::Delegate,
                    Undo::NotNeeded,
                    "what a sub-agent does passes here, one by one",
                )
            }),
            Tool::Mcp { server, tool } if server == OURS && own_tools.contains(&tool.as_str()) => {
                deeds.push(deed(
                    &of_server(server, tool),
                    SideEffect::Exec,
                    Undo::NotNeeded,
                    "it passes here itself",
                ));
            }
            Tool::Mcp { server, tool } => deeds.push(any_deed(server, tool)),
            Tool::Own => {}
            Tool::Unknown => deeds.push(deed(
                "shell.opaque",
                SideEffect::Exec,
                Undo::Unknown,
                "it is not known what this tool does",
            )),
        }
        Ok(Act::Tool {
            name: format!("{}/{}", heard.client, call.name),
            words: vec![call.name.clone(), input(&call.input)?],
            understood: of_deeds(deeds),
            line: None,
        })
    }
}

impl Act {
    /// A call of a tool of an MCP server, by whoever stands in front of it. No server is one
    /// of ours by its name alone: whoever answers to it may have chosen it.
    pub fn of_mcp(server: &str, tool: &str, given: &Value) -> Result<Self, ControlError> {
        Ok(Self::Tool {
            name: format!("mcp/{server}/{tool}"),
            words: vec![server.to_owned(), tool.to_owned(), input(given)?],
            understood: of_deeds(vec![any_deed(server, tool)]),
            line: None,
        })
    }
}

impl Passage<'_> {
    /// The commands of a line that calls `program` and does nothing else, each as its words.
    /// One that sets variables is none: they may say what the program works on.
    pub fn only_calls(
        &self,
        program: &Path,
        line: &str,
        directory: &Path,
        variables: &[(OsString, OsString)],
    ) -> Option<Vec<Vec<String>>> {
        let search = Search::new(variables);
        let around = Surroundings {
            programs: &search as &dyn Programs,
            directory,
            home: self.home.as_deref(),
            own: &self.own,
        };
        let understood = shell::line(line, &around);
        let asks = |deed: &Deed| {
            let harmless = matches!(deed.action.as_str(), "process.exec" | "file.read");
            harmless && deed.touches.is_empty() && deed.hosts.is_empty()
        };
        if understood.assigned.iter().any(|name| name != TOKEN) {
            return None;
        }
        let deeds = &understood.deeds;
        if deeds.len() != understood.commands.len() || !deeds.iter().all(asks) {
            return None;
        }
        let mut calls = Vec::new();
        for command in understood.commands {
            let words: Vec<String> = command.into_iter().collect::<Option<_>>()?;
            if !leads_to(words.first()?, program, directory, &search) {
                return None;
            }
            calls.push(words);
        }
        Some(calls)
    }
}

/// Whether a name means this program, started in `directory` under these variables.
pub fn means_program(
    name: &str,
    program: &Path,
    directory: &Path,
    variables: &[(OsString, OsString)],
) -> bool {
    leads_to(name, program, directory, &Search::new(variables))
}

fn leads_to(name: &str, program: &Path, directory: &Path, search: &Search) -> bool {
    let found = match search.find(name, directory) {
        Program::System(path) | Program::Other(path) => path,
        Program::Missing => return false,
    };
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let found = real(&found);
    found.is_some() && found == real(program)
}

fn of_deeds(deeds: Vec<Deed>) -> Understanding {
    Understanding {
        deeds,
        ..Understanding::default()
    }
}

/// What a tool of a server is called in policies.
fn of_server(server: &str, tool: &str) -> String {
    format!("mcp.{}.{}", segment(server), segment(tool))
}

/// A server does what it likes.
fn any_deed(server: &str, tool: &str) -> Deed {
    deed(
        &of_server(server, tool),
        SideEffect::Exec,
        Undo::Unknown,
        "a server decides what it does",
    )
}

fn deed(action: &str, effect: SideEffect, undo: Undo, because: &str) -> Deed {
    Deed {
        action: action.to_owned(),
        effects: [effect].into(),
        risk: match undo {
            Undo::NotNeeded => Risk::Low,
            _ => Risk::Medium,
        },
        undo,
        touches: Vec::new(),
        hosts: std::collections::BTreeSet::new(),
        because: because.to_owned(),
    }
}

/// A name as one segment of an action: what separates segments is not in it.
fn segment(name: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || c == '_' || c == '-' {
        true => c,
        false => '_',
    };
    match name.is_empty() {
        true => "_".to_owned(),
        false => name.chars().map(plain).collect(),
    }
}

/// What a tool is given, exactly; of what is very long, its digest and how it begins.
fn input(given: &Value) -> Result<String, ControlError> {
    let bytes = json::canonical(given).map_err(|error| ControlError::Proposal {
        reason: format!("what the tool is given cannot be written down exactly: {error}"),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| ControlError::Proposal {
        reason: error.to_string(),
    })?;
    if text.len() <= SHOWN_WHOLE {
        return Ok(text);
    }
    let begins: String = text.chars().take(SHOWN).collect();
    let digest = Digest::of_parts(&[text.as_bytes()]);
    Ok(json!({"bytes": text.len(), "digest": digest, "begins": begins}).to_string())
}
