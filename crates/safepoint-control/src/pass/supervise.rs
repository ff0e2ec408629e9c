//! Running a command behind the fence, and answering what its supervisor asks meanwhile.
//!
//! The supervisor asks twice: before the first write in the workspace, so that a line that was
//! taken for one that only reads gets its checkpoint before it changes anything; and when
//! something outside is wanted that no rule names, so that it becomes a request like any other.
//! Nothing here decides: a request is judged by the gates, and whatever goes wrong is a refusal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{
    Receiver, RecvError, RecvTimeoutError, Sender, SyncSender, channel, sync_channel,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use safepoint_authority::{HoldState, OutsideKind, OutsideTarget};
use safepoint_fence::{FenceError, Gate, Observation, Refusal, Supervisor, WriteAccess};
use safepoint_gates::{Decision, Event, Request};
use safepoint_model::{HoldId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::asked::{Origin, Wants};
use super::attend::{Stop, wait};
use super::confine::{AllowedPaths, WidenedFence};
use super::documents::Running;
use super::request::plain_request;
use super::{Capture, Ended, Passage};
use crate::{Control, ControlError};

/// The parameter of a request that names what is wanted.
pub(super) const TARGET: &str = "target";

/// So many different targets of one action become requests; the rest are only refused.
const MAX_REQUESTS: usize = 32;

/// How often to look whether somebody has decided.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// So many files outside are listed for one action, and so many refusals.
const MAX_LISTED: usize = 256;

/// What an action reached outside the fence, and what it was refused.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReachRecord {
    /// What was reached.
    pub reached: ReachedTargets,
    /// What was refused.
    pub refused: Vec<RefusedTarget>,
}

/// What an action reached outside the fence.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReachedTargets {
    /// Machines, with the port.
    pub hosts: BTreeSet<String>,
    /// Sockets with a path.
    pub sockets: BTreeSet<String>,
    /// Files outside the workspace that were written, but for temporary folders and the caches of
    /// build tools.
    pub outside: BTreeSet<String>,
    /// How many more of them there were than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_outside: usize,
}

impl ReachRecord {
    /// Whether nothing outside was reached, and nothing refused.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl ReachedTargets {
    /// The names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        let named = self.hosts.iter().chain(&self.sockets);
        named.chain(&self.outside)
    }

    /// Whether nothing outside was reached.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All of them.
    pub(super) fn targets(&self) -> Vec<OutsideTarget> {
        let of = |kind, names: &BTreeSet<String>| -> Vec<OutsideTarget> {
            let names = names.iter().cloned();
            names.map(|name| OutsideTarget { kind, name }).collect()
        };
        [
            of(OutsideKind::Host, &self.hosts),
            of(OutsideKind::Socket, &self.sockets),
            of(OutsideKind::File, &self.outside),
        ]
        .concat()
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field over so"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Something that an action was refused.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedTarget {
    /// The action it would have been: `net.connect`, `socket.connect`, `file.write`, or the name
    /// of a system call.
    pub action: String,
    /// The host, socket or path.
    pub target: String,
    /// The hold that an operator can approve, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub hold_id: Option<HoldId>,
}

/// A question of the supervisor.
enum Question {
    /// Something outside is wanted.
    Admit(Refusal),
    /// Something in the workspace is about to be written for the first time.
    Write,
}

enum Message {
    Asked(Question, SyncSender<bool>),
    Ended(std::io::Result<(Ended, ExitStatus)>),
}

/// Hands the supervisor's questions to the thread that has the store.
#[derive(Debug)]
struct QuestionGate {
    sender: Mutex<Sender<Message>>,
    /// Whether there is a checkpoint of the state before the command.
    is_secured: AtomicBool,
    /// What the checkpoint is of.
    workspace: PathBuf,
    /// What may be written outside.
    allowed: AllowedPaths,
    /// Where the fence lets it write.
    open: Vec<PathBuf>,
}

/// Whether there is a checkpoint of the state before a command when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secured {
    /// There is.
    Yes,
    /// One is made before the first write.
    OnFirstWrite,
}

impl Secured {
    /// Whether there is one of the state before this action.
    pub(super) fn of(running: &Running) -> Self {
        match running.before.is_some() {
            true => Self::Yes,
            false => Self::OnFirstWrite,
        }
    }
}

