//! Messages to stewards' services, over HTTPS and nothing else.
//!
//! A message goes to exactly the addresses that its name had when it was
//! looked up once and checked: no redirect, no proxy and no second look-up can
//! lead it elsewhere. Whom to trust is built in, not read from the machine.
//! Nothing that is said of a failure has an address in it: those may be secret.

mod address;
mod target;

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use safepoint_model::text;
use ureq::config::Config;
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, Error};

use target::Target;
pub(crate) use target::{check_address, shown_origin, shown_origin_as_named};

/// The longest answer.
const LARGEST_ANSWER: u64 = 64 << 10;

/// The longest an answer is waited for, whatever an atlas says.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How many characters of somebody else's error are shown.
const MOST_CHARACTERS: usize = 200;

/// Which part of the network a message may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The public network alone.
    Public,
    /// Private networks and this machine, too.
    AlsoPrivate,
    /// Wherever a person says who gives the address by hand; this machine without encryption, too.
    AsNamed,
}

/// Why a message has no answer.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum HttpsError {
    /// The address is not one that is used.
    #[error("its address cannot be used: {0}")]
    Address(&'static str),
    /// The address, or one of those its name has, is not public.
    #[error("its address is in a private or special network, which is not allowed")]
    Private,
    /// The name is not known.
    #[error("its name is not known")]
    Unknown,
    /// It took too long.
    #[error("it did not answer in time")]
    Timeout,
    /// There is no connection, or not one that can be trusted.
    #[error("no trusted connection: {0}")]
    Connection(String),
    /// It sends the message elsewhere.
    #[error("it redirects, which is not followed")]
    Redirect,
    /// It answers at too great length.
    #[error("its answer is too long")]
    TooLarge,
    /// It does not speak HTTP.
    #[error("its answer is not HTTP: {0}")]
    Protocol(String),
    /// Certificates to trust are not certificates.
    #[error("there is no certificate to trust in the given text")]
    Certificate,
}

/// What carries messages to stewards' services.
#[derive(Clone, Debug)]
pub struct Https {
    roots: RootCerts,
    /// Where notices may go; for callbacks the atlas says so.
    pub(crate) webhooks: Reach,
}

/// Something that is asked of a server which a person has named.
#[derive(Clone, Copy, Debug)]
pub struct Inquiry<'a> {
    /// Where.
    pub url: &'a str,
    /// What is said besides.
    pub headers: &'a [(&'a str, &'a str)],
    /// What is sent; without it, something is only looked at.
    pub body: Option<&'a [u8]>,
    /// How long to wait for the answer.
    pub timeout: Duration,
    /// The longest answer.
    pub largest: u64,
}

/// A message.
pub(crate) struct Post<'a> {
    pub(crate) url: &'a str,
    pub(crate) reach: Reach,
    pub(crate) timeout: Duration,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// What was said.
    pub body: Vec<u8>,
    /// When to come again, in its own words.
    pub retry_after: Option<String>,
}

impl Default for Https {
    fn default() -> Self {
        Self::new()
    }
}

impl Https {
    /// Trusts whom Mozilla trusts, and sends notices to the public network alone.
    pub fn new() -> Self {
        Self {
            roots: RootCerts::WebPki,
            webhooks: Reach::Public,
        }
    }

    /// Trusts these certificates, in PEM form, and no others.
    pub fn with_roots(self, pem: &str) -> Result<Self, HttpsError> {
        let mut roots: Vec<Certificate<'static>> = Vec::new();
        for item in parse_pem(pem.as_bytes()) {
            match item {
                Ok(PemItem::Certificate(root)) => roots.push(root),
                Ok(_) => {}
                Err(_) => return Err(HttpsError::Certificate),
            }
        }
        if roots.is_empty() {
            return Err(HttpsError::Certificate);
        }
        let roots = RootCerts::Specific(Arc::new(roots));
        Ok(Self { roots, ..self })
    }

    /// Sends notices as far as `reach`.
    pub fn with_webhooks(self, reach: Reach) -> Self {
        Self {
            webhooks: reach,
            ..self
        }
    }

