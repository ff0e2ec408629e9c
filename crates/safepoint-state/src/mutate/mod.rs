//! Changing something under a checkpoint: judge the authority, secure, act,
//! verify, keep or roll back, record.
//!
//! ```text
//! authority ─ a checkpoint that is whole, in time, not used up, and covers the targets
//!   └ look ─ what is there now, kept as the state before
//!       └ picture ─ operations on files are tried on a copy of the tree
//!           └ journal, trail ─ the intent, before the effect
//!               └ act ─ renames relative to held handles; SQL; states; a command
//!                   └ look again, run the user's check
//!                       └ keep: one transaction records it and uses the checkpoint up
//!                         or roll back: as it was, and the checkpoint is still good
//! ```
//!
//! One process at a time changes a workspace. Killed in the middle, the next
//! command takes back what was done to files, and says where it cannot know.

mod act;
mod aftermath;
mod authority;
mod check;
pub mod operation;
mod own_part;
mod picture;
mod place;
mod program;
mod record;
mod sealing;
mod seen;
mod take_back;
mod verdict;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use safepoint_model::{ActionId, Timestamp};
use safepoint_store::fault;
use serde_json::Value;

pub use aftermath::{Aftermath, Failed};
pub use operation::{Operation, OperationError, Step};
pub use sealing::Sealing;
pub(crate) use take_back::Back;
pub use verdict::{Checked, Outcome, Verdict, Weight};

use crate::capture::Capture;
use crate::objects::Objects;
use crate::part::{Part, Subject};
use crate::path::TreePath;
use crate::restore::PartChange;
use crate::scan::{Progress, Sink};
use crate::scope::Scope;
use crate::snapshot::{Note, Snapshot, SnapshotId};
use crate::state::{State, Workspace};
use crate::tree::Change;
use crate::{Changed, StateError};
use act::Reached;
use authority::Reach;
use place::{LastLink, Place, Target};

/// A change that somebody wants.
#[derive(Clone)]
pub struct Mutation<'a> {
    /// The checkpoint that allows it; the beginning of its id is enough.
    pub checkpoint: &'a str,
    /// What is to be done, in order; all of it or nothing.
    pub steps: Vec<Step>,
    /// What relative paths are relative to.
    pub here: &'a Path,
    /// The targets that are databases and states, by how they are given.
    pub subjects: BTreeMap<String, Subject>,
    /// A line for the shell that must succeed.
    pub check: Option<&'a str>,
    /// How long that may take.
    pub check_limit: Duration,
    /// Whether a change beside the targets is a failure.
    pub beside: Beside,
    /// What becomes of a change that does not hold.
    pub failed: FailedCheck,
    /// Who is asked for leave, once it is known that the change could be made.
    pub leave: Option<&'a dyn AskLeave>,
    /// The keys by which sensitive files outlive its programs.
    pub sealing: Sealing<'a>,
}

impl Mutation<'_> {
    /// Whether a program runs, which may do anything.
    fn runs_program(&self) -> bool {
        self.check.is_some() || self.steps.iter().any(Step::is_command)
    }
}

/// Gives leave to make a change, or refuses it. Nothing has been touched then.
pub trait AskLeave {
    /// Asks, for a change that this checkpoint covers.
    fn ask(&self, covering: &Covering) -> Result<Given, StateError>;

    /// The paths that commands are known to change, as they lead now: absolute, with links
    /// resolved.
    fn changed_paths(&self) -> Result<Vec<PathBuf>, StateError>;

    /// Starts a program of a change that has leave: behind the fence, unless the leave is to
    /// run it without one.
    fn start(&self, command: Command) -> std::io::Result<Child>;

    /// Whether a supervisor has kept what every program wrote that was started.
    fn has_seen_writes(&self) -> bool {
        false
    }
}

/// What a change could be taken back to.
#[derive(Clone, Debug)]
pub struct Covering {
    /// The checkpoint that allows it.
    pub checkpoint: Snapshot,
    /// The state before is captured in this scope.
    pub scope: Scope,
    /// What is there now and in no checkpoint, not even encrypted.
    pub not_covered: Vec<Note>,
}

/// Leave that was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The name of the action.
    pub action: ActionId,
    /// Its session.
    pub session: Option<String>,
    /// What was decided: `allow`, or `approved` by a person.
    pub decision: String,
    /// The variables of programs that are started; without them, all of ours.
    pub variables: Option<Vec<(OsString, OsString)>>,
}

/// What a change beside the targets means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// It is told.
    Tell,
    /// It makes the whole change a failure.
    Fail,
}

/// What becomes of a change that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedCheck {
    /// It is rolled back.
    RollBack,
    /// It stays, and is told.
    Keep,
}

/// A target, before or after.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which.
    pub target: String,
    /// What it was; null for nothing.
    pub state: Value,
}

/// A value in a structured file that changed.
#[derive(Clone, Debug)]
pub struct Structured {
    /// The file.
    pub path: TreePath,
    /// Where in it, as a JSON pointer.
    pub pointer: String,
}

