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

use http::{Server, read_reply, token};
use passage::bare;

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
