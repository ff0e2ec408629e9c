//! What `exec`, `run` and `mutate` have in common: how a proposal is made, how a denial is told.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use safepoint_authority::{Denial, DenialCode, HoldState, SideEffect};
use safepoint_control::pass::{
    Act, Answer, Asker, DefaultHosts, Denied, Far, HoldWait, LateWork, Mode, Passage, Proposal,
    Stdin, session_ended,
};
use safepoint_control::{AtlasFile, Control};
use safepoint_fence::{
    CachePlan, Caches, Fence, GuardedNames, Listing, NetworkAccess, Supervision, Terminals,
    shared_caches,
};
use safepoint_gates::Resolution;
use safepoint_model::{Span, WorkspaceId, text};
use safepoint_state::path::TreePath;
use safepoint_state::{Progress, State, Workspace};
use schemars::JsonSchema;
use serde::Serialize;

use super::session::deliver::{self, Delivery};
use super::waiting::{self, Asked, Next, StopSignals};
use super::{operator, tui};
use crate::cli::Global;
use crate::console::{BAD, FAINT, HINT, STRONG};
use crate::context::{Context, MissingDirectory, is_started_by_us, real_path};
use crate::error::CliError;
use crate::far::Server;
use crate::settings::{CheckpointMode, Reachable};

/// Flags of everything that passes
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// When a person is asked: before everything, where the rules say so, or never
    #[arg(long, value_name = "MODE", value_parser = mode)]
    checkpoint: Option<CheckpointMode>,
    /// Never open the operator's terminal: what needs a person is denied
    #[arg(long)]
    pub(crate) no_tui: bool,
    /// Only tell what would be said: nothing is run, and nothing is written
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Wait so long for an operator elsewhere to decide, such as `5m`
    #[arg(long, value_name = "TIME")]
    pub(crate) wait: Option<Span>,
    /// Stop it after so long, such as `10m`
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) objective: Option<String>,
    /// The session it belongs to; without one, that of the workspace
    #[arg(long, value_name = "ID", env = "SAFEPOINT_SESSION")]
    session: Option<String>,
    /// Whose model or service proposes it
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The only effects it may have: read, write, exec, network, secret, delegate
    #[arg(long, value_name = "EFFECT", value_delimiter = ',', value_parser = effect)]
    declare: Vec<SideEffect>,
    /// Use this permit
    #[arg(long, value_name = "ID")]
    permit: Option<String>,
    /// Do not fence the command in: it may write outside the workspace
    #[arg(long)]
    no_fence: bool,
}

fn mode(text: &str) -> Result<CheckpointMode, String> {
    match text {
        "always" => Ok(CheckpointMode::Always),
        "policy" => Ok(CheckpointMode::Policy),
        "never" => Ok(CheckpointMode::Never),
        _ => Err("it is `always`, `policy` or `never`".to_owned()),
    }
}

fn effect(text: &str) -> Result<SideEffect, String> {
    const ALL: [SideEffect; 6] = [
        SideEffect::Read,
        SideEffect::Write,
        SideEffect::Exec,
        SideEffect::Network,
        SideEffect::Secret,
        SideEffect::Delegate,
    ];
    let found = ALL.into_iter().find(|effect| effect.as_str() == text);
    found.ok_or_else(|| {
        "it is `read`, `write`, `exec`, `network`, `secret` or `delegate`".to_owned()
    })
}

/// Everything that the passage borrows.
pub(crate) struct Room {
    pub(crate) control: Control,
    pub(crate) state: State,
    pub(crate) workspace: Workspace,
    pub(crate) progress: Progress,
    atlases: Vec<AtlasFile>,
    own: Vec<PathBuf>,
    home: Option<PathBuf>,
    hold_timeout: Span,
    default_hosts: DefaultHosts,
    asker: Asker,
    fence: Option<Fence>,
    is_within: bool,
    place: Option<WorkspaceId>,
    far: Option<Server>,
    delivery: Delivery,
    /// How long programs behind the fence wait for a person.
    hold_wait: Duration,
}

