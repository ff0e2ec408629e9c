//! `safepoint serve`: the API over HTTP for people and agents elsewhere, and the page.
//!
//! It has the store open, and runs the program's own commands for whoever shows a token. It
//! signs for nobody: what decides comes with a signature that was made elsewhere.

mod api;
mod chores;
mod cut;
pub(crate) mod endpoint;
mod log;
mod openapi;
mod place;
mod program;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use safepoint_control::Control;
use safepoint_model::{Digest, Entropy, Exit, Span};
use safepoint_server::api::{Host, Options, Page, ServeError, Tls, serve};
use safepoint_server::page::{Around, Transport, router};
use safepoint_store::Leases;
use serde_json::json;

use self::api::Offered;
use self::chores::Chores;
use self::log::Log;
use self::place::Places;
use self::program::Program;
use crate::cli::Global;
use crate::console::Mode;
use crate::context::{Context, MissingDirectory};
use crate::error::CliError;
use crate::world::{SystemClock, SystemEntropy};

#[cfg(test)]
pub(crate) use self::openapi::{document, reference};

/// The most in the body of a request.
const LARGEST_BODY: usize = 4 << 20;

/// How long the last lines of the log wait for whoever reads them.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Arguments of `serve`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to listen
    ///
    /// Another address than one of this machine needs a certificate, or `--insecure` where
    /// something in front of it has one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8940")]
    listen: String,
    /// A directory below which workspaces lie; can be given several times
    ///
    /// Without it: the workspace that it was started in.
    #[arg(long, value_name = "DIR")]
    root: Vec<PathBuf>,
    /// A name under which it is reached, besides the address; can be given several times
    ///
    /// `https://NAME` where something in front of it has a certificate: pages are then held
    /// to HTTPS.
    #[arg(long, value_name = "NAME")]
    host: Vec<Host>,
    /// The certificate, and those above it, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen without a certificate where others can hear it
    #[arg(long)]
    insecure: bool,
    /// How long a request may take to come in
    #[arg(long, value_name = "TIME", default_value = "15s")]
    timeout: Span,
    /// How long to wait at the end for what still runs
    #[arg(long, value_name = "TIME", default_value = "20s")]
    grace: Span,
    /// How many commands run at once
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=512))]
    jobs: u16,
    /// Requests a second for one token; an address may have ten times as many
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
}

/// Serves until a signal says to end.
pub(crate) fn run(global: &Global, arguments: &Arguments) -> ExitCode {
    let mut console = global.console();
    let served = prepare(global, arguments).and_then(|(offered, options)| {
        let offered = Arc::new(offered);
        let page = page(Arc::clone(&offered), &options);
        let store = offered.program.trail.store().clone();
        let leases = Leases::open(store, options.instance.clone())?;
        let chores = Chores::begin(&offered, leases).map_err(ServeError::Broken)?;
        let told = serve(Arc::clone(&offered), options, Some(page), |url| {
            let shown = match console.mode {
                Mode::Text => format!("{url}\n"),
                Mode::Json | Mode::Ndjson => format!("{}\n", json!({ "url": url })),
            };
            // Nobody to tell it to is no reason to fail.
            let _ = console.print(&shown).and_then(|()| console.flush());
        });
        drop(chores);
        offered.log.end(LAST_LINES);
        told.map_err(CliError::from)
    });
    let exit = match served {
        Ok(()) => Exit::Done,
        Err(error) => console.fail(&error),
    };
    ExitCode::from(exit as u8)
}

/// The page for people, over the same commands.
fn page(offered: Arc<Offered>, options: &Options) -> Page {
    let https = |host: &Host| matches!(host, Host::Https(_));
    let transport = match options.tls.is_some() || options.hosts.iter().any(https) {
        true => Transport::Tls,
        false => Transport::Plain,
    };
    let around = Around {
        clock: Arc::new(SystemClock),
        transport,
    };
    Page::new(router(offered, around))
}

fn prepare(global: &Global, arguments: &Arguments) -> Result<(Offered, Options), CliError> {
    let mut context = Context::new(global, MissingDirectory::Refuse)?;
    if context.settings.server.is_some() {
        return Err(CliError::Invalid {
            message: "a server cannot have another server for its store".to_owned(),
            suggestion: "give it `sqlite:PATH` or `postgres://…` by `--store` or `SAFEPOINT_STORE`",
        });
    }
    let address = address(arguments)?;
    let tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificates), Some(key)) => Some(Tls {
            certificates: read(&context, certificates)?,
            key: read(&context, key)?,
        }),
        _ => None,
    };
    if !address.ip().is_loopback() && tls.is_none() && !arguments.insecure {
        return Err(CliError::Invalid {
            message: format!(
                "`{address}` can be reached from elsewhere, and tokens would be read on the way"
            ),
            suggestion: "give `--tls-cert` and `--tls-key`, or say `--insecure` where something in front of it has a certificate",
        });
    }
    let roots = match arguments.root.is_empty() {
        false => arguments.root.clone(),
        // A home or a whole disk is never meant without being named.
        true => context
            .workspace()
            .map(|it| vec![it.root])
            .unwrap_or_default(),
    };
    let places = Places::new(&roots, &context.directory)?;
    // Whatever a crash cut off is ended before anybody asks.
    let state = context.state()?;
    let control: Control = context.control()?;
    let progress = context.progress()?;
    let mut bytes = [0; 32];
    SystemEntropy
        .fill(&mut bytes)
        .map_err(|error| CliError::Control(error.into()))?;
    let instance = Digest::from_bytes(bytes)
        .to_string()
        .chars()
        .take(8)
        .collect();
    let program = Program {
        global: global.clone(),
        environment: context.environment.clone(),
        trail: control.trail().clone(),
        control,
        places,
        state,
        progress,
        _presence: context.stay(),
    };
    let options = Options {
        address,
        hosts: arguments.host.clone(),
        tls,
        instance,
        largest_body: LARGEST_BODY,
        patience: duration(arguments.timeout),
        grace: duration(arguments.grace),
        jobs: usize::from(arguments.jobs),
        rate: arguments.rate,
    };
    let log = Log::new(std::io::stderr()).map_err(|error| ServeError::Broken(error).into());
    log.map(|log| (Offered::new(program, log), options))
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.as_micros()).max(Duration::from_millis(100))
}

fn address(arguments: &Arguments) -> Result<SocketAddr, CliError> {
    let found = arguments.listen.to_socket_addrs().ok();
    let found = found.and_then(|mut it| it.next());
    found.ok_or_else(|| CliError::Invalid {
        message: format!("`{}` is not an address with a port", arguments.listen),
        suggestion: "name one, such as `127.0.0.1:8940`",
    })
}

fn read(context: &Context, path: &Path) -> Result<Vec<u8>, CliError> {
    let path = context.directory.join(path);
    std::fs::read(&path).map_err(|error| CliError::File {
        action: "read",
        path,
        error,
    })
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Tls(reason) => Self::Invalid {
                message: format!("the certificate or its key cannot be used: {reason}"),
                suggestion: "both are PEM files, and the key is the one of the first certificate",
            },
            ServeError::Listen { address, error } => Self::File {
                action: "listen on",
                path: address.to_string().into(),
                error,
            },
            ServeError::Broken(error) => Self::File {
                action: "go on serving",
                path: "serve".into(),
                error,
            },
        }
    }
}
