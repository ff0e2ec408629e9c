//! The bell of a terminal, with a note for those that can show one on the desktop.
//!
//! These are escape sequences: whoever writes them makes sure first that it is to a terminal.

/// What to write: BEL, and the note as OSC 9 (iTerm2, Windows Terminal, kitty and others) and
/// OSC 777 (urxvt, foot, VTE and others). Terminals leave out what they do not know. Of the
/// note only plain characters remain, so that nothing in it ends the sequence early.
pub fn bell(note: &str) -> String {
    let plain = |c: char| match c {
        'A'..='Z' | 'a'..='z' | '0'..='9' | ' ' | '_' | '-' | '.' | ',' | ':' => c,
        _ => '?',
    };
    let note: String = note.chars().take(80).map(plain).collect();
    format!("\x07\x1b]9;Safepoint: {note}\x1b\\\x1b]777;notify;Safepoint;{note}\x1b\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_10_nothing_in_a_note_ends_the_sequence_early() {
        let hostile = "a\x07b\x1b]0;title\x1b\\c;d\u{9c}e\n\u{202e}";
        let written = bell(hostile);
        let note = "a?b??0?title??c?d?e??";
        assert_eq!(
            written,
            format!("\x07\x1b]9;Safepoint: {note}\x1b\\\x1b]777;notify;Safepoint;{note}\x1b\\")
        );
        assert!(bell(&"x".repeat(10_000)).len() < 250);
    }
}
