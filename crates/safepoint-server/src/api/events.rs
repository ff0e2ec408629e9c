//! What happens, as it happens: server-sent events, one for each entry of the trail that the
//! caller may see. The id of an event is its place in the trail, so whoever comes back with
//! the last one misses nothing and hears nothing twice.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use safepoint_model::Code;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::watch;
use tokio_stream::wrappers::ReceiverStream;

use super::own::tell;
use super::problem::Problem;
use super::shared::{Peer, Shared, bearer, no_store};
use super::{Api, Event, query};
use crate::commands::{Caller, Role};

/// Who may follow. An agent hears of its own sessions alone.
pub(super) const FOLLOWERS: &[Role] = &[Role::Agent, Role::Operator, Role::Auditor];

/// How long nobody looks whether there is anybody who follows, or whether the server ends.
const LOOK: Duration = Duration::from_millis(200);

/// How often something is sent, so that both sides know that the other is there.
const BEAT: Duration = Duration::from_secs(15);

/// How many entries are read at once.
const AT_ONCE: usize = 200;

/// What was sent and not yet taken.
const AHEAD: usize = 64;

type Line = Result<Bytes, std::convert::Infallible>;

/// Lets somebody follow.
pub(super) async fn follow<A: Api>(State(shared): State<Arc<Shared<A>>>, head: Parts) -> Response {
    let (caller, response) = match begin(&shared, &head).await {
        Ok((caller, response)) => (Some(caller), response),
        Err(problem) => (None, problem.response()),
    };
    tell("events", caller, response)
}

async fn begin<A: Api>(
    shared: &Arc<Shared<A>>,
    head: &Parts,
) -> Result<(String, Response), Problem> {
    let headers = &head.headers;
    let peer = head.extensions.get::<Peer>().copied();
    let peer = peer.ok_or_else(|| Problem::inside("nobody knows where it came from"))?;
    let caller = shared.caller(headers, peer, FOLLOWERS).await?;
    let token = bearer(headers)?;
    let asked = Asked::read(head.uri.query().unwrap_or_default())?;
    let after = match headers.get("last-event-id") {
        Some(last) => Some(number(last.to_str().unwrap_or_default())?),
        None => asked.after,
    };
    let workspace = match asked.workspace {
        None => None,
        Some(named) => match shared
            .blocking(&caller, move |api| api.workspace(&named))
            .await?
        {
            Ok(Some(id)) => Some(id),
            Ok(None) => {
                return Err(Problem::new(
                    StatusCode::NOT_FOUND,
                    Code::NotFound,
                    "there is no such workspace",
                ));
            }
            Err(error) => return Err(no_store(&error)),
        },
    };
    let from = match after {
        Some(after) => after.saturating_add(1),
        None => match shared.blocking(&caller, |api| api.size()).await? {
            Ok(size) => size,
            Err(error) => return Err(no_store(&error)),
        },
    };
    let place = shared.place(&caller)?;
    let (send, receive) = channel::<Line>(AHEAD);
    let following = Following {
        shared: Arc::clone(shared),
        caller: caller.clone(),
        token,
        workspace,
        from,
        send,
    };
    tokio::spawn(async move {
        following.run().await;
        drop(place);
    });
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(receive)));
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok((caller.name, response))
}

fn number(text: &str) -> Result<u64, Problem> {
    let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        _ => Err(Problem::unprocessable(
            "the last event is named by its place in the trail",
        )),
    }
}

/// What the query asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// The last event that was heard, for those who cannot set a header.
    after: Option<u64>,
    /// The only workspace that is followed.
    workspace: Option<String>,
}

impl Asked {
    fn read(text: &str) -> Result<Self, Problem> {
        let pairs = query::pairs(text).map_err(|wrong| Problem::bad_request(&wrong))?;
        let mut asked = Self::default();
        for (name, value) in pairs {
            match name.as_str() {
                "after" if asked.after.is_none() => asked.after = Some(number(&value)?),
                "workspace" if asked.workspace.is_none() && is_id(&value) => {
                    asked.workspace = Some(value);
                }
                _ => {
                    return Err(Problem::unprocessable(
                        "the parameters are `after` and `workspace`, each once",
                    ));
                }
            }
        }
        Ok(asked)
    }
}

fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.len() <= 100 && text.chars().all(plain)
}

/// Somebody who follows.
struct Following<A> {
    shared: Arc<Shared<A>>,
    caller: Caller,
    token: String,
    workspace: Option<String>,
    from: u64,
    send: Sender<Line>,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Flow {
    Wait,
    Again,
    End,
}

impl<A: Api> Following<A> {
    async fn run(mut self) {
        let mut closing = self.shared.closing.clone();
        let mut grown = self.shared.grown.clone();
        if !self.say("retry: 2000\n\n".to_owned()).await {
            return;
        }
        loop {
            match self.round().await {
                Flow::Again => continue,
                Flow::End => return,
                Flow::Wait => {}
            }
            let quiet = tokio::select! {
                _ = closing.wait_for(|closing| *closing) => return,
                () = self.send.closed() => return,
                _ = wait_for(&mut grown, self.from) => false,
                () = tokio::time::sleep(BEAT) => true,
            };
            if quiet && !self.say(": still here\n\n".to_owned()).await {
                return;
            }
        }
    }

    /// Sends what is there. Whose token it is is asked each time: one that was taken back
    /// hears nothing more.
    async fn round(&mut self) -> Flow {
        let (token, from) = (self.token.clone(), self.from);
        let workspace = self.workspace.clone();
        let found = self.shared.blocking(&self.caller, move |api| {
            let Some(caller) = api.caller(&token)? else {
                return Ok(None);
            };
            if !caller.roles.iter().any(|role| FOLLOWERS.contains(role)) {
                return Ok(None);
            }
            api.events(&caller, workspace.as_deref(), from, AT_ONCE)
                .map(Some)
        });
        let events = match found.await {
            Ok(Ok(Some(events))) => events,
            Ok(Ok(None)) => return Flow::End,
            // Not now; the next look may find it there.
            Ok(Err(_)) | Err(_) => return Flow::Wait,
        };
        for event in &events.events {
            if !self.say(line(event)).await {
                return Flow::End;
            }
        }
        let more = events.next > self.from;
        self.from = events.next.max(self.from);
        match more {
            true => Flow::Again,
            false => Flow::Wait,
        }
    }

    async fn say(&self, text: String) -> bool {
        self.send.send(Ok(text.into())).await.is_ok()
    }
}

/// Waits until the trail has an entry at this place.
async fn wait_for(grown: &mut watch::Receiver<u64>, from: u64) {
    if grown.wait_for(|size| *size > from).await.is_err() {
        // Nobody looks any more: the server ends.
        std::future::pending::<()>().await;
    }
}

fn line(event: &Event) -> String {
    // Kinds are plain; what has a line break in it would be another field.
    let kind: String = event.kind.chars().filter(|c| !c.is_control()).collect();
    let data = event.data.replace(['\n', '\r'], " ");
    format!("id: {}\nevent: {kind}\ndata: {data}\n\n", event.place)
}

/// Looks at the trail whenever something was written, while anybody follows it. It blocks,
/// and has a thread of its own.
pub(super) fn look<A: Api>(shared: &Shared<A>, grown: &watch::Sender<u64>) {
    while !*shared.closing.borrow() {
        if !shared.is_followed() || shared.api.wait(LOOK).is_err() {
            std::thread::sleep(LOOK);
            continue;
        }
        if let Ok(size) = shared.api.size() {
            grown.send_if_modified(|known| std::mem::replace(known, size) != size);
        }
    }
}
