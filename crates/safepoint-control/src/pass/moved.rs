//! The sessions of a directory that was moved.
//!
//! Sessions are found by the path of their directory. When a person says that a directory goes on
//! with the history of another path, what an operator decided about its sessions and the
//! workspaces of its clients go along. The sessions themselves end: what waits in them names the
//! old path, and a yes to it could let nothing run any more.

use std::collections::BTreeSet;
use std::path::Path;

use safepoint_gates::Event;
use safepoint_model::SessionId;
use safepoint_store::Durability;

use super::documents::{Home, Place};
use crate::{Control, ControlError, kept};

impl Control {
    /// Ends the sessions of the directory that was at `from`, and makes those that begin at `to`
    /// their successors.
    pub fn move_sessions(&self, from: &Path, to: &Path) -> Result<(), ControlError> {
        // Nothing is judged where the path cannot be shown.
        let (Some(from), Some(to)) = (from.to_str(), to.to_str()) else {
            return Ok(());
        };
        if from == to {
            return Ok(());
        }
        let mut sessions: BTreeSet<SessionId> = BTreeSet::new();
        self.trail
            .write(Durability::Sync, |writing| -> Result<(), ControlError> {
                let is_there = |place: &Place| renamed(&place.workspace, from, to).is_some();
                for place in kept::open_if(writing.sql(), is_there)? {
                    let Some(workspace) = renamed(&place.workspace, from, to) else {
                        continue;
                    };
                    sessions.insert(place.session_id.clone());
                    // A session that has begun at the new path already comes before the next one,
                    // too. What was halted there is found by the path.
                    let there: Option<Place> = kept::get(writing.sql(), &workspace)?;
                    let begun = there.map(|it| it.session_id);
                    let begun = begun.filter(|it| *it != place.session_id);
                    let earlier = begun.into_iter().chain(place.earlier).collect();
                    let successor = Place {
                        workspace,
                        earlier,
                        ..place
                    };
                    kept::put(writing, &successor)?;
                }
                let began_there = |home: &Home| home.workspace == from;
                for home in kept::open_if(writing.sql(), began_there)? {
                    let workspace = to.to_owned();
                    kept::put(writing, &Home { workspace, ..home })?;
                }
                Ok(())
            })?;
        for session in sessions {
            match self.step(&session, &Event::End { abandon: true }) {
                // It has ended already.
                Ok(_) | Err(ControlError::Refused(_) | ControlError::Refuses { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What names the same place in the directory `to`: of the directory itself, of the last client
/// in it, or of one session of a client in it.
fn renamed(place: &str, from: &str, to: &str) -> Option<String> {
    let rest = place.strip_suffix(from)?;
    let is_client = rest.starts_with("client:") && rest.ends_with(':');
    // The same path on another machine is another place.
    let last = rest.trim_end_matches(':').rsplit(':').next();
    let is_here = !last.is_some_and(|it| it.starts_with('@'));
    (rest.is_empty() || is_client && is_here).then(|| format!("{rest}{to}"))
}

#[cfg(test)]
mod tests {
    use super::renamed;

    #[test]
    fn st_09_the_places_of_a_moved_directory_are_told_from_others() {
        let moved = |place| renamed(place, "/srv/old", "/srv/new");
        assert_eq!(moved("/srv/old").as_deref(), Some("/srv/new"));
        assert_eq!(moved("client:/srv/old").as_deref(), Some("client:/srv/new"));
        let client = "client:claude-code/s1:/srv/old";
        let there = "client:claude-code/s1:/srv/new";
        assert_eq!(moved(client).as_deref(), Some(there));
        assert_eq!(moved("/srv/old/inner"), None);
        assert_eq!(moved("/home/srv/old"), None);
        assert_eq!(moved("@machine:/srv/old"), None);
        assert_eq!(moved("client:@machine:/srv/old"), None);
        assert_eq!(moved("client:codex/s1:@machine:/srv/old"), None);
    }
}
