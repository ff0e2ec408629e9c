//! What an action relies on, and how much of that is trusted.

use std::collections::BTreeMap;

use safepoint_authority::{Boundary, Canonical, Executable, Level, Tool, Trust};
use safepoint_model::Digest;
use safepoint_store::Sql;
use safepoint_trail::{Draft, Kind, Stream, Writing};
use serde_json::json;

use super::Bench;
use super::asked::Wants;
use crate::{Control, ControlError, kept};

impl Bench<'_> {
    /// How much is trusted of what an action relies on, with versions: the program, the
    /// workspace, and who proposes.
    pub(super) fn trust_of(
        &self,
        tool: &Tool,
        provider: Option<&str>,
    ) -> Result<BTreeMap<String, (Level, u64)>, ControlError> {
        let mut boundaries = vec![self.path_boundary()];
        let program = tool.executable.as_ref();
        boundaries.extend(program.map(|it| self.tool_boundary(&it.path)));
        boundaries.extend(provider.map(Boundary::provider));
        let store = self.control.trail.store();
        let mut known = BTreeMap::new();
        for boundary in boundaries {
            let name = boundary.to_string();
            let trust: Option<Trust> = store.read(|sql| kept::get(sql, &name))?;
            let level = |trust: &Trust| match boundary.program() {
                // Somebody may have put other content under the same name.
                Some(_) => trust.level_for(&tool.content()),
                None => trust.level,
            };
            let told = trust.map_or((Level::Untrusted, 0), |it| (level(&it), it.version));
            known.insert(name, told);
        }
        Ok(known)
    }

    pub(super) fn is_tool_trusted(
        &self,
        tool: &Tool,
        trust: &BTreeMap<String, (Level, u64)>,
    ) -> bool {
        let tool = tool
            .executable
            .as_ref()
            .map(|it| self.tool_boundary(&it.path).to_string());
        let level = tool.and_then(|name| trust.get(&name));
        level.is_some_and(|(level, _)| *level >= Level::Trusted)
    }

    /// Whether the workspace, or the workflow, may go without checkpoints.
    pub(super) fn is_elevated(
        &self,
        sql: &mut dyn Sql,
        wants: &Wants,
    ) -> Result<bool, ControlError> {
        let place: Option<Trust> = kept::get(sql, &self.path_boundary().to_string())?;
        if place.is_some_and(|it| it.level == Level::Elevated) {
            return Ok(true);
        }
        let Some(workflow) = &wants.workflow else {
            return Ok(false);
        };
        // Whoever can write in the workspace can give any file this name.
        let boundary = Boundary::workflow(&workflow.name).to_string();
        let trust: Option<Trust> = kept::get(sql, &boundary)?;
        Ok(trust.is_some_and(|it| it.level_for_digest(&workflow.digest) == Level::Elevated))
    }

    /// An approved action went well: evidence, if the rules name it.
    pub(super) fn prove(
        &self,
        writing: &mut Writing<'_>,
        content: &[Executable],
        trust_after: Option<u32>,
        policy: Digest,
    ) -> Result<(), ControlError> {
        let (Some(program), Some(_)) = (content.first(), trust_after) else {
            return Ok(());
        };
        let boundary = self.tool_boundary(&program.path);
        self.control
            .change_trust(writing, boundary, "evidence", |trust, now| {
                trust.about(content).proven(trust_after, policy, now)
            })
    }

    /// Somebody tried what they must not: the program and the provider lose their trust at
    /// once, and every further step of the session asks until an operator has decided.
    pub(super) fn violate(
        &self,
        writing: &mut Writing<'_>,
        action: &Canonical,
        what: &str,
    ) -> Result<(), ControlError> {
        let now = self.now();
        let tool = action.tool.executable.as_ref();
        let tool = tool.map(|it| self.tool_boundary(&it.path));
        let provider = action
            .provider
            .as_ref()
            .map(|name| Boundary::provider(name));
        for boundary in tool.into_iter().chain(provider) {
            self.control
                .change_trust(writing, boundary, "violation", |trust, now| {
                    trust.violated(what.to_owned(), now)
                })?;
        }
        let standing = kept::get(writing.sql(), action.session_id.as_str())?
            .unwrap_or_else(|| super::Standing::new(action.session_id.clone(), now));
        kept::put(
            writing,
            &super::Standing {
                violated: Some(what.to_owned()),
                // What an operator widened rested on that trust.
                envelope: None,
                ..standing
            },
        )
    }
}

impl Control {
    /// Changes what is known of a boundary, and tells of it.
    pub(crate) fn change_trust(
        &self,
        writing: &mut Writing<'_>,
        boundary: Boundary,
        event: &str,
        change: impl FnOnce(Trust, safepoint_model::Timestamp) -> Trust,
    ) -> Result<(), ControlError> {
        let now = self.around.clock.now();
        let name = boundary.to_string();
        let before: Trust =
            kept::get(writing.sql(), &name)?.unwrap_or_else(|| Trust::new(boundary, now));
        let after = change(before.clone(), now);
        if after == before {
            return Ok(());
        }
        kept::put(writing, &after)?;
        writing.append(Draft {
            stream: Stream::store(),
            actor: self.around.actor.clone(),
            kind: Kind::fixed("trust_changed").into(),
            action_id: None,
            body: json!({
                "boundary": name, "event": event, "from": before.level, "to": after.level,
                "version": after.version, "evidence": after.evidence, "reason": after.reason,
                "content": after.content,
            }),
        })?;
        Ok(())
    }
}
