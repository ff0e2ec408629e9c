//! Signing in with a token, and out again.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Redirect, Response};
use http::{HeaderValue, StatusCode, Uri, header};
use maud::{Markup, html};

use super::ask::blocking;
use super::form::{Fields, Form};
use super::trouble::Trouble;
use super::visit::{Visitor, cookie_name, may_read};
use super::{Page, Transport, frame};

/// The page that asks for a token.
pub(super) async fn page(uri: Uri) -> Html<String> {
    let back = Fields::of(&uri).get("back").map(str::to_owned);
    Html(asking(back.as_deref(), None).into_string())
}

/// Looks at the token.
pub(super) async fn post(State(page): State<Arc<Page>>, body: Bytes) -> Response {
    let fields = Fields::read(&body);
    let back = fields.get("back").map(str::to_owned);
    let refuse = |status, why| {
        let asking = asking(back.as_deref(), Some(why));
        (status, Html(asking.into_string())).into_response()
    };
    let Some(token) = fields.get("token").map(str::to_owned) else {
        return refuse(StatusCode::BAD_REQUEST, "A token is needed.");
    };
    let transport = page.around.transport;
    let looked = blocking(move || -> Result<_, Trouble> {
        let caller = page.commands.caller(&token)?;
        if caller.is_some_and(|caller| !may_read(&caller)) {
            return Ok(Err("This token is for an agent. The page is for people."));
        }
        let begun = page.commands.begin_visit(&token)?;
        Ok(begun.ok_or("This token is not known, or no longer good."))
    });
    match looked.await {
        Ok(Ok(Ok(cookie))) => {
            let cookie = set_cookie(transport, &cookie, "");
            (cookie, Redirect::to(&way_back(back.as_deref()))).into_response()
        }
        Ok(Ok(Err(why))) => refuse(StatusCode::UNAUTHORIZED, why),
        Ok(Err(trouble)) | Err(trouble) => trouble.into_response(),
    }
}

/// Ends the visit, and takes the cookie away.
pub(super) async fn out(visitor: Visitor, _form: Form) -> Response {
    if let Err(trouble) = visitor.leave().await {
        return trouble.into_response();
    }
    let transport = visitor.page().around.transport;
    let cookie = set_cookie(transport, "", "; Max-Age=0");
    (cookie, Redirect::to("/sign-in")).into_response()
}

type CookieHeader = [(http::HeaderName, HeaderValue); 1];

fn set_cookie(transport: Transport, value: &str, more: &str) -> CookieHeader {
    let secure = match transport {
        Transport::Plain => "",
        Transport::Tls => "; Secure",
    };
    let name = cookie_name(transport);
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{more}");
    let value = HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""));
    [(header::SET_COOKIE, value)]
}

/// Only to a page of our own: an address that begins with one slash, and no other host.
fn way_back(back: Option<&str>) -> String {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    back.filter(|back| back.starts_with('/') && !back.starts_with("//"))
        .filter(|back| back.chars().all(plain))
        .unwrap_or("/")
        .to_owned()
}

fn asking(back: Option<&str>, why: Option<&str>) -> Markup {
    let invalid = why.map(|_| "true");
    let described = why.map(|_| "why");
    let body = html! {
        section.sign-in {
            h1 { "Sign in" }
            p { "A token shows who you are. It stays on this page: afterwards your browser has a cookie that ends with your visit." }
            form method="post" action="/sign-in" {
                input type="hidden" name="back" value=(way_back(back));
                label for="token" { "Token" }
                input id="token" name="token" type="password" autocomplete="current-password"
                    spellcheck="false" required autofocus
                    aria-invalid=[invalid] aria-describedby=[described];
                @if let Some(why) = why { p.error id="why" role="alert" { (why) } }
                button.primary type="submit" { "Sign in" }
            }
            p.faint { "No token yet? Whoever runs this server makes one on its command line." }
        }
    };
    frame::bare("Sign in", &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_08_the_way_back_leads_to_no_other_host() {
        assert_eq!(way_back(Some("/holds/hld_1?x=1")), "/holds/hld_1?x=1");
        for other in [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "evil",
            "/a\nb",
        ] {
            assert_eq!(way_back(Some(other)), "/", "{other}");
        }
        assert_eq!(way_back(None), "/");
    }

    #[test]
    fn su_08_cookies_are_strict() {
        let [(_, plain)] = set_cookie(Transport::Plain, "x", "");
        assert_eq!(plain, "safepoint=x; Path=/; HttpOnly; SameSite=Strict");
        let [(_, tls)] = set_cookie(Transport::Tls, "x", "");
        assert_eq!(
            tls,
            "__Host-safepoint=x; Path=/; HttpOnly; SameSite=Strict; Secure"
        );
    }
}
