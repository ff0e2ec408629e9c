//! A sample agent in the passage: let through, asked, held, approved, denied, undone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use safepoint_authority::{Choice, DenialCode, Operator, OperatorKey};
use safepoint_control::pass::{
    Act, Answer, Asker, Capture, DefaultHosts, Denied, Desk, Leave, Mode, Passage, Proposal, Ran,
    Stdin, Verdict,
};
use safepoint_control::{AtlasFile, Control, NoCaller};
use safepoint_fence::{
    Caches, Fence, GuardedNames, Listing, NetworkAccess, Supervision, Terminals,
};
use safepoint_gates::Event;
use safepoint_model::{ActionId, Span};
use safepoint_state::{Goal, Patterns, Progress, Rules, State, Surroundings, Workspace, path};
use safepoint_store::durable::{self, Access};
use safepoint_trail::Trail;
use safepoint_trail::note::Signer;
use serde_json::json;

use super::Show;
use crate::error::CliError;
use crate::world::{SystemClock, SystemEntropy};

const PROGRAM: &str = "fn main() {\n    println!(\"hello\");\n}\n";
const NOTES: &str = "what the customer said, written down nowhere else\n";
const ATLAS: &str = include_str!("../../../atlases/sample.yaml");

/// The room in which the sample agent works.
pub(super) struct Sample {
    control: Control,
    state: State,
    workspace: Workspace,
    outside: PathBuf,
    atlas: AtlasFile,
    fence: Fence,
    progress: Progress,
}

/// What is left of it for the rest of the story.
pub(super) struct Told {
    /// The action that was approved: its whole story has one id.
    pub(super) approved: ActionId,
    /// Whether everything came out as it should.
    pub(super) right: bool,
}

impl Sample {
    pub(super) fn open(room: &Path, trail: &Trail) -> Result<Self, CliError> {
        let name = |error: safepoint_trail::NameError| CliError::Usage(error.to_string());
        let root = room.join("project");
        durable::create_directory(&root.join("src"))?;
        let outside = room.join("elsewhere");
        durable::create_directory(&outside)?;
        let write = |name: &str, text: &str| {
            durable::write(&root.join(name), text.as_bytes(), Access::Shared)
        };
        write("src/main.rs", PROGRAM)?;
        write("notes.txt", NOTES)?;
        write(".gitignore", "notes.txt\n")?;
        let atlas = room.join("atlas.yaml");
        durable::write(&atlas, ATLAS.as_bytes(), Access::Shared)?;
        let actor: safepoint_trail::Actor = "agent:sample".parse().map_err(name)?;
        let around = Surroundings {
            data: room.join("data"),
            state: room.join("state"),
            runtime: room.join("runtime"),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            git: None,
            lock_timeout: Duration::from_secs(30),
            cap: None,
            actor: actor.clone(),
            variables: Vec::new(),
            program_path: None,
        };
        let control = safepoint_control::Surroundings {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            actor,
            caller: Box::new(NoCaller),
        };
        let root = std::fs::canonicalize(&root)?;
        Ok(Self {
            control: Control::open(trail.clone(), control)?,
            state: State::open(trail.clone(), around)?,
            workspace: Workspace {
                root: root.clone(),
                rules: Rules::new(Patterns::default())?,
                providers: Default::default(),
            },
            outside: std::fs::canonicalize(&outside)?,
            atlas: AtlasFile::read(&atlas)?,
            fence: Fence {
                writable: vec![root],
                exact: Vec::new(),
                hidden: vec![room.join("keys"), room.join("data")],
                listing: Listing::Everywhere,
                terminals: Terminals::Held,
                supervision: Some(Supervision {
                    hosts: Vec::new(),
                    services: Vec::new(),
                    sockets: Vec::new(),
                    registry: room.join("runtime/network"),
                    journal: None,
                    freezer: None,
                    guarded: GuardedNames::default(),
                    network: NetworkAccess::Closed,
                }),
                caches: Caches::None,
            },
            progress: Progress::default(),
        })
    }

