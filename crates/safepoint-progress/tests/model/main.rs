//! Random lives of several workspaces, with crashes, against a model in memory.
//!
//! The model is written from the requirements and shares no rule with the
//! crate. Whatever is done to both, they must agree: on every answer, and
//! after every crash and at the end on states, chains, signals and the trail.
//! A crash is a real one: the step is done by a process of its own, which is
//! killed at one of the fault points.
//!
//! `SAFEPOINT_MODEL_CASES` is the number of lives; `scripts/test-progress`
//! runs many.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests, which read the environment for their counts and errands"
)]

mod model;
mod real;
mod step;

use proptest::test_runner::{Config, TestRunner};
use testkit::{Database, Room};

use model::Model;
use real::Real;
use step::{Life, life};

fn cases(few: u32) -> u32 {
    std::env::var("SAFEPOINT_MODEL_CASES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(few)
}

fn lives_agree(database: Database, few: u32) {
    let config = Config {
        cases: cases(few),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&life(), |life| {
            live(database, &life);
            Ok(())
        })
        .unwrap();
}

fn live(database: Database, life: &Life) {
    let room = Room::new(database);
    let mut real = Real::new(&room);
    let mut model = Model::default();
    for step in &life.steps {
        match &step.crash {
            None => {
                let expected = model.apply(&step.what);
                let answer = real.perform(&step.what);
                assert_eq!(answer, expected, "{:?}", step.what);
            }
            Some(point) => {
                let mut after = model.clone();
                let expected = after.apply(&step.what);
                let answer = real.perform_and_die(&step.what, point);
                // Acknowledged is done; otherwise it was done or it was not, and nothing between.
                match answer {
                    Some(ref answer) => assert_eq!(*answer, expected, "{:?}", step.what),
                    None => {
                        if expected == "done" {
                            after.forget_token(&step.what);
                        }
                        model.deliver();
                    }
                }
                let done = answer.is_some() || !real.differs_from(&after);
                if done {
                    model = after;
                }
                real.note_unanswered(&model);
                real.agrees_with(&model);
            }
        }
    }
    real.agrees_with(&model);
    real.verifies();
}

#[test]
fn pr_40_random_lives_with_crashes_agree_with_the_model_on_sqlite() {
    lives_agree(Database::Sqlite, 40);
}

#[test]
fn pr_40_random_lives_with_crashes_agree_with_the_model_on_postgres() {
    lives_agree(Database::Postgres, 8);
}

/// Not a test by itself: what a process does that is about to be killed.
#[test]
fn one_step_in_a_process_of_its_own() {
    if let Ok(errand) = std::env::var(real::ERRAND) {
        real::run_errand(&errand);
    }
}
