//! The MCP server, driven by raw lines and raw requests as clients send them.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/passage.rs"]
mod passage;
#[path = "support/rpc.rs"]
mod rpc;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use passage::{ASKS, HELD, REFUNDS, approve, bare, project};
use rpc::{LATEST, Rpc};
use serde_json::{Value, json};
use testkit::TestEnv;

fn server(env: &TestEnv) -> Rpc {
    Rpc::initialized(env.command(&["mcp"]), "2025-11-25").0
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value:#}"))
}

#[test]
fn su_06_older_protocols_begin_with_initialize() {
    let env = bare();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (mut rpc, result) = Rpc::initialized(env.command(&["mcp"]), version);
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "safepoint");
        assert_eq!(result["capabilities"], json!({"tools": {}, "prompts": {}}));
        assert!(text(&result["instructions"]).contains("checkpoint"));
        assert_eq!(rpc.ask("ping", json!({}))["result"], json!({}));
        let listed = rpc.ask("tools/list", json!({}));
        assert!(listed["result"]["resultType"].is_null(), "{listed:#}");
        assert_eq!(listed["result"]["tools"][0]["name"], "checkpoint");
        assert!(rpc.end().0.success());
    }
    // One that asks for something newer by the old way gets the newest of the old ones.
    let (rpc, result) = Rpc::initialized(env.command(&["mcp"]), LATEST);
    assert_eq!(result["protocolVersion"], "2025-11-25");
    assert!(rpc.end().0.success());
}

/// With the client its session ends, and what waits in it: nobody is there to go on.
#[test]
fn su_06_what_waits_ends_with_the_client() {
    let env = project(REFUNDS);
    let mut rpc = server(&env);
    rpc.refused("request", json!({"action_id": "refund.create"}));
    let long =
        json!({"name": "request", "arguments": {"action_id": "refund.create", "wait": "11m"}});
    let long = rpc.ask("tools/call", long);
    let message = text(&long["error"]["message"]);
    assert!(message.contains("at most"), "{long:#}");
    let waiting = env.json(&["hold", "list"]);
    assert_eq!(waiting["total"], 1, "{waiting:#}");
    assert!(rpc.end().0.success());
    let holds = env.json(&["hold", "list", "--all"]);
    assert_eq!(holds["holds"][0]["state"], "closed", "{holds:#}");
}

#[test]
fn su_06_the_latest_protocol_has_no_beginning() {
    let env = bare();
    let mut rpc = Rpc::start(env.command(&["mcp"]));
    let found = rpc.ask_latest("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(LATEST)), "{found:#}");
    assert!(versions.contains(&json!("2024-11-05")), "{found:#}");
    let listed = rpc.ask_latest("tools/list", json!({}));
    assert_eq!(listed["result"]["resultType"], "complete");
    let called = rpc.ask_latest("tools/call", json!({"name": "status", "arguments": {}}));
    assert_eq!(called["result"]["resultType"], "complete", "{called:#}");
    let status = &called["result"]["structuredContent"];
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    // Without what each request must say of itself there is no answer but an error.
    let bare = rpc.ask("tools/list", json!({}));
    assert_eq!(bare["error"]["code"], -32602, "{bare:#}");
    assert!(rpc.end().0.success());
}

#[test]
fn su_06_tools_say_what_they_take_and_give() {
    let env = bare();
    let mut rpc = server(&env);
    let listed = rpc.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| text(&tool["name"])).collect();
    assert_eq!(
        names,
        [
            "checkpoint",
            "mutate",
            "verify",
            "rollback",
            "undo",
            "redo",
            "show",
            "diff",
            "request",
            "answer",
            "record",
            "status",
            "log",
            "audit",
            "list"
        ]
    );
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool:#}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool:#}");
        jsonschema::validator_for(&tool["inputSchema"]).unwrap();
        jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        assert!(!text(&tool["title"]).is_empty());
        assert!(!text(&tool["description"]).is_empty());
        let hints = &tool["annotations"];
        let reads = ["verify", "show", "diff", "status", "log", "audit", "list"]
            .contains(&text(&tool["name"]));
        assert_eq!(hints["readOnlyHint"], reads, "{tool:#}");
        let harms = ["mutate", "rollback", "undo", "redo"].contains(&text(&tool["name"]));
        assert_eq!(hints["destructiveHint"], harms, "{tool:#}");
        assert_eq!(hints["openWorldHint"], false);
        assert!(hints["idempotentHint"].is_boolean());
    }
}

