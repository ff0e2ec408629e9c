//! Settings, and where each came from.
//!
//! Precedence, strongest first: managed file, flag, environment, project file,
//! user file, default. The project file does not choose the store: a
//! repository must not decide where the evidence about it goes.

mod file;
mod network;
mod size;

use std::fmt;
use std::path::{Path, PathBuf};

use safepoint_model::Span;
use safepoint_store::{DepotAddress, DepotAddressError, Location};
use serde::Serialize;

pub(crate) use file::{CheckpointMode, File, StateProvider};
pub(crate) use network::Reachable;
pub(crate) use size::Size;

use crate::error::CliError;
use crate::paths::{Paths, find_upwards};
use crate::world::Environment;

/// The file that an administrator writes, and that nothing overrides.
pub(crate) const MANAGED: &str = "/etc/safepoint/safepoint.yaml";

/// Where a setting came from, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    Managed,
    Flag,
    Environment,
    Project,
    User,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed",
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::Project => "project",
            Self::User => "user",
            Self::Default => "default",
        })
    }
}

/// A setting and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Setting<T> {
    /// The strongest of the candidates that is given, or else the default.
    fn strongest(candidates: impl IntoIterator<Item = (Origin, Option<T>)>, default: T) -> Self {
        candidates
            .into_iter()
            .filter_map(|(origin, value)| {
                Some(Self {
                    value: value?,
                    origin,
                })
            })
            .min_by_key(|setting| setting.origin)
            .unwrap_or(Self {
                value: default,
                origin: Origin::Default,
            })
    }
}

/// All settings of one command.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where things are kept: with a server, what this machine remembers itself.
    pub(crate) store: Setting<Location>,
    /// Where objects are shared with other machines, if they are.
    pub(crate) objects: Setting<Option<DepotAddress>>,
    /// The key file that all machines of a deployment have, if it is one.
    pub(crate) key: Setting<Option<PathBuf>>,
    /// The server that judges and keeps the record, if it is not this machine.
    pub(crate) server: Option<Server>,
    pub(crate) lock_timeout: Setting<Span>,
    pub(crate) checkpoint: Setting<CheckpointMode>,
    pub(crate) hold_timeout: Setting<Span>,
    pub(crate) hook_wait: Setting<Span>,
    pub(crate) object_cap: Setting<Size>,
    pub(crate) seal_to: Vec<String>,
    /// Where people reach the page, for links in messages.
    pub(crate) public_url: Setting<Option<String>>,
    /// Atlases that apply everywhere: those of an administrator, whatever a project says.
    pub(crate) managed_atlases: Vec<PathBuf>,
    /// Atlases that apply where a project names none: the user's own.
    pub(crate) user_atlases: Vec<PathBuf>,
    /// What agents may reach outside the fence, by an administrator's and the user's settings.
    pub(crate) reachable: Reachable,
    /// What the project says of itself.
    pub(crate) project: File,
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
}

/// A server that judges and keeps the record, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// `https://HOST`, without a slash at its end.
    pub(crate) url: String,
    /// The file with the token.
    pub(crate) token_file: Setting<PathBuf>,
    /// The certificates to trust, and no others.
    pub(crate) certificates: Setting<Option<PathBuf>>,
}

/// A store, as it was chosen.
#[derive(Clone, Debug)]
enum Chosen {
    Here(Location),
    There(String),
}

/// What settings are made from.
pub(crate) struct Sources<'a> {
    pub(crate) managed: &'a Path,
    pub(crate) store_flag: Option<&'a str>,
    pub(crate) environment: &'a Environment,
    pub(crate) paths: &'a Paths,
    /// The directory of the workspace, from which the project file is searched upwards.
    pub(crate) workspace: &'a Path,
}

