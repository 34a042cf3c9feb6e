//! A report as its reader is told it: order, words, figures and emphasis. How it looks is decided once for each format, in the file of the
//! format: a terminal, Markdown, a page.

mod html;
mod markdown;
mod text;

use crate::style::Tone;
use crate::table::Table;
use crate::words::clean;

/// A report.
pub(crate) struct Doc {
    /// The heading of Markdown and the name of a page; a terminal begins with the first block.
    name: String,
    blocks: Vec<Block>,
}

/// A part of a report.
pub(crate) enum Block {
    /// A sentence behind the word that it is about.
    Lead {
        word: String,
        says: String,
        tone: Tone,
        below: Option<String>,
    },
    /// What the reader came for.
    Headline(String),
    Heading(String),
    Sentences(Vec<Sentence>),
    Table(Table),
    /// Lines of characters for a width; Markdown and a page have the figures in a table, or a picture.
    Drawing(Box<dyn Fn(usize) -> Vec<String>>),
    /// SVG; of a page only.
    Picture(String),
    /// What a reader must know before he uses the figures.
    Warnings(Vec<String>),
    /// How the figures were got.
    Method(String),
}

/// A sentence with its tone.
pub(crate) struct Sentence {
    says: String,
    tone: Option<Tone>,
}

impl Sentence {
    pub(crate) fn new(says: &str) -> Self {
        Self { says: clean(says), tone: None }
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }
}

impl Doc {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: clean(name), blocks: Vec::new() }
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    pub(crate) fn lead(self, word: &str, says: &str, below: Option<&str>) -> Self {
        self.with(Block::Lead { word: clean(word), says: clean(says), tone: Tone::Strong, below: below.map(clean) })
    }

    /// Of one of several, which stand below each other.
    pub(crate) fn of(self, word: &str, says: &str, tone: Tone) -> Self {
        self.with(Block::Lead { word: clean(word), says: clean(says), tone, below: None })
    }

    pub(crate) fn headline(self, says: &str) -> Self {
        self.with(Block::Headline(clean(says)))
    }

    pub(crate) fn heading(self, title: &str) -> Self {
        self.with(Block::Heading(clean(title)))
    }

    pub(crate) fn sentences(self, all: impl IntoIterator<Item = Sentence>) -> Self {
        self.with(Block::Sentences(all.into_iter().collect()))
    }

    pub(crate) fn table(self, table: Table) -> Self {
        self.with(Block::Table(table))
    }

    pub(crate) fn tables(self, all: impl IntoIterator<Item = Table>) -> Self {
        all.into_iter().fold(self, Self::table)
    }

    pub(crate) fn drawing(self, draw: impl Fn(usize) -> Vec<String> + 'static) -> Self {
        self.with(Block::Drawing(Box::new(draw)))
    }

    pub(crate) fn picture(self, svg: Option<String>) -> Self {
        svg.into_iter().fold(self, |doc, svg| doc.with(Block::Picture(svg)))
    }

    pub(crate) fn warnings(self, all: impl IntoIterator<Item = String>) -> Self {
        self.with(Block::Warnings(all.into_iter().map(|it| clean(&it)).collect()))
    }

    pub(crate) fn method(self, says: &str) -> Self {
        self.with(Block::Method(clean(says)))
    }
}
