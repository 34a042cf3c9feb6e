//! The page that the sections write on: lines, headings, indented paragraphs.

use crate::style::{Style, Tone};
use crate::words::{columns, wrap};

/// Fewer columns break most words of a sentence: the longest names of causes and terms have about twenty letters.
const BESIDE: usize = 20;

/// A text that grows line by line.
pub struct Page {
    text: String,
    style: Style,
}

impl Page {
    pub fn new(style: Style) -> Self {
        Self { text: String::new(), style }
    }

    pub const fn style(&self) -> Style {
        self.style
    }

    pub fn width(&self) -> usize {
        self.style.columns()
    }

    pub fn room(&self) -> usize {
        self.style.room()
    }

    /// Cells side by side; where there is no room for their columns, one behind the other, wrapped.
    pub fn row(&mut self, line: &str, tone: Option<Tone>) {
        let line = line.trim_end();
        if columns(line) > self.room() {
            let indent = " ".repeat(line.len() - line.trim_start().len());
            return self.labelled(&indent, line.trim_start(), tone);
        }
        let line = tone.map_or_else(|| line.to_owned(), |tone| self.style.paint(tone, line));
        self.line(&line);
    }

    /// A line as it is; blanks at its end are dropped.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    pub fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A heading after an empty line, with a remark beside it, or below where it does not fit.
    pub fn heading(&mut self, title: &str, remark: &str) {
        self.blank();
        if columns(title) > self.width() {
            self.labelled("", title, Some(Tone::Strong));
            if !remark.is_empty() {
                self.labelled("  ", remark, Some(Tone::Faint));
            }
            return;
        }
        let painted = self.style.paint(Tone::Strong, title);
        if columns(title) + 2 + columns(remark) <= self.width() {
            self.line(&format!("{painted}  {}", self.style.paint(Tone::Faint, remark)));
        } else {
            self.line(&painted);
            self.labelled("  ", remark, Some(Tone::Faint));
        }
    }

    /// A lead, and a text beside it that wraps with a hanging indent, or below it where there is hardly room beside.
    pub fn labelled(&mut self, lead: &str, text: &str, tone: Option<Tone>) {
        let indent = columns(lead);
        let room = self.width().saturating_sub(indent);
        if room < BESIDE && columns(text) > room && !lead.trim().is_empty() {
            self.line(lead);
            return self.labelled(&" ".repeat(columns(lead) - columns(lead.trim_start()) + 2), text, tone);
        }
        for (at, line) in wrap(text, self.width().saturating_sub(indent)).iter().enumerate() {
            let line = tone.map_or_else(|| line.clone(), |tone| self.style.paint(tone, line));
            if at == 0 {
                self.line(&format!("{lead}{line}"));
            } else {
                self.line(&format!("{}{line}", " ".repeat(indent)));
            }
        }
    }

    /// A painted word and a text beside it that wraps to the left edge.
    pub fn painted_label(&mut self, word: &str, tone: Tone, text: &str) {
        let lines = wrap(&format!("{word} {text}"), self.width() - 1);
        for (at, line) in lines.iter().enumerate() {
            // `wrap` joins with single blanks; the word of the verdict is followed by two.
            match line.strip_prefix(word).filter(|_| at == 0) {
                Some(rest) => self.line(&format!("{} {rest}", self.style.paint(tone, word))),
                None => self.line(line),
            }
        }
    }

    pub fn finish(self) -> String {
        self.text.trim_end().to_owned() + "\n"
    }
}
