//! One event of a client, and what follows from it.

use std::path::{Path, PathBuf};

use clap::Parser;
use safepoint_authority::DenialCode;
use safepoint_clients::{
    Call, Client, Event, FileChange, Heard, Reply, SHELL_PREFIX, Tool, shell_prefix_program,
};
use safepoint_control::ControlError;
use safepoint_control::pass::{
    Act, Answer, CallKind, FileTarget, Leave, Passage, Proposal, Stdin, Visitor, means_program,
};
use safepoint_gates::Resolution;
use safepoint_model::{ActionId, Digest, SessionId};

use super::{Arguments, PerformedName, reason};
use crate::cli::{Cli, Command};
use crate::commands::agents::{HOOK_ROOT, check_agent_call};
use crate::commands::passing::{Flags, Room};
use crate::commands::perform::note_settings;
use crate::commands::perform::relay::{self, RelayedLine};
use crate::commands::session::deliver;
use crate::commands::waiting::{Asked, StopSignals, Waited, wait_until};
use crate::context::Context;
use crate::error::CliError;

/// One event of a client.
pub(super) struct Visit<'a> {
    context: &'a mut Context,
    arguments: &'a Arguments,
    heard: &'a Heard,
}

impl<'a> Visit<'a> {
    pub(super) fn new(
        context: &'a mut Context,
        arguments: &'a Arguments,
        heard: &'a Heard,
    ) -> Self {
        Self {
            context,
            arguments,
            heard,
        }
    }

    /// What the client is answered.
    pub(super) fn reply(mut self) -> Result<Reply, CliError> {
        let nothing = Reply::Pass { context: None };
        match &self.heard.event {
            Event::Before(call) if call.tool == Tool::Own => Ok(nothing),
            Event::Before(call) => self.before(call),
            Event::After { call, .. } if call.tool == Tool::Own => Ok(nothing),
            Event::After {
                call,
                ended,
                result,
            } => self.after(call, *ended, result),
            Event::SessionStart => self.begin(),
            Event::Prompt { text } => self.prompt(text),
            Event::Stop => self.stop(),
            Event::SessionEnd => self.end(),
            // It was judged before the client began to ask.
            Event::Permission(_) | Event::Other => Ok(nothing),
        }
    }

    /// Before a tool: judged, and made undoable.
    fn before(&mut self, call: &Call) -> Result<Reply, CliError> {
        let flags = self.flags();
        let room = self.room(&flags)?;
        let passage = room.passage();
        if self.is_our_own(&passage, call) {
            return self.own_call(&room, &flags, call);
        }
        let own_tools = self.own_tools(&passage);
        let variables = self.context.environment.variables();
        let mut act = passage.tool(self.heard, call, &variables, &own_tools)?;
        if let Act::Tool { line, .. } = &mut act
            && (passage.is_within || !(self.can_run_instead(call) || self.has_shell_prefix()))
        {
            *line = None;
        }
        let mut proposal = self.proposal(&room, &flags, act, visitor(self.heard, call))?;
        if let Tool::Shell {
            directory: Some(directory),
            ..
        } = &call.tool
        {
            proposal.directory = real_directory(&self.heard.directory.join(directory))?;
        }
        let (session, begun) = passage.enter(&proposal)?;
        proposal.session = Some(session);
        let begun = begun.as_ref().and_then(reason::context);
        let leave = match self.ask(&room, &passage, &proposal)? {
            Answer::Leave(leave) => leave,
            Answer::Denied(denied) => {
                return Ok(Reply::Deny {
                    reason: reason::of_denial(&denied),
                });
            }
        };
        let told = reason::context_of_call(&leave.resolution);
        let context = reason::joined(begun, told);
        self.start_relay(call, &leave)?;
        Ok(match &leave.line {
            // The client starts it through us.
            Some(_) if self.has_shell_prefix() => Reply::Pass { context },
            None => Reply::Pass { context },
            Some(line) => Reply::Instead {
                line: self.arguments.performing(
                    self.context,
                    line,
                    &PerformedName::Action(&leave.action_id),
                )?,
                context,
            },
        })
    }

