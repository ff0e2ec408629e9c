//! Authority: what exactly an action is, and whether somebody may say yes to it.
//!
//! An action is put into one canonical form before anybody judges it. A yes is
//! bound to the fingerprint of that form, signed by an operator, and becomes a
//! permit that is good once. Everything here is a value or a step from one
//! value to the next: nothing is run, read or written.

mod boundary;
mod canonical;
mod class;
mod decision;
mod deed;
mod denial;
mod envelope;
mod hold;
mod operator;
mod outside;
mod permit;
pub mod shell;
mod trust;

pub use boundary::{Boundaries, Standing, Trigger};
pub use canonical::{
    AtlasPin, Canonical, CanonicalError, Directory, Executable, Identity, Input, NamedPath,
    Preimage, Tool, Workspace, changed, changed_how,
};
pub use class::{Reversibility, Risk, SideEffect};
pub use decision::{Choice, Decision, DecisionError, DecisionScope, SignedDecision};
pub use deed::{Deed, Program, Programs, Role, Surroundings, Touch, Understanding, Undo, Where};
pub use denial::{Denial, DenialCode};
pub use envelope::{Envelope, EnvelopeError, ScopeDelta};
pub use hold::{Basis, Coverage, EarlierRun, Hold, HoldError, HoldState, Pending, Proposer};
pub use operator::{Operator, OperatorKey};
pub use outside::{OutsideKind, OutsideTarget};
pub use permit::{Permit, PermitError, PermitState};
pub use trust::{Boundary, BoundaryError, Level, Trust};
