//! Named points at which a test may kill the process.
//!
//! Without the feature `fault-points`, which only `testkit` switches on,
//! [`point`] is nothing at all.

/// The fault points of this crate, in the order a write passes them.
pub const POINTS: [&str; 7] = [
    "write.begun",
    "write.changed",
    "write.sealed",
    "write.committed",
    "write.durable",
    "file.written",
    "file.renamed",
];

/// Kills the process here, as `kill -9` would, if `SAFEPOINT_FAULT` names this
/// point. `SAFEPOINT_FAULT=NAME:3` means the third time it is passed.
#[cfg(feature = "fault-points")]
#[expect(
    clippy::disallowed_methods,
    reason = "compiled into tests only, which have no other way in"
)]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    meddle(name);
    save(name);
    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    let wanted = WANTED.get_or_init(|| {
        let wanted = std::env::var("SAFEPOINT_FAULT").ok()?;
        Some(match wanted.split_once(':') {
            Some((name, nth)) => (name.to_owned(), nth.parse().unwrap_or(1)),
            None => (wanted, 1),
        })
    });
    let Some((wanted, nth)) = wanted else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *nth {
        let me = rustix::process::getpid();
        // If the signal cannot be sent, the test that waits for it fails.
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
    }
}

/// Makes a new file at this point, as a person may just then, if `SAFEPOINT_SAVE` names the point
/// and, behind a colon, the directory.
#[cfg(feature = "fault-points")]
#[expect(
    clippy::disallowed_methods,
    reason = "compiled into tests only, which have no other way in"
)]
fn save(name: &str) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SAVED: AtomicU64 = AtomicU64::new(0);
    let Ok(wanted) = std::env::var("SAFEPOINT_SAVE") else {
        return;
    };
    if let Some((point, directory)) = wanted.split_once(':')
        && point == name
    {
        let number = SAVED.fetch_add(1, Ordering::Relaxed);
        let file = format!("{directory}/{}-{number}.md", std::process::id());
        // If it cannot be made, the test that looks for it fails.
        let _ = std::fs::write(file, "saved by a person");
    }
}

/// Whether a test has switched this on: it shows what follows when something is wrong.
#[cfg(feature = "fault-points")]
#[expect(
    clippy::disallowed_methods,
    reason = "compiled into tests only, which have no other way in"
)]
pub fn is_switched(name: &str) -> bool {
    std::env::var("SAFEPOINT_SWITCH").is_ok_and(|wanted| wanted == name)
}

/// Nothing is: switches exist in tests only.
#[cfg(not(feature = "fault-points"))]
#[inline(always)]
pub fn is_switched(_name: &str) -> bool {
    false
}

/// What another process may do at a point.
#[cfg(feature = "fault-points")]
type Meddler = Box<dyn FnMut(&str)>;

#[cfg(feature = "fault-points")]
thread_local! {
    static MEDDLER: std::cell::RefCell<Option<Meddler>> = const { std::cell::RefCell::new(None) };
}

/// Has `act` run at each point that this thread passes, until [`undisturbed`]: it stands
/// for what others do just then. When it unwinds, nobody disturbs any more.
#[cfg(feature = "fault-points")]
pub fn disturbed(act: impl FnMut(&str) + 'static) {
    MEDDLER.set(Some(Box::new(act)));
}

/// Ends what [`disturbed`] began.
#[cfg(feature = "fault-points")]
pub fn undisturbed() {
    MEDDLER.set(None);
}

#[cfg(feature = "fault-points")]
fn meddle(name: &str) {
    // Taken out meanwhile: what is done there may pass points itself.
    if let Some(mut act) = MEDDLER.take() {
        act(name);
        MEDDLER.set(Some(act));
    }
}

/// Nothing: fault points exist in tests only.
#[cfg(not(feature = "fault-points"))]
#[inline(always)]
pub fn point(_name: &str) {}
