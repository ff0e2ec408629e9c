//! `safepoint status`: where everything is and how it stands.

use std::collections::BTreeMap;

use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, STRONG, count};
use crate::context::Context;
use crate::error::CliError;
use crate::settings::{CheckpointMode, Origin, Setting, StateProvider};

/// What `status` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The version of this program.
    version: &'static str,
    /// The directory the command works in.
    directory: String,
    /// Where things are kept.
    paths: Places,
    /// The trail of the store.
    trail: TrailStatus,
    /// The settings in force, and where each came from.
    settings: Effective,
    /// The settings files that were read, strongest first.
    settings_files: Vec<String>,
}

/// Where things are kept.
#[derive(Serialize, JsonSchema)]
struct Places {
    config: String,
    data: String,
    state: String,
    runtime: String,
}

/// How the trail stands.
#[derive(Serialize, JsonSchema)]
struct TrailStatus {
    /// How many entries it has.
    entries: u64,
    /// How many of them the copy outside the database covers. More than there
    /// are means that some are gone.
    witnessed: u64,
    /// The name of the log.
    origin: String,
    /// Its public key.
    key: String,
}

/// A setting and its origin.
#[derive(Serialize, JsonSchema)]
struct Shown<T> {
    value: T,
    origin: Origin,
}

impl<T> Shown<T> {
    fn of<S>(setting: &Setting<S>, show: impl FnOnce(&S) -> T) -> Self {
        Self {
            value: show(&setting.value),
            origin: setting.origin,
        }
    }

    /// One that may be unset.
    fn of_some<S>(setting: &Setting<Option<S>>, show: impl FnOnce(&S) -> T) -> Option<Self> {
        Some(Self {
            value: show(setting.value.as_ref()?),
            origin: setting.origin,
        })
    }
}

/// The settings in force.
#[derive(Serialize, JsonSchema)]
struct Effective {
    /// Where everything is kept; with a server, what this machine remembers itself.
    store: Shown<String>,
    /// The server that judges and keeps the record, if it is not this machine.
    server: Option<Shown<String>>,
    /// Where objects are shared with other machines, if they are. Without it they lie in the
    /// data directory.
    objects: Option<Shown<String>>,
    /// The key file that all machines of a deployment have, if this is one of several.
    key: Option<Shown<String>>,
    lock_timeout: Shown<String>,
    checkpoint: Shown<CheckpointMode>,
    hold_timeout: Shown<String>,
    hook_wait: Shown<String>,
    atlases: Vec<String>,
    exclude: Vec<String>,
    include: Vec<String>,
    state_providers: BTreeMap<String, StateProvider>,
}

pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let head = trail.head()?;
    let witnessed = trail.witnessed()?;
    let text = |path: &std::path::Path| path.display().to_string();
    let (paths, settings) = (&context.paths, &context.settings);
    let status = Status {
        version: env!("CARGO_PKG_VERSION"),
        directory: text(&context.directory),
        paths: Places {
            config: text(&paths.config),
            data: text(&paths.data),
            state: text(&paths.state),
            runtime: text(&paths.runtime),
        },
        trail: TrailStatus {
            entries: head.size(),
            witnessed,
            origin: head.head().origin.clone(),
            key: trail.key().to_string(),
        },
        settings: Effective {
            store: Shown::of(&settings.store, ToString::to_string),
            server: settings.server.as_ref().map(|server| Shown {
                value: server.url.clone(),
                origin: settings.store.origin,
            }),
            objects: Shown::of_some(&settings.objects, ToString::to_string),
            key: Shown::of_some(&settings.key, |path| text(path)),
            lock_timeout: Shown::of(&settings.lock_timeout, ToString::to_string),
            checkpoint: Shown::of(&settings.checkpoint, |mode| *mode),
            hold_timeout: Shown::of(&settings.hold_timeout, ToString::to_string),
            hook_wait: Shown::of(&settings.hook_wait, ToString::to_string),
            atlases: settings
                .project
                .atlases
                .iter()
                .map(|path| text(path))
                .collect(),
            exclude: settings.project.exclude.clone(),
            include: settings.project.include.clone(),
            state_providers: settings.project.state_providers.clone(),
        },
        settings_files: settings.files.iter().map(|path| text(path)).collect(),
    };
    context.console.value(&status, show)?;
    Ok(Exit::Done)
}

fn show(status: &Status) -> String {
    let mut shown = String::new();
    let mut line = |name: &str, value: &str, note: &str| {
        let note = if note.is_empty() {
            String::new()
        } else {
            format!("  {FAINT}({note}){FAINT:#}")
        };
        let value = text::line(value).text;
        shown.push_str(&format!("{STRONG}{name:<14}{STRONG:#}{value}{note}\n"));
    };
    let from = |origin: Origin| match origin {
        Origin::Default => String::new(),
        other => other.to_string(),
    };
    let settings = &status.settings;
    match &settings.server {
        None => line("store", &settings.store.value, &from(settings.store.origin)),
        Some(server) => {
            line("server", &server.value, &from(server.origin));
            line(
                "store",
                &settings.store.value,
                "what this machine remembers",
            );
        }
    }
    let shared = [("objects", &settings.objects), ("key", &settings.key)];
    for (name, setting) in shared {
        if let Some(setting) = setting {
            line(name, &setting.value, &from(setting.origin));
        }
    }
    let entries = count(status.trail.entries, "entry", "entries");
    let trail = if status.trail.witnessed > status.trail.entries {
        let signed = status.trail.witnessed;
        format!("{entries}, but {signed} were signed: see `safepoint trail verify`")
    } else {
        entries
    };
    line("trail", &trail, &status.trail.origin);
    line("directory", &status.directory, "");
    line("data", &status.paths.data, "");
    line("state", &status.paths.state, "");
    line("config", &status.paths.config, "");
    let mode = match settings.checkpoint.value {
        CheckpointMode::Always => "always",
        CheckpointMode::Policy => "policy",
        CheckpointMode::Never => "never",
    };
    line("checkpoint", mode, &from(settings.checkpoint.origin));
    line(
        "hold timeout",
        &settings.hold_timeout.value,
        &from(settings.hold_timeout.origin),
    );
    for file in &status.settings_files {
        line("settings", file, "");
    }
    shown
}
