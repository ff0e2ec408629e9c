//! Whose a workspace is: the token of its agent, of which only a digest is kept.

use safepoint_model::{Digest, Entropy, Frame, WorkspaceId};
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use crate::ProgressError;
use crate::progress::Progress;
use crate::role::Name;
use crate::table::{self, Made};
use crate::tell::protocol;

impl Progress {
    /// Refuses a token that is not the one that counts, and records that.
    pub(crate) fn admit(
        &self,
        id: &WorkspaceId,
        token: &str,
        context: &'static str,
    ) -> Result<(), ProgressError> {
        let counts = self.trail.store().read(|sql| {
            table::made(sql, id)?;
            Ok::<_, ProgressError>(self.proved_binding(sql, id)? == Some(token_digest(id, token)))
        })?;
        if counts {
            return Ok(());
        }
        self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), id)?;
            let agent = self.proved_binding(writing.sql(), id)?;
            self.authenticate(writing, &made, agent, token, context)
        })?
    }

    /// Whether `token` is the one that counts, whose digest is `agent`; what is not is recorded.
    pub(crate) fn authenticate(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        agent: Option<Digest>,
        token: &str,
        context: &'static str,
    ) -> Result<Result<(), ProgressError>, ProgressError> {
        if agent == Some(token_digest(&made.id, token)) {
            return Ok(Ok(()));
        }
        writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: protocol(),
            kind: Kind::fixed("authentication_failed").into(),
            action_id: None,
            body: json!({"entity": made.id, "context": context, "reason": "not the agent of this workspace"}),
        })?;
        Ok(Err(ProgressError::NotTheAgent(made.id.clone())))
    }
}

pub(crate) fn new_token(entropy: &dyn Entropy) -> Result<String, ProgressError> {
    let mut random = [0; 32];
    entropy.fill(&mut random)?;
    Ok(format!("wst_{}", Digest::from_bytes(random)))
}

pub(crate) fn token_digest(id: &WorkspaceId, token: &str) -> Digest {
    Frame::new("safepoint/workspace-token/v1")
        .field(id.as_str().as_bytes())
        .field(token.as_bytes())
        .digest()
}

/// What entries say of a binding: enough to compare it with, and nothing to get in by. The
/// digest itself is left out, since whoever guesses tokens could try them against it.
pub(crate) fn agent_mark(token: &Digest) -> Digest {
    Frame::new("safepoint/workspace-agent/v1")
        .field(token.as_bytes())
        .digest()
}

/// The agent in a role.
pub(crate) fn actor(role: &Name) -> Actor {
    // Every name is a good actor; were one not, it is still somebody.
    role.as_str().parse().unwrap_or_else(|_| protocol())
}
