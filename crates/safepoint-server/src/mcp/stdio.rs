//! The server on standard input and output: one client, a message a line.
//!
//! Nothing else is ever written to standard output.

use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::ServerInitializeError;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, serve_server};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::handler::Handler;
use super::{LONGEST_MESSAGE, ServeError, Tools, runtime};

/// Serves one client until it closes standard input and has every answer.
pub fn serve_stdio(tools: impl Tools) -> Result<(), ServeError> {
    let handler = Handler::new(tools);
    runtime()?.block_on(async move {
        let (input, output) = rmcp::transport::stdio();
        // A last message counts even if its line is not ended.
        let input = input.chain(&b"\n"[..]);
        let lines = AsyncRwTransport::new_server(input, output);
        let transport = Steady {
            inner: lines.with_max_line_length(LONGEST_MESSAGE),
            open: Arc::new(watch::Sender::default()),
            begun: false,
        };
        let serving = match serve_server(handler, transport).await {
            Ok(serving) => serving,
            // It went away before it asked for anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Broken(io::Error::other(error))),
        };
        match serving.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(ServeError::Broken(io::Error::other(error))),
        }
    })
}

/// A transport that is not closed before everything asked for is answered, however long that
/// takes, and that bears with what comes before the first request.
struct Steady<T> {
    inner: T,
    /// What is not answered yet.
    open: Arc<watch::Sender<HashSet<RequestId>>>,
    begun: bool,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Steady<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let open = Arc::clone(&self.open);
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            if let Some(id) = id {
                open.send_modify(|open| _ = open.remove(&id));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let Some(message) = self.inner.receive().await else {
                let mut open = self.open.subscribe();
                let _ = open.wait_for(HashSet::is_empty).await;
                return None;
            };
            match &message {
                JsonRpcMessage::Request(request) => {
                    self.begun = true;
                    let id = request.id.clone();
                    self.open.send_modify(|open| _ = open.insert(id));
                }
                _ if !self.begun => continue,
                JsonRpcMessage::Notification(told) => {
                    // What is cancelled is not answered.
                    if let ClientNotification::CancelledNotification(cancelled) = &told.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.open.send_modify(|open| _ = open.remove(id));
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
