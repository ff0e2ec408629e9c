//! Which program a name means, and whether only the system's owner can change it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use safepoint_authority::{Executable, Program, Programs};
use safepoint_store::regular;

use super::look::digest_of_system;
use super::{digest_of, text};
use crate::ControlError;

/// Where systems keep the programs that come with them. Some lie beside what they need, and
/// only a link to them is where programs are looked for.
const SYSTEM: [&str; 13] = [
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/lib",
    "/usr/libexec",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/libexec",
    "/usr/local/share",
    "/nix/store",
];

/// Finds programs as a shell would.
pub(crate) struct Search {
    directories: Vec<PathBuf>,
    home: Option<OsString>,
}

impl Search {
    /// A search along the `PATH` among these variables.
    pub(crate) fn new(variables: &[(OsString, OsString)]) -> Self {
        let value = |name: &str| variables.iter().find(|(known, _)| known == name);
        let directories = value("PATH").map(|(_, value)| std::env::split_paths(value).collect());
        Self {
            directories: directories.unwrap_or_default(),
            home: value("HOME").map(|(_, value)| value.clone()),
        }
    }

    /// The file that `name` means when it is started in `directory`; links are not resolved.
    pub(crate) fn file(&self, name: &str, directory: &Path) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(directory.join(name)).filter(|path| is_program(path));
        }
        self.directories
            .iter()
            // An empty or relative entry means the working directory.
            .map(|entry| directory.join(entry).join(name))
            .find(|path| is_program(path))
    }
}

impl Programs for Search {
    fn find(&self, name: &str, directory: &Path) -> Program {
        let Some(found) = self.file(name, directory) else {
            return Program::Missing;
        };
        match std::fs::canonicalize(&found) {
            Ok(path) if is_of_the_system(&path) => Program::System(path),
            Ok(path) => Program::Other(path),
            Err(_) => Program::Missing,
        }
    }

    fn is_own(&self, path: &Path) -> bool {
        let identity = |path: &Path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.dev(), metadata.ino()))
        };
        let own = identity(Path::new("/proc/self/exe"));
        own.is_some() && own == identity(path)
    }

    fn home_variable(&self) -> Option<OsString> {
        self.home.clone()
    }

    fn home_of(&self, account: &str) -> Option<PathBuf> {
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let home = fields.get(5).filter(|_| fields.first() == Some(&account))?;
            Some(PathBuf::from(home)).filter(|home| home.is_absolute())
        })
    }
}

fn is_program(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Whether it lies where only the system's owner writes.
fn is_of_the_system(path: &Path) -> bool {
    let guarded = |path: &Path| {
        let metadata = std::fs::metadata(path);
        metadata.is_ok_and(|it| it.uid() == 0 && it.permissions().mode() & 0o022 == 0)
    };
    is_place_of_the_system(path) && guarded(path) && path.parent().is_some_and(guarded)
}

fn is_place_of_the_system(path: &Path) -> bool {
    SYSTEM.iter().any(|place| path.starts_with(place))
}

/// A program, held open: what was seen is what runs.
#[derive(Debug)]
pub(crate) struct Opened {
    /// What it is.
    pub(crate) executable: Executable,
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// The path that it is started by: as it was called, or as it was found. It may be a link,
    /// and some programs do what its name says.
    pub(crate) called: PathBuf,
    /// The file itself.
    pub(crate) file: File,
    /// Whether it is a script, which its interpreter opens again by name.
    pub(crate) is_script: bool,
}

/// Opens the program that `name` means, and says what it is.
pub(crate) fn open_program(
    search: &Search,
    name: &str,
    directory: &Path,
) -> Result<Opened, ControlError> {
    let missing = |error| ControlError::Start {
        program: name.to_owned(),
        error,
    };
    let found = search.file(name, directory).ok_or_else(|| {
        let kind = std::io::ErrorKind::NotFound;
        missing(std::io::Error::new(kind, "there is no such program"))
    })?;
    let path = std::fs::canonicalize(&found).map_err(missing)?;
    let mut file = regular::open(&path).map_err(missing)?;
    let mut start = [0; 2];
    let is_script = file.read_exact(&mut start).is_ok() && start == *b"#!";
    file.rewind().map_err(missing)?;
    let digest = digest_of(&mut file).map_err(missing)?;
    Ok(Opened {
        executable: Executable {
            path: text(&path)?,
            digest,
        },
        path,
        // A script is told this name, and expects the one that was typed.
        called: match name.contains('/') {
            true => PathBuf::from(name),
            false => found,
        },
        file,
        is_script,
    })
}

impl Opened {
    /// Whether what it is called by still leads to the file that is held.
    pub(crate) fn is_where_it_was(&self, directory: &Path) -> std::io::Result<bool> {
        let called = directory.join(&self.called);
        let (now, held) = (std::fs::metadata(&called)?, self.file.metadata()?);
        let same = (now.dev(), now.ino()) == (held.dev(), held.ino());
        Ok(same && std::fs::canonicalize(&called)? == self.path)
    }
}

/// An interpreter that a script names after `#!`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// What it is.
    pub(crate) executable: Executable,
    /// The path by which it is started; it may be a link.
    pub(crate) called: PathBuf,
}

