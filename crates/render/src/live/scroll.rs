//! A text that is longer than its area.

use super::{Key, lines};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget as _;

/// Which part of a text is shown.
#[derive(Debug, Clone, Default)]
pub struct Scroll {
    top: usize,
    /// Lines that fit, and lines that there are, when it was drawn.
    rows: usize,
    all: usize,
    /// Whether it stays at the end.
    follows: bool,
}

impl Scroll {
    /// Stays at the end of a text that grows.
    pub const fn at_end() -> Self {
        Self { top: 0, rows: 0, all: 0, follows: true }
    }

    /// Moves; whether the key moves.
    pub fn key(&mut self, key: Key) -> bool {
        let last = self.all.saturating_sub(self.rows);
        let page = self.rows.saturating_sub(1).max(1);
        self.top = match key {
            Key::Up => self.top.saturating_sub(1),
            Key::Down => self.top + 1,
            Key::PageUp => self.top.saturating_sub(page),
            Key::PageDown => self.top + page,
            Key::Home => 0,
            Key::End => last,
            _ => return false,
        }
        .min(last);
        self.follows = self.follows && self.top == last || key == Key::End;
        true
    }

    /// Draws the part of the text.
    pub fn draw(&mut self, text: &str, area: Rect, buffer: &mut Buffer) {
        let lines = lines(text, area.width);
        (self.rows, self.all) = (area.height.into(), lines.len());
        let last = self.all.saturating_sub(self.rows);
        self.top = if self.follows { last } else { self.top.min(last) };
        for (line, row) in lines.iter().skip(self.top).zip(area.rows()) {
            line.render(row, buffer);
        }
    }
}
