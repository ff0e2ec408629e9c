//! What capturing a SQLite database costs: `sqlite_capture FILE [nothing|digest|store]`.
//!
//! `nothing` throws the bytes away, `digest` only digests them, `store` cuts and compresses
//! them with the parameters of our object store. Prints the seconds of processor time.

#![expect(clippy::expect_used, reason = "a measuring tool: it fails loudly")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use fastcdc::v2020::FastCDC;
use safepoint_database::{Access, Address, Database, DatabaseError, Keep, Piece, Sink};
use safepoint_model::Digest;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nothing,
    Digest,
    Store,
}

struct Kept(Mode);

impl Keep for Kept {
    fn begin(&self) -> Box<dyn Sink + '_> {
        let mut compressor = zstd::bulk::Compressor::new(1).expect("a compressor");
        use zstd::zstd_safe::{CParameter, ParamSwitch};
        for parameter in [
            CParameter::MinMatch(7),
            CParameter::HashLog(12),
            CParameter::TargetLength(4),
            CParameter::LiteralCompressionMode(ParamSwitch::Enable),
        ] {
            compressor.set_parameter(parameter).expect("a parameter");
        }
        Box::new(One {
            mode: self.0,
            size: 0,
            stored: 0,
            hasher: blake3::Hasher::new(),
            held: Vec::new(),
            compressor,
        })
    }
}

struct One {
    mode: Mode,
    size: u64,
    stored: usize,
    hasher: blake3::Hasher,
    held: Vec<u8>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl One {
    fn cut(&mut self, least: usize) {
        let (mut start, length) = (0, self.held.len());
        while length - start > least {
            let cutter = FastCDC::new(&self.held, 128 << 10, 512 << 10, 2 << 20);
            let (_, end) = cutter.cut(start, length - start);
            let chunk = self.held.get(start..end).unwrap_or_default();
            std::hint::black_box(blake3::hash(chunk));
            self.stored += self.compressor.compress(chunk).expect("compressing").len();
            start = end;
        }
        self.held.drain(..start);
    }
}

impl Sink for One {
    fn push(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.size += bytes.len() as u64;
        if self.mode != Mode::Nothing {
            self.hasher.update(bytes);
        }
        if self.mode == Mode::Store {
            self.held.extend_from_slice(bytes);
            self.cut(2 << 20);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Piece, DatabaseError> {
        self.cut(0);
        println!("{} bytes stored", self.stored);
        Ok(Piece {
            content: Digest::from_bytes(*self.hasher.finalize().as_bytes()),
            size: self.size,
        })
    }
}

/// Seconds of processor time of this process.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let ticks = stat.split_whitespace().skip(13).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0)
        .sum()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("FILE");
    let mode = match arguments.next().as_deref() {
        None | Some("nothing") => Mode::Nothing,
        Some("digest") => Mode::Digest,
        _ => Mode::Store,
    };
    let address = Address::parse(&format!("sqlite:{file}"), &PathBuf::from("/")).expect("a path");
    let access = Access {
        variables: std::env::vars_os().collect(),
        scratch: Path::new("/tmp").to_owned(),
        lock_timeout: Duration::from_secs(5),
    };
    let image = Database::new(address, access)
        .capture(&Kept(mode))
        .expect("a capture");
    println!("{} rows, {} seconds", image.rows(), processor());
}