/// How many interpreters are looked at, wrappers among them. The kernel follows five in a row.
const MAX_INTERPRETERS: usize = 16;
/// How much of a script's first line the kernel reads.
const FIRST_LINE_BYTES: u64 = 256;

/// The interpreters of a file, if it is a script: the program after `#!`, the ones that wrappers
/// such as `env` and `nice` would start, and those of an interpreter that is itself a script. An
/// interpreter that is not there is left out: the script does not run then, and if it appears, the
/// list differs. A line that is not understood, or has too many of them, is refused: a yes would be
/// bound to something else than what runs.
pub(crate) fn interpreters(
    search: &Search,
    script: &Path,
    directory: &Path,
) -> Result<Vec<Interpreter>, ControlError> {
    let mut all: Vec<Interpreter> = Vec::new();
    let mut next = vec![script.to_owned()];
    while let Some(file) = next.pop() {
        let refused = |reason: &str| ControlError::Proposal {
            reason: format!("`{}` cannot be run: {reason}", file.display()),
        };
        let line = FirstLine::of(&file).map_err(refused)?;
        for called in line.files(search, directory) {
            if all.iter().any(|it| it.called == called) {
                continue;
            }
            if all.len() >= MAX_INTERPRETERS {
                return Err(refused(
                    "it names too many interpreters to look at all of them",
                ));
            }
            let unreadable = |error| ControlError::Start {
                program: called.display().to_string(),
                error,
            };
            let path = std::fs::canonicalize(&called).map_err(unreadable)?;
            let digest = match is_of_the_system(&path) {
                true => regular::open(&path).and_then(digest_of_system),
                false => regular::open(&path).and_then(digest_of),
            };
            let digest = digest.map_err(unreadable)?;
            all.push(Interpreter {
                executable: Executable {
                    path: text(&path)?,
                    digest,
                },
                called,
            });
            next.push(path);
        }
    }
    Ok(all)
}

/// What the first line of a script names.
#[derive(Debug, Default, PartialEq, Eq)]
struct FirstLine {
    /// The interpreter.
    interpreter: Option<String>,
    /// The words after it that are no options: programs that it starts, and files that it reads.
    words: Vec<String>,
}

impl FirstLine {
    /// Reads it; or says what is not understood of it.
    fn of(script: &Path) -> Result<Self, &'static str> {
        let mut start = Vec::new();
        let read = regular::open(script)
            .and_then(|file| file.take(FIRST_LINE_BYTES).read_to_end(&mut start));
        let line = start
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let (Ok(_), Some(line)) = (read, line.strip_prefix("#!")) else {
            return Ok(Self::default());
        };
        let mut words = line.split_ascii_whitespace();
        let Some(interpreter) = words.next() else {
            return Ok(Self::default());
        };
        Ok(Self {
            interpreter: Some(interpreter.to_owned()),
            words: started_by_wrappers(words)?,
        })
    }

    /// The files behind the words, as they are called.
    fn files(&self, search: &Search, directory: &Path) -> Vec<PathBuf> {
        let interpreter = self.interpreter.iter();
        let mut files: Vec<PathBuf> = interpreter
            .filter_map(|name| search.file(name, directory))
            .collect();
        for word in &self.words {
            files.extend(search.file(word, directory));
            // It may be no program, and be read by one.
            let file = directory.join(word);
            files.extend(Some(file).filter(|file| file.is_file() && !files.contains(file)));
        }
        files
    }
}

/// The programs and files among the words after an interpreter: with `env` and other wrappers, what
/// they start.
fn started_by_wrappers<'a>(
    mut words: impl Iterator<Item = &'a str>,
) -> Result<Vec<String>, &'static str> {
    const ELSEWHERE: &str =
        "its first line looks for its interpreter elsewhere than it would be found here";
    const QUOTED: &str = "the quotes in its first line are not understood";
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let word = match word {
            "-u" | "--unset" => {
                words.next();
                continue;
            }
            "-S" | "--split-string" => continue,
            // `-S` and its text may be one word.
            joined if joined.starts_with("-S") || joined.starts_with("-vS") => {
                let name = joined.trim_start_matches("-v").trim_start_matches('-');
                name.trim_start_matches('S')
            }
            joined if joined.starts_with("--split-string=") => {
                joined.split_once('=').map_or("", |(_, name)| name)
            }
            other => other,
        };
        let word = unquoted(word).ok_or(QUOTED)?;
        if matches!(word, "-C" | "--chdir") || word.starts_with("--chdir=") {
            return Err(ELSEWHERE);
        }
        if word.starts_with("PATH=") {
            return Err(ELSEWHERE);
        }
        if !word.is_empty() && !word.starts_with('-') && !word.contains('=') {
            found.push(word.to_owned());
        }
    }
    Ok(found)
}

