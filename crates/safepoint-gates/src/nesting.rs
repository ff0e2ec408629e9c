//! How deep a text from outside would nest, before a parser sees it.
//!
//! Parsers and syntax trees recurse, and a stack that overflows ends the
//! process: no error is returned. So what could make a tree deep is counted
//! first. This never says that a text is well formed.

/// What a statement of a text may have at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Brackets that are open at the same time.
    pub(crate) brackets: usize,
    /// Operators, one after the other: chains of them make deep trees, too.
    pub(crate) operators: usize,
}

/// A text that is too deep, and where that shows, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooDeep {
    /// Where.
    pub(crate) offset: usize,
}

/// Checks a text of which `;` ends a statement, and `"…"` and `//` mean what
/// they mean in Cedar.
pub(crate) fn check_statements(text: &str, bounds: Bounds) -> Result<(), TooDeep> {
    let (mut open, mut operators) = (0_usize, 0_usize);
    let mut characters = text.char_indices().peekable();
    let mut word = String::new();
    while let Some((offset, character)) = characters.next() {
        if character.is_alphanumeric() || character == '_' {
            word.push(character);
            continue;
        }
        operators += usize::from(is_operator_word(&word));
        word.clear();
        match character {
            '"' => {
                while let Some((_, inner)) = characters.next() {
                    match inner {
                        '\\' => {
                            characters.next();
                        }
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '/' if characters.peek().is_some_and(|(_, next)| *next == '/') => {
                while characters
                    .next_if(|(_, inner)| !matches!(inner, '\n' | '\r'))
                    .is_some()
                {}
            }
            // Brackets do not close at a `;`: a text that never closes them
            // must not start again from nothing.
            ';' => operators = 0,
            '(' | '[' | '{' => {
                open += 1;
                operators += 1;
            }
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => operators += usize::from(is_operator(character)),
        }
        if open > bounds.brackets || operators > bounds.operators {
            return Err(TooDeep { offset });
        }
    }
    Ok(())
}

/// Checks an expression without reading its strings: what looks like an
/// operator counts wherever it stands, and a bracket is never taken back. That
/// refuses some harmless texts, and lets no deep one through.
pub(crate) fn check_expression(text: &str, bounds: Bounds) -> Result<(), TooDeep> {
    let (mut open, mut operators) = (0_usize, 0_usize);
    let mut word = String::new();
    for (offset, character) in text.char_indices() {
        if character.is_alphanumeric() || character == '_' {
            word.push(character);
            continue;
        }
        operators += usize::from(is_operator_word(&word));
        word.clear();
        open += usize::from(matches!(character, '(' | '[' | '{'));
        operators += usize::from(is_operator(character));
        if open > bounds.brackets || operators > bounds.operators {
            return Err(TooDeep { offset });
        }
    }
    Ok(())
}

fn is_operator(character: char) -> bool {
    matches!(
        character,
        '.' | '&' | '|' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '?'
    )
}

fn is_operator_word(word: &str) -> bool {
    matches!(word, "if" | "in" | "has" | "is" | "like")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        brackets: 3,
        operators: 5,
    };

    #[test]
    fn strings_and_comments_of_statements_do_not_count() {
        let text = "(((\"((((\\\"((((\" // ((((((\n)))";
        assert_eq!(check_statements(text, BOUNDS), Ok(()));
        assert_eq!(check_statements("((((", BOUNDS), Err(TooDeep { offset: 3 }));
    }

    #[test]
    fn a_statement_ends_its_operators_and_not_its_brackets() {
        assert_eq!(check_statements("a.b.c.d; a.b.c.d;", BOUNDS), Ok(()));
        assert!(check_statements("a.b.c.d.e.f.g", BOUNDS).is_err());
        assert!(check_statements("(;(;(;(;", BOUNDS).is_err());
        assert!(check_statements("if if if if if if a", BOUNDS).is_err());
    }

    #[test]
    fn an_expression_counts_everything() {
        assert_eq!(check_expression("(a) + [b]", BOUNDS), Ok(()));
        assert!(check_expression("()()()()", BOUNDS).is_err());
        assert!(check_expression("!!!!!!a", BOUNDS).is_err());
        assert!(check_expression("a in a in a in a in a in a in a", BOUNDS).is_err());
    }
}
