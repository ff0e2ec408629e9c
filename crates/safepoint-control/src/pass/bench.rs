//! Where actions are judged: the sessions, the rules and the operators' word, without the
//! files that an action is about.
//!
//! Looking, securing and doing belong to the machine on which something happens
//! (`Passage`). What is here needs nothing of that machine but what it says it saw, so it
//! can be done for a machine elsewhere as well (`receive.rs`).

use safepoint_authority::{AtlasPin, Boundary, Canonical};
use safepoint_gates::Session;
use safepoint_model::{Digest, Frame, SessionId, Span, Timestamp, WorkspaceId};

use crate::{AtlasFile, Control};

/// The control plane, for one directory.
pub struct Bench<'a> {
    /// The sessions and what is decided.
    pub control: &'a Control,
    /// What it is judged under, where no session is named.
    pub atlases: &'a [AtlasFile],
    /// How long a hold waits.
    pub hold_timeout: Span,
    /// The directory, on the machine where it happens.
    pub root: String,
    /// The machine, as `@` and the name of its token; this one without.
    pub site: Option<String>,
    /// The workspace of an agent that the directory belongs to.
    pub place: Option<&'a WorkspaceId>,
}

/// What a form is judged under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Under {
    pub(super) session_id: SessionId,
    pub(super) atlases: Vec<AtlasPin>,
    pub(super) policy_version: Digest,
}

impl Under {
    /// What a session is pinned to.
    pub(super) fn of(session: &Session) -> Self {
        let pins = session.atlases.iter();
        let atlases: Vec<AtlasPin> = pins
            .map(|pin| AtlasPin {
                atlas_id: pin.atlas_id.clone(),
                version: pin.version.clone(),
                digest: pin.digest,
            })
            .collect();
        Self {
            session_id: session.session_id.clone(),
            policy_version: policy_version(&atlases),
            atlases,
        }
    }

    /// Nothing at all.
    pub(super) fn none(session_id: SessionId) -> Self {
        Self {
            session_id,
            atlases: Vec::new(),
            policy_version: policy_version(&[]),
        }
    }

    /// What a form says that it is judged under.
    pub(super) fn of_form(canonical: &Canonical) -> Self {
        Self {
            session_id: canonical.session_id.clone(),
            atlases: canonical.atlases.clone(),
            policy_version: canonical.policy_version,
        }
    }
}

impl Bench<'_> {
    /// What names a directory here: the same path on two machines is two places.
    pub(super) fn place_name(&self, path: &str) -> String {
        match &self.site {
            None => path.to_owned(),
            Some(site) => format!("{site}:{path}"),
        }
    }

    /// The directory, as something that is trusted or not.
    pub(super) fn path_boundary(&self) -> Boundary {
        Boundary::path(&self.place_name(&self.root))
    }

    /// A program, as something that is trusted or not. One of another machine may be anything.
    pub(super) fn tool_boundary(&self, path: &str) -> Boundary {
        Boundary::tool(&self.place_name(path))
    }

    /// The present moment.
    pub(super) fn now(&self) -> Timestamp {
        self.control.around.clock.now()
    }
}

/// What everything is judged under: the atlases, and the rules that come with this program.
fn policy_version(atlases: &[AtlasPin]) -> Digest {
    let mut frame = Frame::new("safepoint/policy/v1");
    frame.field(env!("CARGO_PKG_VERSION").as_bytes());
    for pin in atlases {
        frame.field(pin.digest.as_bytes());
    }
    frame.digest()
}
