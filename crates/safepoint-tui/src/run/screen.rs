//! The real terminal, taken over and given back: at the end, on an error, and on a panic.

use std::io::{self, IsTerminal, Stdout, Write, stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::force_color_output;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::bell;

/// Whether the terminal is ours now. A panic at any other time must not write to it.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours. It is given back when this is dropped.
pub(super) struct Screen {
    /// It is not dropped: the library would tell on standard error that the cursor cannot be shown,
    /// and panic where that is gone too. It has nothing to give back that [`restore`] does not.
    pub(super) terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    /// Takes over the terminal. The library would look for one elsewhere, and then somebody
    /// could decide who was never asked: so it must be the one we were started with.
    pub(super) fn open() -> io::Result<Self> {
        if !io::stdin().is_terminal() || !stdout().is_terminal() {
            let why = "standard input and output are not a terminal, and nobody can be asked";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        // The palette decides about colours. The library, left alone, drops bold with them.
        force_color_output(true);
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |information| {
                restore();
                before(information);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let taken = execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Self {
                terminal: ManuallyDrop::new(terminal),
            }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Calls the operator.
    pub(super) fn ring(&mut self) -> io::Result<()> {
        let mut out = stdout();
        out.write_all(bell("something waits for you").as_bytes())?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, for whoever ends the process in the middle of the loop.
pub fn give_back() {
    restore();
}

/// Gives the terminal back. What fails here cannot be helped, and the rest is still tried.
fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
}
