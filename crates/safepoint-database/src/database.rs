//! A database that can be reached, whatever its engine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::address::{Address, Engine};
use crate::{Contents, DatabaseError, Image, Keep, mariadb, postgres, sqlite};

/// How long a server has to let us in, where nothing says otherwise.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What reaching a database needs besides its address.
#[derive(Clone)]
pub struct Access {
    /// The variables of the user's process: passwords, `PATH`, `HOME` and the rest.
    pub variables: BTreeMap<OsString, OsString>,
    /// A directory of ours, for what does not fit in memory.
    pub scratch: PathBuf,
    /// How long to wait for another connection.
    pub lock_timeout: Duration,
}

// By hand: an environment holds secrets.
impl std::fmt::Debug for Access {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Access").finish_non_exhaustive()
    }
}

/// A change by SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlChange {
    /// One or several statements.
    pub statements: String,
    /// A query whose answer decides whether the change is kept: one row, whose first
    /// column is true, or a number other than 0.
    pub check: Option<String>,
}

/// A row as text; `None` for NULL.
pub type Row = Vec<Option<String>>;

/// How a change looks before it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// How many rows it touched, as far as the engine tells.
    pub rows: Option<u64>,
    /// What the checking query answered, when there is one.
    pub check: Option<Vec<Row>>,
    /// Whether the engine has committed already, as MariaDB does on `ALTER TABLE`.
    pub committed: bool,
}

impl Trial {
    /// Whether the checking query says yes. Without one, it does.
    pub fn passes(&self) -> bool {
        let Some(rows) = &self.check else {
            return true;
        };
        let [row] = rows.as_slice() else {
            return false;
        };
        let Some(Some(first)) = row.first() else {
            return false;
        };
        match first.as_str() {
            "t" | "true" | "TRUE" => true,
            text => text.parse::<f64>().is_ok_and(|number| number != 0.0),
        }
    }
}

/// What is to become of a change that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is committed.
    Keep,
    /// It is rolled back.
    Drop,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// How it looked before that.
    pub trial: Trial,
    /// Whether the database has it now. With [`Trial::committed`] it has it even when
    /// the verdict was to drop it.
    pub kept: bool,
}

/// What is to be known of a restore that worked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// What else is to be known.
    pub warnings: Vec<String>,
}

/// A database that can be reached.
#[derive(Clone, Debug)]
pub struct Database {
    pub(crate) address: Address,
    pub(crate) access: Access,
    /// The directory that its file has to lie in.
    pub(crate) within: Option<PathBuf>,
}

impl Database {
    /// The database at `address`. Nothing is opened yet.
    pub fn new(address: Address, access: Access) -> Self {
        Self {
            address,
            access,
            within: None,
        }
    }

    /// The same, where its file has to lie in this directory, which has no links in its path.
    #[must_use]
    pub fn within(self, within: Option<PathBuf>) -> Self {
        Self { within, ..self }
    }

    /// Puts what `work` writes in the place of a database file, or takes that away: it writes
    /// nothing outside the directory of the file, which it is given.
    pub fn replace_file<T: Send>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, std::io::Error> + Send,
    ) -> Result<T, DatabaseError> {
        let path = sqlite::path_of(self)?;
        let failed = |error| DatabaseError::file("replace", &path, error);
        sqlite::write_beneath(&path, &self.access, || work(&path).map_err(failed))
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Captures it as it is at one moment, however many write to it meanwhile.
    pub fn capture(&self, keep: &dyn Keep) -> Result<Image, DatabaseError> {
        match self.address.engine() {
            Engine::Sqlite => sqlite::capture(self, keep),
            Engine::Postgres => postgres::capture(self, keep),
            Engine::Mariadb => mariadb::capture(self, keep),
        }
    }

    /// Makes it what `image` says, in place. When this fails, it is as it was.
    ///
    /// What is in scope is looked at again afterwards, and compared with the image.
    pub fn restore(
        &self,
        image: &Image,
        contents: &dyn Contents,
    ) -> Result<Restored, DatabaseError> {
        match self.address.engine() {
            Engine::Sqlite => sqlite::restore(self, image, contents),
            Engine::Postgres => postgres::restore(self, image, contents),
            Engine::Mariadb => mariadb::restore(self, image, contents),
        }
    }

    /// Runs statements in a transaction under a savepoint, shows how that looks to
    /// `judge`, and commits or rolls back as it says.
    pub fn change(
        &self,
        change: &SqlChange,
        judge: &mut dyn FnMut(&Trial) -> Verdict,
    ) -> Result<Changed, DatabaseError> {
        match self.address.engine() {
            Engine::Sqlite => sqlite::change(self, change, judge),
            Engine::Postgres => postgres::change(self, change, judge),
            Engine::Mariadb => mariadb::change(self, change, judge),
        }
    }
}
