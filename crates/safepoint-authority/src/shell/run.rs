//! One command: which program it is, and what the table says of it.

use crate::deed::{Program, Role};

use super::actions::{self, CHMOD, DELETE, EXEC, MOVE, READ, WRITE};
use super::options::{self, Parsed};
use super::state::{Argument, State};
use super::table::{self, Entry, Operands};
use super::walk::{Input, Walker};

/// Programs that write to files what they are fed.
const FED: [&str; 2] = ["tee", "sponge"];

/// A program that is called, with all that is known of the call.
pub(super) struct Call<'c> {
    pub(super) name: &'c str,
    pub(super) entry: &'c Entry,
    pub(super) arguments: &'c [Argument],
    pub(super) input: &'c Input,
}

impl Walker<'_> {
    /// Follows a command with all its words.
    pub(super) fn run(&mut self, words: Vec<Argument>, input: &Input, state: &mut State) {
        let shown: Vec<Option<String>> = words
            .iter()
            .map(|word| word.known().map(str::to_owned))
            .collect();
        if !self.out.commands.contains(&shown) {
            self.out.commands.push(shown);
        }
        let Some((first, arguments)) = words.split_first() else {
            return;
        };
        let Some(name) = first.known() else {
            self.opaque("the program is chosen when it runs");
            return;
        };
        if let Some(body) = state.functions.get(name).cloned() {
            self.depth += 1;
            if self.depth > super::parse::DEPTH {
                self.opaque("it nests too deeply");
            } else {
                let before = state.arguments.replace(arguments.to_vec());
                self.function_body(&body, state, input);
                state.arguments = before;
            }
            self.depth -= 1;
            return;
        }
        if self.builtin(name, arguments, input, state) {
            return;
        }
        self.external(name, arguments, input, state);
    }

    /// As `command` does: no functions.
    pub(super) fn run_plain(&mut self, words: Vec<Argument>, input: &Input, state: &mut State) {
        let functions = std::mem::take(&mut state.functions);
        self.run(words, input, state);
        state.functions = functions;
    }

    /// As a program that starts another does: neither functions nor built-in commands.
    pub(super) fn start(&mut self, words: &[Argument], input: &Input, state: &mut State) {
        self.depth += 1;
        if self.depth > super::parse::DEPTH {
            self.opaque("it nests too deeply");
            self.depth -= 1;
            return;
        }
        let shown = words
            .iter()
            .map(|word| word.known().map(str::to_owned))
            .collect();
        if !self.out.commands.contains(&shown) {
            self.out.commands.push(shown);
        }
        match words.split_first() {
            None => {}
            Some((Argument::Known(name), arguments)) => {
                self.external(name, arguments, input, state);
            }
            Some(_) => self.opaque("the program is chosen when it runs"),
        }
        self.depth -= 1;
    }

    pub(super) fn find(&self, name: &str, state: &State) -> Program {
        let directory = state
            .directories
            .as_ref()
            .and_then(|directories| directories.first())
            .map_or(self.around.directory, |directory| directory.as_path());
        self.around.programs.find(name, directory)
    }

    /// Follows a program that is not part of the shell.
    pub(super) fn external(
        &mut self,
        name: &str,
        arguments: &[Argument],
        input: &Input,
        state: &mut State,
    ) {
        if name.is_empty() || name.starts_with('=') || name.starts_with('-') {
            self.opaque("the program is chosen when it runs");
            return;
        }
        let bare = !name.contains('/');
        if bare && state.path_changed {
            self.opaque(format!("`PATH` changed: `{name}` may be any program"));
        }
        let program = self.find(name, state);
        let judged = self.judged(name, &program, state);
        if judged.safepoint {
            let known = match &program {
                Program::System(_) => true,
                Program::Other(path) => self.around.programs.is_own(path),
                Program::Missing => false,
            };
            super::safepoint::follow(self, arguments, known, state);
            return;
        }
        if judged.anything {
            let before = self.out.deeds.len();
            let mut deed = actions::deed(EXEC, format!("`{name}` is run"));
            if let Program::System(path) | Program::Other(path) = &program {
                deed.touches.push(crate::Touch {
                    place: crate::Where::Exact(path.clone()),
                    role: Role::Execute,
                });
            }
            self.add(deed);
            if judged.entries.is_empty() {
                self.suspicious(arguments, state);
            }
            self.elsewhere(before, &[], state);
            if judged.entries.is_empty() && !matches!(program, Program::Other(_)) {
                self.perhaps_starts(arguments, input, state);
            }
        }
        for (called, entry) in &judged.entries {
            let call = Call {
                name: called,
                entry,
                arguments,
                input,
            };
            self.known(&call, state);
        }
    }

    /// Follows a program that is in the table, and what its words carry.
    fn known(&mut self, call: &Call<'_>, state: &mut State) {
        let (entry, arguments) = (call.entry, call.arguments);
        let before = self.out.deeds.len();
        self.call(call, state);
        self.elsewhere(before, &directories_told(arguments), state);
        // These look at addresses themselves.
        let looks = matches!(
            entry.special.as_deref(),
            Some("curl" | "wget" | "httpie" | "lookup")
        );
        let carries = arguments.iter().any(|argument| {
            argument.is_dynamic()
                && !looks
                && ["http://", "https://", "ftp://", "ssh://", "git://"]
                    .iter()
                    .any(|scheme| argument.start().contains(scheme))
        });
        if carries {
            self.add(actions::deed(
                super::actions::SEND,
                format!(
                    "`{}` is given an address that can carry anything",
                    call.name
                ),
            ));
        }
    }

    /// A program that nobody knows may start another that is named in its words.
    fn perhaps_starts(&mut self, arguments: &[Argument], input: &Input, state: &mut State) {
        let place = arguments.iter().take(8).position(|argument| {
            argument.known().is_some_and(|text| {
                let base = text.rsplit('/').next().unwrap_or_default();
                !text.starts_with('-')
                    && table::find(base)
                        .is_some_and(|entry| entry.does.first().is_none_or(|does| does != READ))
            })
        });
        if let Some(words) = place.and_then(|place| arguments.get(place..)) {
            self.start(words, input, state);
        }
    }

    /// What a checkpoint of the workspace would take back, done in another directory, is
    /// something written there.
    pub(super) fn elsewhere(&mut self, before: usize, told: &[Argument], state: &State) {
        let mut outside: Vec<crate::Where> = match &state.directories {
            None => vec![crate::Where::Unknown("the directory it runs in".to_owned())],
            Some(directories) => directories
                .iter()
                .filter(|directory| !directory.starts_with(self.around.directory))
                .map(|directory| crate::Where::Below(directory.clone()))
                .collect(),
        };
        for argument in told {
            for place in self.places(argument, state) {
                match place {
                    crate::Where::Exact(path) if !path.starts_with(self.around.directory) => {
                        outside.push(crate::Where::Below(path));
                    }
                    crate::Where::Exact(_) => {}
                    other => outside.push(other),
                }
            }
        }
        if outside.is_empty() {
            return;
        }
        for deed in self.out.deeds.iter_mut().skip(before) {
            if !matches!(deed.undo, crate::Undo::Workspace | crate::Undo::Partly(_)) {
                continue;
            }
            for place in &outside {
                let touch = crate::Touch {
                    place: place.clone(),
                    role: Role::Write,
                };
                if !deed.touches.contains(&touch) {
                    deed.touches.push(touch);
                }
            }
        }
    }

    /// What a program that nobody knows is told to touch of what guards an agent.
    fn suspicious(&mut self, arguments: &[Argument], state: &State) {
        for argument in arguments {
            if argument.known().is_some() && !argument.start().starts_with('-') {
                self.watch(argument, Role::Read, state);
            }
        }
    }

    /// Follows a program that is in the table.
    pub(super) fn call(&mut self, call: &Call<'_>, state: &mut State) {
        let entry = call.entry;
        if let [only] = call.arguments
            && matches!(only.known(), Some("--help" | "--version" | "-V"))
            && entry.special.as_deref() != Some("shell")
        {
            self.add(actions::deed(
                READ,
                format!("`{}` tells about itself", call.name),
            ));
            return;
        }
        if let Some(special) = &entry.special {
            super::special::follow(self, special, call, state);
            return;
        }
        if !entry.sub.is_empty() {
            self.subcommand(call, state);
            return;
        }
        if let Some(skipped) = entry.wraps {
            let parsed = options::parse(call.arguments, entry, true);
            self.strange_options(call, &parsed);
            super::tools::named_by_options(self, call, &parsed, state);
            let before = call.entry.does.clone();
            for action in before {
                self.add(actions::deed(&action, because(call)));
            }
            match parsed.operands.get(skipped..) {
                Some([]) | None => {}
                Some(words) => self.start(words, call.input, state),
            }
            return;
        }
        self.plain(call, state);
    }

    /// A program whose arguments mean what the table says.
    pub(super) fn plain(&mut self, call: &Call<'_>, state: &mut State) {
        let entry = call.entry;
        let parsed = options::parse(call.arguments, entry, false);
        self.strange_options(call, &parsed);
        let mut does = entry.does.clone();
        for (names, actions) in &entry.with {
            let given = parsed
                .options
                .iter()
                .any(|(option, _)| names.iter().any(|name| options::same(option, name)));
            if !given {
                continue;
            }
            match actions.strip_prefix('+') {
                Some(more) => does.extend(more.split_ascii_whitespace().map(str::to_owned)),
                None => {
                    does = actions
                        .split_ascii_whitespace()
                        .map(str::to_owned)
                        .collect()
                }
            }
        }
        // A file that is given nothing is emptied.
        let is_fed_nothing = *call.input == Input::Text(Some(String::new()));
        if is_fed_nothing && FED.contains(&call.name) && !parsed.has(&["-a", "--append"]) {
            does = vec![DELETE.to_owned()];
        }
        self.perform(call, &does, &parsed, state);
    }

    /// Adds the deeds of a call.
    pub(super) fn perform(
        &mut self,
        call: &Call<'_>,
        does: &[String],
        parsed: &Parsed,
        state: &mut State,
    ) {
        let entry = call.entry;
        let because = because(call);
        for argument in parsed.values(&strings(&entry.reads)) {
            self.file(READ, &[(argument.clone(), Role::Read)], &because, state);
        }
        for argument in parsed.values(&strings(&entry.writes)) {
            self.file(WRITE, &[(argument.clone(), Role::Write)], &because, state);
        }
        // Only where all operands are addresses is this machine one that it talks to: a word
        // that looks like one proves nothing elsewhere.
        let mut hosts = std::collections::BTreeSet::new();
        if entry.address {
            hosts.extend(parsed.operands.iter().map(super::net::machine));
        } else {
            let named = parsed.operands.iter().map(Argument::start);
            let far = |host: &String| !super::net::is_local(host);
            hosts.extend(named.filter_map(super::net::host).filter(far));
        }
        for action in does {
            let operands = match (entry.operands, action.as_str()) {
                (Operands::Usual, READ) => Operands::Read,
                (Operands::Usual, WRITE) => Operands::Write,
                (Operands::Usual, DELETE) => Operands::Delete,
                (Operands::Usual, CHMOD) => Operands::Metadata,
                (Operands::Usual, MOVE) => Operands::Move,
                (Operands::Names, WRITE) => Operands::None,
                (other, READ | WRITE | DELETE | CHMOD | MOVE) => other,
                _ => Operands::None,
            };
            match operands {
                Operands::None | Operands::Usual if action == WRITE => {
                    // Somewhere here, by a name that the line does not tell.
                    let here = Argument::Pattern {
                        directory: String::new(),
                        text: "*".to_owned(),
                    };
                    self.file(action, &[(here, Role::Write)], &because, state);
                }
                Operands::None | Operands::Usual => {
                    let mut deed = actions::deed(action, because.clone());
                    if deed.effects.contains(&crate::SideEffect::Network) {
                        deed.hosts.clone_from(&hosts);
                    }
                    if let Some(outside) = &entry.outside {
                        deed.undo = crate::Undo::Partly(outside.clone());
                    }
                    if let Some(why) = &entry.never {
                        deed.undo = crate::Undo::Never(why.clone());
                    }
                    self.add(deed);
                    if action == actions::INSTALL && parsed.operands.iter().any(is_asked) {
                        let why =
                            format!("`{}` asks for a name that can carry anything", call.name);
                        self.add(actions::deed(actions::SEND, why));
                    }
                }
                other => self.operands(action, other, &parsed.operands, &because, state),
            }
        }
    }

    fn operands(
        &mut self,
        action: &str,
        kind: Operands,
        operands: &[Argument],
        because: &str,
        state: &State,
    ) {
        let every = |list: &[Argument], role: Role| -> Vec<(Argument, Role)> {
            list.iter().map(|operand| (operand.clone(), role)).collect()
        };
        match kind {
            Operands::Read => self.file(action, &every(operands, Role::Read), because, state),
            Operands::Names => self.names_of(action, operands, because, state),
            Operands::Changed => {
                self.file(action, &every(operands, Role::Metadata), because, state);
            }
            Operands::Write => self.file(action, &every(operands, Role::Write), because, state),
            Operands::Delete => self.file(action, &every(operands, Role::Delete), because, state),
            Operands::Metadata => {
                let rest = operands.get(1..).unwrap_or_default();
                self.file(action, &every(rest, Role::Metadata), because, state);
            }
            Operands::Pattern => {
                let rest = operands.get(1..).unwrap_or_default();
                self.file(READ, &every(rest, Role::Read), because, state);
            }
            Operands::Filter => {
                let first = operands.get(..1).unwrap_or_default();
                self.file(READ, &every(first, Role::Read), because, state);
                if let Some(second) = operands.get(1..2).filter(|second| !second.is_empty()) {
                    self.file(WRITE, &every(second, Role::Write), because, state);
                }
            }
            Operands::Archive => {
                let Some((first, rest)) = operands.split_first() else {
                    return;
                };
                if action == DELETE {
                    self.file(action, &every(rest, Role::Delete), because, state);
                    return;
                }
                for operand in rest {
                    self.watch_tree(operand, state);
                }
                self.file(READ, &every(rest, Role::Read), because, state);
                let archive = std::slice::from_ref(first);
                self.file(WRITE, &every(archive, Role::Write), because, state);
            }
            Operands::Copy | Operands::Move => {
                let Some((last, sources)) = operands.split_last() else {
                    return;
                };
                if kind == Operands::Copy {
                    self.file(READ, &every(sources, Role::Read), because, state);
                    self.file(
                        WRITE,
                        &every(std::slice::from_ref(last), Role::Write),
                        because,
                        state,
                    );
                } else {
                    let mut all = every(sources, Role::Delete);
                    all.push((last.clone(), Role::Write));
                    self.file(MOVE, &all, because, state);
                }
            }
            Operands::None | Operands::Usual => {}
        }
    }
}

/// Whether a word that is asked for elsewhere can carry what was read. Paths are not asked for.
fn is_asked(operand: &Argument) -> bool {
    operand.is_dynamic() && !operand.start().contains('/') && !operand.start().starts_with('.')
}

/// The directories that a program is told to work in.
fn directories_told(arguments: &[Argument]) -> Vec<Argument> {
    const OPTIONS: [&str; 8] = [
        "-C",
        "--directory",
        "--prefix",
        "--cwd",
        "--dir",
        "--manifest-path",
        "--target-dir",
        "--root",
    ];
    let mut told = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.start();
        if text == "--" {
            break;
        }
        if OPTIONS.contains(&text) && !argument.is_dynamic() {
            told.extend(rest.next().cloned());
        } else if let Some((name, value)) = text.split_once('=')
            && OPTIONS.contains(&name)
        {
            told.push(match argument {
                Argument::Known(_) => Argument::Known(value.to_owned()),
                other => other.clone(),
            });
        }
    }
    told
}

pub(super) fn strings(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

pub(super) fn because(call: &Call<'_>) -> String {
    match &call.entry.because {
        Some(why) => format!("`{}` {why}", call.name),
        None => format!("`{}`", call.name),
    }
}
