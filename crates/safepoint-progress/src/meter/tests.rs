//! The three comparisons, at their edges.

use super::*;

const MEASURED: Meter = Meter {
    tokens: Some(1_000),
    wall_micros: 60_000_000,
    cost_micros: Some(2_000_000),
    record_bytes: 10,
};

fn said(tokens: u64, seconds: u64, cost: f64) -> Usage {
    Usage {
        tokens_consumed: Some(tokens),
        wall_time: Some(WallTime::from_micros(seconds * 1_000_000)),
        cost: Some(cost),
    }
}

#[test]
fn pr_20_each_field_has_its_own_tolerance() {
    let fields = |usage: Usage, tolerance| -> Vec<Dimension> {
        let found = discrepancies(&usage, &MEASURED, tolerance);
        found.into_iter().map(|one| one.field).collect()
    };
    let usual = Tolerance::default();
    assert_eq!(fields(said(1_000, 60, 2.0), usual), []);
    assert_eq!(fields(said(1_050, 57, 1.9), usual), []);
    assert_eq!(fields(said(1_051, 60, 2.0), usual), [Dimension::Tokens]);
    assert_eq!(fields(said(949, 56, 2.11), usual).len(), 3);
    let exact = Tolerance {
        tokens: 0,
        wall_time: 100,
        cost: 100,
    };
    assert_eq!(fields(said(1_001, 90, 3.0), exact), [Dimension::Tokens]);
    assert_eq!(fields(Usage::default(), exact), []);
}

#[test]
fn pr_20_against_nothing_anything_is_a_difference() {
    let nothing = Meter {
        tokens: Some(0),
        ..Meter::default()
    };
    let found = discrepancies(&said(1, 0, 0.0), &nothing, Tolerance::default());
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0].agent_value, &found[0].runtime_value),
        (&json!(1), &json!(0))
    );
}

#[test]
fn pr_20_nobody_disagrees_with_what_was_not_measured() {
    let found = discrepancies(
        &said(1_000, 0, 9.0),
        &Meter::default(),
        Tolerance::default(),
    );
    assert_eq!(found, []);
}

#[test]
fn pr_20_a_limit_is_near_before_it_is_passed() {
    let budget = Budget {
        tokens: Some(100),
        ..Budget::default()
    };
    let at = |tokens| {
        let meter = Meter {
            tokens: Some(tokens),
            ..Meter::default()
        };
        budget
            .strains(&meter)
            .first()
            .map(|strain| strain.is_exceeded)
    };
    assert_eq!(
        [at(79), at(80), at(100), at(101)],
        [None, Some(false), Some(false), Some(true)]
    );
    assert_eq!(Budget::default().strains(&MEASURED), []);
}
