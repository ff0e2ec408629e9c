//! Follows a line: every command in it, with what is known where it stands.
//!
//! Each way a line can take is followed, and what is known where ways meet is
//! what they agree on. Loops are followed until nothing new is learned. The
//! work is bounded: past the bound the line is opaque.

use crate::deed::{Deed, Surroundings, Touch, Understanding, Where};

use super::actions::{self, OPAQUE};
use super::parse;
use super::state::{Argument, State, Value, tidy};
use super::syntax::{
    Assigned, Assignment, Command, Compound, Item, Joint, List, Pipeline, Simple, Word,
};
use super::tilde::TildeContext;

/// More commands than this are not followed.
const COMMANDS: usize = 200;

/// What a command reads from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Whatever the line reads from.
    Inherited,
    /// The output of the command before it.
    Pipe,
    /// A file.
    File,
    /// This text, as far as it is known.
    Text(Option<String>),
}

/// Follows a line.
pub(super) struct Walker<'a> {
    pub(super) around: &'a Surroundings<'a>,
    pub(super) out: Understanding,
    pub(super) depth: usize,
    pub(super) work: usize,
    pub(super) full: bool,
    /// Links that the line itself makes.
    pub(super) links: Vec<std::path::PathBuf>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(around: &'a Surroundings<'a>) -> Self {
        Self {
            around,
            out: Understanding::default(),
            depth: 0,
            work: 0,
            full: false,
            links: Vec::new(),
        }
    }

    /// Something that cannot be understood.
    pub(super) fn opaque(&mut self, because: impl Into<String>) {
        let because = safepoint_model::text::line(&because.into()).text;
        let said = self
            .out
            .deeds
            .iter()
            .any(|deed| deed.action == OPAQUE && deed.because == because);
        if !said {
            self.out.deeds.push(actions::deed(OPAQUE, because));
        }
    }

    /// Adds a deed. What was said before is not said twice.
    pub(super) fn add(&mut self, mut deed: Deed) {
        if deed
            .because
            .contains(|letter: char| !(' '..='~').contains(&letter))
        {
            deed.because = safepoint_model::text::line(&deed.because).text;
        }
        if !self.out.deeds.contains(&deed) {
            self.out.deeds.push(deed);
        }
    }

    /// Follows the text of a line.
    pub(super) fn text(&mut self, text: &str, state: &mut State, input: &Input) {
        if let Some(why) = super::guard::refuses(text) {
            self.opaque(why);
            return;
        }
        match parse::script(text, self.depth) {
            Ok((list, seen)) => {
                if seen.hidden && seen.arithmetic {
                    self.opaque("quoted code beside arithmetic, which would run it");
                }
                self.list_with(&list, state, input);
            }
            Err(why) => self.opaque(why),
        }
    }

    /// Follows the commands of a list, one after another.
    pub(super) fn list_with(&mut self, list: &List, state: &mut State, input: &Input) {
        for item in &list.0 {
            if self.full {
                return;
            }
            if item.background {
                let mut aside = state.clone();
                self.item(item, &mut aside, input);
            } else {
                self.item(item, state, input);
            }
        }
    }

    /// Follows pipelines that are tied together. What is known afterwards is what holds
    /// whether they succeed or fail.
    fn item(&mut self, item: &Item, state: &mut State, input: &Input) {
        self.pipeline(&item.first, state, input);
        if item.rest.is_empty() {
            state.afterwards();
            return;
        }
        let mut failed = state.after_failure();
        for (joint, pipeline) in &item.rest {
            match joint {
                Joint::And => {
                    state.failed.clone_from(&state.directories);
                    self.pipeline(pipeline, state, input);
                    failed.join(&state.after_failure());
                }
                Joint::Or => {
                    let mut other = failed;
                    other.failed.clone_from(&other.directories);
                    self.pipeline(pipeline, &mut other, input);
                    failed = other.after_failure();
                    state.join(&other);
                }
            }
        }
        state.join(&failed);
        state.failed.clone_from(&state.directories);
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: &mut State, input: &Input) {
        if let [only] = pipeline.0.as_slice() {
            self.command(only, state, input);
            return;
        }
        let mut piped = input.clone();
        for (index, command) in pipeline.0.iter().enumerate() {
            let mut aside = state.clone();
            let next = self.output_of(command, &aside);
            self.command(command, &mut aside, &piped);
            piped = next;
            // Some shells run the last one in place.
            if index + 1 == pipeline.0.len() {
                aside.ended = false;
                aside.afterwards();
                state.join(&aside);
                state.failed.clone_from(&state.directories);
            }
        }
    }

    /// What the command after it reads: nothing, if this one is known to print nothing.
    fn output_of(&self, command: &Command, state: &State) -> Input {
        let Command::Simple(simple) = command else {
            return Input::Pipe;
        };
        let ways = self.expander(state).command(&simple.words);
        let nothing = simple.redirects.is_empty() && ways.iter().all(|it| prints_nothing(it));
        match nothing && !ways.is_empty() {
            true => Input::Text(Some(String::new())),
            false => Input::Pipe,
        }
    }

    fn command(&mut self, command: &Command, state: &mut State, input: &Input) {
        self.work += 1;
        if self.work > COMMANDS * 8 || self.out.commands.len() > COMMANDS {
            self.full = true;
            self.opaque("more commands than are followed");
            return;
        }
        match command {
            Command::Simple(simple) => self.simple(simple, state, input),
            Command::Compound(compound, redirects) => {
                let mut input = input.clone();
                for redirect in redirects {
                    if let Some(new) = self.redirect(redirect, state, false) {
                        input = new;
                    }
                }
                // Text that is run inside of it nests as deeply as it does.
                self.depth += 1;
                self.compound(compound, state, &input);
                self.depth -= 1;
            }
            Command::Function { name, body } => {
                if super::builtin::is_builtin(name)
                    || super::table::find(name).is_some()
                    || matches!(
                        self.find(name, state),
                        crate::Program::System(_) | crate::Program::Other(_)
                    )
                {
                    self.opaque(format!("`{name}` is given another meaning"));
                }
                let mut aside = state.clone();
                aside.arguments = None;
                state.functions.insert(name.clone(), body.clone());
                self.command(body, &mut aside, &Input::Inherited);
            }
        }
    }

    pub(super) fn function_body(&mut self, body: &Command, state: &mut State, input: &Input) {
        self.command(body, state, input);
        state.ended = false;
    }

    fn compound(&mut self, compound: &Compound, state: &mut State, input: &Input) {
        match compound {
            Compound::Group(list) => self.list_with(list, state, input),
            Compound::Subshell(list) => {
                let mut aside = state.clone();
                self.list_with(list, &mut aside, input);
            }
            Compound::If {
                branches,
                otherwise,
            } => {
                let mut after: Option<State> = None;
                for (condition, then) in branches {
                    self.list_with(condition, state, input);
                    let mut taken = state.clone();
                    self.list_with(then, &mut taken, input);
                    meet(&mut after, taken);
                }
                if let Some(list) = otherwise {
                    self.list_with(list, state, input);
                }
                if let Some(after) = after {
                    state.join(&after);
                }
            }
            Compound::Loop { condition, body } => {
                self.repeat(state, |walker, state| {
                    walker.list_with(condition, state, input);
                    walker.list_with(body, state, input);
                });
            }
            Compound::ArithmeticFor { header, body } => {
                self.visit(header, state);
                self.arithmetic(&header.pieces, state);
                self.repeat(state, |walker, state| walker.list_with(body, state, input));
            }
            Compound::For { name, words, body } => {
                let values = match words {
                    Some(words) => {
                        let mut values = Vec::new();
                        for word in words {
                            self.visit(word, state);
                            values.extend(
                                self.expander(state)
                                    .words(word, TildeContext::Command)
                                    .into_iter()
                                    .flatten(),
                            );
                        }
                        let known = values.iter().all(|value| !value.is_dynamic());
                        if known && values.len() <= 24 {
                            Value::One(values)
                        } else {
                            Value::Unknown
                        }
                    }
                    None => Value::Unknown,
                };
                super::variables::within(self, name, None, state);
                self.set(name, values, state);
                self.repeat(state, |walker, state| walker.list_with(body, state, input));
            }
            Compound::Case { word, arms } => {
                self.visit(word, state);
                let mut after = None;
                for (patterns, list) in arms {
                    for pattern in patterns {
                        self.visit(pattern, state);
                    }
                    let mut taken = state.clone();
                    self.list_with(list, &mut taken, input);
                    // `;&` goes on with the next.
                    let mut next = state.clone();
                    next.join(&taken);
                    *state = next;
                    meet(&mut after, taken);
                }
                if let Some(after) = after {
                    state.join(&after);
                }
            }
            Compound::Arithmetic(word) => {
                self.visit(word, state);
                self.arithmetic(&word.pieces, state);
            }
            Compound::Test(words) => {
                for word in words {
                    self.visit(word, state);
                }
            }
        }
    }

    /// Follows a body until a further round teaches nothing new.
    fn repeat(&mut self, state: &mut State, mut body: impl FnMut(&mut Self, &mut State)) {
        for round in 0..4 {
            let mut after = state.clone();
            body(self, &mut after);
            after.ended = false;
            after.afterwards();
            let mut joined = state.clone();
            joined.join(&after);
            let settled = !joined.differs(state);
            *state = joined;
            if settled || self.full {
                return;
            }
            if round == 2 {
                state.directories = None;
                for value in state.variables.values_mut() {
                    *value = Value::Unknown;
                }
            }
        }
    }

    fn simple(&mut self, simple: &Simple, state: &mut State, input: &Input) {
        for word in &simple.words {
            self.visit(word, state);
        }
        for assignment in &simple.assignments {
            self.assignment_words(assignment, state);
        }
        let ways = self.expander(state).command(&simple.words);
        let nothing = ways.iter().all(|words| prints_nothing(words));
        let mut input = input.clone();
        // `exec > file` empties it, and what the shell prints from then on is written to it.
        let stays = nothing
            && ways
                .iter()
                .any(|words| !words.is_empty() && starts_nothing(words));
        for redirect in &simple.redirects {
            if stays {
                self.redirect(redirect, state, false);
            }
            if let Some(new) = self.redirect(redirect, state, nothing) {
                input = new;
            }
        }
        state.failed.clone_from(&state.directories);
        if ways.iter().all(Vec::is_empty) {
            for assignment in &simple.assignments {
                self.assign(assignment, state);
            }
            return;
        }
        for assignment in &simple.assignments {
            // `IFS= read`: how one line is cut into words, and no more.
            let cuts = assignment.name == "IFS"
                && simple.words.first().is_some_and(|word| word.raw == "read");
            if !cuts {
                let value = assigned(assignment).and_then(super::variables::literal);
                super::variables::weigh(self, &assignment.name, value.as_deref());
            }
        }
        let first = ways.iter().flatten().next();
        let first = first.and_then(Argument::known).map(str::to_owned);
        // The words were expanded before this takes effect.
        let home = self.begin_assignment(&simple.assignments, state);
        let before = state.clone();
        for (index, words) in ways.into_iter().enumerate() {
            if index == 0 {
                self.run(words, &input, state);
            } else {
                let mut other = before.clone();
                self.run(words, &input, &mut other);
                state.join(&other);
            }
        }
        if let Some(home) = home {
            super::home::end_assignment(home, first.as_deref(), state);
        }
    }

    /// Where a word points, from each directory the command may run in.
    pub(super) fn places(&self, argument: &Argument, state: &State) -> Vec<Where> {
        let mut places = super::place::places(argument, state.directories.as_deref());
        for place in &mut places {
            if let Where::Exact(path) | Where::Below(path) = place
                && self.links.iter().any(|link| path.starts_with(link))
                && *path != tidy(self.around.directory)
            {
                *place = Where::Unknown(argument.shown().to_owned());
            }
        }
        places
    }

    /// The touches of an argument.
    pub(super) fn touches(
        &self,
        argument: &Argument,
        role: crate::Role,
        state: &State,
    ) -> Vec<Touch> {
        let places = self.places(argument, state);
        // A link that is removed stays what it leads to. Behind a slash, or below it, it is what
        // it leads to that is touched: said as a change, since those are looked at through links.
        let slash = argument
            .known()
            .is_some_and(|text| text.len() > 1 && (text.ends_with('/') || text.ends_with("/.")));
        let through = places.iter().filter_map(|place| match place {
            Where::Exact(path) if slash => Some(path),
            Where::Below(path) if path != self.around.directory => Some(path),
            _ => None,
        });
        let mut touches: Vec<Touch> = Vec::new();
        if role == crate::Role::Delete {
            touches.extend(through.map(|path| Touch {
                place: Where::Exact(path.clone()),
                role: crate::Role::Write,
            }));
        }
        touches.extend(places.into_iter().map(|place| Touch { place, role }));
        touches
    }
}

