//! Commands that answer with documents which the real ones have printed, and remember what
//! they were asked.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Request, Response, StatusCode, header};
use safepoint_model::{Clock, Timestamp};
use safepoint_server::commands::{
    Answer, Asker, Caller, Command, Commands, Record, Role, Unavailable, Visits,
};
use safepoint_server::page::{Around, Transport, router};
use serde_json::{Value, json};
use tokio_stream::StreamExt;
use tower::ServiceExt;

/// What the commands printed, by their first words.
const RECORDED: [(&str, &str); 16] = [
    ("hold list", include_str!("recorded/hold-list.json")),
    ("hold show", include_str!("recorded/hold-show.json")),
    ("session list", include_str!("recorded/session-list.json")),
    ("session show", include_str!("recorded/session-show.json")),
    ("operator list", include_str!("recorded/operator-list.json")),
    ("permit list", include_str!("recorded/permit-list.json")),
    ("trail list", include_str!("recorded/trail-list.json")),
    ("trail show", include_str!("recorded/trail-show.json")),
    ("trail prove", include_str!("recorded/trail-prove.json")),
    ("trail head", include_str!("recorded/trail-head.json")),
    ("trail verify", include_str!("recorded/trail-verify.json")),
    ("list", include_str!("recorded/list.json")),
    ("show", include_str!("recorded/show.json")),
    ("diff", include_str!("recorded/diff.json")),
    ("status", include_str!("recorded/status.json")),
    ("du", include_str!("recorded/du.json")),
];

/// The commands.
pub(crate) struct Fake {
    documents: Mutex<HashMap<String, (u8, Value)>>,
    tokens: Mutex<HashMap<String, Vec<Role>>>,
    asked: Mutex<Vec<Command>>,
    /// Tokens by their cookies.
    visits: Mutex<HashMap<String, String>>,
    /// Who asked with a cookie last.
    asker: Mutex<Option<Asker>>,
}

impl Fake {
    fn new() -> Self {
        let documents = RECORDED.map(|(words, text)| {
            let document = serde_json::from_str(text).unwrap();
            (words.to_owned(), (0, document))
        });
        let log = json!({"actions": []});
        let tokens = [
            ("operator", Role::Operator),
            ("auditor", Role::Auditor),
            ("agent", Role::Agent),
        ];
        let fake = Self {
            documents: Mutex::new(documents.into()),
            tokens: Mutex::new(tokens.map(|(it, role)| (it.to_owned(), vec![role])).into()),
            asked: Mutex::new(Vec::new()),
            visits: Mutex::default(),
            asker: Mutex::default(),
        };
        fake.answer("log", 0, log);
        fake
    }

    /// Answers these words so from now on.
    pub(crate) fn answer(&self, words: &str, exit: u8, document: Value) {
        let mut documents = self.documents.lock().unwrap();
        documents.insert(words.to_owned(), (exit, document));
    }

    /// Changes what is answered.
    pub(crate) fn change(&self, words: &str, change: impl FnOnce(&mut Value)) {
        change(&mut self.documents.lock().unwrap().get_mut(words).unwrap().1);
    }

    /// Gives a token another role.
    pub(crate) fn becomes(&self, token: &str, role: Role) {
        let mut tokens = self.tokens.lock().unwrap();
        tokens.insert(token.to_owned(), vec![role]);
    }

    pub(crate) fn revoke(&self, token: &str) {
        self.tokens.lock().unwrap().remove(token);
    }

    /// Ends all visits, as another server or the clock would.
    pub(crate) fn end_visits(&self) {
        self.visits.lock().unwrap().clear();
    }

    /// Who asked with a cookie last.
    pub(crate) fn asker(&self) -> Option<Asker> {
        *self.asker.lock().unwrap()
    }

    /// The commands that begin with these words.
    pub(crate) fn asked(&self, words: &[&str]) -> Vec<Command> {
        let asked = self.asked.lock().unwrap();
        let fits = |it: &&Command| {
            it.words.iter().zip(words).filter(|(a, b)| a == b).count() == words.len()
        };
        asked.iter().filter(fits).cloned().collect()
    }
}

impl Commands for Fake {
    fn caller(&self, token: &str) -> Result<Option<Caller>, Unavailable> {
        if token == "broken" {
            return Err(Unavailable("no connection".to_owned()));
        }
        let tokens = self.tokens.lock().unwrap();
        Ok(tokens.get(token).map(|roles| Caller {
            name: token.to_owned(),
            roles: roles.clone(),
            scopes: Vec::new(),
        }))
    }

    fn home(&self, _: &Caller, _: Record, _: &str) -> Result<Option<PathBuf>, Unavailable> {
        Ok(Some("/srv/room/project".into()))
    }

