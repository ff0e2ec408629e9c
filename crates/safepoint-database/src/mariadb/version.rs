//! The versions of servers and clients, and what they mean.

/// The version of a server or client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// As it was told.
    pub(super) text: String,
    /// Whether it is MariaDB rather than MySQL.
    pub(super) is_mariadb: bool,
    /// `10.11`.
    pub(super) number: (u32, u32),
}

impl Version {
    /// Reads `10.11.19-MariaDB-0+deb12u1` or `8.0.39`.
    pub(super) fn read(text: &str) -> Self {
        let mut numbers = text
            .split(|c: char| !c.is_ascii_digit())
            .map(|number| number.parse().unwrap_or(0));
        let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Self {
            text: text.to_owned(),
            is_mariadb: text.contains("MariaDB"),
            number,
        }
    }

    /// Reads what `--version` prints: `… Distrib 10.11.19-MariaDB, for …`, `… from
    /// 11.4.2-MariaDB, …`, `mysql  Ver 8.0.39 for Linux …`.
    pub(super) fn read_tool(text: &str) -> Option<Self> {
        ["Distrib ", "from ", "Ver "].iter().find_map(|before| {
            let (_, behind) = text.split_once(before)?;
            let word = behind.split([' ', ',']).next()?;
            word.starts_with(|c: char| c.is_ascii_digit())
                .then(|| Self::read(word))
        })
    }

    /// Whether it is MariaDB of at least this version.
    pub(super) fn is_mariadb_from(&self, major: u32, minor: u32) -> bool {
        self.is_mariadb && self.number >= (major, minor)
    }

    /// Whether it has all that is relied on here. Renaming is not atomic before.
    pub(super) fn is_enough(&self) -> bool {
        match self.is_mariadb {
            true => self.number >= (10, 3),
            false => self.number >= (8, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (text, is_mariadb, number) in [
            (
                "mariadb  Ver 15.1 Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)",
                true,
                (10, 11),
            ),
            (
                "mariadb from 11.4.2-MariaDB, client 15.2 for Linux (x86_64)",
                true,
                (11, 4),
            ),
            ("mysql  Ver 8.0.39 for Linux on x86_64", false, (8, 0)),
            (
                "mysql  Ver 14.14 Distrib 5.7.44, for Linux (x86_64)",
                false,
                (5, 7),
            ),
        ] {
            let version = Version::read_tool(text).unwrap();
            assert_eq!((version.is_mariadb, version.number), (is_mariadb, number));
        }
        assert!(Version::read("10.11.19-MariaDB-0+deb12u1").is_mariadb_from(10, 11));
        assert!(!Version::read("5.7.44").is_enough());
        assert_eq!(Version::read_tool("who knows"), None);
    }
}
