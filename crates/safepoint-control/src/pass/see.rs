//! Seeing an action: its deeds, everything it names, and its canonical form.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use safepoint_authority::{
    Canonical, Coverage, Deed, Directory, Input, NamedPath, Preimage, Programs, Risk, Role,
    SideEffect, Surroundings, Tool, Touch, Understanding, Undo, Where, shell,
};
use safepoint_fence::{Strength, is_supervision_possible, strength};
use safepoint_gates::{Request, RiskTier};
use safepoint_model::{ActionId, Digest, SessionId};
use safepoint_state::{Errand, Note, Overwrites, Snapshot};
use safepoint_store::Sql;
use serde_json::json;

use super::bench::Under;
use super::confine::is_beyond;
use super::cover::{self, Cover, Fenced, Holes, Net};
use super::documents::Running;
use super::effect::{self, Moment};
use super::guarded::CONTROL;
use super::{Act, Bench, Passage, Proposal, StartsPrograms, Stdin, visit};
use crate::world::{self, Interpreter, Opened, Search};
use crate::{ControlError, kept};

/// The tool that starts an agent, and what the log calls that.
const AGENT_TOOL: &str = "run";
pub(super) const AGENT_RUN: &str = "agent.run";

/// The action that sends commits to others.
pub(super) const PUSH: &str = "git.push";

/// What would be done, seen from outside.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) deeds: Vec<Deed>,
    /// What each deed names.
    pub(super) named: Vec<Vec<NamedPath>>,
    /// The words, or the operations.
    pub(super) argv: Vec<String>,
    pub(super) tool: Tool,
    pub(super) program: Option<Opened>,
    pub(super) directory: Directory,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) shown: BTreeMap<String, String>,
    pub(super) input: Input,
    pub(super) provider: Option<String>,
    pub(super) changes_something: bool,
    /// A change under a checkpoint has one already.
    pub(super) has_checkpoint: bool,
    /// Whether it is a change of ours that starts programs.
    pub(super) programs: StartsPrograms,
    /// The line, where somebody else's shell is asked to run it.
    pub(super) line: Option<String>,
    /// What git puts other content in the place of.
    pub(super) overwrites: Vec<Overwrites>,
}

/// The same, ready to be judged.
pub(super) struct Form {
    pub(super) canonical: Canonical,
    pub(super) fingerprint: Digest,
    pub(super) coverage: Coverage,
    pub(super) requests: Vec<Request>,
    /// The actions that touch Safepoint itself.
    pub(super) forbidden: bool,
    /// The shell line, where somebody else's shell is asked to run one.
    pub(super) shell_line: Option<String>,
    /// The same, where there is a fence: it is run behind that.
    pub(super) line: Option<String>,
    /// All that it changes, where that is known.
    pub(super) claims: Option<Vec<String>>,
    /// What it relies on, with how much that is trusted.
    pub(super) trust: BTreeMap<String, (safepoint_authority::Level, u64)>,
    /// The hash of the checkpoint before it.
    pub(super) checkpoint_hash: Option<Digest>,
}

impl Form {
    /// Whether it is a shell line for which there is no fence.
    pub(super) fn lacks_fence(&self) -> bool {
        self.shell_line.is_some() && self.line.is_none()
    }
}

