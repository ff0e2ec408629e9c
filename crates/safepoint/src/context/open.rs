//! What a command opens: the trail, and what stands upon it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use safepoint_control::Control;
use safepoint_control::pass::Desk;
use safepoint_model::WorkspaceId;
use safepoint_progress::{Presence, Progress};
use safepoint_state::{Access, Caller, End, Remedy, State};
use safepoint_store::{Blobs, Depot, Options, Store};
use safepoint_trail::{LostStore, Surroundings, Trail};

use super::{Context, adopting};
use crate::console::count;
use crate::error::CliError;
use crate::world::{SystemClock, SystemEntropy, home_of_user};

/// Where supervisors of one session tell each other what its commands have started.
const REGISTRY: &str = "network";

impl Context {
    /// Opens the store and its trail, and makes them where there are none.
    pub(crate) fn trail(&self) -> Result<Trail, CliError> {
        self.trail_or(LostStore::Refuse)
    }

    /// The same, with a say in what happens to an empty store that was not empty before.
    pub(crate) fn trail_or(&self, lost_store: LostStore) -> Result<Trail, CliError> {
        if let Some(served) = &self.served {
            return Ok(served.trail.clone());
        }
        let options = Options {
            lock_timeout: Duration::from_micros(self.settings.lock_timeout.value.as_micros()),
        };
        let store = Store::open(&self.settings.store.value, options)?;
        Ok(Trail::open(
            Arc::new(store),
            &self.surroundings(lost_store)?,
        )?)
    }

    /// Opens the sessions.
    pub(crate) fn control(&self) -> Result<Control, CliError> {
        Ok(Control::open(self.trail()?, self.control_surroundings()?)?)
    }

    pub(super) fn control_surroundings(&self) -> Result<safepoint_control::Surroundings, CliError> {
        Ok(safepoint_control::Surroundings {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            actor: self.actor()?,
            caller: Box::new(safepoint_control::Https::new()),
        })
    }

    /// Opens the sessions and the snapshots of one store.
    pub(crate) fn control_and_state(&mut self) -> Result<(Control, State), CliError> {
        let state = self.state()?;
        let control = Control::open(state.trail().clone(), self.control_surroundings()?)?;
        Ok((control, state))
    }

    /// Opens the workspaces of agents and their chains, and brings to its end what others
    /// left undone.
    pub(crate) fn progress(&mut self) -> Result<Progress, CliError> {
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let progress = Progress::open(self.trail()?, clock, entropy)?;
        if self.served.is_some() {
            // The server came in once, for all that it is asked.
            progress.tick()?;
            return Ok(progress);
        }
        let present = self.paths.state.join("present");
        let presence = Presence::enter(&present, &SystemEntropy)?;
        if let Some(recovered) = progress.resume(&presence)? {
            let told = recovered.signals_requeued;
            let told = count(told, "signal was", "signals were");
            self.console.say(&format!(
                "recovered: a process was cut off here; {told} delivered"
            ));
        }
        self.presence = Some(presence);
        for id in progress.tick()? {
            self.console
                .say(&format!("`{id}` ran out of its time, and has failed"));
        }
        Ok(progress)
    }

    /// Our mark beside the store, for whoever goes on when this context is gone.
    pub(crate) fn stay(&mut self) -> Option<Presence> {
        self.presence.take()
    }

