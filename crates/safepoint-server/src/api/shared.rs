//! What all requests share, and how work is handed to threads that may block.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use safepoint_model::Code;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::guard::Guard;
use super::limit::Limit;
use super::metrics::Metrics;
use super::problem::Problem;
use super::share::Shares;
use super::{Api, Options};
use crate::commands::{Caller, Role, Unavailable};

/// How long a request waits for its turn.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// How many may follow what happens at the same time.
const MOST_STREAMS: usize = 256;

/// How many of them are for agents: people find a place however many agents there are.
const MOST_OF_AGENTS: usize = 192;

/// How many of them one caller has.
const MOST_OF_CALLER: usize = 16;

/// How many quick things are done at once, besides the commands.
pub(super) const QUICK: usize = 8;

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
    streams: Arc<Semaphore>,
    agents_streams: Arc<Semaphore>,
    callers_streams: Shares<String>,
    /// Whether the server is about to end.
    pub(super) closing: watch::Receiver<bool>,
    /// The size of the trail, where anybody follows it.
    pub(super) grown: watch::Receiver<u64>,
    pub(super) jobs: Arc<Semaphore>,
    callers_jobs: Shares<String>,
    quick: Arc<Semaphore>,
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
            agents_streams: Arc::new(Semaphore::new(MOST_OF_AGENTS)),
            callers_streams: Shares::new(MOST_OF_CALLER),
            closing,
            grown,
            jobs: Arc::new(Semaphore::new(options.jobs)),
            callers_jobs: Shares::new((options.jobs / 4).max(1)),
            quick: Arc::new(Semaphore::new(QUICK)),
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

    /// A place among those who follow what happens, for as long as it is held.
    pub(super) fn place(&self, caller: &Caller) -> Result<Vec<OwnedSemaphorePermit>, Problem> {
        let is_agent = caller.roles.contains(&Role::Agent);
        let shares = [
            Some(self.callers_streams.of(caller.name.clone())),
            is_agent.then(|| Arc::clone(&self.agents_streams)),
            Some(Arc::clone(&self.streams)),
        ];
        let shares = shares.into_iter().flatten();
        let places: Result<_, _> = shares.map(Semaphore::try_acquire_owned).collect();
        places.map_err(|_| {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Code::Busy,
                "too many follow already",
            )
            .wait(LONGEST_TURN)
        })
    }

    /// Does something for somebody that may block, on a thread for that, when it is its turn.
    /// One caller has a quarter of the turns, so that there are some for others.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        caller: &Caller,
        work: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let share = self.callers_jobs.of(caller.name.clone());
        let turn = async {
            let share = share.acquire_owned().await?;
            Ok((share, Arc::clone(&self.jobs).acquire_owned().await?))
        };
        self.in_turn(turn, work).await
    }

    /// The same for what is quick, and must not wait for what is not.
    pub(super) async fn quickly<T: Send + 'static>(
        &self,
        work: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = Arc::clone(&self.quick).acquire_owned();
        self.in_turn(turn, work).await
    }

    async fn in_turn<T: Send + 'static, P: Send + 'static>(
        &self,
        turn: impl Future<Output = Result<P, AcquireError>>,
        work: impl FnOnce(&A) -> T + Send + 'static,
    ) -> Result<T, Problem> {
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
        let found = self.quickly(move |api| api.caller(&token)).await?;
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
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::api::nobody::Nobody;

    fn shared(jobs: usize) -> Shared<Nobody> {
        let options = Options {
            address: "127.0.0.1:1".parse().unwrap(),
            hosts: Vec::new(),
            tls: None,
            instance: "x".into(),
            largest_body: 1,
            patience: Duration::from_secs(1),
            grace: Duration::from_secs(1),
            jobs,
            rate: 1,
        };
        let (closing, grown) = (watch::channel(false).1, watch::channel(0).1);
        Shared::new(Arc::new(Nobody::default()), options, closing, grown)
    }

    fn caller(name: &str, role: Role) -> Caller {
        Caller {
            name: name.to_owned(),
            roles: vec![role],
            scopes: Vec::new(),
        }
    }

    fn run(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn su_07_a_command_that_breaks_down_is_a_problem_and_not_the_end() {
        let shared = shared(1);
        let caller = caller("a", Role::Agent);
        run(async {
            // More often than there are turns: each was given back.
            for _ in 0..3 {
                let broken = shared.blocking(&caller, |_| panic!("as it was asked to"));
                let broken: Result<(), Problem> = broken.await;
                let problem = broken.unwrap_err();
                assert_eq!((problem.status(), problem.code()), (500, "X101"));
            }
            assert_eq!(shared.blocking(&caller, |_| 7).await.unwrap(), 7);
        });
    }

    #[test]
    fn su_07_one_caller_leaves_turns_for_others() {
        let shared = Arc::new(shared(8));
        run(async {
            // More than there are turns, and none of them ends by itself.
            let (end, ends) = channel::<()>();
            let ends = Arc::new(Mutex::new(ends));
            let slow = |name: &'static str| {
                let (shared, ends) = (Arc::clone(&shared), Arc::clone(&ends));
                tokio::spawn(async move {
                    let work = move |_: &Nobody| drop(ends.lock().map(|it| it.recv()));
                    shared.blocking(&caller(name, Role::Agent), work).await
                })
            };
            let greedy: Vec<_> = (0..9).map(|_| slow("a")).collect();
            tokio::task::yield_now().await;
            let other = caller("b", Role::Agent);
            assert_eq!(shared.blocking(&other, |_| 7).await.unwrap(), 7);
            // Whose token it is, and whether all is well, is known even without any turn.
            let more: Vec<_> = ["b", "b", "c", "c", "d", "d"].map(slow).into();
            tokio::task::yield_now().await;
            assert_eq!(shared.jobs.available_permits(), 0);
            assert_eq!(shared.quickly(|_| 7).await.unwrap(), 7);
            drop(end);
            for job in greedy.into_iter().chain(more) {
                job.await.unwrap().unwrap();
            }
        });
    }

    #[test]
    fn su_07_nobody_alone_takes_all_places_of_followers() {
        let shared = shared(1);
        let agent = caller("a", Role::Agent);
        let mut held: Vec<_> = (0..MOST_OF_CALLER)
            .map(|_| shared.place(&agent).unwrap())
            .collect();
        assert_eq!(shared.place(&agent).unwrap_err().status(), 503);
        // Nor do all agents together.
        for number in MOST_OF_CALLER..MOST_OF_AGENTS {
            let name = (number / MOST_OF_CALLER).to_string();
            held.push(shared.place(&caller(&name, Role::Agent)).unwrap());
        }
        assert!(shared.place(&caller("b", Role::Agent)).is_err());
        let person = caller("p", Role::Operator);
        held.push(shared.place(&person).unwrap());
        // One that is given back is for whoever comes next.
        held.remove(0);
        assert!(shared.place(&agent).is_ok());
    }

    #[test]
    fn su_07_of_an_address_the_network_counts() {
        let of = |text: &str| network(Peer(text.parse().unwrap())).to_string();
        assert_eq!(of("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::");
        assert_eq!(of("[::ffff:10.0.0.1]:1"), "10.0.0.1");
        assert_eq!(of("10.0.0.1:1"), "10.0.0.1");
    }
}
