//! What a checkpoint covers: the whole workspace, or some paths and patterns in it.

use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};
use std::os::unix::ffi::OsStrExt;

use crate::StateError;
use crate::path::{self, TreePath};

/// How much of what lies at a path, and below it, belongs to a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cover {
    /// None of it.
    Nothing,
    /// Perhaps something below it, but not the directory itself.
    Part,
    /// All of it.
    Everything,
}

/// Some part of a workspace.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Empty means everything.
    items: Vec<Item>,
    /// As it was given.
    given: Vec<String>,
    /// And nothing but what is in this one too.
    within: Option<Box<Self>>,
}

/// Between two scopes of which both must hold, where a scope is stored.
const AND: &str = "and";
/// No file at all, where a scope is stored.
const NOTHING: &str = "nothing";

#[derive(Clone, Debug)]
enum Item {
    /// No file at all: what is meant are databases and states.
    Nothing,
    Path(TreePath),
    /// A pattern, and the directories that stand in front of its first wildcard.
    Pattern(GlobMatcher, TreePath),
}

impl Scope {
    /// The whole workspace.
    pub fn everything() -> Self {
        Self {
            items: Vec::new(),
            given: Vec::new(),
            within: None,
        }
    }

    /// No file at all.
    pub fn nothing() -> Self {
        Self {
            items: vec![Item::Nothing],
            given: Vec::new(),
            within: None,
        }
    }

