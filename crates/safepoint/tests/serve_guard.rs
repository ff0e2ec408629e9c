//! The server against somebody who wants to keep others out, or sees what is not theirs.

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

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use http::{Reply, Server, follow, read_reply, token};
use passage::{add, bare};

/// Only so that what would hang fails.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn su_08_a_form_that_does_not_come_is_cut() {
    let env = bare();
    let server = Server::start(&env, &["--timeout", "1s"]);
    let mut stream = server.connect();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /sign-in HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Length: 1000\r\n\r\nt",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let cut = read_reply(&mut stream);
    cut.problem(408);
    assert_eq!(cut.header("connection"), Some("close"));
}

#[test]
fn su_07_a_request_line_that_names_another_host_is_refused() {
    let env = bare();
    let server = Server::start(&env, &[]);
    let here = &server.address;
    let ask = |line: &str| {
        let mut stream = server.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("{line} HTTP/1.1\r\nHost: {here}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        read_reply(&mut stream)
    };
    ask("GET http://evil.example/v1/sessions").problem(421);
    // As a proxy sends it; who asks has no token.
    ask(&format!("GET http://{here}/v1/sessions")).problem(401);
}

#[test]
fn su_07_one_address_has_half_of_the_connections() {
    let env = bare();
    let server = Server::start(&env, &["--timeout", "10m"]);
    let connect = || -> TcpStream {
        let stream = server.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let mut silent: Vec<TcpStream> = (0..512).map(|_| connect()).collect();
    // One more is hung up on at once.
    let read = connect().read(&mut [0]);
    assert!(
        matches!(&read, Ok(0)) || read.is_err_and(|it| it.kind() == ErrorKind::ConnectionReset)
    );
    // It has another when it gives one back, as soon as that is noticed.
    silent.pop();
    let ask = format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        server.address
    );
    loop {
        let mut stream = connect();
        let mut answer = String::new();
        let _ = stream.write_all(ask.as_bytes());
        if stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200") {
            break;
        }
    }
}

#[test]
fn su_07_who_takes_no_answer_is_cut() {
    let env = bare();
    let reads = token(&env, "reads", &["--role", "auditor"]);
    let server = Server::start(&env, &["--timeout", "1s", "--rate", "100000"]);
    let mut stream = server.connect();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let ask = format!(
        "GET /v1/openapi.json HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {reads}\r\n\r\n",
        server.address
    );
    // It asks and asks, and reads nothing.
    let end = loop {
        if let Err(error) = stream.write_all(ask.as_bytes()) {
            break error.kind();
        }
    };
    let cut = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(cut.contains(&end), "{end}");
}

/// A browser that is signed in.
struct Browser<'s> {
    server: &'s Server,
    cookie: String,
}

impl<'s> Browser<'s> {
    #[track_caller]
    fn sign_in(server: &'s Server, token: &str) -> Self {
        let cookie = String::new();
        let mut browser = Self { server, cookie };
        let entered = browser.post("/sign-in", &format!("token={token}"));
        let cookie = entered.header("set-cookie");
        let cookie = cookie.unwrap_or_else(|| panic!("{entered:?}"));
        browser.cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
        browser
    }

    #[track_caller]
    fn get(&self, path: &str) -> Reply {
        self.server.ask("GET", path, "", &[&self.cookie], None)
    }

    #[track_caller]
    fn post(&self, path: &str, form: &str) -> Reply {
        let Self { server, cookie } = self;
        let cookie = match cookie.is_empty() {
            true => String::new(),
            false => format!("{cookie}\r\n"),
        };
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\n{cookie}Connection: close\r\nContent-Length: {1}\r\n\r\n{form}",
            server.address,
            form.len()
        );
        server.raw(head.as_bytes())
    }
}

/// What stands between two texts.
#[track_caller]
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before} in {text}"));
    rest.split_once(after).unwrap().0
}

