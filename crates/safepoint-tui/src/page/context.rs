//! Where an action comes from: who wants it, in which session, where, under which rules.

use safepoint_authority::{Input, Pending};

use crate::rows::{Break, Page, Tone};
use crate::told::Told;
use crate::words;

/// The context of a hold.
pub(crate) fn context(pending: &Pending) -> Page {
    let form = &pending.canonical_form;
    let mut page = Page::default();
    let mut row = |label, told| page.fact(label, Tone::Plain, Break::Anywhere, told);
    row("Wanted by", Told::theirs(&pending.proposer.actor));
    let objective = pending.proposer.objective.as_deref();
    row(
        "Objective",
        Told::theirs(objective.unwrap_or("none was given")),
    );
    row(
        "Provider",
        Told::theirs(form.provider.as_deref().unwrap_or("not known")),
    );
    row("Hold", Told::theirs(pending.hold_id.as_str()));
    row("Action", Told::theirs(pending.action_id.as_str()));
    row("Session", Told::theirs(pending.session_id.as_str()));
    for (label, time) in [("Since", pending.since), ("Expires", pending.expires_at)] {
        let told = format!("{} {} UTC", words::day(time), words::clock(time));
        row(label, Told::ours(told));
    }
    row("Workspace", Told::theirs(&form.workspace.path));
    row("Directory", Told::theirs(&form.directory.path));
    if let Some(executable) = &form.tool.executable {
        row("Program", Told::theirs(&executable.path));
    }
    for interpreter in &form.tool.interpreters {
        row("Run by", Told::theirs(&interpreter.path));
    }
    let input = match &form.input {
        Input::None {} => "nothing".to_owned(),
        Input::Inherited {} => "whatever it is started with".to_owned(),
        Input::Bytes { length, .. } => format!("{length} bytes"),
    };
    row("Input", Told::ours(input));
    for name in form.environment.keys() {
        row("Variables", Told::theirs(name));
    }
    if form.environment.is_empty() {
        row("Variables", Told::ours("none"));
    }
    for line in words::grouped(&form.policy_version, 8) {
        row("Rules", Told::ours(line));
    }
    for atlas in &form.atlases {
        let told = Told::theirs(&atlas.atlas_id)
            .and(" ")
            .and_theirs(&atlas.version);
        row("Atlases", told);
    }
    page
}