    /// Exactly these paths, and what is below them.
    pub fn of_paths<'p>(paths: impl IntoIterator<Item = &'p TreePath>) -> Self {
        let mut scope = Self::nothing();
        scope
            .items
            .extend(paths.into_iter().cloned().map(Item::Path));
        scope
    }

    /// The scope that `given` names: paths relative to `here` (a directory inside the
    /// workspace), absolute ones inside the workspace, or patterns. Nothing means everything.
    pub fn parse(
        workspace: &Path,
        here: &Path,
        given: &[std::ffi::OsString],
    ) -> Result<Self, StateError> {
        Self::parse_among(workspace, here, given, &|_| false)
    }

    /// The same, where a name that `known` knows is a name, though nothing stands
    /// there now and it looks like a pattern.
    pub fn parse_among(
        workspace: &Path,
        here: &Path,
        given: &[std::ffi::OsString],
        known: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Self, StateError> {
        let mut scope = Self::everything();
        for one in given {
            let text = String::from_utf8_lossy(one.as_bytes()).into_owned();
            let bad = |why: &str| StateError::BadScope {
                scope: text.clone(),
                why: why.to_owned(),
            };
            if one.is_empty() {
                // What a variable of a shell becomes that is not set: it would mean everything.
                return Err(bad("it is empty, and an empty path names nothing"));
            }
            let path = relative(workspace, here, Path::new(one)).map_err(bad)?;
            scope.given.push(text.clone());
            let exists = workspace
                .join(path::as_path(&path))
                .symlink_metadata()
                .is_ok();
            let looks_like_one = one.as_bytes().iter().any(|byte| b"*?[{".contains(byte));
            if looks_like_one && !exists && !known(&path) {
                // The directories we are in are meant as they are named.
                let front = relative(workspace, here, Path::new("")).map_err(bad)?;
                let tail = path
                    .strip_prefix(front.as_slice())
                    .filter(|_| !Path::new(one).is_absolute());
                let whole = match tail {
                    Some(tail) => [
                        globset::escape(&String::from_utf8_lossy(&front)).into_bytes(),
                        tail.to_vec(),
                    ]
                    .concat(),
                    None => path,
                };
                scope.items.push(pattern(&whole).map_err(|why| bad(&why))?);
            } else {
                scope.items.push(Item::Path(path));
            }
        }
        // The workspace itself among others is the whole workspace.
        let whole = |item: &Item| matches!(item, Item::Path(path) if path.is_empty());
        if scope.items.iter().any(whole) {
            scope.items.clear();
        }
        Ok(scope)
    }

    /// A scope as it was stored: paths and patterns relative to the workspace.
    pub fn stored(items: &[String]) -> Result<Self, StateError> {
        let mut scope = Self::everything();
        for (place, item) in items.iter().enumerate() {
            if item == AND {
                let rest = items.get(place + 1..).unwrap_or_default();
                scope.within = Some(Box::new(Self::stored(rest)?));
                break;
            }
            if item == NOTHING {
                scope.items.push(Item::Nothing);
                continue;
            }
            scope.items.push(match item.strip_prefix("glob:") {
                Some(glob) => pattern(glob.as_bytes()).map_err(|why| StateError::BadScope {
                    scope: item.clone(),
                    why,
                })?,
                None => Item::Path(unescape(item.strip_prefix("path:").unwrap_or(item))),
            });
        }
        Ok(scope)
    }

    /// The scope as it is stored.
    pub fn to_stored(&self) -> Vec<String> {
        let mut stored: Vec<String> = self
            .items
            .iter()
            .map(|item| match item {
                Item::Nothing => NOTHING.to_owned(),
                Item::Path(path) => format!("path:{}", path::display(path)),
                Item::Pattern(matcher, _) => format!("glob:{}", matcher.glob().glob()),
            })
            .collect();
        if let Some(within) = &self.within {
            stored.push(AND.to_owned());
            stored.extend(within.to_stored());
        }
        stored
    }

    /// As it was given on the command line; empty for everything.
    pub fn given(&self) -> &[String] {
        &self.given
    }

    /// Whether it is the whole workspace.
    pub fn is_everything(&self) -> bool {
        self.items.is_empty() && self.within.is_none()
    }

    /// Whether no file can be in it.
    pub fn is_nothing(&self) -> bool {
        let nothing = |item: &Item| matches!(item, Item::Nothing);
        !self.items.is_empty() && self.items.iter().all(nothing)
    }

    /// The paths, without the patterns.
    pub fn paths(&self) -> impl Iterator<Item = &TreePath> {
        self.items.iter().filter_map(|item| match item {
            Item::Path(path) => Some(path),
            Item::Nothing | Item::Pattern(..) => None,
        })
    }

    /// Whether each pattern fits something.
    pub(crate) fn unmatched_pattern(&self, paths: &[TreePath]) -> Option<String> {
        self.items.iter().find_map(|item| match item {
            Item::Nothing | Item::Path(_) => None,
            Item::Pattern(matcher, _) => {
                let fits = |path: &TreePath| item.cover(path) == Cover::Everything;
                (!paths.iter().any(fits)).then(|| matcher.glob().glob().to_owned())
            }
        })
    }

    /// How much of what is at `path` belongs to it.
    pub fn cover(&self, path: &[u8]) -> Cover {
        let here = match self.items.is_empty() {
            true => Cover::Everything,
            false => self
                .items
                .iter()
                .map(|item| item.cover(path))
                .max()
                .unwrap_or(Cover::Nothing),
        };
        match &self.within {
            Some(within) => here.min(within.cover(path)),
            None => here,
        }
    }

    /// Whether `other` has everything that this has. Of patterns that is not known.
    pub(crate) fn is_covered_by(&self, other: &Self) -> bool {
        let has = |item: &Item| match item {
            Item::Nothing => true,
            Item::Path(path) => other.cover(path) == Cover::Everything,
            Item::Pattern(..) => false,
        };
        !self.is_everything() && self.items.iter().all(has)
    }

    /// What belongs to both.
    pub fn narrowed(&self, other: &Self) -> Self {
        if self.is_covered_by(other) {
            return self.clone();
        }
        if self.is_everything() {
            return other.clone();
        }
        if other.is_everything() {
            return self.clone();
        }
        let mut both = self.clone();
        both.within = Some(Box::new(match both.within.take() {
            Some(within) => within.narrowed(other),
            None => other.clone(),
        }));
        both
    }
}

impl Item {
    fn cover(&self, path: &[u8]) -> Cover {
        match self {
            Self::Nothing => Cover::Nothing,
            Self::Path(wanted) => {
                if path::is_within(path, wanted) {
                    Cover::Everything
                } else if path::is_within(wanted, path) {
                    Cover::Part
                } else {
                    Cover::Nothing
                }
            }
            Self::Pattern(matcher, front) => {
                let mut above = path;
                while !above.is_empty() {
                    if matcher.is_match(path::as_path(above)) {
                        return Cover::Everything;
                    }
                    above = path::split(above).0;
                }
                if path::is_within(path, front) || path::is_within(front, path) {
                    Cover::Part
                } else {
                    Cover::Nothing
                }
            }
        }
    }
}

fn pattern(path: &[u8]) -> Result<Item, String> {
    let text = std::str::from_utf8(path).map_err(|_| "a pattern must be UTF-8".to_owned())?;
    let glob = GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| error.kind().to_string())?;
    let front: Vec<&str> = text
        .split('/')
        .take_while(|name| !name.contains(['*', '?', '[', '{', '\\']))
        .collect();
    Ok(Item::Pattern(
        glob.compile_matcher(),
        front.join("/").into_bytes(),
    ))
}

