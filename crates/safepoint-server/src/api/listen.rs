//! The socket: connections are taken, kept to their time, and ended when the server ends.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::routing::{MethodFilter, get, on};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Map, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::patience::Taken;
use super::share::Shares;
use super::shared::{Peer, QUICK, Shared, network};
use super::{Api, Method, Options, Page, ServeError, Tls, answer, endpoint, events, own};
use crate::page::AT_ONCE;

/// How many connections there are at once.
const MOST_CONNECTIONS: u32 = 1_024;

/// How many of them one address has: half, so that nobody alone keeps all others out, and all
/// can come through one proxy.
const MOST_OF_ADDRESS: usize = MOST_CONNECTIONS as usize / 2;

/// The most that a head has. More may have been read before that is known.
pub(super) const LARGEST_HEAD: usize = 64 << 10;

/// Serves until a signal says to end. `ready` is told the address once it is listened on.
///
/// The page answers what the API has no path for.
pub fn serve<A: Api>(
    api: Arc<A>,
    options: Options,
    page: Option<Page>,
    ready: impl FnOnce(&str),
) -> Result<(), ServeError> {
    let acceptor = match &options.tls {
        Some(tls) => Some(acceptor(tls)?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Besides what has turns, the page looks up who asks.
        .max_blocking_threads(options.jobs + QUICK + AT_ONCE + 8)
        .enable_all()
        .build()
        .map_err(ServeError::Broken)?;
    let grace = options.grace;
    let served = runtime.block_on(listen(api, options, acceptor, page, ready));
    runtime.shutdown_timeout(grace.min(Duration::from_secs(1)));
    served
}

async fn listen<A: Api>(
    api: Arc<A>,
    mut options: Options,
    acceptor: Option<TlsAcceptor>,
    page: Option<Page>,
    ready: impl FnOnce(&str),
) -> Result<(), ServeError> {
    let address = options.address;
    let failed = |error| ServeError::Listen { address, error };
    // Before anybody is told that we are there.
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Broken)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Broken)?;
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    options.address = listener.local_addr().map_err(failed)?;
    let scheme = if acceptor.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", options.address);
    let (grace, patience) = (options.grace, options.patience);
    let (close, closing) = watch::channel(false);
    let (grow, grown) = watch::channel(0);
    let shared = Arc::new(Shared::new(api, options, closing.clone(), grown));
    let watching = Arc::clone(&shared);
    std::thread::Builder::new()
        .name("events".to_owned())
        .spawn(move || events::look(&watching, &grow))
        .map_err(ServeError::Broken)?;
    let router = router(&shared, page);
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS as usize));
    let addresses = Shares::new(MOST_OF_ADDRESS);
    log(&shared, "listening", json!(url));
    ready(&url);
    loop {
        let taken = async {
            let permit = Arc::clone(&connections).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            taken = taken => taken,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        };
        let (Ok(permit), Ok((stream, peer))) = (permit, accepted) else {
            // Out of descriptors, most likely: some are free in a moment.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let peer = Peer(peer);
        let Ok(share) = addresses.of(network(peer)).try_acquire_owned() else {
            continue;
        };
        let connection = Connection {
            peer,
            router: router.clone(),
            closing: closing.clone(),
            patience,
            places: [permit, share],
        };
        tokio::spawn(connection.run(stream, acceptor.clone()));
    }
    drop(listener);
    log(&shared, "closing", json!(null));
    let _ = close.send(true);
    let jobs = u32::try_from(shared.options.jobs).unwrap_or(1);
    let ended = async {
        let _ = connections.acquire_many(MOST_CONNECTIONS).await;
        let _ = shared.jobs.acquire_many(jobs).await;
    };
    let whole = tokio::select! {
        ended = tokio::time::timeout(grace, ended) => ended.is_ok(),
        // Whoever says it twice does not want to wait.
        _ = terminate.recv() => false,
        _ = interrupt.recv() => false,
    };
    log(&shared, "closed", json!({ "everything_ended": whole }));
    Ok(())
}

fn log<A: Api>(shared: &Shared<A>, event: &str, detail: serde_json::Value) {
    let mut line = Map::new();
    line.insert("event".to_owned(), event.into());
    line.insert("detail".to_owned(), detail);
    shared.api.log(line);
}

/// Every path there is.
fn router<A: Api>(shared: &Arc<Shared<A>>, page: Option<Page>) -> Router {
    let mut router = Router::new()
        .route("/healthz", get(own::health))
        .route("/readyz", get(own::ready::<A>))
        .route("/metrics", get(own::metrics::<A>))
        .route("/v1/openapi.json", get(own::description::<A>))
        .route("/v1/events", get(events::follow::<A>));
    for note in shared.api.endpoints() {
        let filter = match note.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
        };
        let path = note.path;
        let note = Arc::new(note);
        let handler = move |state: State<Arc<Shared<A>>>,
                            parameters: Result<RawPathParams, RawPathParamsRejection>,
                            request: Request| {
            endpoint::answer(state, Arc::clone(&note), parameters, request)
        };
        router = router.route(path, on(filter, handler));
    }
    let mut router = router
        .method_not_allowed_fallback(answer::other_method)
        .with_state(Arc::clone(shared));
    router = match page {
        Some(page) => router.merge(page.beside(shared)),
        None => router.fallback(answer::nothing_here),
    };
    let around = axum::middleware::from_fn_with_state(Arc::clone(shared), answer::around::<A>);
    router.layer(around)
}

/// One connection.
struct Connection {
    peer: Peer,
    router: Router,
    closing: watch::Receiver<bool>,
    patience: Duration,
    /// Among all, and among those of its address.
    places: [OwnedSemaphorePermit; 2],
}

impl Connection {
    async fn run(self, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
        // Small answers are not kept back in the hope of more.
        let _ = stream.set_nodelay(true);
        let stream = Taken::new(stream, self.patience);
        match acceptor {
            None => self.speak(stream).await,
            Some(acceptor) => {
                let shaken = tokio::time::timeout(self.patience, acceptor.accept(stream));
                if let Ok(Ok(stream)) = shaken.await {
                    self.speak(stream).await;
                }
            }
        }
    }

    async fn speak(mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let (peer, service) = (self.peer, TowerToHyperService::new(self.router));
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            service.call(request)
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .max_buf_size(LARGEST_HEAD)
            .max_headers(64);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let is_over = tokio::select! {
            _ = connection.as_mut() => true,
            _ = self.closing.wait_for(|closing| *closing) => false,
        };
        if !is_over {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
        drop(self.places);
    }
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    let wrong = |error: &dyn std::fmt::Display| ServeError::Tls(error.to_string());
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&tls.certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(&error))?;
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| wrong(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut settings = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| wrong(&error))?;
    settings.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(settings)))
}
