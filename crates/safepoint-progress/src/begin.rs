//! A workspace begins: made, bound to its agent and told what to do, in one transaction.

use safepoint_model::{Digest, Frame, Span, TaskId, WorkspaceId, json as strict};
use safepoint_store::{Durability, fault};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde::Serialize;
use serde_json::json;

use crate::ProgressError;
use crate::agent::{agent_mark, new_token, token_digest};
use crate::meter::Budget;
use crate::place::Place;
use crate::progress::Progress;
use crate::role::{BaseRole, Name};
use crate::state::State;
use crate::table::{self, Made};
use crate::taxonomy::Taxonomy;
use crate::tell::protocol;

/// Where a new workspace has its place.
#[derive(Clone, Debug)]
pub enum Beginning<'a> {
    /// A run begins, with this taxonomy. Its root is the coordinator.
    Root(&'a Taxonomy),
    /// Below another workspace, in this role.
    Below(&'a WorkspaceId, Name),
}

/// What a new workspace is given. Nothing of it changes later.
#[derive(Clone, Debug, Default)]
pub struct Given<'a> {
    /// What it is to do. With it the workspace is active at once, whatever its role.
    pub directive: Option<&'a str>,
    /// What it may take.
    pub budget: Budget,
    /// How long it may be at work before it fails.
    pub timeout: Option<Span>,
    /// The task that it is for.
    pub task: Option<&'a TaskId>,
    /// The directory that was made for it.
    pub place: Option<&'a Place>,
}

impl Given<'_> {
    /// What is wrong with it, if anything.
    fn fault(&self, beginning: &Beginning<'_>) -> Option<&'static str> {
        if self.directive.is_some_and(|text| text.contains('\0')) {
            return Some("a directive holds no NUL characters");
        }
        if self.timeout.is_some_and(Span::is_zero) {
            return Some("a timeout of no time at all leaves no time to work; give a longer one");
        }
        let limited = !self.budget.is_empty() || self.timeout.is_some() || self.task.is_some();
        if limited && matches!(beginning, Beginning::Root(_)) {
            return Some(
                "the coordinator has no budget, no timeout and no task: those are for what is below it",
            );
        }
        self.budget.fault()
    }
}

/// A new workspace, and the only time that its token is seen.
#[derive(Clone, Debug, Serialize)]
pub struct Created {
    /// Its identifier.
    pub workspace_id: WorkspaceId,
    /// What its agent shows. Only a digest of it is kept.
    pub token: String,
}

impl Progress {
    /// Makes a workspace. With a directive it is active at once, whatever its role.
    pub fn create(
        &self,
        beginning: &Beginning<'_>,
        given: &Given<'_>,
        by: &Actor,
    ) -> Result<Created, ProgressError> {
        if let Some(fault) = given.fault(beginning) {
            return Err(ProgressError::Invalid(fault.to_owned()));
        }
        let id = match given.place {
            Some(place) => place.workspace.clone(),
            None => WorkspaceId::generate(&*self.entropy)?,
        };
        let token = new_token(&*self.entropy)?;
        self.trail.write(Durability::Sync, |writing| {
            if let Some(task) = given.task
                && let Err(refused) = self.assignable(writing, task, None, by)?
            {
                return Ok(Err(refused));
            }
            let created = self.moment(writing)?;
            let (run, parent, role, taxonomy) = self.position(writing, &id, beginning)?;
            let held = match beginning {
                Beginning::Root(taxonomy) => Some(text_of(taxonomy)?),
                Beginning::Below(..) => None,
            };
            let mut made = Made {
                id: id.clone(),
                run,
                parent,
                role,
                directive: given.directive.map(str::to_owned),
                originator: by.as_str().to_owned(),
                created,
                entry: 0,
                budget: given.budget,
                timeout: given.timeout,
            };
            let place = given.place.map(table::place_row);
            let document = taxonomy.document();
            let agent = token_digest(&id, &token);
            let entry = writing.append(Draft {
                stream: Stream::from(&id),
                actor: by.clone(),
                kind: Kind::fixed("workspace_created").into(),
                action_id: None,
                body: json!({
                    "workspace": id, "run": made.run, "parent": made.parent, "role": made.role,
                    "originator": by, "agent": agent_mark(&agent),
                    "taxonomy": {"id": document.id, "version": document.version, "digest": digest_of(&taxonomy)?},
                    "directive": made.directive.as_deref().map(directive_digest),
                    "budget": made.budget, "timeout": made.timeout, "task": given.task,
                    "place": given.place.map(|place| json!({"kind": place.kind, "base": place.base})),
                    "timestamp": created,
                    "rows": table::marks(place.as_slice()),
                }),
            })?;
            fault::point("progress.create.recorded");
            made.entry = i64::try_from(entry.seq).unwrap_or(i64::MAX);
            table::insert_made(writing.sql(), &made, held.as_deref())?;
            fault::point("progress.create.kept");
            table::bind(writing.sql(), &id, Some(&agent), created, entry.seq)?;
            fault::point("progress.create.bound");
            table::insert_rows(writing.sql(), place.as_slice(), entry.seq)?;
            if let Some(place) = given.place {
                fits(writing, place, made.parent.as_ref())?;
                safepoint_state::keep(writing.sql(), &place.base)?;
            }
            if let Some(task) = given.task {
                self.give(writing, task, &made, by)?;
            }
            if given.directive.is_some() {
                self.transition(writing, &made, State::Active, Some("directive_delivered"), protocol())?
                    .map_err(ProgressError::from)?;
            }
            Ok::<_, ProgressError>(Ok(()))
        })??;
        Ok(Created {
            workspace_id: id,
            token,
        })
    }

