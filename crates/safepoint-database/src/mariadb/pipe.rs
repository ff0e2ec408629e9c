//! What comes through the pipes of the client, and how it is to be read.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;
use std::sync::mpsc::SyncSender;

/// What comes from the client.
pub(super) enum Event {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    End,
}

/// How much is read at once, and how many such runs may wait for us.
const RUN: usize = 64 << 10;
pub(super) const RUNS: usize = 16;

/// Hands on all that comes through a pipe, and then that it has ended.
pub(super) fn forward(
    mut from: impl Read + Send + 'static,
    to: SyncSender<Event>,
    wrap: fn(Vec<u8>) -> Event,
) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; RUN];
        loop {
            let read = from.read(&mut buffer).unwrap_or(0);
            let event = match buffer.get(..read) {
                Some(run) if read > 0 => wrap(run.to_vec()),
                _ => Event::End,
            };
            let last = matches!(event, Event::End);
            if to.send(event).is_err() || last {
                return;
            }
        }
    });
}

/// Whether the client says that it has no connection any more: its own errors, from
/// 2000 on. It may be in the middle of a line.
pub(super) fn is_lost(said: &[u8]) -> bool {
    let mut lines = said.split_inclusive(|byte| *byte == b'\n');
    lines.any(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or_default();
        let code = line.strip_prefix(b"ERROR 2").and_then(|rest| rest.get(..4));
        code.is_some_and(|code| {
            code.iter().take(3).all(u8::is_ascii_digit) && code.last() == Some(&b' ')
        })
    })
}

/// Undoes what the client does to tabs, line breaks, backslashes and zero bytes.
pub(super) fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut bytes = field.iter();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'0') => 0,
                Some(other) => *other,
                None => b'\\',
            },
            _ => *byte,
        });
    }
    plain
}

/// Sixteen hexadecimal digits that nobody can foresee. They are in no result, so they need
/// not come from the caller: the standard library draws them from the system.
pub(super) fn random() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_escapes_are_undone() {
        assert_eq!(unescape(b"a\\tb\\nc\\\\d\\0e"), b"a\tb\nc\\d\0e");
        assert_eq!(unescape(b"\\\\n"), b"\\n");
    }

    #[test]
    fn lost_connections_are_told_from_errors() {
        assert!(is_lost(b"x\nERROR 2006 (HY000) at line 20: gone\n"));
        assert!(!is_lost(b"ERROR 1146 (42S02): Table\n"));
        assert!(!is_lost(b"ERROR 20060\n"));
        assert!(!is_lost(b"ERROR 2006 (HY000)"));
    }

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random(), random());
    }
}
