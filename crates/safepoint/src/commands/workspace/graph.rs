//! Trees of workspaces and chains of checkpoints, drawn.

use std::collections::BTreeMap;

use safepoint_model::text;
use safepoint_progress::record::Record;

use super::document::{WorkspaceDocument, confidence_word, moment, status_word};
use crate::console::{FAINT, STRONG};

/// A chain goes so far to the right, and then straight down.
const WIDEST_STAIR: usize = 8;

/// Workspaces as the trees that they are.
pub(super) struct Tree<'a> {
    roots: Vec<&'a WorkspaceDocument>,
    below: BTreeMap<&'a str, Vec<&'a WorkspaceDocument>>,
}

/// What stands before the line of a workspace, and before what belongs to it.
pub(super) struct Rails {
    pub(super) at: String,
    pub(super) under: String,
}

impl<'a> Tree<'a> {
    /// The trees of these. One whose parent is not among them is a root here.
    pub(super) fn of(workspaces: &[&'a WorkspaceDocument]) -> Self {
        let mut tree = Self {
            roots: Vec::new(),
            below: BTreeMap::new(),
        };
        let known: Vec<&str> = workspaces
            .iter()
            .map(|it| it.workspace_id.as_str())
            .collect();
        for workspace in workspaces.iter().copied() {
            match workspace.parent.as_deref() {
                Some(parent) if known.contains(&parent) => {
                    tree.below.entry(parent).or_default().push(workspace);
                }
                _ => tree.roots.push(workspace),
            }
        }
        tree
    }

    /// Every workspace, each after its parent, with its rails.
    pub(super) fn lines(&self) -> Vec<(&'a WorkspaceDocument, Rails)> {
        let mut lines = Vec::new();
        // A stack, since a tree may be as deep as anybody likes.
        let mut open: Vec<(&WorkspaceDocument, String, String)> = Vec::new();
        for root in self.roots.iter().rev() {
            open.push((root, String::new(), String::new()));
        }
        while let Some((workspace, at, before)) = open.pop() {
            let below = self.below.get(workspace.workspace_id.as_str());
            let below = below.map(Vec::as_slice).unwrap_or_default();
            for (place, child) in below.iter().enumerate().rev() {
                let (fork, rail) = match place + 1 == below.len() {
                    true => ("└── ", "    "),
                    false => ("├── ", "│   "),
                };
                open.push((child, format!("{before}{fork}"), format!("{before}{rail}")));
            }
            let under = match below.is_empty() {
                true => format!("{before}    "),
                false => format!("{before}│   "),
            };
            lines.push((workspace, Rails { at, under }));
        }
        lines
    }
}

/// A chain as a stair: each checkpoint below the one that it was built upon.
pub(super) fn stair(records: &[Record], rail: &str, width: usize) -> String {
    let mut shown = String::new();
    for (depth, record) in records.iter().enumerate() {
        let steps = depth.min(WIDEST_STAIR);
        let fork = match steps {
            0 => String::new(),
            steps => format!("{}└── ", " ".repeat(2 + (steps - 1) * 6)),
        };
        shown.push_str(&format!("{FAINT}{rail}{fork}{FAINT:#}{}\n", line(record)));
        let indent = format!("{rail}{}", " ".repeat(2 + steps * 6));
        let room = width.saturating_sub(indent.chars().count()).clamp(30, 100);
        let intent = text::shorten(&text::line(&record.intent).text, room);
        shown.push_str(&format!("{FAINT}{indent}{FAINT:#}{intent}\n"));
    }
    shown
}

/// One checkpoint on a line, without its intent.
fn line(record: &Record) -> String {
    let kind = match record.kind.as_str() {
        "artifact" => String::new(),
        other => format!("{}, ", text::line(other).text),
    };
    format!(
        "{STRONG}{}{STRONG:#} ({kind}{}, confidence: {})  {FAINT}{}{FAINT:#}",
        record.id,
        status_word(record.status),
        confidence_word(record.confidence),
        moment(&record.timestamp.to_string()),
    )
}

/// A chain as a list: one line each.
pub(super) fn rows(records: &[Record], width: usize) -> String {
    let mut shown = String::new();
    for record in records {
        let status = format!("{:<11}", record.status.as_str());
        let confidence = format!("{:<6}", record.confidence.as_str());
        let room = width.saturating_sub(76).clamp(30, 100);
        shown.push_str(&format!(
            "{STRONG}{}{STRONG:#}  {FAINT}{}{FAINT:#}  {status}  {confidence}  {}\n",
            record.id,
            moment(&record.timestamp.to_string()),
            text::shorten(&text::line(&record.intent).text, room),
        ));
    }
    shown
}