impl Passage<'_> {
    /// Looks at everything that a proposal names.
    pub(super) fn see(&self, proposal: &Proposal) -> Result<Seen, ControlError> {
        let search = Search::new(&proposal.variables);
        let around = Surroundings {
            programs: &search as &dyn Programs,
            directory: &proposal.directory,
            home: self.home.as_deref(),
            own: &self.own,
        };
        let (name, argv, understood, program, line) = match &proposal.act {
            Act::Command(argv) => {
                let name = argv.first().ok_or_else(|| ControlError::Proposal {
                    reason: "there is no command".to_owned(),
                })?;
                let program = world::open_program(&search, name, &proposal.directory)?;
                let understood = shell::command(argv, &around);
                ("exec", argv.clone(), understood, Some(program), None)
            }
            Act::Agent(argv) => {
                let name = argv.first().ok_or_else(|| ControlError::Proposal {
                    reason: "there is no agent to run".to_owned(),
                })?;
                let program = world::open_program(&search, name, &proposal.directory)?;
                let understood = start_of_agent(shell::command(argv, &around), &program);
                (AGENT_TOOL, argv.clone(), understood, Some(program), None)
            }
            Act::Change {
                tool,
                operations,
                understood,
                ..
            } => (*tool, operations.clone(), understood.clone(), None, None),
            Act::Tool {
                name,
                words,
                understood,
                line,
            } => (
                name.as_str(),
                words.clone(),
                understood.clone(),
                None,
                line.clone(),
            ),
        };
        let pushes = understood.deeds.iter().any(|deed| deed.action == PUSH);
        let mut variables = match &proposal.act {
            Act::Tool { .. } if !pushes => world::Variables::default(),
            _ => world::pass_on(
                &proposal.variables,
                &proposal.directory,
                &self.workspace.root,
                &self.control.trail,
            )?,
        };
        // Whoever carries it out has variables of its own.
        if matches!(proposal.act, Act::Tool { .. }) {
            variables.shown.clear();
        }
        let mut deeds = match understood.deeds.is_empty() {
            false => understood.deeds,
            true => vec![nothing_in_particular()],
        };
        let mut named = Vec::new();
        for deed in &deeds {
            let mut paths = Vec::new();
            for touch in &deed.touches {
                paths.extend(world::named(touch, &self.workspace.root)?);
            }
            self.mark_scratch(&mut paths);
            paths.sort();
            paths.dedup();
            named.push(paths);
        }
        // What a push sends, and where to, is in the repository and not in the line.
        if pushes {
            let asking = world::Asking {
                git: self.state.git(),
                directory: &proposal.directory,
                workspace: &self.workspace.root,
                variables: &variables.real,
                trail: &self.control.trail,
            };
            let pushed = asking.pushed(&understood.commands)?;
            let each = deeds.iter_mut().zip(&mut named);
            for (deed, paths) in each.filter(|(deed, _)| deed.action == PUSH) {
                deed.hosts.extend(pushed.hosts.iter().cloned());
                paths.extend(pushed.paths.iter().cloned());
            }
        }
        // The kernel holds words to what they say; without it they are no proof.
        let starts = matches!(proposal.act, Act::Command(_) | Act::Agent(_))
            || matches!(
                proposal.act,
                Act::Change {
                    programs: StartsPrograms::Yes,
                    ..
                }
            );
        if starts && !self.has_fence() && !deeds.iter().any(cover::runs_anything) {
            deeds.push(unfenced_program());
            named.push(Vec::new());
        }
        // The line was judged by its words; here links are resolved.
        for deed in self.reaches(named.iter().flatten()) {
            deeds.push(deed);
            named.push(Vec::new());
        }
        let interpreters = interpreters_of(
            &search,
            program.as_ref(),
            named.iter().flatten(),
            &proposal.directory,
        )?;
        let changes = |deed: &Deed| !matches!(deed.undo, Undo::NotNeeded);
        Ok(Seen {
            changes_something: deeds.iter().any(changes),
            deeds,
            named,
            argv,
            tool: Tool {
                name: name.to_owned(),
                executable: program.as_ref().map(|it| it.executable.clone()),
                interpreters: interpreters.into_iter().map(|it| it.executable).collect(),
            },
            program,
            directory: world::directory(&proposal.directory)?,
            variables: variables.real,
            shown: variables.shown,
            input: match &proposal.stdin {
                Stdin::Empty => Input::None {},
                Stdin::Inherited => Input::Inherited {},
                Stdin::Bytes(bytes) => Input::Bytes {
                    digest: Digest::of_parts(&[bytes]),
                    length: bytes.len() as u64,
                },
            },
            provider: proposal.provider.clone(),
            has_checkpoint: matches!(proposal.act, Act::Change { .. }),
            programs: match &proposal.act {
                Act::Change { programs, .. } => *programs,
                Act::Command(_) | Act::Agent(_) | Act::Tool { .. } => StartsPrograms::No,
            },
            line,
            overwrites: world::overwrites(&understood.commands, &proposal.directory),
        })
    }

    /// What git would overwrite of what is not in a checkpoint.
    fn overwritten(&self, seen: &Seen, net: &Net<'_>) -> Vec<Note> {
        if seen.overwrites.is_empty() {
            return Vec::new();
        }
        let not_covered = net.not_covered();
        let of = |it| self.state.overwritten(self.workspace, &not_covered, it);
        let mut all: Vec<Note> = seen.overwrites.iter().flat_map(of).collect();
        all.sort_by(|one, other| one.path.cmp(&other.path));
        all.dedup();
        all
    }

    /// Whether the kernel keeps what is started in the workspace. What names files outside gets
    /// room for them, if it is let through.
    pub(super) fn is_fenced(&self, seen: &Seen) -> Fenced {
        let reaches_beyond = seen.deeds.iter().any(|deed| is_beyond(&deed.action));
        let outside = |path: &NamedPath| !path.inside && cover::is_change(&path.role);
        let outside = seen.named.iter().flatten().any(outside);
        // What somebody else carries out is behind no fence of ours, unless we run it instead.
        let ours = seen.program.is_some() || seen.programs == StartsPrograms::Yes;
        if !ours && seen.line.is_none() && !self.is_within {
            return Fenced::No;
        }
        match &self.fence {
            // One that does not hold signals back holds writes all the same.
            Some(_) if !reaches_beyond && !outside => match strength() {
                Strength::Full => Fenced::Yes,
                // What may reach the network has effects that no checkpoint covers.
                Strength::Partial(_) if !is_supervision_possible() => Fenced::No,
                Strength::Partial(_) => Fenced::Yes,
                Strength::None(_) => Fenced::No,
            },
            _ => Fenced::No,
        }
    }

    fn has_fence(&self) -> bool {
        self.fence.is_some() && !matches!(strength(), Strength::None(_))
    }

    /// Puts what was seen into its canonical form, with what the checkpoint gives back.
    pub(super) fn form(
        &self,
        seen: &Seen,
        net: &Net<'_>,
        under: &Under,
    ) -> Result<Form, ControlError> {
        let before = net.snapshot();
        let root = &self.workspace.root;
        let holes = Holes::of(net, self.overwritten(seen, net));
        let fenced = self.is_fenced(seen);
        let mut covers: Vec<Cover> = seen
            .deeds
            .iter()
            .zip(&seen.named)
            .map(|(deed, named)| cover::of(deed, named, &holes, root, fenced))
            .collect();
        let mut total = cover::together(&covers);
        let runs_anything = seen.deeds.iter().any(cover::runs_anything);
        if fenced == Fenced::Yes && runs_anything {
            let services = self.named_services();
            let named = self.named_outside();
            let named = effect::of_targets(&named, services, Moment::Before);
            let each = seen.deeds.iter().zip(&mut covers);
            // Each call of an agent is judged by itself.
            let is_judged =
                |deed: &Deed| cover::runs_anything(deed) && seen.tool.name != AGENT_TOOL;
            for (_, cover) in each.filter(|(deed, _)| is_judged(deed)) {
                cover.add(&named);
            }
            total.add(&named);
            // An operator has answered for these: policies are not asked about them again.
            let opened = self.opened_outside(&under.session_id)?;
            total.add(&effect::of_targets(&opened, services, Moment::Before));
        }
        let total = cover::with_shared_repository(total, &seen.deeds, root, fenced);
        // Whom to trust is known where it is judged.
        let tool = &seen.tool;
        let (trust, trusted) = match self.far {
            Some(_) => (BTreeMap::new(), false),
            None => {
                let bench = self.bench()?;
                let trust = bench.trust_of(tool, seen.provider.as_deref())?;
                let trusted = bench.is_tool_trusted(tool, &trust);
                (trust, trusted)
            }
        };
        let mut paths: Vec<NamedPath> = seen.named.concat();
        paths.sort();
        paths.dedup();
        let canonical = Canonical {
            schema: Canonical::SCHEMA,
            tool: seen.tool.clone(),
            actions: seen.deeds.iter().map(|deed| deed.action.clone()).collect(),
            argv: seen.argv.clone(),
            directory: seen.directory.clone(),
            environment: seen.shown.clone(),
            hosts: seen.deeds.iter().flat_map(|it| it.hosts.clone()).collect(),
            input: seen.input.clone(),
            side_effects: effects(&seen.deeds),
            reversibility: total.reversibility,
            remainder: total.remainder.clone(),
            risk: seen
                .deeds
                .iter()
                .map(|deed| deed.risk)
                .max()
                .unwrap_or(Risk::Low),
            session_id: under.session_id.clone(),
            provider: seen.provider.clone(),
            workspace: safepoint_authority::Workspace {
                path: world::text(root)?,
            },
            policy_version: under.policy_version,
            atlases: under.atlases.clone(),
            paths,
        };
        let canonical = self.without_tokens(canonical)?;
        let mut requests = requests(seen, &covers, &canonical, trusted, fenced);
        for request in &mut requests {
            request.parameters = self.without_tokens(request.parameters.take())?;
        }
        Ok(Form {
            fingerprint: canonical.fingerprint()?,
            coverage: cover::told(
                before,
                &canonical.paths,
                (&total, &holes),
                root,
                &seen.deeds,
                fenced,
            ),
            requests,
            forbidden: canonical.actions.contains(CONTROL),
            shell_line: seen.line.clone(),
            // Every line of an agent runs behind the fence, also one that seems to read only.
            line: match self.has_fence() {
                true => seen.line.clone(),
                false => None,
            },
            claims: visit::claims(&seen.deeds, &seen.named),
            canonical,
            trust,
            checkpoint_hash: before.map(Snapshot::hash),
        })
    }

    /// The form without tokens of workspaces and servers: it is kept, and shown to others. Whoever asks
    /// brings them along again. A mark says which token it was, so that a yes to one is no
    /// yes to another.
    pub(super) fn without_tokens<T>(&self, form: T) -> Result<T, ControlError>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
    {
        let reason = |error: serde_json::Error| ControlError::Proposal {
            reason: format!("it cannot be written down exactly: {error}"),
        };
        let text = serde_json::to_string(&form).map_err(reason)?;
        let clean = self.control.trail.without_tokens(text.clone());
        match clean == text {
            true => Ok(form),
            false => serde_json::from_str(&clean).map_err(reason),
        }
    }
}

