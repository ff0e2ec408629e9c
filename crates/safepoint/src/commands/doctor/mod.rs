//! `safepoint doctor`: proves that each installed hook really denies, and says what is not
//! covered.

mod canary;
mod codex;
mod fence;

use safepoint_clients::Client;
use safepoint_clients::settings::{self, HookCommand, Scope};
use safepoint_clients::skills::{Skill, is_skill_untouched};
use safepoint_control::pass::DisagreementCounts;
use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use super::install;
use crate::console::{BAD, FAINT, GOOD, STRONG, count};
use crate::context::Context;
use crate::error::CliError;

/// What `doctor` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DoctorReply {
    clients: Vec<ClientReply>,
    checks: Vec<CheckReply>,
    /// How often words and effects of actions disagreed.
    disagreements: DisagreementCounts,
    /// Whether every hook that is installed denies, and every check holds.
    ok: bool,
}

/// One client.
#[derive(Serialize, JsonSchema)]
struct ClientReply {
    client: &'static str,
    /// Whether hooks of ours are in its settings.
    installed: bool,
    /// Whether they were seen to deny.
    live: bool,
    /// In a sentence.
    detail: String,
    /// What its hooks cannot see.
    not_covered: Vec<&'static str>,
    /// The skills that are installed, each by its name, and how it stands: `ok`, `outdated`, or
    /// `changed` by somebody.
    skills: Vec<SkillReply>,
}

/// One installed skill.
#[derive(Serialize, JsonSchema)]
struct SkillReply {
    name: &'static str,
    path: String,
    state: &'static str,
}

/// One thing that was looked at.
#[derive(Serialize, JsonSchema)]
struct CheckReply {
    name: &'static str,
    ok: bool,
    detail: String,
}

pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let mut clients = Vec::new();
    for client in Client::ALL {
        clients.push(examine(context, client)?);
    }
    let checks = vec![
        project(context),
        store(context),
        rules(context),
        operators(context),
        fence::kernel(),
        fence::caches(context),
        fence::sandboxes(context),
        git(context),
        disagreements(context),
    ];
    let sound = |client: &ClientReply| client.live || !client.installed;
    let reply = DoctorReply {
        ok: clients.iter().all(sound) && checks.iter().all(|check| check.ok),
        clients,
        checks,
        disagreements: context
            .control()
            .and_then(|control| Ok(control.disagreements()?))
            .unwrap_or_default(),
    };
    context.console.value(&reply, show)?;
    Ok(match reply.ok {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

/// Looks at one client's settings, and tries what they start.
fn examine(context: &Context, client: Client) -> Result<ClientReply, CliError> {
    let mut reply = ClientReply {
        client: client.name(),
        installed: false,
        live: false,
        detail: "no hook of ours is in its settings".to_owned(),
        not_covered: settings::not_covered(client).to_vec(),
        skills: skills(context, client)?,
    };
    let mut places = Vec::new();
    for scope in scopes(context) {
        places.extend(install::places(context, client, *scope)?);
    }
    for place in places {
        let Ok(existing) = std::fs::read_to_string(&place) else {
            continue;
        };
        let shown = place.display();
        let found = match settings::installed(client, &existing) {
            Ok(found) => found,
            Err(error) => {
                reply.detail = format!("`{shown}`: {error}");
                continue;
            }
        };
        let Some(program) = &found.program else {
            continue;
        };
        reply.installed = true;
        let wrong = found.switched_off.clone();
        let wrong = wrong.or_else(|| switched_off_beside(context, client));
        let wrong = wrong.or_else(|| {
            let lacking: Vec<&str> = found.missing.iter().chain(&found.stale).map(String::as_str).collect();
            match lacking.is_empty() {
                true => None,
                false => Some(format!(
                    "the hooks of {} are not as they should be: `safepoint install {client}` mends them",
                    lacking.join(", ")
                )),
            }
        });
        let wrong = wrong.or_else(|| match client {
            Client::Codex => codex::skips(context, &place),
            _ => None,
        });
        match wrong.map_or_else(|| canary::sing(context, client, program), Err) {
            Ok(()) => {
                reply.live = true;
                reply.detail =
                    format!("`{shown}`: a canary was denied, and a harmless call passed");
                return Ok(reply);
            }
            Err(why) => reply.detail = format!("`{shown}`: {why}"),
        }
    }
    Ok(reply)
}

/// Whose settings are looked at: those of a project only where there is one.
fn scopes(context: &Context) -> &'static [Scope] {
    match context.workspace() {
        Ok(_) => &[Scope::Project, Scope::User],
        Err(_) => &[Scope::User],
    }
}

/// The skills of a client that are there, those of the project first.
fn skills(context: &Context, client: Client) -> Result<Vec<SkillReply>, CliError> {
    let command = HookCommand {
        program: install::this_program()?,
    };
    let mut found = Vec::new();
    for scope in scopes(context) {
        let directory = install::skills_place(context, client, *scope)?;
        for skill in Skill::all() {
            let path = directory.join(skill.path());
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            let same = skill.file(&command).is_ok_and(|(_, ours)| ours == text);
            found.push(SkillReply {
                name: skill.name,
                path: path.display().to_string(),
                state: match (same, is_skill_untouched(&text)) {
                    (true, _) => "ok",
                    (false, true) => "outdated",
                    (false, false) => "changed",
                },
            });
        }
    }
    Ok(found)
}

/// What switches the hooks off in another file that the client reads here.
fn switched_off_beside(context: &Context, client: Client) -> Option<String> {
    if client != Client::ClaudeCode {
        return None;
    }
    let root = context.workspace().ok()?.root;
    let files = [".claude/settings.json", ".claude/settings.local.json"];
    files.into_iter().find_map(|name| {
        let text = std::fs::read_to_string(root.join(name)).ok()?;
        settings::installed(client, &text).ok()?.switched_off
    })
}

fn check(name: &'static str, found: Result<String, String>) -> CheckReply {
    let (ok, detail) = match found {
        Ok(detail) => (true, detail),
        Err(detail) => (false, detail),
    };
    CheckReply { name, ok, detail }
}

fn project(context: &Context) -> CheckReply {
    let detail = match context.workspace() {
        Ok(workspace) => format!("`{}`", workspace.root.display()),
        Err(error) => {
            format!("{error}: only settings and skills of the user were looked at")
        }
    };
    check("project", Ok(detail))
}

fn store(context: &Context) -> CheckReply {
    let opened = context.trail().map_err(|error| error.to_string());
    let found = opened.and_then(|trail| {
        let head = trail.head().map_err(|error| error.to_string())?;
        Ok(format!(
            "`{}`, {} entries in its trail",
            context.settings.store.value,
            head.size()
        ))
    });
    check("store", found)
}

fn rules(context: &Context) -> CheckReply {
    let found = context.atlases().and_then(|paths| {
        for path in &paths {
            safepoint_control::AtlasFile::read(path)?;
        }
        Ok(paths)
    });
    let found = found.map_err(|error| error.to_string());
    check(
        "rules",
        found.map(|paths| match paths.is_empty() {
            true => "the built-in atlas applies here".to_owned(),
            false => {
                let shown: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
                shown.join(", ")
            }
        }),
    )
}

fn operators(context: &Context) -> CheckReply {
    let found = context
        .control()
        .and_then(|control| Ok(context.desk(&control).operators()?.len()));
    let detail = match found {
        Ok(0) => Ok("nobody can approve yet: `safepoint operator add NAME`".to_owned()),
        Ok(count) => Ok(format!("{count} can approve")),
        Err(error) => Err(error.to_string()),
    };
    check("operators", detail)
}

/// How often words and effects disagreed: our own error rate.
fn disagreements(context: &Context) -> CheckReply {
    let counts = context.control().and_then(|it| Ok(it.disagreements()?));
    let detail = match counts {
        Ok(counts) if counts.actions == 0 => Ok("none seen so far".to_owned()),
        Ok(counts) => Ok(format!(
            "in {}: said to read only and changed something {}, said to stay inside and reached out {} or was refused {}, said to reach out and did not {}",
            count(counts.actions, "action", "actions"),
            counts.read_but_wrote,
            counts.inside_but_reached,
            counts.inside_but_refused,
            counts.outside_but_nothing,
        )),
        Err(error) => Err(error.to_string()),
    };
    check("words and effects", detail)
}

fn git(context: &Context) -> CheckReply {
    let search = context.environment.path("PATH");
    let found = search.as_deref().map(std::env::split_paths);
    let found = found.and_then(|mut places| places.find(|place| place.join("git").is_file()));
    check(
        "git",
        match found {
            Some(place) => Ok(format!("`{}`", place.join("git").display())),
            None => Ok("there is none: git states are not captured".to_owned()),
        },
    )
}

fn show_skills(client: &ClientReply) -> String {
    let name = client.client;
    if client.skills.is_empty() {
        return format!("  no skills: `safepoint install {name}` puts them in\n");
    }
    let names = client.skills.iter().map(|skill| match skill.state {
        "ok" => skill.name.to_owned(),
        state => format!("{} ({state})", skill.name),
    });
    format!("  skills: {}\n", names.collect::<Vec<_>>().join(", "))
}

fn show(reply: &DoctorReply) -> String {
    let safe = |words: &str| text::line(words).text;
    let mut shown = String::new();
    for client in &reply.clients {
        let (style, word) = match (client.installed, client.live) {
            (_, true) => (GOOD, "live"),
            (true, false) => (BAD, "not live"),
            (false, false) => (FAINT, "not installed"),
        };
        shown.push_str(&format!(
            "{STRONG}{:<12}{STRONG:#} {style}{word}{style:#}\n",
            client.client
        ));
        if client.installed {
            shown.push_str(&format!("  {}\n", safe(&client.detail)));
            shown.push_str(&show_skills(client));
            for what in &client.not_covered {
                shown.push_str(&format!("  {FAINT}not covered: {what}{FAINT:#}\n"));
            }
        }
    }
    shown.push('\n');
    for check in &reply.checks {
        let style = if check.ok { GOOD } else { BAD };
        let word = if check.ok { "ok" } else { "wrong" };
        shown.push_str(&format!(
            "{STRONG}{:<12}{STRONG:#} {style}{word}{style:#}  {}\n",
            check.name,
            safe(&check.detail)
        ));
    }
    shown
}
