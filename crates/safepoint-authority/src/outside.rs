//! What a program behind the fence can want outside it, as holds and trust name it.
//!
//! Nothing here decides or opens anything.

use serde::Deserialize;

use crate::{Canonical, DecisionScope};

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum OutsideKind {
    /// A machine and its port.
    Host,
    /// A socket with a path, or an abstract one.
    Socket,
    /// A file, to be written.
    File,
}

/// One host, socket or file outside the fence.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct OutsideTarget {
    /// What kind of thing it is.
    pub kind: OutsideKind,
    /// `HOST:PORT`, or a path.
    pub name: String,
}

/// The parameters of the action that reaches it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutsideParameters {
    target: String,
}

impl OutsideKind {
    pub(crate) const ALL: [Self; 3] = [Self::Host, Self::Socket, Self::File];

    /// The action that reaches it.
    pub const fn action(self) -> &'static str {
        match self {
            Self::Host => "net.connect",
            Self::Socket => "socket.connect",
            Self::File => "file.write",
        }
    }

    /// The kind of boundary that it is.
    pub(crate) const fn boundary(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Socket => "socket",
            Self::File => "file",
        }
    }
}

impl OutsideTarget {
    /// What reaching it comes to, in words.
    pub fn sentence(&self) -> String {
        let name = &self.name;
        match self.kind {
            OutsideKind::Host => format!("connect to {name}"),
            OutsideKind::Socket => format!("connect to the socket {name}"),
            OutsideKind::File => format!("write {name}"),
        }
    }

    /// What a yes opens, in words.
    pub fn opening(&self, scope: Option<DecisionScope>) -> String {
        let what = self.sentence();
        match scope {
            None => format!("lets this session {what} once"),
            Some(DecisionScope::Session) => {
                format!("lets this session {what}, as often as it wants")
            }
            Some(DecisionScope::Project) => {
                format!(
                    "lets every session of this workspace {what}, until an operator takes it back"
                )
            }
        }
    }
}

impl Canonical {
    /// The name of the tool in the form of something that the fence was asked for.
    pub const FENCE: &'static str = "fence";

    /// What the fence was asked for, if it was.
    pub fn outside_target(&self) -> Option<OutsideTarget> {
        if self.tool.name != Self::FENCE {
            return None;
        }
        let [action, parameters] = self.argv.as_slice() else {
            return None;
        };
        let kind = OutsideKind::ALL
            .into_iter()
            .find(|it| it.action() == action)?;
        let parameters: OutsideParameters = serde_json::from_str(parameters).ok()?;
        let name = parameters.target;
        Some(OutsideTarget { kind, name })
    }
}
