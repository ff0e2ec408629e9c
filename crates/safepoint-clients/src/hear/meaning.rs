//! What a call means: the table of the client, applied to what the tool is given.
//!
//! A known tool whose input is not as the table says is not understood. It is never taken
//! for harmless.

use std::path::{Component, Path, PathBuf};

use safepoint_model::text;
use serde_json::Value;

use super::patch;
use super::table::{self, Field, Meaning};
use crate::{Client, FileChange, Tool};

/// What `name` does when it is given `input`. The error says what is missing.
pub(crate) fn tool(client: Client, name: &str, input: &Value) -> Result<Tool, String> {
    let Some(meaning) = table::meaning(client, name) else {
        return Ok(Tool::Unknown);
    };
    let input = Input { name, input };
    Ok(match meaning {
        Meaning::Shell {
            line,
            directory,
            background,
        } => {
            let (field, value) = input.required(line)?;
            Tool::Shell {
                line: match value {
                    Value::Array(words) if client == Client::Codex => {
                        shell_line(words).ok_or_else(|| input.odd(field))?
                    }
                    value => input.text(field, value)?.to_owned(),
                },
                directory: input.path(directory)?,
                background: input.background(background)?,
                field,
            }
        }
        Meaning::Write(path) => Tool::Files(vec![FileChange::Write(input.file(path)?)]),
        Meaning::Delete(path) => Tool::Files(vec![FileChange::Delete(input.file(path)?)]),
        Meaning::Editor(path) => {
            let (field, command) = input.required(&["command"])?;
            if input.text(field, command)? == "view" {
                Tool::Read(vec![input.file(path)?])
            } else {
                Tool::Files(vec![FileChange::Write(input.file(path)?)])
            }
        }
        Meaning::Patch(field) => {
            let patch = match input.input {
                Value::String(patch) => patch,
                _ => {
                    let (field, value) = input.required(field)?;
                    input.text(field, value)?
                }
            };
            let files = patch::files(patch);
            Tool::Files(files.map_err(|why| format!("the patch is not understood: {why}"))?)
        }
        Meaning::ReadFile(path) => Tool::Read(vec![input.file(path)?]),
        Meaning::Read { path, pattern } => Tool::Read(input.places(path, pattern)?),
        Meaning::Fetch { url, text } => Tool::Fetch {
            url: input.url(url, text)?,
        },
        Meaning::Server { server, tool } => {
            let (field, value) = input.required(server)?;
            let tool = match input.optional(tool)? {
                Some((field, value)) => input.text(field, value)?.to_owned(),
                None => "resources/read".to_owned(),
            };
            Tool::Mcp {
                server: input.text(field, value)?.to_owned(),
                tool,
            }
        }
        Meaning::Delegate => Tool::Delegate,
        Meaning::Own => Tool::Own,
    })
}

/// What a tool is given.
struct Input<'call> {
    name: &'call str,
    input: &'call Value,
}

