//! A PostgreSQL server of one test, which may do to it what no other test would survive.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server with files of its own, for as long as this is kept.
pub struct Cluster {
    directory: tempfile::TempDir,
    address: String,
}

impl Cluster {
    /// Starts one.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let printed = run(directory.path(), "start");
        let (_, address) = printed.trim_end().split_once("='").unwrap();
        Self {
            address: address.trim_end_matches('\'').to_owned(),
            directory,
        }
    }

    /// The address of its first database.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Kills it, as a power cut would, and starts it again.
    pub fn restart(&self) {
        run(self.directory.path(), "restart");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        run(self.directory.path(), "stop");
    }
}

fn run(place: &Path, verb: &str) -> String {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let output = Command::new(script)
        .arg(verb)
        .env("SAFEPOINT_TEST_POSTGRES_DIR", place)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{verb}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
