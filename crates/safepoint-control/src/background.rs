//! Work that nobody waits for, in a process of its own.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts `program` beside us, and does not wait for it. It has no terminal, and
/// outlives us.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that starts a process of our own"
)]
pub fn start_beside(
    program: &Path,
    arguments: &[&str],
    variables: &[(&str, OsString)],
) -> std::io::Result<()> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    command.spawn().map(drop)
}
