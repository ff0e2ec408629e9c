//! The API: endpoints of the table, answered by commands.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use safepoint_control::{Asker as Asks, Begun as Known, ControlError, StoredReply};
use safepoint_model::{Digest, SessionId, Span, WorkspaceId};
use safepoint_progress::ProgressError;
use safepoint_server::api::{
    Api, Begun, Called, EndpointNote, Event, Events, Gauges, Kept, Output, Refused,
};
use safepoint_server::commands::{
    Answer, Asker, Caller, Command, Commands, Record, Role, Unavailable, Visits,
};
use safepoint_store::{Flow, Watch};
use safepoint_trail::{Entry, Query, TrailError};
use serde_json::{Map, Value};

use super::cut::Wanted;
use super::endpoint::{Endpoint, List};
use super::log::Log;
use super::openapi;
use super::program::{Program, Work, caller_of, failed};
use super::table::endpoints;
use crate::commands::form::{Given, Naming, Session, Words};
use crate::error::CliError;

/// How long an answer is kept for those who ask again: a day.
const LIFE: &str = "24h";

/// What the trail has of signals.
const SIGNALS: [&str; 2] = ["signal_emitted", "signal_delivered"];

/// How many sessions are remembered with whom they belong to.
const REMEMBERED: usize = 10_000;

/// The program, and what the API remembers besides.
pub(super) struct Offered {
    pub(super) program: Program,
    /// Who acts in which session. That never changes.
    owners: Mutex<HashMap<String, String>>,
    /// What it tells about itself.
    pub(super) log: Log,
    /// Hears of what other servers write, once anybody wants to know.
    watch: Mutex<Option<Watch>>,
}

impl Offered {
    pub(super) fn new(program: Program, log: Log) -> Self {
        Self {
            program,
            log,
            owners: Mutex::new(HashMap::new()),
            watch: Mutex::new(None),
        }
    }

    fn perform(
        &self,
        caller: &Caller,
        endpoint: &Endpoint,
        given: &Given<'_>,
        output: Output,
    ) -> Result<Called, CliError> {
        let is_agent = caller.roles.contains(&Role::Agent);
        let places = &self.program.places;
        let named = given.value("workspace").and_then(Value::as_str);
        let directory = match (endpoint.takes("workspace"), named) {
            // A session begins under the server's own rules, if nothing else is asked for.
            (true, None) if endpoint.form.name == "session_start" => places.none().to_owned(),
            (true, named) => places.find(caller, named)?,
            (false, _) => places.none().to_owned(),
        };
        self.stays_inside(caller, endpoint, given)?;
        let mut session = given.session().map(str::to_owned);
        if let (true, Session::Word, Some(prefix)) = (is_agent, endpoint.form.session, &session) {
            session = Some(self.own(caller, prefix)?);
        }
        let Words { mut words, input } = given.words(session.as_deref());
        let count = |name: &str| given.value(name).and_then(Value::as_u64);
        let cursor = given.value("cursor").and_then(Value::as_str);
        let wanted = Wanted::new(count("limit"), cursor);
        let mut more = match endpoint.list {
            List::No => Vec::new(),
            List::Cut(..) => vec![format!("--limit={}", wanted.enough())],
            List::Places => vec![
                format!("--limit={}", wanted.limit()),
                format!("--from={}", wanted.place()),
            ],
        };
        if is_agent && endpoint.form.name == "session_list" {
            more.push(format!("--principal={}", caller.name));
        }
        let place = endpoint.form.command.len().min(words.len());
        words.splice(place..place, more);
        let trail = self.program.trail.apart();
        let work = Work {
            words: &words,
            input: input.unwrap_or_default().into_bytes(),
            directory: &directory,
            trail: trail.clone(),
        };
        if output == Output::Text {
            let (answer, text) = self.program.show(caller, work);
            return Ok(Called {
                answer,
                text,
                next: None,
                recorded: trail.has_recorded(),
            });
        }
        let mut answer = self.program.execute(caller, work);
        let next = match endpoint.list {
            _ if answer.exit != 0 => None,
            List::No => None,
            List::Cut(field, id) => wanted.cut(&mut answer.document, field, id),
            List::Places => {
                let next = answer.document.get("next").and_then(Value::as_str);
                next.map(str::to_owned)
            }
        };
        Ok(Called {
            answer,
            text: None,
            next,
            recorded: trail.has_recorded(),
        })
    }

