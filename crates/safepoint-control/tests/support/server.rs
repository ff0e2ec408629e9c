//! A real HTTPS server on this machine, which answers as it is told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rcgen::CertificateParams;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What the server does with a request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends these bytes, and then nothing more for as long as the client stays.
    Stall(Vec<u8>),
    /// Does not even greet.
    Mute,
}

impl Answer {
    pub(crate) fn json(body: &str) -> Self {
        Self::status("200 OK", body)
    }

    pub(crate) fn status(status: &str, body: &str) -> Self {
        let length = body.len();
        Self::Bytes(
            format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .into_bytes(),
        )
    }
}

/// A server. It stops when it is dropped.
pub(crate) struct Server {
    port: u16,
    pem: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    config: Arc<ServerConfig>,
    /// The last one again and again.
    answers: Mutex<Vec<Answer>>,
    requests: Mutex<Vec<String>>,
    connections: Mutex<usize>,
    over: AtomicBool,
}

impl Server {
    /// A server that gives these answers in order, and the last one from then on.
    pub(crate) fn new(answers: impl Into<Vec<Answer>>) -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        Self::with_certificate(CertificateParams::new(names).unwrap(), answers)
    }

    pub(crate) fn with_certificate(
        params: CertificateParams,
        answers: impl Into<Vec<Answer>>,
    ) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            config: Arc::new(config),
            answers: Mutex::new(answers.into()),
            requests: Mutex::default(),
            connections: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.over.load(Ordering::SeqCst) {
                    break;
                }
                *serving.connections.lock().unwrap() += 1;
                // A client that goes away is what many tests are about.
                let _ = serving.serve(stream.unwrap());
            }
        });
        Self {
            port,
            pem: certificate.pem(),
            shared,
            thread: Some(thread),
        }
    }

    /// An address at this server, by a name that has a private address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// What was asked so far, heads and bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// How many connections were made so far.
    pub(crate) fn connections(&self) -> usize {
        *self.shared.connections.lock().unwrap()
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let answer = {
            let mut answers = self.answers.lock().unwrap();
            match answers.len() {
                1 => answers[0].clone(),
                _ => answers.remove(0),
            }
        };
        if let Answer::Mute = answer {
            return wait_until_gone(&mut stream);
        }
        let connection = ServerConnection::new(Arc::clone(&self.config)).unwrap();
        let mut tls = StreamOwned::new(connection, stream);
        let request = read_request(&mut tls)?;
        self.requests.lock().unwrap().push(request);
        match answer {
            Answer::Bytes(bytes) => {
                tls.write_all(&bytes)?;
                tls.conn.send_close_notify();
                tls.flush()?;
                wait_until_gone(&mut tls)
            }
            Answer::Stall(bytes) => {
                tls.write_all(&bytes)?;
                tls.flush()?;
                wait_until_gone(&mut tls)
            }
            Answer::Mute => Ok(()),
        }
    }
}

/// Head and body of one request with a length.
fn read_request(stream: &mut impl Read) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0_usize);
            if body.len() >= length {
                return Ok(text);
            }
        }
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Reads until the client is gone, so that it never sees a reset in place of an answer.
fn wait_until_gone(stream: &mut impl Read) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes it up.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