    fn run(&self, _caller: &Caller, command: &Command) -> Answer {
        self.asked.lock().unwrap().push(command.clone());
        let documents = self.documents.lock().unwrap();
        let words = command
            .words
            .iter()
            .take(2)
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        let first = command.words.first().cloned().unwrap_or_default();
        match documents.get(&words).or_else(|| documents.get(&first)) {
            Some((exit, document)) => Answer {
                exit: *exit,
                document: document.clone(),
            },
            None => Answer {
                exit: 7,
                document: json!({"error": {"message": format!("unrecognized subcommand '{first}'"), "suggestion": "none"}}),
            },
        }
    }
}

/// No two visits have the same cookie.
static BAKED: AtomicU32 = AtomicU32::new(0);

impl Visits for Fake {
    fn begin_visit(&self, token: &str) -> Result<Option<String>, Unavailable> {
        if self.caller(token)?.is_none() {
            return Ok(None);
        }
        let cookie = format!("cookie{}", BAKED.fetch_add(1, Ordering::SeqCst));
        let mut visits = self.visits.lock().unwrap();
        visits.insert(cookie.clone(), token.to_owned());
        Ok(Some(cookie))
    }

    fn visitor(&self, cookie: &str, asker: Asker) -> Result<Option<Caller>, Unavailable> {
        *self.asker.lock().unwrap() = Some(asker);
        let token = self.visits.lock().unwrap().get(cookie).cloned();
        token.map_or(Ok(None), |token| self.caller(&token))
    }

    fn end_visit(&self, cookie: &str) -> Result<(), Unavailable> {
        self.visits.lock().unwrap().remove(cookie);
        Ok(())
    }
}

/// Time that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::parse("2026-11-16T04:00:00Z").unwrap()
    }
}

/// The page, and somebody who asks for it.
pub(crate) struct Browser {
    pub(crate) fake: Arc<Fake>,
    router: Router,
    cookie: Option<String>,
}

/// What came.
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The mark in its forms.
    pub(crate) fn mark(&self) -> &str {
        let (_, rest) = self.text.split_once(r#"name="mark" value=""#).unwrap();
        rest.split_once('"').unwrap().0
    }
}

impl Browser {
    pub(crate) fn new(transport: Transport) -> Self {
        let fake = Arc::new(Fake::new());
        let around = Around {
            clock: Arc::new(Still),
            transport,
        };
        let commands = Arc::clone(&fake) as Arc<dyn Visits>;
        Self {
            router: router(commands, around),
            fake,
            cookie: None,
        }
    }

    /// Puts the page beside something else, as a server does.
    pub(crate) fn beside(&mut self, others: Router) {
        let page = std::mem::take(&mut self.router);
        self.router = others.merge(page).fallback(|| async { "nothing" });
    }

    /// Somebody who is signed in.
    pub(crate) async fn signed_in(token: &str) -> Self {
        let mut browser = Self::new(Transport::Plain);
        let page = browser.sign_in(token).await;
        assert_eq!(page.status, StatusCode::SEE_OTHER, "{}", page.text);
        browser
    }

    pub(crate) async fn sign_in(&mut self, token: &str) -> Page {
        let page = self.post("/sign-in", &format!("token={token}")).await;
        let cookie = page
            .header("set-cookie")
            .split(';')
            .next()
            .unwrap_or_default();
        self.cookie = Some(cookie.to_owned());
        page
    }

    pub(crate) async fn get(&self, address: &str) -> Page {
        let request = self
            .request("GET", address)
            .header(header::ACCEPT, "text/html");
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, address: &str, form: &str) -> Page {
        self.post_from("http://page.test", address, form).await
    }

    /// Posts a form as a page of this origin would.
    pub(crate) async fn post_from(&self, origin: &str, address: &str, form: &str) -> Page {
        let request = self.request("POST", address).header(header::ORIGIN, origin);
        self.send(request.body(Body::from(form.to_owned())).unwrap())
            .await
    }

    pub(crate) fn request(&self, method: &str, address: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(address);
        let request = request.header(header::HOST, "page.test");
        match &self.cookie {
            Some(cookie) => request.header(header::COOKIE, cookie),
            None => request,
        }
    }

    /// The first pieces of a stream, until one has this in it.
    pub(crate) async fn listen(&self, last: Option<&str>, until: &str) -> String {
        let request = self.request("GET", "/live");
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        let request = request.body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut stream = response.into_body().into_data_stream();
        let mut heard = String::new();
        while !heard.contains(until) {
            let piece = stream.next().await.unwrap().unwrap();
            heard.push_str(std::str::from_utf8(&piece).unwrap());
        }
        heard
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Page {
        let response: Response<Body> = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Page {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }
}
