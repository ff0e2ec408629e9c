//! Keys of the terminal library as our own.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::Key;

/// The key that was pressed, if one was. A key with a modifier is never the plain key.
pub(super) fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let shift = event.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    let control = event.modifiers == KeyModifiers::CONTROL;
    Some(match event.code {
        // A key that is held down moves on, but decides nothing.
        KeyCode::Char(_) if event.kind == KeyEventKind::Repeat => Key::Other,
        KeyCode::Char(c) if shift && !c.is_control() => Key::Char(c),
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char('l') if control => Key::Redraw,
        KeyCode::Char('u') if control => Key::Clear,
        KeyCode::BackTab => Key::BackTab,
        _ if !shift => Key::Other,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        _ => Key::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au_20_only_the_plain_key_is_the_key() {
        let pressed = |code, modifiers, kind| key(KeyEvent::new_with_kind(code, modifiers, kind));
        let (press, none) = (KeyEventKind::Press, KeyModifiers::NONE);
        let y = KeyCode::Char('y');
        assert_eq!(pressed(y, none, press), Some(Key::Char('y')));
        assert_eq!(pressed(y, none, KeyEventKind::Release), None);
        assert_eq!(pressed(y, none, KeyEventKind::Repeat), Some(Key::Other));
        for modifier in [
            KeyModifiers::CONTROL,
            KeyModifiers::ALT,
            KeyModifiers::SUPER,
        ] {
            assert_eq!(pressed(y, modifier, press), Some(Key::Other));
            assert_eq!(pressed(KeyCode::Enter, modifier, press), Some(Key::Other));
            let shifted = modifier | KeyModifiers::SHIFT;
            assert_eq!(pressed(y, shifted, press), Some(Key::Other));
        }
        let capital = pressed(KeyCode::Char('G'), KeyModifiers::SHIFT, press);
        assert_eq!(capital, Some(Key::Char('G')));
        let interrupt = pressed(KeyCode::Char('c'), KeyModifiers::CONTROL, press);
        assert_eq!(interrupt, Some(Key::Interrupt));
    }
}
