//! The proxy in front of a real MCP server: what passes, what is asked about, what is recorded.

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
use std::path::{Path, PathBuf};
use std::process::Command;

use passage::{bare, project};
use rpc::Rpc;
use serde_json::{Value, json};
use testkit::TestEnv;

/// The tools of one server may be used; one of them waits for a person, another is not allowed.
const SHOP: &str = r#"
atlas_version: "1.0"
atlas_id: "tests.shop"
version: "1.0.0"
name: "Shop"
description: "Tools of a server"
capabilities:
  - capability_id: "tools"
    name: "Tools"
    actions: ["mcp.shop.*"]
policies:
  - policy_id: "tools"
    type: allow
    actions: ["mcp.shop.*"]
    reason: "They are known"
  - policy_id: "buying"
    type: requires_approval
    actions: ["mcp.shop.buy"]
    reason: "Somebody looks at what is bought"
  - policy_id: "selling"
    type: deny
    actions: ["mcp.shop.sell"]
    reason: "Nothing is sold"
"#;

struct Shop {
    env: TestEnv,
    heard: PathBuf,
}

impl Shop {
    fn new(env: TestEnv) -> Self {
        let heard = env.root().join("heard");
        Self { env, heard }
    }

    fn command(&self, flags: &[&str]) -> Command {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/shop.py");
        let server = server.to_str().unwrap();
        let heard = self.heard.to_str().unwrap();
        let words = [&["mcp-proxy"], flags, &["--", "python3", server, heard]].concat();
        self.env.command(&words)
    }

    fn start(&self) -> Rpc {
        Rpc::start(self.command(&["--name", "shop"]))
    }

    fn heard(&self) -> String {
        fs::read_to_string(&self.heard).unwrap_or_default()
    }

    /// Entries of the trail of this kind.
    fn entries(&self, kind: &str) -> Vec<Value> {
        let page = self.env.json(&["--json", "trail", "list", "--kind", kind]);
        page["entries"].as_array().unwrap().clone()
    }

    fn log(&self) -> Vec<Value> {
        let log = self.env.json(&["--json", "log"]);
        log["actions"].as_array().unwrap().clone()
    }
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value:#}"))
}

#[test]
fn su_06_what_is_no_call_passes_byte_for_byte() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    let said: [&[u8]; 6] = [
        b"{ \"method\" :\"odd\",\"id\": \"a\\u0062\",\"params\":{\"x\":1.50}}\n",
        b"\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/strange\",\"params\":[1,2]}\r\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":500,\"result\":{\"roots\":[]}}\n",
        b"[]\n",
        b"[{\"method\":\"odd\",\"id\":2}, {\"method\":\"notifications/x\"}]\n",
    ];
    for line in said {
        rpc.write(line);
    }
    assert_eq!(
        rpc.line(),
        "{ \"result\" : {\"a\":1.50} ,\"id\":\"ab\" , \"jsonrpc\":\"2.0\"}\n"
    );
    assert_eq!(
        rpc.line(),
        "{ \"result\" : {\"a\":1.50} ,\"id\":2 , \"jsonrpc\":\"2.0\"}\n"
    );
    let listed = rpc.ask("tools/list", json!({}));
    assert_eq!(listed["error"]["code"], -32601, "the server's own answer");
    let (status, rest) = rpc.end();
    assert_eq!(rest, "");
    assert_eq!(status.code(), Some(5), "it ends as the server ends");
    let mut expected = said.concat();
    expected.extend(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}\n");
    assert_eq!(shop.heard().as_bytes(), expected);
    assert_eq!(shop.entries("action_ended").len(), 0);
}

#[test]
fn su_06_a_call_is_judged_recorded_and_can_be_undone() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-11-25");
    let file = shop.env.project().join("a");
    let given = json!({"path": file, "text": "changed by a server\n"});
    let wrote = rpc.call("write", given);
    assert_eq!(
        wrote,
        json!({"content": [{"type": "text", "text": "write"}], "isError": false})
    );
    // It is recorded before the client hears of it, under one id from beginning to end.
    let ended = shop.entries("action_ended");
    assert_eq!(ended.len(), 1, "{ended:#?}");
    assert_eq!(ended[0]["body"]["outcome"], "ok");
    let action = text(&ended[0]["action_id"]).to_owned();
    let all = shop
        .env
        .json(&["--json", "trail", "list", "--action", &action]);
    let all = all["entries"].as_array().unwrap();
    assert!(all.len() > 2, "{all:#?}");
    assert!(
        all.iter()
            .any(|entry| entry.to_string().contains("mcp.shop.write"))
    );
    let last = shop.log().remove(0);
    assert_eq!(last["action_id"], action);
    assert_eq!(last["action"], "mcp.shop.write");
    assert_eq!(last["outcome"], "ok");
    assert_eq!(
        last["changes"],
        json!([{"path": "a", "change": "modified"}])
    );
    shop.env.json(&["--json", "undo", &action]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "content of a\n");
    // What the server says has gone wrong has, in either way of saying it.
    assert_eq!(rpc.call("fail", json!({}))["isError"], true);
    let broken = rpc.ask("tools/call", json!({"name": "break", "arguments": {}}));
    assert_eq!(broken["error"]["code"], -32000);
    let ended = shop.entries("action_ended");
    let outcomes: Vec<&str> = ended
        .iter()
        .map(|it| text(&it["body"]["outcome"]))
        .collect();
    assert_eq!(outcomes, ["ok", "error", "error"]);
}