impl Bench<'_> {
    /// The action that waits or is permitted for the same wish; a new one otherwise.
    pub(super) fn action_of(
        &self,
        wish: &str,
        session: &SessionId,
        variables: Option<&BTreeMap<String, String>>,
    ) -> Result<ActionId, ControlError> {
        let store = self.control.trail.store();
        let mine = self.lineage(session)?;
        let mut holds: Vec<safepoint_authority::Hold> = store.read(|sql| kept::about(sql, wish))?;
        let mut permits: Vec<safepoint_authority::Permit> =
            store.read(|sql| kept::about(sql, wish))?;
        // With other variables it is another action, where they are known.
        if let Some(variables) = variables {
            holds.retain(|hold| hold.canonical.environment == *variables);
            permits.retain(|permit| holds.iter().any(|hold| hold.hold_id == permit.hold_id));
        }
        let waiting = holds
            .iter()
            .filter(|hold| kept::Kept::is_open(*hold))
            .find(|hold| mine.contains(&hold.canonical.session_id))
            .map(|hold| hold.action_id.clone());
        let issued = permits
            .iter()
            .filter(|permit| permit.state == safepoint_authority::PermitState::Issued {})
            .find(|permit| mine.contains(&permit.session_id))
            .map(|permit| permit.action_id.clone());
        for action in issued.into_iter().chain(waiting) {
            // What was allowed meanwhile may have been done under it: an action is done once.
            if !store.read(|sql| is_used(sql, &action))? {
                return Ok(action);
            }
        }
        Ok(ActionId::generate(&*self.control.around.entropy)?)
    }
}

