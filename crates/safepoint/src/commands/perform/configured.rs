//! What a person has configured Claude Code to run: the commands in its settings.
//!
//! Settings in the workspace count as they were when the client was started: the agent can write
//! them, too. Those elsewhere are held by the fence.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use safepoint_clients::{Client, configured_commands, settings};
use safepoint_control::pass::{SettingsDigests, client_process};
use safepoint_model::Digest;
use serde_json::Value;

use super::client_shell::SESSION;
use crate::cli::Global;
use crate::commands::install::places;
use crate::context::{Context, real_path};
use crate::error::CliError;
use crate::world::Environment;

/// Where administrators configure Claude Code.
const MANAGED: [&str; 2] = [
    "/etc/claude-code/managed-settings.json",
    "/etc/claude-code/managed-mcp.json",
];
/// The longest file of settings that is read.
const LARGEST: u64 = 64 << 20;

/// Whether a person has configured the client to run exactly this.
pub(super) fn is_configured(
    global: &Global,
    environment: &Environment,
    text: &OsStr,
) -> Result<bool, CliError> {
    let Some(text) = text.to_str() else {
        return Ok(false);
    };
    let client = Client::ClaudeCode.name();
    let context = Context::of_agent(global, &environment.directory, client)?;
    let process = client_process();
    let files = SettingsFiles::of(&context, process.0)?;
    let means_text = |value: &Value| {
        let mut commands = configured_commands(value).into_iter();
        commands.any(|command| command.is(text))
    };
    let given = given_settings(process.0);
    if given.iter().any(means_text) {
        return Ok(true);
    }
    let mut found = files.all.iter().filter_map(|file| {
        let bytes = read(file)?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        means_text(&value).then(|| (file, Digest::of_parts(&[&bytes])))
    });
    let session = environment.text(SESSION).unwrap_or_default();
    let control = context.control()?;
    let seen = control.seen_settings(client, &session, process)?;
    let home = control.home_of(client, &session)?;
    let is_seen = |file: &Path, digest: Digest| {
        let known = file.to_str().and_then(|file| seen.get(file));
        known.is_some_and(|known| *known == digest)
    };
    Ok(found.any(|(file, digest)| {
        let is_inside = files.is_inside(file)
            || home
                .as_ref()
                .is_some_and(|home| real_path(file).starts_with(home));
        !is_inside || is_seen(file, digest)
    }))
}

/// The settings that the client has, wherever they are and whoever has written them.
pub(super) fn settings_of_client(context: &Context) -> Result<Vec<Value>, CliError> {
    let process = client_process();
    let files = SettingsFiles::of(context, process.0)?;
    let found = files.all.iter().filter_map(|file| read(file));
    let mut settings: Vec<Value> = found
        .filter_map(|bytes| serde_json::from_slice(&bytes).ok())
        .collect();
    settings.extend(given_settings(process.0));
    Ok(settings)
}

/// Remembers the settings in the workspace, where a client calls that was started since the last
/// time.
pub(crate) fn note_settings(
    context: &Context,
    control: &safepoint_control::Control,
    session: &str,
) -> Result<(), CliError> {
    let process = client_process();
    let files = SettingsFiles::of(context, process.0)?;
    let digests = || -> SettingsDigests {
        let inside = files.all.iter().filter(|file| files.is_inside(file));
        let digests = inside.filter_map(|file| {
            let digest = Digest::of_parts(&[&read(file)?]);
            Some((file.to_str()?.to_owned(), digest))
        });
        digests.collect()
    };
    let client = Client::ClaudeCode.name();
    Ok(control.note_settings(client, session, process, digests)?)
}

/// The files in which Claude Code looks for settings.
struct SettingsFiles {
    root: PathBuf,
    /// Those of the project, which lie in it whatever they are called.
    project: Vec<PathBuf>,
    all: Vec<PathBuf>,
}

impl SettingsFiles {
    fn of(context: &Context, client: u32) -> Result<Self, CliError> {
        let root = context.workspace()?.root;
        let mut project = places(context, Client::ClaudeCode, settings::Scope::Project)?;
        let beside = project.iter();
        let local: Vec<PathBuf> = beside
            .map(|it| it.with_file_name("settings.local.json"))
            .collect();
        project.extend(local);
        project.push(settings::server_place(&root));
        let variables = [
            context.environment.path("HOME"),
            context.environment.path("CLAUDE_CONFIG_DIR"),
        ];
        let servers = variables.into_iter().flatten();
        let mut all: Vec<PathBuf> = MANAGED.iter().map(PathBuf::from).collect();
        all.extend(places(context, Client::ClaudeCode, settings::Scope::User)?);
        all.extend(servers.map(|place| place.join(".claude.json")));
        all.extend(named_files(client));
        all.extend(project.iter().cloned());
        Ok(Self { root, project, all })
    }

    /// Whether a file is one that the agent can write.
    fn is_inside(&self, file: &Path) -> bool {
        self.project.iter().any(|it| it == file) || real_path(file).starts_with(&self.root)
    }
}

/// What a person has named where the client was started.
fn named_settings(client: u32) -> Vec<String> {
    let line = std::fs::read_to_string(format!("/proc/{client}/cmdline")).unwrap_or_default();
    let words: Vec<String> = line.split('\0').map(str::to_owned).collect();
    let named = safepoint_clients::named_settings(&words);
    named.into_iter().map(str::to_owned).collect()
}

fn is_json(name: &str) -> bool {
    name.trim_start().starts_with('{')
}

/// The settings themselves, where they were written there.
fn given_settings(client: u32) -> Vec<Value> {
    let named = named_settings(client).into_iter();
    let given = named.filter(|name| is_json(name));
    given
        .filter_map(|name| serde_json::from_str(&name).ok())
        .collect()
}

/// The files that were named there.
fn named_files(client: u32) -> Vec<PathBuf> {
    let Ok(directory) = std::fs::read_link(format!("/proc/{client}/cwd")) else {
        return Vec::new();
    };
    let named = named_settings(client).into_iter();
    let files = named.filter(|name| !is_json(name));
    files.map(|name| directory.join(name)).collect()
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let is_small = std::fs::metadata(file).ok()?.len() <= LARGEST;
    is_small.then(|| std::fs::read(file).ok())?
}
