//! A session in memory, for whatever is judged without a store: the examples
//! in an atlas, recorded history, and tests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use safepoint_model::{ActionId, Entropy, EntropyError, HoldId, SessionId, Timestamp};

use crate::engine::Engine;
use crate::event::{Answers, Event, Facts};
use crate::judge::{Refusal, Verdict};
use crate::resolution::Judgement;
use crate::session::Session;

/// How often an event may ask for a steward's service.
const MOST_ROUNDS: usize = 8;

/// A session in memory.
#[derive(Debug)]
pub struct Simulation<'e> {
    engine: &'e Engine,
    /// The session as it stands.
    pub session: Session,
    /// The time of the next event.
    pub now: Timestamp,
    uses: HashMap<String, Vec<Timestamp>>,
    entropy: Counting,
}

impl<'e> Simulation<'e> {
    /// A session that begins at `now`; with [`Event::Start`] still to come.
    pub fn new(
        engine: &'e Engine,
        principal: &str,
        goal: Option<String>,
        now: Timestamp,
    ) -> Result<Self, EntropyError> {
        let entropy = Counting::default();
        let session_id = SessionId::generate(&entropy)?;
        let session = Session::new(session_id, principal.to_owned(), goal, engine.pinned(), now);
        Ok(Self {
            engine,
            session,
            now,
            uses: HashMap::new(),
            entropy,
        })
    }

    /// Takes one step. Stewards' services are not asked: they fail, and so does what needs them.
    pub fn step(&mut self, event: &Event) -> Result<Judgement, Refusal> {
        let rates = match event {
            Event::Request(request) => self.engine.rates(&request.action),
            _ => Vec::new(),
        };
        let mut callbacks = Answers::new();
        for _ in 0..MOST_ROUNDS {
            let mut uses = HashMap::new();
            for rate in &rates {
                let window = i64::try_from(rate.window_seconds).unwrap_or(i64::MAX);
                let since = self
                    .now
                    .as_micros()
                    .saturating_sub(window.saturating_mul(1_000_000));
                let times = self.uses.get(&rate.name);
                let count = times.map_or(0, |times| {
                    times.iter().filter(|time| time.as_micros() > since).count()
                });
                uses.insert(rate.name.clone(), count as u64);
            }
            let Ok(facts) = self.facts(uses, &callbacks) else {
                break;
            };
            match self.engine.judge(&self.session, event, &facts)? {
                Verdict::Judged(judgement) => {
                    self.session = judgement.session.clone();
                    for name in &judgement.uses {
                        self.uses.entry(name.clone()).or_default().push(self.now);
                    }
                    return Ok(*judgement);
                }
                Verdict::Ask(wanted) => {
                    let silence = || Err("no service is asked in a simulation".to_owned());
                    callbacks.extend(wanted.into_iter().map(|it| (it.key, silence())));
                }
            }
        }
        Err(Refusal::Ended)
    }

    fn facts(
        &self,
        uses: HashMap<String, u64>,
        callbacks: &Answers,
    ) -> Result<Facts, EntropyError> {
        Ok(Facts {
            now: self.now,
            hold_id: HoldId::generate(&self.entropy)?,
            request_id: ActionId::generate(&self.entropy)?,
            uses,
            callbacks: callbacks.clone(),
            callback_time: 0,
        })
    }
}

/// Bytes that are different each time, and the same in every run.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        bytes.fill(0);
        for (byte, value) in bytes.iter_mut().rev().zip(number.to_le_bytes()) {
            *byte = value;
        }
        Ok(())
    }
}