    /// The operator's desk.
    pub(crate) fn desk<'c>(&self, control: &'c Control) -> Desk<'c> {
        Desk {
            control,
            permit_life: self.settings.hold_timeout.value,
        }
    }

    /// Where what sessions share is kept while they go on.
    pub(crate) fn registry(&self) -> PathBuf {
        self.paths.runtime.join(REGISTRY)
    }

    /// Where clients' file tools say that no name may move.
    pub(crate) fn freezes(&self) -> PathBuf {
        safepoint_control::pass::freezer_of(&self.registry())
    }

    /// The workspace of an agent whose directory `root` is. Only what lies below our own data
    /// is looked up.
    pub(crate) fn place_of(
        &self,
        root: &Path,
        trail: &Trail,
    ) -> Result<Option<WorkspaceId>, CliError> {
        let data = std::fs::canonicalize(&self.paths.data);
        if !data.is_ok_and(|data| root.starts_with(data)) {
            return Ok(None);
        }
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let progress = Progress::open(trail.clone(), clock, entropy)?;
        Ok(progress.at(root)?.map(|place| place.workspace))
    }

    /// Ends what a crash cut off, if there is anything: whatever the command is, it
    /// must not work on a tree that is half-way.
    pub(crate) fn recover(&mut self) -> Result<(), CliError> {
        if safepoint_state::is_unfinished(&self.paths.state) {
            self.state()?;
        }
        Ok(())
    }

    /// Where an agent may have written a program: its workspace, and what every fence lets be
    /// written.
    fn agent_places(&self) -> Vec<PathBuf> {
        let mut places = vec!["/tmp".into(), "/var/tmp".into(), self.paths.caches.clone()];
        if let Some(home) = home_of_user() {
            places.extend(safepoint_fence::shared_caches(&home));
        }
        places.extend(self.workspace_root());
        places
    }

    /// Opens the snapshots, and ends what a crash cut off.
    pub(crate) fn state(&mut self) -> Result<State, CliError> {
        let trail = self.trail()?;
        let around = safepoint_state::Surroundings {
            data: self.paths.data.clone(),
            state: self.paths.state.clone(),
            runtime: self.paths.runtime.clone(),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            git: None,
            lock_timeout: Duration::from_micros(self.settings.lock_timeout.value.as_micros()),
            cap: Some(self.settings.object_cap.value.0),
            actor: self.actor()?,
            variables: self.environment.variables(),
            program_path: None,
        };
        let search_path = self.environment.path("PATH").unwrap_or_default();
        let session = self.environment.text("SAFEPOINT_SESSION");
        let open_actions = safepoint_control::pass::open_actions(&trail);
        let mut state = State::open(trail, around)?
            .with_programs(search_path.as_os_str(), self.agent_places())?
            .with_open_actions(open_actions)
            .with_access(self.access)
            .with_session(session.filter(|_| self.is_agent()))
            .with_caller(match self.is_agent() || self.agent.is_some() {
                true => Caller::Agent,
                false => Caller::Person,
            })
            .with_freezes(self.freezes())
            .with_database_check(self.database_check());
        let recovered = state.recover()?;
        if self.access == Access::Reading && !self.told_unfinished {
            self.told_unfinished = true;
            for unfinished in state.unfinished()? {
                let place = unfinished.workspace.display();
                let what = &unfinished.summary;
                self.console.warn_always(&match unfinished.remedy {
                    Remedy::TakeBack => format!(
                        "`{what}` was cut off in `{place}`, and what it wrote may still be there: `safepoint checkpoint`, or any command that writes, takes it back"
                    ),
                    Remedy::Record => format!(
                        "`{what}` was cut off in `{place}`, and what it started may still run: `safepoint checkpoint`, or any command that writes, ends it and records what changed, which `safepoint undo` takes back"
                    ),
                    Remedy::Finish => format!(
                        "`{what}` was cut off in `{place}`, which may be half-way: `safepoint checkpoint`, or any command that writes, finishes it"
                    ),
                    Remedy::Elsewhere => cut_off_elsewhere(what, &unfinished.workspace),
                });
            }
        }
        for recovered in recovered {
            let place = recovered.workspace.display().to_string();
            let what = recovered.summary;
            match recovered.end {
                End::Finished => self.console.say(&format!(
                    "recovered: `{what}` was cut off in `{place}`, and is now finished"
                )),
                End::WithoutSecrets => self.console.warn(&format!(
                    "`{what}` was cut off in `{place}`, and is now finished but for the encrypted files: roll back once more"
                )),
                End::Dropped => self.console.say(&format!(
                    "recovered: `{what}` was cut off before it touched `{place}`, and was dropped"
                )),
                End::Elsewhere => {
                    self.console.warn(&cut_off_elsewhere(&what, &recovered.workspace));
                }
                End::TakenBack => self.console.say(&format!(
                    "recovered: `{what}` was cut off in `{place}`, and what it had done was taken back"
                )),
                End::TakenBackInPart { lost, before } => {
                    for note in lost {
                        let path = &note.path;
                        self.console.warn(&format!(
                            "`{what}` was cut off in `{place}`: what it had written was taken back, and `{path}` is not as it was ({}); where {before} holds it, `safepoint rollback {before} -- ./{path}` brings it back",
                            note.why
                        ));
                    }
                }
                End::Changed(paths) => {
                    let named: Vec<String> = paths
                        .iter()
                        .take(5)
                        .map(|path| format!("`{}`", safepoint_state::path::display(path)))
                        .collect();
                    let more = paths.len().saturating_sub(named.len());
                    let named = match more {
                        0 => named.join(", "),
                        _ => format!("{} and {more} more", named.join(", ")),
                    };
                    self.console.warn(&format!(
                        "`{what}` was cut off in `{place}`; because somebody changed {named} since, it was not finished: what it had done elsewhere was taken back, and those changes were kept"
                    ));
                }
                End::Unknown => self.console.warn(&format!(
                    "`{what}` was cut off in `{place}`, and nobody saw how far it came: what was left of it was ended, `safepoint log` shows what changed, `safepoint undo` takes it back"
                )),
                End::Failed(error) => self.console.warn(&format!(
                    "`{what}` was cut off in `{place}`, and cannot be finished yet: {error}"
                )),
            }
        }
        self.settle_footing(&mut state)?;
        self.settle_cut_off(&state)?;
        Ok(state)
    }

    fn surroundings(&self, lost_store: LostStore) -> Result<Surroundings, CliError> {
        let blobs = Blobs::new(self.paths.data.join("blobs"));
        let blobs = match &self.settings.objects.value {
            None => blobs,
            Some(address) => {
                let variables = |name: &str| self.environment.text(name);
                blobs.shared(Arc::new(Depot::open(address, &variables)?))
            }
        };
        Ok(Surroundings {
            keys: match &self.settings.key.value {
                Some(file) => file.clone(),
                None => self.paths.data.join("keys"),
            },
            witnesses: self.paths.state.join("witness"),
            blobs,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            lost_store,
        })
    }
}

/// What is said of something that was cut off in a directory that is no longer there.
fn cut_off_elsewhere(what: &str, place: &Path) -> String {
    let adopting = adopting(place);
    let place = place.display();
    format!(
        "`{what}` was cut off in `{place}`, which was moved or deleted since: `{adopting}` in its new place finishes it, and `safepoint -C {place} rollback ID` brings the directory back in the old one"
    )
}
