//! A visit: somebody who has shown a token, and whose browser has a cookie for it.
//!
//! The cookie is random, and only its digest is kept, in memory alone. It is good for as long
//! as the token is: with every request the token is asked about again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use safepoint_model::{Digest, Entropy, EntropyError, Timestamp};

use super::ask::blocking;
use super::trouble::Trouble;
use super::{Page, Transport};
use crate::commands::{Caller, Role, Unavailable};

/// A visit ends after so long without a request.
const IDLE: i64 = 30 * 60 * 1_000_000;
/// A visit ends after so long in any case.
const LONGEST: i64 = 8 * 60 * 60 * 1_000_000;
/// So many visits are kept; the one that was quiet longest goes first.
const MOST: usize = 1_000;

/// What a page sends that asks by itself, while nobody need be there.
const BY_ITSELF: &str = "x-safepoint-refresh";

/// Who asks: a visit lasts for as long as a person does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Person,
    Page,
}

/// The visits, by the digest of their cookies.
#[derive(Default)]
pub(super) struct Visits(Mutex<HashMap<Digest, Visit>>);

#[derive(Clone)]
struct Visit {
    token: String,
    mark: String,
    began: Timestamp,
    latest: Timestamp,
}

/// Somebody who is signed in.
#[derive(Clone)]
pub(super) struct Visitor {
    page: Arc<Page>,
    pub(super) caller: Caller,
    cookie: Digest,
    mark: Arc<str>,
}

impl std::fmt::Debug for Visitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Visitor").field(&self.caller).finish()
    }
}

impl Visits {
    /// Begins a visit. Returns what the cookie says.
    pub(super) fn begin(
        &self,
        token: &str,
        now: Timestamp,
        entropy: &dyn Entropy,
    ) -> Result<String, EntropyError> {
        let cookie = random(entropy)?;
        let visit = Visit {
            token: token.to_owned(),
            mark: random(entropy)?,
            began: now,
            latest: now,
        };
        let mut visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        visits.retain(|_, visit| visit.is_alive(now));
        if visits.len() >= MOST {
            let quiet = visits.iter().min_by_key(|(_, visit)| visit.latest);
            if let Some(key) = quiet.map(|(key, _)| *key) {
                visits.remove(&key);
            }
        }
        visits.insert(digest(&cookie), visit);
        Ok(cookie)
    }

    /// The visit of a cookie, if it goes on.
    fn find(&self, cookie: &Digest, now: Timestamp, asker: Asker) -> Option<Visit> {
        let mut visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let visit = visits.get_mut(cookie)?;
        if !visit.is_alive(now) {
            visits.remove(cookie);
            return None;
        }
        if asker == Asker::Person {
            visit.latest = visit.latest.max(now);
        }
        Some(visit.clone())
    }

    fn end(&self, cookie: &Digest) {
        let mut visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        visits.remove(cookie);
    }
}

impl Visit {
    fn is_alive(&self, now: Timestamp) -> bool {
        now < self.began.saturating_add_micros(LONGEST)
            && now < self.latest.saturating_add_micros(IDLE)
    }
}

impl Visitor {
    /// The mark that the forms of this visit carry.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Everything the page works with.
    pub(super) fn page(&self) -> &Arc<Page> {
        &self.page
    }

    /// The present.
    pub(super) fn now(&self) -> Timestamp {
        self.page.around.clock.now()
    }

    /// Whether they may decide.
    pub(super) fn decides(&self) -> bool {
        self.caller.roles.contains(&Role::Operator)
    }

    /// Ends the visit.
    pub(super) fn leave(&self) {
        self.page.visits.end(&self.cookie);
    }

    /// Whether the visit still goes on, and the token is still good.
    pub(super) async fn is_still_there(&self) -> bool {
        let page = Arc::clone(&self.page);
        let cookie = self.cookie;
        let look = move || matches!(page.look(cookie, Asker::Page), Ok(Some(_)));
        blocking(look).await.unwrap_or(false)
    }
}

impl Page {
    /// Whose cookie this is.
    fn look(
        self: &Arc<Self>,
        cookie: Digest,
        asker: Asker,
    ) -> Result<Option<Visitor>, Unavailable> {
        let now = self.around.clock.now();
        let Some(visit) = self.visits.find(&cookie, now, asker) else {
            return Ok(None);
        };
        let caller = self.commands.caller(&visit.token)?;
        let Some(caller) = caller.filter(may_read) else {
            self.visits.end(&cookie);
            return Ok(None);
        };
        Ok(Some(Visitor {
            page: Arc::clone(self),
            caller,
            cookie,
            mark: visit.mark.into(),
        }))
    }
}

/// Whether somebody may see the page at all. Agents work, and look at nothing here.
pub(super) fn may_read(caller: &Caller) -> bool {
    caller.roles.iter().any(|role| *role != Role::Agent)
}

/// Lets those in who are signed in.
pub(super) async fn enter(
    State(page): State<Arc<Page>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(cookie) = cookie(request.headers(), page.around.transport) else {
        return send_away(&request);
    };
    let asker = match request.headers().contains_key(BY_ITSELF) {
        true => Asker::Page,
        false => Asker::Person,
    };
    let looked = blocking(move || page.look(digest(&cookie), asker)).await;
    match looked {
        Ok(Ok(Some(visitor))) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Ok(Ok(None)) => send_away(&request),
        Ok(Err(error)) => Trouble::unavailable(&error.to_string()).into_response(),
        Err(trouble) => trouble.into_response(),
    }
}

/// To the page that asks for a token; with the way back, where it was only looked at.
fn send_away(request: &Request) -> Response {
    let wants_page = request
        .headers()
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    match (request.method(), wants_page) {
        (&Method::GET, true) => {
            let back = request
                .uri()
                .path_and_query()
                .map_or("/", |path| path.as_str());
            let back: String = form_urlencoded::byte_serialize(back.as_bytes()).collect();
            Redirect::to(&format!("/sign-in?back={back}")).into_response()
        }
        _ => Trouble::new(
            StatusCode::UNAUTHORIZED,
            "you are not signed in",
            "sign in, and try again",
        )
        .into_response(),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Response> {
        let visitor = parts.extensions.get::<Self>().cloned();
        visitor.ok_or_else(|| Trouble::unavailable("nobody is signed in").into_response())
    }
}

/// The name of the cookie. Under TLS browsers hold it to this host and to HTTPS by its name.
pub(super) const fn cookie_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Plain => "safepoint",
        Transport::Tls => "__Host-safepoint",
    }
}

fn cookie(headers: &HeaderMap, transport: Transport) -> Option<String> {
    let name = cookie_name(transport);
    let mut sent = headers.get_all(header::COOKIE).iter();
    sent.find_map(|value| {
        let pairs = value.to_str().ok()?.split(';');
        let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = named.find(|(it, _)| *it == name)?;
        Some(value.to_owned())
    })
}

fn digest(cookie: &str) -> Digest {
    Digest::of_parts(&[b"safepoint/visit/v1", cookie.as_bytes()])
}

/// Thirty-two random bytes, as text.
fn random(entropy: &dyn Entropy) -> Result<String, EntropyError> {
    let mut bytes = [0; 32];
    entropy.fill(&mut bytes)?;
    Ok(Digest::from_bytes(bytes).to_string())
}
