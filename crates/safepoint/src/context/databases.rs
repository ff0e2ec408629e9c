//! Which databases an agent may reach.
//!
//! Its own programs are behind the fence, and what it asks of us is done outside of that. So it
//! names files in its workspace, and servers that a person has named in their own settings or has
//! opened for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError};

use safepoint_database::{Address, ServerPlace};
use safepoint_fence::HostRule;
use safepoint_state::{DatabaseCheck, DatabaseReach};

use super::{Context, real_path};
use crate::settings::Reachable;

/// This machine, by the names that addresses use for it.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What is said where a workspace cannot be found.
const NO_WORKSPACE: &str = "there is no workspace for it to be in";

impl Context {
    /// How databases may be reached.
    pub(crate) fn database_check(&self) -> DatabaseCheck {
        let is_agent = self.is_agent() || self.agent.is_some();
        let root = self.workspace_root().ok();
        let reachable = self.settings.reachable.clone();
        let variables: BTreeMap<OsString, OsString> =
            self.environment.variables().into_iter().collect();
        let opened = Arc::clone(&self.opened_databases);
        Arc::new(move |address| {
            let reach = |within| DatabaseReach {
                within,
                is_kept_inside: is_agent,
            };
            let Some(place) = address.server_place(&variables) else {
                return check_file(address, root.as_deref(), is_agent).map(reach);
            };
            let opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            match !is_agent || opened.contains(&place) || is_named(&place, &reachable) {
                true => Ok(reach(None)),
                false => Err(format!("`{}` is not open to agents", shown(&place))),
            }
        })
    }

    /// Lets this command reach a server that was opened for it.
    pub(crate) fn open_database(&self, place: &ServerPlace) {
        let mut opened = self
            .opened_databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        opened.push(place.clone());
    }
}

/// Where the file of a database has to lie. An agent's lies in its workspace. What a person names in
/// the workspace lies there, too: an agent can put a link in the way.
fn check_file(
    address: &Address,
    root: Option<&Path>,
    is_agent: bool,
) -> Result<Option<PathBuf>, String> {
    let (Some(file), Some(root)) = (address.file(), root) else {
        return match is_agent {
            true => Err(NO_WORKSPACE.to_owned()),
            false => Ok(None),
        };
    };
    match (real_path(file).starts_with(root), is_agent) {
        (true, _) => Ok(Some(root.to_owned())),
        (false, true) => Err(format!("`{}` is outside the workspace", file.display())),
        (false, false) if plain(file).starts_with(root) => Err(format!(
            "`{}` leads out of the workspace by a link: name the database by the path that it has \
             there",
            file.display()
        )),
        (false, false) => Ok(None),
    }
}

/// A path without `.` and `..`, as it is written.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn is_named(place: &ServerPlace, reachable: &Reachable) -> bool {
    match place {
        ServerPlace::Socket(path) => {
            let real = real_path(path);
            let mut sockets = reachable.sockets.iter();
            sockets.any(|socket| real_path(socket) == real)
        }
        ServerPlace::Host(host, port) => {
            let names: Vec<&str> = match LOCAL_HOSTS.contains(&host.as_str()) {
                true => LOCAL_HOSTS.into(),
                false => vec![host],
            };
            let wanted = names.into_iter().filter_map(|name| rule(name, *port));
            let rules = || reachable.hosts.iter().chain(&reachable.services);
            wanted
                .into_iter()
                .any(|wanted| rules().any(|rule| rule.includes(&wanted)))
        }
    }
}

/// A rule for exactly this server; none where its host is no single name or address.
fn rule(host: &str, port: u16) -> Option<HostRule> {
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    format!("{host}:{port}").parse().ok()
}

fn shown(place: &ServerPlace) -> String {
    match place {
        ServerPlace::Host(host, port) if host.contains(':') => format!("[{host}]:{port}"),
        ServerPlace::Host(host, port) => format!("{host}:{port}"),
        ServerPlace::Socket(path) => PathBuf::from(path).display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: u16) -> ServerPlace {
        ServerPlace::Host(name.to_owned(), port)
    }

    #[test]
    fn fe_12_a_server_is_named_by_host_and_port_or_by_its_socket() {
        let reachable = Reachable {
            hosts: vec!["*.example.org:5432".parse().unwrap()],
            services: vec!["127.0.0.1:7432".parse().unwrap()],
            sockets: vec!["/run/postgresql/.s.PGSQL.5432".into()],
            ..Reachable::default()
        };
        for named in [
            host("127.0.0.1", 7432),
            host("localhost", 7432),
            host("db.example.org", 5432),
            ServerPlace::Socket("/run/postgresql/.s.PGSQL.5432".into()),
        ] {
            assert!(is_named(&named, &reachable), "{named:?}");
        }
        for other in [
            host("127.0.0.1", 7433),
            host("db.example.org", 5433),
            host("evil.invalid,db.example.org", 5432),
            host("10.0.0.1", 7432),
            ServerPlace::Socket("/tmp/.s.PGSQL.5432".into()),
        ] {
            assert!(!is_named(&other, &reachable), "{other:?}");
        }
    }
}
