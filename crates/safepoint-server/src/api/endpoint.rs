//! One endpoint: who asks, what is given, and what becomes of it. A request with an
//! idempotency key is done once, however often it comes.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, LINK};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use safepoint_model::{Code, Frame, json};
use serde_json::{Map, Value};

use super::answer::Told;
use super::problem::{Problem, stored};
use super::shared::{Peer, Shared, no_store};
use super::{Api, Begun, EndpointNote, Kept, Method, Output, query};
use crate::commands::{Caller, Unavailable};

/// The longest idempotency key.
const LONGEST_KEY: usize = 200;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// What came of a request.
struct Done {
    status: StatusCode,
    body: String,
    output: Output,
    next: Option<String>,
    replayed: bool,
}

/// Answers a request.
pub(super) async fn answer<A: Api>(
    State(shared): State<Arc<Shared<A>>>,
    note: Arc<EndpointNote>,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Response {
    let mut told = Told {
        route: note.name,
        caller: None,
    };
    let mut response = match respond(&shared, &note, parameters, request, &mut told).await {
        Ok(response) => response,
        Err(problem) => problem.response(),
    };
    response.extensions_mut().insert(told);
    response
}

async fn respond<A: Api>(
    shared: &Shared<A>,
    note: &Arc<EndpointNote>,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    told: &mut Told,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let peer = head.extensions.get::<Peer>().copied();
    let peer = peer.ok_or_else(|| Problem::inside("nobody knows where it came from"))?;
    let caller = shared.caller(&head.headers, peer, note.roles).await?;
    told.caller = Some(caller.name.clone());
    let key = key_of(&head.headers, note.method)?;
    let mut given = match note.method {
        Method::Get => Map::new(),
        Method::Post => match read_body(shared, &head.headers, body).await {
            Ok(given) => given,
            Err(problem) => return Ok(closing(problem.response())),
        },
    };
    let parameters =
        parameters.map_err(|_| Problem::bad_request("the path is not percent-encoded UTF-8"))?;
    for (name, value) in &parameters {
        query::add(&mut given, &note.parameters, name, value.to_owned())
            .map_err(|wrong| Problem::unprocessable(&wrong))?;
    }
    for (name, value) in query::pairs(head.uri.query().unwrap_or_default())
        .map_err(|wrong| Problem::bad_request(&wrong))?
    {
        query::add(&mut given, &note.parameters, &name, value)
            .map_err(|wrong| Problem::unprocessable(&wrong))?;
    }
    let (note, by) = (Arc::clone(note), caller.clone());
    let output = output_of(&head.headers);
    let done = shared
        .blocking(&caller, move |api| match key {
            Some(key) => once(api, &by, &note, &given, &key),
            None => perform(api, &by, &note, &given, output),
        })
        .await??;
    let mut response = stored(done.status, done.body);
    let headers = response.headers_mut();
    if done.output == Output::Text {
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(CONTENT_TYPE, kind);
    }
    if done.replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    if let Some(link) = done.next.and_then(|next| link(&head.uri, &next)) {
        headers.insert(LINK, link);
    }
    Ok(response)
}

/// Does it.
fn perform<A: Api>(
    api: &A,
    caller: &Caller,
    note: &EndpointNote,
    given: &Map<String, Value>,
    output: Output,
) -> Result<Done, Problem> {
    let called = api
        .call(caller, note.name, given, output)
        .map_err(|refused| Problem::unprocessable(&refused.to_string()))?;
    if called.answer.exit != 0 {
        let problem = Problem::of(called.answer).showing(called.text);
        return Err(problem.after(called.recorded));
    }
    Ok(Done {
        status: StatusCode::OK,
        output: match called.text {
            Some(_) => Output::Text,
            None => Output::Document,
        },
        body: called
            .text
            .unwrap_or_else(|| called.answer.document.to_string()),
        next: called.next,
        replayed: false,
    })
}

/// In which form an answer is wanted: for people, where nothing else is.
fn output_of(headers: &HeaderMap) -> Output {
    let wanted = headers.get(ACCEPT).and_then(|it| it.to_str().ok());
    match wanted {
        Some("text/plain") => Output::Text,
        _ => Output::Document,
    }
}

/// Does it, unless it was done under this key before.
fn once<A: Api>(
    api: &A,
    caller: &Caller,
    note: &EndpointNote,
    given: &Map<String, Value>,
    key: &str,
) -> Result<Done, Problem> {
    let request = Frame::new("safepoint/request/v1")
        .field(note.name.as_bytes())
        .field(Value::Object(given.clone()).to_string().as_bytes())
        .digest();
    let failed = |error: Unavailable| no_store(&error);
    match api.begin(caller, key, request).map_err(failed)? {
        Begun::New => {}
        Begun::Answered(kept) => {
            return Ok(Done {
                status: StatusCode::from_u16(kept.status)
                    .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                body: kept.body,
                output: Output::Document,
                next: None,
                replayed: true,
            });
        }
        Begun::Taken => {
            return Err(Problem::new(
                StatusCode::CONFLICT,
                Code::Busy,
                "a request with this idempotency key is under way, or was cut off",
            )
            .advise("ask again in a moment; if it stays so, look how far it came"));
        }
        Begun::Other => {
            return Err(Problem::unprocessable(
                "this idempotency key was used for another request",
            ));
        }
    }
    let done = perform(api, caller, note, given, Output::Document);
    // An answer that cannot be kept is given all the same. Its key stays taken.
    let _ = match &done {
        Ok(done) => {
            let (status, body) = (done.status.as_u16(), done.body.clone());
            api.keep(caller, key, &Kept { status, body })
        }
        Err(problem) if problem.is_for_now() => match problem.nothing_happened() {
            true => api.give_back(caller, key),
            // Some of it was done, and the rest was not: the key stays taken.
            false => Ok(()),
        },
        Err(problem) => {
            let (status, body) = (problem.status(), problem.body());
            api.keep(caller, key, &Kept { status, body })
        }
    };
    done
}

fn key_of(headers: &HeaderMap, method: Method) -> Result<Option<String>, Problem> {
    let mut keys = headers.get_all(KEY).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    let text = key.to_str().unwrap_or_default();
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    let sized = (1..=LONGEST_KEY).contains(&text.len());
    let fits = visible && sized && keys.next().is_none();
    match (fits, method) {
        (false, _) => Err(Problem::bad_request(
            "an idempotency key has 1 to 200 visible ASCII characters",
        )),
        (true, Method::Get) => Ok(None),
        (true, Method::Post) => Ok(Some(text.to_owned())),
    }
}

async fn read_body<A: Api>(
    shared: &Shared<A>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Map<String, Value>, Problem> {
    let most = shared.options.largest_body;
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            Code::InvalidInput,
            &format!("a body has at most {most} bytes"),
        )
    };
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let reading = axum::body::to_bytes(body, most);
    let bytes: Bytes = reading.await.map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        match cause.is_some_and(|it| it.contains("length limit")) {
            true => too_large(),
            false => Problem::bad_request("the body broke off"),
        }
    })?;
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).map(str::trim);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::InvalidInput,
            "a body is `application/json`",
        ));
    }
    let limits = json::Limits {
        bytes: most,
        ..json::Limits::default()
    };
    match json::read(&bytes, limits) {
        Ok(Value::Object(given)) => Ok(given),
        Ok(_) => Err(Problem::unprocessable("a body is a JSON object")),
        Err(error) => Err(Problem::bad_request(&format!(
            "the body is not JSON: {error}"
        ))),
    }
}

