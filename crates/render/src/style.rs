//! The style of a text. The caller knows the terminal; this crate does not.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours. Colour never carries information on its own.
    pub color: bool,
    /// Columns, clamped to 40 to 160.
    pub width: usize,
    /// Show everything instead of one screen.
    pub full: bool,
    /// Tables keep all columns, whatever the width: for a pipe or a file.
    pub wide: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, width: 100, full: false, wide: false }
    }
}

/// The tone of a piece of text, shown by its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A heading or the word of a verdict.
    Strong,
    Faint,
    Good,
    Bad,
    Mark,
}

impl Style {
    /// The width in use.
    pub fn columns(&self) -> usize {
        self.width.clamp(40, 160)
    }

    /// Columns for cells that stand side by side: no limit in a pipe or a file.
    pub fn room(&self) -> usize {
        if self.wide { usize::MAX / 2 } else { self.columns() }
    }

    /// The text in its tone (SGR sequences of ECMA-48, the eight basic colours), or as it is.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Good => "1;32",
            Tone::Bad => "1;31",
            Tone::Mark => "33",
        };
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_only_when_asked() {
        assert_eq!(Style::default().paint(Tone::Bad, "x"), "x");
        assert_eq!(Style { color: true, ..Style::default() }.paint(Tone::Bad, "x"), "\x1b[1;31mx\x1b[0m");
        assert_eq!(Style { width: 20, ..Style::default() }.columns(), 40);
    }
}
