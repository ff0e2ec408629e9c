//! `safepoint install|uninstall CLIENT`: puts our hooks into a client's own settings, and takes
//! them out again.

mod file;

use std::path::PathBuf;

use safepoint_clients::settings::{self, HookCommand, Roots, Scope};
use safepoint_clients::skills::{Skill, skill_directory};
use safepoint_clients::{Client, settings::home_variable};
use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, GOOD, HINT, STRONG};
use crate::context::Context;
use crate::error::CliError;
use file::{Change, Keep};

/// Arguments of `install`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The client: claude-code, codex, gemini, copilot, cursor or opencode
    #[arg(value_parser = client)]
    client: Client,
    /// Only in this project, rather than wherever you work
    #[arg(long)]
    project: bool,
    /// Write a Claude Code plugin with hooks, tools and skills into this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "project")]
    plugin: Option<PathBuf>,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `uninstall`
#[derive(Debug, clap::Args)]
pub(crate) struct Removal {
    /// The client: claude-code, codex, gemini, copilot, cursor or opencode
    #[arg(value_parser = client)]
    client: Client,
    /// Only from this project, rather than wherever you work
    #[arg(long)]
    project: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

fn client(name: &str) -> Result<Client, String> {
    name.parse()
}

/// What `install` and `uninstall` print.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InstallReply {
    client: &'static str,
    /// Whether anything was written, or would be.
    changed: bool,
    /// Whether it was only shown.
    dry_run: bool,
    files: Vec<FileReply>,
    /// What these hooks cannot see.
    not_covered: Vec<&'static str>,
}

