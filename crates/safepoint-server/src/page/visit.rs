//! A visit: somebody who has shown a token, and whose browser has a cookie for it.
//!
//! Nothing of it is kept here. With every request the cookie is asked about, and with it the
//! token that it stands for; the mark of its forms is made from the cookie each time. So it
//! does not matter which server a browser comes to, or whether that was started anew.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use safepoint_model::{Frame, Timestamp};

use super::ask::blocking;
use super::trouble::Trouble;
use super::{Page, Transport};
use crate::commands::{Asker, Caller, Role, Unavailable};

/// What a page sends that asks by itself, while nobody need be there.
const BY_ITSELF: &str = "x-safepoint-refresh";

/// Somebody who is signed in.
#[derive(Clone)]
pub(super) struct Visitor {
    page: Arc<Page>,
    pub(super) caller: Caller,
    cookie: Arc<str>,
}

impl std::fmt::Debug for Visitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Visitor").field(&self.caller).finish()
    }
}

impl Visitor {
    /// The mark that the forms of this visit carry. It says nothing about the cookie.
    pub(super) fn mark(&self) -> String {
        Frame::new("safepoint/mark/v1")
            .field(self.cookie.as_bytes())
            .digest()
            .to_string()
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
    pub(super) async fn leave(&self) -> Result<(), Trouble> {
        let page = Arc::clone(&self.page);
        let cookie = Arc::clone(&self.cookie);
        blocking(move || page.commands.end_visit(&cookie)).await??;
        Ok(())
    }

    /// Whether the visit still goes on, and the token is still good.
    pub(super) async fn is_still_there(&self) -> bool {
        let page = Arc::clone(&self.page);
        let cookie = Arc::clone(&self.cookie);
        let look = move || matches!(page.look(cookie, Asker::Page), Ok(Some(_)));
        blocking(look).await.unwrap_or(false)
    }
}

impl Page {
    /// Whose cookie this is.
    fn look(
        self: &Arc<Self>,
        cookie: Arc<str>,
        asker: Asker,
    ) -> Result<Option<Visitor>, Unavailable> {
        let caller = self.commands.visitor(&cookie, asker)?;
        Ok(caller.filter(may_read).map(|caller| Visitor {
            page: Arc::clone(self),
            caller,
            cookie,
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
    match blocking(move || page.look(cookie.into(), asker)).await {
        Ok(Ok(Some(visitor))) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Ok(Ok(None)) => send_away(&request),
        Ok(Err(error)) => Trouble::from(error).into_response(),
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
