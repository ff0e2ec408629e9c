//! Outside of the sandbox: a process that answers for one line, and ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use safepoint_control::pass::{LineOrder, LineReport, OrderedLine};
use safepoint_model::{ActionId, Entropy, SessionId};

use super::super::{not_ours, refusals_in_words};
use super::calls;
use super::pipes::{self, MessageReader, Received};
use super::{FORMAT, FromInside, FromOutside, key, place};
use crate::cli::Global;
use crate::commands::passing::{Flags, Room};
use crate::context::Context;
use crate::error::CliError;
use crate::world::{Environment, SystemEntropy};

/// So often a relay waits a second for its line: a client may ask a person before it runs one.
const MAX_WAITS: u32 = 3600;
const WAIT_MILLISECONDS: u32 = 1000;
/// The pause after somebody has come and gone without a word.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// Arguments of `relay`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where its pipes are
    directory: PathBuf,
    /// The client
    client: String,
    /// The client's own name of its session
    session: String,
    /// The action that was let through, or the session of a line that only calls `safepoint`
    work: String,
}

/// A line that a relay is started for.
pub(crate) struct RelayedLine<'a> {
    /// By what it is found inside: the action, or the client's session.
    pub(crate) name: &'a str,
    /// The line, as it was let through.
    pub(crate) line: &'a str,
    /// The client, and its session.
    pub(crate) client: &'a str,
    pub(crate) session: &'a str,
    /// What was let through: an action, or a session of ours where the line only calls us.
    pub(crate) work: &'a str,
}

/// Starts a relay for a line, in a process of its own.
pub(crate) fn start(context: &Context, line: &RelayedLine<'_>) -> Result<(), CliError> {
    safepoint_store::durable::create_directory(&context.paths.runtime)?;
    let mut random = [0; 16];
    SystemEntropy
        .fill(&mut random)
        .map_err(std::io::Error::other)?;
    let name = format!(
        "{}-{:032x}-{}",
        key(line.name, line.line),
        u128::from_ne_bytes(random),
        key(line.session, ""),
    );
    let ends = pipes::make(&place(&context.paths.runtime), &name)?;
    let started = spawn(context, line, &ends.directory, ends.ask, ends.answer);
    if started.is_err() {
        pipes::remove(&ends.directory);
    }
    Ok(started?)
}

fn spawn(
    context: &Context,
    line: &RelayedLine<'_>,
    directory: &Path,
    ask: File,
    answer: File,
) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    #[expect(clippy::disallowed_methods, reason = "this program itself")]
    let mut command = Command::new(crate::world::this_program()?);
    if let Some(store) = &context.store_given {
        command.arg("--store").arg(store);
    }
    command
        .arg("relay")
        .arg("--")
        .arg(directory)
        .args([line.client, line.session, line.work])
        .current_dir(&context.directory)
        .env_remove("SAFEPOINT_AGENT")
        .stdin(Stdio::from(ask))
        .stdout(Stdio::from(answer))
        .stderr(Stdio::null())
        // The client ends the group of its hook.
        .process_group(0)
        .spawn()?;
    Ok(())
}

/// Answers for one line.
pub(crate) fn run(global: &Global, arguments: &Arguments) -> ExitCode {
    let _ = rustix::process::setsid();
    let served = own_ends(arguments)
        .map_err(CliError::from)
        .and_then(|mut ends| {
            let served = serve(global, arguments, &mut ends);
            pipes::remove(&arguments.directory);
            served
        });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The pipes, which this process was given as its standard streams. What it starts gets none.
fn own_ends(arguments: &Arguments) -> std::io::Result<Ends> {
    let ask = rustix::stdio::stdin().try_clone_to_owned()?;
    let answer = rustix::stdio::stdout().try_clone_to_owned()?;
    #[expect(clippy::disallowed_methods, reason = "nothing is kept there")]
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(Ends {
        reader: MessageReader::new(ask.into()),
        answer: answer.into(),
        directory: arguments.directory.clone(),
    })
}

struct Ends {
    reader: MessageReader,
    answer: File,
    directory: PathBuf,
}

impl Ends {
    fn send(&mut self, message: &FromOutside) -> std::io::Result<()> {
        let reader = &self.reader;
        pipes::send(&mut self.answer, message, || {
            reader.is_gone(0).unwrap_or(true)
        })
    }

    /// The line, once somebody comes with one. None where nobody will.
    fn claim(&mut self) -> std::io::Result<Option<String>> {
        for _ in 0..MAX_WAITS {
            match self.reader.receive(WAIT_MILLISECONDS)? {
                Received::Message(FromInside::Claim { format, line }) if format == FORMAT => {
                    return Ok(Some(line));
                }
                Received::Message(_) => return Err(std::io::Error::other("that is no claim")),
                Received::Nothing => {}
                Received::Gone => std::thread::sleep(PAUSE),
            }
            if !self.directory.is_dir() {
                break;
            }
        }
        Ok(None)
    }

    /// How the line ended.
    fn report(&mut self) -> std::io::Result<LineReport> {
        loop {
            match self.reader.receive(WAIT_MILLISECONDS)? {
                Received::Message(FromInside::Ended { report }) => return Ok(report),
                Received::Message(FromInside::Claim { .. }) => {
                    return Err(std::io::Error::other("it was claimed already"));
                }
                Received::Nothing => {}
                Received::Gone => return Err(std::io::Error::other("nobody told how it ended")),
            }
        }
    }
}

fn serve(global: &Global, arguments: &Arguments, ends: &mut Ends) -> Result<(), CliError> {
    let Some(line) = ends.claim()? else {
        return Ok(());
    };
    pipes::mark_claimed(&ends.directory)?;
    if arguments.work.parse::<SessionId>().is_ok() {
        let names = [arguments.work.as_str(), arguments.session.as_str()];
        let is_own = calls::is_own_line(&ends.directory, names, &line);
        let called = match is_own {
            true => calls::call(global, &arguments.client, &arguments.work, &line),
            false => Err(not_ours()),
        };
        let called = called.unwrap_or_else(|error| FromOutside::Refused {
            why: error.to_string(),
        });
        return Ok(ends.send(&called)?);
    }
    // The hook has started it there.
    let here = Environment::read()?.directory;
    let ordered = order(global, arguments, &here, &line);
    let (mut context, room, ordered, order) = match ordered {
        Ok(all) => all,
        Err(error) => {
            let why = error.to_string();
            return Ok(ends.send(&FromOutside::Refused { why })?);
        }
    };
    let passage = room.passage();
    let message = FromOutside::Order {
        format: FORMAT,
        order: Box::new(order),
    };
    let report = ends.send(&message).and_then(|()| ends.report());
    let Ok(report) = report else {
        return Ok(passage.lose_line(ordered)?);
    };
    let performed = passage.conclude_line(ordered, report)?;
    context.console.flush()?;
    Ok(ends.send(&FromOutside::Recorded {
        refusals: refusals_in_words(&performed.record),
    })?)
}

fn order(
    global: &Global,
    arguments: &Arguments,
    here: &Path,
    line: &str,
) -> Result<(Context, Room, OrderedLine, LineOrder), CliError> {
    let mut context = Context::of_agent(global, here, &arguments.client)?;
    context.recover()?;
    let flags = Flags::of_hook(false);
    let room = Room::of_client(&mut context, &flags, &arguments.client, &arguments.session)?;
    let action: ActionId = arguments.work.parse().map_err(|_| not_ours())?;
    let claimed = room.control.claim_line(&action, line)?;
    let (ordered, order) = room.passage().order_line(claimed)?;
    Ok((context, room, ordered, order))
}