/// What is done, for the log.
pub(super) fn errand(
    form: &Form,
    action: &ActionId,
    session: &SessionId,
    decision: &str,
) -> Errand {
    let names: Vec<&str> = form.canonical.actions.iter().map(String::as_str).collect();
    Errand {
        id: action.clone(),
        session: Some(session.to_string()),
        action: match form.canonical.tool.name == AGENT_TOOL {
            true => AGENT_RUN.to_owned(),
            false => names.join(" "),
        },
        summary: form.canonical.summary(),
        decision: decision.to_owned(),
        left_by: None,
    }
}

/// Whether an action has been begun.
pub(super) fn is_used(sql: &mut dyn Sql, action: &ActionId) -> Result<bool, ControlError> {
    Ok(kept::get::<Running>(sql, action.as_str())?.is_some())
}

/// The start of an agent: a program that does what it likes behind the fence, and whose calls
/// are judged one by one. Of its words only those count that touch Safepoint itself.
fn start_of_agent(understood: Understanding, program: &Opened) -> Understanding {
    let start = Deed {
        action: "process.exec".to_owned(),
        effects: BTreeSet::from([SideEffect::Exec]),
        risk: Risk::Low,
        undo: Undo::Workspace,
        touches: vec![Touch {
            place: Where::Exact(program.path.clone()),
            role: Role::Execute,
        }],
        hosts: BTreeSet::new(),
        because: "an agent is started".to_owned(),
    };
    let deeds = understood.deeds.into_iter();
    let control = deeds.filter(|deed| deed.action == CONTROL);
    Understanding {
        commands: understood.commands,
        deeds: std::iter::once(start).chain(control).collect(),
        assigned: understood.assigned,
    }
}

