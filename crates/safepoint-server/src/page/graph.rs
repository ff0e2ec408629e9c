//! A tree of workspaces with their chains, drawn. The same is told in words below it.

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use safepoint_model::text as safe;

use super::show::url;
use super::workspaces::{Chain, standing};

/// So far apart, in the units of the drawing.
const ROW: usize = 46;
const STEP: usize = 26;
const INDENT: usize = 22;
/// A chain is drawn from its newest pieces of work.
const MOST: usize = 16;
/// A name is cut off after so many characters.
const NAME: usize = 30;

/// One line of the drawing.
struct Row<'a> {
    chain: &'a Chain,
    depth: usize,
    /// The line of its parent.
    above: Option<usize>,
}

/// Every workspace after its parent. What forms a circle, which nothing should, is left out.
fn rows(chains: &[Chain]) -> Vec<Row<'_>> {
    let known: HashSet<&str> = chains
        .iter()
        .map(|it| it.workspace.workspace_id.as_str())
        .collect();
    let mut below: HashMap<&str, Vec<&Chain>> = HashMap::new();
    let mut open: Vec<(&Chain, usize, Option<usize>)> = Vec::new();
    for chain in chains {
        match chain
            .workspace
            .parent
            .as_deref()
            .filter(|it| known.contains(it))
        {
            Some(parent) => below.entry(parent).or_default().push(chain),
            None => open.push((chain, 0, None)),
        }
    }
    open.reverse();
    let mut rows = Vec::new();
    while let Some((chain, depth, above)) = open.pop() {
        let place = rows.len();
        rows.push(Row {
            chain,
            depth,
            above,
        });
        let children = below.remove(chain.workspace.workspace_id.as_str());
        for child in children.unwrap_or_default().into_iter().rev() {
            open.push((child, depth + 1, Some(place)));
        }
    }
    rows
}

/// The drawing.
pub(super) fn drawn(chains: &[Chain]) -> Markup {
    let rows = rows(chains);
    let deepest = rows.iter().map(|row| row.depth).max().unwrap_or(0);
    let longest = rows
        .iter()
        .map(|row| row.chain.checkpoints.len().min(MOST))
        .max()
        .unwrap_or(0);
    let named = rows
        .iter()
        .map(|row| row.chain.workspace.role.chars().count().min(NAME))
        .max()
        .unwrap_or(0);
    let start = deepest * INDENT + 70 + named * 9;
    let width = start + longest * STEP + 130;
    let height = rows.len() * ROW + 16;
    let told = format!("{} workspaces and their chains of work", rows.len());
    html! {
        div.graph tabindex="0" role="group" aria-label="Graph" {
            svg viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" aria-label=(told) {
                @for (place, row) in rows.iter().enumerate() { (one(place, row, start)) }
            }
        }
        p.faint { "Each dot is a piece of work: full where it is final, dotted where the agent is not sure of it." }
    }
}

fn one(place: usize, row: &Row<'_>, start: usize) -> Markup {
    let workspace = &row.chain.workspace;
    let (x, y) = (16 + row.depth * INDENT, place * ROW + ROW / 2 + 8);
    let records = &row.chain.checkpoints;
    let shown = records
        .get(records.len().saturating_sub(MOST)..)
        .unwrap_or_default();
    let end = start + shown.len().saturating_sub(1) * STEP;
    let stands = standing(&workspace.state);
    let name = safe::shorten(&safe::line(&workspace.role).text, NAME);
    html! {
        @if let Some(above) = row.above {
            @let top = above * ROW + ROW / 2 + 8;
            @let left = x - INDENT;
            path.branch d={ "M" (left) " " (top + 7) " V" (y - 8) " Q" (left) " " (y) " " (left + 8) " " (y) " H" (x - 7) } {}
        }
        circle class={ "place " (stands) } cx=(x) cy=(y) r="7" {}
        a href={ "#" (url(&workspace.workspace_id)) } {
            text.name x=(x + 14) y=(y + 5) { (name) }
        }
        @if !shown.is_empty() { path.chain d={ "M" (start) " " (y) " H" (end) } {} }
        @for (step, record) in shown.iter().enumerate() {
            circle class={ "record " (record.status) " sure-" (record.confidence) } cx=(start + step * STEP) cy=(y) r="6" {
                title { (safe::line(&record.intent).text) " (" (safe::line(&record.status).text) ", " (safe::line(&record.confidence).text) " confidence)" }
            }
        }
        text.state x=(end + 18) y=(y + 5) { (safe::line(stands).text)
            @if records.len() > shown.len() { " · " (records.len()) } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chain(id: &str, parent: Option<&str>, role: &str) -> Chain {
        serde_json::from_value(json!({
            "workspace": {
                "workspace_id": id, "run": "wsp_a", "parent": parent, "role": role, "directive": null,
                "state": "closed", "created": "2026-11-16T00:00:00Z"
            },
            "checkpoints": [{
                "id": "rec_1", "type": "artifact", "intent": "<b>\u{202e}", "status": "final",
                "confidence": "low", "timestamp": "2026-11-16T00:00:00Z"
            }]
        }))
        .unwrap()
    }

    #[test]
    fn su_08_workspaces_are_drawn_below_their_parents() {
        let chains = [
            chain("wsp_a", None, "lead"),
            chain("wsp_b", Some("wsp_a"), "one"),
            chain("wsp_c", Some("wsp_b"), "two"),
            chain("wsp_d", Some("wsp_a"), "three"),
        ];
        let rows = rows(&chains);
        let shape: Vec<(&str, usize, Option<usize>)> = rows
            .iter()
            .map(|row| (row.chain.workspace.role.as_str(), row.depth, row.above))
            .collect();
        let expected = [
            ("lead", 0, None),
            ("one", 1, Some(0)),
            ("two", 2, Some(1)),
            ("three", 1, Some(0)),
        ];
        assert_eq!(shape, expected);
        let shown = drawn(&chains).into_string();
        assert!(
            shown.contains("integrated") && shown.contains("sure-low"),
            "{shown}"
        );
        assert!(
            shown.contains("&lt;b&gt;\\u{202e}") && !shown.contains("<b>"),
            "{shown}"
        );
    }
}