/// What is not read to its end cannot be followed by another request.
pub(super) fn closing(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Where the next page is.
fn link(uri: &Uri, next: &str) -> Option<HeaderValue> {
    let mut pairs = query::pairs(uri.query().unwrap_or_default()).ok()?;
    pairs.retain(|(name, _)| name != "cursor");
    pairs.push(("cursor".to_owned(), next.to_owned()));
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", query::encode(name), query::encode(value)))
        .collect();
    let path = uri.path();
    HeaderValue::from_str(&format!("<{path}?{}>; rel=\"next\"", pairs.join("&"))).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::nobody::Nobody;
    use crate::api::{Called, Reading};
    use crate::commands::{Answer, Role};

    #[test]
    fn su_07_a_key_has_visible_characters_alone() {
        let key = |text: &str| {
            let headers = HeaderMap::from_iter([(KEY, text.parse().unwrap())]);
            key_of(&headers, Method::Post)
        };
        assert_eq!(key("a-1").ok(), Some(Some("a-1".to_owned())));
        for bad in ["", "a b", "a\tb", &"a".repeat(201)] {
            assert!(key(bad).is_err(), "{bad:?}");
        }
    }

    /// What becomes of the key of a request to which a command says this.
    fn key_of_what_ends(exit: u8, code: &str, recorded: bool) -> Vec<&'static str> {
        let document = json!({"error": {"code": code, "message": "so it is"}});
        let nobody = Nobody {
            called: Some(Called {
                answer: Answer { exit, document },
                text: None,
                next: None,
                recorded,
            }),
            ..Nobody::default()
        };
        let caller = Caller {
            name: "token:x".into(),
            roles: vec![Role::Agent],
            scopes: Vec::new(),
        };
        let note = EndpointNote {
            name: "x",
            method: Method::Post,
            path: "/x",
            roles: &[Role::Agent],
            parameters: Vec::<(&str, Reading)>::new(),
        };
        let done = once(&nobody, &caller, &note, &Map::new(), "key");
        assert_eq!(done.is_ok(), exit == 0);
        nobody.keys.into_inner().unwrap()
    }

    #[test]
    fn su_07_a_key_is_given_back_only_where_nothing_was_done() {
        let (unreachable, unconfirmed) = (Code::StoreUnreachable.code(), "S510");
        assert_eq!(key_of_what_ends(0, "", true), ["taken", "kept"]);
        assert_eq!(key_of_what_ends(2, "F502", true), ["taken", "kept"]);
        assert_eq!(
            key_of_what_ends(5, unreachable, false),
            ["taken", "given back"]
        );
        // Done in part, or perhaps: whoever asks again must look first.
        assert_eq!(key_of_what_ends(5, unreachable, true), ["taken"]);
        assert_eq!(key_of_what_ends(5, unconfirmed, false), ["taken"]);
    }
}
