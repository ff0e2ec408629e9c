//! Between a client and a server: what passes, what is asked about first, and what is under
//! way.
//!
//! A message is passed on as it was written, or not at all. Each side is read by one thread,
//! which also asks and records, so nothing overtakes anything.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use safepoint_clients::Ended;
use serde_json::{Value, json};

use super::gate::{Call, Gate, Verdict};
use super::message::{self, Line, Said};

/// The longest line of a client.
const LONGEST_OF_CLIENT: usize = 16 << 20;
/// The longest line of a server: pictures and sounds are told as text.
const LONGEST_OF_SERVER: usize = 256 << 20;

/// Between the two.
pub(super) struct Between<C, S> {
    gate: Gate,
    /// The name of the server, if it was given, and what it is called until it says its own.
    name: Option<String>,
    program: String,
    client: Mutex<C>,
    server: Mutex<Option<S>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the server calls itself.
    said: Option<String>,
    /// Questions by which it tells that.
    hellos: HashSet<String>,
    /// Calls that are not answered yet, by id; and the names under which they were let through.
    calls: HashMap<String, String>,
    count: u64,
    /// The server answers nothing more.
    over: bool,
}

/// However the thread ends that reads what the client says, the server gets nothing more, so
/// that it ends too.
struct Closing<'a, C: Write, S: Write>(&'a Between<C, S>);

impl<C: Write, S: Write> Drop for Closing<'_, C, S> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What becomes of a message of a client.
enum Fate {
    Pass,
    Answer(Value),
    /// It can be neither passed on nor answered.
    Drop,
}

impl<C: Write, S: Write> Between<C, S> {
    pub(super) fn new(
        gate: Gate,
        name: Option<String>,
        program: String,
        client: C,
        server: S,
    ) -> Self {
        Self {
            gate,
            name,
            program,
            client: Mutex::new(client),
            server: Mutex::new(Some(server)),
            state: Mutex::default(),
        }
    }

    /// Passes on what the client says, until it says no more.
    pub(super) fn listen_to_client(&self, mut input: impl BufRead) {
        let _closing = Closing(self);
        loop {
            match message::next_line(&mut input, LONGEST_OF_CLIENT) {
                Ok(Line::Whole(line)) => self.hear_client(&line),
                Ok(Line::TooLong) => {
                    let what = format!("a message may have {LONGEST_OF_CLIENT} bytes at most");
                    self.answer(&message::error(None, message::INVALID, &what));
                }
                Ok(Line::End) | Err(_) => break,
            }
        }
    }

    /// The server gets nothing more.
    pub(super) fn close(&self) {
        drop(held(&self.server).take());
    }

    fn hear_client(&self, line: &[u8]) {
        if message::is_blank(line) {
            return self.pass(line);
        }
        match message::from_client(line) {
            Err(reason) => {
                let what = format!("safepoint cannot read this message: {reason}");
                self.answer(&message::error(None, message::PARSE, &what));
            }
            Ok(Said::One(said)) => match self.fate(&said) {
                Fate::Pass => {
                    self.pass(line);
                    self.heed(&said);
                }
                Fate::Answer(answer) => self.answer(&answer),
                Fate::Drop => {}
            },
            Ok(Said::Batch(all)) => self.batch(line, &all),
        }
    }

    /// What is left of a batch when some of it is refused is passed on as it was written.
    fn batch(&self, line: &[u8], all: &[Value]) {
        let mut answers = Vec::new();
        let mut passed = Vec::new();
        for (said, part) in all.iter().zip(message::parts(line)) {
            match self.fate(said) {
                Fate::Pass => passed.push((said, part)),
                Fate::Answer(answer) => answers.push(answer),
                Fate::Drop => {}
            }
        }
        if passed.len() == all.len() {
            self.pass(line);
        } else if !passed.is_empty() {
            let parts: Vec<&str> = passed.iter().map(|(_, part)| part.get()).collect();
            self.pass(format!("[{}]\n", parts.join(",")).as_bytes());
        }
        for (said, _) in passed {
            self.heed(said);
        }
        if !answers.is_empty() {
            self.answer(&Value::Array(answers));
        }
    }

    fn fate(&self, said: &Value) -> Fate {
        if !message::is_plain(said) {
            let what = "it is no message, or one that servers read in different ways";
            return Fate::Answer(message::error(Some(said), message::INVALID, what));
        }
        let Some(method) = message::method(said) else {
            return Fate::Pass; // an answer to what the server has asked
        };
        let id = message::id(said);
        if let Some(id) = &id
            && held(&self.state).calls.contains_key(id)
        {
            let what = "a call with this id is not answered yet";
            return Fate::Answer(message::error(Some(said), message::INVALID, what));
        }
        match (method, id) {
            ("initialize" | "server/discover", Some(id)) => {
                held(&self.state).hellos.insert(id);
                Fate::Pass
            }
            ("tools/call", Some(id)) => self.call(said, id),
            // A server might carry it out, and nobody would be told.
            ("tools/call", None) => match said.get("id") {
                Some(_) => {
                    let what = "the id of a call is a text or a number";
                    Fate::Answer(message::error(Some(said), message::INVALID, what))
                }
                None => {
                    tell("a call without an id was not passed on");
                    Fate::Drop
                }
            },
            _ => Fate::Pass,
        }
    }

