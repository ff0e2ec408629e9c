//! `safepoint workspace integrate`: the work of a workspace is taken over.
//!
//! Where files are changed it is an action: it passes the gates, has a checkpoint before it,
//! and `safepoint undo` takes it back.

use std::collections::BTreeMap;

use safepoint_control::pass::{Answer, Denied, Leave, Stdin, Takeover};
use safepoint_model::{ActionId, Exit, RecordId, WorkspaceId};
use safepoint_progress::integrate::{
    ConflictType, Finding, Ground, Integration, Mode, Outcome, Step, Strategy, Wish, changed_rules,
};
use safepoint_progress::record::Record;
use safepoint_progress::{Place, Progress};
use safepoint_state::path::TreePath;
use safepoint_state::tree::Change;
use safepoint_state::{Errand, Incoming, Resolution};

use super::checkpoint::not_covered;
use super::integration::{IntegrationReply, print};
use super::{open, sides};
use crate::commands::passing::{self, DenialReply, Flags, Room};
use crate::commands::{exec, operator};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemEntropy;

/// Arguments of `workspace integrate`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace whose work is taken over; the beginning of its id is enough
    workspace: String,
    /// How closely is looked: `direct`, `layered` or `evaluated` [default: layered; evaluated for a salvage]
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<Strategy>,
    /// Use what can be used of a workspace that has failed
    #[arg(long)]
    salvage: bool,
    /// Which checkpoint to salvage; without it the newest final one, or else the newest
    #[arg(long, value_name = "ID", requires = "salvage")]
    checkpoint: Option<RecordId>,
    /// Something that only a mind finds, with `evaluated`: `semantic_contradiction=TEXT`, `dependency_violation=TEXT` …
    #[arg(long, value_name = "TYPE=TEXT", value_parser = finding)]
    finding: Vec<Finding>,
    #[command(flatten)]
    asking: AskingFlags,
}

/// Who is asked where the rules want a person
#[derive(Debug, clap::Args)]
pub(crate) struct AskingFlags {
    /// Never open the operator's terminal: what needs a person is denied
    #[arg(long)]
    no_tui: bool,
    #[command(flatten)]
    who: operator::Who,
}

fn finding(text: &str) -> Result<Finding, String> {
    let (kind, description) = text
        .split_once('=')
        .ok_or_else(|| "write it like `semantic_contradiction=TEXT`".to_owned())?;
    let kind: ConflictType = kind
        .parse()
        .map_err(|error: safepoint_progress::UnknownWord| error.to_string())?;
    Ok(Finding {
        kind,
        description: description.to_owned(),
    })
}

/// What came of the question whether it may be done.
pub(super) enum Asked {
    Leave(Box<Leave>),
    Denied(Box<Denied>),
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let mode = match arguments.salvage {
        true => Mode::Salvage,
        false => Mode::Normal,
    };
    let by_default = match mode {
        Mode::Normal => Strategy::Layered,
        Mode::Salvage => Strategy::Evaluated,
    };
    let wish = Wish {
        source: &id,
        mode,
        strategy: arguments.strategy.unwrap_or(by_default),
        record: arguments.checkpoint.as_ref(),
        findings: &arguments.finding,
    };
    if let Some(concluded) = end_cut_off(context, &progress, &id)? {
        let over = Over::open(context, progress, &id, &arguments.asking)?;
        let reply = over.reply(context, concluded)?;
        return print(context, &reply);
    }
    let over = Over::open(context, progress, &id, &arguments.asking)?;
    let looked = over.chosen(&wish).and_then(|record| {
        let previewed = over.preview(record.as_ref(), wish.strategy, &BTreeMap::new());
        previewed.map(|(changes, clashes)| (record, changes, clashes))
    });
    let (record, changes, clashes) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            // If it is because something is not what was written, that is recorded.
            let state = over.place.as_ref().map(|_| &over.room.state);
            over.progress.prove_chosen(&wish, state, &over.by)?;
            return Err(error);
        }
    };
    // What is refused or does not fit changes nothing here, and needs no leave.
    let Some(record) = record.filter(|_| !clashes && wish.findings.is_empty()) else {
        let errand = over.nothing_done()?;
        let step = over.prepare(&wish, &errand)?;
        return over.show(context, ended(step));
    };
    let takeover = Takeover {
        source: &id,
        checkpoint: &record.id,
        mode: mode.as_str(),
        strategy: wish.strategy.as_str(),
        changes: &changes,
    };
    let leave = match over.ask(context, &takeover, &arguments.asking)? {
        Asked::Leave(leave) => leave,
        Asked::Denied(denied) => return deny(context, *denied),
    };
    let step = over.prepare(&wish, leave.errand());
    over.carry_out(context, &leave, step)
}

