//! Documents in many shapes, and changes to them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Values that can be written in every format.
pub(super) fn value(nulls: bool) -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec![
        "",
        "a",
        "a b",
        "yes",
        "1",
        "1.5",
        "a: b",
        "- x",
        "#c",
        "x #c",
        "é",
        "line\ntwo",
        "line\ntwo\n",
        "\n",
        "  padded  ",
        "it's",
        "\"q\"",
        "null",
        "tab\t",
        "a, b",
        "{x}",
        "end\n\n",
        "\u{7f}\u{85}",
        "k:",
    ]);
    let leaf = prop_oneof![
        text.prop_map(|text| json!(text)),
        (-3_i64..300).prop_map(|number| json!(number)),
        Just(json!(1.5)),
        Just(json!(9_007_199_254_740_993_i64)),
        any::<bool>().prop_map(|value| json!(value)),
        Just(if nulls { Value::Null } else { json!(false) }),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            mapping(inner),
        ]
    })
}

fn mapping(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "a", "b", "c", "d", "a/b", "m~n", "", "0", "x y", "on", "é",
    ]);
    prop::collection::vec((key, inner), 0..5).prop_map(|entries| {
        let entries = entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        Value::Object(entries.collect::<Map<_, _>>())
    })
}

/// A mapping.
pub(super) fn table() -> impl Strategy<Value = Value> {
    mapping(value(false))
}

pub(super) fn pointers(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                pointers(item, &format!("{path}/{number}"), found);
            }
        }
        Value::Object(items) => {
            for (key, item) in items {
                pointers(item, &format!("{path}/{}", escaped(key)), found);
            }
        }
        _ => {}
    }
}

/// What an operation is made from.
pub(super) type Draw = (u8, prop::sample::Index, prop::sample::Index, u8, Value);

pub(super) fn draws(nulls: bool) -> impl Strategy<Value = Vec<Draw>> {
    let index = any::<prop::sample::Index>;
    prop::collection::vec(
        (any::<u8>(), index(), index(), any::<u8>(), value(nulls)),
        1..5,
    )
}

/// A patch whose pointers mostly lead somewhere.
pub(super) fn patch(document: &Value, draws: &[Draw]) -> Value {
    let mut known = Vec::new();
    pointers(document, "", &mut known);
    let operations = draws.iter().map(|(kind, path, from, bend, value)| {
        let path = path.get(&known).clone();
        let from = from.get(&known).clone();
        let path = match bend % 8 {
            0 => format!("{path}/new"),
            1 => format!("{path}/-"),
            2 => format!("{path}/0"),
            _ => path,
        };
        match kind % 8 {
            0 | 1 => json!({"op": "add", "path": path, "value": value}),
            // On these the other implementation has rules of its own.
            2 | 3 if path.is_empty() => json!({"op": "test", "path": path, "value": document}),
            5 | 6 if from == path => json!({"op": "copy", "from": from, "path": path}),
            2 | 3 => json!({"op": "remove", "path": path}),
            4 => json!({"op": "replace", "path": path, "value": value}),
            5 | 6 => json!({"op": "move", "from": from, "path": path}),
            _ => json!({"op": "copy", "from": from, "path": path}),
        }
    });
    Value::Array(operations.collect())
}

/// Choices, over and over.
struct Choices<'a> {
    from: &'a [u8],
    at: usize,
    /// What may stand between the parts of JSON.
    spaces: &'static [&'static str],
    /// What may stand between a key and its colon.
    before_colon: &'static [&'static str],
}

impl<'a> Choices<'a> {
    fn new(from: &'a [u8]) -> Self {
        Self {
            from,
            at: 0,
            spaces: &JSON_SPACES,
            before_colon: &JSON_SPACES,
        }
    }
}

const JSON_SPACES: [&str; 8] = [
    "",
    "",
    " ",
    "\n  ",
    "\r\n\t",
    " // c\n",
    "/* c\n */",
    "\n\n  // d\n\n  ",
];

const YAML_SPACES: [&str; 6] = ["", "", " ", "\n  ", " # c\n  ", "\n\n  # d\n\n  "];

impl Choices<'_> {
    fn next(&mut self, of: usize) -> usize {
        let byte = self
            .from
            .get(self.at % self.from.len().max(1))
            .copied()
            .unwrap_or(0);
        self.at += 1;
        usize::from(byte) % of
    }
}

