//! A load that is the same for every deployment: many agents, two operators, somebody who
//! reads, somebody who writes notes, some who follow what happens; and somebody who kills
//! servers and the database under them. What everybody was told is compared with what is there.

mod agent;
mod chance;
mod check;
mod client;
mod follower;
mod ledger;
mod people;
mod site;
mod table;
mod wire;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::chance::Chance;
use self::follower::Follower;
use self::ledger::Ledger;
use self::people::Heads;
use self::table::Table;

pub(crate) use self::site::{Site, Where};

/// How much, on what, and what is done to it.
pub(crate) struct Plan {
    /// How it is called in the report.
    pub(crate) name: &'static str,
    /// Where the store is.
    pub(crate) store: Where,
    /// How many servers there are.
    pub(crate) replicas: usize,
    /// How many agents work.
    pub(crate) agents: usize,
    /// For how long.
    pub(crate) seconds: u64,
    /// How often a server is killed.
    pub(crate) kills: u64,
    /// How often the database is.
    pub(crate) restarts: u64,
    /// Of what is chosen. When it happens is the machine's choice.
    pub(crate) seed: u64,
}

impl Plan {
    /// As large as the environment says, and small where it says nothing.
    pub(crate) fn new(name: &'static str, store: Where, replicas: usize, seconds: u64) -> Self {
        Self {
            name,
            store,
            replicas,
            agents: number("SAFEPOINT_LOAD_AGENTS", 12) as usize,
            seconds: number("SAFEPOINT_LOAD_SECONDS", seconds),
            kills: 0,
            restarts: 0,
            seed: number("SAFEPOINT_LOAD_SEED", 1),
        }
    }

    /// The same, with servers and the database killed on the way.
    pub(crate) fn killing(self) -> Self {
        Self {
            kills: number("SAFEPOINT_LOAD_KILLS", (self.seconds / 2).min(60)),
            restarts: 1,
            ..self
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a campaign asks for more")]
fn number(name: &str, without: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => without,
    }
}

/// What everybody in it shares.
struct World {
    site: Site,
    ledger: Ledger,
    table: Table,
    heads: Heads,
    /// Nothing new is begun any more.
    over: AtomicBool,
    /// How many were killed.
    killed: AtomicU64,
    seed: u64,
}

impl World {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// The choices of one of them.
    fn chance(&self, name: &str) -> Chance {
        Chance::new(self.seed, name)
    }
}

/// Ends everybody, also when one of them fails.
struct End<'a>(&'a World, &'a [Follower]);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
        self.1.iter().for_each(Follower::enough);
    }
}

/// Carries it out, prints what was measured, and fails if anything is not as it was told.
#[expect(clippy::disallowed_methods, reason = "what is measured is time")]
pub(crate) fn carry_out(plan: &Plan) {
    let world = World {
        site: Site::new(plan),
        ledger: Ledger::default(),
        table: Table::default(),
        heads: Heads::default(),
        over: AtomicBool::new(false),
        killed: AtomicU64::new(0),
        seed: plan.seed,
    };
    let cast = people::cast(&world, plan.agents);
    let followers = Follower::all(&world, &cast);
    let begun = Instant::now();
    let mut took = Duration::ZERO;
    std::thread::scope(|scope| {
        let following = followers
            .iter()
            .map(|follower| scope.spawn(|| follower.follow(&world)));
        let following: Vec<_> = following.collect();
        let world = &world;
        let end = End(world, &followers);
        let mut working = vec![
            scope.spawn(|| people::notes(world)),
            scope.spawn(|| people::reads(world, &cast.auditor)),
        ];
        for operator in &cast.operators {
            working.push(scope.spawn(move || people::decides(world, operator)));
        }
        for agent in &cast.agents {
            working.push(scope.spawn(move || agent.work(world)));
        }
        let (kills, restarts) = (plan.kills, plan.restarts);
        let time = Duration::from_secs(plan.seconds);
        let killing = scope.spawn(move || people::kills(world, kills, time));
        let restarting = scope.spawn(move || people::restarts(world, restarts, time));
        std::thread::sleep(time);
        // A load that leaves something out shows nothing about it.
        world.table.wait_for_everything();
        world.over.store(true, Ordering::Relaxed);
        for thread in working.into_iter().chain([killing, restarting]) {
            thread.join().unwrap();
        }
        took = begun.elapsed();
        let wrong = check::everything(world, &cast, &followers);
        drop(end);
        for thread in following {
            thread.join().unwrap();
        }
        let killed = world.killed.load(Ordering::Relaxed);
        println!("{}", world.table.show(plan, took, killed));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(killed >= plan.kills + plan.restarts, "{killed} were killed");
        assert_eq!(world.table.has_failures(), plan.kills > 0);
    });
}
