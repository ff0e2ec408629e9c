//! A workspace that was moved, or that is another one than was there before: who asks, and
//! what is said.

use std::io::{IsTerminal, Write};
use std::path::Path;

use safepoint_model::text;
use safepoint_state::{Access, Footing, State};

use super::Context;
use crate::console::Mode;
use crate::error::CliError;

/// The command that goes on with the history of a directory.
pub(crate) fn adopting(from: &Path) -> String {
    let from = from.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    match from.chars().all(is_plain) {
        true => format!("safepoint init --moved-from {from}"),
        false => {
            let quoted = from.replace('\'', r"'\''");
            format!("safepoint init --moved-from '{quoted}'")
        }
    }
}

impl Context {
    /// Finds out whether the workspace is the directory that its path stands for in the store,
    /// and asks or says so where it is not. What only reads shows the history that the
    /// directory would have; what writes begins a history of its own where nobody says more.
    pub(super) fn settle_footing(&mut self, state: &mut State) -> Result<(), CliError> {
        if self.keeps_footing {
            return Ok(());
        }
        let Ok(root) = self.workspace_root() else {
            return Ok(());
        };
        let mut footing = state.footing(&root)?;
        if let Footing::Moved { from, other_here } = &footing
            && self.can_ask()
        {
            if self.confirm_move(from, &root)? {
                state.adopt(from, &root)?;
                self.control()?.move_sessions(from, &root)?;
                return Ok(());
            }
            state.refuse_move(from, &root)?;
            let later = adopting(from);
            self.console.say(&format!(
                "it has a history of its own from now on; `{later}` goes on with the other one later"
            ));
            footing = match other_here {
                true => Footing::Another,
                false => Footing::Same,
            };
        }
        self.unadopted = None;
        match &footing {
            Footing::Same => return Ok(()),
            Footing::Anew => {}
            Footing::Another if self.access == Access::Writing => state.part_from_former(&root)?,
            Footing::Moved { from, other_here } if self.access == Access::Writing => {
                if *other_here {
                    state.part_from_former(&root)?;
                }
                self.unadopted = Some(from.clone());
            }
            Footing::Another | Footing::Moved { .. } => state.suppose(&root, &footing)?,
        }
        self.tell_footing(&root, &footing);
        Ok(())
    }

    /// Refuses to make the directory anew that was moved here.
    pub(super) fn refuse_unadopted(&self, root: &Path) -> Result<(), CliError> {
        match &self.unadopted {
            Some(from) if from == root => Err(CliError::Moved { from: from.clone() }),
            _ => Ok(()),
        }
    }

    /// Whether a person is there to be asked.
    fn can_ask(&self) -> bool {
        let is_person = !self.speaks_for_agent();
        let is_there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        is_person && (self.yes || is_there && self.console.mode == Mode::Text)
    }

    /// Asks whether a project was moved.
    fn confirm_move(&self, from: &Path, root: &Path) -> Result<bool, CliError> {
        if self.yes {
            return Ok(true);
        }
        let shown = |path: &Path| text::line(&path.display().to_string()).text;
        let project = root.file_name().unwrap_or(root.as_os_str());
        let mut talk = std::io::stderr();
        write!(
            talk,
            "This looks like `{}`, moved from `{}`. Go on with its history? [Y/n] ",
            shown(Path::new(project)),
            shown(from),
        )?;
        talk.flush()?;
        let mut answer = String::new();
        // Who closes the terminal has not answered.
        if std::io::stdin().read_line(&mut answer)? == 0 {
            return Err(CliError::Invalid {
                message: "it was not answered whether the project was moved".to_owned(),
                suggestion: "answer with `y` or `n`",
            });
        }
        let answer = answer.trim();
        Ok(answer.is_empty()
            || ["y", "yes"]
                .iter()
                .any(|yes| answer.eq_ignore_ascii_case(yes)))
    }

    fn tell_footing(&mut self, root: &Path, footing: &Footing) {
        // What a client reads from its hook is the hook's answer alone.
        if self.agent.is_some() || self.told_footing.as_deref() == Some(root) {
            return;
        }
        self.told_footing = Some(root.to_owned());
        let place = root.display();
        let told = match footing {
            Footing::Same => return,
            Footing::Anew => format!(
                "`{place}` was deleted and made anew, and is empty: what is known of it is of the directory before"
            ),
            Footing::Another => format!(
                "`{place}` is another directory than the one that was there before, and has no history yet; if it is the same project, `{}` goes on with the history",
                adopting(root)
            ),
            Footing::Moved { from, .. } => format!(
                "`{place}` looks like a project that was moved here from `{}`: `{}` goes on with its history",
                from.display(),
                adopting(from)
            ),
        };
        self.console.say(&told);
    }
}
