//! What the shell does itself: its built-in commands.
//!
//! Those that only look, print or compute are nothing; those that run text as
//! code are opaque; the rest are followed.

use super::actions::{self, EXEC, KILL, SECRET};
use super::parse::is_name;
use super::state::{Argument, State, Value};
use super::walk::{Input, Walker};

const BUILTINS: &str = " . : [ alias autoload bg bind bindkey break builtin caller cd chdir command compgen compinit \
complete compopt continue declare dirs disable disown echo emulate enable eval exec exit export false fc \
fg float functions getopts hash help history integer jobs kill let limit local logout mapfile popd print printf \
pushd pwd read readarray readonly rehash return sched set setopt shift shopt source suspend test times trap \
true type typeset ulimit umask unalias unfunction unhash unset unsetopt vared wait whence where which zcompile \
zle zmodload zparseopts zstyle zformat ";

/// Whether the shell does this itself.
pub(super) fn is_builtin(name: &str) -> bool {
    !name.contains(' ') && BUILTINS.contains(&format!(" {name} "))
}

impl Walker<'_> {
    /// Follows a built-in command. Tells whether it was one.
    pub(super) fn builtin(
        &mut self,
        name: &str,
        arguments: &[Argument],
        input: &Input,
        state: &mut State,
    ) -> bool {
        match name {
            ":" | "true" | "false" | "echo" | "pwd" | "test" | "[" | "type" | "which"
            | "whence" | "where" | "jobs" | "fg" | "bg" | "wait" | "times" | "help" | "dirs"
            | "caller" | "umask" | "ulimit" | "shift" | "disown" | "suspend" | "compgen"
            | "print" | "unalias" => {
                if name == "test"
                    || name == "["
                    || name == "wait"
                    || name == "compgen"
                    || name == "print"
                {
                    self.subscripts(arguments);
                }
                if name == "compgen" {
                    self.opaque("`compgen` can run code");
                }
            }
            "history" | "fc" => {
                let mut deed = actions::deed(SECRET, "the history may hold credentials".to_owned());
                if name == "fc" {
                    deed =
                        actions::deed(super::actions::OPAQUE, "`fc` runs earlier lines".to_owned());
                }
                self.add(deed);
            }
            "printf" => {
                if arguments.first().map(Argument::start) == Some("-v") {
                    self.names(name, arguments.get(1..2).unwrap_or_default(), state);
                }
            }
            // A `return` outside of a function goes on, in some shells.
            "break" | "continue" | "return" | "logout" => {}
            "exit" => state.ended = true,
            "cd" | "chdir" | "pushd" | "popd" => self.change_directory(name, arguments, state),
            "command" | "builtin" => {
                let looks = arguments
                    .first()
                    .and_then(Argument::known)
                    .is_some_and(|first| first.starts_with('-') && first.contains(['v', 'V']));
                if looks {
                    return true;
                }
                let mut rest = arguments;
                while let Some((Argument::Known(first), after)) = rest.split_first()
                    && (first == "-p" || first == "--")
                {
                    rest = after;
                }
                if !rest.is_empty() {
                    self.run_plain(rest.to_vec(), input, state);
                }
            }
            "exec" => {
                let options: &[&str] = &["-c", "-l", "-a"];
                match arguments.first().map(Argument::start) {
                    None => {}
                    Some(first) if options.contains(&first) => self.opaque("`exec` with options"),
                    _ => self.run(arguments.to_vec(), input, state),
                }
                state.ended = !arguments.is_empty();
            }
            "source" | "." => {
                let mut deed = actions::deed(EXEC, format!("`{name}` runs a script"));
                if let Some(file) = arguments.first() {
                    deed.touches = self.touches(file, crate::Role::Execute, state);
                    self.watch(file, crate::Role::Read, state);
                    if file.known().is_none() || file.start().starts_with("/dev/") {
                        self.opaque("a script that is not known is run");
                    }
                }
                self.add(deed);
                // It runs in this shell: whatever was known may have changed, except for
                // the usual way to enter a Python environment.
                let usual = arguments
                    .first()
                    .is_some_and(|file| file.start().ends_with("/bin/activate"));
                if !usual {
                    for value in state.variables.values_mut() {
                        *value = Value::Unknown;
                    }
                }
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "integer" | "float" => {
                self.declare(name, arguments, state);
            }
            "unset" | "read" | "getopts" | "vared" => {
                self.names(name, arguments, state);
            }
            "mapfile" | "readarray" => {
                if arguments
                    .iter()
                    .any(|argument| argument.start().starts_with("-C"))
                    || arguments.iter().any(Argument::is_dynamic)
                {
                    self.opaque(format!("`{name}` can run code"));
                }
                self.names(name, arguments, state);
            }
            "set" => {
                if arguments.is_empty() {
                    self.add(actions::deed(
                        SECRET,
                        "`set` shows every variable".to_owned(),
                    ));
                } else if arguments.iter().any(|argument| {
                    argument.known().is_none_or(|text| {
                        text == "-k"
                            || text == "-o" && arguments.len() == 1
                            || text.starts_with("-") && text.contains('k')
                    })
                }) {
                    self.opaque("`set` with options that are not known");
                }
                if arguments.first().and_then(Argument::known) == Some("--") {
                    state.arguments = arguments.get(1..).map(<[Argument]>::to_vec);
                } else if arguments
                    .first()
                    .is_some_and(|first| !first.start().starts_with(['-', '+']))
                {
                    state.arguments = Some(arguments.to_vec());
                }
            }
            "shopt" | "setopt" | "unsetopt" => {
                let harmless = arguments.iter().all(|argument| {
                    argument.known().is_some_and(|text| {
                        text.starts_with('-')
                            || matches!(
                                text,
                                "nullglob"
                                    | "dotglob"
                                    | "globstar"
                                    | "failglob"
                                    | "nocaseglob"
                                    | "pipefail"
                                    | "inherit_errexit"
                                    | "null_glob"
                                    | "no_nomatch"
                                    | "nonomatch"
                                    | "lastpipe"
                                    | "errexit"
                                    | "nounset"
                            )
                    })
                });
                if !harmless {
                    self.opaque(format!("`{name}` changes how the line is read"));
                }
            }
            "let" => {
                if arguments.iter().any(|argument| {
                    argument
                        .known()
                        .is_none_or(|text| text.contains(['[', '$', '`']))
                }) {
                    self.opaque("`let` evaluates text");
                }
                for argument in arguments {
                    if let Some((variable, _)) = argument.start().split_once('=') {
                        let variable = variable.trim_end_matches(['+', '-', '*', '/']).to_owned();
                        super::variables::within(self, &variable, None, state);
                        self.set(&variable, Value::Unknown, state);
                    }
                }
            }
            "trap" => self.trap(arguments, state),
            "hash"
                if arguments
                    .iter()
                    .all(|argument| argument.known() == Some("-r")) => {}
            "kill" => {
                if arguments.first().and_then(Argument::known) != Some("-l") {
                    self.add(actions::deed(KILL, "`kill` sends signals".to_owned()));
                }
            }
            "eval" => self.opaque("`eval` runs text as code"),
            _ if is_builtin(name) => self.opaque(format!("`{name}` changes how the line is read")),
            _ => return false,
        }
        true
    }

    /// Names of variables that a command assigns. A subscript in one is evaluated.
    fn names(&mut self, name: &str, arguments: &[Argument], state: &mut State) {
        for argument in arguments {
            let Some(text) = argument.known() else {
                self.opaque("a variable that is not known is assigned");
                continue;
            };
            if is_name(text) {
                super::variables::within(self, text, None, state);
                let value = match (name, text) {
                    ("unset", super::home::NAME) => super::home::of_unset(self.around),
                    _ => Value::Unknown,
                };
                self.set(text, value, state);
            } else if text.contains(['[', '$', '`']) {
                self.opaque("a variable's name is evaluated");
            }
        }
    }

    /// Subscripts that `test -v` and others evaluate.
    fn subscripts(&mut self, arguments: &[Argument]) {
        let mut evaluates = false;
        for argument in arguments {
            let text = argument.start();
            if evaluates && argument.known().is_none_or(|text| text.contains('[')) {
                self.opaque("a variable's name is evaluated");
            }
            evaluates = matches!(text, "-v" | "-R" | "-p");
        }
    }

    fn declare(&mut self, name: &str, arguments: &[Argument], state: &mut State) {
        let mut shows = arguments.is_empty();
        for argument in arguments {
            let text = argument.start();
            if text.starts_with(['-', '+']) {
                if text.contains(['f', 'n', 'i', 'F']) || argument.known().is_none() {
                    self.opaque(format!("`{name} {text}` changes what names mean"));
                }
                shows |= text.contains('p');
                continue;
            }
            let (variable, value) = match text.split_once('=') {
                Some((variable, value)) => (variable.trim_end_matches('+'), Some(value)),
                None => (text, None),
            };
            if !is_name(variable) {
                self.opaque("a variable's name is evaluated");
                continue;
            }
            let known = value.filter(|_| argument.known().is_some());
            super::variables::within(self, variable, known, state);
            if let Some(value) = value {
                let whole = if argument.known().is_some() {
                    Value::One(vec![Argument::Known(value.to_owned())])
                } else {
                    Value::Unknown
                };
                self.set(variable, whole, state);
            }
            if name == "export" {
                state.exported.insert(variable.to_owned());
            }
        }
        if shows && name != "local" {
            self.add(actions::deed(
                SECRET,
                format!("`{name}` shows every variable"),
            ));
        }
    }

    fn trap(&mut self, arguments: &[Argument], state: &mut State) {
        match arguments.first() {
            None => {}
            Some(Argument::Known(text)) if text.starts_with('-') || text.is_empty() => {}
            Some(Argument::Known(text)) if arguments.len() > 1 => {
                let text = text.clone();
                let mut aside = state.clone();
                self.nested(&text, &mut aside, &Input::Inherited);
            }
            Some(Argument::Known(_)) => {}
            Some(_) => self.opaque("`trap` runs text as code"),
        }
    }

    /// Follows a line within the line.
    pub(super) fn nested(&mut self, text: &str, state: &mut State, input: &Input) {
        self.depth += 1;
        if self.depth > super::parse::DEPTH {
            self.opaque("it nests too deeply");
        } else {
            self.text(text, state, input);
        }
        self.depth -= 1;
    }

    fn change_directory(&mut self, name: &str, arguments: &[Argument], state: &mut State) {
        let before = state.directories.clone();
        let operand = arguments
            .iter()
            .find(|argument| !matches!(argument.known(), Some("-L" | "-P" | "-e" | "--" | "-q")));
        let target = match (name, operand) {
            ("popd", _) => None,
            ("pushd", None) => None,
            (_, None) => self.home_target(state),
            (_, Some(argument)) if argument.start().starts_with(['-', '+']) => None,
            (_, Some(argument)) => Some(argument.clone()),
        };
        state.failed = before;
        state.directories = target.and_then(|target| {
            // One of the directories that a pattern matches: as deep as the pattern is.
            let target = match target {
                Argument::Pattern { text, .. } if !text.contains("**") => Argument::Known(text),
                other => other,
            };
            let mut directories = Vec::new();
            for place in self.places(&target, state) {
                match place {
                    crate::Where::Exact(path) => directories.push(path),
                    _ => return None,
                }
            }
            Some(directories)
        });
        // A plain relative name may be found through `CDPATH`, which is then in the list of
        // variables that choose code.
        if state.directories.as_ref().is_some_and(Vec::is_empty) {
            state.directories = None;
        }
    }
}