impl Room {
    pub(crate) fn open(context: &mut Context, flags: &Flags) -> Result<Self, CliError> {
        let workspace = context.workspace()?;
        let far = Server::of(context)?;
        let named = context.atlases()?;
        let atlases = match (named.is_empty(), &far) {
            // A server has rules of its own.
            (true, Some(_)) => Vec::new(),
            _ => read_atlases(&named)?,
        };
        let (control, state) = context.control_and_state()?;
        let place = context.place_of(&workspace.root, control.trail())?;
        Ok(Self {
            control,
            state,
            own: context.guarded_places(&workspace.root),
            place,
            home: crate::world::home_of_user(),
            hold_timeout: context.settings.hold_timeout.value,
            default_hosts: context.settings.reachable.defaults,
            asker: match context.speaks_for_agent() {
                true => Asker::Agent,
                false => Asker::Person,
            },
            fence: match flags.no_fence {
                true => None,
                false => Some(fence(context, &workspace)),
            },
            workspace,
            is_within: is_started_by_us(&context.environment),
            progress: Progress::default(),
            atlases,
            far,
            delivery: Delivery::of(context),
            hold_wait: flags.wait.map_or(Duration::ZERO, duration),
        })
    }

    /// That of a client's session. One that goes elsewhere takes its rules, its record and its way
    /// back with it.
    pub(crate) fn of_client(
        context: &mut Context,
        flags: &Flags,
        client: &str,
        session: &str,
    ) -> Result<Self, CliError> {
        if !context.is_root_pinned() {
            let control = context.control()?;
            let home = match control.home_of(client, session)? {
                Some(home) => Some(home),
                // Where a client has worked before stays a workspace without what marked it.
                None => {
                    let found = context.workspace()?.root;
                    control.visited_below(&found, &real_path(&context.directory))?
                }
            };
            if let Some(home) = home {
                context.pin_root(&home)?;
            }
        }
        let mut room = Self::open(context, flags)?;
        // What `run` keeps calls us through its broker, and is an agent.
        if !context.is_agent() {
            room.asker = Asker::Client;
        }
        Ok(room)
    }

    /// That of a command that was typed. A person may do without a fence; an agent may not.
    pub(crate) fn of_command(context: &mut Context, flags: &Flags) -> Result<Self, CliError> {
        let room = Self::open(context, flags)?;
        let is_agent = || Ok(operator::is_marked(context) || room.control.is_within_an_action()?);
        match flags.no_fence && is_agent().map_err(CliError::Control)? {
            true => Err(CliError::Invalid {
                message: "what an agent runs stays behind the fence".into(),
                suggestion: "leave out `--no-fence`; what is refused inside becomes a question to a person",
            }),
            false => Ok(room),
        }
    }

