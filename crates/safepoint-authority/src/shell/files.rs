//! Deeds on files, and what comes with them: secrets, Safepoint's own places, devices.

use std::path::{Path, PathBuf};

use crate::deed::{Role, Touch, Where};

use super::actions::{self, CONTROL, SECRET, SYSTEM};
use super::guarded;
use super::place::{is_machine, is_stream};
use super::state::{Argument, State};
use super::walk::Walker;

impl Walker<'_> {
    /// A deed on files. Streams such as `/dev/null` are left out; with nothing left, so is it.
    pub(super) fn file(
        &mut self,
        action: &str,
        arguments: &[(Argument, Role)],
        because: &str,
        state: &State,
    ) {
        let mut touches = Vec::new();
        for (argument, role) in arguments {
            touches.extend(self.touches(argument, *role, state));
        }
        let before = touches.len();
        touches.retain(|touch| match &touch.place {
            Where::Exact(path) => !is_stream(path),
            _ => true,
        });
        for (argument, role) in arguments {
            self.watch(argument, *role, state);
        }
        if before > 0 && touches.is_empty() {
            return;
        }
        let machine = touches.iter().any(|touch| match &touch.place {
            Where::Exact(path) | Where::Below(path) => touch.role != Role::Read && is_machine(path),
            Where::Unknown(_) => false,
        });
        let action = if machine { SYSTEM } else { action };
        let mut deed = actions::deed(action, because.to_owned());
        deed.touches = touches;
        self.add(deed);
    }

    /// Files of which only the names, sizes and times are looked at: that shows no credential.
    pub(super) fn names_of(
        &mut self,
        action: &str,
        arguments: &[Argument],
        because: &str,
        state: &State,
    ) {
        let mut deed = actions::deed(action, because.to_owned());
        for argument in arguments {
            let touches = self.touches(argument, Role::Read, state);
            let known = |touch: &Touch| !matches!(touch.place, Where::Unknown(_));
            deed.touches.extend(touches.into_iter().filter(known));
        }
        self.add(deed);
    }

    /// A name or a pattern, in quotes, that a program looks for itself.
    pub(super) fn watch_name(&mut self, argument: &Argument, state: &State) {
        let text = argument.start();
        let sought = if text.contains(['*', '?', '[']) {
            let (directory, _) = text.split_once(['*', '?', '[']).unwrap_or_default();
            let directory = directory.rsplit_once('/').map_or("", |(before, _)| before);
            Argument::Pattern {
                directory: directory.to_owned(),
                text: text.to_owned(),
            }
        } else {
            Argument::Known(text.to_owned())
        };
        if text.starts_with('!') {
            return;
        }
        self.watch(&sought, Role::Read, state);
        // A program that searches finds hidden names as well.
        let name = text.rsplit('/').next().unwrap_or_default();
        if name.starts_with(['*', '?', '[']) && name.len() > 2 {
            let hidden = Argument::Pattern {
                directory: String::new(),
                text: format!(".{name}"),
            };
            self.watch(&hidden, Role::Read, state);
        }
    }

    /// A directory that is taken with all that is in it.
    pub(super) fn watch_tree(&mut self, argument: &Argument, state: &State) {
        if let Argument::Known(text) = argument {
            // A home holds credentials, and so does all that holds a home.
            // So does what holds the keys of operators.
            let mut kept = self
                .around
                .own
                .iter()
                .map(PathBuf::as_path)
                .collect::<Vec<_>>();
            let homes = self.homes();
            kept.extend(homes.iter().map(PathBuf::as_path));
            let holds = |place: &Where| match place {
                Where::Exact(path) => kept.iter().any(|kept| kept.starts_with(path)),
                _ => false,
            };
            if self.places(argument, state).iter().any(holds) {
                let why = format!("`{}` holds credentials", argument.shown());
                self.add(actions::deed(SECRET, why));
            }
            let inside = Argument::Known(format!("{}/x", text.trim_end_matches('/')));
            self.watch(&inside, Role::Read, state);
        }
    }

    /// Adds what touching a place means beyond the files themselves.
    pub(super) fn watch(&mut self, argument: &Argument, role: Role, state: &State) {
        let rules = guarded::rules();
        for place in self.places(argument, state) {
            let touch = Touch { place, role };
            let written = match argument {
                Argument::Pattern { text, .. } => Some(text.as_str()),
                _ => None,
            };
            if role == Role::Read {
                let is_secret = |home| rules.is_secret(&touch.place, written, home);
                let homes = self.homes();
                if homes.iter().any(|home| is_secret(Some(home)))
                    || homes.is_empty() && is_secret(None)
                {
                    let mut deed =
                        actions::deed(SECRET, format!("`{}` holds credentials", argument.shown()));
                    deed.touches.push(touch);
                    self.add(deed);
                }
            } else if role != Role::Execute && self.is_own(&touch, written) {
                let mut deed = actions::deed(
                    CONTROL,
                    format!("`{}` belongs to what guards this machine", argument.shown()),
                );
                deed.touches.push(touch);
                self.add(deed);
            }
        }
    }

    /// A file that is read, and that only the line's run will name, may be one that the line
    /// speaks of elsewhere: `echo .env | xargs cat`.
    pub(super) fn named_secrets(&mut self) {
        let unknown = self.out.deeds.iter().any(|deed| {
            deed.touches
                .iter()
                .any(|touch| touch.role == Role::Read && matches!(touch.place, Where::Unknown(_)))
        });
        if !unknown {
            return;
        }
        let state = State::new(self.around.directory);
        let mut spoken: Vec<String> = Vec::new();
        for command in &self.out.commands {
            for word in command.iter().skip(1).flatten() {
                let parts =
                    word.split(|next: char| next.is_whitespace() || "'\"|$^\\".contains(next));
                let tells = |part: &&str| part.len() > 3 || part.len() > 1 && part.starts_with('.');
                spoken.extend(parts.filter(tells).map(str::to_owned));
            }
        }
        for word in spoken {
            self.watch_name(&Argument::Known(word), &state);
        }
    }

    fn is_own(&self, touch: &Touch, written: Option<&str>) -> bool {
        // A pattern that begins with a name reaches only what begins so.
        let open = written.map(|text| {
            let mut parts = text.split('/');
            let open = parts.find(|part| part.contains(['*', '?', '[']));
            open.unwrap_or("*")
        });
        let reaches = |own: &Path, path: &Path| {
            let Ok(rest) = own.strip_prefix(path) else {
                return false;
            };
            let first = rest
                .components()
                .next()
                .and_then(|it| it.as_os_str().to_str());
            match (open, first) {
                (Some(open), Some(first)) if open != "*" => guarded::glob(open, first),
                _ => true,
            }
        };
        let within = |path: &Path, below: bool| {
            self.around.own.iter().any(|own| {
                path.starts_with(own) || (below || touch.role == Role::Delete) && reaches(own, path)
            })
        };
        let owned = match &touch.place {
            Where::Exact(path) => within(path, false),
            Where::Below(path) => within(path, true),
            Where::Unknown(_) => false,
        };
        owned || guarded::rules().is_control(touch, written)
    }
}
