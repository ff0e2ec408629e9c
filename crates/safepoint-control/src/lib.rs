//! Control: what happens to a session, kept and recorded.
//!
//! The crates below judge (gates), record (trail) and keep (store). This one
//! brings them together: each step of a session is judged and written, with
//! its entries in the trail, in one transaction. Any process can go on with
//! any session.

mod atlas;
mod background;
mod callback;
mod error;
mod https;
mod kept;
mod notice;
pub mod notify;
pub mod pass;
mod replay;
mod replies;
mod session;
mod token;
mod visit;
mod workflow;
mod world;

pub use atlas::{AtlasFile, Signature, read_manifest, sign};
pub use background::start_beside;
pub use callback::{Caller, NoCaller};
pub use error::ControlError;
pub use https::{Answer as HttpsAnswer, Https, HttpsError, Inquiry, Reach, check_url};
pub use notice::{Delivered, Message, NotDelivered, Poster};
pub use replay::{Change, Played, Replay};
pub use replies::{Begun, StoredReply};
pub use session::{Control, Overview, Start, Started, Surroundings};
pub use token::{NewToken, Secret, Token, TokenRole};
pub use visit::Asker;
pub use workflow::{Doing, OnFailure, Workflow, WorkflowIdentity, WorkflowStep};

use safepoint_store::{Component, Migration};

/// The tables of this crate.
pub const COMPONENT: Component = Component {
    name: "control",
    migrations: &[
        Migration {
            sqlite: include_str!("../migrations/1.sqlite.sql"),
            postgres: include_str!("../migrations/1.postgres.sql"),
        },
        Migration {
            sqlite: include_str!("../migrations/2.sqlite.sql"),
            postgres: include_str!("../migrations/2.postgres.sql"),
        },
        Migration {
            sqlite: include_str!("../migrations/3.sqlite.sql"),
            postgres: include_str!("../migrations/3.postgres.sql"),
        },
        Migration {
            sqlite: include_str!("../migrations/4.sqlite.sql"),
            postgres: include_str!("../migrations/4.postgres.sql"),
        },
        Migration {
            sqlite: include_str!("../migrations/5.sqlite.sql"),
            postgres: include_str!("../migrations/5.postgres.sql"),
        },
        Migration {
            sqlite: include_str!("../migrations/6.sqlite.sql"),
            postgres: include_str!("../migrations/6.postgres.sql"),
        },
    ],
};