#[test]
fn su_06_what_is_denied_never_reaches_the_server() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-11-25");
    let denied = rpc.refused("sell", json!({"what": "all"}));
    assert!(
        text(&denied["content"][0]["text"]).contains("Nothing is sold"),
        "{denied:#}"
    );
    assert_eq!(
        denied["structuredContent"]["denial"]["hold_id"],
        Value::Null
    );
    assert!(denied["resultType"].is_null());
    let held = rpc.refused("buy", json!({"what": "milk"}));
    let hold = text(&held["structuredContent"]["denial"]["hold_id"]).to_owned();
    assert!(
        text(&held["content"][0]["text"]).contains(&hold),
        "{held:#}"
    );
    assert!(!shop.heard().contains("tools/call"), "{}", shop.heard());
    // A person says yes to exactly this, once.
    let shown = shop.env.json(&["--json", "hold", "show", &hold]);
    let fingerprint = text(&shown["fingerprint"]).to_owned();
    let mut words = vec![
        "--json",
        "hold",
        "approve",
        &hold,
        "--fingerprint",
        &fingerprint,
    ];
    if let Some(word) = shown["confirm"].as_str() {
        words.extend(["--confirm", word]);
    }
    shop.env.json(&words);
    rpc.refused("buy", json!({"what": "bread"}));
    assert_eq!(
        rpc.call("buy", json!({"what": "milk"}))["content"][0]["text"],
        "buy"
    );
    rpc.refused("buy", json!({"what": "milk"}));
    assert_eq!(shop.heard().matches("tools/call").count(), 1);
    // In the latest protocol an answer says that it is one.
    let denied = rpc.ask_latest("tools/call", json!({"name": "sell"}));
    assert_eq!(denied["result"]["resultType"], "complete", "{denied:#}");
    assert_eq!(denied["result"]["isError"], true);
}

#[test]
fn su_06_without_rules_a_server_waits_for_a_person() {
    let shop = Shop::new(bare());
    // Whatever it calls itself.
    let mut rpc = Rpc::start(shop.command(&["--name", "safepoint"]));
    rpc.initialize("2024-11-05");
    let held = rpc.refused("write", json!({"path": "x", "text": ""}));
    assert_eq!(
        held["structuredContent"]["denial"]["code"], "APPROVAL_REQUIRED",
        "{held:#}"
    );
    assert!(!shop.heard().contains("tools/call"));
}

#[test]
fn su_06_a_server_is_known_by_the_name_it_says() {
    for latest in [false, true] {
        let shop = Shop::new(project(SHOP));
        let mut rpc = Rpc::start(shop.command(&[]));
        // Until it has said it, it is its program.
        let early = rpc.ask("tools/call", json!({"name": "look"}));
        assert_eq!(early["result"]["isError"], true, "{early:#}");
        match latest {
            true => drop(rpc.ask_latest("server/discover", json!({}))),
            false => drop(rpc.initialize("2025-06-18")),
        }
        let looked = rpc.ask("tools/call", json!({"name": "look"}));
        assert_eq!(looked["result"]["isError"], false, "{looked:#}");
    }
}

#[test]
fn su_06_several_calls_are_under_way_at_once() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-11-25");
    let later = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "later"}});
    rpc.send(&later(json!("one")));
    rpc.send(&later(json!(11)));
    rpc.send(&later(json!("gone")));
    // An id that is in use is not used again: nobody could tell the answers apart.
    rpc.send(&later(json!(11)));
    let again = rpc.message();
    assert_eq!(again["error"]["code"], -32600, "{again:#}");
    rpc.send(&json!({"jsonrpc": "2.0", "id": "one", "method": "ping"}));
    assert_eq!(rpc.message()["error"]["code"], -32600);
    rpc.tell("notifications/cancelled", json!({"requestId": "gone"}));
    let spoken = rpc.call("look", json!({}));
    assert_eq!(spoken["isError"], false);
    let ended = shop.entries("action_ended");
    let outcomes: Vec<&str> = ended
        .iter()
        .map(|it| text(&it["body"]["outcome"]))
        .collect();
    assert_eq!(
        outcomes,
        ["unknown", "ok"],
        "the cancelled one is not waited for"
    );
    rpc.send(&json!({"jsonrpc": "2.0", "id": "now", "method": "now"}));
    let ids: Vec<Value> = (0..4).map(|_| rpc.message()["id"].clone()).collect();
    assert_eq!(ids, [json!("gone"), json!(11), json!("one"), json!("now")]);
    assert_eq!(shop.entries("action_ended").len(), 4);
    assert_eq!(shop.heard().matches("tools/call").count(), 4);
}

