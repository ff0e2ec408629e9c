//! What all requests share, and how work is handed to threads that may block.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use safepoint_model::Code;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::guard::Guard;
use super::limit::Limit;
use super::metrics::Metrics;
use super::problem::Problem;
use super::{Api, Options};
use crate::commands::{Caller, Role, Unavailable};

/// How long a request waits for its turn.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// How many may follow what happens at the same time.
const MOST_STREAMS: usize = 256;

/// Tokens that are not known, from one address: so many a second, so many at once.
const FAILURES: (u32, u32) = (1, 30);

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

/// What all requests share.
pub(super) struct Shared<A> {
    pub(super) api: Arc<A>,
    pub(super) options: Options,
    pub(super) guard: Guard,
    pub(super) metrics: Metrics,
    /// The OpenAPI document, which does not change.
    pub(super) description: String,
    pub(super) streams: Arc<Semaphore>,
    /// Whether the server is about to end.
    pub(super) closing: watch::Receiver<bool>,
    /// The size of the trail, where anybody follows it.
    pub(super) grown: watch::Receiver<u64>,
    pub(super) jobs: Arc<Semaphore>,
    by_address: Limit<IpAddr>,
    by_token: Limit<String>,
    failures: Limit<IpAddr>,
    numbers: AtomicU64,
}

impl<A: Api> Shared<A> {
    pub(super) fn new(
        api: Arc<A>,
        options: Options,
        closing: watch::Receiver<bool>,
        grown: watch::Receiver<u64>,
    ) -> Self {
        let rate = options.rate.max(1);
        let (slow, few) = FAILURES;
        Self {
            guard: Guard::new(options.address, &options.hosts, options.tls.is_some()),
            metrics: Metrics::default(),
            description: api.description().to_string(),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            closing,
            grown,
            jobs: Arc::new(Semaphore::new(options.jobs)),
            by_address: Limit::new(rate.saturating_mul(10), rate.saturating_mul(20)),
            by_token: Limit::new(rate, rate.saturating_mul(2)),
            failures: Limit::new(slow, few),
            numbers: AtomicU64::new(0),
            api,
            options,
        }
    }

    /// A name for the next request.
    pub(super) fn request_id(&self) -> String {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.options.instance)
    }

    /// Whether the address may ask once more.
    pub(super) fn admit(&self, peer: Peer) -> Result<(), Problem> {
        let taken = self.by_address.take(network(peer), Instant::now());
        taken.map_err(Problem::too_often)
    }

    /// An address has shown a token that is nobody's. Whether it has too many is known only
    /// then: others may come from the same address, and theirs are good.
    pub(super) fn guessed(&self, peer: Peer) -> Result<(), Problem> {
        let taken = self.failures.take(network(peer), Instant::now());
        taken.map_err(Problem::too_often)
    }

    /// Whether anybody follows what happens.
    pub(super) fn is_followed(&self) -> bool {
        self.streams.available_permits() < MOST_STREAMS
    }

    /// Does something that may block, on a thread for that.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = Arc::clone(&self.jobs).acquire_owned();
        let turn = match tokio::time::timeout(LONGEST_TURN, turn).await {
            Ok(Ok(turn)) => turn,
            _ => return Err(Problem::unavailable("the server has too much to do")),
        };
        let api = Arc::clone(&self.api);
        // One whose client goes away is not stopped: half a change is worse than one that
        // nobody waits for.
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&api);
            drop(turn);
            done
        });
        done.await
            .map_err(|_| Problem::inside("a command broke down"))
    }

    /// Who asks, if they may ask for this.
    pub(super) async fn caller(
        &self,
        headers: &HeaderMap,
        peer: Peer,
        roles: &[Role],
    ) -> Result<Caller, Problem> {
        let token = bearer(headers)?;
        let found = self.blocking(move |api| api.caller(&token)).await?;
        let caller = match found {
            Ok(Some(caller)) => caller,
            Ok(None) => {
                self.guessed(peer)?;
                return Err(unauthorized("the token is not one that is good"));
            }
            Err(error) => return Err(no_store(&error)),
        };
        let taken = self.by_token.take(caller.name.clone(), Instant::now());
        taken.map_err(Problem::too_often)?;
        match caller.roles.iter().any(|role| roles.contains(role)) {
            true => Ok(caller),
            false => Err(Problem::new(
                StatusCode::FORBIDDEN,
                Code::AccessDenied,
                "the token's role does not allow this",
            )),
        }
    }
}

/// The store cannot be reached. Why is for whoever runs the server.
pub(super) fn no_store(_: &Unavailable) -> Problem {
    Problem::unavailable("the store cannot be reached now")
}

/// The token that is shown.
pub(super) fn bearer(headers: &HeaderMap) -> Result<String, Problem> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (Some(shown), None) = (shown.next(), shown.next()) else {
        return Err(unauthorized("a token is needed: `Authorization: Bearer …`"));
    };
    let shown = shown.to_str().unwrap_or_default();
    let token = match shown.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => "",
    };
    match token.is_empty() || token.len() > 200 {
        true => Err(unauthorized("a token is needed: `Authorization: Bearer …`")),
        false => Ok(token.to_owned()),
    }
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, Code::AccessDenied, detail)
        .advise("`safepoint token create NAME --role ROLE` makes one")
}

/// What counts as one address: of the sixth version, the network, since one host has all of it.
pub(super) fn network(peer: Peer) -> IpAddr {
    match peer.0.ip() {
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => IpAddr::V4(address),
            None => {
                let bits = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            }
        },
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::nobody::Nobody;

    fn shared() -> Shared<Nobody> {
        let options = Options {
            address: "127.0.0.1:1".parse().unwrap(),
            hosts: Vec::new(),
            tls: None,
            instance: "x".into(),
            largest_body: 1,
            patience: Duration::from_secs(1),
            grace: Duration::from_secs(1),
            jobs: 1,
            rate: 1,
        };
        let (closing, grown) = (watch::channel(false).1, watch::channel(0).1);
        Shared::new(Arc::new(Nobody::default()), options, closing, grown)
    }

    #[test]
    fn su_07_a_command_that_breaks_down_is_a_problem_and_not_the_end() {
        let shared = shared();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            // More often than there are turns: each was given back.
            for _ in 0..3 {
                let broken: Result<(), Problem> =
                    shared.blocking(|_| panic!("as it was asked to")).await;
                let problem = broken.unwrap_err();
                assert_eq!((problem.status(), problem.code()), (500, "X101"));
            }
            assert_eq!(shared.blocking(|_| 7).await.unwrap(), 7);
        });
    }

    #[test]
    fn su_07_of_an_address_the_network_counts() {
        let of = |text: &str| network(Peer(text.parse().unwrap())).to_string();
        assert_eq!(of("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::");
        assert_eq!(of("[::ffff:10.0.0.1]:1"), "10.0.0.1");
        assert_eq!(of("10.0.0.1:1"), "10.0.0.1");
    }
}