/// A change that was made and kept.
#[derive(Clone, Debug)]
pub struct Mutated {
    /// The action that this is in the log.
    pub action: ActionId,
    /// The checkpoint that allowed it.
    pub checkpoint: SnapshotId,
    /// The state before: the checkpoint, unless something had happened since.
    pub before: Snapshot,
    /// The state after.
    pub after: SnapshotId,
    /// The targets before.
    pub previous: Vec<Seen>,
    /// When that was read.
    pub captured: Timestamp,
    /// The targets after, read back.
    pub new: Vec<Seen>,
    /// When that was read.
    pub verified: Timestamp,
    /// Every path that it changed.
    pub changes: Vec<Change>,
    /// Databases and states that it changed.
    pub parts: Vec<PartChange>,
    /// What changed besides the targets. Of steps on files it is the work of others, and none of
    /// the change's own.
    pub beside: Vec<TreePath>,
    /// Sensitive files that it changed, which the state before holds encrypted.
    pub secrets: Vec<Changed>,
    /// What was changed or is gone that no checkpoint holds.
    pub not_restorable: Vec<Note>,
    /// What was checked.
    pub verdict: Verdict,
    /// Where text was touched: `path:line`.
    pub lines: Vec<String>,
    /// What changed in structured files.
    pub structure: Vec<Structured>,
    /// What a command printed.
    pub output: Option<String>,
    /// What else is to be known.
    pub warnings: Vec<String>,
}

/// A step whose target was found.
struct Found {
    step: Step,
    target: Target,
    /// Where a `move` leads.
    other: Option<Place>,
}

/// Everything that is known before anything is done.
struct Secured {
    checkpoint: Snapshot,
    scope: Scope,
    before: Snapshot,
    capture: Capture,
    steps: Vec<Found>,
    action: ActionId,
    given: Given,
    previous: Vec<Seen>,
    captured: Timestamp,
}

impl Secured {
    /// Whether a step is a command: nobody can tell what of all that changed is its work.
    fn has_command(&self) -> bool {
        self.steps.iter().any(|found| found.step.is_command())
    }
}

impl State {
    /// Makes a change, or nothing.
    pub fn mutate(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        progress: &Progress,
    ) -> Result<Mutated, Box<Failed>> {
        let workspace = &workspace.without(mutation.subjects.values())?;
        let _held = self.hold_alone(&workspace.root)?;
        self.refuse_unfinished(&workspace.root)?;
        let objects = self.objects()?;
        let secured = self.secure(workspace, mutation, &objects, progress);
        let secured = secured.inspect_err(|error| {
            let given = mutation.steps.iter().map(|step| step.target.clone());
            let targets: Vec<String> = given.flatten().collect();
            self.log_refusal(workspace, (mutation.checkpoint, None), &targets, error);
        })?;
        let failed = |error: StateError, verdict: Option<Verdict>| {
            Box::new(Failed {
                error,
                previous: secured.previous.clone(),
                captured: Some(secured.captured),
                verdict,
                action: Some(secured.action.clone()),
                before: Some(secured.before.clone()),
                aftermath: Aftermath::default(),
            })
        };
        // What does not apply to files shows here, before anything is touched.
        let first = self
            .first_picture(workspace, &secured, &objects)
            .map_err(|error| {
                let told = self.record_refusal(workspace, &secured, &error);
                failed(told.err().unwrap_or(error), None)
            })?;
        let mut journal = self
            .begin(workspace, mutation, &secured, &first)
            .map_err(|error| failed(error, None))?;
        fault::point("mutate.begun");
        let mut reached = Reached::default();
        let acted = self.act(
            workspace,
            mutation,
            (&secured, &objects),
            first,
            &journal,
            &mut reached,
        );
        fault::point("mutate.acted");
        let ended = acted
            .map_err(|error| (error, None))
            .and_then(|acted| self.conclude(workspace, mutation, &secured, &objects, acted))
            .and_then(|concluded| {
                let kept = self.keep(workspace, &secured, &objects, concluded, &journal);
                kept.map_err(|error| (error, None))
            });
        ended.map_err(|(error, verdict)| {
            let parts = &mut journal.record.parts;
            parts.retain(|part| reached.has(&part.subject));
            let by = (&secured, &objects);
            match self.take_back(workspace, mutation, by, journal, &reached, &error, progress) {
                Ok(aftermath) => {
                    let mut failed = failed(error.still_there(&aftermath), verdict);
                    failed.aftermath = aftermath;
                    failed
                }
                Err(error) => failed(error, verdict),
            }
        })
    }

