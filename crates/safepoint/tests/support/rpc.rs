//! A program that speaks JSON-RPC on its standard streams, a message a line.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

/// The protocol that has no `initialize`.
pub(crate) const LATEST: &str = "2026-07-28";

/// The program, and what it has said.
pub(crate) struct Rpc {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Rpc {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
        }
    }

    /// The same, after `initialize` of this version.
    #[track_caller]
    pub(crate) fn initialized(command: Command, version: &str) -> (Self, Value) {
        let mut this = Self::start(command);
        let result = this.initialize(version);
        (this, result)
    }

    #[track_caller]
    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let parameters = json!({
            "protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        });
        let answer = self.ask("initialize", parameters);
        self.tell("notifications/initialized", json!({}));
        answer["result"].clone()
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    pub(crate) fn tell(&mut self, method: &str, parameters: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": parameters}));
    }

    /// The next line, as it is.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "it says nothing more: {line:?}");
        line
    }

    #[track_caller]
    pub(crate) fn message(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Asks, and waits for the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        let answer = self.message();
        assert_eq!(answer["id"], id, "{answer:#}");
        assert_eq!(answer["jsonrpc"], "2.0", "{answer:#}");
        answer
    }

    /// Asks by the protocol that has no `initialize`.
    #[track_caller]
    pub(crate) fn ask_latest(&mut self, method: &str, mut parameters: Value) -> Value {
        parameters["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": LATEST,
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.ask(method, parameters)
    }

    /// The result of a tool.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{tool}: {answer:#}");
        answer["result"].clone()
    }

    /// What a tool gives that does what it is asked for.
    #[track_caller]
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result:#}");
        result["structuredContent"].clone()
    }

    /// What a tool gives that does not.
    #[track_caller]
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result:#}");
        result
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn close(&mut self) {
        drop(self.input.take());
    }

    /// Waits until it has ended, and says what else it has said.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        self.close();
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}
