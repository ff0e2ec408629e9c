//! Runs a command behind the fence, and says what was seen of it:
//!
//! ```text
//! supervised WRITABLE-DIRECTORY HOST:PORT,… COMMAND …
//! ```
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "to try the fence by hand"
)]

use std::path::PathBuf;
use std::process::Command;

use safepoint_fence::{
    Caches, Fence, GuardedNames, Listing, NetworkAccess, Supervision, Terminals,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let writable = PathBuf::from(arguments.next().expect("a directory"));
    let hosts = arguments.next().expect("hosts, or an empty word");
    let program = arguments.next().expect("a command");
    let hosts = hosts.split(',').filter(|host| !host.is_empty());
    let supervision = Supervision {
        hosts: hosts.map(|host| host.parse().expect("a host")).collect(),
        services: Vec::new(),
        sockets: Vec::new(),
        registry: std::env::temp_dir().join(format!("registry-{}", std::process::id())),
        journal: None,
        guarded: GuardedNames::default(),
        freezer: Some(
            std::env::temp_dir().join(format!("registry-{}/freezes", std::process::id())),
        ),
        network: NetworkAccess::Closed,
    };
    let fence = Fence {
        writable: vec![writable.canonicalize().expect("a directory")],
        exact: Vec::new(),
        hidden: Vec::new(),
        listing: Listing::Everywhere,
        terminals: Terminals::All,
        supervision: (program != "--unsupervised").then_some(supervision),
        caches: Caches::None,
    };
    let program = match program.as_str() {
        "--unsupervised" => arguments.next().expect("a command"),
        _ => program,
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let mut started = fence.spawn(command).expect("a fence");
    let status = started.child.wait().expect("a child");
    if let Some(supervisor) = &started.supervisor
        && std::env::var_os("QUIET").is_none()
    {
        let seen = supervisor.observe();
        eprintln!(
            "{status}; refused {:?}; hosts {:?}",
            seen.refused, seen.hosts
        );
        eprintln!(
            "{} calls supervised; {} paths, {} trees written, complete: {}",
            supervisor.count_calls(),
            seen.written.paths.len(),
            seen.written.trees.len(),
            seen.written.is_complete
        );
    }
    let _ = std::fs::remove_dir_all(
        std::env::temp_dir().join(format!("registry-{}", std::process::id())),
    );
    std::process::exit(status.code().unwrap_or(1));
}