#[test]
fn ag_11_the_skills_are_prompts() {
    let env = bare();
    let mut rpc = server(&env);
    let listed = rpc.ask("prompts/list", json!({}));
    let prompts = listed["result"]["prompts"].as_array().unwrap().clone();
    let names: Vec<&str> = prompts.iter().map(|it| text(&it["name"])).collect();
    let skills = ["checkpoint", "mutate", "verify", "rollback"];
    assert_eq!(names, skills.map(|name| format!("safepoint-{name}")));
    for prompt in &prompts {
        assert!(!text(&prompt["description"]).is_empty());
        let got = rpc.ask("prompts/get", json!({"name": prompt["name"]}));
        let message = &got["result"]["messages"][0];
        assert_eq!(message["role"], "user", "{got:#}");
        let words = text(&message["content"]["text"]);
        assert!(words.contains("## Procedure"), "{words}");
        assert!(words.contains(env!("CARGO_BIN_EXE_safepoint")), "{words}");
    }
    let unknown = rpc.ask("prompts/get", json!({"name": "nothing"}));
    assert!(unknown["error"].is_object(), "{unknown:#}");
}

/// Every answer is checked against the schema that the tool has published.
struct Checked {
    rpc: Rpc,
    schemas: Value,
}

impl Checked {
    fn new(mut rpc: Rpc) -> Self {
        let listed = rpc.ask("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        let schemas =
            tools.map(|tool| (text(&tool["name"]).to_owned(), tool["outputSchema"].clone()));
        Self {
            schemas: Value::Object(schemas.collect()),
            rpc,
        }
    }

    #[track_caller]
    fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.rpc.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result:#}");
        let document = result["structuredContent"].clone();
        let schema = jsonschema::validator_for(&self.schemas[tool]).unwrap();
        if let Err(error) = schema.validate(&document) {
            panic!("{tool}: {error}: {document:#}");
        }
        // Clients that know only text get the same.
        let same: Value = serde_json::from_str(text(&result["content"][0]["text"])).unwrap();
        assert_eq!(same, document);
        document
    }
}