/// The interpreters of the scripts that an action starts: another one in the place of an
/// interpreter is another program.
pub(super) fn interpreters_of<'a>(
    search: &Search,
    program: Option<&Opened>,
    named: impl Iterator<Item = &'a NamedPath>,
    directory: &Path,
) -> Result<Vec<Interpreter>, ControlError> {
    let scripts = program.filter(|it| it.is_script).map(|it| it.path.clone());
    let is_file = |preimage: &Preimage| {
        matches!(
            preimage,
            Preimage::File { .. }
                | Preimage::Link {
                    digest: Some(_),
                    ..
                }
        )
    };
    let executed = named.filter(|path| path.role == "execute" && is_file(&path.preimage));
    let scripts = scripts
        .into_iter()
        .chain(executed.map(|it| PathBuf::from(&it.path)));
    let mut all: Vec<Interpreter> = Vec::new();
    for script in scripts {
        for interpreter in world::interpreters(search, &script, directory)? {
            if !all.contains(&interpreter) {
                all.push(interpreter);
            }
        }
    }
    Ok(all)
}

/// A program without a fence: settings, variables and files that it reads can make it do anything,
/// whatever it is called for.
fn unfenced_program() -> Deed {
    Deed {
        action: "process.exec".to_owned(),
        effects: BTreeSet::from([SideEffect::Exec]),
        risk: Risk::Medium,
        undo: Undo::Workspace,
        touches: Vec::new(),
        hosts: BTreeSet::new(),
        because: "without a fence a program can do anything, whatever its words say".to_owned(),
    }
}

/// A program that the table knows to do nothing, such as `true`.
fn nothing_in_particular() -> Deed {
    Deed {
        action: "process.exec".to_owned(),
        effects: BTreeSet::from([SideEffect::Exec]),
        risk: Risk::Low,
        undo: Undo::NotNeeded,
        touches: Vec::new(),
        hosts: BTreeSet::new(),
        because: "it changes nothing".to_owned(),
    }
}

pub(super) fn effects(deeds: &[Deed]) -> BTreeSet<SideEffect> {
    deeds.iter().flat_map(|deed| deed.effects.clone()).collect()
}

/// One request for each action there is. Several deeds of one action are one request, which
/// knows only what is so of all of them.
fn requests(
    seen: &Seen,
    covers: &[Cover],
    canonical: &Canonical,
    trusted: bool,
    fenced: Fenced,
) -> Vec<Request> {
    let mut by_action: BTreeMap<&str, Request> = BTreeMap::new();
    for ((deed, cover), named) in seen.deeds.iter().zip(covers).zip(&seen.named) {
        let known = cover::conditions(deed, cover, trusted, fenced);
        let risk = Some(tier(deed.risk));
        let paths: Vec<&str> = named.iter().map(|path| path.path.as_str()).collect();
        by_action
            .entry(&deed.action)
            .and_modify(|request| {
                request.risk = request.risk.max(risk);
                request.conditions = &request.conditions & &known;
            })
            .or_insert_with(|| Request {
                action: deed.action.clone(),
                parameters: json!({
                    "command": canonical.summary(),
                    "argv": canonical.argv,
                    "directory": canonical.directory.path,
                    "paths": paths,
                    "hosts": deed.hosts,
                }),
                risk,
                conditions: known,
            });
    }
    by_action.into_values().collect()
}

fn tier(risk: Risk) -> RiskTier {
    match risk {
        Risk::Low => RiskTier::Low,
        Risk::Medium => RiskTier::Medium,
        Risk::High => RiskTier::High,
        Risk::Critical => RiskTier::Critical,
    }
}
