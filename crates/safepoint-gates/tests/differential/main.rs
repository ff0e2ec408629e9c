//! The engine against an evaluator that is too simple to be wrong: random
//! atlases, random events, the same verdicts.
//!
//! `SAFEPOINT_GATES_CASES` says how many cases, `SAFEPOINT_GATES_SEED` which is the
//! first: `scripts/gates-campaign` sets both. A case that differs is cut down to
//! the events that matter, and shown with its seed.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod generate;
mod matching;
mod naive;
mod play;
mod raise;
mod replies;
mod requests;
mod short;
mod steps;

use std::fmt::Write as _;

use generate::Dice;
use naive::Outcome;
use play::{Game, Move};
use safepoint_gates::{AtlasManifest, Event, GateStatus};

/// Enough for about fifteen seconds without optimisation.
const CASES: u64 = 4_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn cases() -> u64 {
    number("SAFEPOINT_GATES_CASES").unwrap_or(CASES)
}

fn first() -> u64 {
    number("SAFEPOINT_GATES_SEED").unwrap_or(0)
}

/// The atlases and events of a seed.
fn case(seed: u64) -> (Vec<AtlasManifest>, Vec<Move>) {
    let mut dice = Dice::new(seed.wrapping_mul(0x1_0000_0001));
    let atlases = generate::atlases(&mut dice);
    let moves = play::moves(&mut dice);
    (atlases, moves)
}

/// Plays a case; what differs first, told in full.
fn difference(atlases: &[AtlasManifest], moves: &[Move]) -> Option<String> {
    let engine = play::engine(atlases);
    let mut game = Game::new(&engine, atlases);
    let mut story = String::new();
    let beginning = (Event::Start, None);
    for one in std::iter::once(None).chain(moves.iter().map(Some)) {
        let event = match one {
            None => Some(beginning.clone()),
            Some(one) => game.event(one),
        };
        let Some((event, hold)) = event else {
            writeln!(story, "  {one:?}").expect("strings grow");
            continue;
        };
        let (engine, naive) = game.play(&event, hold);
        writeln!(
            story,
            "  {event:?}: {:?} {:?}",
            naive.refused, naive.decision
        )
        .expect("strings grow");
        if engine != naive {
            return Some(format!("{story}{}", fields(&engine, &naive)));
        }
    }
    None
}

/// The fields in which two outcomes differ.
fn fields(engine: &Outcome, naive: &Outcome) -> String {
    let mut told = String::new();
    for (name, ours, theirs) in engine
        .fields()
        .zip(naive.fields())
        .map(|((name, a), (_, b))| (name, a, b))
    {
        if ours != theirs {
            write!(told, "{name}\n    engine {ours}\n    naive  {theirs}\n").expect("strings grow");
        }
    }
    told
}

/// Leaves out events as long as something still differs.
fn cut(atlases: &[AtlasManifest], mut moves: Vec<Move>) -> Vec<Move> {
    let mut at = 0;
    while at < moves.len() {
        let mut fewer = moves.clone();
        fewer.remove(at);
        if difference(atlases, &fewer).is_some() {
            moves = fewer;
            at = 0;
        } else {
            at += 1;
        }
    }
    moves
}

#[test]
fn ga_36_the_engine_agrees_with_a_naive_one() {
    for seed in first()..first() + cases() {
        let (atlases, moves) = case(seed);
        if difference(&atlases, &moves).is_none() {
            continue;
        }
        let moves = cut(&atlases, moves);
        let told = difference(&atlases, &moves).expect("it still differs");
        let written = serde_json::to_string_pretty(&atlases).expect("it is written");
        panic!("seed {seed} differs\n{written}\n{told}");
    }
}

#[test]
fn ga_20_nothing_but_answers_passes_a_gate_that_asks() {
    for seed in first()..first() + cases() / 4 {
        let (atlases, moves) = case(seed);
        let engine = play::engine(&atlases);
        let mut game = Game::new(&engine, &atlases);
        game.play(&Event::Start, None);
        for one in moves.iter().filter(|one| !matches!(one, Move::Answer(..))) {
            let Some((event, hold)) = game.event(one) else {
                continue;
            };
            let (engine, _) = game.play(&event, hold);
            for (gate, status) in &engine.checkpoints {
                let named = game.naive.gates.iter().position(|it| it.shown == *gate);
                let asks = named.is_some_and(|gate| game.naive.asks(gate));
                assert!(
                    !(asks && *status == GateStatus::Passed),
                    "seed {seed}: `{gate}` is passed by {event:?}"
                );
            }
        }
    }
}

#[test]
fn ga_14_a_session_that_is_written_and_read_is_judged_alike() {
    for seed in first()..first() + cases() / 4 {
        let (atlases, moves) = case(seed);
        let engine = play::engine(&atlases);
        let mut whole = Game::new(&engine, &atlases);
        let mut read = Game::new(&engine, &atlases);
        let (one, other) = (
            whole.play(&Event::Start, None).0,
            read.play(&Event::Start, None).0,
        );
        assert_eq!(one, other, "seed {seed}");
        for one in moves.iter().filter(|one| !matches!(one, Move::Restart)) {
            read.event(&Move::Restart);
            let (Some((event, hold)), Some(_)) = (whole.event(one), read.event(one)) else {
                continue;
            };
            let told = (whole.play(&event, hold).0, read.play(&event, hold).0);
            assert_eq!(told.0, told.1, "seed {seed}: {event:?}");
            assert_eq!(
                whole.simulation.session, read.simulation.session,
                "seed {seed}"
            );
        }
    }
}
