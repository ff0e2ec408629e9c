//! The gate in front of a server: each call is a proposal like any other.
//!
//! Everything is opened anew for each question, as a hook does: what the rules are, the
//! settings say at that moment, and nothing is held open while the server works.

use std::path::PathBuf;

use safepoint_clients::Ended;
use safepoint_control::pass::{Act, Answer, Denied, Stdin, Visitor, this_process};
use serde_json::{Value, json};

use crate::cli::Global;
use crate::commands::hook::reason;
use crate::commands::passing::{DenialReply, Flags, Room};
use crate::commands::session::deliver;
use crate::context::Context;
use crate::error::CliError;
use crate::world::Environment;

/// What the trail calls an agent whose calls pass here.
const AGENT: &str = "mcp-proxy";

/// Of longer results only the length is told to the gates.
const TOLD_WHOLE: usize = 64 << 10;

/// The gate.
pub(super) struct Gate {
    global: Global,
    directory: PathBuf,
    session: Option<String>,
    process: (u32, u64),
}

/// One call of a tool.
pub(super) struct Call<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    /// Everything it is given but what is about the protocol.
    pub(super) given: Value,
    /// The name of the call, which no other has.
    pub(super) name: &'a str,
}

/// What the gate says.
pub(super) enum Verdict {
    Pass,
    /// What to tell the model, and the document.
    Refuse(String, Option<Value>),
}

impl Gate {
    pub(super) fn new(global: &Global) -> Result<Self, CliError> {
        let environment = Environment::read().map_err(CliError::Output)?;
        Ok(Self {
            global: global.clone(),
            session: environment.text("SAFEPOINT_SESSION"),
            directory: environment.directory,
            process: this_process(),
        })
    }

    /// Puts a call before the gates. An error while judging is a denial.
    pub(super) fn judge(&self, call: &Call<'_>) -> Verdict {
        match self.ask(call) {
            Ok(Answer::Leave(_)) => Verdict::Pass,
            Ok(Answer::Denied(denied)) => {
                let told = reason::of_denial(&denied);
                Verdict::Refuse(told, document(*denied))
            }
            Err(error) => Verdict::Refuse(
                reason::of_error(&error),
                Some(json!({"error": error.problem()})),
            ),
        }
    }

    fn ask(&self, call: &Call<'_>) -> Result<Answer, CliError> {
        let (context, flags, room) = self.open()?;
        let act = Act::of_mcp(call.server, call.tool, &call.given)?;
        let mut proposal = room.proposal(&context, &flags, act, Stdin::Empty)?;
        let visitor = self.visitor(call.name);
        proposal.objective = Some(format!("{AGENT} {} {}", call.server, visitor.session));
        proposal.visitor = Some(visitor);
        let answer = room.passage().ask(&proposal)?;
        deliver::start(&context, &room.control);
        Ok(answer)
    }

    /// Records how a call ended, with what changed meanwhile.
    pub(super) fn finish(&self, name: &str, ended: Ended, result: Value) -> Result<(), CliError> {
        let (_, _, room) = self.open()?;
        let long = result.to_string().len();
        let result = match long <= TOLD_WHOLE {
            true => result,
            false => json!({"bytes": long}),
        };
        room.passage()
            .finish(&self.visitor(name), ended, result, &[])?;
        Ok(())
    }

    fn open(&self) -> Result<(Context, Flags, Room), CliError> {
        let mut context = Context::of_agent(&self.global, &self.directory, AGENT)?;
        let flags = Flags::of_session(self.session.clone());
        let room = Room::open(&mut context, &flags)?;
        Ok((context, flags, room))
    }

    /// We are the client: what is under way when we go, nobody will tell the end of.
    fn visitor(&self, call: &str) -> Visitor {
        let (number, started) = self.process;
        Visitor {
            kind: safepoint_control::pass::CallKind::Other,
            in_background: false,
            client: AGENT.to_owned(),
            session: format!("{number}-{started}"),
            agent: None,
            call: call.to_owned(),
            process: self.process,
        }
    }
}

fn document(denied: Denied) -> Option<Value> {
    let reply = DenialReply {
        denial: denied.denial,
        session_id: Some(denied.session_id.to_string()),
        resolution: denied.resolution,
    };
    serde_json::to_value(reply).ok()
}
