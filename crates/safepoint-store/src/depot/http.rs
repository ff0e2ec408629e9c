//! How requests reach an S3-compatible server: over the one HTTP client of this
//! program, with its one TLS stack.
//!
//! The client blocks. That is well, because each request is waited for by a
//! thread that does nothing else. No redirect and no proxy is followed, and
//! without encryption nothing is sent but where that was allowed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use ureq::Agent;
use ureq::config::Config;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// The longest answer: larger than any pack.
const LARGEST_ANSWER: u64 = 8 << 30;
/// How long one request may take.
const LONGEST_REQUEST: Duration = Duration::from_secs(600);

/// What makes the client.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    roots: RootCerts,
    encryption: Encryption,
}

/// Whether requests may go without encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    Always,
    NotNeeded,
}

impl Connector {
    /// Trusts the certificates in `pem`, or without it whom Mozilla trusts. `None` when there is no
    /// certificate in it.
    pub(super) fn new(pem: Option<&[u8]>, encryption: Encryption) -> Option<Self> {
        let roots = match pem {
            None => RootCerts::WebPki,
            Some(pem) => {
                let mut roots = Vec::new();
                for item in parse_pem(pem) {
                    if let PemItem::Certificate(root) = item.ok()? {
                        roots.push(root);
                    }
                }
                if roots.is_empty() {
                    return None;
                }
                RootCerts::Specific(Arc::new(roots))
            }
        };
        Some(Self { roots, encryption })
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let config = Config::builder()
            .https_only(self.encryption == Encryption::Always)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_global(Some(LONGEST_REQUEST))
            .user_agent(concat!("safepoint/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .tls_config(TlsConfig::builder().root_certs(self.roots.clone()).build())
            .build();
        Ok(HttpClient::new(Caller {
            agent: Agent::new_with_config(config),
        }))
    }
}

/// Makes the requests.
#[derive(Debug)]
struct Caller {
    agent: Agent,
}

impl HttpService for Caller {
    fn call<'life0, 'async_trait>(
        &'life0 self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let sent = match body.is_empty() && parts.method != http::Method::PUT {
                true => self.agent.run(http::Request::from_parts(parts, ())),
                false => self.agent.run(http::Request::from_parts(parts, &*body)),
            };
            let (parts, mut body) = sent.map_err(explain)?.into_parts();
            let bytes = body
                .with_config()
                .limit(LARGEST_ANSWER)
                .read_to_vec()
                .map_err(explain)?;
            Ok(http::Response::from_parts(
                parts,
                HttpResponseBody::from(bytes),
            ))
        })
    }
}

/// What kind of failure it is, which says whether it is tried again.
fn explain(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => HttpErrorKind::Connect,
        ureq::Error::Io(error) => match error.kind() {
            std::io::ErrorKind::ConnectionRefused => HttpErrorKind::Connect,
            _ => HttpErrorKind::Interrupted,
        },
        ureq::Error::Protocol(_) => HttpErrorKind::Decode,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
