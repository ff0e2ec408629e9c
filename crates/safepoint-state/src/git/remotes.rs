//! The hosts of a repository's remotes.
//!
//! They are read from the repository's own file, without includes: what else git is told to
//! replace (`insteadOf`) names no host that anybody is asked for by default.

use std::collections::BTreeSet;
use std::path::Path;

use safepoint_store::regular;

use super::config;
use super::layout::{find_common_dir, find_git_dir};

/// The longest configuration that is read.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The ports of the ways to reach a remote.
const SCHEMES: [(&str, u16); 5] = [
    ("https", 443),
    ("http", 80),
    ("ssh", 22),
    ("git+ssh", 22),
    ("git", 9418),
];

/// The hosts that the remotes of a work tree lie on, as `HOST:PORT`. Nothing where there is no
/// repository, or it cannot be read.
pub fn remote_hosts(worktree: &Path) -> BTreeSet<String> {
    let read = || {
        let git_dir = find_git_dir(worktree).ok()??;
        let file = find_common_dir(&git_dir).ok()?.join("config");
        String::from_utf8(regular::read(&file, MAX_CONFIG_BYTES).ok()?).ok()
    };
    let text = read().unwrap_or_default();
    let urls = config::values_of_subsections(&text, "remote", "url");
    urls.iter().filter_map(|url| host_of(url)).collect()
}

/// The host and the port of a remote. A path of this machine has none.
fn host_of(url: &str) -> Option<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        // `user@host:path`; a slash before the colon makes it a path, a second colon behind the
        // first names a helper of git's.
        let (host, path) = url.split_once(':')?;
        let host = host.rsplit('@').next().filter(|it| !it.is_empty())?;
        let is_host = !host.contains('/') && !path.starts_with(':');
        return is_host.then(|| format!("{host}:22"));
    };
    let (_, port) = SCHEMES.iter().find(|(name, _)| *name == scheme)?;
    let authority = rest.split('/').next()?;
    let host = authority.rsplit('@').next().filter(|it| !it.is_empty())?;
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()));
    Some(match has_port {
        true => host.to_owned(),
        false => format!("{}:{port}", host.trim_end_matches(':')),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_11_remotes_name_a_host_and_a_port() {
        for (url, host) in [
            ("https://example.org/a.git", "example.org:443"),
            ("https://me:secret@example.org:8443/a", "example.org:8443"),
            ("ssh://git@example.org/a", "example.org:22"),
            ("git@example.org:a/b.git", "example.org:22"),
            ("git://example.org/a", "example.org:9418"),
            ("ssh://git@[::1]:2222/a", "[::1]:2222"),
        ] {
            assert_eq!(host_of(url).as_deref(), Some(host), "{url}");
        }
        for url in [
            "/srv/a.git",
            "../a",
            "./a:b/c",
            "file:///srv/a",
            "ext::sh -c x",
        ] {
            assert_eq!(host_of(url), None, "{url}");
        }
    }
}
