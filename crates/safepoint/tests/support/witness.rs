//! A little HTTP server on this machine, and a witness that answers by it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::{Digest as _, Sha256};

/// What a request asks for: its path, its header lines in lower case, and its body.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// Answers every request by `answer`, until the test ends, and gives the address.
pub(crate) fn serve(mut answer: impl FnMut(&Asked) -> (u16, String) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Who goes away in the middle is gone; the next one is heard.
            let _ = converse(stream, &mut answer);
        }
    });
    address
}

fn converse(
    mut stream: TcpStream,
    answer: &mut impl FnMut(&Asked) -> (u16, String),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let headers = head.to_lowercase();
    let length = headers
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body)?;
    let asked = Asked {
        path: head.split(' ').nth(1).unwrap().to_owned(),
        headers,
        body: String::from_utf8(body).unwrap(),
    };
    let (status, said) = answer(&asked);
    let length = said.len();
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{said}"
    )
}

/// A witness that remembers the size it saw last, and leaves proofs to other tests.
pub(crate) struct Witness {
    key: SigningKey,
    pub(crate) seen: u64,
}

impl Witness {
    pub(crate) const NAME: &str = "witness.example/played";

    pub(crate) fn new(seed: u8) -> Self {
        Self {
            key: SigningKey::from_bytes(&[seed; 32]),
            seen: 0,
        }
    }

    /// Its public key in the form that is published.
    pub(crate) fn printed(&self) -> String {
        let id = u32::from_be_bytes(self.id());
        format!("{}+{id:08x}+{}", Self::NAME, BASE64.encode(self.data()))
    }

    fn data(&self) -> Vec<u8> {
        [&[4], self.key.verifying_key().as_bytes().as_slice()].concat()
    }

    fn id(&self) -> [u8; 4] {
        let text = [Self::NAME.as_bytes(), b"\n", &self.data()].concat();
        Sha256::digest(text)[..4].try_into().unwrap()
    }

    pub(crate) fn answer(&mut self, asked: &Asked) -> (u16, String) {
        let (lines, note) = asked.body.split_once("\n\n").unwrap();
        let old = lines.lines().next().unwrap().strip_prefix("old ").unwrap();
        if asked.path != "/w/add-checkpoint" {
            return (404, String::new());
        }
        if !asked.headers.contains("content-type: text/plain") {
            return (400, String::new());
        }
        if old.parse() != Ok(self.seen) {
            return (409, format!("{}\n", self.seen));
        }
        let text = format!("{}\n", note.split_once("\n\n").unwrap().0);
        self.seen = text.lines().nth(1).unwrap().parse().unwrap();
        let seconds = 1_794_800_000_u64;
        let signed = format!("cosignature/v1\ntime {seconds}\n{text}");
        let signature = self.key.sign(signed.as_bytes()).to_bytes();
        let line = [&self.id()[..], &seconds.to_be_bytes(), &signature].concat();
        (200, format!("— {} {}\n", Self::NAME, BASE64.encode(line)))
    }
}
