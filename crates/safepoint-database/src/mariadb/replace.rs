//! How routines, views and events that differ are replaced, after the tables have
//! changed places. Those that are the same are not touched.

use super::plan::{Journal, Planning};
use super::step::Step;
use super::structure::{Event, Routine, Text, View};

/// Procedures, functions and packages.
pub(super) fn routines(planning: &Planning<'_>, journal: &mut Journal) {
    let drop = |routine: &Routine| {
        let name = planning.in_place(&routine.name);
        Step::plain(format!("DROP {} IF EXISTS {name}", routine.kind))
    };
    let create = |one: &Routine| Step::theirs(one.create.clone(), &one.settings);
    let same = |a: &Routine, b: &Routine| (&a.kind, &a.name) == (&b.kind, &b.name);
    let (live, wanted) = (&planning.live.routines, &planning.wanted.routines);
    for gone in live.iter().filter(|one| !wanted.contains(one)) {
        journal.finish.push(drop(gone));
        journal.refinish.push(drop(gone));
        journal.refinish.push(create(gone));
    }
    for new in wanted.iter().filter(|one| !live.contains(one)) {
        journal.finish.push(drop(new));
        journal.finish.push(create(new));
        if !live.iter().any(|one| same(one, new)) {
            journal.refinish.push(drop(new));
        }
    }
}

/// Views.
pub(super) fn views(planning: &Planning<'_>, journal: &mut Journal) {
    let (live, wanted) = (&planning.live.views, &planning.wanted.views);
    let is_in = |views: &[View], one: &View| {
        let same =
            |a: &View| (&a.name, &a.create, &a.settings) == (&one.name, &one.create, &one.settings);
        views.iter().any(same)
    };
    // One that has the name of a table that comes is gone already.
    let is_table = |view: &View| planning.wanted.movable().any(|name| name == view.name);
    let mut gone: Vec<&View> = live
        .iter()
        .filter(|one| !is_in(wanted, one) && !is_table(one))
        .collect();
    // A broken one cannot be brought back, so it goes last, when nothing else can fail.
    gone.sort_by_key(|view| view.broken);
    for new in wanted.iter().filter(|one| !is_in(live, one)) {
        journal.finish.extend(create_view(new));
        let drop = drop_view(&planning.in_place(&new.name));
        journal.unfinish.push(drop);
    }
    for old in gone {
        if !wanted.iter().any(|new| new.name == old.name) {
            let drop = drop_view(&planning.in_place(&old.name));
            journal.finish.push(drop);
        }
        journal.refinish.extend(create_view(old));
    }
}

/// Events.
pub(super) fn events(planning: &Planning<'_>, journal: &mut Journal) {
    let drop = |event: &Event| {
        Step::plain(format!(
            "DROP EVENT IF EXISTS {}",
            planning.in_place(&event.name)
        ))
    };
    let create = |one: &Event| Step::theirs(one.create.clone(), &one.settings);
    let (live, wanted) = (&planning.live.events, &planning.wanted.events);
    for gone in live.iter().filter(|one| !wanted.contains(one)) {
        journal.finish.push(drop(gone));
        journal.refinish.push(drop(gone));
        journal.refinish.push(create(gone));
    }
    for new in wanted.iter().filter(|one| !live.contains(one)) {
        journal.finish.push(drop(new));
        journal.finish.push(create(new));
        if !live.iter().any(|one| one.name == new.name) {
            journal.refinish.push(drop(new));
        }
    }
}

/// Drops a view.
pub(super) fn drop_view(name: &str) -> Step {
    Step::plain(format!("DROP VIEW IF EXISTS {name}"))
}

/// Makes a view, or makes it what it was. One that was broken cannot be made.
pub(super) fn create_view(view: &View) -> Option<Step> {
    let rest = view.create.0.strip_prefix(b"CREATE ")?;
    let create = [b"CREATE OR REPLACE ", rest].concat();
    (!view.broken).then(|| Step::theirs(Text(create), &view.settings))
}