#[test]
fn su_06_a_batch_loses_only_what_is_denied() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-03-26");
    rpc.ask("tools/list", json!({})); // it has heard everything before this
    let before = shop.heard().len();
    rpc.write(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"look\"}}, {\"method\":\"odd\" ,\"id\":2}, {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"sell\"}}]\n");
    let mut found = Vec::new();
    for _ in 0..3 {
        match rpc.message() {
            Value::Array(answers) => found.extend(answers),
            answer => found.push(answer),
        }
    }
    found.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(found[0]["result"]["isError"], false, "{found:#?}");
    assert_eq!(found[1]["result"]["a"], 1.5);
    assert_eq!(found[2]["result"]["isError"], true);
    let heard = &shop.heard()[before..];
    assert_eq!(
        heard,
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"look\"}},{\"method\":\"odd\" ,\"id\":2}]\n"
    );
    assert_eq!(shop.entries("action_ended").len(), 1);
}

#[test]
fn su_06_what_is_no_message_is_not_passed_on() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-11-25");
    rpc.ask("tools/list", json!({})); // it has heard everything before this
    let before = shop.heard().len();
    for line in [
        &b"no message\n"[..],
        b"{\"id\":1,\"method\":\"tools/list\",\"method\":\"tools/call\"}\n",
        b"\xff\xfe\n",
    ] {
        rpc.write(line);
        assert_eq!(rpc.message()["error"]["code"], -32700);
    }
    let long = format!("{{\"method\":\"{}\"}}\n", "x".repeat(17 << 20));
    rpc.write(long.as_bytes());
    assert_eq!(rpc.message()["error"]["code"], -32600);
    // Calls that nobody could be answered, or that name no tool.
    rpc.tell("tools/call", json!({"name": "look"}));
    rpc.send(&json!({"id": null, "method": "tools/call", "params": {"name": "look"}}));
    assert_eq!(rpc.message()["error"]["code"], -32600);
    let nameless = rpc.ask("tools/call", json!({"arguments": {}}));
    assert_eq!(nameless["error"]["code"], -32602);
    assert_eq!(&shop.heard()[before..], "");
    // What a server says that is none is the client's to deal with, and ends no call.
    rpc.send(
        &json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "garbage"}}),
    );
    assert_eq!(rpc.line(), "this is {\"no\": message\n");
    assert_eq!(rpc.message()["method"], "roots/list");
    assert_eq!(rpc.message()["id"], 9);
    assert_eq!(shop.entries("action_ended").len(), 1);
}

#[test]
fn su_06_a_server_that_dies_leaves_its_calls_unknown() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-11-25");
    let dead = rpc.ask("tools/call", json!({"name": "die"}));
    assert_eq!(dead["error"]["code"], -32603, "{dead:#}");
    assert!(text(&dead["error"]["message"]).contains("nobody knows"));
    let (status, _) = rpc.end();
    assert_eq!(status.code(), Some(7));
    let ended = shop.entries("action_ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["body"]["outcome"], "unknown");
    assert_eq!(shop.log()[0]["outcome"], "unknown");
}

#[test]
fn su_06_a_proxy_that_is_killed_leaves_its_calls_unknown() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-11-25");
    rpc.send(
        &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "later"}}),
    );
    // It is under way once the server answers what came after it.
    assert_eq!(rpc.ask("tools/list", json!({}))["error"]["code"], -32601);
    assert_eq!(shop.entries("action_ended").len(), 0);
    let process = rpc.process().to_string();
    assert!(
        Command::new("kill")
            .args(["-KILL", &process])
            .status()
            .unwrap()
            .success()
    );
    rpc.end();
    // Whoever passes next tells of it.
    passage::exec(&shop.env, &["true"]);
    let ended = shop.entries("action_ended");
    assert_eq!(ended[0]["body"]["outcome"], "unknown", "{ended:#?}");
}

#[test]
fn su_06_a_proxy_that_is_ended_ends_its_server() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-11-25");
    let process = rpc.process().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &process])
            .status()
            .unwrap()
            .success()
    );
    let (status, _) = rpc.end();
    assert!([143, 5].contains(&status.code().unwrap()), "{status:?}");
}

#[test]
fn su_06_a_server_decides_nothing() {
    let shop = Shop::new(project(SHOP));
    let mut rpc = shop.start();
    rpc.initialize("2025-11-25");
    let tried = rpc.call(
        "approve",
        json!({"safepoint": env!("CARGO_BIN_EXE_safepoint")}),
    );
    assert_eq!(tried["content"][0]["text"], "6", "{tried:#}");
}

#[test]
fn su_06_a_server_that_is_not_there_is_said() {
    let env = bare();
    let run = env.run(&["--json", "mcp-proxy", "--", "/no/such/server"]);
    assert_eq!(run.code, 8, "{run:?}");
    assert!(run.stdout.contains("/no/such/server"), "{run:?}");
}