    pub(crate) fn passage(&self) -> Passage<'_> {
        Passage {
            control: &self.control,
            state: &self.state,
            workspace: &self.workspace,
            atlases: self.atlases.clone(),
            own: self.own.clone(),
            home: self.home.clone(),
            hold_timeout: self.hold_timeout,
            fence: self.fence.clone(),
            default_hosts: self.default_hosts,
            asker: self.asker,
            is_within: self.is_within,
            place: self.place.clone(),
            progress: &self.progress,
            far: self.far.as_ref().map(|far| far as &dyn Far),
            hold_wait: Some(HoldWait {
                limit: self.hold_wait,
                listener: &self.delivery,
            }),
        }
    }

    /// The same, for what a client has an agent's line run by.
    pub(crate) fn for_agent(self) -> Self {
        Self {
            asker: Asker::Agent,
            ..self
        }
    }

    /// The same, for programs that wait so long for a decision about what they want outside.
    pub(crate) fn with_hold_wait(self, wait: Span) -> Self {
        Self {
            hold_wait: duration(wait),
            ..self
        }
    }

    /// Whether other rules apply here by now than when this was opened: another list, or other
    /// contents. Rules that cannot be read are others.
    pub(crate) fn has_other_rules(&self, context: &Context) -> bool {
        let now = context.atlases_now();
        let now = now.and_then(|named| read_atlases(&named));
        let is_same = |now: Vec<AtlasFile>| {
            let now = now.iter().map(|atlas| atlas.digest);
            now.eq(self.atlases.iter().map(|atlas| atlas.digest))
        };
        self.is_here() && !now.is_ok_and(is_same)
    }

    /// Whether it is judged on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.far.is_none()
    }

    /// The files here that say what is judged and how, as paths below the directory.
    pub(crate) fn rules(&self) -> Vec<TreePath> {
        let of_atlas = |atlas: &AtlasFile| {
            let beside = atlas.path.parent().unwrap_or(Path::new("/")).to_owned();
            let modules = atlas.modules.keys().map(|module| beside.join(module));
            modules.chain([atlas.path.clone()]).collect::<Vec<_>>()
        };
        let all = self.atlases.iter().flat_map(of_atlas);
        let below = all.filter_map(|path| {
            let real = std::fs::canonicalize(path).ok()?;
            let below = real.strip_prefix(&self.workspace.root).ok()?;
            Some(below.as_os_str().as_bytes().to_vec())
        });
        below.collect()
    }

    /// What somebody wants to do here.
    pub(crate) fn proposal(
        &self,
        context: &Context,
        flags: &Flags,
        act: Act,
        stdin: Stdin,
    ) -> Result<Proposal, CliError> {
        let directory =
            std::fs::canonicalize(&context.directory).map_err(|error| CliError::File {
                action: "find",
                path: context.directory.clone(),
                error,
            })?;
        context.refuse_outside_root(&directory)?;
        let session = match &flags.session {
            // Whether there is such a session, the server says.
            Some(id) if self.far.is_some() => Some(id.parse().map_err(|_| CliError::Invalid {
                message: format!("`{}` is not a whole session id", text::line(id).text),
                suggestion: "where the store is a server, give all of it",
            })?),
            Some(prefix) => Some(self.control.find(prefix)?),
            None => None,
        };
        let permit = flags.permit.as_deref().map(str::parse).transpose();
        let permit = permit.map_err(|_| CliError::Invalid {
            message: "that is not a permit".into(),
            suggestion: "`safepoint permit list` shows them",
        })?;
        let setting = &context.settings.checkpoint;
        // What an administrator has set, no flag changes.
        let managed = setting.origin == crate::settings::Origin::Managed;
        // Nor does a flag of an agent loosen what `run` was told.
        let told = setting.origin == crate::settings::Origin::Environment
            && setting.value == CheckpointMode::Always
            && self.is_within;
        let mode = match (managed || told, flags.checkpoint) {
            (false, Some(mode)) => mode,
            _ => setting.value,
        };
        Ok(Proposal {
            act,
            directory,
            variables: context.environment.variables(),
            stdin,
            session,
            provider: flags.provider.clone(),
            objective: flags.objective.clone(),
            workflow: None,
            mode: match mode {
                CheckpointMode::Always => Mode::Always,
                CheckpointMode::Policy => Mode::Policy,
                CheckpointMode::Never => Mode::Never,
            },
            declared: match flags.declare.is_empty() {
                true => None,
                false => Some(flags.declare.iter().copied().collect()),
            },
            said: None,
            bounds: None,
            permit,
            visitor: None,
        })
    }
}

/// The atlases at these places, or those that come with the program.
fn read_atlases(named: &[PathBuf]) -> Result<Vec<AtlasFile>, CliError> {
    if named.is_empty() {
        return Ok(vec![AtlasFile::built_in()?]);
    }
    let read = named.iter().map(|path| AtlasFile::read(path));
    Ok(read.collect::<Result<_, _>>()?)
}

/// Where a command may write without asking: in the workspace, in temporary folders, in the
/// caches of agents, and in those of tools that cannot be told of them.
pub(crate) fn fence(context: &Context, workspace: &Workspace) -> Fence {
    let mut writable = vec![workspace.root.clone(), "/tmp".into(), "/var/tmp".into()];
    // Whoever asks sets the variables, so none of them says where it may write.
    if let Some(home) = crate::world::home_of_user() {
        writable.extend(shared_caches(&home));
    }
    let mut hidden = context.own_places_around(&workspace.root);
    // A hidden file in the workspace would take all new names from the directories on its way.
    let elsewhere = |file: &PathBuf| file.exists() && !file.starts_with(&workspace.root);
    hidden.extend(context.store_files().into_iter().filter(elsewhere));
    // Git keeps what it writes of a linked work tree beside the main one.
    let data = &context.paths.data;
    let linked = safepoint_state::linked_places(data, &workspace.root, &writable);
    writable.extend(linked);
    Fence {
        caches: caches(context, &workspace.root, &writable),
        writable,
        exact: Vec::new(),
        hidden,
        listing: Listing::Everywhere,
        terminals: Terminals::Held,
        supervision: Some(supervision(context, &workspace.root)),
    }
}

