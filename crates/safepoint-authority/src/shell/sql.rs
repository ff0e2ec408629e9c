//! SQL on a command line: a scan for what its statements begin with.
//!
//! It knows reading from changing and changing from dropping, and says so when
//! it cannot tell.

/// What statements do, the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Read,
    Write,
    Drop,
    Unclear,
}

/// What a text of SQL does, at worst.
pub(super) fn kind(text: &str) -> Kind {
    let bare = without_quotes(text);
    let mut worst = Kind::Read;
    for statement in bare.split(';') {
        worst = worst.max(statement_kind(statement));
    }
    worst
}

/// Text and comments are no statements.
fn without_quotes(text: &str) -> String {
    let mut bare = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' | '`' => {
                for inner in letters.by_ref() {
                    if inner == letter {
                        break;
                    }
                }
                bare.push('x');
            }
            '-' if letters.peek() == Some(&'-') => {
                for inner in letters.by_ref() {
                    if inner == '\n' {
                        break;
                    }
                }
                bare.push(' ');
            }
            '/' if letters.peek() == Some(&'*') => {
                // What is in such a comment may still be run.
                bare.push(' ');
                letters.next();
                if letters.peek() == Some(&'!') {
                    return "unclear".to_owned();
                }
                let mut last = ' ';
                for inner in letters.by_ref() {
                    if last == '*' && inner == '/' {
                        break;
                    }
                    last = inner;
                }
            }
            _ => bare.push(letter.to_ascii_lowercase()),
        }
    }
    bare
}

fn statement_kind(statement: &str) -> Kind {
    let words: Vec<&str> = statement
        .split(|next: char| !(next.is_alphanumeric() || "_.\\".contains(next)))
        .filter(|word| !word.is_empty())
        .collect();
    let Some(first) = words.first() else {
        return Kind::Read;
    };
    let has = |word: &str| words.contains(&word);
    let changes = || {
        if has("drop") || has("truncate") || has("delete") && !has("where") {
            Kind::Drop
        } else if [
            "insert", "update", "delete", "merge", "into", "copy", "alter", "create", "call", "do",
        ]
        .into_iter()
        .any(has)
        {
            Kind::Write
        } else {
            Kind::Read
        }
    };
    match *first {
        "select" | "with" | "explain" | "values" | "table" => {
            let danger = [
                "pg_read_file",
                "lo_export",
                "lo_import",
                "load_file",
                "load_extension",
                "pg_terminate_backend",
                "pg_ls_dir",
                "dblink",
                "writefile",
                "readfile",
                "edit",
                "outfile",
                "dumpfile",
                "xp_cmdshell",
                "sys_exec",
                "fts3_tokenizer",
            ];
            if words.iter().any(|word| danger.contains(word)) {
                Kind::Unclear
            } else {
                changes()
            }
        }
        "show" | "describe" | "desc" | "use" | "begin" | "commit" | "end" | "rollback"
        | "start" => Kind::Read,
        "pragma" if !statement.contains('=') => Kind::Read,
        "\\d" | "\\dt" | "\\l" | "\\du" | "\\dn" | "\\di" | "\\dv" | "\\df" | "\\x" | "\\q"
        | "\\conninfo" | "\\timing" | "\\c" => Kind::Read,
        ".tables" | ".schema" | ".headers" | ".mode" | ".indexes" | ".databases" | ".quit"
        | ".exit" | ".width" | ".dbinfo" | ".help" | ".dump" => Kind::Read,
        "drop" | "truncate" => Kind::Drop,
        "delete" if !has("where") => Kind::Drop,
        "alter" if has("drop") => Kind::Drop,
        "insert" | "update" | "delete" | "replace" | "merge" | "create" | "alter" | "grant"
        | "revoke" | "vacuum" | "analyze" | "reindex" | "comment" | "lock" | "set" | "reset"
        | "pragma" | "savepoint" | "release" | "refresh" | "cluster" => Kind::Write,
        _ => Kind::Unclear,
    }
}