impl<'call> Input<'call> {
    /// The field, under whichever of its names; two names must not say two things.
    fn optional(&self, field: Field) -> Result<Option<(&'static str, &'call Value)>, String> {
        let mut found = None;
        for name in field {
            let value = self.input.get(*name).filter(|value| !value.is_null());
            match (value, found) {
                (Some(value), None) => found = Some((*name, value)),
                (Some(value), Some((other, already))) if value != already => {
                    return Err(format!(
                        "`{}` is given both `{other}` and `{name}`, which differ",
                        text::line(self.name).text
                    ));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn required(&self, field: Field) -> Result<(&'static str, &'call Value), String> {
        self.optional(field)?.ok_or_else(|| {
            let name = text::line(self.name).text;
            format!(
                "`{name}` is not given `{}`",
                field.first().copied().unwrap_or_default()
            )
        })
    }

    fn odd(&self, field: &str) -> String {
        let name = text::line(self.name).text;
        format!("`{field}` of `{name}` is not what it should be")
    }

    fn text(&self, field: &str, value: &'call Value) -> Result<&'call str, String> {
        value.as_str().ok_or_else(|| self.odd(field))
    }

    fn file(&self, field: Field) -> Result<PathBuf, String> {
        let (name, value) = self.required(field)?;
        self.as_path(name, value)
    }

    fn path(&self, field: Field) -> Result<Option<PathBuf>, String> {
        match self.optional(field)? {
            Some((_, value)) if value.as_str() == Some("") => Ok(None),
            Some((name, value)) => self.as_path(name, value).map(Some),
            None => Ok(None),
        }
    }

    fn as_path(&self, field: &str, value: &'call Value) -> Result<PathBuf, String> {
        let path = self.text(field, value)?;
        if path.is_empty() || path.contains('\0') {
            return Err(self.odd(field));
        }
        Ok(PathBuf::from(path))
    }

    /// Whether nobody waits for the end.
    fn background(&self, field: Field) -> Result<bool, String> {
        let mut background = field == table::ALWAYS;
        for name in field {
            background |= match self.input.get(*name) {
                None | Some(Value::Null) => false,
                Some(Value::Bool(value)) => *value,
                Some(Value::String(word)) => !word.is_empty() && word != "sync",
                Some(_) => return Err(self.odd(name)),
            };
        }
        Ok(background)
    }

    /// What is read: the paths, and where the patterns lead.
    fn places(&self, path: Field, pattern: Field) -> Result<Vec<PathBuf>, String> {
        let mut places = Vec::new();
        if let Some((name, value)) = self.optional(path)? {
            for value in each(value) {
                if value.as_str() != Some("") {
                    places.push(self.as_path(name, value)?);
                }
            }
        }
        if places.is_empty() {
            places.push(PathBuf::from("."));
        }
        if let Some((name, value)) = self.optional(pattern)? {
            for value in each(value) {
                places.extend(elsewhere(self.text(name, value)?));
            }
        }
        Ok(places)
    }

    fn url(&self, url: Field, text: Field) -> Result<Option<String>, String> {
        if let Some((name, value)) = self.optional(url)? {
            return Ok(Some(self.text(name, value)?.to_owned()));
        }
        if let Some(first) = url.first().filter(|_| text.is_empty()) {
            return Err(self.odd(first));
        }
        let Some((name, value)) = self.optional(text)? else {
            return Ok(None);
        };
        // Of several addresses none stands for the others.
        let words = self.text(name, value)?.split_whitespace();
        let mut urls = words.filter(|word| word.contains("://"));
        Ok(urls
            .next()
            .filter(|_| urls.next().is_none())
            .map(str::to_owned))
    }
}

/// The values of a list, or the one value.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    let (list, one) = match value {
        Value::Array(list) => (list.as_slice(), None),
        one => (Default::default(), Some(one)),
    };
    list.iter().chain(one)
}

/// Where a pattern leads besides the directory that it is used in.
fn elsewhere(pattern: &str) -> Option<PathBuf> {
    let wild = |text: &str| text.contains(['*', '?', '[', '{', '(']);
    let path = Path::new(pattern);
    let up = |component: Component<'_>| component == Component::ParentDir;
    if !path.has_root() && !path.components().any(up) && !pattern.contains(['{', '~']) {
        return None;
    }
    let is_wild = |component: &Component<'_>| wild(&component.as_os_str().to_string_lossy());
    let fixed: PathBuf = path
        .components()
        .take_while(|part| !is_wild(part))
        .collect();
    let rest = path.components().skip_while(|part| !is_wild(part));
    // Behind the first wildcard, or among alternatives, it may lead anywhere.
    if rest.clone().any(up) || (pattern.contains('{') && pattern.contains('/')) {
        return Some(PathBuf::from("/"));
    }
    (path.has_root() || fixed.components().any(up) || pattern.starts_with('~')).then_some(fixed)
}

/// The line of a command that is given as words: that of its shell, or the words quoted.
fn shell_line(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        [] => None,
        [shell, flags, line] if is_shell(shell) && matches!(*flags, "-c" | "-lc") => {
            Some((*line).to_owned())
        }
        words => {
            let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
            Some(quoted.join(" "))
        }
    }
}

/// Whether a command given as words is a shell with a line.
pub(crate) fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next();
    matches!(name, Some("bash" | "dash" | "sh" | "zsh"))
}

/// A word, so that a shell reads it as this word.
pub(crate) fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
