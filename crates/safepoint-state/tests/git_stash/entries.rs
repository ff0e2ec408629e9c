//! Entries are found and dropped again by what we know of them.

use safepoint_state::git::stash::{self, Stash};

use crate::support::{Bench, LABEL};

#[test]
fn st_13_an_entry_is_dropped_by_its_label_alone() {
    let bench = Bench::new();
    bench.write("changed", "mine\n");
    bench.user_stash("mine below");
    bench
        .stash_choosing("checkpoint:2:other", &|_| false, &|_| true)
        .unwrap();
    bench.write("changed", "mine\n");
    bench.stash();
    bench.user_stash("mine above");
    let (git, repository) = (bench.runner(), bench.open());
    assert!(!stash::drop_labelled(&git, &repository, "checkpoint:01J").unwrap());
    assert!(stash::drop_labelled(&git, &repository, LABEL).unwrap());
    assert!(!stash::drop_labelled(&git, &repository, LABEL).unwrap());
    let left = [
        "stash@{0} On main: mine above",
        "stash@{1} checkpoint:2:other",
        "stash@{2} On main: mine below",
    ];
    assert_eq!(bench.entries(), left);
}

#[test]
fn st_13_the_last_entry_is_dropped_with_the_reference() {
    let bench = Bench::new();
    let (git, repository) = (bench.runner(), bench.open());
    assert!(!stash::drop_labelled(&git, &repository, LABEL).unwrap());
    bench.stash();
    assert!(stash::drop_labelled(&git, &repository, LABEL).unwrap());
    assert!(bench.entries().is_empty());
}

#[test]
fn st_13_an_entry_is_found_by_its_commit() {
    let bench = Bench::new();
    bench.write("changed", "mine\n");
    let commit = bench.stashed();
    let (git, repository) = (bench.runner(), bench.open());
    assert_eq!(stash::find(&git, &repository, &commit).unwrap(), Some(0));
    bench.user_stash("mine above");
    assert_eq!(stash::find(&git, &repository, &commit).unwrap(), Some(1));
    assert_eq!(
        stash::find(&git, &repository, "no such commit").unwrap(),
        None
    );
}

#[test]
fn st_13_a_label_is_one_line() {
    let bench = Bench::new();
    let label = "checkpoint:1:two\nlines  and \t\"ümlaut\" ";
    bench.stash_choosing(label, &|_| false, &|_| true).unwrap();
    assert_eq!(
        bench.entries(),
        ["stash@{0} checkpoint:1:two lines and \"ümlaut\""]
    );
    assert!(stash::drop_labelled(&bench.runner(), &bench.open(), label).unwrap());
}

#[test]
fn st_13_entries_are_logged_where_logs_are_switched_off() {
    for options in [&[][..], &["--ref-format=reftable"][..]] {
        let bench = Bench::empty(options);
        bench.write("changed", "before\n");
        bench.commit("first");
        bench.git(&["config", "core.logAllRefUpdates", "false"]);
        for number in 0..3 {
            bench.write("changed", format!("{number}\n"));
            let label = format!("checkpoint:{number}:x");
            let made = bench.stash_choosing(&label, &|_| false, &|_| true).unwrap();
            assert!(matches!(made, Stash::Made { .. }));
        }
        let expected =
            [2, 1, 0].map(|label| format!("stash@{{{}}} checkpoint:{label}:x", 2 - label));
        assert_eq!(bench.entries(), expected);
    }
}