/// The caches of what runs behind the fence. Those of agents are no part of a workspace: a
/// checkpoint would hold them, and another agent's work would change them.
pub(crate) fn caches(context: &Context, root: &Path, writable: &[PathBuf]) -> Caches {
    let private = &context.paths.caches;
    let real = std::fs::canonicalize(private).unwrap_or_else(|_| private.clone());
    if real.starts_with(root) || root.starts_with(&real) {
        return Caches::None;
    }
    let environment = &context.environment;
    let plan = CachePlan::new(private)
        .with_variables(writable, |name| environment.path(name).map(Into::into));
    let plan = match own_cache(context) {
        Some(own) => plan.with_downloads_of(&own),
        None => plan,
    };
    Caches::Planned(match crate::world::home_of_user() {
        Some(home) => plan.with_tools_of(&home, root),
        None => plan,
    })
}

/// Where the user's own tools keep their caches. Links lead there, and nothing is opened by it.
fn own_cache(context: &Context) -> Option<PathBuf> {
    let environment = &context.environment;
    let named = environment.path("XDG_CACHE_HOME");
    // Inside an agent it names that of agents.
    let named = named.filter(|it| it.is_absolute() && !it.starts_with(&context.paths.caches));
    let default = || Some(environment.path("HOME")?.join(".cache"));
    named.or_else(default).filter(|path| path.is_absolute())
}

/// What a command may reach without asking: what settings name. All else is closed.
fn supervision(context: &Context, root: &Path) -> Supervision {
    let Reachable {
        hosts,
        services,
        sockets,
        defaults: _,
    } = context.settings.reachable.clone();
    Supervision {
        hosts,
        services,
        sockets,
        registry: context.registry(),
        journal: None,
        guarded: GuardedNames {
            names: safepoint_control::pass::settings_of_clients(root),
            released: Vec::new(),
        },
        freezer: Some(context.freezes()),
        network: NetworkAccess::Closed,
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.as_micros())
}

impl Flags {
    /// Those of something that starts no program of its own.
    pub(crate) fn of_session(session: Option<String>) -> Self {
        Self {
            checkpoint: None,
            no_tui: true,
            dry_run: false,
            wait: None,
            timeout: None,
            objective: None,
            session,
            provider: None,
            declare: Vec::new(),
            permit: None,
            no_fence: true,
        }
    }

    /// Those of a change that may start programs, which then run behind the fence.
    pub(crate) fn of_change(session: Option<String>) -> Self {
        Self {
            no_fence: false,
            ..Self::of_session(session)
        }
    }

    /// Those of an agent client's hook.
    pub(crate) fn of_hook(no_fence: bool) -> Self {
        Self {
            no_fence,
            ..Self::of_session(None)
        }
    }

    /// When a person is asked, as the flag says it.
    pub(crate) fn mode_word(&self) -> Option<&'static str> {
        self.checkpoint.map(|mode| match mode {
            CheckpointMode::Always => "always",
            CheckpointMode::Policy => "policy",
            CheckpointMode::Never => "never",
        })
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        self.timeout.map(duration)
    }
}

