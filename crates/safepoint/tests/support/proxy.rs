//! Somebody between a machine and its server, who changes what is answered.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Somebody in between.
pub(crate) struct Proxy {
    /// Where they listen.
    pub(crate) address: String,
    honest: Arc<AtomicBool>,
}

impl Proxy {
    /// Passes everything on, and changes the bodies of answers to requests that begin so.
    pub(crate) fn start(
        server: &str,
        begins: &'static str,
        change: impl Fn(&str) -> Option<String> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let honest = Arc::new(AtomicBool::new(false));
        let (server, passes) = (server.to_owned(), Arc::clone(&honest));
        let ours = address.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream = BufReader::new(stream);
                let Some((head, body)) = message(&mut stream) else {
                    continue;
                };
                let changes = head.starts_with(begins) && !passes.load(Ordering::SeqCst);
                let head = head.replace(&ours, &server);
                let mut there = TcpStream::connect(&server).unwrap();
                there.write_all(head.as_bytes()).unwrap();
                there.write_all(&body).unwrap();
                let (head, body) = message(&mut BufReader::new(there)).unwrap();
                let text = String::from_utf8(body).unwrap();
                let body = match changes {
                    true => change(&text).unwrap_or(text),
                    false => text,
                };
                let status = head.lines().next().unwrap_or_default();
                let answer = format!(
                    "{status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        });
        Self { address, honest }
    }

    /// Changes nothing any more.
    pub(crate) fn let_through(&self) {
        self.honest.store(true, Ordering::SeqCst);
    }
}

/// Somebody who sends everybody elsewhere.
pub(crate) fn redirecting(to: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let to = to.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = BufReader::new(stream);
            let _ = message(&mut stream);
            let answer = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{to}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    address
}

/// One message: its head with the empty line, and its body.
fn message(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        let ends = line == "\r\n";
        head.push_str(&line);
        if ends {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}