    /// Starts what answers outside for a line that the client may run in a sandbox of its own.
    fn start_relay(&self, call: &Call, leave: &Leave) -> Result<(), CliError> {
        let line = match (&call.tool, &leave.line, self.has_shell_prefix()) {
            (Tool::Shell { line, .. }, _, true) | (_, Some(line), false) => line,
            _ => return Ok(()),
        };
        self.start_relay_for(line, leave.action_id.as_str())
    }

    /// The same for what was let through as `work`, by whose name the line is found inside; where
    /// the client starts its shells through us, by the name of the client's session.
    fn start_relay_for(&self, line: &str, work: &str) -> Result<(), CliError> {
        let name = match self.has_shell_prefix() {
            true => self.heard.session.as_str(),
            false => work,
        };
        if !relay::may_be_sandboxed(self.context, self.heard)? {
            return Ok(());
        }
        let line = RelayedLine {
            name,
            line,
            client: self.heard.client.name(),
            session: &self.heard.session,
            work,
        };
        relay::start(self.context, &line)
    }

    /// Asks, and waits for an operator if this hook is to.
    fn ask(
        &self,
        room: &Room,
        passage: &Passage<'_>,
        proposal: &Proposal,
    ) -> Result<Answer, CliError> {
        // From before the hold is there: whoever sees it can already interrupt the wait.
        let stop = StopSignals::listen()?;
        let answer = passage.ask(proposal)?;
        stop.check()?;
        let Answer::Denied(denied) = answer else {
            return Ok(answer);
        };
        let denial = &denied.denial;
        deliver::start(self.context, &room.control);
        let (DenialCode::ApprovalRequired, Some(hold)) = (denial.code, &denial.hold_id) else {
            return Ok(Answer::Denied(denied));
        };
        let limit = self.context.settings.hook_wait.value;
        match wait_until(self.context, Asked::Room(room), hold, limit, &stop)? {
            Waited::Decided => Ok(passage.ask(proposal)?),
            Waited::Silence | Waited::InVain | Waited::SessionEnded => Ok(Answer::Denied(denied)),
        }
    }

    /// After a tool: how it ended, and what it changed.
    fn after(
        &mut self,
        call: &Call,
        ended: safepoint_clients::Ended,
        result: &serde_json::Value,
    ) -> Result<Reply, CliError> {
        let flags = self.flags();
        // If the workspace was made anew, this action did that.
        self.context.keeps_footing = true;
        let room = self.room(&flags)?;
        let mut visitor = visitor(self.heard, call);
        // A client without ids for its calls tells the line that was put in the place of its own.
        if let (None, Tool::Shell { line, .. }) = (&call.id, &call.tool)
            && let Some(action) = performed_action(line)
            && let Some(call) = room.control.call_of_client(&visitor, &action)?
        {
            visitor.call = call;
        }
        let targets = file_targets(self.heard, call);
        let finished = room
            .passage()
            .finish(&visitor, ended, result.clone(), &targets)?;
        let Some(finished) = finished else {
            return Ok(Reply::Pass { context: None });
        };
        let lost = reason::losses(&room.state.lost_by(&finished.action_id)?);
        let stray = reason::stray_writes(&finished.stray);
        if stray.is_some() {
            deliver::start(self.context, &room.control);
        }
        let (session, resolution) = (finished.session_id, finished.resolution);
        let told = match resolution {
            None => None,
            Some(resolution) if resolution.questions.is_empty() => {
                reason::context_of_call(&resolution)
            }
            Some(resolution) => Some(format!(
                "Safepoint has questions about what was done.{}",
                reason::questions(&resolution, session.as_str())
            )),
        };
        Ok(Reply::Pass {
            context: reason::joined(reason::joined(stray, lost), told),
        })
    }