/// A document as JSON in some style, with comments and other liberties.
pub(super) fn json(value: &Value, choices: &[u8]) -> String {
    let mut choices = Choices::new(choices);
    let mut output = String::new();
    space(&mut choices, &mut output);
    write_json(value, &mut choices, &mut output);
    space(&mut choices, &mut output);
    output
}

fn space(choices: &mut Choices<'_>, output: &mut String) {
    output.push_str(choices.spaces[choices.next(choices.spaces.len())]);
}

/// A document as YAML in brackets.
pub(super) fn flow_yaml(value: &Value, choices: &[u8]) -> String {
    let mut choices = Choices::new(choices);
    choices.spaces = &YAML_SPACES;
    choices.before_colon = &["", " "];
    let mut output = String::new();
    write_json(value, &mut choices, &mut output);
    output + "\n"
}

/// A simple value as JSON that YAML can read, too.
fn text(value: &Value) -> String {
    let text = value.to_string();
    text.replace('\u{7f}', "\\u007f")
        .replace('\u{85}', "\\u0085")
}

fn write_json(value: &Value, choices: &mut Choices<'_>, output: &mut String) {
    let (open, close) = match value {
        Value::Array(_) => ('[', ']'),
        Value::Object(_) => ('{', '}'),
        other => return output.push_str(&text(other)),
    };
    output.push(open);
    let entries: Vec<(Option<&String>, &Value)> = match value {
        Value::Array(items) => items.iter().map(|item| (None, item)).collect(),
        Value::Object(items) => items.iter().map(|(key, item)| (Some(key), item)).collect(),
        _ => Vec::new(),
    };
    let count = entries.len();
    for (number, (key, item)) in entries.into_iter().enumerate() {
        space(choices, output);
        if let Some(key) = key {
            output.push_str(&text(&json!(key)));
            output.push_str(choices.before_colon[choices.next(choices.before_colon.len())]);
            output.push(':');
            space(choices, output);
        }
        write_json(item, choices, output);
        space(choices, output);
        if number + 1 < count || choices.next(5) == 4 {
            output.push(',');
        }
    }
    space(choices, output);
    output.push(close);
}

/// JSON without comments and last commas.
pub(super) fn plain_json(text: &str) -> String {
    let mut output = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if character == '"' {
            let mut end = 1;
            while rest.as_bytes()[end] != b'"' {
                end += if rest.as_bytes()[end] == b'\\' { 2 } else { 1 };
            }
            output.push_str(&rest[..=end]);
            rest = &rest[end + 1..];
        } else if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            rest = &rest[rest.find("*/").unwrap() + 2..];
        } else {
            if matches!(character, ']' | '}') && output.trim_end().ends_with(',') {
                output.truncate(output.trim_end().len() - 1);
            }
            output.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    output
}

/// A document as YAML by lines, in some style.
pub(super) fn yaml(value: &Value, choices: &[u8]) -> String {
    let mut choices = Choices::new(choices);
    let mut lines = Vec::new();
    if choices.next(4) == 3 {
        lines.push("---".to_owned());
    }
    let (first, rest) = yaml_value(value, 0, 0, &mut choices);
    lines.push(first);
    lines.extend(rest);
    let newline = ["\n", "\n", "\r\n"][choices.next(3)];
    let mut output = lines.join(newline);
    // A block of lines must have an end.
    if choices.next(4) < 3 || output.contains('|') {
        output.push_str(newline);
    }
    output
}

fn scalar(value: &Value, choices: &mut Choices<'_>) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    let simple = text.chars().all(|c| c.is_ascii_alphanumeric());
    let word = simple && text.len() == 1 && text.starts_with(|c: char| c.is_ascii_alphabetic());
    let quoted = json!(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
        .replace('\u{85}', "\\u0085");
    let printable = !text.chars().any(char::is_control);
    match choices.next(3) {
        0 if word => text.clone(),
        1 if printable => format!("'{}'", text.replace('\'', "''")),
        _ => quoted,
    }
}

fn flow(value: &Value, choices: &mut Choices<'_>) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| flow(item, choices)).collect();
            format!("[{}]", items.join([", ", ",", " , "][choices.next(3)]))
        }
        Value::Object(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|(key, item)| {
                    format!("{}: {}", scalar(&json!(key), choices), flow(item, choices))
                })
                .collect();
            match choices.next(2) {
                0 => format!("{{{}}}", items.join(", ")),
                _ => format!("{{ {} }}", items.join(", ")),
            }
        }
        other => scalar(other, choices),
    }
}

