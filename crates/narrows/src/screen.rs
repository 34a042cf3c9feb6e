//! Frames that are painted over each other in a terminal, and lines one after the other elsewhere.

use narrows_render::Format;
use std::io::{self, IsTerminal as _, Write as _};

pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Redraws a frame in place (ECMA-48: CPL, EL, ED). Longer lines are cut by the terminal (DECAWM off and on again in one write): a line
/// that wraps would make the frame higher than it is counted.
pub(crate) struct Screen {
    /// Whether frames are redrawn in place.
    pub(crate) moving: bool,
    /// Lines of the frame on the screen.
    lines: usize,
    width: usize,
}

impl Screen {
    pub(crate) fn new(format: Format) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        Self { moving: format == Format::Text && io::stdout().is_terminal() && !dumb, lines: 0, width: 0 }
    }

    /// The bytes that replace the frame on the screen. After a change of the width the whole screen is cleared, because lines were
    /// wrapped.
    fn redraw(&mut self, frame: &str, width: usize) -> String {
        let mut out = match self.lines {
            0 => String::new(),
            _ if self.width != width => "\x1b[H\x1b[2J".to_owned(),
            lines => format!("\x1b[{lines}F"),
        };
        out += "\x1b[?7l";
        for line in frame.lines() {
            out += line;
            out += "\x1b[K\n";
        }
        out += "\x1b[J\x1b[?7h";
        (self.lines, self.width) = (frame.lines().count(), width);
        out
    }

    /// Lines that a frame may have.
    pub(crate) fn rows() -> usize {
        terminal_size::terminal_size().map_or(24, |(_, rows)| usize::from(rows.0)).saturating_sub(1)
    }

    pub(crate) fn paint(&mut self, frame: &str, width: usize) -> io::Result<()> {
        let bytes = self.redraw(frame, width);
        // Not through anstream: cursor movement is needed even without colours.
        let mut out = io::stdout().lock();
        out.write_all(bytes.as_bytes())?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_one_before() {
        let mut screen = Screen { moving: true, lines: 0, width: 0 };
        assert_eq!(screen.redraw("a\nb\n", 80), "\x1b[?7la\x1b[K\nb\x1b[K\n\x1b[J\x1b[?7h");
        assert_eq!(screen.redraw("c\n", 80), "\x1b[2F\x1b[?7lc\x1b[K\n\x1b[J\x1b[?7h", "what was below is wiped");
        assert_eq!(screen.redraw("c\n", 60), "\x1b[H\x1b[2J\x1b[?7lc\x1b[K\n\x1b[J\x1b[?7h", "a new width begins anew");
    }
}