/// Whether it is `exec` alone, whose redirections stay.
fn starts_nothing(words: &[Argument]) -> bool {
    matches!(words, [only] if only.known() == Some("exec"))
}

/// Whether a command prints nothing: what it is redirected to is emptied.
fn prints_nothing(words: &[Argument]) -> bool {
    match words {
        [] => true,
        [only] => matches!(only.known(), Some(":" | "true" | "exec")),
        [first, second] => matches!(
            (first.known(), second.known()),
            (Some("cat"), Some("/dev/null"))
                | (Some("printf"), Some(""))
                | (Some("echo"), Some("-n"))
        ),
        _ => false,
    }
}

fn assigned(assignment: &Assignment) -> Option<&Word> {
    match &assignment.value {
        Assigned::Scalar(word) => Some(word),
        Assigned::Array(_) => None,
    }
}

fn meet(after: &mut Option<State>, taken: State) {
    match after {
        Some(after) => after.join(&taken),
        None => *after = Some(taken),
    }
}

/// The program whose output a substitution is, when it is one plain command.
pub(super) fn prints(list: &List) -> Option<&str> {
    let [item] = list.0.as_slice() else {
        return None;
    };
    let ([Command::Simple(simple)], []) = (item.first.0.as_slice(), item.rest.as_slice()) else {
        return None;
    };
    if !simple.assignments.is_empty() {
        return None;
    }
    let (first, rest) = simple.words.split_first()?;
    let plain = rest.iter().all(|word| match first.raw.as_str() {
        "date" => {
            word.raw.trim_start_matches(['"', '\'']).starts_with('+')
                && word
                    .raw
                    .chars()
                    .all(|next| next.is_ascii_alphanumeric() || "%_:+-\"'".contains(next))
        }
        "id" => word.raw == "-u" || word.raw == "-g",
        "mktemp" => word.raw == "-d",
        _ => false,
    });
    plain.then_some(first.raw.as_str())
}
