//! The API over HTTP under everything that goes wrong: other hosts and origins, too much, too
//! slow, too often, twice, cut off, and a store in the wrong hands.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/http.rs"]
mod http;
#[path = "support/passage.rs"]
mod passage;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use http::{Reply, Server, event, follow, line, read_reply, token};
use passage::{add, bare, held};
use serde_json::{Value, json};
use testkit::TestEnv;

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value:#}"))
}

fn auditor(env: &TestEnv) -> String {
    token(env, "reads", &["--role", "auditor"])
}

#[test]
fn su_07_other_hosts_and_origins_are_refused_before_the_token() {
    let env = bare();
    let reads = auditor(&env);
    let server = Server::start(&env, &["--host", "safepoint.example"]);
    let ask = |host: &str, more: &str| -> Reply {
        server.raw(
            format!(
                "GET /v1/trail/head HTTP/1.1\r\nHost: {host}\r\n{more}Authorization: Bearer {reads}\r\nConnection: close\r\n\r\n"
            )
            .as_bytes(),
        )
    };
    let ours = server.address.clone();
    ask(&ours, "").done();
    ask("safepoint.example", "").done();
    // A name that somebody makes lead here.
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost"] {
        ask(host, "").problem(421);
    }
    // Probes come by any name, and hear nothing but `ok`.
    for path in ["/healthz", "/readyz"] {
        let probe = format!("GET {path} HTTP/1.1\r\nHost: 10.1.2.3\r\nConnection: close\r\n\r\n");
        let reply = server.raw(probe.as_bytes());
        assert_eq!((reply.status, reply.body.as_str()), (200, "ok\n"));
    }
    let page = ask(&ours, "Origin: https://evil.example\r\n");
    page.problem(403);
    assert_eq!(page.header("access-control-allow-origin"), None);
    ask(&ours, "Origin: null\r\n").problem(403);
    ask(&ours, "Sec-Fetch-Site: cross-site\r\n").problem(403);
    ask(&ours, &format!("Origin: http://{ours}\r\n")).done();
    // A page may ask whether it may ask. It may not.
    let asked = server.ask(
        "OPTIONS",
        "/v1/checkpoints",
        "",
        &["Origin: https://evil.example"],
        None,
    );
    asked.problem(403);
    let healthy = server.get("/healthz", "");
    assert_eq!(healthy.header("x-content-type-options"), Some("nosniff"));
    let policy = healthy.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(healthy.header("cache-control"), Some("no-store"));
    assert!(healthy.header("set-cookie").is_none());
    assert!(healthy.header("x-request-id").is_some());
}

#[test]
fn su_08_a_link_on_another_site_has_the_page_asked_for_once_more_and_does_nothing_else() {
    let env = bare();
    let server = Server::start(&env, &[]);
    let link = [
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Mode: navigate",
        "Sec-Fetch-Dest: document",
        "Accept: text/html",
    ];
    let follow = |method: &str, path: &str, more: &[&str]| {
        server.ask(method, path, "", &[&link, more].concat(), None)
    };
    let first = follow("GET", "/", &[]);
    // Whatever is asked for, and whoever asks.
    for (path, more) in [
        ("/", &[][..]),
        ("/holds/hld_none", &[]),
        ("/holds/hld_none", &["Cookie: safepoint=x"]),
        ("/sign-in?back=/trail", &[]),
        ("/nowhere", &[]),
    ] {
        let reply = follow("GET", path, more);
        assert_eq!((reply.status, &reply.body), (200, &first.body), "{path}");
        assert_eq!(reply.header("refresh"), Some("0"), "{reply:?}");
        for header in ["set-cookie", "location"] {
            assert_eq!(reply.header(header), None, "{reply:?}");
        }
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        let opener = reply.header("cross-origin-opener-policy");
        assert_eq!(opener, Some("same-origin"));
    }
    follow("GET", "/v1/holds", &[]).problem(403);
    follow("POST", "/sign-in", &[]).problem(403);
    let inside = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: iframe"];
    server.ask("GET", "/", "", &inside, None).problem(403);
    // By itself it is another page.
    let own = ["Sec-Fetch-Site: same-origin", "Accept: text/html"];
    let reply = server.ask("GET", "/holds/hld_none", "", &own, None);
    assert_eq!(reply.status, 303, "{reply:?}");
}

