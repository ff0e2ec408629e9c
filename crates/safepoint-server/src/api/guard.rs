//! Whether a request may be meant for us at all, before anything of it is read.
//!
//! A page in a browser of this machine can reach us too: by a name of its own that leads
//! here (DNS rebinding), or by sending something for its reader. So a request that names
//! another host than ours, or comes from another origin, is refused. Only whoever follows a
//! link from there is told apart, for the page to be asked for once more; nothing else is done
//! for them, and no other origin is ever let in.

use std::net::SocketAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use safepoint_model::Code;

use super::Host;
use super::problem::Problem;

/// How a page is reached, and the port that is usual for it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scheme {
    name: &'static str,
    port: u16,
}

const HTTP: Scheme = Scheme {
    name: "http",
    port: 80,
};

const HTTPS: Scheme = Scheme {
    name: "https",
    port: 443,
};

/// Where a request that is not refused came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whence {
    /// From nobody else's page.
    Ours,
    /// Somebody followed a link that another site shows.
    Link,
}

/// The names that are ours.
pub(super) struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Those that are reached over HTTPS alone.
    held: Vec<String>,
}

impl Guard {
    pub(super) fn new(address: SocketAddr, named: &[Host], is_tls: bool) -> Self {
        let direct = if is_tls { HTTPS } else { HTTP };
        let port = address.port();
        let mut guard = Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            held: Vec::new(),
        };
        guard.add(direct, address.to_string());
        if address.ip().is_loopback() {
            for name in ["127.0.0.1", "localhost", "[::1]"] {
                guard.add(direct, format!("{name}:{port}"));
            }
        }
        for host in named {
            // What stands in front of us has a port of its own.
            let (name, scheme, port) = match host {
                Host::Direct(name) => (name, direct, port),
                Host::Https(name) => (name, HTTPS, HTTPS.port),
            };
            let before = guard.hosts.len();
            guard.add(scheme, name.clone());
            if !has_port(name) {
                guard.add(scheme, format!("{name}:{port}"));
            }
            if scheme == HTTPS {
                guard
                    .held
                    .extend_from_slice(guard.hosts.get(before..).unwrap_or_default());
            }
        }
        guard
    }

    fn add(&mut self, Scheme { name: scheme, port }: Scheme, name: String) {
        // Clients leave the usual port out.
        let short = name.strip_suffix(&format!(":{port}")).map(str::to_owned);
        for name in short.into_iter().chain([name]) {
            self.origins.push(format!("{scheme}://{name}"));
            self.hosts.push(name);
        }
    }

    /// Whether a request names a host that browsers are to reach over HTTPS alone, from now
    /// on: one that whoever runs the server has named. Of `localhost` there are many.
    pub(super) fn is_held_to_https(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| self.held.contains(&host.to_ascii_lowercase()))
    }

    /// Whether a request is for us, and from nobody else's page but by a link.
    pub(super) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Whence, Problem> {
        let mut hosts = headers.get_all(HOST).iter();
        let (host, second) = (hosts.next(), hosts.next());
        let host = host.and_then(|host| host.to_str().ok());
        let (Some(host), None) = (host, second) else {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                Code::InvalidInput,
                "a request names one host",
            ));
        };
        // A request line with a whole address names a host as well.
        let named = uri.authority().map(|authority| authority.as_str());
        let mut hosts = [Some(host), named].into_iter().flatten();
        if hosts.any(|host| !self.hosts.contains(&host.to_ascii_lowercase())) {
            return Err(Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                Code::AccessDenied,
                "this is another host than the one that is named",
            )
            .advise("whoever runs the server names its hosts with `--host`"));
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
            if !self.origins.contains(&origin) {
                return Err(elsewhere());
            }
        }
        match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
            None | Some(b"same-origin" | b"none") => Ok(Whence::Ours),
            Some(_) if follows_link(method, headers) => Ok(Whence::Link),
            Some(_) => Err(elsewhere()),
        }
    }
}

pub(super) fn elsewhere() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        Code::AccessDenied,
        "pages of other origins are not let in",
    )
}

