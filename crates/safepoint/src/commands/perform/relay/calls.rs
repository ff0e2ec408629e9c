//! Outside of the sandbox: a line that only calls us.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::shell_named;
use super::{FromOutside, key};
use crate::cli::Global;
use crate::error::CliError;

/// So much of what a line prints is brought back.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Whether this is the line that the relay was started for: its directory is called by it.
pub(super) fn is_own_line(directory: &Path, names: [&str; 2], line: &str) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    names
        .iter()
        .any(|known| name.starts_with(&key(known, line)))
}

/// Runs it as it would run where the client has no sandbox, and keeps what it prints.
pub(super) fn call(
    global: &Global,
    client: &str,
    session: &str,
    line: &str,
) -> Result<FromOutside, CliError> {
    // A shell stays between: who this program starts itself counts as kept by `run`.
    #[expect(clippy::disallowed_methods, reason = "this program itself")]
    let mut command = Command::new(shell_named("bash"));
    command
        .args(["-c", "\"$@\"; exit $?", "bash"])
        .arg(crate::world::this_program()?);
    if let Some(store) = &global.store {
        command.arg("--store").arg(store);
    }
    let mut child = command
        .args(["perform", session, "--", "bash", "-c", line])
        .env("SAFEPOINT_AGENT", client)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let errors = child.stderr.take();
    let errors = std::thread::spawn(move || text_of(errors));
    let stdout = text_of(child.stdout.take());
    let stderr = errors.join().unwrap_or_default();
    let code = child
        .wait()?
        .code()
        .and_then(|code| u8::try_from(code).ok());
    Ok(FromOutside::Called {
        code: code.unwrap_or(1),
        stdout,
        stderr,
    })
}

/// What comes out of a pipe, to its end; the beginning of it is kept.
fn text_of(pipe: Option<impl Read>) -> String {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut kept);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    String::from_utf8_lossy(&kept).into_owned()
}
