//! Where a directory belongs to the workspace of an agent, what is done there says so.
//!
//! Entries of actions carry the workspace, and its own stream names every session that acts in
//! it: whoever reads the workspace finds them.

use safepoint_model::SessionId;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing, newest_of};
use serde_json::{Value, json};

use super::Bench;
use crate::ControlError;

/// The kind of entry that names a session in the stream of a workspace.
pub const JOINED: &str = "session_joined";

impl Bench<'_> {
    /// Puts the workspace into an entry, and the session into the workspace's stream.
    pub(super) fn join(
        &self,
        writing: &mut Writing<'_>,
        session: &SessionId,
        body: &mut Value,
    ) -> Result<(), ControlError> {
        let Some(workspace) = self.place else {
            return Ok(());
        };
        if let Some(fields) = body.as_object_mut() {
            fields.insert("workspace_id".to_owned(), json!(workspace));
        }
        // Only the newest is looked at: one that comes back is named again, which harms nobody.
        let stream = Stream::from(workspace);
        let newest = newest_of(writing.sql(), &stream, JOINED)?;
        let known = newest.is_some_and(|entry| entry.body.contains(session.as_str()));
        if !known {
            writing.append(Draft {
                stream,
                actor: Actor::safepoint(),
                kind: Kind::fixed(JOINED).into(),
                action_id: None,
                body: json!({"workspace": workspace, "session_id": session}),
            })?;
        }
        Ok(())
    }
}
