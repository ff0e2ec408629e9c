//! The parser of redirections and here-documents.

use std::cell::OnceCell;
use std::rc::Rc;

use super::parse::{Parser, Pending, Refusal};
use super::syntax::{Piece, Redirect, RedirectKind};

impl Parser<'_> {
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Refusal> {
        let rest = self.rest();
        let digits = rest
            .find(|next: char| !next.is_ascii_digit())
            .unwrap_or(rest.len());
        let after = rest.get(digits..).unwrap_or_default();
        if after.starts_with("<(") || after.starts_with(">(") {
            return Ok(None);
        }
        let (width, kind) = if digits == 0 && after.starts_with("&>>") {
            (3, RedirectKind::Append)
        } else if digits == 0 && after.starts_with("&>") {
            (2, RedirectKind::Write)
        } else if after.starts_with("<<<") {
            (3, RedirectKind::Here)
        } else if after.starts_with("<<") {
            self.at += digits + 2;
            return self.here_operator().map(Some);
        } else if after.starts_with("<&") || after.starts_with(">&") {
            (2, RedirectKind::Duplicate)
        } else if after.starts_with("<>") {
            (2, RedirectKind::Both)
        } else if after.starts_with(">>") {
            (2, RedirectKind::Append)
        } else if after.starts_with(">|") || after.starts_with(">!") {
            (2, RedirectKind::Write)
        } else if after.starts_with('>') {
            (1, RedirectKind::Write)
        } else if after.starts_with('<') {
            (1, RedirectKind::Read)
        } else {
            return Ok(None);
        };
        if digits > 3 {
            return Err("a strange redirection");
        }
        if after.starts_with(">!") {
            return Err("a redirection that shells read differently");
        }
        self.at += digits + width;
        self.blanks();
        let word = self.word()?;
        let target = Rc::new(OnceCell::new());
        let _ = target.set(word);
        Ok(Some(Redirect { kind, target }))
    }

    fn here_operator(&mut self) -> Result<Redirect, Refusal> {
        let tabs = self.take("-");
        self.blanks();
        let word = self.word()?;
        let mut delimiter = String::new();
        let mut literal = false;
        for piece in &word.pieces {
            match piece {
                Piece::Plain(text) => delimiter.push_str(text),
                Piece::Quoted(text) => {
                    literal = true;
                    delimiter.push_str(text);
                }
                _ => return Err("a here-document with a strange end"),
            }
        }
        if delimiter.is_empty() || delimiter.contains('\n') {
            return Err("a here-document with a strange end");
        }
        let body = Rc::new(OnceCell::new());
        self.pending.push(Pending {
            delimiter,
            literal,
            tabs,
            body: Rc::clone(&body),
        });
        Ok(Redirect {
            kind: RedirectKind::Here,
            target: body,
        })
    }
}
