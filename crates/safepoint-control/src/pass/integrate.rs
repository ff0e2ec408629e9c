//! Taking over the work of a workspace, as a proposal: an action like any other, that changes
//! the files it names.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use safepoint_authority::{Deed, Role, SideEffect, Touch, Understanding, Where};
use safepoint_model::{RecordId, WorkspaceId};
use safepoint_state::Errand;
use safepoint_state::tree::Change;

use super::change::deed;
use super::{Act, Leave, Passage, StartsPrograms};

/// The action, in the words of policies.
pub const INTEGRATE: &str = "workspace.integrate";

/// What would be taken over.
#[derive(Clone, Debug)]
pub struct Takeover<'a> {
    /// The workspace whose work it is.
    pub source: &'a WorkspaceId,
    /// The checkpoint in its chain.
    pub checkpoint: &'a RecordId,
    /// `normal` or `salvage`.
    pub mode: &'static str,
    /// `direct`, `layered` or `evaluated`.
    pub strategy: &'static str,
    /// What it would change here.
    pub changes: &'a [Change],
}

impl Passage<'_> {
    /// What taking it over would do, and exactly what it is.
    pub fn integration(&self, takeover: &Takeover<'_>) -> Act {
        let mut deeds = vec![deed(INTEGRATE, Vec::new(), SideEffect::Write)];
        let mut written = Vec::new();
        let mut deleted = Vec::new();
        for change in takeover.changes {
            let below = Path::new(std::ffi::OsStr::from_bytes(&change.path));
            let (list, role) = match change.to {
                Some(_) => (&mut written, Role::Write),
                None => (&mut deleted, Role::Delete),
            };
            list.push(Touch {
                place: Where::Exact(self.workspace.root.join(below)),
                role,
            });
        }
        for (action, touches) in [("file.write", written), ("file.delete", deleted)] {
            if !touches.is_empty() {
                deeds.push(deed(action, touches, SideEffect::Write));
            }
        }
        for deed in &mut deeds {
            deed.because = "the work of a workspace is taken over".to_owned();
        }
        self.guard(&mut deeds);
        let operations = [
            "integrate",
            takeover.source.as_str(),
            takeover.checkpoint.as_str(),
            takeover.mode,
            takeover.strategy,
        ];
        Act::Change {
            tool: "integrate",
            operations: operations.map(str::to_owned).into(),
            understood: Understanding {
                deeds,
                ..Understanding::default()
            },
            programs: StartsPrograms::No,
            covering: None,
        }
    }

    /// Adds what is forbidden to deeds that touch what Safepoint keeps of its own.
    pub(super) fn guard(&self, deeds: &mut Vec<Deed>) {
        let mut forbidden = Vec::new();
        for touch in deeds.iter().flat_map(|deed| &deed.touches) {
            if let Where::Exact(path) = &touch.place
                && touch.role != Role::Read
                && self.is_kept(path)
            {
                forbidden.push(touch.clone());
            }
        }
        if !forbidden.is_empty() {
            let mut control = deed("safepoint.control", forbidden, SideEffect::Write);
            control.risk = safepoint_authority::Risk::Critical;
            deeds.push(control);
        }
    }
}

impl Leave {
    /// The action as the state of directories records it.
    pub fn errand(&self) -> &Errand {
        &self.errand
    }
}
