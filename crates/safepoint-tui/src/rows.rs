//! Pages made of rows: what is to be read, before anybody knows how wide the screen is.

use safepoint_model::text::Hazard;

use crate::told::Told;

/// Where facts begin, behind their names.
pub(crate) const LABEL: usize = 12;

/// How a row is meant. Never told by colour alone: words or signs beside it say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Plain text.
    Plain,
    /// Begins a section.
    Heading,
    /// Less important.
    Faint,
    /// Look here.
    Warning,
    /// A line that would be added.
    Added,
    /// A line that would be removed.
    Removed,
}

/// Where a long row may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Between words, if it can be.
    Words,
    /// Anywhere: every column counts.
    Anywhere,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What it is, in front of the text; empty where that was said in a row above.
    pub(crate) label: &'static str,
    pub(crate) indent: usize,
    pub(crate) tone: Tone,
    pub(crate) breaks: Break,
    pub(crate) text: String,
    /// Whether something in it was escaped.
    pub(crate) flagged: bool,
}

/// What is to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Row>,
    /// The row that ends the canonical form, if the whole form is on this page.
    pub(crate) form_end: Option<usize>,
    /// What was escaped anywhere on it, each once.
    pub(crate) hazards: Vec<Hazard>,
    /// Why nobody should say yes to it, if something is wrong with what we were given.
    pub(crate) fault: Option<String>,
}

impl Page {
    /// Begins a section.
    pub(crate) fn heading(&mut self, words: &str) {
        if !self.rows.is_empty() {
            self.blank();
        }
        self.push(0, Tone::Heading, Break::Words, Told::ours(words));
    }

    /// A row with nothing in it.
    pub(crate) fn blank(&mut self) {
        self.push(0, Tone::Plain, Break::Words, Told::default());
    }

    /// A sentence.
    pub(crate) fn sentence(&mut self, tone: Tone, told: Told) {
        self.push(0, tone, Break::Words, told);
    }

    /// A fact behind its name. Facts of the same name follow each other, and it is said once.
    pub(crate) fn fact(&mut self, label: &'static str, tone: Tone, breaks: Break, told: Told) {
        let said = self
            .rows
            .iter()
            .rev()
            .find(|row| !row.label.is_empty() || row.indent != LABEL)
            .is_some_and(|row| row.label == label);
        self.push(LABEL, tone, breaks, told);
        if let Some(row) = self.rows.last_mut().filter(|_| !said) {
            row.label = label;
        }
    }

    /// Something of which every character counts.
    pub(crate) fn exact(&mut self, indent: usize, told: Told) {
        self.push(indent, Tone::Plain, Break::Anywhere, told);
    }

    /// A row.
    pub(crate) fn push(&mut self, indent: usize, tone: Tone, breaks: Break, told: Told) {
        self.hazards.extend_from_slice(told.hazards());
        self.hazards.sort_unstable();
        self.hazards.dedup();
        self.rows.push(Row {
            label: "",
            indent,
            tone,
            breaks,
            text: told.text().to_owned(),
            flagged: !told.hazards().is_empty(),
        });
    }
}