/// Ends integrations in the way whose process is gone. Gives this one if it had been carried
/// out already, so that only the end of it was missing.
fn end_cut_off(
    context: &mut Context,
    progress: &Progress,
    id: &WorkspaceId,
) -> Result<Option<Integration>, CliError> {
    if progress.integrations_cut_off()?.is_empty() {
        return Ok(None);
    }
    let (state, by) = (context.state()?, context.actor()?);
    let outcome = progress.end_cut_off_before(id, &state, &by)?;
    for (one, error) in &outcome.failed {
        let source = &one.source;
        let why =
            format!("the integration of `{source}` was cut off and could not be ended: {error}");
        context.console.warn(&why);
    }
    let mut own = None;
    for one in outcome.ended {
        let became = match one.result {
            Some(Outcome::Success | Outcome::ConflictResolved) => "is integrated",
            Some(Outcome::Aborted) | None => "can be integrated again",
        };
        let source = &one.source;
        let said =
            format!("an integration of `{source}` that was cut off has been ended: it {became}");
        context.console.say(&said);
        let is_done = one.result != Some(Outcome::Aborted);
        own = own.or((one.source == *id && is_done).then_some(one));
    }
    Ok(own)
}

/// The directory that work is taken over into, and everything that it takes.
pub(super) struct Over {
    pub(super) progress: Progress,
    place: Option<Place>,
    room: Room,
    rules: Vec<TreePath>,
    flags: Flags,
    pub(super) by: safepoint_trail::Actor,
}

impl Over {
    pub(super) fn open(
        context: &mut Context,
        progress: Progress,
        id: &WorkspaceId,
        asking: &AskingFlags,
    ) -> Result<Self, CliError> {
        let place = progress.place(id)?;
        if let Some(place) = &place {
            context.move_to_root(&progress.brought_to(place)?)?;
        }
        let mut flags = Flags::of_session(None);
        flags.no_tui = asking.no_tui;
        let room = Room::open(context, &flags)?;
        Ok(Self {
            rules: room.rules(),
            room,
            by: context.actor()?,
            progress,
            place,
            flags,
        })
    }

    pub(super) fn ground<'a>(&'a self, errand: &'a Errand) -> Ground<'a> {
        Ground {
            state: &self.room.state,
            origin: &self.room.workspace,
            errand,
            rules: &self.rules,
        }
    }

    /// The checkpoint that would be taken over. The rules choose it again, and may refuse it.
    fn chosen(&self, wish: &Wish<'_>) -> Result<Option<Record>, CliError> {
        let newest = self.progress.newest_final(wish.source)?;
        Ok(match (wish.mode, wish.record) {
            (Mode::Normal, _) => newest,
            (Mode::Salvage, Some(wanted)) => self.progress.record_of(wish.source, wanted)?,
            (Mode::Salvage, None) => match newest {
                Some(newest) => Some(newest),
                None => self.progress.head(wish.source)?,
            },
        })
    }

    /// What would be changed, and whether something does not fit.
    pub(super) fn preview(
        &self,
        record: Option<&Record>,
        strategy: Strategy,
        resolutions: &BTreeMap<TreePath, Resolution>,
    ) -> Result<(Vec<Change>, bool), CliError> {
        let snapshot = record.and_then(|record| record.snapshot.as_ref());
        let reads_only = record.is_some_and(|record| record.kind == "observation");
        let (Some(place), Some(snapshot), false) = (&self.place, snapshot, reads_only) else {
            return Ok((Vec::new(), false));
        };
        let state = &self.room.state;
        let errand = self.nothing_done()?;
        let incoming = Incoming {
            base: &state.find(place.base.as_str())?,
            work: &state.find(snapshot.as_str())?,
            errand: &errand,
            resolutions,
            shown: &BTreeMap::new(),
        };
        let arrival = state.arrival(&self.room.workspace, &incoming, &self.room.progress)?;
        let seen = |(path, _): &(TreePath, _)| !resolutions.contains_key(path);
        let looked_at = strategy == Strategy::Evaluated && arrival.merged.iter().any(seen);
        let rules = !changed_rules(&arrival, &self.rules).is_empty();
        let clashes = !arrival.conflicts.is_empty() || looked_at || rules;
        Ok((arrival.changes, clashes))
    }

    /// An action that stands for none: nothing is done under it.
    pub(super) fn nothing_done(&self) -> Result<Errand, CliError> {
        let id =
            ActionId::generate(&SystemEntropy).map_err(safepoint_progress::ProgressError::from)?;
        Ok(Errand {
            id,
            session: None,
            action: safepoint_control::pass::INTEGRATE.to_owned(),
            summary: String::new(),
            decision: String::new(),
            left_by: None,
        })
    }

