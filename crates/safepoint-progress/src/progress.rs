//! Workspaces: made, bound to an agent, moved from state to state.
//!
//! Each step is one transaction with the entries that tell of it. Nothing is
//! updated: where a workspace stands is the last of its moves.

use std::sync::Arc;

use safepoint_model::{
    Clock, Digest, Entropy, Frame, Timestamp, WorkspaceId, json as strict, next_after,
};
use safepoint_store::{Durability, Sql};
use safepoint_trail::{Actor, Draft, Kind, Stream, Trail, Writing, newest_time};
use serde::Serialize;
use serde_json::json;

use crate::role::{BaseRole, Name};
use crate::state::{IllegalMove, Standing, State};
use crate::table::{self, Made};
use crate::taxonomy::Taxonomy;
use crate::tell::protocol;
use crate::{COMPONENT, ProgressError};

/// The workspaces of one store.
#[derive(Clone)]
pub struct Progress {
    pub(crate) trail: Trail,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// Where a new workspace has its place.
#[derive(Clone, Debug)]
pub enum Beginning<'a> {
    /// A run begins, with this taxonomy. Its root is the coordinator.
    Root(&'a Taxonomy),
    /// Below another workspace, in this role.
    Below(&'a WorkspaceId, Name),
}

/// A new workspace, and the only time that its token is seen.
#[derive(Clone, Debug, Serialize)]
pub struct Created {
    /// Its identifier.
    pub workspace_id: WorkspaceId,
    /// What its agent shows. Only a digest of it is kept.
    pub token: String,
}

/// A workspace as it is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workspace {
    /// Its identifier.
    pub workspace_id: WorkspaceId,
    /// The root of its tree.
    pub run: WorkspaceId,
    /// The one above it.
    pub parent: Option<WorkspaceId>,
    /// Its role, which never changes.
    pub role: Name,
    /// What it was told to do.
    pub directive: Option<String>,
    /// Where it stands.
    pub state: State,
    /// Where a pause will end.
    pub former: Option<State>,
    /// When it was made.
    pub created: Timestamp,
}

impl Workspace {
    pub(crate) fn read(sql: &mut dyn Sql, made: Made) -> Result<Self, ProgressError> {
        let (standing, _) = table::standing(sql, &made.id)?;
        Ok(Self {
            workspace_id: made.id,
            run: made.run,
            parent: made.parent,
            role: made.role,
            directive: made.directive,
            state: standing.state,
            former: standing.former,
            created: made.created,
        })
    }
}

impl Progress {
    /// The workspaces in the store of `trail`.
    pub fn open(
        trail: Trail,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, ProgressError> {
        trail.store().migrate(&COMPONENT)?;
        Ok(Self {
            trail,
            clock,
            entropy,
        })
    }

    /// Makes a workspace. With a directive it is active at once, whatever its role.
    pub fn create(
        &self,
        beginning: &Beginning<'_>,
        directive: Option<&str>,
        by: &Actor,
    ) -> Result<Created, ProgressError> {
        if directive.is_some_and(|text| text.contains('\0')) {
            return Err(ProgressError::Refused(
                "a directive holds no NUL characters".to_owned(),
            ));
        }
        let id = WorkspaceId::generate(&*self.entropy)?;
        let token = self.new_token()?;
        self.trail.write(Durability::Sync, |writing| {
            let created = self.moment(writing)?;
            let (run, parent, role, taxonomy) = self.place(writing, &id, beginning)?;
            let held = match beginning {
                Beginning::Root(taxonomy) => Some(text_of(taxonomy)?),
                Beginning::Below(..) => None,
            };
            let made = Made {
                id: id.clone(),
                run,
                parent,
                role,
                directive: directive.map(str::to_owned),
                created,
            };
            table::insert_made(writing.sql(), &made, by.as_str(), held.as_deref())?;
            table::bind(writing.sql(), &id, Some(&token_digest(&id, &token)), created)?;
            let document = taxonomy.document();
            writing.append(Draft {
                stream: Stream::from(&id),
                actor: by.clone(),
                kind: Kind::fixed("workspace_created").into(),
                action_id: None,
                body: json!({
                    "workspace": id, "run": made.run, "parent": made.parent, "role": made.role,
                    "originator": by,
                    "taxonomy": {"id": document.id, "version": document.version, "digest": digest_of(&taxonomy)?},
                    "directive": made.directive.as_ref().map(|text| Digest::of_parts(&[text.as_bytes()])),
                    "timestamp": created,
                }),
            })?;
            if directive.is_some() {
                self.transition(writing, &made, State::Active, Some("directive_delivered"), protocol())?
                    .map_err(ProgressError::from)?;
            }
            Ok::<_, ProgressError>(())
        })?;
        Ok(Created {
            workspace_id: id,
            token,
        })
    }

    /// The run, parent and role of a new workspace, and the taxonomy that holds for it.
    fn place(
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
        let (standing, _) = table::standing(writing.sql(), parent)?;
        if standing.state.is_terminal() {
            let state = standing.state;
            return Err(ProgressError::Refused(format!(
                "`{parent}` is {state}: nothing begins below it"
            )));
        }
        let taxonomy = table::taxonomy(writing.sql(), &above.run)?;
        match taxonomy.base_of(role) {
            Some(BaseRole::Worker | BaseRole::Observer) => {}
            Some(BaseRole::Coordinator) => {
                return Err(ProgressError::Refused(
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

    /// The workspace of this id.
    pub fn workspace(&self, id: &WorkspaceId) -> Result<Workspace, ProgressError> {
        self.trail.store().read(|sql| {
            let made = table::made(sql, id)?;
            Workspace::read(sql, made)
        })
    }

    /// All workspaces, the oldest first.
    pub fn workspaces(&self) -> Result<Vec<Workspace>, ProgressError> {
        self.trail.store().read(|sql| {
            let all = table::all_made(sql)?;
            all.into_iter()
                .map(|made| Workspace::read(sql, made))
                .collect()
        })
    }

    /// Moves a workspace. A move that there is not is refused and recorded.
    pub fn move_to(
        &self,
        id: &WorkspaceId,
        to: State,
        reason: Option<&str>,
        by: &Actor,
    ) -> Result<Standing, ProgressError> {
        let moved = self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), id)?;
            self.transition(writing, &made, to, reason, by.clone())
        })?;
        // A parent may have become able to take what waits for it.
        self.deliver()?;
        Ok(moved?)
    }

    /// Gives a workspace to another agent: the old token stops counting, then there is a new one.
    pub fn migrate(&self, id: &WorkspaceId, by: &Actor) -> Result<Created, ProgressError> {
        let token = self.new_token()?;
        let moved = self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), id)?;
            let (before, _) = table::standing(writing.sql(), id)?;
            if let Err(refused) =
                self.transition(writing, &made, State::Migrating, None, by.clone())?
            {
                return Ok(Err(refused));
            }
            let time = self.moment(writing)?;
            table::bind(writing.sql(), id, Some(&token_digest(id, &token)), time)?;
            self.transition(writing, &made, before.state, Some("migrated"), by.clone())
        })?;
        moved?;
        self.deliver()?;
        Ok(Created {
            workspace_id: id.clone(),
            token,
        })
    }

    /// Makes or refuses a move inside the present transaction, and records either.
    pub(crate) fn transition(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        to: State,
        reason: Option<&str>,
        by: Actor,
    ) -> Result<Result<Standing, IllegalMove>, ProgressError> {
        let (before, number) = table::standing(writing.sql(), &made.id)?;
        let time = self.moment(writing)?;
        let moved = before.moved_to(to);
        if let Ok(standing) = moved {
            table::insert_move(writing.sql(), &made.id, number + 1, standing, reason, time)?;
        }
        let kind = match moved {
            Ok(_) => Kind::fixed("workspace_state_changed"),
            Err(_) => Kind::fixed("workspace_state_refused"),
        };
        writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: by,
            kind: kind.into(),
            action_id: None,
            body: json!({
                "workspace": made.id, "from": before.state, "to": to, "reason": reason, "timestamp": time,
            }),
        })?;
        if moved.is_ok() && to == State::Failed {
            for child in table::children(writing.sql(), &made.id)? {
                let (standing, _) = table::standing(writing.sql(), &child.id)?;
                if !standing.state.is_terminal() {
                    self.transition(
                        writing,
                        &child,
                        State::Failed,
                        Some("parent_failed"),
                        protocol(),
                    )?
                    .map_err(ProgressError::from)?;
                }
            }
        }
        Ok(moved)
    }

    /// Whether `token` is the one that counts; what is not is recorded.
    pub(crate) fn authenticate(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        token: &str,
        context: &'static str,
    ) -> Result<Result<(), ProgressError>, ProgressError> {
        if table::binding(writing.sql(), &made.id)? == Some(token_digest(&made.id, token)) {
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

    /// The present, and later than everything that is recorded.
    pub(crate) fn moment(&self, writing: &mut Writing<'_>) -> Result<Timestamp, ProgressError> {
        Ok(next_after(newest_time(writing.sql())?, &*self.clock))
    }

    fn new_token(&self) -> Result<String, ProgressError> {
        let mut random = [0; 32];
        self.entropy.fill(&mut random)?;
        Ok(format!("wst_{}", Digest::from_bytes(random)))
    }
}

fn token_digest(id: &WorkspaceId, token: &str) -> Digest {
    Frame::new("safepoint/workspace-token/v1")
        .field(id.as_str().as_bytes())
        .field(token.as_bytes())
        .digest()
}

/// The agent in a role.
pub(crate) fn actor(role: &Name) -> Actor {
    // Every name is a good actor; were one not, it is still somebody.
    role.as_str().parse().unwrap_or_else(|_| protocol())
}

fn digest_of(taxonomy: &Taxonomy) -> Result<Digest, ProgressError> {
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