/// What stands behind a key or a dash, and the lines below. `parent` is how far
/// that is indented, `least` how far the value has to be.
fn yaml_value(
    value: &Value,
    parent: usize,
    least: usize,
    choices: &mut Choices<'_>,
) -> (String, Vec<String>) {
    let empty = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
        _ => true,
    };
    if let Value::String(text) = value
        && text.ends_with('\n')
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && choices.next(2) == 0
    {
        let column = parent + 1 + choices.next(3);
        let mark = if text.ends_with("\n\n") { "|+" } else { "|" };
        let body = text.strip_suffix('\n').unwrap().split('\n');
        let line = |line: &str| {
            if line.is_empty() {
                String::new()
            } else {
                format!("{:column$}{line}", "")
            }
        };
        return (mark.to_owned(), body.map(line).collect());
    }
    if empty || choices.next(4) == 3 {
        return (flow(value, choices), Vec::new());
    }
    let column = least + choices.next(3);
    let mut lines = Vec::new();
    match value {
        Value::Array(items) => {
            for item in items {
                remark(column, choices, &mut lines);
                let (first, rest) = yaml_value(item, column, column + 2, choices);
                dash(column, first, rest, item, choices, &mut lines);
            }
        }
        Value::Object(items) => {
            for (key, item) in items {
                remark(column, choices, &mut lines);
                // The dashes of a list may stand below its key.
                let least = column + usize::from(!item.is_array() || choices.next(2) == 0);
                let (first, rest) = yaml_value(item, column, least, choices);
                let behind = ["", "", " # behind"][choices.next(3)];
                let first = if first.is_empty() {
                    first
                } else {
                    format!(" {first}")
                };
                lines.push(format!(
                    "{:column$}{}:{first}{behind}",
                    "",
                    scalar(&json!(key), choices)
                ));
                lines.extend(rest);
            }
        }
        _ => {}
    }
    (String::new(), lines)
}

fn dash(
    column: usize,
    first: String,
    mut rest: Vec<String>,
    item: &Value,
    choices: &mut Choices<'_>,
    lines: &mut Vec<String>,
) {
    let block = first.is_empty() && (item.is_array() || item.is_object());
    // The first entry may stand beside the dash, if it is indented for it.
    let beside = format!("{:1$}", "", column + 2);
    let fits = rest.first().is_some_and(|line| {
        line.strip_prefix(&beside)
            .is_some_and(|line| !line.starts_with([' ', '#']))
    });
    if block && fits && choices.next(4) < 3 {
        let entry = rest.remove(0);
        lines.push(format!("{:column$}- {}", "", entry.trim_start()));
    } else if first.is_empty() {
        lines.push(format!("{:column$}-", ""));
    } else {
        lines.push(format!("{:column$}- {first}", ""));
    }
    lines.extend(rest);
}

fn remark(column: usize, choices: &mut Choices<'_>, lines: &mut Vec<String>) {
    match choices.next(8) {
        6 => lines.push(format!("{:column$}# above", "")),
        // It would be part of a block that keeps its end.
        7 if !lines.iter().any(|line| line.contains("|+")) => lines.push(String::new()),
        _ => {}
    }
}

/// A mapping as TOML, in some style.
pub(super) fn toml(value: &Value, choices: &[u8]) -> String {
    let mut choices = Choices::new(choices);
    let mut lines = Vec::new();
    toml_table(value, &mut Vec::new(), &mut choices, &mut lines);
    let newline = ["\n", "\n", "\r\n"][choices.next(3)];
    let mut output = lines.join(newline);
    if choices.next(4) < 3 && !output.is_empty() {
        output.push_str(newline);
    }
    output
}

fn toml_key(key: &str) -> String {
    match key.chars().all(|c| c.is_ascii_alphanumeric()) && !key.is_empty() {
        true => key.to_owned(),
        false => json!(key).to_string(),
    }
}

fn inline(value: &Value, choices: &mut Choices<'_>) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(item, choices)).collect();
            match choices.next(3) {
                0 if !items.is_empty() => {
                    format!("[\n    {}, # last\n]", items.join(", # c\n    "))
                }
                _ => format!("[{}]", items.join(", ")),
            }
        }
        Value::Object(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|(key, item)| format!("{} = {}", toml_key(key), inline_flat(item, choices)))
                .collect();
            format!("{{ {} }}", items.join(", "))
        }
        Value::String(text) => {
            let literal = !text.chars().any(|c| c.is_control() || c == '\'');
            match literal && choices.next(2) == 0 {
                true => format!("'{text}'"),
                false => json!(text)
                    .to_string()
                    .replace('\u{7f}', "\\u007f")
                    .replace('\u{85}', "\\u0085"),
            }
        }
        other => other.to_string(),
    }
}