#[test]
fn su_08_checkpoints_of_every_workspace_below_the_root_can_be_used() {
    let env = bare();
    env.write("project/one/a.txt", "one\n");
    let file = env.write("project/two/b.txt", "before\n");
    add(&env, "ann");
    let ann = token(&env, "ann", &["--role", "operator"]);
    let limits = ["--role", "operator", "--operator", "ann"];
    let scope = ["--scope", "workspace:one"];
    let limited = token(&env, "limited", &[&limits[..], &scope].concat());
    env.json(&["checkpoint", "-C", "one"]);
    let made = env.json(&["checkpoint", "-C", "two"]);
    let id = made["checkpoint_id"].as_str().unwrap();
    std::fs::write(&file, "after\n").unwrap();
    let server = Server::start(&env, &["--root", "."]);
    let browser = Browser::sign_in(&server, &ann);
    #[track_caller]
    fn shown(reply: Reply, what: &str) -> String {
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.body.contains(what), "no {what}: {reply:?}");
        reply.body
    }
    let at = |step: &str| format!("/checkpoints/{id}{step}");
    shown(browser.get("/checkpoints"), &at(""));
    let page = shown(browser.get(&at("")), "b.txt");
    assert!(!page.contains("cannot be compared"), "{page}");
    shown(browser.get(&at("/diff")), "after");
    let plan = shown(browser.get(&at("/rollback")), "b.txt");
    let mark = between(&plan, r#"name="mark" value=""#, "\"");
    let seal = between(&plan, r#"name="plan" value=""#, "\"");
    let form = format!("mark={mark}&plan={seal}");
    let done = shown(browser.post(&at("/rollback"), &form), "b.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before\n");
    let action = between(&done, "/actions/", "/undo");
    let undo = format!("/actions/{action}/undo");
    shown(browser.get(&undo), "b.txt");
    // To whom the workspace does not belong it is not there, and nor is its path.
    let browser = Browser::sign_in(&server, &limited);
    for path in [at(""), at("/diff"), at("/rollback"), undo] {
        let nothing = browser.get(&path);
        assert_eq!(nothing.status, 404, "{nothing:?}");
        assert!(!nothing.body.contains("project/two"), "{nothing:?}");
    }
}

#[test]
fn su_08_the_page_can_be_used_behind_a_proxy_that_speaks_https() {
    let env = bare();
    let reads = token(&env, "reads", &["--role", "auditor"]);
    let server = Server::start(&env, &["--host", "https://safepoint.example"]);
    let form = format!("token={reads}");
    let enter = |scheme: &str| {
        let head = format!(
            "POST /sign-in HTTP/1.1\r\nHost: safepoint.example\r\nOrigin: {scheme}://safepoint.example\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        server.raw(head.as_bytes())
    };
    assert_eq!(enter("http").status, 403);
    let entered = enter("https");
    assert_eq!(entered.status, 303, "{entered:?}");
    let cookie = entered.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-safepoint=") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    let line = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let inbox = server.raw(
        format!("GET / HTTP/1.1\r\nHost: safepoint.example\r\n{line}\r\nConnection: close\r\n\r\n")
            .as_bytes(),
    );
    assert_eq!(inbox.status, 200, "{inbox:?}");
    let held = inbox.header("strict-transport-security");
    assert_eq!(held, Some("max-age=31536000"));
    // By its address it is reached over HTTP still.
    let direct = server.get("/healthz", "");
    assert_eq!(direct.header("strict-transport-security"), None);
    let wrong = env.run(&["serve", "--host", "http://safepoint.example", "--json"]);
    assert_eq!(wrong.code, 7, "{wrong:?}");
}

#[test]
fn su_07_who_guesses_is_stopped_and_keeps_nobody_out() {
    let env = bare();
    let reads = token(&env, "reads", &["--role", "auditor"]);
    let server = Server::start(&env, &[]);
    let guess = format!("spt_{}", "0".repeat(64));
    let stopped = (0..90).find_map(|_| {
        let reply = server.get("/v1/trail/head", &guess);
        (reply.status != 401).then_some(reply)
    });
    let stopped = stopped.unwrap();
    stopped.problem(429);
    assert!(stopped.header("retry-after").is_some());
    // From the same address, with a token that is good.
    server.get("/v1/trail/head", &reads).done();
    let browser = Browser::sign_in(&server, &reads);
    assert_eq!(browser.get("/").status, 200);
    // A guess is one on the page, too.
    let refused = (0..90).map(|_| browser.post("/sign-in", &format!("token={guess}")).status);
    assert!(refused.into_iter().any(|status| status == 429));
}

#[test]
fn su_07_one_token_does_not_take_all_places_of_followers() {
    let env = bare();
    let one = token(&env, "one", &["--role", "agent"]);
    let other = token(&env, "other", &["--role", "agent"]);
    let server = Server::start(&env, &[]);
    let _followed: Vec<_> = (0..16).map(|_| follow(&server, "", &one, "")).collect();
    let mut stream = server.connect();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET /v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {one}\r\nConnection: close\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Only the beginning: one that is let in has no end.
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 503");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\r\nretry-after: "), "{rest}");
    follow(&server, "", &other, "");
}

#[test]
fn su_07_a_head_has_its_measure_and_the_log_too() {
    let env = bare();
    let server = Server::start(&env, &[]);
    let ask = |method: &str, size: usize| {
        let head = format!(
            "{method} /v1/nothing HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nX: ",
            server.address
        );
        let rest = size - head.len() - 4;
        server.raw(format!("{head}{}\r\n\r\n", "x".repeat(rest)).as_bytes())
    };
    ask("GET", 64 << 10).problem(404);
    assert_eq!(ask("GET", (64 << 10) + 1).status, 431);
    assert_eq!(ask("GET", 70_000).status, 431);
    ask(&"M".repeat(3_000), 4_000);
    server.terminate();
    let (_, log) = server.end();
    assert!(log.contains(r#""method":"MMMMMMMMMMMMMMMM","#), "{log}");
}