/// One file of a client.
#[derive(Serialize, JsonSchema)]
struct FileReply {
    path: String,
    /// `created`, `changed`, `unchanged`, `deleted`, or `kept`: somebody else wrote it, or
    /// changed it since, and it was left as it is.
    change: &'static str,
    /// Where the file as it was before has been kept.
    backup: Option<String>,
    /// The new text, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

pub(crate) fn install(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let command = HookCommand {
        program: this_program()?,
    };
    let client = arguments.client;
    let mut changes = Vec::new();
    if let Some(directory) = &arguments.plugin {
        if client != Client::ClaudeCode {
            return Err(CliError::Invalid {
                message: format!("{} has no plugins of this kind", client.title()),
                suggestion: "leave `--plugin` out",
            });
        }
        let root = context.directory.join(directory);
        for (path, content) in settings::plugin(&command).map_err(|error| wrong(&root, &error))? {
            changes.push(Change::to(root.join(path), Some(content))?);
        }
    } else {
        for path in places(context, client, scope(arguments.project))? {
            let change = Change::of(path, |existing| {
                settings::install(client, existing, &command).map(Some)
            })?;
            changes.push(change);
        }
        let directory = skills_place(context, client, scope(arguments.project))?;
        for skill in Skill::all() {
            let file = skill.file(&command);
            let (path, text) = file.map_err(|error| wrong(&directory, &error))?;
            changes.push(Change::of_skill(directory.join(path), Some(text))?);
        }
    }
    tell(context, client, changes, arguments.dry_run, "install")
}

pub(crate) fn uninstall(context: &mut Context, arguments: &Removal) -> Result<Exit, CliError> {
    let client = arguments.client;
    let mut changes = Vec::new();
    for path in places(context, client, scope(arguments.project))? {
        let change = Change::of(path, |existing| match existing {
            Some(existing) => settings::uninstall(client, existing),
            None => Ok(None),
        })?;
        changes.push(change);
    }
    let directory = skills_place(context, client, scope(arguments.project))?;
    for skill in Skill::all() {
        changes.push(Change::of_skill(directory.join(skill.path()), None)?);
    }
    tell(context, client, changes, arguments.dry_run, "uninstall")
}

fn scope(project: bool) -> Scope {
    match project {
        true => Scope::Project,
        false => Scope::User,
    }
}

/// Where a client keeps its settings.
pub(crate) fn places(
    context: &Context,
    client: Client,
    scope: Scope,
) -> Result<Vec<PathBuf>, CliError> {
    with_roots(context, client, scope, |roots| {
        settings::places(client, scope, roots)
    })
}

/// Where a client looks for skills.
pub(crate) fn skills_place(
    context: &Context,
    client: Client,
    scope: Scope,
) -> Result<PathBuf, CliError> {
    with_roots(context, client, scope, |roots| {
        skill_directory(client, scope, roots)
    })
}

fn with_roots<T>(
    context: &Context,
    client: Client,
    scope: Scope,
    find: impl FnOnce(Roots<'_>) -> T,
) -> Result<T, CliError> {
    let home = context.environment.path("HOME");
    let home = home.ok_or_else(|| CliError::Invalid {
        message: "`HOME` is not set".into(),
        suggestion: "set it to where your client keeps its settings",
    })?;
    // What is installed for a user needs no project.
    let project = match scope {
        Scope::Project => context.workspace()?.root,
        Scope::User => home.clone(),
    };
    let own = home_variable(client).and_then(|name| context.environment.path(name));
    Ok(find(Roots {
        home: &home,
        project: &project,
        own: own.as_deref(),
    }))
}

/// This program, by the path that will still be right tomorrow.
pub(crate) fn this_program() -> Result<PathBuf, CliError> {
    crate::world::this_program().map_err(|error| CliError::File {
        action: "find",
        path: "safepoint".into(),
        error,
    })
}

fn wrong(path: &std::path::Path, error: &settings::SettingsError) -> CliError {
    CliError::Invalid {
        message: format!("`{}`: {error}", path.display()),
        suggestion: "mend the file, then try again; it was left as it is",
    }
}

/// Writes, unless it is only shown, and tells.
fn tell(
    context: &mut Context,
    client: Client,
    changes: Vec<Change>,
    dry_run: bool,
    verb: &str,
) -> Result<Exit, CliError> {
    let mut files = Vec::new();
    for change in changes {
        let kind = change.kind();
        let backup = match dry_run {
            true => None,
            false if verb == "install" => change.write(Keep::AsItWas)?,
            false => change.write(Keep::Nothing)?,
        };
        files.push(FileReply {
            path: change.path.display().to_string(),
            change: kind,
            backup: backup.map(|path| path.display().to_string()),
            content: change.after.filter(|_| dry_run),
        });
    }
    let reply = InstallReply {
        client: client.name(),
        changed: files
            .iter()
            .any(|file| !matches!(file.change, "unchanged" | "kept")),
        dry_run,
        not_covered: match verb {
            "install" => settings::not_covered(client).to_vec(),
            _ => Vec::new(),
        },
        files,
    };
    context
        .console
        .value(&reply, |reply| show(reply, client, verb))?;
    Ok(Exit::Done)
}

fn show(reply: &InstallReply, client: Client, verb: &str) -> String {
    let mut shown = String::new();
    for file in &reply.files {
        let would = if reply.dry_run { "would be " } else { "" };
        let word = match file.change {
            "unchanged" => "is as it should be".to_owned(),
            "kept" => "is not as Safepoint wrote it, and stays as it is".to_owned(),
            change => format!("{would}{change}"),
        };
        shown.push_str(&format!(
            "{STRONG}{}{STRONG:#}  {word}\n",
            text::line(&file.path).text
        ));
        if let Some(backup) = &file.backup {
            shown.push_str(&format!(
                "  {FAINT}as it was: {}{FAINT:#}\n",
                text::line(backup).text
            ));
        }
        if let Some(content) = &file.content {
            for line in content.lines() {
                shown.push_str(&format!("  {}\n", text::line(line).text));
            }
        }
    }
    if verb == "install" && !reply.dry_run {
        shown.push_str(&format!(
            "{GOOD}{} asks Safepoint from its next session on.{GOOD:#}\n",
            client.title()
        ));
        shown.push_str(&format!("{FAINT}Not covered:{FAINT:#}\n"));
        for what in &reply.not_covered {
            shown.push_str(&format!("{FAINT}- {what}{FAINT:#}\n"));
        }
        shown.push_str(&format!(
            "{HINT}next{HINT:#}  `safepoint doctor` proves that it denies; `safepoint uninstall {client}` takes it out\n"
        ));
    }
    shown
}
