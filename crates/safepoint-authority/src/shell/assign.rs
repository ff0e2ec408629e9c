//! Variables that a line gives a value, and the substitutions in its words.

use super::expand::Expander;
use super::parse;
use super::state::{Argument, State, Value};
use super::syntax::{Assigned, Assignment, Operation, Piece, Word};
use super::tilde::TildeContext;
use super::walk::{Input, Walker};

impl<'a> Walker<'a> {
    /// The value that an assignment gives, in the variables that follow.
    pub(super) fn assign(&mut self, assignment: &Assignment, state: &mut State) {
        let value = match &assignment.value {
            Assigned::Scalar(word) => super::variables::literal(word),
            Assigned::Array(_) => None,
        };
        super::variables::within(self, &assignment.name, value.as_deref(), state);
        let value = match &assignment.value {
            Assigned::Scalar(word) if assignment.index.is_none() => {
                let values = self.expander(state).single(word, TildeContext::Value);
                match state.variables.get(&assignment.name) {
                    _ if !assignment.append => Value::One(values),
                    Some(Value::One(before)) => match (before.as_slice(), values.as_slice()) {
                        ([Argument::Known(one)], [Argument::Known(two)]) => {
                            Value::One(vec![Argument::Known(format!("{one}{two}"))])
                        }
                        _ => Value::Unknown,
                    },
                    _ => Value::Unknown,
                }
            }
            Assigned::Array(words) => {
                let mut all = match (assignment.append, state.variables.get(&assignment.name)) {
                    (true, Some(Value::All(before))) => before.clone(),
                    (true, _) => {
                        self.set(&assignment.name, Value::Unknown, state);
                        return;
                    }
                    (false, _) => Vec::new(),
                };
                for word in words {
                    let ways = self.expander(state).words(word, TildeContext::Other);
                    match ways.as_slice() {
                        // `[1]=value` gives the second element a value.
                        _ if word.raw.contains("]=") || word.raw.contains("]+=") => {
                            self.set(&assignment.name, Value::Unknown, state);
                            return;
                        }
                        [only] => all.extend(only.iter().cloned()),
                        _ => {
                            self.set(&assignment.name, Value::Unknown, state);
                            return;
                        }
                    }
                }
                Value::All(all)
            }
            Assigned::Scalar(_) => Value::Unknown,
        };
        self.set(&assignment.name, value, state);
    }

    /// Gives a variable a value.
    pub(super) fn set(&mut self, name: &str, value: Value, state: &mut State) {
        self.out.assigned.insert(name.to_owned());
        let dynamic = match &value {
            Value::One(list) => list
                .iter()
                .all(|argument| argument.is_dynamic() && argument.start().is_empty()),
            _ => false,
        };
        let value = if dynamic || is_large(&value) {
            Value::Unknown
        } else {
            value
        };
        state.variables.insert(name.to_owned(), value);
    }

    pub(super) fn assignment_words(&mut self, assignment: &Assignment, state: &mut State) {
        if let Some(index) = &assignment.index {
            self.visit(index, state);
        }
        match &assignment.value {
            Assigned::Scalar(word) => self.visit(word, state),
            Assigned::Array(words) => {
                for word in words {
                    self.visit(word, state);
                }
            }
        }
    }

    pub(super) fn expander<'s>(&self, state: &'s State) -> Expander<'s>
    where
        'a: 's,
    {
        Expander {
            state,
            around: self.around,
        }
    }

    /// Follows the substitutions in a word.
    pub(super) fn visit(&mut self, word: &Word, state: &mut State) {
        self.visit_pieces(&word.pieces, state);
    }

    pub(super) fn visit_pieces(&mut self, pieces: &[Piece], state: &mut State) {
        for piece in pieces {
            match piece {
                Piece::Substitution { list, .. } => {
                    let mut aside = state.clone();
                    self.depth += 1;
                    self.list_with(list, &mut aside, &Input::Inherited);
                    self.depth -= 1;
                }
                Piece::Process { list, fed } => {
                    let mut aside = state.clone();
                    let input = if *fed { Input::Pipe } else { Input::Inherited };
                    self.depth += 1;
                    self.list_with(list, &mut aside, &input);
                    self.depth -= 1;
                }
                Piece::Arithmetic(inner) => {
                    self.visit_pieces(inner, state);
                    self.arithmetic(inner, state);
                }
                Piece::Parameter(parameter) => {
                    match &parameter.operation {
                        Operation::Element(inner)
                        | Operation::Otherwise { word: inner, .. }
                        | Operation::Cut { pattern: inner, .. }
                        | Operation::Changed(inner) => self.visit_pieces(inner, state),
                        Operation::Value | Operation::Length => {}
                    }
                    if let Operation::Otherwise { assign: true, .. } = parameter.operation {
                        super::variables::within(self, &parameter.name, None, state);
                        self.set(&parameter.name, Value::Unknown, state);
                    }
                }
                Piece::Plain(_) | Piece::Quoted(_) | Piece::Tilde(_) => {}
            }
        }
    }

    /// Arithmetic assigns variables and expands what they hold.
    pub(super) fn arithmetic(&mut self, pieces: &[Piece], state: &mut State) {
        for piece in pieces {
            let (Piece::Quoted(text) | Piece::Plain(text)) = piece else {
                continue;
            };
            for name in text.split(|next: char| !(next.is_ascii_alphanumeric() || next == '_')) {
                if parse::is_name(name) && text.contains(['=', '+', '-']) {
                    super::variables::within(self, name, None, state);
                    self.set(name, Value::Unknown, state);
                }
            }
        }
    }
}

/// What grows by being assigned to itself is not followed for long.
fn is_large(value: &Value) -> bool {
    match value {
        Value::One(list) | Value::All(list) => {
            list.len() > 256
                || list
                    .iter()
                    .map(|argument| argument.start().len())
                    .sum::<usize>()
                    > 16 * 1024
        }
        Value::Unknown => false,
    }
}
