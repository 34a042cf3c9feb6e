//! A report as content: order, words, figures and emphasis. The layout is defined once per format, in the file of the
//! format: a terminal, Markdown, a page.

mod html;
mod markdown;
pub mod page;
mod text;

use crate::style::Tone;
use crate::table::Table;
use crate::words::clean;

/// A report.
pub struct Doc {
    /// The heading of Markdown and the name of a page; a terminal begins with the first block.
    name: String,
    blocks: Vec<Block>,
}

/// A part of a report.
pub(crate) enum Block {
    /// A painted word and what it is of; the name of the report says it elsewhere.
    Verdict {
        word: String,
        tone: Tone,
        says: String,
    },
    /// A sentence at the edge.
    Plain(String),
    /// A sentence of the section that it stands in.
    Paragraph(String),
    /// Sentences beside what they are about.
    Pairs(Vec<Pair>),
    /// What to type, and where: never wrapped, so that it can be copied.
    Commands {
        at: String,
        run: Vec<String>,
    },
    /// The figures that a terminal has in a drawing.
    OnPaper(Table),
    /// What a reader opens from another table; of a page only.
    OnPage(Table),
    /// A report within this one.
    Part(Doc),
    /// A sentence behind the word that it is about.
    Lead {
        word: String,
        says: String,
        tone: Tone,
        below: Option<String>,
    },
    /// What the reader came for.
    Headline(String),
    Heading {
        title: String,
        remark: String,
        /// The marks of the drawing below it; of a terminal only.
        marks: String,
    },
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
pub struct Sentence {
    says: String,
    tone: Option<Tone>,
    /// One of a list.
    listed: bool,
}

/// What a sentence is about, its figure, and the sentence. Without the first it goes on with what the pair before it is about.
pub struct Pair {
    lead: String,
    figure: Option<String>,
    says: String,
    tone: Option<Tone>,
}

impl Pair {
    pub fn new(lead: &str, says: &str) -> Self {
        Self { lead: clean(lead), figure: None, says: clean(says), tone: None }
    }

    pub fn figure(self, figure: &str) -> Self {
        Self { figure: Some(clean(figure)), ..self }
    }

    pub fn tone(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }
}

impl Sentence {
    pub fn new(says: &str) -> Self {
        Self { says: clean(says), tone: None, listed: false }
    }

    /// One of a list.
    pub fn listed(says: &str) -> Self {
        Self { listed: true, ..Self::new(says) }
    }

    pub fn tone(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }
}

impl Doc {
    pub fn new(name: &str) -> Self {
        Self { name: clean(name), blocks: Vec::new() }
    }

    /// Within another report.
    pub fn named(self, name: &str) -> Self {
        Self { name: clean(name), ..self }
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    pub fn lead(self, word: &str, says: &str, below: Option<&str>) -> Self {
        self.with(Block::Lead { word: clean(word), says: clean(says), tone: Tone::Strong, below: below.map(clean) })
    }

    /// Of one of several, which stand below each other.
    pub fn of(self, word: &str, says: &str, tone: Tone) -> Self {
        self.with(Block::Lead { word: clean(word), says: clean(says), tone, below: None })
    }

    /// Its name, which Markdown and a page have already.
    pub fn on_terminal(self, name: &str) -> Self {
        self.with(Block::Verdict { word: clean(name), tone: Tone::Strong, says: String::new() })
    }

    pub fn headline(self, says: &str) -> Self {
        self.with(Block::Headline(clean(says)))
    }

    pub fn verdict(self, word: &str, tone: Tone, says: &str) -> Self {
        self.with(Block::Verdict { word: word.to_owned(), tone, says: clean(says) })
    }

    pub fn plain(self, says: &str) -> Self {
        self.with(Block::Plain(clean(says)))
    }

    pub fn paragraph(self, says: &str) -> Self {
        self.with(Block::Paragraph(clean(says)))
    }

    pub fn pairs(self, all: impl IntoIterator<Item = Pair>) -> Self {
        let all: Vec<_> = all.into_iter().collect();
        if all.is_empty() { self } else { self.with(Block::Pairs(all)) }
    }

    pub fn commands(self, at: &str, run: impl IntoIterator<Item = String>) -> Self {
        self.with(Block::Commands { at: clean(at), run: run.into_iter().map(|it| clean(&it)).collect() })
    }

    pub fn on_paper(self, table: Table) -> Self {
        self.with(Block::OnPaper(table))
    }

    pub fn on_page(self, table: Table) -> Self {
        self.with(Block::OnPage(table))
    }

    pub fn part(self, doc: Self) -> Self {
        self.with(Block::Part(doc))
    }

    pub fn heading(self, title: &str) -> Self {
        self.section(title, "")
    }

    /// A heading with a remark beside it.
    pub fn section(self, title: &str, remark: &str) -> Self {
        self.drawn_section(title, remark, "")
    }

    /// The same above a drawing, with its marks in words.
    pub(crate) fn drawn_section(self, title: &str, remark: &str, marks: &str) -> Self {
        self.with(Block::Heading { title: clean(title), remark: clean(remark), marks: clean(marks) })
    }

    /// What another step adds.
    pub fn then(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }

    pub fn sentences(self, all: impl IntoIterator<Item = Sentence>) -> Self {
        let all: Vec<_> = all.into_iter().collect();
        if all.is_empty() { self } else { self.with(Block::Sentences(all)) }
    }

    pub fn table(self, table: Table) -> Self {
        self.with(Block::Table(table))
    }

    pub fn tables(self, all: impl IntoIterator<Item = Table>) -> Self {
        all.into_iter().fold(self, Self::table)
    }

    pub fn drawing(self, draw: impl Fn(usize) -> Vec<String> + 'static) -> Self {
        self.with(Block::Drawing(Box::new(draw)))
    }

    pub fn picture(self, svg: Option<String>) -> Self {
        svg.into_iter().fold(self, |doc, svg| doc.with(Block::Picture(svg)))
    }

    pub fn warnings(self, all: impl IntoIterator<Item = String>) -> Self {
        self.with(Block::Warnings(all.into_iter().map(|it| clean(&it)).collect()))
    }

    pub fn method(self, says: &str) -> Self {
        self.with(Block::Method(clean(says)))
    }
}

/// As the first words of a heading or a line.
pub(crate) fn capitalised(words: &str) -> String {
    let mut all = words.chars();
    all.next().map_or_else(String::new, |first| first.to_uppercase().chain(all).collect())
}
