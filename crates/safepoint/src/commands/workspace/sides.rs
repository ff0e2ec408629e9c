//! A conflict as people see it: what both sides began with, and what each made of it.
//!
//! It only shows. The text of both sides comes from outside: it is cut, and made safe.

use safepoint_model::text;
use safepoint_progress::Progress;
use safepoint_progress::integrate::{Choice, Conflict, Ground, Integration};
use schemars::JsonSchema;
use serde::Serialize;

/// So many lines of a conflict are shown.
const MOST_LINES: usize = 60;
/// So many characters of a line.
const WIDEST: usize = 160;
/// So many lines around each place.
const AROUND: usize = 2;

/// Both sides of one conflict that is open.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Sides {
    /// Which conflict.
    pub(super) conflict: String,
    /// The places that do not fit, with what the parent has, what both began with, and what the
    /// workspace made of it; null where there are no lines to show.
    pub(super) text: Option<String>,
    /// What can become of it: `ours`, `theirs`, `merged`. A content can always be given, unless
    /// only `ours` is left.
    #[schemars(with = "Vec<String>")]
    pub(super) choices: Vec<Choice>,
}

/// Both sides of every conflict that is open. What cannot be read now is not shown; the
/// conflict itself is.
pub(super) fn of(
    progress: &Progress,
    ground: Option<&Ground<'_>>,
    one: &Integration,
) -> Vec<Sides> {
    let open = one.conflicts.iter().filter(|it| it.resolution.is_none());
    let text = |conflict: &Conflict| {
        let marked = progress.marked(ground?, one, conflict).ok()??;
        Some(excerpt(&String::from_utf8_lossy(&marked)))
    };
    open.map(|conflict| Sides {
        conflict: conflict.id.clone(),
        text: text(conflict),
        choices: conflict.choices().to_vec(),
    })
    .collect()
}

/// The marked places of a text with a few lines around each.
fn excerpt(marked: &str) -> String {
    let lines: Vec<&str> = marked.lines().collect();
    let mut wanted = vec![false; lines.len()];
    let mut inside = false;
    for (number, line) in lines.iter().enumerate() {
        let begins = line.starts_with("<<<<<<< ");
        let ends = line.starts_with(">>>>>>> ");
        if inside || begins || ends {
            let around = number.saturating_sub(AROUND)..=number + AROUND;
            let near = wanted.iter_mut().enumerate();
            near.filter(|(place, _)| around.contains(place))
                .for_each(|(_, wanted)| *wanted = true);
        }
        inside = (inside || begins) && !ends;
    }
    let mut shown = Vec::new();
    let mut skipped = false;
    for (line, wanted) in lines.iter().zip(wanted) {
        if !wanted {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            shown.push("…".to_owned());
        }
        let safe: Vec<String> = line.split('\t').map(|part| text::line(part).text).collect();
        shown.push(text::shorten(&safe.join("    "), WIDEST));
    }
    let more = shown.len().saturating_sub(MOST_LINES);
    shown.truncate(MOST_LINES);
    if more > 0 {
        shown.push(format!("… {more} more lines"));
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_32_a_long_or_hostile_conflict_is_cut_and_made_safe() {
        let before: String = (0..50).map(|number| format!("line {number}\n")).collect();
        let marked = format!(
            "{before}<<<<<<< here\n\u{1b}[2Jours\n||||||| base\nold\n=======\n{}\n>>>>>>> work\nafter\n",
            "x".repeat(10_000)
        );
        let shown = excerpt(&marked);
        assert!(
            shown.starts_with("…\nline 48\nline 49\n<<<<<<< here\n"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(shown.ends_with(">>>>>>> work\nafter"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= WIDEST));
        let long = format!("<<<<<<< here\n{}=======\n>>>>>>> work\n", before.repeat(4));
        assert!(excerpt(&long).ends_with("more lines"));
    }
}
