//! A client as everybody should be one: it goes from server to server, carries a key with
//! whatever changes something, and asks again under the same key until it is answered.

use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::Agent;
use ureq::http::Response;

use super::World;

/// How long a request may take before it counts as lost.
const LONGEST: Duration = Duration::from_secs(30);

/// How long between two tries.
const PAUSE: Duration = Duration::from_millis(25);

/// How often a key that somebody else has is tried: whoever has it may still be at work.
const TRIES_OF_A_TAKEN_KEY: u32 = 120;

/// How often it is tried at all.
const TRIES: u32 = 4_000;

/// What was answered, in the end.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
    /// Where the next page is.
    pub(super) next: Option<String>,
}

impl Reply {
    pub(super) fn is_done(&self) -> bool {
        self.status == 200
    }
}

/// What came of one try.
enum Tried {
    Answered(Reply),
    /// Not now, or not here.
    Again,
    /// The key belongs to a request that is under way or was cut off.
    Taken,
    /// It may have been recorded.
    Unconfirmed,
}

pub(super) struct Client<'a> {
    world: &'a World,
    agent: Agent,
    name: String,
    token: String,
    /// Which server is next.
    next: usize,
    /// How many keys it has used.
    keys: u64,
}

impl<'a> Client<'a> {
    pub(super) fn new(world: &'a World, name: &str, token: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_idle_connections_per_host(2)
            .timeout_global(Some(LONGEST));
        Self {
            world,
            agent: Agent::new_with_config(config.build()),
            name: name.to_owned(),
            token: token.to_owned(),
            next: world.chance(name).below(1_000) as usize,
            keys: 0,
        }
    }

    /// Looks at something.
    pub(super) fn get(&mut self, kind: &'static str, path: &str) -> Reply {
        let answer = self.until_answered(kind, |client, server| client.look(server, path));
        answer.unwrap_or_else(|| panic!("nobody answers {path}"))
    }

    /// Changes something. `None` means that nobody knows whether it was done.
    pub(super) fn post(&mut self, kind: &'static str, path: &str, body: &Value) -> Option<Reply> {
        self.keys += 1;
        let key = format!("{}-{}", self.name, self.keys);
        let body = body.to_string();
        self.until_answered(kind, |client, server| {
            client.send(server, path, &key, &body)
        })
    }

    #[expect(clippy::disallowed_methods, reason = "what is measured is time")]
    fn until_answered(
        &mut self,
        kind: &'static str,
        mut attempt: impl FnMut(&Self, &str) -> Tried,
    ) -> Option<Reply> {
        let table = &self.world.table;
        let begun = Instant::now();
        let mut taken = 0;
        for number in 0..TRIES {
            if number > 0 {
                std::thread::sleep(PAUSE);
                table.failed("asked again");
            }
            self.next += 1;
            match attempt(self, &self.world.site.address(self.next)) {
                Tried::Answered(reply) => {
                    table.took(kind, begun.elapsed());
                    return Some(reply);
                }
                Tried::Again => {}
                Tried::Taken if taken < TRIES_OF_A_TAKEN_KEY => taken += 1,
                Tried::Taken => {
                    table.failed("left unknown: the key stays taken");
                    return None;
                }
                Tried::Unconfirmed => {
                    table.failed("left unknown: 503 S510");
                    return None;
                }
            }
        }
        panic!("{}: nobody answers: {kind}", self.name);
    }

    fn look(&self, server: &str, path: &str) -> Tried {
        let request = self.agent.get(format!("{server}{path}"));
        let shown = format!("Bearer {}", self.token);
        self.heard(request.header("Authorization", shown).call())
    }

    fn send(&self, server: &str, path: &str, key: &str, body: &str) -> Tried {
        let request = self.agent.post(format!("{server}{path}"));
        let request = request
            .header("Authorization", format!("Bearer {}", self.token))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", key);
        self.heard(request.send(body))
    }

    fn heard(&self, answered: Result<Response<ureq::Body>, ureq::Error>) -> Tried {
        let table = &self.world.table;
        let read = answered.and_then(|mut response| {
            let text = response.body_mut().with_config().limit(1 << 30);
            text.read_to_string().map(|text| (response, text))
        });
        let (response, text) = match read {
            Ok(read) => read,
            Err(error) => {
                table.failed(format!("connection: {}", reason(&error)));
                return Tried::Again;
            }
        };
        let status = response.status().as_u16();
        let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| text.clone().into());
        let code = body["code"].as_str().unwrap_or("-").to_owned();
        let taken = || {
            body["detail"]
                .as_str()
                .is_some_and(|it| it.contains("idempotency key"))
        };
        match (status, code.as_str()) {
            (503, "S510") => Tried::Unconfirmed,
            (409, "C902") if taken() => {
                table.failed("409 C902");
                Tried::Taken
            }
            (429 | 500.., _) => {
                table.failed(format!("{status} {code}"));
                Tried::Again
            }
            _ => Tried::Answered(Reply {
                status,
                next: next_page(&response),
                body,
            }),
        }
    }
}

fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.kind().to_string(),
        ureq::Error::Timeout(_) => "timed out".to_owned(),
        other => other.to_string(),
    }
}

fn next_page(response: &Response<ureq::Body>) -> Option<String> {
    let link = response.headers().get("link")?.to_str().ok()?;
    let (path, _) = link.strip_prefix('<')?.split_once('>')?;
    Some(path.to_owned())
}
