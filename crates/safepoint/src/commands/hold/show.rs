//! One hold, for people: everything a decision rests on, and nothing made up.

use safepoint_authority::{DecisionScope, NamedPath, Pending, Preimage};
use safepoint_model::text;

use crate::console::{BAD, FAINT, GOOD, STRONG, WARNING};

/// Who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// A person, who may decide.
    Operator,
    /// An agent, whom the commands that decide are forbidden to.
    Agent,
}

/// All of it, on one page.
pub(super) fn page(hold: &Pending, audience: Audience) -> String {
    let mut page = Page::default();
    page.row("hold", &hold.hold_id.to_string());
    page.row("wants", &hold.canonical_request_summary);
    if let Some(objective) = &hold.proposer.objective {
        page.row("for", objective);
    }
    page.row("because", &hold.trigger_description);
    for basis in &hold.policy_basis {
        page.row("rule", &format!("{}: {}", basis.policy_id, basis.reason));
    }
    if let Some(run) = &hold.earlier_run {
        page.row("earlier", &run.sentence());
    }
    let back = hold.reversibility_class.as_str();
    let style = match hold.reversibility_class.is_final() {
        true => BAD,
        false => GOOD,
    };
    page.raw("undo", &format!("{style}{back}{style:#}"));
    for covered in &hold.coverage.covered {
        page.row("  back", covered);
    }
    for lost in &hold.coverage.not_covered {
        page.row("  lost", lost);
    }
    page.row("risk", hold.risk_classification.as_str());
    let effects: Vec<&str> = hold
        .side_effect_class
        .iter()
        .map(|it| it.as_str())
        .collect();
    page.row("effects", &effects.join(", "));
    let delta = &hold.scope_delta;
    for (what, new) in [
        ("action", delta.actions.iter().collect::<Vec<_>>()),
        ("path", delta.paths.iter().collect()),
        ("host", delta.hosts.iter().collect()),
    ] {
        for one in new {
            page.row("new", &format!("{what} {one}"));
        }
    }
    for (boundary, level) in &hold.trust_state {
        page.row("trust", &format!("{boundary} {}", level.as_str()));
    }
    form(&mut page, hold);
    page.row("means", &hold.authorization_statement);
    page.row("by", &hold.fingerprint.to_string());
    if hold.quorum > 1 {
        let said = hold.decided_by.join(", ");
        page.row(
            "needs",
            &format!("{} operators; so far: {said}", hold.quorum),
        );
    }
    if let Some(first) = &hold.waits_for {
        page.row(
            "after",
            &format!("{first}: the oldest of a session is decided first"),
        );
    }
    match audience {
        Audience::Operator => commands(&mut page, hold),
        Audience::Agent => page.row("next", "a person has to approve it"),
    }
    if page.hidden {
        page.raw(
            "note",
            &format!("{WARNING}hidden characters are shown escaped{WARNING:#}"),
        );
    }
    page.text
}

/// The commands that decide.
fn commands(page: &mut Page, hold: &Pending) {
    // Apart from the command: one paste must not be both confirmations.
    if let Some(word) = &hold.confirm {
        page.row("word", word);
    }
    let confirm = hold.confirm.as_ref().map(|_| " --confirm WORD");
    page.row(
        "yes",
        &format!(
            "safepoint hold approve {} --fingerprint {}{}",
            hold.hold_id,
            hold.fingerprint,
            confirm.unwrap_or_default()
        ),
    );
    if hold.canonical_form.outside_target().is_some() && hold.quorum <= 1 {
        for (scope, word) in [
            (DecisionScope::Session, "session"),
            (DecisionScope::Project, "project"),
        ] {
            let opens = hold.canonical_form.outside_target();
            let opens = opens.map(|it| it.opening(Some(scope))).unwrap_or_default();
            page.row("or", &format!("the same with `--for {word}` {opens}"));
        }
    }
    page.row("no", &format!("safepoint hold deny {}", hold.hold_id));
}

/// The canonical form.
fn form(page: &mut Page, hold: &Pending) {
    let form = &hold.canonical_form;
    page.text.push('\n');
    if let Some(executable) = &form.tool.executable {
        page.row("program", &executable.path);
        page.row("", &format!("sha256 {}", executable.digest));
    }
    for interpreter in &form.tool.interpreters {
        page.row("run by", &interpreter.path);
        page.row("", &format!("sha256 {}", interpreter.digest));
    }
    for (number, word) in form.argv.iter().enumerate() {
        page.row(if number == 0 { "words" } else { "" }, word);
    }
    if !form.directory.path.is_empty() {
        page.row("in", &form.directory.path);
    }
    for path in &form.paths {
        page.row(&path.role, &format!("{}{}", path.path, seen(path)));
    }
    for host in &form.hosts {
        page.row("host", host);
    }
    let names: Vec<&str> = form.environment.keys().map(String::as_str).collect();
    page.row(
        "given",
        &format!("{} variables: {}", names.len(), names.join(" ")),
    );
    page.row("session", form.session_id.as_str());
    for atlas in &form.atlases {
        page.row("under", &format!("{} {}", atlas.atlas_id, atlas.version));
    }
    page.text.push('\n');
}

fn seen(path: &NamedPath) -> String {
    let what = match &path.preimage {
        Preimage::Absent {} => "nothing there",
        Preimage::File { .. } => "a file",
        Preimage::Link { target, .. } => &format!("leads to {target}"),
        Preimage::Directory { .. } => "a directory",
        Preimage::Special { .. } => "a device, socket or pipe",
        Preimage::Unknown {} => "known only when it runs",
    };
    let outside = if path.inside {
        ""
    } else {
        ", outside the workspace"
    };
    format!("  ({what}{outside})")
}

#[derive(Default)]
struct Page {
    text: String,
    hidden: bool,
}

impl Page {
    fn row(&mut self, name: &str, value: &str) {
        let shown = text::line(value);
        self.hidden |= shown.text != value;
        let value = shown.text;
        self.raw(name, &value);
    }

    fn raw(&mut self, name: &str, value: &str) {
        let style = if name.starts_with(' ') { FAINT } else { STRONG };
        self.text
            .push_str(&format!("{style}{name:<9}{style:#} {value}\n"));
    }
}