/// On one line, as it has to be in an inline table.
fn inline_flat(value: &Value, choices: &mut Choices<'_>) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|item| inline_flat(item, choices))
                .collect();
            format!("[{}]", items.join(", "))
        }
        other => inline(other, choices),
    }
}

fn toml_table(
    value: &Value,
    path: &mut Vec<String>,
    choices: &mut Choices<'_>,
    lines: &mut Vec<String>,
) {
    let Value::Object(items) = value else {
        return;
    };
    let mut tables = Vec::new();
    for (key, item) in items {
        if choices.next(6) == 5 {
            lines.push("# above".to_owned());
        }
        let behind = ["", " # behind"][choices.next(2)];
        let dotted = item.as_object().filter(|inner| !inner.is_empty());
        let list = item
            .as_array()
            .filter(|items| !items.is_empty() && items.iter().all(Value::is_object));
        match choices.next(4) {
            0 | 1 if dotted.is_some() || list.is_some() => tables.push((key, item)),
            2 if dotted.is_some() => {
                for (inner, item) in dotted.into_iter().flatten() {
                    lines.push(format!(
                        "{}.{} = {}",
                        toml_key(key),
                        toml_key(inner),
                        inline(item, choices)
                    ));
                }
            }
            _ => lines.push(format!(
                "{} = {}{behind}",
                toml_key(key),
                inline(item, choices)
            )),
        }
    }
    for (key, item) in tables {
        path.push(toml_key(key));
        match item {
            Value::Array(items) => {
                for item in items {
                    toml_header(format!("[[{}]]", path.join(".")), choices, lines);
                    toml_table(item, path, choices, lines);
                }
            }
            item => {
                let headless = item.as_object().is_some_and(|items| {
                    items
                        .values()
                        .all(|item| item.as_object().is_some_and(|items| !items.is_empty()))
                });
                // Its tables imply it, when they have headers themselves.
                if headless && choices.next(2) == 0 {
                    for (key, item) in item.as_object().into_iter().flatten() {
                        path.push(toml_key(key));
                        toml_header(format!("[{}]", path.join(".")), choices, lines);
                        toml_table(item, path, choices, lines);
                        path.pop();
                    }
                } else {
                    toml_header(format!("[{}]", path.join(".")), choices, lines);
                    toml_table(item, path, choices, lines);
                }
            }
        }
        path.pop();
    }
}

fn toml_header(header: String, choices: &mut Choices<'_>, lines: &mut Vec<String>) {
    if choices.next(4) < 3 && !lines.is_empty() {
        lines.push(String::new());
    }
    if choices.next(5) == 4 {
        lines.push("# about it".to_owned());
    }
    lines.push(header);
}

/// What a TOML text says, as `toml_edit` reads it.
pub(super) fn read_toml(text: &str) -> Value {
    let document: toml_edit::DocumentMut = text.parse().unwrap();
    toml_item(document.as_item())
}

fn toml_item(item: &toml_edit::Item) -> Value {
    match item {
        toml_edit::Item::None => Value::Null,
        toml_edit::Item::Value(value) => toml_value(value),
        toml_edit::Item::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, item)| (key.to_owned(), toml_item(item)))
                .collect(),
        ),
        toml_edit::Item::ArrayOfTables(tables) => {
            let tables = tables
                .iter()
                .map(|table| toml_item(&toml_edit::Item::Table(table.clone())));
            Value::Array(tables.collect())
        }
    }
}

fn toml_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => json!(text.value()),
        toml_edit::Value::Integer(number) => json!(number.value()),
        toml_edit::Value::Float(number) => json!(number.value()),
        toml_edit::Value::Boolean(value) => json!(value.value()),
        toml_edit::Value::Datetime(value) => json!(value.value().to_string()),
        toml_edit::Value::Array(items) => Value::Array(items.iter().map(toml_value).collect()),
        toml_edit::Value::InlineTable(table) => Value::Object(
            table
                .iter()
                .map(|(key, item)| (key.to_owned(), toml_value(item)))
                .collect(),
        ),
    }
}