    /// A session begins: with a checkpoint of everything, to which it can be rolled back.
    fn begin(&mut self) -> Result<Reply, CliError> {
        let flags = self.flags();
        let room = self.room(&flags)?;
        self.refuse_inside_call(&room)?;
        let passage = room.passage();
        passage.recover()?;
        let (session, begun) = self.session(&room, &flags)?;
        let action = safepoint_model::ActionId::generate(&crate::world::SystemEntropy)
            .map_err(|error| CliError::Control(error.into()))?;
        let before = room
            .state
            .before(&room.workspace, &action, &room.progress)?;
        let resolution = match begun {
            Some(resolution) => resolution,
            None => passage.show(&session)?,
        };
        let mut told = format!(
            "Safepoint watches over this workspace: every tool call is judged, and what it changes can be undone. \
             Session {session}; checkpoint {} before it. `safepoint log` tells what was done, `safepoint undo ACTION` takes one action back.",
            before.id
        );
        if let Some(context) = reason::context(&resolution) {
            told.push_str("\n\n");
            told.push_str(&context);
        }
        told.push_str(&reason::questions(&resolution, session.as_str()));
        Ok(Reply::Pass {
            context: Some(told),
        })
    }

    /// Somebody speaks to the agent.
    fn prompt(&mut self, text: &str) -> Result<Reply, CliError> {
        let flags = self.flags();
        let room = self.room(&flags)?;
        room.passage().give_up_on(&self.nobody(), false)?;
        let (session, begun) = self.session(&room, &flags)?;
        let resolution = room.passage().input(&session, text)?;
        let first = begun.as_ref().and_then(reason::new_contexts);
        let told = reason::context(&resolution);
        Ok(Reply::Pass {
            context: reason::joined(first, told),
        })
    }

    /// The agent rests: what it has not told the end of, it never will.
    fn stop(&mut self) -> Result<Reply, CliError> {
        relay::dismiss_all(&self.context.paths.runtime, &self.heard.session);
        let flags = self.flags();
        let room = self.room(&flags)?;
        room.passage().give_up_on(&self.nobody(), false)?;
        Ok(Reply::Pass { context: None })
    }

