//! The page for people, beside the API: it has every path that the API has not, but none
//! below `/v1`. What it sends without an end is ended when the server ends.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tokio::sync::mpsc::channel;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::problem::Problem;
use super::shared::{Peer, Shared};
use super::{Api, answer, own};
use crate::commands::Caller;

/// What was sent and not yet taken.
const AHEAD: usize = 4;

/// A page.
pub struct Page(Router);

impl Page {
    /// What answers for it.
    pub fn new(router: Router) -> Self {
        Self(router)
    }

    /// The same, beside an API.
    pub(super) fn beside<A: Api>(self, shared: &Arc<Shared<A>>) -> Router {
        self.0
            .layer(from_fn_with_state(Arc::clone(shared), pass::<A>))
    }
}

/// Whether a path is none of a page's.
pub(super) fn is_of_api(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/")
}

async fn pass<A: Api>(
    State(shared): State<Arc<Shared<A>>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    // A program that asks for what is not there gets no page.
    if is_of_api(path) {
        return answer::nothing_here().await;
    }
    // A token can be guessed here as well as there.
    let peer = request.extensions().get::<Peer>().copied();
    let shows = peer.filter(|_| path == "/sign-in" && request.method() == Method::POST);
    let mut response = next.run(request).await;
    let guessed = shows.filter(|_| response.status() == StatusCode::UNAUTHORIZED);
    if let Some(Err(problem)) = guessed.map(|peer| shared.guessed(peer)) {
        response = problem.response();
    }
    let kind = response.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let response = match is_stream {
        true => until_the_end(&shared, response).unwrap_or_else(Problem::response),
        false => response,
    };
    own::tell("page", None, response)
}

/// A response that goes on for as long as the server does.
fn until_the_end<A: Api>(shared: &Shared<A>, response: Response) -> Result<Response, Problem> {
    let caller = response.extensions().get::<Caller>();
    let caller = caller.ok_or_else(|| Problem::inside("nobody knows who follows"))?;
    let place = shared.place(caller)?;
    let mut closing = shared.closing.clone();
    let (head, body) = response.into_parts();
    let mut pieces = body.into_data_stream();
    let (send, receive) = channel::<Result<Bytes, axum::Error>>(AHEAD);
    tokio::spawn(async move {
        loop {
            let piece = tokio::select! {
                _ = closing.wait_for(|closing| *closing) => break,
                () = send.closed() => break,
                piece = pieces.next() => piece,
            };
            let Some(piece) = piece else { break };
            if send.send(piece).await.is_err() {
                break;
            }
        }
        drop(place);
    });
    let body = Body::from_stream(ReceiverStream::new(receive));
    Ok(Response::from_parts(head, body))
}