    /// A call of a tool: asked about first, and under way before the server hears of it.
    fn call(&self, said: &Value, id: String) -> Fate {
        let parameters = said.get("params").and_then(Value::as_object);
        let tool = parameters.and_then(|it| it.get("name")?.as_str());
        let (Some(parameters), Some(tool)) = (parameters, tool) else {
            let what = "a call names its tool";
            return Fate::Answer(message::error(Some(said), message::PARAMETERS, what));
        };
        let mut given = parameters.clone();
        given.shift_remove("_meta");
        given.shift_remove("name");
        let (server, name) = {
            let mut state = held(&self.state);
            state.count += 1;
            (self.server_name(&state), format!("{id} {}", state.count))
        };
        let call = Call {
            server: &server,
            tool,
            given: Value::Object(given),
            name: &name,
        };
        match self.gate.judge(&call) {
            Verdict::Refuse(told, document) => {
                Fate::Answer(message::refusal(said, &told, document))
            }
            Verdict::Pass => {
                let mut state = held(&self.state);
                if state.over {
                    drop(state);
                    self.finish(&name, Ended::Unsaid, Value::Null);
                    return Fate::Answer(gone(said.get("id")));
                }
                state.calls.insert(id, name);
                Fate::Pass
            }
        }
    }

    fn server_name(&self, state: &State) -> String {
        let known = self.name.as_ref().or(state.said.as_ref());
        known.unwrap_or(&self.program).clone()
    }

    /// What is cancelled need not be answered: nobody sees how it ends.
    fn heed(&self, said: &Value) {
        let call = message::cancelled(said).and_then(|id| held(&self.state).calls.remove(&id));
        if let Some(name) = call {
            self.finish(&name, Ended::Unsaid, json!({"cancelled": true}));
        }
    }

    /// Passes on what the server says, until it says no more. What is under way then, nobody
    /// knows the end of.
    pub(super) fn listen_to_server(&self, mut output: impl BufRead) {
        loop {
            match message::next_line(&mut output, LONGEST_OF_SERVER) {
                Ok(Line::Whole(line)) => self.hear_server(&line),
                Ok(Line::TooLong) => {
                    tell("the server has said more at once than anybody can mean");
                    break;
                }
                Ok(Line::End) | Err(_) => break,
            }
        }
        let left = {
            let mut state = held(&self.state);
            state.over = true;
            std::mem::take(&mut state.calls)
        };
        for (id, name) in left {
            self.finish(&name, Ended::Unsaid, Value::Null);
            let id = serde_json::from_str(&id).ok();
            self.answer(&gone(id.as_ref()));
        }
    }

    /// The end of a call is recorded before the client hears of it.
    fn hear_server(&self, line: &[u8]) {
        let (waits, hellos) = {
            let state = held(&self.state);
            (!state.calls.is_empty(), !state.hellos.is_empty())
        };
        if waits || hellos {
            for answer in message::from_server(line) {
                self.note(&answer);
            }
        }
        self.write_to_client(line);
    }

    fn note(&self, answer: &Value) {
        let Some(id) = message::id(answer) else {
            return;
        };
        let call = {
            let mut state = held(&self.state);
            if state.hellos.remove(&id) && state.said.is_none() {
                state.said = message::name_of_server(answer).map(str::to_owned);
            }
            state.calls.remove(&id)
        };
        if let Some(name) = call {
            let result = answer.get("result").or_else(|| answer.get("error"));
            self.finish(&name, ended(answer), result.cloned().unwrap_or_default());
        }
    }

    /// One that cannot be recorded stays open, and is recorded as unknown later.
    fn finish(&self, name: &str, ended: Ended, result: Value) {
        if let Err(error) = self.gate.finish(name, ended, result) {
            tell(&format!("the end of a call cannot be recorded: {error}"));
        }
    }

    /// One that reads no more is told by the end of its output.
    fn pass(&self, line: &[u8]) {
        if let Some(server) = held(&self.server).as_mut() {
            let _ = server.write_all(line).and_then(|()| server.flush());
        }
    }

    fn answer(&self, message: &Value) {
        self.write_to_client(format!("{message}\n").as_bytes());
    }

    /// A client that is gone changes nothing: what is under way is recorded all the same.
    fn write_to_client(&self, line: &[u8]) {
        let mut client = held(&self.client);
        let _ = client.write_all(line).and_then(|()| client.flush());
    }
}

/// How a call ended, as far as its answer tells.
fn ended(answer: &Value) -> Ended {
    let Some(result) = answer.get("result") else {
        return Ended::Error;
    };
    let kind = result.get("resultType").and_then(Value::as_str);
    // It waits for something, or goes on by itself.
    let goes_on = kind.is_some_and(|kind| kind != "complete");
    let is_task = result.get("task").is_some() && result.get("content").is_none();
    match result.get("isError") {
        _ if goes_on || is_task => Ended::Unsaid,
        Some(Value::Bool(true)) => Ended::Error,
        _ => Ended::Ok,
    }
}

fn gone(id: Option<&Value>) -> Value {
    let what = "the server ended before it answered; nobody knows how far it came";
    message::error(Some(&json!({ "id": id })), message::INTERNAL, what)
}

/// Standard output belongs to the protocol.
fn tell(what: &str) {
    let _ = writeln!(io::stderr(), "safepoint mcp-proxy: {what}");
}

/// A thread that has broken down leaves nothing half done in here.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