/// Whether a browser opens what it asks for as a page of its own, in a window and not inside
/// another page.
fn follows_link(method: &Method, headers: &HeaderMap) -> bool {
    let says = |name: &str, value: &str| headers.get(name).is_some_and(|it| it == value);
    *method == Method::GET
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

fn has_port(name: &str) -> bool {
    match name.rsplit_once(':') {
        None => false,
        Some((before, port)) => {
            let whole = !before.contains(':') || before.ends_with(']');
            whole && !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit())
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    type Headers<'a> = &'a [(&'static str, &'static str)];

    #[track_caller]
    fn checked(guard: &Guard, method: &Method, headers: Headers<'_>) -> Result<Whence, u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let checked = guard.check(method, &Uri::from_static("/"), &map);
        checked.map_err(|problem| problem.status())
    }

    #[track_caller]
    fn status(guard: &Guard, headers: Headers<'_>) -> u16 {
        match checked(guard, &Method::GET, headers) {
            Ok(whence) => {
                assert_eq!(whence, Whence::Ours);
                200
            }
            Err(status) => status,
        }
    }

    #[test]
    fn su_08_only_a_link_that_opens_a_page_is_told_apart() {
        let guard = Guard::new("127.0.0.1:80".parse().unwrap(), &[], false);
        let check = |method: &Method, site, mode, dest| {
            let headers = [
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            checked(&guard, method, &headers)
        };
        for site in ["cross-site", "same-site"] {
            let link = check(&Method::GET, site, "navigate", "document");
            assert_eq!(link, Ok(Whence::Link));
            for (method, mode, dest) in [
                (Method::POST, "navigate", "document"),
                (Method::HEAD, "navigate", "document"),
                (Method::GET, "navigate", "iframe"),
                (Method::GET, "no-cors", "document"),
                (Method::GET, "cors", "empty"),
            ] {
                assert_eq!(check(&method, site, mode, dest), Err(403), "{mode} {dest}");
            }
        }
        let own = check(&Method::GET, "same-origin", "navigate", "document");
        assert_eq!(own, Ok(Whence::Ours));
        // A page of another origin says so, whatever it says besides.
        let origin = [
            ("host", "localhost"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(checked(&guard, &Method::GET, &origin), Err(403));
    }

    #[test]
    fn su_07_only_our_own_names_and_origins_are_let_in() {
        let guard = Guard::new("127.0.0.1:80".parse().unwrap(), &[], false);
        for host in ["127.0.0.1:80", "localhost", "LOCALHOST:80", "[::1]:80"] {
            assert_eq!(status(&guard, &[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example", "localhost:81", "localhost.evil.example", ""] {
            assert_eq!(status(&guard, &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status(&guard, &[]), 400);
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(status(&guard, &twice), 400);
        for (header, value, wanted) in [
            ("origin", "http://localhost", 200),
            ("origin", "https://localhost", 403),
            ("origin", "http://evil.example", 403),
            ("origin", "null", 403),
            ("sec-fetch-site", "same-origin", 200),
            ("sec-fetch-site", "none", 200),
            ("sec-fetch-site", "same-site", 403),
            ("sec-fetch-site", "cross-site", 403),
        ] {
            let headers = [("host", "localhost"), (header, value)];
            assert_eq!(status(&guard, &headers), wanted, "{header}: {value}");
        }
        let named = ["safepoint.example", "other.example:9"].map(|it| it.parse().unwrap());
        let guard = Guard::new("10.0.0.1:443".parse().unwrap(), &named, true);
        for host in [
            "safepoint.example",
            "safepoint.example:443",
            "other.example:9",
            "10.0.0.1",
        ] {
            assert_eq!(status(&guard, &[("host", host)]), 200, "{host}");
        }
        assert_eq!(status(&guard, &[("host", "localhost")]), 421);
        let page = [
            ("host", "10.0.0.1"),
            ("origin", "https://safepoint.example"),
        ];
        assert_eq!(status(&guard, &page), 200);
    }

    #[test]
    fn su_07_what_is_in_front_of_us_may_speak_https() {
        let named = ["https://safepoint.example", "inside.example"].map(|it| it.parse().unwrap());
        let guard = Guard::new("10.0.0.1:8940".parse().unwrap(), &named, false);
        for (host, origin, wanted) in [
            ("safepoint.example", "https://safepoint.example", 200),
            ("safepoint.example:443", "https://safepoint.example", 200),
            ("safepoint.example", "http://safepoint.example", 403),
            ("safepoint.example:8940", "https://safepoint.example", 421),
            ("inside.example:8940", "http://inside.example:8940", 200),
            ("inside.example:8940", "https://inside.example:8940", 403),
            ("10.0.0.1:8940", "http://10.0.0.1:8940", 200),
        ] {
            let headers = [("host", host), ("origin", origin)];
            assert_eq!(status(&guard, &headers), wanted, "{host} {origin}");
        }
    }
}