/// What comes of asking for something outside.
pub(super) enum Admission {
    Granted,
    /// With the hold that an operator can approve, where there is one.
    Refused(Option<HoldId>),
}

impl QuestionGate {
    fn ask(&self, question: Question) -> bool {
        let (answer, answered) = sync_channel(1);
        let sent = match self.sender.lock() {
            Ok(sender) => sender.send(Message::Asked(question, answer)).is_ok(),
            Err(_) => false,
        };
        sent && answered.recv().unwrap_or(false)
    }
}

impl Gate for QuestionGate {
    fn admit(&self, wanted: &Refusal) -> bool {
        self.ask(Question::Admit(wanted.clone()))
    }

    fn write_access(&self, path: &Path) -> WriteAccess {
        if path.starts_with(&self.workspace) {
            return WriteAccess::Kernel;
        }
        // Before there is a checkpoint the kernel gets no call: it reads the path again, and that
        // may lead into the workspace then.
        let is_unsecured = || !self.continues() && self.is_open(path);
        match self.allowed.include(path) || is_unsecured() {
            true => WriteAccess::Supervisor,
            false => WriteAccess::Kernel,
        }
    }

    fn may_continue(&self) -> bool {
        if self.continues() {
            return true;
        }
        let secured = self.ask(Question::Write);
        self.is_secured.store(secured, Ordering::Release);
        secured
    }

    fn continues(&self) -> bool {
        self.is_secured.load(Ordering::Acquire)
    }
}

impl QuestionGate {
    fn is_open(&self, path: &Path) -> bool {
        path == Path::new("/dev/null") || self.open.iter().any(|place| path.starts_with(place))
    }
}

/// Hears of holds as they are made, to tell operators of them.
pub trait HoldListener {
    /// One was made, and somebody waits for it.
    fn hold_was_made(&self, control: &Control);
}

/// How long a call of a program behind the fence waits for a person to decide about what it
/// wants outside. To the program it is a call that takes its time.
#[derive(Clone, Copy)]
pub struct HoldWait<'a> {
    /// So long.
    pub limit: Duration,
    /// Who tells operators.
    pub listener: &'a dyn HoldListener,
}

/// What a supervised command has asked for so far.
#[derive(Default)]
struct OpenQuestions {
    /// What was answered.
    answers: BTreeMap<Refusal, bool>,
    /// The hold of each that an operator can approve.
    holds: BTreeMap<Refusal, HoldId>,
    /// Calls that wait for a decision.
    waiting: Vec<WaitingQuestion>,
}

/// A call that waits for a decision.
struct WaitingQuestion {
    wanted: Refusal,
    hold: HoldId,
    until: Timestamp,
    answer: SyncSender<bool>,
}

/// Where every command may write besides the workspace, and nobody keeps work.
#[derive(Debug, Default)]
pub(super) struct PlacesBeside {
    places: Vec<PathBuf>,
    /// What was let through by its name is work of somebody's, wherever it lies.
    named: AllowedPaths,
}

impl PlacesBeside {
    pub(super) fn of(widened: &WidenedFence) -> Self {
        Self {
            places: widened.beside.clone(),
            named: widened.named.clone(),
        }
    }

    fn include(&self, path: &Path) -> bool {
        self.places.iter().any(|place| path.starts_with(place)) && !self.named.include(path)
    }
}

/// A command that runs behind the fence.
#[derive(Debug)]
pub struct SupervisedChild {
    pub(super) child: Child,
    /// Whether it is behind the fence.
    is_fenced: bool,
    supervisor: Option<Supervisor>,
    messages: Receiver<Message>,
    sender: Sender<Message>,
    session: SessionId,
    beside: PlacesBeside,
    /// Repositories outside that the workspace shares with other work trees.
    shared: Vec<PathBuf>,
    /// The sockets at which it calls us.
    own_sockets: Vec<PathBuf>,
}

/// How a supervised command ended.
pub(super) struct SupervisedEnd {
    pub(super) ended: Ended,
    pub(super) status: ExitStatus,
    pub(super) is_fenced: bool,
    /// What was seen of it, where it was supervised.
    pub(super) observation: Option<Observation>,
    pub(super) record: ReachRecord,
    /// Those of the shared repositories in which it wrote.
    pub(super) wrote_shared: Vec<PathBuf>,
    /// Kept by whoever stays for what still runs.
    pub(super) supervisor: Option<Supervisor>,
}