    fn prepare(&self, wish: &Wish<'_>, errand: &Errand) -> Result<Step, CliError> {
        let ground = self.ground(errand);
        let ground = self.place.as_ref().map(|_| &ground);
        Ok(self.progress.prepare(wish, ground, &self.by)?)
    }

    pub(super) fn ask(
        &self,
        context: &Context,
        takeover: &Takeover<'_>,
        asking: &AskingFlags,
    ) -> Result<Asked, CliError> {
        let act = self.room.passage().integration(takeover);
        let proposal = self
            .room
            .proposal(context, &self.flags, act, Stdin::Empty)?;
        let answer = passing::ask(context, &self.room, &self.flags, &asking.who, &proposal)?;
        Ok(match answer {
            Answer::Leave(leave) => Asked::Leave(leave),
            Answer::Denied(denied) => Asked::Denied(denied),
        })
    }

    /// Changes the directory under the leave, and says how that ended.
    pub(super) fn carry_out(
        &self,
        context: &mut Context,
        leave: &Leave,
        step: Result<Step, CliError>,
    ) -> Result<Exit, CliError> {
        let (mut changes, mut warnings) = (Vec::new(), Vec::new());
        let brought = step.and_then(|step| {
            let Step::Bring(bringing) = step else {
                return Ok(step);
            };
            self.progress.still_wanted(&bringing, &self.by)?;
            let state = &self.room.state;
            let incoming = bringing.incoming();
            let done = context.console.watching(&self.room.progress, || {
                state.bring(&self.room.workspace, &incoming, &self.room.progress)
            });
            let one = match done {
                Ok(restored) => {
                    for warning in &restored.warnings {
                        context.console.warn(warning);
                    }
                    (changes, warnings) = (restored.changes, restored.warnings);
                    self.progress.conclude(&bringing.integration, &self.by)?
                }
                Err(error) => self
                    .progress
                    .fell_through(state, &bringing, error, &self.by)?,
            };
            Ok(match one.result {
                Some(_) => Step::Done(one),
                None => Step::Conflicted(one),
            })
        });
        let outcome = match &brought {
            Ok(Step::Done(_)) => "ok",
            _ => "error",
        };
        self.room.passage().conclude_change(leave, outcome)?;
        let one = ended(brought?);
        if one.result.is_none() {
            return self.show(context, one);
        }
        let reply = self.reply(context, one)?;
        let reply = reply.with_changes(leave.action_id.clone(), &changes, warnings);
        print(context, &reply)
    }

    /// Prints how far it is, with both sides of what is open.
    pub(super) fn show(&self, context: &mut Context, one: Integration) -> Result<Exit, CliError> {
        let errand = self.nothing_done()?;
        let ground = self.ground(&errand);
        let ground = self.place.as_ref().map(|_| &ground);
        let sides = sides::of(&self.progress, ground, &one);
        let reply = self.reply(context, one)?.with_sides(sides);
        print(context, &reply)
    }

    /// How far it is, with what the record does not hold.
    fn reply(&self, context: &mut Context, one: Integration) -> Result<IntegrationReply, CliError> {
        let record = self.progress.record_of(&one.source, &one.checkpoint_ref)?;
        let left = match &record {
            Some(record) => not_covered(context, self.place.as_ref(), record)?,
            None => Vec::new(),
        };
        Ok(IntegrationReply::of(one).without(left))
    }

    /// The same for one conflict alone.
    pub(super) fn show_one(
        &self,
        context: &mut Context,
        mut one: Integration,
        name: &str,
    ) -> Result<Exit, CliError> {
        one.conflicts.retain(|conflict| conflict.id == name);
        match one.conflicts.is_empty() {
            false => self.show(context, one),
            true => Err(CliError::NotFound {
                what: "conflict",
                name: safepoint_model::text::line(name).text,
            }),
        }
    }
}

/// The integration that a step came to.
pub(super) fn ended(step: Step) -> Integration {
    match step {
        Step::Done(one) | Step::Conflicted(one) => one,
        // Nobody brings what was not asked for.
        Step::Bring(bringing) => bringing.integration.clone(),
    }
}

pub(super) fn deny(context: &mut Context, denied: Denied) -> Result<Exit, CliError> {
    let reply = DenialReply {
        denial: denied.denial,
        session_id: Some(denied.session_id.to_string()),
        resolution: denied.resolution,
    };
    exec::deny(context, &reply)
}