#[test]
fn su_06_every_tool_works_on_a_real_workspace() {
    let env = bare();
    let file = env.write("project/a.txt", "one\n");
    let mut tools = Checked::new(server(&env));
    let made = tools.done(
        "checkpoint",
        json!({"scope": ["a.txt"], "reason": "before"}),
    );
    let id = text(&made["checkpoint"]["id"]).to_owned();
    let operation = json!({"type": "edit", "changes": [{"old": "one", "new": "two"}]});
    let changed = tools.done(
        "mutate",
        json!({"target": "a.txt", "operation": operation, "checkpoint_id": id}),
    );
    assert_eq!(changed["success"], true, "{changed:#}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    let verified = tools.done("verify", json!({"checkpoint_id": id}));
    assert!(verified.is_object());
    let differs = tools.done("diff", json!({"checkpoint_id": id}));
    assert!(differs.to_string().contains("a.txt"), "{differs:#}");
    let plan = tools.done("rollback", json!({"checkpoint_id": id, "dry_run": true}));
    assert!(plan.to_string().contains("a.txt"), "{plan:#}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    tools.done("rollback", json!({"checkpoint_id": id}));
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
    tools.done("undo", json!({}));
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    let log = tools.done("log", json!({"limit": 2}));
    assert_eq!(log["actions"].as_array().unwrap().len(), 2, "{log:#}");
    let list = tools.done("list", json!({}));
    assert_eq!(list["checkpoints"][0]["id"], id, "{list:#}");
    tools.done("status", json!({}));
    let note = tools.done(
        "record",
        json!({"intent": "It is done", "type": "observation"}),
    );
    assert_eq!(note["actor"], "agent:mcp");
    assert!(text(&note["stream"]).starts_with("ses_"), "{note:#}");
    // More than a command line holds.
    let large = "x".repeat(300_000);
    let operation = json!({"type": "write", "content": large});
    tools.done(
        "mutate",
        json!({"target": "large", "operation": operation, "auto_checkpoint": true}),
    );
    let written = fs::read_to_string(env.project().join("large")).unwrap();
    assert_eq!(written, large);
}

#[test]
fn su_06_a_record_goes_into_the_chain_of_a_workspace() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let made = env.json(&["workspace", "create", "--role", "coordinator"]);
    let root = text(&made["workspace_id"]).to_owned();
    let place = ["--parent", &root, "--role", "worker", "--directive", "work"];
    let made = env.json(&[&["workspace", "create"], &place[..]].concat());
    let (id, token) = (text(&made["workspace_id"]), text(&made["token"]));
    let mut tools = server(&env);
    let mut given = json!({
        "intent": "It is done", "type": "artifact", "workspace": id, "token": token,
        "payload": {"files_changed": [], "content": "so", "artifacts": []},
        "status": "final", "confidence": "high",
    });
    let first = tools.done("record", given.clone());
    assert_eq!(first["checkpoint"]["workspace"], *id, "{first:#}");
    // Asked for again it is no longer the end that it builds upon.
    let again = tools.refused("record", given.clone());
    assert_eq!(
        again["structuredContent"]["rejected"]["reason"],
        "invalid_parent"
    );
    given["parent"] = first["checkpoint"]["id"].clone();
    tools.done("record", given.clone());
    given["token"] = json!("wst_0");
    let refused = tools.refused("record", given);
    let name = &refused["structuredContent"]["error"]["name"];
    assert_eq!(name, "AUTHENTICATION_FAILED", "{refused:#}");
    let log = env.json(&["workspace", "log", id]);
    assert_eq!(log["checkpoints"].as_array().unwrap().len(), 2);
}

#[test]
fn su_06_requests_pass_the_gates_of_one_session() {
    let env = project(ASKS);
    let mut rpc = server(&env);
    let held = rpc.refused(
        "request",
        json!({"action_id": "ticket.delete", "parameters": {"id": 7}}),
    );
    let document = &held["structuredContent"];
    assert_eq!(document["resolution"]["decision"], "hold", "{held:#}");
    assert_eq!(
        document["resolution"]["questions"][0]["question_id"],
        "agree"
    );
    let advice = text(&held["content"][1]["text"]);
    assert!(
        advice.contains("tool `answer`") && advice.contains("Are you sure?"),
        "{advice}"
    );
    let wrong = rpc.refused(
        "answer",
        json!({"checkpoint_id": "sure", "answers": {"agree": "maybe"}}),
    );
    assert_eq!(
        wrong["structuredContent"]["validation"]["is_valid"], false,
        "{wrong:#}"
    );
    rpc.done(
        "answer",
        json!({"checkpoint_id": "sure", "answers": {"agree": true}}),
    );
    let allowed = rpc.done(
        "request",
        json!({"action_id": "ticket.delete", "parameters": {"id": 7}}),
    );
    assert_eq!(allowed["resolution"]["decision"], "allow");
    let request = text(&allowed["request_id"]).to_owned();
    rpc.done(
        "record",
        json!({"request_id": request, "outcome": "ok", "result": {"gone": 7}}),
    );
    // The same session for everything of this connection, and another for the next.
    let sessions = env.json(&["--json", "session", "list"]);
    assert_eq!(
        sessions["sessions"].as_array().unwrap().len(),
        1,
        "{sessions:#}"
    );
    let session = text(&sessions["sessions"][0]["session_id"]).to_owned();
    let mut other = server(&env);
    other.refused(
        "request",
        json!({"action": "ticket.delete", "params": {"id": 8}}),
    );
    let sessions = env.json(&["--json", "session", "list"]);
    assert_eq!(
        sessions["sessions"].as_array().unwrap().len(),
        2,
        "{sessions:#}"
    );
    // One that is named counts.
    let shown = other.done(
        "request",
        json!({"action_id": "ticket.get", "session_id": session}),
    );
    assert_eq!(shown["resolution"]["decision"], "allow");
}

#[test]
fn su_06_what_is_denied_says_how_to_go_on() {
    let env = project(HELD);
    let mut rpc = server(&env);
    let write = json!({"target": "b", "operation": {"type": "write", "content": "x"}, "auto_checkpoint": true});
    let held = rpc.refused("mutate", write.clone());
    let denial = &held["structuredContent"]["denial"];
    assert_eq!(denial["code"], "APPROVAL_REQUIRED", "{held:#}");
    let hold = text(&denial["hold_id"]).to_owned();
    assert!(!text(&denial["next"]).is_empty());
    let advice = text(&held["content"][1]["text"]);
    assert!(
        advice.contains(&hold) && advice.contains("How to go on"),
        "{advice}"
    );
    assert!(!env.project().join("b").exists());
    let delete = json!({"target": "a", "operation": {"type": "delete"}, "auto_checkpoint": true});
    let denied = rpc.refused("mutate", delete);
    assert_eq!(
        denied["structuredContent"]["denial"]["hold_id"],
        Value::Null,
        "{denied:#}"
    );
    assert!(env.project().join("a").exists());
    // A person says yes, and the same call does it once.
    let shown = env.json(&["--json", "hold", "show", &hold]);
    let fingerprint = text(&shown["fingerprint"]).to_owned();
    env.json(&[
        "--json",
        "hold",
        "approve",
        &hold,
        "--fingerprint",
        &fingerprint,
    ]);
    rpc.done("mutate", write.clone());
    assert!(env.project().join("b").exists());
    rpc.refused("mutate", write);
}

#[test]
fn su_06_mistakes_are_told_and_nothing_breaks() {
    let env = bare();
    let mut rpc = Rpc::start(env.command(&["mcp"]));
    // Garbage, and messages out of turn, before anything has begun.
    rpc.write(b"\xff\xfe not a message\n{\"jsonrpc\":\n\n[]\n\"text\"\n");
    rpc.tell("notifications/cancelled", json!({"requestId": 5}));
    rpc.send(&json!({"jsonrpc": "2.0", "id": 77, "result": {}}));
    let mut invalid = 0;
    rpc.send(&json!({"jsonrpc": "2.0", "id": 99, "method": "ping"}));
    loop {
        let message = rpc.message();
        if message["id"] == 99 {
            break;
        }
        assert_eq!(message["error"]["code"], -32600, "{message:#}");
        invalid += 1;
    }
    assert_eq!(invalid, 2, "what is JSON and no message is answered");
    rpc.initialize("2025-06-18");
    let unknown = rpc.ask("tools/call", json!({"name": "hold", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    let unknown = rpc.ask(
        "tools/call",
        json!({"name": "undo", "arguments": {"identity": "x"}}),
    );
    assert_eq!(unknown["error"]["message"], "`undo` takes no `identity`");
    let missing = rpc.refused("rollback", json!({"checkpoint_id": "chk_nothing"}));
    let error = &missing["structuredContent"]["error"];
    assert!(
        text(&error["message"]).contains("chk_nothing"),
        "{missing:#}"
    );
    let nothing = rpc.ask("resources/list", json!({}));
    assert!(nothing["error"].is_object() || nothing["result"]["resources"] == json!([]));
    let strange = rpc.ask("no/such/method", json!({}));
    assert_eq!(strange["error"]["code"], -32601);
    // Everything asked for is answered, even when nobody asks for more.
    rpc.write(
        br#"{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"checkpoint"}}"#,
    );
    let (status, rest) = rpc.end();
    assert!(status.success());
    let last: Value = serde_json::from_str(rest.trim()).unwrap();
    assert_eq!(last["id"], "last");
    assert_eq!(
        last["result"]["structuredContent"]["checkpoint_created"],
        true
    );
}

#[test]
fn su_06_inside_a_fence_each_tool_is_handed_over() {
    let env = bare();
    env.write("project/a", "one\n");
    let lines = env.write(
        "project/lines",
        &[
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": {"name": "checkpoint", "arguments": {"scope": "a"}}}),
            json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "mutate",
                "arguments": {"target": "a", "operation": {"type": "delete"}, "auto_checkpoint": true}}}),
        ]
        .map(|message| format!("{message}\n"))
        .concat(),
    );
    let agent = format!(
        "#!/bin/sh\n\"{}\" mcp < {} > answers\n",
        env!("CARGO_BIN_EXE_safepoint"),
        lines.display()
    );
    let agent = env.write("project/agent.sh", &agent);
    fs::set_permissions(agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = env.run(&["run", "--no-tui", "--objective", "try", "--", "./agent.sh"]);
    assert_eq!(run.code, 0, "{run:?}");
    let answers = fs::read_to_string(env.project().join("answers")).unwrap();
    let answers: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let made = &answers[1]["result"]["structuredContent"];
    assert_eq!(made["checkpoint_created"], true, "{answers:#?}");
    let changed = &answers[2]["result"]["structuredContent"];
    assert_eq!(changed["success"], true, "{answers:#?}");
    assert!(!env.project().join("a").exists());
}

#[test]
fn su_06_nobody_else_is_listened_to() {
    let env = bare();
    let run = env.run(&["--json", "mcp", "--http", "0.0.0.0:0"]);
    assert_eq!(run.code, 7, "{run:?}");
    let run = env.run(&["--json", "mcp", "--http", "nonsense"]);
    assert_eq!(run.code, 7, "{run:?}");
}

/// The server over HTTP, ended with the test.
struct Http {
    child: Child,
    port: String,
}

impl Http {
    fn start(env: &TestEnv) -> Self {
        let mut command: Command = env.command(&["mcp", "--http", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().strip_prefix("http://127.0.0.1:").unwrap();
        let port = port.strip_suffix("/mcp").unwrap().to_owned();
        Self { child, port }
    }

    /// The head and the body of an answer.
    fn post(&self, headers: &[(&str, &str)], message: &Value) -> (String, String) {
        let body = message.to_string();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        let mut request = "POST /mcp HTTP/1.1\r\n".to_owned();
        let usual = [
            ("Host", format!("127.0.0.1:{}", self.port)),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Connection", "close".to_owned()),
            ("Content-Length", body.len().to_string()),
        ];
        for (name, value) in usual {
            let given = headers.iter().find(|(given, _)| *given == name);
            let value = given.map_or(value.as_str(), |(_, value)| value);
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        for (name, value) in headers {
            if !request.contains(&format!("{name}: ")) {
                request.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        stream
            .write_all(format!("{request}\r\n{body}").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_ascii_lowercase(), body.to_owned())
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The message in a body, which may be a stream of events.
#[track_caller]
fn message_in(body: &str) -> Value {
    let start = body
        .find("{\"jsonrpc\"")
        .unwrap_or_else(|| panic!("{body}"));
    let mut values = serde_json::Deserializer::from_str(&body[start..]).into_iter();
    values.next().unwrap().unwrap()
}

#[test]
fn su_06_over_http_every_protocol_works() {
    let env = bare();
    let http = Http::start(&env);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let (head, body) = http.post(&[], &hello);
    assert!(head.starts_with("http/1.1 200"), "{head}\n{body}");
    assert_eq!(message_in(&body)["result"]["protocolVersion"], "2025-11-25");
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "record", "arguments": {"intent": "by the old way"}}});
    let (_, body) = http.post(&[("Mcp-Session-Id", session)], &call);
    let first = message_in(&body)["result"]["structuredContent"].clone();
    assert_eq!(first["body"]["text"], "by the old way", "{body}");
    // The latest has no sessions: each request says all.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": LATEST,
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "record", "arguments": {"intent": "by the new way"}, "_meta": meta}});
    let headers = [
        ("MCP-Protocol-Version", LATEST),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "record"),
    ];
    let (head, body) = http.post(&headers, &call);
    assert!(
        head.contains("content-type: application/json"),
        "{head}\n{body}"
    );
    let second = message_in(&body)["result"]["structuredContent"].clone();
    assert_eq!(second["body"]["text"], "by the new way", "{body}");
    // Each connection has a session of its own, and those without one share theirs.
    assert_ne!(first["stream"], second["stream"]);
    let (_, body) = http.post(&headers, &call);
    assert_eq!(
        message_in(&body)["result"]["structuredContent"]["stream"],
        second["stream"]
    );
}

#[test]
fn su_06_over_http_other_hosts_and_origins_are_refused() {
    let env = bare();
    let http = Http::start(&env);
    let port = &http.port;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let code = |name: &str, value: &str| {
        let (head, _) = http.post(&[(name, value)], &hello);
        head.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(code("Host", &format!("localhost:{port}")), "200");
    assert_eq!(code("Host", "evil.example"), "403");
    assert_eq!(code("Host", &format!("evil.example:{port}")), "403");
    assert_eq!(code("Host", "127.0.0.1"), "403");
    assert_eq!(code("Host", "127.0.0.1:1"), "403");
    assert_eq!(code("Origin", &format!("http://127.0.0.1:{port}")), "200");
    assert_eq!(code("Origin", "http://evil.example"), "403");
    assert_eq!(code("Origin", "http://localhost:1"), "403");
    assert_eq!(code("Origin", &format!("https://127.0.0.1:{port}")), "403");
    assert_eq!(code("Origin", "null"), "403");
}

#[test]
fn su_06_a_request_that_needs_a_person_makes_a_hold() {
    let env = project(REFUNDS);
    let mut rpc = server(&env);
    let refund = json!({"action_id": "refund.create", "parameters": {"amount": 7}});
    let refused = rpc.refused("request", refund.clone());
    let denial = &refused["structuredContent"]["denial"];
    assert_eq!(denial["code"], "APPROVAL_REQUIRED", "{refused:#}");
    let hold = text(&denial["hold_id"]).to_owned();
    let advice = text(&refused["content"][1]["text"]);
    assert!(
        advice.contains(&hold) && !advice.contains("hold approve"),
        "{advice}"
    );
    approve(&env, &hold);
    let done = rpc.done("request", refund.clone());
    assert_eq!(done["resolution"]["decision"], "allow", "{done:#}");
    rpc.refused("request", refund);
}
