//! Colours. They only repeat what words and signs say, and never tell red from green.

use ratatui::style::{Color, Modifier, Style};

use crate::rows::Tone;

/// The colours there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// The sixteen that every terminal has.
    Sixteen,
    /// None: bold, dim and reversed only.
    None,
}

impl Palette {
    /// How a row looks.
    pub(super) const fn tone(self, tone: Tone) -> Style {
        let style = match tone {
            Tone::Plain => Style::new(),
            Tone::Heading | Tone::Warning => Style::new().add_modifier(Modifier::BOLD),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
            Tone::Added => Style::new(),
            Tone::Removed => Style::new(),
        };
        match (self, tone) {
            (Self::None, _) | (_, Tone::Plain | Tone::Faint) => style,
            (_, Tone::Heading) => style.fg(Color::Cyan),
            (_, Tone::Warning) => style.fg(Color::Yellow),
            (_, Tone::Added) => style.fg(Color::Cyan),
            (_, Tone::Removed) => style.fg(Color::Yellow),
        }
    }

    /// The first and the last line.
    pub(super) const fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What is chosen.
    pub(super) const fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD.union(Modifier::REVERSED))
    }

    /// What matters most of a hold.
    pub(super) const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Rules and borders.
    pub(super) const fn rule(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}
