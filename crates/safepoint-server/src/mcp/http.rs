//! The server over HTTP, at `/mcp`, for programs of this machine alone.
//!
//! It listens on no address that others can reach. A page in a browser is a program of this
//! machine too, so whatever names another host than ours, or comes from another origin, is
//! refused before it is read.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::serve::ListenerExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use super::handler::Handler;
use super::{LONGEST_MESSAGE, ServeError, Tools, runtime};

/// Where the server is.
const PATH: &str = "/mcp";

/// Serves everybody who asks at `address`, for ever. `ready` is told the address once it is
/// listened on.
pub fn serve_http(
    tools: impl Tools,
    address: SocketAddr,
    ready: impl FnOnce(&str),
) -> Result<(), ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let handler = Handler::new(tools);
    runtime()?.block_on(async move {
        let failed = |error| ServeError::Listen { address, error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(LocalSessionManager::default()),
            settings(address),
        );
        // Small answers are not kept back in the hope of more.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        ready(&format!("http://{address}{PATH}"));
        let router = Router::new().route_service(PATH, service);
        axum::serve(listener, router)
            .await
            .map_err(ServeError::Broken)
    })
}

/// Only our own names are known to us, with our own port.
fn settings(address: SocketAddr) -> StreamableHttpServerConfig {
    let port = address.port();
    let ours = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
    let pages = ours.clone().map(|name| format!("http://{name}"));
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(ours)
        .with_allowed_origins(pages)
        .enforce_origin_validation()
        .with_json_response(true)
        .with_max_request_body_bytes(LONGEST_MESSAGE)
}
