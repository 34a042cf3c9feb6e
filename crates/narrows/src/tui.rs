//! The live view of a command in the terminal (`--tui`): a thread that draws it and takes the keys, until the command or the user ends it.

use crate::failure::Failure;
use crate::flags::TuiArg;
use crate::session::INTERRUPTED;
use narrows_render::Format;
use narrows_render::live::{After, Key, Screen, View};
use narrows_runner::Stop;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the thread checks for new data: limits redraws, also on a slow terminal over ssh.
const FRAME: Duration = Duration::from_millis(100);

/// What both threads know.
struct Shared<V> {
    screen: Mutex<Screen<V>>,
    /// Whether there is something new to draw.
    changed: AtomicBool,
    /// The command is over: the view stays until the user leaves it.
    done: AtomicBool,
    /// The view ends.
    close: AtomicBool,
}

impl<V> Shared<V> {
    fn screen(&self) -> MutexGuard<'_, Screen<V>> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A live view. The terminal is as it was before when this is dropped.
pub(crate) struct Tui<V> {
    shared: Arc<Shared<V>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl TuiArg {
    /// Whether there is a terminal for it, where it was asked for.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.tui && !is_possible() {
            let why = if io::stdout().is_terminal() { "TERM names none" } else { "standard output is none" };
            return Err(Failure::usage(format!("cannot show a live view: no terminal, {why}; drop --tui")));
        }
        Ok(())
    }

    /// Opens the view, where it was asked for. `stop` is raised when the user quits.
    pub(crate) fn open<V: View>(&self, view: V, stop: &Stop) -> Result<Option<Tui<V>>, Failure> {
        self.check()?;
        self.tui.then(|| Tui::open(view, stop)).transpose()
    }

    /// Opens the view of a command that is live on a terminal anyway; `None` where lines are written.
    pub(crate) fn live<V: View>(
        &self,
        format: Format,
        view: impl FnOnce() -> V,
        stop: &Stop,
    ) -> Result<Option<Tui<V>>, Failure> {
        (self.tui || format == Format::Text && is_possible()).then(|| Tui::open(view(), stop)).transpose()
    }
}

/// Whether the standard output can show a live view.
fn is_possible() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stdout().is_terminal() && !dumb
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::run(format!("cannot show a live view: {error}; drop --tui"))
}

impl<V: View> Tui<V> {
    /// Takes the terminal. `stop` is raised when the user quits.
    pub(crate) fn open(view: V, stop: &Stop) -> Result<Self, Failure> {
        let terminal = ratatui::try_init().map_err(failure)?;
        let restore = Restore;
        let shared = Arc::new(Shared {
            screen: Mutex::new(Screen::new(view)),
            changed: AtomicBool::new(true),
            done: AtomicBool::new(false),
            close: AtomicBool::new(false),
        });
        let (theirs, stop) = (shared.clone(), stop.clone());
        let draw = move || {
            let _restore = restore;
            let result = Drawing { shared: &theirs, stop: &stop, terminal }.run();
            // Without its view the command would go on unseen.
            stop.stop();
            result
        };
        let thread = std::thread::Builder::new().name("narrows-tui".to_owned()).spawn(draw).map_err(failure)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Changes what is shown.
    pub(crate) fn update(&self, change: impl FnOnce(&mut V)) {
        change(self.shared.screen().view());
        self.shared.changed.store(true, Ordering::Relaxed);
    }

    /// The command is over: waits until the user quits, unless that has been.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.shared.screen().set_state("done");
        self.shared.changed.store(true, Ordering::Relaxed);
        self.shared.done.store(true, Ordering::Relaxed);
        self.join()
    }

    /// Ends the view at once, and gives it back.
    pub(crate) fn close(mut self) -> Result<V, Failure> {
        self.shared.close.store(true, Ordering::Relaxed);
        self.join()?;
        Ok(self.shared.screen().view().clone())
    }

    fn join(&mut self) -> Result<(), Failure> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result.map_err(failure),
            Some(Err(_)) => Err(failure("the drawing failed")),
            None => Ok(()),
        }
    }
}

impl<V> Drop for Tui<V> {
    fn drop(&mut self) {
        self.shared.close.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Gives the terminal back when it is dropped.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

/// The thread that draws.
struct Drawing<'a, V> {
    shared: &'a Shared<V>,
    stop: &'a Stop,
    terminal: DefaultTerminal,
}

impl<V: View> Drawing<'_, V> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            if self.shared.changed.swap(false, Ordering::Relaxed) {
                self.terminal.draw(|frame| self.shared.screen().draw(frame.buffer_mut()))?;
            }
            if self.shared.close.load(Ordering::Relaxed)
                || self.shared.done.load(Ordering::Relaxed) && self.stop.is_set()
            {
                return Ok(());
            }
            let mut wait = FRAME;
            while event::poll(wait)? {
                self.take(&event::read()?);
                wait = Duration::ZERO;
            }
        }
    }

    fn take(&self, event: &Event) {
        let after = match event {
            Event::Resize(..) => After::Draw,
            Event::Key(key) if key.kind != KeyEventKind::Release => match key_of(*key) {
                Pressed::Key(key) => self.shared.screen().key(key),
                Pressed::Interrupt => After::Quit,
                Pressed::Other => After::Nothing,
            },
            _ => After::Nothing,
        };
        if after == After::Quit {
            if self.stop.is_set() {
                // Asked twice, as with Ctrl-C: without tidying up.
                drop(Restore);
                std::process::exit(INTERRUPTED.into());
            }
            self.stop.stop();
            self.shared.screen().set_state("stopping");
        }
        if after != After::Nothing {
            self.shared.changed.store(true, Ordering::Relaxed);
        }
    }
}

enum Pressed {
    Key(Key),
    /// Ctrl-C, which sends no signal while keys are read one by one.
    Interrupt,
    Other,
}

fn key_of(key: KeyEvent) -> Pressed {
    Pressed::Key(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Pressed::Interrupt,
        KeyCode::Char(letter) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
            Key::Char(letter)
        }
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return Pressed::Other,
    })
}
