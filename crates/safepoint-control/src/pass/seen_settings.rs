//! The settings of a client that lie in the workspace, as they were when the client was started.
//!
//! What they name runs without a fence, as a person has configured it. But whoever works in the
//! workspace can write them, too, so only what was there before the client's agent began counts.

use std::collections::BTreeMap;

use safepoint_model::{Digest, Timestamp};
use safepoint_store::Durability;
use serde::{Deserialize, Serialize};

use super::standing::home_id;
use crate::kept::{self, Kept};
use crate::{Control, ControlError};

/// The files of one client's session, by their paths.
pub type SettingsDigests = BTreeMap<String, Digest>;

/// The files as they were when a process of the client first called us.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeenSettings {
    format: u32,
    /// The client, and its own name for its session.
    visitor: String,
    /// The process of the client, and when it was started.
    process: (u32, u64),
    files: SettingsDigests,
    time: Timestamp,
}

impl Kept for SeenSettings {
    const KIND: &'static str = "seen_settings";
    const WHAT: &'static str = "settings of the client in the workspace";

    fn id(&self) -> String {
        self.visitor.clone()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        true
    }
}

impl Control {
    /// Remembers the settings of a client's session, if this process of the client has not called
    /// us before. A client is started by a person.
    pub fn note_settings(
        &self,
        client: &str,
        session: &str,
        process: (u32, u64),
        files: impl FnOnce() -> SettingsDigests,
    ) -> Result<(), ControlError> {
        let visitor = home_id(client, session);
        let store = self.trail.store();
        let known: Option<SeenSettings> = store.read(|sql| kept::get(sql, &visitor))?;
        if known.as_ref().is_some_and(|it| it.process == process) {
            return Ok(());
        }
        let seen = SeenSettings {
            format: 1,
            visitor,
            process,
            // That there were none counts, too.
            files: files(),
            time: self.around.clock.now(),
        };
        self.trail
            .write(Durability::Sync, |writing| kept::put(writing, &seen))
    }

    /// The settings that this process of a client was started with; none where nobody knows.
    pub fn seen_settings(
        &self,
        client: &str,
        session: &str,
        process: (u32, u64),
    ) -> Result<SettingsDigests, ControlError> {
        let visitor = home_id(client, session);
        let store = self.trail.store();
        let known: Option<SeenSettings> = store.read(|sql| kept::get(sql, &visitor))?;
        let known = known.filter(|it| it.process == process);
        Ok(known.map(|it| it.files).unwrap_or_default())
    }
}
