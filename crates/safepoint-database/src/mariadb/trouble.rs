//! What the server refuses, and what that means.

use std::sync::Arc;

use crate::DatabaseError;

/// The table has another form than it had when the transaction began.
const DEFINITION_CHANGED: u32 = 1412;
/// What was there a moment ago is gone: a table, a routine, a trigger, an event; or it has
/// become something else.
pub(super) const GONE: [u32; 6] = [1146, 1305, 1347, 1360, 1539, DEFINITION_CHANGED];
/// There is no such foreign key (or column, or index) to drop.
pub(super) const NOTHING_TO_DROP: u32 = 1091;
/// There is such a foreign key already.
pub(super) const FOREIGN_KEY_EXISTS: u32 = 1826;
/// Something that a view or a routine needs is not there: table, column, routine, or
/// another view that is not whole itself.
pub(super) const NOT_THERE_YET: [u32; 4] = [1146, 1054, 1305, 1356];
/// What was written to a table without transactions stays.
pub(super) const NOT_ROLLED_BACK: &str = "1196";
/// Not understood, by the client or by the server.
pub(super) const NO_SQL: [u32; 2] = [0, 1064];
/// Waited too long for a lock; deadlock; `NOWAIT`.
pub(super) const LOCKED: [u32; 3] = [1205, 1213, 3572];
/// There is no such database.
pub(super) const NO_DATABASE: u32 = 1049;

/// Why a statement was not carried out.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server refuses it. The session goes on.
    Refused {
        code: u32,
        message: String,
        address: Arc<str>,
    },
    /// Anything else. The session is over.
    Other(DatabaseError),
}

impl Trouble {
    /// The server's number for it.
    pub(super) fn code(&self) -> Option<u32> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Other(_) => None,
        }
    }

    /// Whether its number is one of these.
    pub(super) fn is_one_of(&self, codes: &[u32]) -> bool {
        self.code().is_some_and(|code| codes.contains(&code))
    }
}

impl From<DatabaseError> for Trouble {
    fn from(error: DatabaseError) -> Self {
        Self::Other(error)
    }
}

impl From<Trouble> for DatabaseError {
    fn from(trouble: Trouble) -> Self {
        let (code, message, address) = match trouble {
            Trouble::Other(error) => return error,
            Trouble::Refused {
                code,
                message,
                address,
            } => (code, message, address.to_string()),
        };
        match code {
            code if LOCKED.contains(&code) => Self::Locked { address },
            // Wrong password or user, no right to a database, table, column, routine, or at all.
            1044 | 1045 | 1095 | 1142 | 1143 | 1227 | 1251 | 1370 | 1410 | 1524 | 1698 | 1820
            | 2059 | 3118 | 4151 => Self::Refused {
                address,
                why: message,
            },
            // Too many connections; the host is shut out; nobody listens.
            1040 | 1129 | 1130 | 1203 | 2002 | 2003 | 2005 | 2026 => Self::Unreachable {
                address,
                why: message,
            },
            // Shutdown; aborted; killed; gone.
            1053 | 1152 | 1184 | 1927 | 2000..=2999 => Self::Lost {
                address,
                why: message,
            },
            // No space on the disk, or none for such a table.
            1021 | 1114 => Self::Sql {
                message: format!("{message}: the server needs more room on its disk"),
            },
            _ => Self::Sql { message },
        }
    }
}

/// The last error in what the client said: its number (0 when the client itself is at
/// fault) and the server's words.
///
/// The client writes `ERROR 1146 (42S02) at line 3: Table 'a.b' doesn't exist`.
pub(super) fn read_error(said: &str) -> Option<(u32, String)> {
    let start = match said.rfind("\nERROR ") {
        Some(position) => position + 1,
        None if said.starts_with("ERROR ") => 0,
        None => return None,
    };
    let error = said.get(start..)?.strip_prefix("ERROR ")?;
    let (head, message) = error.split_once(": ").unwrap_or(("", error));
    let code = head.split(' ').next().and_then(|code| code.parse().ok());
    Some((code.unwrap_or(0), message.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_without_the_echo_of_the_statement() {
        let said = "--------------\nSELECT nosuch\nERROR 1 is in it\n--------------\n\n\
            ERROR 1146 (42S02) at line 8: Table 'a.b' doesn't exist\n";
        assert_eq!(
            read_error(said),
            Some((1146, "Table 'a.b' doesn't exist".to_owned()))
        );
        assert_eq!(
            read_error("ERROR 2002 (HY000): Can't connect: no socket"),
            Some((2002, "Can't connect: no socket".to_owned()))
        );
        assert_eq!(
            read_error("ERROR at line 12: Unknown command '\\!'."),
            Some((0, "Unknown command '\\!'.".to_owned()))
        );
        assert_eq!(read_error("mysql: [Warning] nothing\n"), None);
    }
}