impl SupervisedChild {
    /// The process, and who watches over it. What it wants outside is refused from here on.
    pub fn into_parts(self) -> (Child, Option<Supervisor>) {
        (self.child, self.supervisor)
    }

    /// Starts a command without a fence.
    pub(super) fn start_unfenced(
        mut command: Command,
        session: &SessionId,
    ) -> std::io::Result<Self> {
        let child = command.spawn()?;
        let (sender, messages) = channel();
        Ok(Self {
            child,
            is_fenced: false,
            supervisor: None,
            messages,
            sender,
            session: session.clone(),
            beside: PlacesBeside::default(),
            shared: Vec::new(),
            own_sockets: Vec::new(),
        })
    }
}

impl SupervisedChild {
    pub(super) fn is_fenced(&self) -> bool {
        self.is_fenced
    }
}

impl Passage<'_> {
    /// Starts a command behind the fence.
    pub(super) fn start_supervised(
        &self,
        widened: WidenedFence,
        command: Command,
        session: &SessionId,
        secured: Secured,
    ) -> std::io::Result<SupervisedChild> {
        let (sender, messages) = channel();
        let beside = PlacesBeside::of(&widened);
        let WidenedFence {
            mut fence,
            allowed,
            own_sockets,
            ..
        } = widened;
        let places = fence.writable.iter();
        let places = places.filter_map(|place| std::fs::canonicalize(place).ok());
        let gate = Arc::new(QuestionGate {
            sender: Mutex::new(sender.clone()),
            is_secured: AtomicBool::new(secured == Secured::Yes),
            workspace: self.workspace.root.clone(),
            allowed,
            open: places.collect(),
        });
        if let Some(supervision) = &mut fence.supervision {
            supervision.registry = supervision.registry.join(session.as_str());
            supervision.hosts.extend(self.default_hosts());
        }
        // As the work tree says before anything in it can be changed.
        let shared = safepoint_state::git::linked_places(&self.workspace.root, &[]);
        let started = match fence.spawn_asking(command, gate) {
            Ok(started) => started,
            Err(FenceError::Start { source, .. }) => return Err(source),
            Err(error) => return Err(std::io::Error::other(error)),
        };
        Ok(SupervisedChild {
            child: started.child,
            is_fenced: true,
            supervisor: started.supervisor,
            messages,
            sender,
            session: session.clone(),
            beside,
            shared,
            own_sockets,
        })
    }

    /// Waits for a command that runs behind the fence, and answers its supervisor. `secure` is
    /// called before the first write in the workspace, and fails where that may not happen.
    pub(super) fn attend_supervised(
        &self,
        mut supervised: SupervisedChild,
        capture: Capture,
        limit: Option<Duration>,
        stop: &Stop,
        mut secure: impl FnMut() -> Result<(), ControlError>,
    ) -> std::io::Result<SupervisedEnd> {
        let session = supervised.session.clone();
        let mut questions = OpenQuestions::default();
        let sender = supervised.sender.clone();
        let child = &mut supervised.child;
        let (ended, status) = std::thread::scope(|scope| {
            scope.spawn(move || {
                let ended = wait(child, capture, limit, stop);
                let _ = sender.send(Message::Ended(ended));
            });
            loop {
                let received = match questions.waiting.is_empty() {
                    true => supervised.messages.recv().map(Some),
                    false => match supervised.messages.recv_timeout(POLL_INTERVAL) {
                        Ok(message) => Ok(Some(message)),
                        Err(RecvTimeoutError::Timeout) => Ok(None),
                        Err(RecvTimeoutError::Disconnected) => Err(RecvError),
                    },
                };
                match received {
                    Ok(None) => {}
                    Ok(Some(Message::Asked(Question::Write, answer))) => {
                        let _ = answer.send(secure().is_ok());
                    }
                    Ok(Some(Message::Asked(Question::Admit(wanted), answer))) => {
                        self.answer_want(&session, &mut questions, wanted, answer);
                    }
                    // Whoever still waits for an answer is gone, or gets none.
                    Ok(Some(Message::Ended(ended))) => break ended,
                    Err(error) => break Err(std::io::Error::other(error)),
                }
                self.answer_decided(&session, &mut questions);
            }
        })?;
        let mut holds = questions.holds;
        let observation = supervised.supervisor.as_ref().map(Supervisor::observe);
        let mut record = match &observation {
            Some(seen) => self.reach_record(&session, seen, &supervised.beside, &mut holds),
            None => ReachRecord::default(),
        };
        let own_sockets = supervised.own_sockets.iter();
        let own_sockets: BTreeSet<String> =
            own_sockets.map(|it| it.display().to_string()).collect();
        record
            .reached
            .sockets
            .retain(|it| !own_sockets.contains(it));
        let wrote_shared = match &observation {
            Some(seen) => written_within(&supervised.shared, seen),
            None => Vec::new(),
        };
        Ok(SupervisedEnd {
            wrote_shared,
            ended,
            status,
            is_fenced: supervised.is_fenced,
            observation,
            record,
            supervisor: supervised.supervisor,
        })
    }

    /// Answers what is wanted outside, or keeps the question until somebody has decided.
    fn answer_want(
        &self,
        session: &SessionId,
        questions: &mut OpenQuestions,
        wanted: Refusal,
        answer: SyncSender<bool>,
    ) {
        let known = match questions.answers.get(&wanted) {
            Some(is_granted) => Some(*is_granted),
            None if questions.answers.len() >= MAX_REQUESTS => Some(false),
            None => None,
        };
        if let Some(is_granted) = known {
            let _ = answer.send(is_granted);
            return;
        }
        let same = questions.waiting.iter().find(|it| it.wanted == wanted);
        if let Some(waiting) = same {
            let waiting = WaitingQuestion {
                wanted,
                hold: waiting.hold.clone(),
                until: waiting.until,
                answer,
            };
            questions.waiting.push(waiting);
            return;
        }
        let is_granted = match self.admit(session, &wanted) {
            Admission::Granted => true,
            Admission::Refused(None) => false,
            Admission::Refused(Some(hold)) => {
                questions.holds.insert(wanted.clone(), hold.clone());
                let limit = self.hold_wait.map_or(Duration::ZERO, |wait| wait.limit);
                if !limit.is_zero() {
                    if let Some(wait) = self.hold_wait {
                        wait.listener.hold_was_made(self.control);
                    }
                    questions.waiting.push(WaitingQuestion {
                        wanted,
                        hold,
                        until: self.now().saturating_add_micros(micros(limit)),
                        answer,
                    });
                    return;
                }
                false
            }
        };
        questions.answers.insert(wanted, is_granted);
        let _ = answer.send(is_granted);
    }

    /// Answers those questions that somebody has decided, or has not decided in time.
    fn answer_decided(&self, session: &SessionId, questions: &mut OpenQuestions) {
        for waiting in std::mem::take(&mut questions.waiting) {
            let known = questions.answers.get(&waiting.wanted).copied();
            let is_granted = match (known, self.standing(&waiting.hold)) {
                (Some(is_granted), _) => is_granted,
                (None, Ok(HoldState::Pending)) if self.now() < waiting.until => {
                    questions.waiting.push(waiting);
                    continue;
                }
                (None, Ok(HoldState::Approved)) => {
                    matches!(self.admit(session, &waiting.wanted), Admission::Granted)
                }
                (None, Ok(_) | Err(_)) => false,
            };
            questions.answers.insert(waiting.wanted, is_granted);
            let _ = waiting.answer.send(is_granted);
        }
    }

    /// Asks for something outside that is done for an agent, and not by its programs behind the
    /// fence. Where it is refused, with the hold that an operator can approve.
    pub fn ask_outside(&self, session: &SessionId, wanted: &Refusal) -> Result<(), Option<HoldId>> {
        match self.admit(session, wanted) {
            Admission::Granted => Ok(()),
            Admission::Refused(hold) => Err(hold),
        }
    }

    /// Asks for something outside, as for any other action of the session. What no policy names
    /// is a person's to decide, also where the rules leave it open.
    pub(super) fn admit(&self, session: &SessionId, wanted: &Refusal) -> Admission {
        let Some(request) = request_for(wanted).filter(|_| self.far.is_none()) else {
            return Admission::Refused(None);
        };
        if self.is_never_opened(wanted) {
            return Admission::Refused(None);
        }
        let asked = self.bench().and_then(|bench| {
            let by_policy = self
                .control
                .by_policy(session, std::slice::from_ref(&request))?;
            let wants = Wants {
                origin: Origin::Fence(by_policy),
                ..Wants::default()
            };
            bench.step_asking(session, &Event::Request(request), &wants)
        });
        match asked {
            Ok(asked) if asked.judgement.resolution.decision == Decision::Allow => {
                Admission::Granted
            }
            Ok(asked) => Admission::Refused(asked.denial.and_then(|denial| denial.hold_id)),
            Err(_) => Admission::Refused(None),
        }
    }

    /// Whether it is no use to ask anybody: tools do without it.
    fn is_written_in_passing(&self, path: &Path) -> bool {
        let mut homes = self.home.iter();
        homes.any(|home| safepoint_fence::is_written_in_passing(home, path))
    }

    /// Whether no yes opens it: Safepoint's own files and sockets, and what is hidden behind every
    /// fence.
    fn is_never_opened(&self, wanted: &Refusal) -> bool {
        let (Refusal::Outside(path) | Refusal::Socket(path)) = wanted else {
            return false;
        };
        let hidden = self.fence.iter().flat_map(|fence| &fence.hidden);
        self.own.iter().chain(hidden).any(|place| {
            let real = std::fs::canonicalize(place);
            path.starts_with(place) || real.is_ok_and(|real| path.starts_with(real))
        })
    }

    /// What was reached and refused, with a request for each refusal that has none yet.
    pub(super) fn reach_record(
        &self,
        session: &SessionId,
        seen: &Observation,
        beside: &PlacesBeside,
        holds: &mut BTreeMap<Refusal, HoldId>,
    ) -> ReachRecord {
        let mut refused = Vec::new();
        let mut asked = 0;
        for wanted in seen.refused.iter().take(MAX_LISTED) {
            if let Refusal::Outside(path) = wanted
                && asked < MAX_REQUESTS
                && !self.is_written_in_passing(path)
            {
                asked += 1;
                match self.admit(session, wanted) {
                    // Landlock takes no rule while a command runs: the next one gets it.
                    // Where that cannot be kept, the next one is refused as well.
                    Admission::Granted => drop(self.remember_outside(session, path)),
                    Admission::Refused(hold) => {
                        holds.extend(hold.map(|hold| (wanted.clone(), hold)));
                    }
                }
            }
            let (action, target) = named(wanted);
            refused.push(RefusedTarget {
                action: action.to_owned(),
                target,
                hold_id: holds.get(wanted).cloned(),
            });
        }
        let text = |path: &PathBuf| path.display().to_string();
        let root = &self.workspace.root;
        let outside = seen.written.paths.iter().chain(&seen.written.trees);
        let outside: BTreeSet<String> = outside
            .filter(|path| !path.starts_with(root))
            .filter(|path| !beside.include(path))
            .map(text)
            .collect();
        ReachRecord {
            reached: ReachedTargets {
                hosts: seen.hosts.clone(),
                sockets: seen.sockets.iter().map(text).collect(),
                more_outside: outside.len().saturating_sub(MAX_LISTED),
                outside: outside.into_iter().take(MAX_LISTED).collect(),
            },
            refused,
        }
    }
}

/// Those of these places in which something was written.
pub(super) fn written_within(places: &[PathBuf], seen: &Observation) -> Vec<PathBuf> {
    let written = || seen.written.paths.iter().chain(&seen.written.trees);
    let is_written = |place: &&PathBuf| written().any(|path| path.starts_with(place));
    places.iter().filter(is_written).cloned().collect()
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// The request that a refusal becomes. What no yes can open has none.
fn request_for(wanted: &Refusal) -> Option<Request> {
    let (action, target) = named(wanted);
    match wanted {
        Refusal::Call(_) => None,
        _ => Some(plain_request(action, json!({TARGET: target}))),
    }
}

/// The action and the target of a refusal.
fn named(wanted: &Refusal) -> (&str, String) {
    match wanted {
        Refusal::Host(host) => (OutsideKind::Host.action(), host.clone()),
        Refusal::Socket(path) => (OutsideKind::Socket.action(), path.display().to_string()),
        Refusal::Outside(path) => (OutsideKind::File.action(), path.display().to_string()),
        Refusal::Call(name) => (name, String::new()),
    }
}
