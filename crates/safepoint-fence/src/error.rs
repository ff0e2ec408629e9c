//! What can go wrong with a fence, its broker, or a look at the process tree.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::broker::CallRefusal;

/// Why a process could not be fenced, or a call could not be handed over.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// A path of the fence cannot be used.
    #[error("cannot fence `{}`", path.display())]
    Path {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A path of the fence does not say where it begins.
    #[error("cannot fence `{}`: it must be an absolute path without `..`", path.display())]
    Unclear {
        /// Which.
        path: PathBuf,
    },
    /// A path of the fence leads elsewhere by now.
    #[error("cannot fence `{}`: a link leads it elsewhere by now", path.display())]
    Linked {
        /// Which.
        path: PathBuf,
    },
    /// The kernel did not take the rules.
    #[error("the kernel refused the rules of the fence")]
    Rules(#[source] landlock::RulesetError),
    /// The kernel took the rules, but does not hold all of them.
    #[error("the kernel does not hold all rules of the fence, so nothing was started")]
    NotHeld,
    /// The kernel did not let the process be supervised.
    #[error("the kernel does not let what starts here be supervised, so nothing was started")]
    Supervisor(#[source] io::Error),
    /// The thread that starts the process could not be started, or died.
    #[error("cannot start the thread that fences `{}`", program.display())]
    Thread {
        /// What was to be started.
        program: OsString,
        /// Why not, where that is known.
        source: Option<io::Error>,
    },
    /// The process could not be started.
    #[error("cannot start `{}` inside the fence", program.display())]
    Start {
        /// Which program.
        program: OsString,
        /// Why not.
        source: io::Error,
    },
    /// The directory of the broker is not for us alone.
    #[error("`{}` is not safe for a socket: {why}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A socket did not do what it should.
    #[error("the socket `{}` failed", path.display())]
    Socket {
        /// Which.
        path: PathBuf,
        /// How.
        source: io::Error,
    },
    /// Nobody listens there any more.
    #[error("nobody answers at `{}`: the `safepoint run` outside the fence has ended", path.display())]
    Absent {
        /// Where.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// The other side went away before it answered.
    #[error("`{}` ended the call without an answer", path.display())]
    Unanswered {
        /// Where.
        path: PathBuf,
    },
    /// The other side did not take the call.
    #[error("`{}` refused the call: {refusal}", path.display())]
    Refused {
        /// Where.
        path: PathBuf,
        /// Why.
        refusal: CallRefusal,
    },
    /// The call does not fit into a request.
    #[error("the call is too large: {size} bytes of {what}, and {limit} are allowed")]
    TooLarge {
        /// Arguments or variables.
        what: &'static str,
        /// How large.
        size: usize,
        /// How large it may be.
        limit: usize,
    },
    /// The kernel does not make us the keeper of orphans.
    #[error("cannot keep orphans in the process tree")]
    Subreaper(#[source] io::Error),
}