    fn passage(&self) -> Passage<'_> {
        Passage {
            control: &self.control,
            state: &self.state,
            workspace: &self.workspace,
            atlases: vec![self.atlas.clone()],
            own: vec![self.fence.hidden.first().cloned().unwrap_or_default()],
            home: None,
            hold_timeout: Span::from_micros(15 * 60 * 1_000_000),
            fence: Some(self.fence.clone()),
            default_hosts: DefaultHosts::None,
            asker: Asker::Agent,
            is_within: false,
            place: None,
            progress: &self.progress,
            far: None,
            hold_wait: None,
        }
    }

    /// What the agent wants: one line for the shell.
    fn proposal(&self, line: &str) -> Proposal {
        let words = ["/bin/sh", "-c", line].map(str::to_owned);
        Proposal {
            act: Act::Command(words.into()),
            directory: self.workspace.root.clone(),
            variables: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            stdin: Stdin::Empty,
            session: None,
            provider: None,
            objective: Some("tidy up".to_owned()),
            workflow: None,
            mode: Mode::Policy,
            declared: None,
            said: None,
            bounds: None,
            permit: None,
            visitor: None,
        }
    }

    fn ask(&self, line: &str) -> Result<Answer, CliError> {
        Ok(self.passage().ask(&self.proposal(line))?)
    }

    fn run(&self, leave: &Leave) -> Result<Ran, CliError> {
        Ok(self
            .passage()
            .run(leave, &Stdin::Empty, Capture::Keep, None)?)
    }

    /// The story, and whether it came out as it should.
    pub(super) fn show(&self, show: &mut Show<'_>) -> Result<Option<Told>, CliError> {
        let is = |name: &str, text: Option<&str>| {
            let found = std::fs::read_to_string(self.workspace.root.join(name)).ok();
            found.as_deref() == text
        };
        show.step("A sample agent edits a file: it can be undone, so nobody is asked")?;
        let edit = "sed -i 's/hello/hello, world/' src/main.rs";
        let Answer::Leave(leave) = self.ask(edit)? else {
            return Ok(None);
        };
        let ran = self.run(&leave)?;
        show.did(edit, &leave, &ran)?;

        show.step("It wants to delete: the steward's question comes first")?;
        let clearing = "rm notes.txt .gitignore";
        let Answer::Denied(denied) = self.ask(clearing)? else {
            return Ok(None);
        };
        show.held(clearing, &denied)?;
        let answer = "they are generated anew by the build, and nobody reads them";
        show.note(&format!("the agent answers: {answer}"))?;
        self.answer(&denied, answer)?;
        let Answer::Leave(cleared) = self.ask(clearing)? else {
            return Ok(None);
        };
        let ran = self.run(&cleared)?;
        show.did(clearing, &cleared, &ran)?;

        show.step("It wants to write outside the project: a person decides about exactly this")?;
        let publish = format!("cp src/main.rs {}/main.rs", self.outside.display());
        let Answer::Denied(denied) = self.ask(&publish)? else {
            return Ok(None);
        };
        show.held("cp src/main.rs ELSEWHERE/main.rs", &denied)?;
        let approved = self.approve(show, &denied)?;
        let Answer::Leave(leave) = self.ask(&publish)? else {
            return Ok(None);
        };
        let ran = self.run(&leave)?;
        show.did("cp src/main.rs ELSEWHERE/main.rs", &leave, &ran)?;
        let again = matches!(self.ask(&publish)?, Answer::Denied(_));
        show.note("asked for once more, it waits again: a yes is good once")?;

        show.step("It wants to remove the keys that sign for all of this")?;
        let own = self.passage().own.first().cloned().unwrap_or_default();
        let Answer::Denied(denied) = self.ask(&format!("rm -r {}", own.display()))? else {
            return Ok(None);
        };
        show.held("rm -r KEYS", &denied)?;

        show.step("Only the deletion is undone; the good edit stays")?;
        let action = self.state.find_action(cleared.action_id.as_str())?;
        let goal = Goal::Without {
            action: &action,
            verb: "undo",
        };
        let restored = self
            .state
            .restore(&self.workspace, &goal, &[], &self.progress)?;
        for change in &restored.changes {
            let name = path::display(&change.path);
            show.note(&format!("{:<9} {name}", change.kind().as_str()))?;
        }
        let better = PROGRAM.replace("hello", "hello, world");
        let right = restored.matches
            && again
            && is("notes.txt", Some(NOTES))
            && is("src/main.rs", Some(&better))
            && self.outside.join("main.rs").is_file();
        match right {
            true => {
                show.good("the notes are back, and the improved file is as the agent left it")?
            }
            false => show.bad("the project is not as it should be")?,
        }
        Ok(Some(Told { approved, right }))
    }

    fn answer(&self, denied: &Denied, text: &str) -> Result<(), CliError> {
        let question = denied.resolution.iter().flat_map(|it| &it.questions).next();
        let Some(question) = question else {
            return Ok(());
        };
        let answers = json!({ &question.question_id: text });
        let event = Event::Answer {
            gate: question.checkpoint_id.clone(),
            hold: denied.denial.hold_id.clone(),
            answers: answers.as_object().cloned().unwrap_or_default(),
        };
        self.control.step(&denied.session_id, &event)?;
        Ok(())
    }

    /// An operator looks at it, and says yes to its fingerprint.
    fn approve(&self, show: &mut Show<'_>, denied: &Denied) -> Result<ActionId, CliError> {
        let desk = Desk {
            control: &self.control,
            permit_life: Span::from_micros(15 * 60 * 1_000_000),
        };
        let signer = Signer::generate("ada", &SystemEntropy)
            .map_err(|error| CliError::Control(error.into()))?;
        let operator: Operator =
            desk.add_operator("ada", signer.public(), OperatorKey::File, None)?;
        let id = denied.denial.hold_id.as_ref().map(ToString::to_string);
        let hold = desk.hold(&id.unwrap_or_default())?;
        for lost in &hold.coverage.not_covered {
            show.note(&format!(
                "cannot be undone: {}",
                shorten(lost, &self.outside)
            ))?;
        }
        let verdict = Verdict {
            hold_id: hold.hold_id.clone(),
            fingerprint: hold.fingerprint,
            choice: Choice::Continue,
            envelope: None,
            scope: None,
            confirm: hold.confirm(),
            reason: None,
        };
        desk.decide(&verdict, &operator, &signer)?;
        show.good("ada approves, twice since it is final, and signs for this fingerprint")?;
        show.note(&hold.fingerprint.to_string())?;
        Ok(hold.action_id)
    }
}

/// The room has another name each time.
fn shorten(text: &str, outside: &Path) -> String {
    text.replace(&outside.display().to_string(), "ELSEWHERE")
}

impl Show<'_> {
    fn did(&mut self, line: &str, leave: &Leave, ran: &Ran) -> Result<(), CliError> {
        let actions: Vec<&str> = leave.canonical.actions.iter().map(String::as_str).collect();
        self.good(&format!(
            "{line}  ({}, {})",
            actions.join(" "),
            leave.decision()
        ))?;
        for change in &ran.changes {
            let name = path::display(&change.path);
            self.note(&format!("{:<9} {name}", change.kind.as_str()))?;
        }
        Ok(())
    }

    fn held(&mut self, line: &str, denied: &Denied) -> Result<(), CliError> {
        let denial = &denied.denial;
        self.stopped(&format!("{line}  {}", denial.code.name()))?;
        self.note(&denial.reason)?;
        if denial.code == DenialCode::QuestionsPending {
            for question in denied.resolution.iter().flat_map(|it| &it.questions) {
                self.note(&question.question)?;
            }
        }
        Ok(())
    }
}