    /// Sends something to an address that a person gave by hand, and waits for the answer.
    ///
    /// It may lie in a private network. On this machine alone, `http:` is used as well.
    pub fn send(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, HttpsError> {
        self.post(&Post {
            url,
            reach: Reach::AsNamed,
            timeout: LONGEST_WAIT,
            headers,
            body,
        })
    }

    /// Asks a server that a person has named. It may lie in a private network; on this
    /// machine alone, `http:` is used as well.
    pub fn inquire(&self, inquiry: &Inquiry<'_>) -> Result<Answer, HttpsError> {
        let reach = Reach::AsNamed;
        let target = Target::read(inquiry.url, reach)?;
        let agent = self.agent(reach, inquiry.timeout);
        let response = match inquiry.body {
            Some(body) => {
                let mut request = agent.post(target.uri);
                for (name, value) in inquiry.headers {
                    request = request.header(*name, *value);
                }
                request.send(body)
            }
            None => {
                let mut request = agent.get(target.uri);
                for (name, value) in inquiry.headers {
                    request = request.header(*name, *value);
                }
                request.call()
            }
        };
        read(response.map_err(explain)?, inquiry.largest)
    }

    /// Sends a message and waits for its answer.
    pub(crate) fn post(&self, post: &Post<'_>) -> Result<Answer, HttpsError> {
        let target = Target::read(post.url, post.reach)?;
        let agent = self.agent(post.reach, post.timeout);
        let mut request = agent.post(target.uri);
        for (name, value) in post.headers {
            request = request.header(*name, *value);
        }
        read(request.send(post.body).map_err(explain)?, LARGEST_ANSWER)
    }

    /// An agent of its own: a connection that was made under another reach must never be
    /// used again.
    fn agent(&self, reach: Reach, timeout: Duration) -> Agent {
        Agent::with_parts(
            self.config(reach, timeout),
            DefaultConnector::default(),
            Guard {
                reach,
                names: DefaultResolver::default(),
            },
        )
    }

    fn config(&self, reach: Reach, timeout: Duration) -> Config {
        Config::builder()
            .https_only(reach != Reach::AsNamed)
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None) // it would look names up itself, past the check
            .timeout_global(Some(timeout.min(LONGEST_WAIT)))
            .max_idle_connections(0)
            .max_response_header_size(16 << 10)
            .user_agent(concat!("safepoint/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .accept_encoding("identity")
            .tls_config(TlsConfig::builder().root_certs(self.roots.clone()).build())
            .build()
    }
}

/// Reads what came back, up to a limit.
fn read(mut response: Response<Body>, largest: u64) -> Result<Answer, HttpsError> {
    let status = response.status();
    if status.is_redirection() {
        return Err(HttpsError::Redirect);
    }
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.and_then(|it| it.to_str().ok().map(str::to_owned));
    let body = response
        .body_mut()
        .with_config()
        .limit(largest.saturating_add(1)) // an answer of exactly the limit meets it when its end is looked for
        .read_to_vec()
        .map_err(explain)?;
    Ok(Answer {
        status: status.as_u16(),
        body,
        retry_after,
    })
}

/// Whether a person may name this server.
pub fn check_url(url: &str) -> Result<(), HttpsError> {
    Target::read(url, Reach::AsNamed).map(drop)
}

/// Looks names up, and lets no address outside of its reach pass.
struct Guard {
    reach: Reach,
    names: DefaultResolver,
}

impl Resolver for Guard {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.names.resolve(uri, config, timeout)?;
        // All of them: whoever mixes private with public ones means no good.
        for socket in found.iter() {
            self.reach
                .check(socket.ip())
                .and_then(|()| target::check_encryption(uri, socket.ip()))
                .map_err(|error| Error::Other(Box::new(error)))?;
        }
        Ok(found)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard({:?})", self.reach)
    }
}

/// What went wrong, in our own words: some of ureq's have the address in them.
fn explain(error: Error) -> HttpsError {
    match error {
        Error::Other(ours) => match ours.downcast::<HttpsError>() {
            Ok(ours) => *ours,
            Err(_) => HttpsError::Connection("it failed".to_owned()),
        },
        Error::Timeout(_) => HttpsError::Timeout,
        Error::HostNotFound => HttpsError::Unknown,
        Error::BodyExceedsLimit(_) => HttpsError::TooLarge,
        Error::TooManyRedirects | Error::RedirectFailed => HttpsError::Redirect,
        Error::Io(error) => match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => HttpsError::Timeout,
            _ => HttpsError::Connection(shown(&error)),
        },
        Error::Rustls(error) => HttpsError::Connection(shown(&error)),
        Error::Tls(reason) => HttpsError::Connection(reason.to_owned()),
        Error::Protocol(error) => HttpsError::Protocol(shown(&error)),
        Error::LargeResponseHeader(..) => {
            HttpsError::Protocol("its headers are too long".to_owned())
        }
        Error::BadUri(_) | Error::RequireHttpsOnly(_) | Error::Http(_) => {
            HttpsError::Address("it is not one of the form `https://HOST/PATH`")
        }
        _ => HttpsError::Connection("it failed".to_owned()),
    }
}

/// Somebody else's words, which may quote what a stranger sent.
fn shown(error: &dyn fmt::Display) -> String {
    let cut: String = error
        .to_string()
        .chars()
        .take(MOST_CHARACTERS + 1)
        .collect();
    text::shorten(&text::line(&cut).text, MOST_CHARACTERS)
}
