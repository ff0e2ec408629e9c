//! Buckets on the server that `SAFEPOINT_TEST_S3` names, and servers that do wrong.

#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "every test file uses another part, and tests read the environment"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use safepoint_store::Depot;

/// The address of the server.
pub(crate) fn server() -> String {
    std::env::var("SAFEPOINT_TEST_S3")
        .expect("tests with S3 need a server: run ./test, or `eval \"$(scripts/s3 start)\"` first")
}

/// What a machine must have in its environment.
pub(crate) fn variables(endpoint: &str) -> Vec<(String, String)> {
    [
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", endpoint),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

pub(crate) fn depot_at(endpoint: &str, bucket: &str, prefix: &str) -> Depot {
    let variables = variables(endpoint);
    let find = |name: &str| {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let address = format!("s3://{bucket}/{prefix}").parse().unwrap();
    Depot::open(&address, &find).unwrap()
}

/// What the server takes for the signature of its owner.
const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=testing/20261116/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

/// A bucket of its own.
pub(crate) struct Bucket {
    name: String,
}

impl Bucket {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("team-{}-{number}", std::process::id());
        let url = format!("{}/{name}", server());
        assert_eq!(ureq::put(url).send_empty().unwrap().status(), 200);
        Self { name }
    }

    /// Where objects are shared, as settings have it.
    pub(crate) fn address(&self) -> String {
        format!("s3://{}/all", self.name)
    }

    pub(crate) fn depot(&self) -> Depot {
        depot_at(&server(), &self.name, "all")
    }

    fn url(&self, name: &str) -> String {
        format!("{}/{}/all/{name}", server(), self.name)
    }

    /// Writes over an object, as the depot never would.
    pub(crate) fn forge(&self, name: &str, bytes: &[u8]) {
        let request = ureq::put(self.url(name)).header("Authorization", SIGNED);
        assert_eq!(request.send(bytes).unwrap().status(), 200);
    }

    /// Takes an object away.
    pub(crate) fn remove(&self, name: &str) {
        let request = ureq::delete(self.url(name)).header("Authorization", SIGNED);
        request.call().unwrap();
    }
}

/// What a server answers: status, body, further headers.
type Answer = (u16, &'static str, &'static str);

/// A server that answers as it is told, and remembers what it was asked.
pub(crate) struct Fake {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    pub(crate) fn start(answer: impl Fn(&str, &str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let remembered = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let mut first = String::new();
                reader.read_line(&mut first).unwrap();
                let mut words = first.split(' ');
                let (method, path) = (words.next().unwrap(), words.next().unwrap_or_default());
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    let line = line.trim_end().to_ascii_lowercase();
                    if line.is_empty() {
                        break;
                    }
                    if let Some(value) = line.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                }
                reader
                    .by_ref()
                    .take(length)
                    .read_to_end(&mut Vec::new())
                    .unwrap();
                remembered.lock().unwrap().push(format!("{method} {path}"));
                let (status, body, headers) = answer(method, path);
                let answered = write!(
                    reader.get_mut(),
                    "HTTP/1.1 {status} said\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
                    body.len()
                );
                answered.unwrap();
            }
        });
        Self { port, asked }
    }

    pub(crate) fn depot(&self) -> Depot {
        let depot = depot_at(&format!("http://127.0.0.1:{}", self.port), "team", "all");
        depot.claim("safepoint/a");
        depot
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}