/// `path` relative to the workspace, without `.` and `..`. Links are not followed.
fn relative(workspace: &Path, here: &Path, path: &Path) -> Result<TreePath, &'static str> {
    let absolute = here.join(path);
    let mut names: Vec<&[u8]> = Vec::new();
    for component in absolute.components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::ParentDir => {
                names.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let joined = names.join(&b'/');
    let root: Vec<&[u8]> = workspace
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.as_bytes()),
            _ => None,
        })
        .collect();
    let root = root.join(&b'/');
    if !path::is_within(&joined, &root) {
        return Err("it lies outside the workspace");
    }
    let inside = joined.get(root.len()..).unwrap_or_default();
    Ok(inside.strip_prefix(b"/").unwrap_or(inside).to_vec())
}

/// Takes back what [`path::display`] did.
pub(crate) fn unescape(text: &str) -> Vec<u8> {
    if text == "." {
        return Vec::new(); // the workspace itself
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match rest {
            [b'n', tail @ ..] => (bytes.push(b'\n'), rest = tail).1,
            [b'r', tail @ ..] => (bytes.push(b'\r'), rest = tail).1,
            [b'\\', tail @ ..] => (bytes.push(b'\\'), rest = tail).1,
            [b'x', a, b, tail @ ..] => {
                let digits = [*a, *b];
                let digits = std::str::from_utf8(&digits).unwrap_or_default();
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or_default());
                rest = tail;
            }
            _ => bytes.push(b'\\'),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(given: &[&str]) -> Scope {
        let given: Vec<_> = given.iter().map(Into::into).collect();
        Scope::parse("/w".as_ref(), "/w/sub".as_ref(), &given).unwrap()
    }

    #[test]
    fn st_01_paths_patterns_and_directories_are_covered() {
        assert_eq!(scope(&[]).cover(b"a/b"), Cover::Everything);
        assert_eq!(scope(&["/w"]).cover(b"a/b"), Cover::Everything);
        let paths = scope(&["../src", "x.txt"]);
        assert_eq!(paths.cover(b"src/deep/file"), Cover::Everything);
        assert_eq!(paths.cover(b"sub"), Cover::Part);
        assert_eq!(paths.cover(b"sub/x.txt"), Cover::Everything);
        assert_eq!(paths.cover(b"sub/y.txt"), Cover::Nothing);
        let globs = scope(&["../src/*.rs", "../**/*.toml"]);
        assert_eq!(globs.cover(b"src/a.rs"), Cover::Everything);
        assert_eq!(globs.cover(b"src/deep/a.rs"), Cover::Part);
        assert_eq!(globs.cover(b"other/Cargo.toml"), Cover::Everything);
        let error = Scope::parse("/w".as_ref(), "/w".as_ref(), &["../x".into()]).unwrap_err();
        assert!(error.to_string().contains("outside"), "{error}");
    }

    #[test]
    fn st_01_an_empty_path_is_no_scope() {
        for given in [&[""][..], &["a", ""]] {
            let given: Vec<_> = given.iter().map(Into::into).collect();
            let error = Scope::parse("/w".as_ref(), "/w".as_ref(), &given).unwrap_err();
            assert!(error.to_string().contains("empty"), "{error}");
        }
        assert!(!scope(&["."]).is_everything());
    }

    #[test]
    fn st_01_a_scope_comes_back_from_what_is_stored() {
        use std::os::unix::ffi::OsStringExt;
        let odd = std::ffi::OsString::from_vec(b"/w/new\nline\\n\xff".to_vec());
        let given = Scope::parse("/w".as_ref(), "/w".as_ref(), &[odd, "*.rs".into()]).unwrap();
        let stored = Scope::stored(&given.to_stored()).unwrap();
        assert_eq!(stored.cover(b"new\nline\\n\xff"), Cover::Everything);
        assert_eq!(stored.cover(b"a.rs"), Cover::Everything);
        assert_eq!(stored.cover(b"a.py"), Cover::Part);
    }

    #[test]
    fn st_34_a_choice_is_narrowed_to_what_was_checkpointed() {
        let checkpointed = scope(&["../src"]);
        let chosen = scope(&["../src/a", "../docs"]);
        let both = checkpointed.narrowed(&chosen);
        assert_eq!(both.cover(b"src/a/x"), Cover::Everything);
        assert_eq!(both.cover(b"src/b"), Cover::Nothing);
        assert_eq!(both.cover(b"docs/x"), Cover::Nothing);
        assert_eq!(
            checkpointed.narrowed(&scope(&["../docs"])).cover(b"docs"),
            Cover::Nothing
        );
    }
}
