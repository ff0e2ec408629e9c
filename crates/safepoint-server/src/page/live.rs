//! What tells open pages that something has happened.
//!
//! A page is told only how long the trail is now; what is new it asks for itself. The number
//! is also where a browser goes on after a pause: it sends the last one that it had.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use serde::Deserialize;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::Page;
use super::ask::Words;
use super::visit::Visitor;

/// How often the trail is looked at while anybody listens.
const PAUSE: Duration = Duration::from_millis(700);
/// How often a listener's token is asked about, in looks.
const LOOKS: u32 = 15;

/// How long the trail is, as far as anybody here has seen. However many pages are open, it is
/// looked at once for all of them, by whoever comes first.
pub(super) struct Watcher {
    size: watch::Sender<u64>,
    looked: Mutex<Option<Instant>>,
}

impl Default for Watcher {
    fn default() -> Self {
        Self {
            size: watch::Sender::new(0),
            looked: Mutex::new(None),
        }
    }
}

#[derive(Deserialize)]
struct Head {
    size: u64,
}

impl Page {
    /// Looks at the trail, unless somebody does or just has. One who may not look leaves it to
    /// the next.
    async fn look_at_trail(&self, visitor: &Visitor) {
        let Ok(mut looked) = self.watcher.looked.try_lock() else {
            return;
        };
        if looked.is_some_and(|looked| looked.elapsed() < PAUSE) {
            return;
        }
        let head = visitor.ask::<Head>(Words::new(&["trail", "head"])).await;
        if let Ok(Head { size }) = head {
            *looked = Some(Instant::now());
            self.watcher.size.send_if_modified(|last| {
                let is_new = *last != size;
                *last = size;
                is_new
            });
        }
    }
}

/// The stream of one open page.
pub(super) async fn stream(visitor: Visitor, headers: HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last: Option<u64> = last.and_then(|last| last.parse().ok());
    let sizes = visitor.page().watcher.size.subscribe();
    let (sender, receiver) = mpsc::channel(4);
    // How many may listen is decided where it goes out, by who they are.
    let caller = Extension(visitor.caller.clone());
    tokio::spawn(tell(visitor, sizes, sender, last));
    let keep = KeepAlive::new().interval(Duration::from_secs(15));
    let stream = Sse::new(ReceiverStream::new(receiver)).keep_alive(keep);
    (caller, stream).into_response()
}

/// Tells one page, until it is closed or its visit ends.
async fn tell(
    visitor: Visitor,
    mut sizes: watch::Receiver<u64>,
    sender: mpsc::Sender<Result<Event, Infallible>>,
    mut last: Option<u64>,
) {
    let mut looks = 0;
    loop {
        visitor.page().look_at_trail(&visitor).await;
        let size = *sizes.borrow_and_update();
        let is_new = size > 0 && last != Some(size);
        looks += 1;
        if (is_new || looks % LOOKS == 0) && !visitor.is_still_there().await {
            // An event without data is not heard.
            let event = Event::default().event("ended").data("over");
            drop(sender.send(Ok(event)).await);
            return;
        }
        if is_new {
            last = Some(size);
            let event = Event::default().event("moved").id(size.to_string());
            if sender.send(Ok(event.data(size.to_string()))).await.is_err() {
                return;
            }
        }
        if sender.is_closed() {
            return;
        }
        if let Ok(Err(_)) = tokio::time::timeout(PAUSE, sizes.changed()).await {
            return;
        }
    }
}