#[test]
fn su_07_what_cannot_be_used_is_a_problem_that_says_so() {
    let env = bare();
    add(&env, "ann");
    let reads = auditor(&env);
    let ann = token(&env, "ann", &["--role", "operator"]);
    let server = Server::start(&env, &[]);
    assert_eq!(
        server.get("/v1/nothing", &reads).problem(404)["code"],
        "N801"
    );
    let other = server.ask("DELETE", "/v1/holds", &reads, &[], None);
    other.problem(405);
    assert_eq!(other.header("allow"), Some("GET,HEAD"));
    server.get("/v1/holds?unknown=1", &reads).problem(422);
    server.get("/v1/holds?limit=0", &reads).problem(422);
    server.get("/v1/holds?limit=x", &reads).problem(422);
    server.get("/v1/holds?limit=1&limit=2", &reads).problem(422);
    server.get("/v1/holds?cursor=%ff", &reads).problem(400);
    server.get("/v1/holds/a%2Fb", &reads).problem(422);
    let missing = server.get("/v1/holds/hld_none", &reads).problem(404);
    assert_eq!(missing["exit"], 8, "{missing:#}");
    assert!(missing["suggestion"].is_string(), "{missing:#}");
    server
        .get("/v1/trail/entries?since=yesterday", &reads)
        .problem(422);
    let head = format!(
        "POST /v1/undo HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ann}\r\nConnection: close\r\n",
        server.address
    );
    let send = |kind: &str, body: &str| {
        let length = body.len();
        server.raw(format!("{head}{kind}Content-Length: {length}\r\n\r\n{body}").as_bytes())
    };
    let json = "Content-Type: application/json\r\n";
    send(json, "{").problem(400);
    send(json, r#"{"dry_run": true, "dry_run": false}"#).problem(400);
    send(json, "[]").problem(422);
    send(json, r#"{"dry_run": "yes"}"#).problem(422);
    send(json, r#"{"dry_run": null}"#).problem(422);
    send(json, r#"{"identity": "/etc/passwd"}"#).problem(422);
    send("Content-Type: text/plain\r\n", "{}").problem(415);
    // A form that a page could send without asking.
    send(
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "dry_run=true",
    )
    .problem(415);
    for shown in ["", "Basic abc", "Bearer", "Bearer spt_0000", "Bearer a b"] {
        let line = format!("Authorization: {shown}");
        server
            .ask("GET", "/v1/holds", "", &[&line], None)
            .problem(401);
    }
}

#[test]
fn su_07_too_much_and_too_slow_is_cut() {
    let env = bare();
    add(&env, "ann");
    let ann = token(&env, "ann", &["--role", "operator"]);
    let server = Server::start(&env, &["--timeout", "1s"]);
    let head = |more: &str| {
        format!(
            "POST /v1/undo HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ann}\r\nContent-Type: application/json\r\n{more}\r\n",
            server.address
        )
    };
    // Said to be too large: it is not even read.
    server
        .raw(head("Content-Length: 99999999\r\n").as_bytes())
        .problem(413);
    // Too large without a word.
    let mut stream = server.connect();
    stream
        .write_all(head("Transfer-Encoding: chunked\r\n").as_bytes())
        .unwrap();
    let piece = [&b"10000\r\n"[..], &[b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..80 {
        if stream.write_all(&piece).is_err() {
            break; // it does not listen any more
        }
    }
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
    // A body that does not come.
    let mut stream = server.connect();
    stream
        .write_all(head("Content-Length: 10\r\n").as_bytes())
        .unwrap();
    stream.write_all(b"{").unwrap();
    read_reply(&mut stream).problem(408);
    // A head that does not come, or does not end.
    for begun in ["", "GET /v1/holds HTTP/1.1\r\nHost: x\r\n"] {
        let mut stream = server.connect();
        stream.write_all(begun.as_bytes()).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 200"));
    }
    // A head without measure.
    let mut stream = server.connect();
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(200_000));
    let _ = stream.write_all(long.as_bytes());
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 200"));
    assert_eq!(server.get("/healthz", "").status, 200);
}

#[test]
fn su_07_who_asks_too_often_is_told_to_wait() {
    let env = bare();
    let reads = auditor(&env);
    let other = token(&env, "other", &["--role", "auditor"]);
    let server = Server::start(&env, &["--rate", "1"]);
    let replies: Vec<Reply> = (0..9)
        .map(|_| server.get("/v1/trail/head", &reads))
        .collect();
    let limited = replies.iter().find(|reply| reply.status == 429).unwrap();
    assert_eq!(limited.problem(429)["code"], "F519");
    assert!(limited.header("retry-after").is_some());
    // Another token has its own measure.
    server.get("/v1/trail/head", &other).done();
}

#[test]
fn su_07_a_token_that_was_taken_back_opens_nothing_at_once() {
    let env = bare();
    let reads = auditor(&env);
    let short = token(&env, "short", &["--role", "auditor", "--expires", "1us"]);
    let server = Server::start(&env, &[]);
    server.get("/v1/trail/head", &reads).done();
    server.get("/v1/trail/head", &short).problem(401);
    let again = env.json(&["token", "rotate", "reads"]);
    server.get("/v1/trail/head", &reads).problem(401);
    let fresh = text(&again["token"]).to_owned();
    server.get("/v1/trail/head", &fresh).done();
    // Somebody who follows hears nothing more.
    let mut events = follow(&server, "", &fresh, "");
    assert_eq!(line(&mut events), "retry: 2000");
    env.json(&["trail", "note", "before"]);
    assert_eq!(event(&mut events)["body"]["text"], "before");
    env.json(&["token", "revoke", "reads"]);
    env.json(&["trail", "note", "after"]);
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("after"), "{rest}");
    server.get("/v1/trail/head", &fresh).problem(401);
    // Its name is never given again: what it did stays its own.
    let run = env.run(&["token", "create", "reads", "--role", "agent", "--json"]);
    assert_eq!(run.code, 9, "{run:?}");
    assert_eq!(env.run(&["token", "rotate", "reads"]).code, 8);
    let listed = env.json(&["token", "list"]);
    assert_eq!(listed["tokens"][1]["state"], "revoked", "{listed:#}");
    assert_eq!(listed["tokens"][0]["state"], "expired", "{listed:#}");
    let kinds = env.json(&["trail", "list", "--where", "name=reads"]);
    let kinds: Vec<&str> = kinds["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| text(&entry["kind"]))
        .collect();
    assert_eq!(kinds, ["token_created", "token_rotated", "token_revoked"]);
}

#[test]
fn su_07_agents_make_no_tokens() {
    let env = bare();
    add(&env, "ann");
    let mut command = env.command(&[
        "token",
        "create",
        "x",
        "--role",
        "operator",
        "--operator",
        "ann",
    ]);
    command.env("SAFEPOINT_AGENT", "1");
    assert_eq!(command.output().unwrap().status.code(), Some(6));
    // An operator's token is one of an operator that there is.
    let run = env.run(&["token", "create", "nobody", "--role", "operator", "--json"]);
    assert_eq!(run.code, 8, "{run:?}");
}

#[test]
fn su_07_a_request_with_a_key_is_done_once_also_by_another_server() {
    let env = bare();
    env.write("project/a.txt", "one\n");
    add(&env, "ann");
    let ann = token(&env, "ann", &["--role", "operator"]);
    let other = token(
        &env,
        "other",
        &["--role", "agent", "--scope", "workspace:."],
    );
    let server = Server::start(&env, &[]);
    let body = json!({"reason": "once"});
    let make = |server: &Server, token: &str, key: &str, body: &Value| {
        let key = format!("Idempotency-Key: {key}");
        server.ask("POST", "/v1/checkpoints", token, &[&key], Some(body))
    };
    let first = make(&server, &ann, "k1", &body);
    assert_eq!(first.header("idempotency-replayed"), None);
    let id = first.done()["checkpoint_id"].clone();
    let again = make(&server, &ann, "k1", &body);
    assert_eq!(again.done()["checkpoint_id"], id);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    server.terminate();
    assert_eq!(server.end().0, Some(0));
    let server = Server::start(&env, &[]);
    assert_eq!(make(&server, &ann, "k1", &body).done()["checkpoint_id"], id);
    make(&server, &ann, "k1", &json!({"reason": "else"})).problem(422);
    // A key is the caller's own.
    assert_ne!(
        make(&server, &other, "k1", &body).done()["checkpoint_id"],
        id
    );
    // What went wrong is answered again, too.
    let wrong = json!({"workspace": "nowhere"});
    make(&server, &ann, "k2", &wrong).problem(404);
    env.write("project/nowhere/a", "");
    let again = make(&server, &ann, "k2", &wrong);
    again.problem(404);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    make(&server, &ann, &"k".repeat(201), &body).problem(400);
    let listed = server.get("/v1/checkpoints", &ann).done();
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 2);
}

#[test]
fn su_07_who_comes_back_to_the_events_misses_nothing() {
    let env = bare();
    env.write(
        "project/atlas.yaml",
        "atlas_version: \"1.0\"\natlas_id: \"tests.x\"\nversion: \"1.0.0\"\nname: \"X\"\ndescription: \"X\"\ncapabilities:\n  - {capability_id: \"all\", name: \"All\", actions: [\"x.*\"]}\n",
    );
    env.write("project/safepoint.yaml", "atlases: [atlas.yaml]\n");
    let reads = auditor(&env);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let server = Server::start(&env, &[]);
    let mut events = follow(&server, "", &reads, "");
    let mut own = follow(&server, "", &agent, "Last-Event-ID: 0\r\n");
    env.json(&["trail", "note", "one"]);
    let first = event(&mut events);
    assert_eq!(first["body"]["text"], "one");
    drop(events);
    env.json(&["trail", "note", "two"]);
    env.json(&["trail", "note", "three"]);
    let mut events = follow(
        &server,
        "",
        &reads,
        &format!("Last-Event-ID: {}\r\n", first["seq"]),
    );
    assert_eq!(event(&mut events)["body"]["text"], "two");
    assert_eq!(event(&mut events)["body"]["text"], "three");
    // An agent hears of its own sessions, and of nothing else, from the beginning on.
    let started = server.post("/v1/sessions", &agent, &json!({})).done();
    let heard = event(&mut own);
    assert_eq!(heard["stream"], started["session_id"]);
    assert!(heard["seq"].as_u64() > first["seq"].as_u64());
    for bad in ["x", "-1", ""] {
        let line = format!("Last-Event-ID: {bad}");
        server
            .ask("GET", "/v1/events", &reads, &[&line], None)
            .problem(422);
    }
    server.get("/v1/events?after=x", &reads).problem(422);
}

#[test]
fn su_07_pages_lead_to_the_next_one() {
    let env = bare();
    env.write("project/a", "0");
    add(&env, "ann");
    let ann = token(&env, "ann", &["--role", "operator"]);
    for number in 0..5 {
        env.write("project/a", &number.to_string());
        env.json(&["checkpoint", "--reason", &number.to_string()]);
    }
    let server = Server::start(&env, &[]);
    for (path, field, most) in [
        ("/v1/checkpoints?limit=2", "checkpoints", 5),
        ("/v1/trail/entries?limit=3", "entries", usize::MAX),
    ] {
        let (mut next, mut seen) = (Some(path.to_owned()), Vec::new());
        while let Some(path) = next {
            let reply = server.get(&path, &ann);
            let page = reply.done();
            let items = page[field].as_array().unwrap();
            assert!(!items.is_empty() && items.len() <= 3, "{page:#}");
            seen.extend(items.iter().map(|item| item["id"].to_string()));
            next = reply.header("link").map(|link| {
                let (path, rest) = link.strip_prefix('<').unwrap().split_once('>').unwrap();
                assert_eq!(rest, "; rel=\"next\"");
                path.to_owned()
            });
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(count, seen.len(), "{path}: something came twice");
        let all = match most {
            usize::MAX => env.json(&["trail", "head"])["size"].as_u64().unwrap(),
            most => most as u64,
        };
        assert_eq!(count as u64, all, "{path}");
    }
}

#[test]
fn su_07_a_server_that_is_told_to_end_finishes_what_runs() {
    let env = bare();
    add(&env, "ann");
    let ann = token(&env, "ann", &["--role", "operator"]);
    let server = Server::start(&env, &[]);
    let mut following = follow(&server, "", &ann, "");
    assert_eq!(line(&mut following), "retry: 2000");
    // Half a request is there when the signal comes.
    let mut stream = server.connect();
    let body = json!({"reason": "in time"}).to_string();
    let head = format!(
        "POST /v1/checkpoints HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ann}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        server.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // It has been heard: it waits for the rest.
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.terminate();
    server.wait_for("closing");
    assert!(
        TcpStream::connect(&server.address).is_err(),
        "it still listens"
    );
    stream.write_all(body.as_bytes()).unwrap();
    read_reply(&mut stream).done();
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("\"everything_ended\":true"), "{log}");
    assert!(log.contains("\"route\":\"checkpoint_create\""), "{log}");
    assert!(!log.contains(&ann) && !log.contains("in time"), "{log}");
    let made = env.json(&["list"]);
    assert_eq!(made["checkpoints"].as_array().unwrap().len(), 1);
}

#[test]
fn su_07_a_log_that_nobody_reads_holds_up_nobody() {
    let env = bare();
    let server = Server::unread(&env, &["--rate", "100000"]);
    let request = format!(
        "GET /v1/nothing HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        server.address
    );
    // More lines than wait in the pipe and before it together.
    for _ in 0..3_000 {
        let mut stream = server.connect();
        // Only so that it fails and does not hang.
        let patience = std::time::Duration::from_secs(60);
        stream.set_read_timeout(Some(patience)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        read_reply(&mut stream).problem(404);
    }
    server.terminate();
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn su_07_a_leaked_database_holds_no_token() {
    let env = held();
    let ann = token(&env, "ann", &["--role", "operator"]);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let server = Server::start(&env, &[]);
    let body = json!({"goal": format!("use {agent}")});
    server.post("/v1/sessions", &agent, &body).done();
    server.get("/v1/holds", &ann).done();
    let mut files = vec![env.home()];
    let mut looked = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|it| it.unwrap().path()),
            );
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let inside = |token: &str| {
            let secret = token.strip_prefix("spt_").unwrap();
            bytes
                .windows(secret.len())
                .any(|it| it == secret.as_bytes())
        };
        assert!(!inside(&ann), "{}", path.display());
        // What somebody writes into a goal of their own is theirs; the trail does not have it.
        if path
            .file_name()
            .is_some_and(|name| name != "store.db" && name != "store.db-wal")
        {
            assert!(!inside(&agent), "{}", path.display());
        }
        looked += 1;
    }
    assert!(looked > 3, "{looked}");
    // What is in the table opens nothing.
    let database = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    let state: String = database
        .query_row(
            "SELECT state FROM control_documents WHERE kind = 'token' AND id = 'ann'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let state: Value = serde_json::from_str(&state).unwrap();
    let kept = format!("spt_{}", text(&state["digest"]));
    server.get("/v1/holds", &kept).problem(401);
    // Who can write to it cannot make one, nor bring one back.
    let change = |what: &str| {
        let sql = format!(
            "UPDATE control_documents SET state = replace(state, {what}) WHERE kind = 'token' AND id = 'agent'"
        );
        assert_eq!(database.execute(&sql, []).unwrap(), 1);
    };
    change("'\"agent\",\"operator\":null', '\"auditor\",\"operator\":null'");
    let forged = server.get("/v1/holds", &agent);
    assert!([401, 503].contains(&forged.status), "{forged:?}");
}

#[test]
fn su_07_others_are_reached_by_tls_alone() {
    let env = bare();
    let reads = auditor(&env);
    let open = env.run(&["serve", "--listen", "0.0.0.0:0", "--json"]);
    assert_eq!(open.code, 7, "{open:?}");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = env.write("tls/cert.pem", &made.cert.pem());
    let key = env.write("tls/key.pem", &made.signing_key.serialize_pem());
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let broken = env.run(&[
        "serve",
        "--tls-cert",
        key,
        "--tls-key",
        certificate,
        "--json",
    ]);
    assert_eq!(broken.code, 7, "{broken:?}");
    let pair = ["--tls-cert", certificate, "--tls-key", key];
    let named = ["--host", "safepoint.example"];
    let server = Server::start(&env, &[&pair[..], &named].concat());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let client = rustls::ClientConnection::new(Arc::new(settings), name).unwrap();
    let mut stream = rustls::StreamOwned::new(client, server.connect());
    let head = format!(
        "GET /v1/trail/head HTTP/1.1\r\nHost: safepoint.example\r\nAuthorization: Bearer {reads}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let reply = read_reply(&mut stream);
    reply.done();
    let held = reply.header("strict-transport-security");
    assert_eq!(held, Some("max-age=31536000"));
    // Who does not speak it gets nothing.
    let mut plain = server.connect();
    plain.write_all(head.as_bytes()).unwrap();
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1"));
}

#[test]
fn su_07_a_server_tells_how_it_stands() {
    let env = held();
    passage::denied(&env, &["sh", "-c", "echo x > b"], "APPROVAL_REQUIRED");
    let reads = auditor(&env);
    let agent = token(&env, "agent", &["--role", "agent"]);
    let server = Server::start(&env, &[]);
    assert_eq!(server.get("/healthz", "").body, "ok\n");
    assert_eq!(server.get("/readyz", "").body, "ok\n");
    server.get("/v1/holds", &reads).done();
    server.get("/metrics", "").problem(401);
    server.get("/metrics", &agent).problem(403);
    let counted = server.get("/metrics", &reads);
    assert_eq!(counted.status, 200);
    let size = env.json(&["trail", "head"])["size"].to_string();
    for wanted in [
        "safepoint_requests_total{route=\"hold_list\",status=\"200\"} 1".to_owned(),
        "safepoint_requests_total{route=\"metrics\",status=\"401\"} 1".to_owned(),
        "safepoint_request_seconds_count{route=\"hold_list\"} 1".to_owned(),
        "safepoint_holds_open 1".to_owned(),
        format!("safepoint_trail_size {size}"),
    ] {
        assert!(
            counted.body.lines().any(|line| line == wanted),
            "{wanted}\n{}",
            counted.body
        );
    }
}

#[test]
fn su_07_settings_of_a_server_hold_for_what_it_runs() {
    let mut env = bare();
    let objects = format!("file://{}", env.root().join("objects").display());
    let key = env.root().join("team.key").display().to_string();
    let given = [
        ("objects", "SAFEPOINT_OBJECTS", objects.as_str()),
        ("key", "SAFEPOINT_KEY", &key),
        ("hold_timeout", "SAFEPOINT_HOLD_TIMEOUT", "7m"),
        ("lock_timeout", "SAFEPOINT_LOCK_TIMEOUT", "9s"),
    ];
    for (_, variable, value) in given {
        env.set(variable, value);
    }
    let reads = auditor(&env);
    let server = Server::start(&env, &[]);
    let status = server.get("/v1/status", &reads).done();
    for (name, _, value) in given {
        let setting = &status["settings"][name];
        assert_eq!(setting["value"], value, "{name}");
        assert_eq!(setting["origin"], "environment", "{name}");
    }
}
