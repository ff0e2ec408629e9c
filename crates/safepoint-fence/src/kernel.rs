//! What this kernel's Landlock can hold, and the rules handed to it.
//!
//! Only rights that were probed are asked for, and those are demanded: a rule
//! that the kernel would quietly weaken is an error. Nothing here chooses paths.

use std::os::fd::AsFd;
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::FileType;

use crate::FenceError;
use crate::supervisor::NetworkAccess;

/// What is lost where a kernel does not know a right, oldest right first.
const LATER_RIGHTS: [(AccessFs, &str); 3] = [
    (
        AccessFs::Refer,
        "files cannot be moved between directories (Linux 5.19 can)",
    ),
    (
        AccessFs::Truncate,
        "files outside can be emptied (Linux 6.2 prevents it)",
    ),
    (
        AccessFs::IoctlDev,
        "devices can be controlled (Linux 6.10 prevents it)",
    ),
];

/// What is lost where a kernel cannot scope signals and abstract sockets.
const NO_SCOPES: &str = "processes outside can be signalled (Linux 6.12 prevents it)";

/// What the kernel can hold.
#[derive(Debug, Clone)]
pub(crate) struct Abilities {
    rights: BitFlags<AccessFs>,
    scopes: BitFlags<Scope>,
    /// Connections over TCP, which the supervisor makes in the place of who is inside.
    network: BitFlags<AccessNet>,
    /// What a full fence holds and this one does not.
    pub(crate) missing: Vec<&'static str>,
}

impl Abilities {
    /// What this kernel can hold. It is asked once: a process asks several times.
    pub(crate) fn get() -> Option<&'static Self> {
        static ABILITIES: OnceLock<Option<Abilities>> = OnceLock::new();
        ABILITIES.get_or_init(Self::probe).as_ref()
    }

    /// Asks the kernel. A set of rules is made for each question and thrown
    /// away, so nothing is restricted. `None` where there is no Landlock.
    ///
    /// The version number is not trusted: there are kernels that claim a version
    /// and lack a part of it.
    pub(crate) fn probe() -> Option<Self> {
        let mut rights = AccessFs::from_all(ABI::V1);
        ruleset(rights, BitFlags::EMPTY).ok()?;
        let mut missing = Vec::new();
        for (right, loss) in LATER_RIGHTS {
            if ruleset(rights | right, BitFlags::EMPTY).is_ok() {
                rights |= right;
            } else {
                missing.push(loss);
            }
        }
        let mut scopes = Scope::from_all(ABI::V6);
        if ruleset(rights, scopes).is_err() {
            scopes = BitFlags::EMPTY;
            missing.push(NO_SCOPES);
        }
        // Below the supervisor: it is not missed where the kernel has it not.
        let mut network = AccessNet::ConnectTcp.into();
        if ruleset_of(rights, scopes, network).is_err() {
            network = BitFlags::EMPTY;
        }
        Some(Self {
            rights,
            scopes,
            network,
            missing,
        })
    }

    /// Reading, listing and running.
    pub(crate) fn read(&self) -> BitFlags<AccessFs> {
        AccessFs::from_read(ABI::V1)
    }

    /// Reading and listing, and running nothing.
    pub(crate) fn look(&self) -> BitFlags<AccessFs> {
        AccessFs::ReadFile | AccessFs::ReadDir
    }

    /// Running a file.
    pub(crate) fn run(&self) -> BitFlags<AccessFs> {
        AccessFs::Execute | AccessFs::ReadFile
    }

    /// Everything but running.
    pub(crate) fn keep(&self) -> BitFlags<AccessFs> {
        self.rights & !BitFlags::from(AccessFs::Execute)
    }

    /// Listing alone.
    pub(crate) fn list(&self) -> BitFlags<AccessFs> {
        AccessFs::ReadDir.into()
    }

    /// Everything.
    pub(crate) fn all(&self) -> BitFlags<AccessFs> {
        self.rights
    }

    /// What a device may be used for: no new names beneath it.
    pub(crate) fn device(&self) -> BitFlags<AccessFs> {
        let device = AccessFs::from_read(ABI::V1) | AccessFs::from_file(ABI::V5);
        device & self.rights
    }

    /// Rules that allow nothing yet.
    pub(crate) fn rules(&self, network: NetworkAccess) -> Result<Rules, FenceError> {
        let network = match network {
            NetworkAccess::Closed => self.network,
            NetworkAccess::Open => BitFlags::EMPTY,
        };
        let ruleset = ruleset_of(self.rights, self.scopes, network).map_err(FenceError::Rules)?;
        Ok(Rules { ruleset })
    }

    /// As an older kernel would answer: to test what it would get.
    #[cfg(test)]
    pub(crate) fn without(mut self, right: AccessFs) -> Self {
        self.rights &= !BitFlags::from(right);
        for (known, loss) in LATER_RIGHTS {
            if known == right {
                self.missing.push(loss);
            }
        }
        self
    }
}

fn ruleset(
    rights: BitFlags<AccessFs>,
    scopes: BitFlags<Scope>,
) -> Result<RulesetCreated, RulesetError> {
    ruleset_of(rights, scopes, BitFlags::EMPTY)
}

fn ruleset_of(
    rights: BitFlags<AccessFs>,
    scopes: BitFlags<Scope>,
    network: BitFlags<AccessNet>,
) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(rights)?;
    // Empty sets are an error to the library.
    if !network.is_empty() {
        ruleset = ruleset.handle_access(network)?;
    }
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes)?;
    }
    ruleset.create()
}

/// Rules that are being put together.
#[derive(Debug)]
pub(crate) struct Rules {
    ruleset: RulesetCreated,
}

impl Rules {
    /// Allows `rights` on what `place` is, and beneath it. Rights that only
    /// directories have are left out for anything else.
    pub(crate) fn allow(
        &mut self,
        place: impl AsFd,
        kind: FileType,
        rights: BitFlags<AccessFs>,
    ) -> Result<(), FenceError> {
        let rights = match kind {
            FileType::Directory => rights,
            _ => rights & AccessFs::from_file(ABI::V5),
        };
        if rights.is_empty() {
            return Ok(());
        }
        (&mut self.ruleset)
            .add_rule(PathBeneath::new(place, rights))
            .map(drop)
            .map_err(FenceError::Rules)
    }

    /// Puts the calling thread, and every process it starts, behind the rules.
    /// There is no way back for the thread.
    pub(crate) fn restrict_this_thread(self) -> Result<(), FenceError> {
        let status = self.ruleset.restrict_self().map_err(FenceError::Rules)?;
        match status.ruleset {
            RulesetStatus::FullyEnforced if status.no_new_privs => Ok(()),
            _ => Err(FenceError::NotHeld),
        }
    }
}
