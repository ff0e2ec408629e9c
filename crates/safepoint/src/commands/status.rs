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
    /// The file with the token for that server.
    server_token_file: Option<Shown<String>>,
    /// The certificates that are trusted when that server is asked, if not those that Mozilla trusts.
    server_ca: Option<Shown<String>>,
    /// Where objects are shared with other machines, if they are. Without it they lie in the
    /// data directory.
    objects: Option<Shown<String>>,
    /// The key file that all machines of a deployment have, if this is one of several.
    key: Option<Shown<String>>,
    lock_timeout: Shown<String>,
    checkpoint: Shown<CheckpointMode>,
    hold_timeout: Shown<String>,
    hook_wait: Shown<String>,
    /// How large the objects may grow here.
    object_cap: Shown<String>,
    /// To whom sensitive files are encrypted; to a key of one's own where there are none.
    seal_to: Vec<String>,
    /// Where people reach the page, for links in messages.
    public_url: Option<Shown<String>>,
    /// Those that the project names.
    atlases: Vec<String>,
    /// Those that apply here, and who names each; the built-in one where there are none.
    atlases_in_force: Vec<Shown<String>>,
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
    let server = settings.server.as_ref();
    let in_force = context.named_atlases()?;
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
            server: server.map(|server| Shown {
                value: server.url.clone(),
                origin: settings.store.origin,
            }),
            server_token_file: server.map(|it| Shown::of(&it.token_file, |path| text(path))),
            server_ca: server.and_then(|it| Shown::of_some(&it.certificates, |path| text(path))),
            objects: Shown::of_some(&settings.objects, ToString::to_string),
            key: Shown::of_some(&settings.key, |path| text(path)),
            lock_timeout: Shown::of(&settings.lock_timeout, ToString::to_string),
            checkpoint: Shown::of(&settings.checkpoint, |mode| *mode),
            hold_timeout: Shown::of(&settings.hold_timeout, ToString::to_string),
            hook_wait: Shown::of(&settings.hook_wait, ToString::to_string),
            object_cap: Shown::of(&settings.object_cap, ToString::to_string),
            seal_to: settings.seal_to.clone(),
            public_url: Shown::of_some(&settings.public_url, String::clone),
            atlases_in_force: in_force
                .iter()
                .map(|atlas| Shown::of(atlas, |path| text(path)))
                .collect(),
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
    for (name, setting) in [
        ("server token", &settings.server_token_file),
        ("server ca", &settings.server_ca),
        ("objects", &settings.objects),
        ("key", &settings.key),
        ("public url", &settings.public_url),
    ] {
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
    if settings.object_cap.origin != Origin::Default {
        let cap = &settings.object_cap;
        line("object cap", &cap.value, &from(cap.origin));
    }
    for key in &settings.seal_to {
        line("seal to", key, "");
    }
    for atlas in &settings.atlases_in_force {
        line("atlas", &atlas.value, &from(atlas.origin));
    }
    for file in &status.settings_files {
        line("settings", file, "");
    }
    shown
}
