//! What is printed, and where: data on standard output, talk on standard error.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use safepoint_model::{Exit, text, yaml};
use safepoint_state::{Progress, StateError};
use serde::Serialize;

use crate::commands;
use crate::error::CliError;
use crate::settings::Size;

/// The form of data on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For people.
    Text,
    /// One JSON value.
    Json,
    /// One JSON value a line.
    Ndjson,
}

/// How documents are written where the mode is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// JSON on one line.
    Json,
    /// YAML, each document with the line that begins it.
    Yaml,
}

/// Whether to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// For headings and names that lead a line.
pub(crate) const STRONG: Style = Style::new().bold();
/// For what matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// For good news.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// For bad news.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// For what should not be overlooked.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// For what to do.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();

/// How often the progress of long work is shown.
const TICK: Duration = Duration::from_millis(100);

/// Standard output and standard error of one command.
pub(crate) struct Console {
    /// The form of data.
    pub(crate) mode: Mode,
    /// How documents are written.
    notation: Notation,
    quiet: bool,
    out: Box<dyn Write + Send>,
    /// Whether text for people is printed without colours.
    is_plain: bool,
    talk: Box<dyn Write + Send>,
    is_heard: Arc<AtomicBool>,
}

/// A writer that goes on when nobody reads any more (`| head`): what a command finds, and so how
/// it ends, does not depend on who listens.
struct Unheard<W> {
    writer: W,
    is_heard: Arc<AtomicBool>,
}

impl<W> Unheard<W> {
    fn pass<T>(
        &mut self,
        unheard: T,
        pass: impl FnOnce(&mut W) -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        if !self.is_heard.load(Ordering::Relaxed) {
            return Ok(unheard);
        }
        match pass(&mut self.writer) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                self.is_heard.store(false, Ordering::Relaxed);
                Ok(unheard)
            }
            passed => passed,
        }
    }
}

impl<W: Write> Write for Unheard<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pass(bytes.len(), |writer| writer.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.pass((), Write::flush)
    }
}