/// A word without the quotes around it; none where there are others, or what `env -S` replaces.
fn unquoted(word: &str) -> Option<&str> {
    let around = |quote: char| {
        let inner = word.strip_prefix(quote)?;
        inner.strip_suffix(quote)
    };
    let plain = around('"').or_else(|| around('\'')).unwrap_or(word);
    (!plain.contains(['"', '\'', '$', '\\'])).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test writes its script")]
    fn au_25_a_script_names_its_interpreter_on_its_first_line() {
        let place = tempfile::tempdir().unwrap();
        let named = |line: &str| {
            let path = place.path().join("script");
            std::fs::write(&path, line).unwrap();
            FirstLine::of(&path)
        };
        let names = |line: &str| {
            let found = named(line).unwrap();
            let all = found.interpreter.into_iter().chain(found.words);
            all.collect::<Vec<String>>()
        };
        assert_eq!(names("#!/bin/sh -e\n"), ["/bin/sh"]);
        assert_eq!(names("#! .venv/bin/python\n"), [".venv/bin/python"]);
        for line in [
            "#!/usr/bin/env tool",
            "#!/usr/bin/env -S tool -u\n",
            "#!/usr/bin/env -S -i A=b tool\n",
            "#!/usr/bin/env -Stool -u\n",
            "#!/usr/bin/env -S -u NAME tool -x\n",
            "#!/usr/bin/env --split-string=tool\n",
            "#!/usr/bin/env -S \"tool\"\n",
            "#!/usr/bin/env -S 'tool' -u\n",
            "#!/usr/bin/env -S\"tool\"\n",
        ] {
            assert_eq!(names(line), ["/usr/bin/env", "tool"], "{line}");
        }
        assert_eq!(
            names("#!/usr/bin/nice .venv/bin/python\n"),
            ["/usr/bin/nice", ".venv/bin/python"]
        );
        assert_eq!(
            names("#!/usr/bin/env -S nice -n 5 python\n"),
            ["/usr/bin/env", "nice", "5", "python"]
        );
        for line in ["", "#!", "#!\nx", "\x7fELF", " #!/bin/sh\n"] {
            assert_eq!(names(line), Vec::<String>::new(), "{line}");
        }
        for line in [
            "#!/usr/bin/env -S ${TOOL}\n",
            "#!/usr/bin/env -S PATH=bin tool\n",
            "#!/usr/bin/env -S -C bin ./tool\n",
            "#!/usr/bin/env -S 'my tool'\n",
        ] {
            assert!(named(line).is_err(), "{line}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test writes its scripts")]
    fn au_25_every_interpreter_is_bound_or_the_script_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let search = Search::new(&[("PATH".into(), "/usr/bin:/bin".into())]);
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let own = write("python", "#!/bin/sh\n");
        let script = write("wrapped", "#!/usr/bin/nice ./python\n");
        let bound = interpreters(&search, &script, place.path()).unwrap();
        assert!(
            bound
                .iter()
                .any(|it| it.called == place.path().join("./python"))
        );
        assert!(
            bound.iter().any(|it| it.called == Path::new("/bin/sh")),
            "and its own"
        );
        assert!(own.is_file());
        for number in 0..=MAX_INTERPRETERS {
            let next = place.path().join(format!("s{}", number + 1));
            write(&format!("s{number}"), &format!("#!{}\n", next.display()));
        }
        write(&format!("s{}", MAX_INTERPRETERS + 1), "#!/bin/sh\n");
        let first = place.path().join("s0");
        assert!(interpreters(&search, &first, place.path()).is_err());
    }

    #[test]
    fn au_04_programs_of_the_system_lie_where_their_links_lead() {
        for path in [
            "/usr/bin/git",
            "/usr/lib/postgresql/15/bin/psql",
            "/usr/share/postgresql-common/pg_wrapper",
            "/usr/local/lib/node_modules/npm/bin/npm-cli.js",
        ] {
            assert!(is_place_of_the_system(Path::new(path)), "{path}");
        }
        for path in ["/home/sam/bin/git", "/usr/shared/x", "/tmp/usr/bin/x"] {
            assert!(!is_place_of_the_system(Path::new(path)), "{path}");
        }
    }
}
