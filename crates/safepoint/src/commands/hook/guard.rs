//! Says one answer, whatever happens: a panic on any thread and a deadline that passes are
//! refusals.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use safepoint_clients::{Client, Heard, Wire, refuse};

/// What is needed to answer.
struct Shared {
    client: Client,
    event: Mutex<Option<String>>,
    answered: AtomicBool,
    /// How long it may take, in milliseconds.
    patience: AtomicU64,
}

/// The one answer.
pub(super) struct Answering(Arc<Shared>);

/// Watches over everything that follows.
pub(super) fn watch(client: Client, patience: Duration) -> Answering {
    let shared = Arc::new(Shared {
        client,
        event: Mutex::new(None),
        answered: AtomicBool::new(false),
        patience: AtomicU64::new(millis(patience)),
    });
    let panicked = Arc::clone(&shared);
    std::panic::set_hook(Box::new(move |info| {
        panicked.refuse(&format!("safepoint: it has gone wrong inside: {info}"));
    }));
    // One that is told to end has not answered, and a client that hears nothing goes on.
    use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGUSR1, SIGUSR2};
    let always = Arc::new(AtomicBool::new(true));
    for signal in [SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGUSR1, SIGUSR2] {
        let always = Arc::clone(&always);
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 2, always);
    }
    let late = Arc::clone(&shared);
    std::thread::spawn(move || {
        let mut slept = 0;
        loop {
            let patience = late.patience.load(Ordering::SeqCst);
            if slept >= patience {
                break;
            }
            std::thread::sleep(Duration::from_millis(patience - slept));
            slept = patience;
        }
        late.refuse(
            "safepoint: it has taken too long to judge this; nothing was let through, try again",
        );
    });
    Answering(shared)
}

impl Answering {
    /// The event is known from now on: a refusal takes its form.
    pub(super) fn heard(&self, heard: &Heard) {
        if let Ok(mut event) = self.0.event.lock() {
            *event = Some(heard.name.clone());
        }
    }

    /// It may take so long from the beginning.
    pub(super) fn may_take(&self, patience: Duration) {
        let patience = millis(patience);
        self.0.patience.store(patience, Ordering::SeqCst);
    }

    /// Answers.
    pub(super) fn say(&self, wire: &Wire) -> ExitCode {
        self.0.answered.store(true, Ordering::SeqCst);
        ExitCode::from(say(wire))
    }
}

impl Shared {
    /// Refuses, and ends the process.
    fn refuse(&self, reason: &str) {
        if self.answered.swap(true, Ordering::SeqCst) {
            return;
        }
        let event = self.event.lock().map(|event| event.clone()).unwrap_or(None);
        let code = say(&refuse(self.client, event.as_deref(), reason));
        #[expect(
            clippy::disallowed_methods,
            reason = "whatever the other threads do, this is the end"
        )]
        std::process::exit(i32::from(code));
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Writes an answer. One that cannot be written is a refusal.
fn say(wire: &Wire) -> u8 {
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(wire.stdout.as_bytes())
        .and_then(|()| output.flush());
    let _ = std::io::stderr().write_all(wire.stderr.as_bytes());
    match written {
        Ok(()) => wire.exit,
        Err(_) => 2,
    }
}