/// What a command printed that a server ran: shared with its console.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    /// Takes what was printed so far.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        printed.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Console {
    pub(crate) fn new(mode: Mode, quiet: bool, colour: Colour) -> Self {
        let choice = match colour {
            Colour::Always => anstream::ColorChoice::Always,
            Colour::Never => anstream::ColorChoice::Never,
            Colour::Auto => anstream::AutoStream::choice(&std::io::stdout()),
        };
        if colour != Colour::Auto {
            choice.write_global();
        }
        let is_heard = Arc::new(AtomicBool::new(true));
        // Not by a stream that strips: it takes characters of the data for commands to a
        // terminal, too.
        let out = Unheard {
            writer: std::io::stdout(),
            is_heard: Arc::clone(&is_heard),
        };
        Self {
            mode,
            notation: Notation::Json,
            quiet,
            out: Box::new(std::io::BufWriter::new(out)),
            is_plain: choice == anstream::ColorChoice::Never,
            talk: Box::new(anstream::stderr()),
            is_heard,
        }
    }

    /// The same, with documents in another notation.
    pub(crate) fn with_notation(self, notation: Notation) -> Self {
        Self { notation, ..self }
    }

    /// A console whose data is kept for whoever asked over a connection.
    pub(crate) fn printing_to(printed: Printed, mode: Mode) -> Self {
        Self {
            mode,
            notation: Notation::Json,
            quiet: true,
            out: Box::new(printed),
            is_plain: false,
            // Whoever asked hears nothing of it, and nobody waits for whoever reads the log.
            talk: Box::new(std::io::sink()),
            is_heard: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Text, line breaks and all, as data.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CliError> {
        let text = match self.is_plain && self.mode == Mode::Text {
            true => without_colours(text),
            false => Cow::Borrowed(text),
        };
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// One value as JSON on a line, or as a YAML document where that was asked for.
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) -> Result<(), CliError> {
        if self.notation == Notation::Yaml {
            let value = serde_json::to_value(value)?;
            return self.print(&yaml::write(&value));
        }
        serde_json::to_writer(&mut self.out, value)?;
        self.print("\n")
    }

    /// One value in the chosen mode; `show` writes it for people.
    pub(crate) fn value<T: Serialize>(
        &mut self,
        value: &T,
        show: impl FnOnce(&T) -> String,
    ) -> Result<(), CliError> {
        match self.mode {
            Mode::Text => self.print(&show(value)),
            Mode::Json | Mode::Ndjson => self.json(value),
        }
    }

    /// Something to tell people that is not data.
    pub(crate) fn say(&mut self, text: &str) {
        if !self.quiet {
            // Nobody to tell it to is no reason to fail.
            let _ = writeln!(self.talk, "{}", text::line(text).text);
        }
    }

    /// Several lines for people, made safe by whoever made them.
    pub(crate) fn tell(&mut self, text: &str) {
        let _ = write!(self.talk, "{text}");
    }

    /// Shows an error and returns the exit code that goes with it.
    pub(crate) fn fail(&mut self, error: &CliError) -> Exit {
        let problem = error.problem();
        if self.mode != Mode::Text {
            let mut whole = problem;
            for cause in std::mem::take(&mut whole.causes) {
                whole.message = format!("{}: {cause}", whole.message);
            }
            let (exit, code) = (whole.exit, whole.code);
            let mut document = serde_json::json!({ "error": whole });
            if let (CliError::Checkpoint(_), Some(fields)) = (error, document.as_object_mut()) {
                fields.insert("checkpoint_created".to_owned(), false.into());
            }
            if let (CliError::WithReply(failure), Some(fields)) = (error, document.as_object_mut())
            {
                for (name, value) in &failure.reply {
                    fields.insert(name.clone(), value.clone());
                }
                if let Some(error) = fields.get_mut("error").and_then(|it| it.as_object_mut()) {
                    let again = ["C902", "C904", "F507", "F512", "S502"];
                    error.insert("recoverable".to_owned(), again.contains(&code).into());
                }
            }
            if let (CliError::State(StateError::Conflict { conflicts }), Some(fields)) =
                (error, document.as_object_mut())
            {
                let shown: Vec<_> = conflicts.iter().map(commands::conflict_document).collect();
                fields.insert("conflicts".to_owned(), shown.into());
            }
            if let (CliError::Taxonomy(fault), Some(fields)) = (error, document.as_object_mut()) {
                let one = |problem: &safepoint_progress::taxonomy::Problem| {
                    serde_json::json!({
                        "message": problem.message, "pointer": problem.pointer,
                        "line": problem.line, "column": problem.column,
                    })
                };
                let shown: Vec<_> = fault.problems.iter().map(one).collect();
                fields.insert("problems".to_owned(), shown.into());
            }
            let _ = self.json(&document);
            let _ = self.flush();
            return exit;
        }
        // On one line each: a message from elsewhere must not pass for a hint of ours.
        let safe = |text: &str| text::line(text).text;
        let _ = writeln!(self.talk, "{BAD}error:{BAD:#} {}", safe(&problem.message));
        for cause in &problem.causes {
            let _ = writeln!(self.talk, "{STRONG}cause:{STRONG:#} {}", safe(cause));
        }
        if let CliError::State(StateError::Conflict { conflicts }) = error {
            for conflict in conflicts {
                let _ = write!(self.talk, "{}", commands::show_conflict(conflict));
            }
        }
        if let CliError::Taxonomy(fault) = error {
            for (place, shown) in fault.shown.iter().enumerate() {
                // What is wrong first is said already.
                let rest = shown.split_once('\n').map(|(_, rest)| rest);
                let shown = rest.filter(|_| place == 0).unwrap_or(shown);
                let _ = write!(self.talk, "{shown}");
            }
        }
        if let Some(suggestion) = &problem.suggestion {
            let _ = writeln!(self.talk, "{HINT}hint:{HINT:#} {}", safe(suggestion));
        }
        problem.exit
    }

    /// Whether anybody still reads what is printed, as far as is known: whoever follows
    /// something without end need not go on otherwise.
    pub(crate) fn is_heard(&self) -> bool {
        self.is_heard.load(Ordering::Relaxed)
    }

    /// How following something has ended.
    pub(crate) fn followed(&self) -> Exit {
        match self.is_heard() {
            true => Exit::Interrupted,
            false => Exit::Done,
        }
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        Ok(self.out.flush()?)
    }

    /// A bar for long work: on a terminal only, and not when asked to be quiet.
    pub(crate) fn progress(&self, total: u64, template: &str) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// Something to tell people that they should not overlook.
    pub(crate) fn warn(&mut self, text: &str) {
        if self.mode == Mode::Text {
            self.warn_always(text);
        }
    }

    /// The same, beside data too: it is in no field of that.
    pub(crate) fn warn_always(&mut self, text: &str) {
        if !self.quiet {
            let _ = writeln!(
                self.talk,
                "{WARNING}warning:{WARNING:#} {}",
                text::line(text).text
            );
        }
    }

    /// Does long work, and shows on a terminal how far it has come.
    pub(crate) fn watching<T>(&self, progress: &Progress, work: impl FnOnce() -> T) -> T {
        let bar = self.progress(0, "{spinner} {msg}");
        if bar.is_hidden() {
            return work();
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    std::thread::sleep(TICK);
                    let (files, bytes) = progress.now();
                    let rate =
                        (bytes - last) * 1_000 / u64::try_from(TICK.as_millis()).unwrap_or(1);
                    last = bytes;
                    let (read, rate) = (Size(bytes), Size(rate));
                    bar.set_message(format!(
                        "{}, {read} read, {rate}/s",
                        count(files, "file", "files")
                    ));
                }
                bar.finish_and_clear();
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            result
        })
    }

    /// How wide a line of text may be.
    pub(crate) fn width(&self) -> usize {
        console_width().max(40)
    }
}

/// The text without the sequences that our styles are written as, and with everything else.
fn without_colours(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "\u{1b}[";
    if !text.contains(BEGIN) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        plain.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.and_then(|end| after.get(end..)?.strip_prefix('m')) {
            Some(behind) => rest = behind,
            None => {
                plain.push_str(BEGIN);
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The width of the terminal; in a pipe nothing is cut.
fn console_width() -> usize {
    terminal_size::terminal_size_of(std::io::stdout())
        .map_or(usize::MAX, |(width, _)| width.0.into())
}

/// The name of a file as [`safepoint_state::path::display`] writes it, for a terminal: what is
/// escaped already stays as it is, so that it reads as in JSON, and what could still deceive is
/// escaped.
pub(crate) fn name(displayed: &str) -> String {
    let pieces: Vec<String> = displayed
        .split('\\')
        .map(|piece| text::line(piece).text)
        .collect();
    pieces.join("\\")
}

/// `1 entry`, `2 entries`, `1,234 entries`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text} {}", if number == 1 { one } else { many })
}
