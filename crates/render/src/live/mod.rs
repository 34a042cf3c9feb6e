//! Live views of a terminal: each draws its model into a buffer of cells and takes keys. Pure: the terminal is the caller's.

mod ansi;
pub mod campaign;
pub mod connections;
pub mod measure;
mod scroll;
pub mod trace;
pub mod watch;

pub use scroll::Scroll;

use ansi::lines;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget as _};

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A letter, a digit or a sign.
    Char(char),
    Enter,
    Escape,
    /// Deletes the last letter.
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
}

/// What a live view shows.
pub trait View: Clone + Send + 'static {
    fn draw(&mut self, area: Rect, buffer: &mut Buffer);

    /// Handles a key; returns whether it did.
    fn key(&mut self, key: Key) -> bool;

    /// Its own keys, each with what it does.
    fn keys(&self) -> &'static [[&'static str; 2]] {
        &[["↑ ↓", "scroll"], ["PgUp PgDn", "page"]]
    }

    /// What the columns and curves are.
    fn legend(&self) -> &'static [&'static str];

    /// Whether letters are text now.
    fn types(&self) -> bool {
        false
    }
}

/// What the caller does after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Nothing,
    /// Draws the screen anew.
    Draw,
    Quit,
}

/// A view with its keys at the bottom. It can be paused: then what was shown stays, while the data go on.
#[derive(Debug)]
pub struct Screen<V> {
    view: V,
    paused: Option<V>,
    help: bool,
    /// What the bottom line says of the state.
    state: &'static str,
}

const COMMON: [[&str; 2]; 3] = [["q", "quit"], ["?", "help"], ["p", "pause"]];

impl<V: View> Screen<V> {
    /// A screen with this view.
    pub const fn new(view: V) -> Self {
        Self { view, paused: None, help: false, state: "" }
    }

    /// The view, for new data.
    pub const fn view(&mut self) -> &mut V {
        &mut self.view
    }

    /// Says in the bottom line how it stands: `stopping`, `done`.
    pub const fn set_state(&mut self, state: &'static str) {
        self.state = state;
    }

    pub fn key(&mut self, key: Key) -> After {
        let paused = self.paused.is_some();
        let view = self.paused.as_mut().unwrap_or(&mut self.view);
        match key {
            Key::Char(_) if view.types() => return if view.key(key) { After::Draw } else { After::Nothing },
            Key::Char('q') => return After::Quit,
            Key::Char('?') => self.help = !self.help,
            Key::Escape if self.help => self.help = false,
            Key::Char('p') if paused => self.paused = None,
            Key::Char('p') => self.paused = Some(self.view.clone()),
            _ => return if view.key(key) { After::Draw } else { After::Nothing },
        }
        After::Draw
    }

    /// Draws all of it.
    pub fn draw(&mut self, buffer: &mut Buffer) {
        let area = buffer.area;
        let body = Rect { height: area.height.saturating_sub(1), ..area };
        let paused = self.paused.is_some();
        let view = self.paused.as_mut().unwrap_or(&mut self.view);
        view.draw(body, buffer);
        let keys: Vec<[&str; 2]> = COMMON.iter().chain(view.keys()).copied().collect();
        if self.help {
            help(&keys, view.legend(), body, buffer);
        }
        let foot = Rect { y: body.bottom(), height: area.height.min(1), ..area };
        let state = if paused { "paused" } else { self.state };
        footer(&keys, state, foot, buffer);
    }
}

/// The bottom line: how it stands, and as many keys as fit.
fn footer(keys: &[[&str; 2]], state: &str, area: Rect, buffer: &mut Buffer) {
    let mut spans = Vec::new();
    if !state.is_empty() {
        spans.push(Span::styled(format!(" {state} "), Style::new().add_modifier(Modifier::REVERSED)));
    }
    for [key, what] in keys {
        let mut next = vec![Span::styled(format!(" {key}"), Modifier::BOLD), Span::raw(format!(" {what} "))];
        if Line::from(spans.clone()).width() + next.iter().map(Span::width).sum::<usize>() > area.width.into() {
            break;
        }
        spans.append(&mut next);
    }
    Line::from(spans).render(area, buffer);
}

fn help(keys: &[[&str; 2]], legend: &[&str], area: Rect, buffer: &mut Buffer) {
    let mut text: Vec<Line<'_>> = keys.iter().map(|[key, what]| Line::raw(format!("{key:>10}  {what}"))).collect();
    text.push(Line::default());
    let wide = usize::from(area.width.saturating_sub(4)).min(76);
    text.extend(legend.iter().flat_map(|line| crate::words::wrap(line, wide)).map(Line::raw));
    let wide = text.iter().map(Line::width).max().unwrap_or(0) + 4;
    let [width, height] = [wide.min(area.width.into()) as u16, (text.len() + 2).min(area.height.into()) as u16];
    let x = area.x + (area.width - width) / 2;
    let y = area.y + (area.height - height) / 2;
    let area = Rect { x, y, width, height };
    Clear.render(area, buffer);
    Paragraph::new(text).block(Block::bordered().title(" Help ")).render(area, buffer);
}
