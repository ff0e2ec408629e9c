//! A call that must be denied, sent through the hook as a client would send it: in a project
//! and a store that are thrown away, so that nothing real is touched.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use safepoint_clients::{Client, Wire, canary, is_refusal};

use crate::context::Context;

/// Tries an installed hook: garbage and a reach for the store must be denied, and a harmless
/// line must pass.
pub(super) fn sing(context: &Context, client: Client, program: &Path) -> Result<(), String> {
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (home, project) = (place.path().join("home"), place.path().join("project"));
    std::fs::create_dir_all(&project).map_err(|error| error.to_string())?;
    let cage = Cage {
        context,
        client,
        program,
        home: &home,
        project: &project,
    };
    // Whoever has reached for the store is asked about everything afterwards, so this is first.
    if cage.hears(canary(client, &project, "true").as_bytes())? {
        return Err("a harmless call was denied".to_owned());
    }
    let deletion = format!("rm -rf {}", home.display());
    if !cage.hears(canary(client, &project, &deletion).as_bytes())? {
        return Err("a call that must be denied was let through".to_owned());
    }
    match cage.hears(b"this is no event")? {
        true => Ok(()),
        false => Err("what it could not understand was let through".to_owned()),
    }
}

struct Cage<'a> {
    context: &'a Context,
    client: Client,
    program: &'a Path,
    home: &'a Path,
    project: &'a Path,
}

impl Cage<'_> {
    /// Whether what is said is refused.
    fn hears(&self, said: &[u8]) -> Result<bool, String> {
        let failed = |error: std::io::Error| {
            format!("`{}` cannot be started: {error}", self.program.display())
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the hook, as its client starts it"
        )]
        let mut command = Command::new(self.program);
        command
            .args(["hook", self.client.name()])
            .current_dir(self.project)
            .env_clear()
            .envs(
                self.context
                    .environment
                    .variables()
                    .into_iter()
                    .filter(|(name, _)| !name.to_string_lossy().starts_with("SAFEPOINT_")),
            )
            .env("SAFEPOINT_HOME", self.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut pipe) = child.stdin.take() {
            // One that ends without listening tells so by how it ends.
            let _ = pipe.write_all(said);
        }
        let output = child.wait_with_output().map_err(failed)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Some(exit) = output
            .status
            .code()
            .and_then(|code| u8::try_from(code).ok())
        else {
            return Err("it was killed".to_owned());
        };
        Ok(is_refusal(&Wire {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            exit,
        }))
    }
}