impl Settings {
    /// Reads the files and puts everything in order.
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, CliError> {
        let mut files = Vec::new();
        let mut read = |path: Option<PathBuf>| -> Result<File, CliError> {
            let Some(path) = path else {
                return Ok(File::default());
            };
            let Some(file) = File::read(&path)? else {
                return Ok(File::default());
            };
            files.push(path);
            Ok(file)
        };
        let managed = read(Some(sources.managed.to_owned()))?;
        let project = read(find_upwards(sources.workspace, "safepoint.yaml"))?;
        let user = read(Some(sources.paths.user_settings()))?;
        let environment = File::from_environment(sources.environment)?;
        if project.store.is_some() {
            return Err(CliError::Invalid {
                message: "a project's `safepoint.yaml` must not choose the store".into(),
                suggestion: "remove `store` from it; set it in your own settings, by `SAFEPOINT_STORE` or by `--store`",
            });
        }

        if project.objects.is_some() || project.key.is_some() {
            return Err(CliError::Invalid {
                message: "a project's `safepoint.yaml` must not set `objects` or `key`".into(),
                suggestion: "set them in your own settings, or by `SAFEPOINT_OBJECTS` and `SAFEPOINT_KEY`",
            });
        }

        if project.object_cap.is_some()
            || !project.seal_to.is_empty()
            || project.network.is_some()
            || !project.services.is_empty()
            || project.public_url.is_some()
        {
            return Err(CliError::Invalid {
                message: "a project's `safepoint.yaml` must not set `object_cap`, `seal_to`, `public_url`, `network` or `services`"
                    .into(),
                suggestion: "set them in your own settings",
            });
        }

        if project.server_token_file.is_some() || project.server_ca.is_some() {
            return Err(CliError::Invalid {
                message: "a project's `safepoint.yaml` must not say how a server is reached".into(),
                suggestion: "remove `server_token_file` and `server_ca` from it; set them in your own settings",
            });
        }

        // What a checkpoint holds is said by the project alone: the same tree is the same anywhere.
        let user_settings = sources.paths.user_settings();
        let elsewhere = [(sources.managed, &managed), (&*user_settings, &user)];
        for (path, file) in elsewhere {
            let is_of_projects = !file.exclude.is_empty()
                || !file.include.is_empty()
                || !file.state_providers.is_empty();
            if is_of_projects {
                return Err(CliError::Invalid {
                    message: format!(
                        "`{}` must not set `exclude`, `include` or `state_providers`",
                        path.display()
                    ),
                    suggestion: "put them into the `safepoint.yaml` of the project that they are about",
                });
            }
        }

        let location = |text: Option<String>| -> Result<Option<Chosen>, CliError> {
            let Some(text) = text else {
                return Ok(None);
            };
            if text.starts_with("https://") || text.starts_with("http://") {
                let url = text.trim_end_matches('/').to_owned();
                safepoint_control::check_url(&url).map_err(|error| CliError::Invalid {
                    message: format!("the server of the store cannot be used: {error}"),
                    suggestion: "write `https://HOST` or `https://HOST:PORT`",
                })?;
                return Ok(Some(Chosen::There(url)));
            }
            let location: Location = text.parse()?;
            Ok(Some(Chosen::Here(location.based_on(sources.workspace))))
        };
        let chosen = Setting::strongest(
            [
                (Origin::Managed, location(managed.store)?),
                (
                    Origin::Flag,
                    location(sources.store_flag.map(str::to_owned))?,
                ),
                (Origin::Environment, location(environment.store)?),
                (Origin::User, location(user.store)?),
            ],
            Chosen::Here(Location::Sqlite(sources.paths.default_store())),
        );
        // A variable names a file as a command line would.
        let here = &sources.environment.directory;
        let config = &sources.paths.config;
        let file = |managed: Option<PathBuf>, variable: Option<PathBuf>, user: Option<PathBuf>| {
            [
                (Origin::Managed, managed.map(|file| config.join(file))),
                (Origin::Environment, variable.map(|file| here.join(file))),
                (Origin::User, user.map(|file| config.join(file))),
            ]
        };
        let mut server = None;
        let store = Setting {
            origin: chosen.origin,
            value: match chosen.value {
                Chosen::Here(location) => location,
                Chosen::There(url) => {
                    let kept = sources.paths.store_beside(&url);
                    let token_file = file(
                        managed.server_token_file,
                        environment.server_token_file,
                        user.server_token_file,
                    );
                    let certificates =
                        file(managed.server_ca, environment.server_ca, user.server_ca);
                    let certificates = certificates.map(|(origin, file)| (origin, file.map(Some)));
                    server = Some(Server {
                        url,
                        token_file: Setting::strongest(token_file, config.join("server-token")),
                        certificates: Setting::strongest(certificates, None),
                    });
                    Location::Sqlite(kept)
                }
            },
        };
        let objects = |text: Option<String>| -> Result<Option<Option<DepotAddress>>, CliError> {
            let address = text.map(|text| text.parse()).transpose();
            let address = address.map_err(|error: DepotAddressError| CliError::Invalid {
                message: error.to_string(),
                suggestion: "for example `SAFEPOINT_OBJECTS=s3://team-safepoint/objects`",
            })?;
            Ok(address.map(Some))
        };
        let key = |path: Option<PathBuf>| -> Result<Option<Option<PathBuf>>, CliError> {
            let Some(path) = path else { return Ok(None) };
            match path.is_absolute() && path.extension().is_some_and(|end| end == "key") {
                true => Ok(Some(Some(path))),
                false => Err(CliError::Invalid {
                    message: format!("`{}` cannot be the key file", path.display()),
                    suggestion: "name a file by its whole path, with `.key` at the end",
                }),
            }
        };
        Ok(Self {
            objects: Setting::strongest(
                [
                    (Origin::Managed, objects(managed.objects)?),
                    (Origin::Environment, objects(environment.objects)?),
                    (Origin::User, objects(user.objects)?),
                ],
                None,
            ),
            key: Setting::strongest(
                [
                    (Origin::Managed, key(managed.key)?),
                    (Origin::Environment, key(environment.key)?),
                    (Origin::User, key(user.key)?),
                ],
                None,
            ),
            store,
            server,
            lock_timeout: Setting::strongest(
                [
                    (Origin::Managed, managed.lock_timeout),
                    (Origin::Environment, environment.lock_timeout),
                    (Origin::Project, project.lock_timeout),
                    (Origin::User, user.lock_timeout),
                ],
                Span::from_secs(30),
            ),
            checkpoint: Setting::strongest(
                [
                    (Origin::Managed, managed.checkpoint),
                    (Origin::Environment, environment.checkpoint),
                    (Origin::Project, project.checkpoint),
                    (Origin::User, user.checkpoint),
                ],
                CheckpointMode::Policy,
            ),
            hold_timeout: Setting::strongest(
                [
                    (Origin::Managed, managed.hold_timeout),
                    (Origin::Environment, environment.hold_timeout),
                    (Origin::Project, project.hold_timeout),
                    (Origin::User, user.hold_timeout),
                ],
                Span::from_secs(15 * 60),
            ),
            hook_wait: Setting::strongest(
                [
                    (Origin::Managed, managed.hook_wait),
                    (Origin::Environment, environment.hook_wait),
                    (Origin::Project, project.hook_wait),
                    (Origin::User, user.hook_wait),
                ],
                Span::from_secs(0),
            ),
            // A repository must not decide how much room it takes, or who reads its secrets.
            object_cap: Setting::strongest(
                [
                    (Origin::Managed, managed.object_cap),
                    (Origin::Environment, environment.object_cap),
                    (Origin::User, user.object_cap),
                ],
                Size::DEFAULT_CAP,
            ),
            seal_to: [managed.seal_to, user.seal_to].concat(),
            // Nor where people are led to decide.
            public_url: Setting::strongest(
                [
                    (Origin::Managed, public_url(managed.public_url)?),
                    (Origin::Environment, public_url(environment.public_url)?),
                    (Origin::User, public_url(user.public_url)?),
                ],
                None,
            ),
            managed_atlases: beside(sources.managed, &managed.atlases),
            user_atlases: beside(&user_settings, &user.atlases),
            reachable: Reachable::of(managed.network.as_ref(), &managed.services)
                .and(Reachable::of(user.network.as_ref(), &user.services)),
            project,
            files,
        })
    }
}

/// An address that people can be led to.
fn public_url(text: Option<String>) -> Result<Option<Option<String>>, CliError> {
    let is_one = |text: &String| {
        let host = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        host.is_some_and(|host| !host.is_empty())
            && text
                .chars()
                .all(|c| c.is_ascii_graphic() && !"<>|`\"".contains(c))
    };
    match text {
        Some(text) if !is_one(&text) => Err(CliError::Invalid {
            message: "`public_url` is not an address of a page".into(),
            suggestion: "it is written like `https://safepoint.example.com`",
        }),
        other => Ok(other.map(Some)),
    }
}

/// Files that a settings file names, relative to where it lies.
fn beside(file: &Path, named: &[PathBuf]) -> Vec<PathBuf> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    named.iter().map(|path| directory.join(path)).collect()
}

#[cfg(test)]
mod tests;