    /// Judges the authority, finds the targets, and keeps what is there now.
    fn secure(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        objects: &Objects,
        progress: &Progress,
    ) -> Result<Secured, StateError> {
        let checkpoint = self.authority(workspace, mutation.checkpoint)?;
        let steps = self.targets(workspace, mutation)?;
        let has_command = steps.iter().any(|found| found.step.is_command());
        // A command may change anything in the workspace, whatever the checkpoint is of.
        let scope = match has_command {
            true => Scope::everything(),
            false => Scope::stored(&checkpoint.record.scope)?,
        };
        let writer = objects.writer();
        let capture = {
            let sink = Sink::Store(&writer);
            self.look(workspace, &scope, objects, &sink, progress)?
        };
        for found in &steps {
            let reach = Reach::of(&found.step.operation);
            authority::covers(&checkpoint, &capture, &found.target, reach)?;
            if let Some(other) = &found.other {
                let other = Target::Place(other.clone());
                authority::covers(&checkpoint, &capture, &other, Reach::Itself)?;
            }
        }
        if let Some(leave) = mutation.leave {
            let changed = leave.changed_paths()?;
            authority::covers_paths(workspace, &checkpoint, &capture, &changed)?;
        }
        // A command or a check may reach every database and state that the checkpoint covers;
        // operations on files reach none, and need not wait for them.
        let known = checkpoint.record.parts.iter().map(|part| &part.subject);
        let known = known.filter(|_| has_command || mutation.check.is_some());
        let targets = steps.iter().filter_map(|found| match &found.target {
            Target::Part(subject) => Some(subject),
            Target::Place(_) => None,
        });
        let mut parts: Vec<Part> = Vec::new();
        for subject in known.chain(targets) {
            if !parts.iter().any(|part| part.subject == *subject) {
                parts.push(self.capture_part(workspace, subject, &writer, &mut Vec::new())?);
            }
        }
        let grown = writer.finish()?;
        let sealed = match mutation.runs_program() {
            true => self.seal_before(workspace, mutation, &checkpoint, &capture, objects)?,
            false => Vec::new(),
        };
        let captured = self.now();
        let reader = objects.reader();
        if let Err(error) = authority::refuse_unrestorable(&reader, &checkpoint, &capture, &steps) {
            objects.heal()?; // so that the next checkpoint stores anew what cannot be read
            return Err(error);
        }
        let previous = steps
            .iter()
            .map(|found| {
                Ok(Seen {
                    target: found.target.name(),
                    state: seen::state_of(&reader, &capture.files, &parts, &found.target)?,
                })
            })
            .collect::<Result<Vec<_>, StateError>>()?;
        let given = match mutation.leave {
            Some(leave) => leave.ask(&Covering {
                checkpoint: checkpoint.clone(),
                scope: scope.clone(),
                not_covered: {
                    // What the checkpoint holds encrypted, as it is now, it gives back.
                    let held = &checkpoint.record.sealed;
                    let held: Vec<_> = sealed.iter().filter(|one| held.contains(one)).collect();
                    let mut notes = capture.not_covered();
                    notes.retain(|note| !held.iter().any(|one| one.path == note.path));
                    notes
                },
            })?,
            None => Given {
                action: ActionId::generate(&*self.around.entropy)?,
                session: None,
                decision: "allow".to_owned(),
                variables: None,
            },
        };
        let before = self.state_before(
            workspace,
            &checkpoint,
            &scope,
            &capture,
            (parts, sealed),
            grown,
            &given.action,
        )?;
        Ok(Secured {
            checkpoint,
            scope,
            before,
            capture,
            steps,
            action: given.action.clone(),
            given,
            previous,
            captured,
        })
    }

    /// The targets of all steps, found.
    fn targets(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
    ) -> Result<Vec<Found>, StateError> {
        let find = |given: &str, last| place::find(&workspace.root, mutation.here, given, last);
        mutation
            .steps
            .iter()
            .map(|step| {
                let given = step.target.as_deref().unwrap_or_default();
                let subject = mutation.subjects.get(given).cloned();
                let is_outside = matches!(
                    step.operation,
                    Operation::Sql { .. } | Operation::State { .. }
                );
                let target = match (subject, is_outside) {
                    (Some(subject), true) => Target::Part(subject),
                    (None, false) => Target::Place(find(given, LastLink::of(&step.operation))?),
                    (Some(_), false) => {
                        return Err(StateError::BadTarget {
                            target: given.to_owned(),
                            why: format!("`{}` is done to files", step.operation.name()),
                        });
                    }
                    (None, true) => {
                        return Err(StateError::BadTarget {
                            target: given.to_owned(),
                            why: match step.operation {
                                Operation::Sql { .. } => {
                                    // `users table` is how people say it.
                                    let table = given.strip_suffix(" table").unwrap_or("TABLE");
                                    format!(
                                        "`sql` needs the address of a database, with the table behind it if only that one is meant: `sqlite:app.db#{table}`, `postgres://HOST/NAME#{table}` or `env:DATABASE_URL#{table}`"
                                    )
                                }
                                _ => "`state` needs a target like `state:NAME`".to_owned(),
                            },
                        });
                    }
                };
                let other = match &step.operation {
                    Operation::Move { to, .. } => Some(find(to, LastLink::Keep)?),
                    _ => None,
                };
                Ok(Found {
                    step: step.clone(),
                    target,
                    other,
                })
            })
            .collect()
    }
}

impl Target {
    fn name(&self) -> String {
        match self {
            Self::Place(place) => place.given.clone(),
            Self::Part(subject) => subject.name(),
        }
    }
}