    /// The run, parent and role of a new workspace, and the taxonomy that holds for it.
    fn position(
        &self,
        writing: &mut Writing<'_>,
        id: &WorkspaceId,
        beginning: &Beginning<'_>,
    ) -> Result<(WorkspaceId, Option<WorkspaceId>, Name, Taxonomy), ProgressError> {
        let (parent, role) = match beginning {
            Beginning::Root(taxonomy) => {
                return Ok((
                    id.clone(),
                    None,
                    BaseRole::Coordinator.into(),
                    (*taxonomy).clone(),
                ));
            }
            Beginning::Below(parent, role) => (*parent, role),
        };
        let above = table::made(writing.sql(), parent)?;
        let (standing, _) = self.proved_standing(writing.sql(), parent)?;
        if standing.state.is_terminal() {
            let state = standing.state;
            return Err(ProgressError::Unfit(format!(
                "`{parent}` is {state}: nothing begins below it"
            )));
        }
        let taxonomy = table::taxonomy(writing.sql(), &above.run)?;
        match taxonomy.base_of(role) {
            Some(BaseRole::Worker | BaseRole::Observer) => {}
            Some(BaseRole::Coordinator) => {
                return Err(ProgressError::Invalid(
                    "a run has one coordinator, at its root".to_owned(),
                ));
            }
            None => {
                return Err(ProgressError::NotFound {
                    what: "role",
                    name: role.to_string(),
                });
            }
        }
        Ok((above.run, Some(parent.clone()), role.clone(), taxonomy))
    }
}

/// Whether the directory of a new workspace was made from the one above.
fn fits(
    writing: &mut Writing<'_>,
    place: &Place,
    parent: Option<&WorkspaceId>,
) -> Result<(), ProgressError> {
    let above = match parent {
        Some(parent) => table::place(writing.sql(), parent)?,
        None => None,
    };
    if above.is_some_and(|above| above.path != place.origin) {
        return Err(ProgressError::Invalid(
            "a directory below a workspace with one is made from that one".to_owned(),
        ));
    }
    Ok(())
}

pub(crate) fn directive_digest(text: &str) -> Digest {
    Digest::of_parts(&[text.as_bytes()])
}

pub(crate) fn digest_of(taxonomy: &Taxonomy) -> Result<Digest, ProgressError> {
    let text = strict::canonical_of(taxonomy.document())?;
    Ok(Frame::new("safepoint/taxonomy/v1").field(&text).digest())
}

/// The taxonomy as its run keeps it; the empty one has no text.
fn text_of(taxonomy: &Taxonomy) -> Result<String, ProgressError> {
    if taxonomy.document().id.is_empty() {
        return Ok(String::new());
    }
    let bytes = strict::canonical_of(taxonomy.document())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