    /// The session ends.
    fn end(&mut self) -> Result<Reply, CliError> {
        relay::dismiss_all(&self.context.paths.runtime, &self.heard.session);
        let flags = self.flags();
        let room = self.room(&flags)?;
        self.refuse_inside_call(&room)?;
        room.passage().give_up_on(&self.nobody(), true)?;
        let (session, _) = self.session(&room, &flags)?;
        match room.passage().close(&session) {
            Ok(()) | Err(ControlError::Refused(_) | ControlError::Refuses { .. }) => {
                Ok(Reply::Pass { context: None })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The tools of our own MCP server; none where the settings of the project start another
    /// program under its name.
    fn own_tools(&self, passage: &Passage<'_>) -> Vec<&'static str> {
        let file = safepoint_clients::settings::server_place(&passage.workspace.root);
        let named = match std::fs::read_to_string(file) {
            Ok(text) => safepoint_clients::settings::named_server(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(_) => Some(String::new()),
        };
        let is_ours = |program: String| {
            let variables = self.context.environment.variables();
            let here = &self.heard.directory;
            let ours = crate::world::this_program();
            ours.is_ok_and(|ours| means_program(&program, &ours, here, &variables))
        };
        match named.is_none_or(is_ours) {
            true => crate::commands::mcp::tool_names(),
            false => Vec::new(),
        }
    }

    /// Whether a line only asks Safepoint for what agents may ask: that is judged when it gets
    /// there, and no gate stands before the answer to a gate.
    fn is_our_own(&self, passage: &Passage<'_>, call: &Call) -> bool {
        let (Tool::Shell { line, .. }, Ok(program)) = (&call.tool, crate::world::this_program())
        else {
            return false;
        };
        if !line.contains("safepoint") {
            return false;
        }
        let here = &self.heard.directory;
        let variables = self.context.environment.variables();
        let calls = passage.only_calls(&program, line, here, &variables);
        let root = &passage.workspace.root;
        // Where the line cannot say whose it is, what takes work back or changes it is judged.
        let is_marked = passage.is_within || self.can_run_instead(call);
        let mine = |words: &Vec<String>| {
            let rest: Vec<std::ffi::OsString> = words.iter().skip(1).map(Into::into).collect();
            Cli::try_parse_from(words).is_ok_and(|cli| is_marked || !needs_mark(&cli.command))
                && check_agent_call(&rest, root, here).is_ok()
        };
        calls.is_some_and(|calls| calls.iter().all(mine))
    }

    /// Lets such a line go, as this client's and in its session: so it is told from a person's.
    fn own_call(&self, room: &Room, flags: &Flags, call: &Call) -> Result<Reply, CliError> {
        let context = None;
        let (Tool::Shell { line, .. }, true) = (&call.tool, self.can_run_instead(call)) else {
            return Ok(Reply::Pass { context });
        };
        // Behind a fence the process that keeps it does the same.
        if room.passage().is_within {
            return Ok(Reply::Pass { context });
        }
        let (session, _) = self.session(room, flags)?;
        self.start_relay_for(line, session.as_str())?;
        if self.has_shell_prefix() {
            return Ok(Reply::Pass { context });
        }
        let name = PerformedName::Session {
            session: &session,
            root: &room.workspace.root,
            agent: self.heard.client,
        };
        let line = self.arguments.performing(self.context, line, &name)?;
        Ok(Reply::Instead { line, context })
    }

    /// Whether this client starts its shells through this program.
    fn has_shell_prefix(&self) -> bool {
        let ours = |program: &str| {
            let real = |path: &Path| std::fs::canonicalize(path).ok();
            let this = crate::world::this_program().ok();
            let this = this.and_then(|this| real(&this));
            this.is_some() && real(Path::new(program)) == this
        };
        let prefix = self.context.environment.text(SHELL_PREFIX);
        self.heard.client == Client::ClaudeCode
            && prefix.is_some_and(|it| shell_prefix_program(&it).is_some_and(|it| ours(&it)))
    }

    /// Behind the fence of `run` an agent can call `safepoint hook` as its client does. A client
    /// neither begins nor ends a session while it waits for a tool of it.
    fn refuse_inside_call(&self, room: &Room) -> Result<(), CliError> {
        if self.context.environment.path(HOOK_ROOT).is_none() {
            return Ok(());
        }
        match room.passage().waits_for_tool(&self.nobody())? {
            false => Ok(()),
            true => Err(CliError::Invalid {
                message: "a tool of this session still runs".to_owned(),
                suggestion: "a client begins and ends sessions between its tools",
            }),
        }
    }

    fn room(&mut self, flags: &Flags) -> Result<Room, CliError> {
        let client = self.heard.client.name();
        let room = Room::of_client(self.context, flags, client, &self.heard.session)?;
        if self.heard.client == Client::ClaudeCode {
            note_settings(self.context, &room.control, &self.heard.session)?;
        }
        Ok(room)
    }

    fn flags(&self) -> Flags {
        Flags::of_hook(self.arguments.no_fence)
    }

    /// Whether another line can be put in the place of this one.
    fn can_run_instead(&self, call: &Call) -> bool {
        let known = self.heard.client != Client::Cursor;
        let shell = matches!(call.tool, Tool::Shell { .. });
        known && shell && !self.arguments.no_fence
    }

    fn proposal(
        &self,
        room: &Room,
        flags: &Flags,
        act: Act,
        visitor: Visitor,
    ) -> Result<Proposal, CliError> {
        proposal_of(
            self.context,
            room,
            flags,
            act,
            visitor,
            &self.heard.directory,
        )
    }

    /// The session of this client, with what the gates said if it has begun now.
    fn session(
        &self,
        room: &Room,
        flags: &Flags,
    ) -> Result<(SessionId, Option<Resolution>), CliError> {
        let act = Act::Command(Vec::new());
        let proposal = self.proposal(room, flags, act, self.nobody())?;
        Ok(room.passage().enter(&proposal)?)
    }

    /// This client, in no call.
    fn nobody(&self) -> Visitor {
        Visitor {
            agent: self.heard.agent.clone(),
            ..in_no_call(self.heard.client, &self.heard.session)
        }
    }
}

/// The session of ours that belongs to a client's.
pub(crate) fn session_of(
    context: &Context,
    room: &Room,
    client: Client,
    session: &str,
    here: &Path,
) -> Result<SessionId, CliError> {
    let act = Act::Command(Vec::new());
    let visitor = in_no_call(client, session);
    let flags = Flags::of_hook(false);
    let proposal = proposal_of(context, room, &flags, act, visitor, here)?;
    let (session, _) = room.passage().enter(&proposal)?;
    Ok(session)
}

fn in_no_call(client: Client, session: &str) -> Visitor {
    Visitor {
        client: client.name().to_owned(),
        session: session.to_owned(),
        agent: None,
        in_background: false,
        call: String::new(),
        process: safepoint_control::pass::client_process(),
        kind: CallKind::Other,
    }
}

fn proposal_of(
    context: &Context,
    room: &Room,
    flags: &Flags,
    act: Act,
    visitor: Visitor,
    here: &Path,
) -> Result<Proposal, CliError> {
    let mut proposal = room.proposal(context, flags, act, Stdin::Empty)?;
    proposal.objective = Some(format!("{} {}", visitor.client, visitor.session));
    proposal.visitor = Some(visitor);
    // Where it happens, which need not be where it began.
    proposal.directory = real_directory(here)?;
    Ok(proposal)
}

fn real_directory(path: &Path) -> Result<PathBuf, CliError> {
    std::fs::canonicalize(path).map_err(|error| CliError::File {
        action: "find",
        path: path.to_owned(),
        error,
    })
}

/// Whether what a command may do depends on whether an agent or a person calls it.
fn needs_mark(command: &Command) -> bool {
    matches!(
        command,
        Command::Rollback(_)
            | Command::Undo(_)
            | Command::Redo(_)
            | Command::Mutate(_)
            | Command::Exec(_)
            // They run programs that the project's file names, for a person.
            | Command::Checkpoint(_)
            | Command::Verify(_)
    )
}

/// This client, in this call. Clients without a name for a call are told apart by what it is.
/// The action under whose name a line of ours runs another one.
fn performed_action(line: &str) -> Option<ActionId> {
    let (_, rest) = line.split_once(" perform ")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn visitor(heard: &Heard, call: &Call) -> Visitor {
    let name = match &call.id {
        Some(id) => id.clone(),
        None => {
            let input = safepoint_model::json::canonical(&call.input).unwrap_or_default();
            Digest::of_parts(&[call.name.as_bytes(), &input]).to_string()
        }
    };
    Visitor {
        client: heard.client.name().to_owned(),
        session: heard.session.clone(),
        agent: heard.agent.clone(),
        in_background: matches!(
            call.tool,
            Tool::Shell {
                background: true,
                ..
            }
        ),
        call: name,
        process: safepoint_control::pass::client_process(),
        kind: match call.tool {
            Tool::Files(_) => CallKind::Files,
            Tool::Read(_) => CallKind::Reading,
            _ => CallKind::Other,
        },
    }
}

/// What a file tool was to do, for the look at where it went.
fn file_targets(heard: &Heard, call: &Call) -> Vec<FileTarget> {
    let Tool::Files(changes) = &call.tool else {
        return Vec::new();
    };
    let texts = written_texts(&call.input);
    let paths = changes.iter().flat_map(|change| match change {
        FileChange::Write(path) | FileChange::Delete(path) => vec![path],
        FileChange::Move { from, to } => vec![from, to],
    });
    let target = |path: &std::path::PathBuf| FileTarget {
        path: heard.directory.join(path),
        texts: texts.clone(),
    };
    paths.map(target).collect()
}

/// The texts that a file tool is given to write: all of a file, or what takes the place of a part.
fn written_texts(input: &serde_json::Value) -> Vec<String> {
    const FIELDS: [&str; 7] = [
        "content",
        "file_text",
        "new_string",
        "new_str",
        "newString",
        "new_source",
        "insert_text",
    ];
    let edits = input.get("edits").and_then(serde_json::Value::as_array);
    let edits = edits.map(Vec::as_slice).unwrap_or_default().iter();
    let all = std::iter::once(input).chain(edits);
    let texts = all.flat_map(|it| {
        FIELDS
            .iter()
            .filter_map(move |field| it.get(field)?.as_str())
    });
    texts.map(str::to_owned).collect()
}
