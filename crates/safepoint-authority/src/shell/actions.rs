//! The built-in actions: what each means for effect, risk and undoing.

use std::collections::BTreeSet;

use crate::deed::{Deed, Undo};
use crate::{Risk, SideEffect};

pub(super) const READ: &str = "file.read";
pub(super) const WRITE: &str = "file.write";
pub(super) const MOVE: &str = "file.move";
pub(super) const CHMOD: &str = "file.chmod";
pub(super) const DELETE: &str = "file.delete";
pub(super) const EXEC: &str = "process.exec";
pub(super) const OPAQUE: &str = "shell.opaque";
pub(super) const KILL: &str = "process.kill";
pub(super) const SYSTEM: &str = "system.change";
pub(super) const GIT_READ: &str = "git.read";
pub(super) const GIT_COMMIT: &str = "git.commit";
pub(super) const GIT_REWRITE: &str = "git.rewrite";
pub(super) const GIT_FETCH: &str = "git.fetch";
pub(super) const GIT_PUSH: &str = "git.push";
pub(super) const FETCH: &str = "net.fetch";
pub(super) const SEND: &str = "net.send";
pub(super) const INSTALL: &str = "package.install";
pub(super) const PUBLISH: &str = "package.publish";
pub(super) const DB_READ: &str = "db.read";
pub(super) const DB_WRITE: &str = "db.write";
pub(super) const DB_DROP: &str = "db.drop";
pub(super) const SECRET: &str = "secret.read";
pub(super) const DELEGATE: &str = "agent.delegate";
pub(super) const CONTROL: &str = "safepoint.control";

/// Every action that the rules may name.
#[cfg(test)]
pub(super) const ALL: [&str; 24] = [
    READ,
    WRITE,
    MOVE,
    CHMOD,
    DELETE,
    EXEC,
    OPAQUE,
    KILL,
    SYSTEM,
    GIT_READ,
    GIT_COMMIT,
    GIT_REWRITE,
    GIT_FETCH,
    GIT_PUSH,
    FETCH,
    SEND,
    INSTALL,
    PUBLISH,
    DB_READ,
    DB_WRITE,
    DB_DROP,
    SECRET,
    DELEGATE,
    CONTROL,
];

/// A deed with this action, as it usually is.
pub(super) fn deed(action: &str, because: String) -> Deed {
    use SideEffect::{Delegate, Exec, Network, Read, Secret, Write};
    let never = |why: &str| Undo::Never(why.to_owned());
    let (effects, risk, undo): (&[SideEffect], Risk, Undo) = match action {
        READ => (&[Read], Risk::Low, Undo::NotNeeded),
        WRITE | MOVE | CHMOD | DELETE => (&[Write], Risk::Low, Undo::Touched),
        EXEC => (&[Exec], Risk::Low, Undo::Workspace),
        KILL => (&[Exec], Risk::Medium, never("what runs is stopped")),
        SYSTEM => (
            &[Write, Exec],
            Risk::High,
            never("the machine itself changes"),
        ),
        GIT_READ => (&[Read], Risk::Low, Undo::NotNeeded),
        GIT_COMMIT => (&[Write], Risk::Low, Undo::Workspace),
        GIT_REWRITE => (&[Write], Risk::Medium, Undo::Workspace),
        GIT_FETCH => (&[Write, Network], Risk::Low, Undo::Workspace),
        GIT_PUSH => (&[Network], Risk::Medium, never("others have it")),
        FETCH => (&[Network], Risk::Low, Undo::NotNeeded),
        SEND => (&[Network], Risk::Medium, never("others have it")),
        INSTALL => (
            &[Write, Exec, Network],
            Risk::Medium,
            Undo::Partly("what the packages did outside the workspace".to_owned()),
        ),
        PUBLISH => (&[Network], Risk::High, never("others have it")),
        DB_READ => (&[Read], Risk::Low, Undo::NotNeeded),
        DB_WRITE => (&[Write], Risk::Medium, never("what the database held")),
        DB_DROP => (&[Write], Risk::High, never("what the database held")),
        SECRET => (&[Read, Secret], Risk::High, never("it has been seen")),
        DELEGATE => (&[Exec, Delegate], Risk::Medium, Undo::Workspace),
        CONTROL => (&[Write], Risk::Critical, never("what guards it is changed")),
        _ => (&[Exec], Risk::Medium, Undo::Unknown),
    };
    Deed {
        action: action.to_owned(),
        effects: effects.iter().copied().collect(),
        risk,
        undo,
        touches: Vec::new(),
        hosts: BTreeSet::new(),
        because,
    }
}
