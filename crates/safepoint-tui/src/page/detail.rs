//! The page an operator decides by: why, what rules, what is at stake, what a yes means,
//! and at the end the canonical form.

use safepoint_authority::{Envelope, Pending, Reversibility, ScopeDelta, SideEffect};

use super::form::form;
use crate::rows::{Break, Page, Tone};
use crate::told::Told;
use crate::words;

/// All about a hold.
pub(crate) fn detail(pending: &Pending) -> Page {
    let mut page = Page::default();
    let what = Told::theirs(&pending.canonical_request_summary);
    page.fact("What", Tone::Plain, Break::Anywhere, what);
    why(&mut page, pending);
    stakes(&mut page, pending);
    scope(&mut page, "New", &pending.scope_delta);
    for (boundary, level) in &pending.trust_state {
        let told = Told::ours(level.as_str()).and(": ").and_theirs(boundary);
        page.fact("Trust", Tone::Plain, Break::Words, told);
    }
    if pending.trust_state.is_empty() {
        let told = Told::ours("it relies on nothing that has a trust of its own");
        page.fact("Trust", Tone::Plain, Break::Words, told);
    }
    meaning(&mut page, pending);
    page.heading("Canonical form: exactly what would be done");
    form(&mut page, &pending.canonical_form);
    // A yes must never be bound to something else than what was read.
    let bound = pending.canonical_form.fingerprint();
    if !bound.is_ok_and(|fingerprint| fingerprint == pending.fingerprint) {
        page.fault = Some("the fingerprint does not belong to the form on screen".to_owned());
    }
    page
}

fn why(page: &mut Page, pending: &Pending) {
    let told = Told::theirs(&pending.trigger_description)
        .and(" (")
        .and(pending.checkpoint_type.as_str())
        .and(")");
    page.fact("Why", Tone::Plain, Break::Words, told);
    for basis in &pending.policy_basis {
        let mut told = Told::theirs(&basis.policy_id);
        if let Some(atlas) = &basis.atlas_id {
            told = told.and(" of ").and_theirs(atlas);
        }
        let told = told.and(": ").and_theirs(&basis.reason);
        page.fact("Rules", Tone::Plain, Break::Words, told);
    }
    if pending.policy_basis.is_empty() {
        let told = Told::ours("none of a policy: the boundary above");
        page.fact("Rules", Tone::Plain, Break::Words, told);
    }
}

fn stakes(page: &mut Page, pending: &Pending) {
    let told = Told::ours(words::risk(pending.risk_classification))
        .and("; effects: ")
        .and(effects(&pending.side_effect_class));
    page.fact("Risk", Tone::Plain, Break::Words, told);
    let mut undo = |tone, told| page.fact("Undo", tone, Break::Words, told);
    let tone = match pending.reversibility_class {
        Reversibility::Reversible => Tone::Plain,
        _ => Tone::Warning,
    };
    undo(tone, Told::ours(words::undo(pending.reversibility_class)));
    let coverage = &pending.coverage;
    match &coverage.checkpoint_id {
        Some(id) => undo(Tone::Plain, Told::ours("checkpoint ").and_theirs(id)),
        None => undo(Tone::Plain, Told::ours("no checkpoint was taken")),
    }
    for covered in &coverage.covered {
        undo(Tone::Plain, Told::ours("✓ covered: ").and_theirs(covered));
    }
    for open in &coverage.not_covered {
        undo(
            Tone::Warning,
            Told::ours("✗ NOT covered: ").and_theirs(open),
        );
    }
}

fn meaning(page: &mut Page, pending: &Pending) {
    let told = Told::theirs(&pending.authorization_statement);
    page.fact("Approval", Tone::Plain, Break::Words, told);
    if pending.quorum > 1 {
        let told = Told::ours(format!(
            "{} different operators must say yes; decided so far: ",
            pending.quorum
        ));
        let told = match pending.decided_by.is_empty() {
            true => told.and("nobody"),
            false => told.and_list(pending.decided_by.iter().map(String::as_str)),
        };
        page.fact("Approval", Tone::Plain, Break::Words, told);
    }
    for line in words::grouped(&pending.fingerprint, 8) {
        page.fact(
            "Fingerprint",
            Tone::Plain,
            Break::Anywhere,
            Told::ours(line),
        );
    }
}

/// What is new about an action.
fn scope(page: &mut Page, label: &'static str, delta: &ScopeDelta) {
    if delta.is_empty() {
        let told = Told::ours("nothing beside what is allowed already");
        return page.fact(label, Tone::Plain, Break::Words, told);
    }
    let mut row = |told| page.fact(label, Tone::Warning, Break::Anywhere, told);
    for action in &delta.actions {
        row(Told::ours("+ action ").and_theirs(action));
    }
    for path in &delta.paths {
        row(Told::ours("+ path ").and_theirs(path));
    }
    if !delta.side_effects.is_empty() {
        row(Told::ours("+ effects: ").and(effects(&delta.side_effects)));
    }
    for host in &delta.hosts {
        row(Told::ours("+ machine ").and_theirs(host));
    }
    if delta.used_up {
        row(Told::ours("+ the envelope is used up"));
    }
    if delta.expired {
        row(Told::ours("+ the envelope has expired"));
    }
}

/// An envelope that is offered, and what of the action it would not allow.
pub(crate) fn envelope(offered: &Envelope, beyond: &ScopeDelta) -> Page {
    let mut page = Page::default();
    let told = Told::ours("This runs once. From then on all of this goes without asking:");
    page.sentence(Tone::Plain, told);
    page.blank();
    let mut row = |label, told| page.fact(label, Tone::Plain, Break::Anywhere, told);
    for action in &offered.actions {
        row("Actions", Told::theirs(action));
    }
    for path in &offered.paths {
        row("Changes", Told::theirs(path).and(" and all below it"));
    }
    row("Effects", Told::ours(effects(&offered.side_effects)));
    for host in &offered.hosts {
        row("Machines", Told::theirs(host));
    }
    match offered.uses {
        Some(uses) => row("Uses", Told::ours(format!("{uses} at most"))),
        None => row("Uses", Told::ours("as many as it likes")),
    }
    let end = offered.expires_at.map(|end| {
        let (day, clock) = (words::day(end), words::clock(end));
        format!("{day} {clock} UTC")
    });
    row("Until", Told::ours(end.unwrap_or("for ever".to_owned())));
    if !beyond.is_empty() {
        scope(&mut page, "Still asks", beyond);
    }
    page
}

fn effects(effects: &std::collections::BTreeSet<SideEffect>) -> String {
    let words: Vec<&str> = effects.iter().map(|effect| effect.as_str()).collect();
    match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}
