//! The states of a workspace and the moves between them.
//!
//! Pure: it says what may follow what. Who asks for a move, and what else
//! happens with it, is not known here.

use crate::words::words;

words! {
    /// Where a workspace stands.
    State, "state of a workspace":
    /// Made, and without its directive.
    Idle = "idle",
    /// At work.
    Active = "active",
    /// Waiting for something from outside.
    Blocked = "blocked",
    /// Between two agents.
    Migrating = "migrating",
    /// Stopped for a while.
    Suspended = "suspended",
    /// Its work is being taken over by its parent.
    Integrating = "integrating",
    /// Its work does not fit, and somebody has to say how it is to.
    Conflicted = "conflicted",
    /// Taken over. Nothing follows.
    Closed = "closed",
    /// Given up. Nothing follows.
    Failed = "failed",
}

impl State {
    /// Whether nothing can follow.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Closed | Self::Failed)
    }

    /// Whether the clock of the workspace runs.
    pub const fn is_working(self) -> bool {
        matches!(self, Self::Active | Self::Blocked)
    }

    /// Whether the time in it counts toward the timeout: somebody has to do something.
    pub const fn is_timed(self) -> bool {
        matches!(self, Self::Active | Self::Blocked | Self::Conflicted)
    }

    /// Whether signals of children have to wait.
    pub const fn holds_signals(self) -> bool {
        matches!(self, Self::Blocked | Self::Migrating | Self::Suspended)
    }
}

/// A state, and the one to go back to from a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The present state.
    pub state: State,
    /// The state before `migrating` or `suspended`; `None` in all others.
    pub former: Option<State>,
}

/// A move that the life of a workspace does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a workspace that is {from} cannot become {to}")]
pub struct IllegalMove {
    /// Where it stands.
    pub from: State,
    /// Where it was to go.
    pub to: State,
}

impl Standing {
    /// How every workspace begins.
    pub const NEW: Self = Self {
        state: State::Idle,
        former: None,
    };

    /// Where it stands after a move to `to`, if there is such a move.
    pub fn moved_to(self, to: State) -> Result<Self, IllegalMove> {
        use State::{
            Active, Blocked, Closed, Conflicted, Failed, Idle, Integrating, Migrating, Suspended,
        };
        let legal = match self.state {
            Idle => matches!(to, Active | Failed),
            Active => matches!(to, Blocked | Migrating | Suspended | Integrating | Failed),
            Blocked => matches!(to, Active | Migrating | Suspended | Failed),
            Migrating | Suspended => Some(to) == self.former || to == Failed,
            Integrating => matches!(to, Closed | Conflicted | Failed),
            Conflicted => matches!(to, Closed | Failed),
            Closed | Failed => false,
        };
        if !legal {
            return Err(IllegalMove {
                from: self.state,
                to,
            });
        }
        let former = matches!(to, Migrating | Suspended).then_some(self.state);
        Ok(Self { state: to, former })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requirement's own list, as it is written there.
    const LEGAL: &str = "idle→active|failed; active→blocked|migrating|suspended|integrating|failed; \
         blocked→active|migrating|suspended|failed; migrating→FORMER|failed; suspended→FORMER|failed; \
         integrating→closed|conflicted|failed; conflicted→closed|failed";

    fn is_listed(standing: Standing, to: State) -> bool {
        LEGAL
            .split("; ")
            .filter_map(|line| line.split_once('→'))
            .filter(|(from, _)| *from == standing.state.as_str())
            .flat_map(|(_, targets)| targets.split('|'))
            .any(|target| match target {
                "FORMER" => standing.former == Some(to),
                other => other == to.as_str(),
            })
    }

    #[test]
    fn pr_01_exactly_the_listed_moves_are_legal() {
        let mut legal = 0;
        for state in State::ALL {
            for former in [None, Some(State::Active), Some(State::Blocked)] {
                let paused = matches!(state, State::Migrating | State::Suspended);
                if paused != former.is_some() {
                    continue;
                }
                let standing = Standing {
                    state: *state,
                    former,
                };
                for to in State::ALL {
                    let moved = standing.moved_to(*to);
                    assert_eq!(moved.is_ok(), is_listed(standing, *to), "{standing:?} {to}");
                    legal += usize::from(moved.is_ok());
                }
            }
        }
        // 16 between fixed states, and two pauses with two former states and two ways out each.
        assert_eq!(legal, 16 + 8);
    }

    #[test]
    fn pr_01_a_pause_ends_where_it_began() {
        for start in [State::Active, State::Blocked] {
            let standing = Standing {
                state: start,
                former: None,
            };
            for pause in [State::Suspended, State::Migrating] {
                let paused = standing.moved_to(pause).unwrap();
                assert_eq!(paused.moved_to(start), Ok(standing));
            }
        }
    }

    #[test]
    fn pr_01_words_read_back_and_others_do_not() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
            assert_eq!(
                state.is_terminal(),
                ["closed", "failed"].contains(&state.as_str())
            );
        }
        let error = "done".parse::<State>().unwrap_err().to_string();
        assert!(error.starts_with("`done` is no state of a workspace: it is one of idle, active"));
    }
}