/// Asks, and where a person must decide lets them: here and now on a terminal, or elsewhere
/// for as long as `--wait` says.
pub(crate) fn ask(
    context: &Context,
    room: &Room,
    flags: &Flags,
    who: &operator::Who,
    proposal: &Proposal,
) -> Result<Answer, CliError> {
    let passage = room.passage();
    // From before the hold is there: whoever sees it can already interrupt the wait.
    let stop = flags.wait.map(|_| StopSignals::listen()).transpose()?;
    let answer = passage.ask(proposal)?;
    if let Some(stop) = &stop {
        stop.check()?;
    }
    // Holds of a server are decided there, and those who want to know are told there.
    let here = room.far.is_none();
    if let (true, Answer::Denied(_)) = (here, &answer) {
        deliver::start(context, &room.control);
    }
    let Answer::Denied(denied) = answer else {
        return Ok(answer);
    };
    let waits = denied.denial.code == DenialCode::ApprovalRequired;
    let (Some(hold), true) = (denied.denial.hold_id.clone(), waits) else {
        return Ok(Answer::Denied(denied));
    };
    // Whoever waits for somebody elsewhere is not asked here.
    let in_place = here && flags.wait.is_none();
    if in_place && tui::decide_in_place(context, &room.control, flags, who, &hold)? {
        let next = match passage.standing(&hold)? {
            HoldState::Pending => return Ok(Answer::Denied(denied)),
            HoldState::Expired => waiting::give_up(context, Asked::Room(room), &denied.denial)?,
            HoldState::Closed => Next::Denied(Box::new(session_ended(&denied.denial))),
            _ => Next::Ask,
        };
        return go_on(context, room, proposal, denied, next);
    }
    let (Some(limit), Some(stop)) = (flags.wait, &stop) else {
        return Ok(Answer::Denied(denied));
    };
    let next = waiting::wait_for_decision(context, Asked::Room(room), &denied.denial, limit, stop)?;
    go_on(context, room, proposal, denied, next)
}

/// Asks once more, now that somebody has decided; or tells why that is no use.
fn go_on(
    context: &Context,
    room: &Room,
    proposal: &Proposal,
    mut denied: Box<Denied>,
    next: Next,
) -> Result<Answer, CliError> {
    let denial = match next {
        Next::Denied(denial) => denial,
        Next::Ask => {
            let ask = || Ok(room.passage().ask(proposal)?);
            match waiting::ask_again(context, Asked::Room(room), &denied.denial, ask)? {
                Ok(answer) => return Ok(answer),
                Err(denial) => denial,
            }
        }
    };
    denied.denial = *denial;
    Ok(Answer::Denied(denied))
}

/// A denial, as it is printed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DenialReply {
    pub(crate) denial: Denial,
    /// The session it is about.
    pub(crate) session_id: Option<String>,
    /// What the gates said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<Resolution>,
}

/// A denial for people.
pub(crate) fn show_denial(reply: &DenialReply) -> String {
    let safe = |text: &str| text::line(text).text;
    let denial = &reply.denial;
    let mut shown = format!(
        "{BAD}denied{BAD:#}  {}  {FAINT}{}{FAINT:#}\n",
        safe(&denial.reason),
        denial.code.name()
    );
    if let Some(hold) = &denial.hold_id {
        shown.push_str(&format!("{STRONG}hold{STRONG:#}    {hold}\n"));
    }
    if let Some(resolution) = &reply.resolution {
        for question in &resolution.questions {
            shown.push_str(&format!(
                "{STRONG}asks{STRONG:#}    {} {FAINT}({}/{}){FAINT:#}\n",
                safe(&question.question),
                safe(&question.checkpoint_id),
                safe(&question.question_id)
            ));
        }
    }
    if !denial.next.is_empty() {
        shown.push_str(&format!("{HINT}next{HINT:#}    {}\n", safe(&denial.next)));
    }
    shown
}

/// Records actions that were cut off in a workspace. That needs no rules: nothing is judged.
pub(crate) fn recover(
    context: &Context,
    control: &Control,
    state: &State,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let far = Server::of(context)?;
    let passage = Passage {
        control,
        state,
        workspace,
        atlases: Vec::new(),
        own: Vec::new(),
        home: None,
        hold_timeout: context.settings.hold_timeout.value,
        fence: None,
        default_hosts: context.settings.reachable.defaults,
        asker: Asker::Agent,
        is_within: false,
        place: context.place_of(&workspace.root, control.trail())?,
        progress: &Progress::default(),
        far: far.as_ref().map(|far| far as &dyn Far),
        hold_wait: None,
    };
    passage.recover()?;
    Ok(())
}

/// Records what programs wrote that an action left running.
pub(crate) fn record_late(global: &Global, work: &LateWork) -> Result<(), CliError> {
    let mut context = match work.client() {
        Some(client) => Context::of_agent(global, work.workspace(), client)?,
        None => Context::new(global, MissingDirectory::Refuse)?,
    };
    context.pin_root(work.workspace())?;
    let room = Room::open(&mut context, &Flags::of_hook(false))?;
    match room.workspace.root == work.workspace() {
        true => Ok(room.passage().record_late(work)?),
        false => Ok(()),
    }
}
