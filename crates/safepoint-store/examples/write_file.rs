//! Writes one file, or one blob, and is meant to be killed while it does.
//!
//! `write_file DIRECTORY NAME CONTENT` writes a file through `durable::write`;
//! `write_file DIRECTORY --blob CONTENT` keeps a blob. The tests in
//! `tests/crash.rs` start it with `SAFEPOINT_FAULT` set.

use std::path::PathBuf;
use std::process::ExitCode;

use safepoint_store::Blobs;
use safepoint_store::durable::{self, Access};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, name, content] = arguments.as_slice() else {
        eprintln!("usage: write_file DIRECTORY NAME|--blob CONTENT");
        return ExitCode::from(7);
    };
    let written = if name == "--blob" {
        Blobs::new(directory).put(content.as_bytes()).map(drop)
    } else {
        let path = PathBuf::from(directory).join(name);
        durable::write(&path, content.as_bytes(), Access::Private)
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
