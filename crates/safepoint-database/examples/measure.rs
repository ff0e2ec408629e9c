//! Captures a database into a directory, or restores it from there: for measuring.
//!
//! ```text
//! measure capture ADDRESS DIRECTORY
//! measure restore ADDRESS DIRECTORY
//! ```
//!
//! Pieces are kept as a store would keep them: hashed with BLAKE3, compressed with zstd
//! at level 1, one file each.

#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a tool for measuring, which nobody installs"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use safepoint_database::{
    Access, Address, Contents, Database, DatabaseError, Image, Keep, Piece, Sink,
};
use safepoint_model::Digest;

struct Directory(PathBuf);

struct FileSink<'a> {
    directory: &'a Path,
    file: tempfile::NamedTempFile,
    encoder: zstd::Encoder<'static, File>,
    hasher: blake3::Hasher,
    size: u64,
}

fn failed(error: std::io::Error) -> DatabaseError {
    DatabaseError::Kept(std::sync::Arc::new(error))
}

impl Keep for Directory {
    fn begin(&self) -> Box<dyn Sink + '_> {
        let file = tempfile::NamedTempFile::new_in(&self.0).expect("a file");
        let inner = file.reopen().expect("the same file");
        Box::new(FileSink {
            directory: &self.0,
            encoder: zstd::Encoder::new(inner, 1).expect("an encoder"),
            file,
            hasher: blake3::Hasher::new(),
            size: 0,
        })
    }
}

impl Sink for FileSink<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        self.encoder.write_all(bytes).map_err(failed)
    }

    fn finish(self: Box<Self>) -> Result<Piece, DatabaseError> {
        self.encoder.finish().map_err(failed)?;
        let content = Digest::from_bytes(self.hasher.finalize().into());
        let path = self.directory.join(content.to_string());
        self.file
            .persist(path)
            .map_err(|error| failed(error.error))?;
        Ok(Piece {
            content,
            size: self.size,
        })
    }
}

impl Contents for Directory {
    fn copy(
        &self,
        piece: &Piece,
        take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let file = File::open(self.0.join(piece.content.to_string())).map_err(failed)?;
        let mut decoder = zstd::Decoder::new(file).map_err(failed)?;
        let mut run = vec![0; 128 * 1024];
        loop {
            let length = decoder.read(&mut run).map_err(failed)?;
            match run.get(..length) {
                Some(read) if length > 0 => take(read)?,
                _ => return Ok(()),
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [action, address, directory] = arguments.as_slice() else {
        eprintln!("usage: measure capture|restore ADDRESS DIRECTORY");
        return;
    };
    let directory = Directory(directory.into());
    let address = Address::parse(address, Path::new("/")).expect("an address");
    let access = Access {
        variables: std::env::vars_os().collect(),
        scratch: directory.0.clone(),
        lock_timeout: Duration::from_secs(10),
    };
    let database = Database::new(address, access);
    let listed = directory.0.join("image.json");
    match action.as_str() {
        "capture" => {
            let image = database.capture(&directory).expect("a capture");
            let text = serde_json::to_vec(&image).expect("JSON");
            std::fs::write(listed, text).expect("a file");
            println!("{}", image.digest());
        }
        _ => {
            let text = std::fs::read(listed).expect("a capture");
            let image: Image = serde_json::from_slice(&text).expect("JSON");
            let restored = database.restore(&image, &directory).expect("a restore");
            println!("{:?}", restored.warnings);
        }
    }
}