    /// Whether an integration changes nothing outside the roots: what was made from somewhere
    /// else is brought back there by whoever made it.
    fn stays_inside(
        &self,
        caller: &Caller,
        endpoint: &Endpoint,
        given: &Given<'_>,
    ) -> Result<(), CliError> {
        let takes_over = ["workspace_integrate", "workspace_resolve"];
        let named = given.value("workspace_id").and_then(Value::as_str);
        let Some(named) = named.filter(|_| takes_over.contains(&endpoint.form.name)) else {
            return Ok(());
        };
        let progress = &self.program.progress;
        let mut place = progress.place(&progress.find(named)?)?;
        while let Some(found) = place {
            // One that was made from another's directory goes back there first.
            let above = progress.at(&found.origin)?;
            place = above.filter(|above| above.workspace != found.workspace);
            let inside = self.program.places.holds(caller, &found.origin).is_some();
            if place.is_none() && !inside {
                return Err(CliError::NotFound {
                    what: "workspace",
                    name: named.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// A session of the caller's own. Somebody else's is not there.
    fn own(&self, caller: &Caller, prefix: &str) -> Result<String, CliError> {
        let id = self.program.control.find(prefix);
        let unknown = || {
            CliError::Control(ControlError::NotFound {
                what: "session",
                name: prefix.to_owned(),
            })
        };
        let id = match id {
            Ok(id) => id,
            // How many sessions of others begin so is nobody's business.
            Err(ControlError::NotFound { .. } | ControlError::Ambiguous { .. }) => {
                return Err(unknown());
            }
            Err(error) => return Err(error.into()),
        };
        match self.owner(&id)?.is_some_and(|owner| owner == caller.name) {
            true => Ok(id.to_string()),
            false => Err(unknown()),
        }
    }

    fn owner(&self, id: &SessionId) -> Result<Option<String>, ControlError> {
        let owners = || self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = owners().get(id.as_str()) {
            return Ok(Some(owner.clone()));
        }
        let Some(owner) = self.program.control.principal_of(id)? else {
            return Ok(None);
        };
        let mut owners = owners();
        if owners.len() >= REMEMBERED {
            owners.clear();
        }
        owners.insert(id.to_string(), owner.clone());
        Ok(Some(owner))
    }

    /// Whether an entry is of a workspace: in its stream, or a signal of one directly below it.
    fn is_of(&self, workspace: &str, entry: &Entry) -> Result<bool, Unavailable> {
        if entry.stream.as_str() == workspace {
            return Ok(true);
        }
        let below = entry.stream.as_str().parse::<WorkspaceId>().ok();
        let Some(below) = below.filter(|_| entry.kind.as_str() == "signal_emitted") else {
            return Ok(false);
        };
        let found = self.program.progress.workspace(&below);
        let found = found.map_err(|error| Unavailable(error.to_string()))?;
        Ok(found.parent.is_some_and(|it| it.as_str() == workspace))
    }

    /// Whether a caller may see an entry.
    fn sees(&self, caller: &Caller, entry: &Entry) -> Result<bool, ControlError> {
        if caller.roles.iter().any(|role| *role != Role::Agent) {
            return Ok(true);
        }
        match entry.stream.as_str().parse::<SessionId>() {
            Err(_) => Ok(false),
            Ok(id) => Ok(self.owner(&id)?.is_some_and(|owner| owner == caller.name)),
        }
    }
}

impl Commands for Offered {
    fn caller(&self, token: &str) -> Result<Option<Caller>, Unavailable> {
        self.program.caller(token)
    }

    fn home(
        &self,
        caller: &Caller,
        record: Record,
        id: &str,
    ) -> Result<Option<PathBuf>, Unavailable> {
        self.program.home(caller, record, id)
    }

    fn run(&self, caller: &Caller, command: &Command) -> Answer {
        self.program.run(caller, command)
    }
}

impl Visits for Offered {
    fn begin_visit(&self, token: &str) -> Result<Option<String>, Unavailable> {
        let begun = self.program.control.begin_visit(token);
        let cookie = begun.map_err(unavailable)?;
        Ok(cookie.map(|cookie| cookie.reveal().to_owned()))
    }

    fn visitor(&self, cookie: &str, asker: Asker) -> Result<Option<Caller>, Unavailable> {
        let asker = match asker {
            Asker::Person => Asks::Person,
            Asker::Page => Asks::Page,
        };
        let token = self.program.control.visit(cookie, asker);
        Ok(token.map_err(unavailable)?.as_ref().map(caller_of))
    }

    fn end_visit(&self, cookie: &str) -> Result<(), Unavailable> {
        let ended = self.program.control.end_visit(cookie);
        ended.map_err(unavailable)
    }
}

impl Api for Offered {
    fn endpoints(&self) -> Vec<EndpointNote> {
        endpoints().map(Endpoint::note).collect()
    }

    fn description(&self) -> Value {
        openapi::document()
    }

    fn call(
        &self,
        caller: &Caller,
        endpoint: &str,
        given: &Map<String, Value>,
        output: Output,
    ) -> Result<Called, Refused> {
        let found = endpoints().find(|it| it.form.name == endpoint);
        let found = found.ok_or_else(|| Refused("there is no such endpoint".to_owned()))?;
        let given = Given::check(&found.form, given, Naming::Strict).map_err(Refused)?;
        let performed = self.perform(caller, found, &given, output);
        Ok(performed.unwrap_or_else(|error| Called {
            answer: failed(&error),
            text: None,
            next: None,
            recorded: false,
        }))
    }

    fn begin(&self, caller: &Caller, key: &str, request: Digest) -> Result<Begun, Unavailable> {
        let life: Span = LIFE.parse().map_err(|_| Unavailable(LIFE.to_owned()))?;
        let control = &self.program.control;
        let begun = control.begin_reply(&caller.name, key, request, life);
        Ok(match begun.map_err(unavailable)? {
            Known::New => Begun::New,
            Known::Taken => Begun::Taken,
            Known::Other => Begun::Other,
            Known::Answered(StoredReply { status, body }) => Begun::Answered(Kept { status, body }),
        })
    }

    fn keep(&self, caller: &Caller, key: &str, kept: &Kept) -> Result<(), Unavailable> {
        let reply = StoredReply {
            status: kept.status,
            body: kept.body.clone(),
        };
        let control = &self.program.control;
        control
            .keep_reply(&caller.name, key, &reply)
            .map_err(unavailable)
    }

    fn give_back(&self, caller: &Caller, key: &str) -> Result<(), Unavailable> {
        let control = &self.program.control;
        control.drop_reply(&caller.name, key).map_err(unavailable)
    }

    fn workspace(&self, named: &str) -> Result<Option<String>, Unavailable> {
        match self.program.progress.find(named) {
            Ok(id) => Ok(Some(id.to_string())),
            Err(ProgressError::NotFound { .. } | ProgressError::Ambiguous { .. }) => Ok(None),
            Err(error) => Err(Unavailable(error.to_string())),
        }
    }

    fn events(
        &self,
        caller: &Caller,
        workspace: Option<&str>,
        from: u64,
        most: usize,
    ) -> Result<Events, Unavailable> {
        let query = Query {
            from,
            ..Query::default()
        };
        let mut entries: Vec<Entry> = Vec::new();
        let read = self
            .program
            .trail
            .entries(&query, |entry| -> Result<Flow, TrailError> {
                entries.push(entry);
                Ok(match entries.len() < most {
                    true => Flow::More,
                    false => Flow::Enough,
                })
            });
        read.map_err(|error| Unavailable(error.to_string()))?;
        let mut found = Events {
            events: Vec::new(),
            next: entries.last().map_or(from, |entry| entry.seq + 1),
        };
        for entry in entries {
            let (wanted, heard) = match workspace {
                None => (true, false),
                // Who may list the signals of a workspace may also hear them.
                Some(workspace) => (
                    self.is_of(workspace, &entry)?,
                    SIGNALS.contains(&entry.kind.as_str()),
                ),
            };
            if wanted && (heard || self.sees(caller, &entry).map_err(unavailable)?) {
                found.events.push(Event {
                    place: entry.seq,
                    kind: entry.kind.to_string(),
                    data: serde_json::to_string(&entry)
                        .map_err(|error| Unavailable(error.to_string()))?,
                });
            }
        }
        Ok(found)
    }

    fn size(&self) -> Result<u64, Unavailable> {
        let head = self.program.trail.head();
        head.map(|head| head.size())
            .map_err(|error| Unavailable(error.to_string()))
    }

    fn wait(&self, most: Duration) -> Result<(), Unavailable> {
        let unavailable = |error: safepoint_store::StoreError| Unavailable(error.to_string());
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = match &mut *watch {
            Some(watch) => watch,
            none => none.insert(self.program.trail.store().watch().map_err(unavailable)?),
        };
        watch.wait(most).map(drop).map_err(unavailable)
    }

    fn gauges(&self) -> Result<Gauges, Unavailable> {
        let desk = safepoint_control::pass::Desk {
            control: &self.program.control,
            permit_life: LIFE.parse().map_err(|_| Unavailable(LIFE.to_owned()))?,
        };
        let waiting = desk.waiting().map_err(unavailable)?;
        Ok(Gauges {
            holds_open: waiting.len() as u64,
            trail_size: self.size()?,
        })
    }

    fn log(&self, line: Map<String, Value>) {
        self.log.tell(line);
    }
}

fn unavailable(error: ControlError) -> Unavailable {
    Unavailable(error.to_string())
}
