//! A server of the API as a process of its own, and a client that says exactly what a test
//! wants it to say.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use testkit::TestEnv;

/// A server that runs.
pub(crate) struct Server {
    child: Child,
    /// Where it is.
    pub(crate) address: String,
    /// Its log, line by line.
    log: Receiver<String>,
}

/// What it answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// A problem as RFC 9457 has it, with this status, which is one that is documented.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        let mut documented = safepoint_server::api::STATUSES.iter();
        assert!(documented.any(|(known, _)| *known == status), "{status}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["status"], status, "{problem:#}");
        let code = problem["code"].as_str().unwrap();
        assert_eq!(problem["type"], format!("urn:safepoint:problem:{code}"));
        for name in ["title", "detail", "name"] {
            assert!(problem[name].is_string(), "{problem:#}");
        }
        problem
    }

    #[track_caller]
    pub(crate) fn done(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }
}

impl Server {
    /// Starts one with more flags, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(env: &TestEnv, flags: &[&str]) -> Self {
        Self::start_at(env, "127.0.0.1:0", flags)
    }

    /// The same at this address.
    #[track_caller]
    pub(crate) fn start_at(env: &TestEnv, address: &str, flags: &[&str]) -> Self {
        let mut child = Self::spawn(env, address, flags);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (send, log) = channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = send.send(line + "\n");
            }
        });
        Self::listening(child, log)
    }

    /// The same, and nobody reads its log.
    #[track_caller]
    pub(crate) fn unread(env: &TestEnv, flags: &[&str]) -> Self {
        let (_, log) = channel();
        Self::listening(Self::spawn(env, "127.0.0.1:0", flags), log)
    }

    #[track_caller]
    fn spawn(env: &TestEnv, address: &str, flags: &[&str]) -> Child {
        let listen = ["serve", "--json", "--listen", address];
        env.command(&[&listen, flags].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    #[track_caller]
    fn listening(mut child: Child, log: Receiver<String>) -> Self {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|error| {
            let rest: String = log.iter().collect();
            panic!("{error}: {line:?} {rest}")
        });
        let url = told["url"].as_str().unwrap();
        let (_, address) = url.split_once("://").unwrap();
        Self {
            address: address.to_owned(),
            child,
            log,
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends these bytes, and reads to the end.
    #[track_caller]
    pub(crate) fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        read_reply(&mut stream)
    }

    /// A request with these further lines in its head.
    #[track_caller]
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        token: &str,
        lines: &[&str],
        body: Option<&Value>,
    ) -> Reply {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            self.address
        );
        if !token.is_empty() {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for line in lines {
            head.push_str(&format!("{line}\r\n"));
        }
        let body = body.map(ToString::to_string).unwrap_or_default();
        if !body.is_empty() {
            head.push_str("Content-Type: application/json\r\n");
        }
        if method == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.raw(format!("{head}\r\n{body}").as_bytes())
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str, token: &str) -> Reply {
        self.ask("GET", path, token, &[], None)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, token: &str, body: &Value) -> Reply {
        self.ask("POST", path, token, &[], Some(body))
    }

    /// Ends it at once, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells it to end.
    pub(crate) fn terminate(&self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    }

    /// Reads its log up to an event.
    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.log.recv();
            let line = line.unwrap_or_else(|_| panic!("no `{event}`: {lines:?}"));
            let entry: Value = serde_json::from_str(&line).unwrap();
            let found = entry["event"] == event;
            lines.push(entry);
            if found {
                return lines;
            }
        }
    }

    /// Waits for its end: how, and the rest of its log.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let log: String = self.log.iter().collect();
        (self.child.wait().unwrap().code(), log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an answer to the end of the connection.
#[track_caller]
pub(crate) fn read_reply(stream: &mut impl Read) -> Reply {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    Reply {
        status: status.parse().unwrap(),
        headers: lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
        body: body.to_owned(),
    }
}

/// Makes a token.
#[track_caller]
pub(crate) fn token(env: &TestEnv, name: &str, flags: &[&str]) -> String {
    let made = env.json(&[&["token", "create", name], flags].concat());
    made["token"].as_str().unwrap().to_owned()
}

/// Follows what happens, from `/v1/events` with this query.
#[track_caller]
pub(crate) fn follow(
    server: &Server,
    query: &str,
    token: &str,
    more: &str,
) -> BufReader<TcpStream> {
    let mut stream = server.connect();
    let head = format!(
        "GET /v1/events{query} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n{more}\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    assert!(line(&mut stream).ends_with(" 200 OK"));
    while !line(&mut stream).is_empty() {}
    stream
}

/// The next line.
#[track_caller]
pub(crate) fn line(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    assert_ne!(stream.read_line(&mut line).unwrap(), 0, "it has ended");
    line.trim_end().to_owned()
}

/// The next event: its entry, whose place is its id and whose kind is its name.
#[track_caller]
pub(crate) fn event(stream: &mut impl BufRead) -> Value {
    let mut fields = Vec::new();
    loop {
        let line = line(stream);
        match line.split_once(": ") {
            Some(("id" | "event" | "data", _)) => fields.push(line),
            _ if fields.len() == 3 => break,
            _ => {}
        }
    }
    let value = |name: &str| {
        let found = fields.iter().find_map(|it| it.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{fields:?}")).to_owned()
    };
    let entry: Value = serde_json::from_str(&value("data: ")).unwrap();
    assert_eq!(entry["seq"].to_string(), value("id: "));
    assert_eq!(entry["kind"], value("event: "));
    entry
}
