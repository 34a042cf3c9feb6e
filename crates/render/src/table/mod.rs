//! Tables that are the same in every format: built once, then laid out for a terminal, for Markdown or for a page.

mod html;
mod markdown;
mod text;

pub use html::html;
pub use markdown::markdown;
pub(crate) use text::text;

use crate::style::Tone;
use crate::words::clean;

/// A table with its title.
pub struct Table {
    pub title: String,
    /// Units and other remarks beside the title.
    pub remark: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Its cells need no names on a terminal.
    pub headless: bool,
}

#[derive(Clone)]
pub struct Column {
    pub name: String,
    /// Numbers, which align right.
    pub figures: bool,
    /// Order in which columns are left out of a text that is too wide, highest first; 0 is always shown.
    pub spare: u8,
    /// Never cut: an id that lacks its middle names nothing.
    pub whole: bool,
    /// Stands beneath its row in a text that is too wide.
    pub beneath: bool,
    /// Stands beneath its row in every text, without its name.
    pub below: bool,
    /// In Markdown and on a page only.
    pub on_paper: bool,
}

impl Column {
    pub fn words(name: &str) -> Self {
        Self {
            name: clean(name),
            figures: false,
            spare: 0,
            whole: false,
            beneath: false,
            below: false,
            on_paper: false,
        }
    }

    /// Words that are never cut.
    pub fn id(name: &str) -> Self {
        Self { whole: true, ..Self::words(name) }
    }

    pub fn figures(name: &str) -> Self {
        Self { figures: true, whole: true, ..Self::words(name) }
    }

    pub fn below(self) -> Self {
        Self { below: true, ..self }
    }

    pub fn on_paper(self) -> Self {
        Self { on_paper: true, ..self }
    }

    pub fn beneath(self, beneath: bool) -> Self {
        Self { beneath, ..self }
    }

    pub fn spare(self, spare: u8) -> Self {
        Self { spare, ..self }
    }
}

/// One row and its notes.
pub struct Row {
    pub cells: Vec<Cell>,
    pub notes: Vec<String>,
    /// Drawn behind its cells on a terminal.
    pub bar: Option<Bar>,
    /// The heading of this row and those behind it.
    pub group: Option<String>,
    /// What links of the same page lead to.
    pub id: Option<String>,
}

/// A bar for a width, in columns.
pub struct Bar {
    pub tone: Option<Tone>,
    pub draw: Box<dyn Fn(usize) -> String>,
}

impl Row {
    pub fn new(cells: Vec<Cell>) -> Self {
        Self { cells, notes: Vec::new(), bar: None, group: None, id: None }
    }

    pub fn group(self, title: Option<&str>) -> Self {
        Self { group: title.map(clean), ..self }
    }

    pub fn id(self, id: String) -> Self {
        Self { id: Some(id), ..self }
    }

    pub fn bar(self, tone: Option<Tone>, draw: impl Fn(usize) -> String + 'static) -> Self {
        Self { bar: Some(Bar { tone, draw: Box::new(draw) }), ..self }
    }

    /// With a sentence below the row.
    pub fn note(mut self, note: Option<String>) -> Self {
        self.notes.extend(note.map(|note| clean(&note)).filter(|note| !note.is_empty()));
        self
    }
}

pub struct Cell {
    pub text: String,
    pub tone: Option<Tone>,
    /// The row of the same page that says more.
    pub link: Option<String>,
}

impl Cell {
    pub fn new(text: impl AsRef<str>) -> Self {
        Self { text: clean(text.as_ref()), tone: None, link: None }
    }

    /// A dash for an unknown value.
    pub fn maybe(text: Option<String>) -> Self {
        text.map_or_else(|| Self::new("–"), Self::new)
    }

    pub fn tone(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }

    pub fn link(self, id: String) -> Self {
        Self { link: Some(id), ..self }
    }

    pub fn tone_if(self, condition: bool, tone: Tone) -> Self {
        if condition { self.tone(tone) } else { self }
    }
}

impl Table {
    pub fn new(title: impl Into<String>, remark: impl Into<String>, columns: &[Column]) -> Self {
        let (title, remark) = (clean(&title.into()), clean(&remark.into()));
        Self { title, remark, columns: columns.to_vec(), rows: Vec::new(), headless: false }
    }

    pub fn headless(self) -> Self {
        Self { headless: true, ..self }
    }

    /// Whether a column has only dashes and blanks.
    fn is_empty(&self, column: usize) -> bool {
        self.rows.iter().filter_map(|row| row.cells.get(column)).all(|cell| matches!(cell.text.as_str(), "" | "–"))
    }

    /// Without the empty columns, except those of spare 0.
    pub fn trimmed(mut self) -> Self {
        let kept: Vec<bool> =
            (0..self.columns.len()).map(|at| self.columns[at].spare == 0 || !self.is_empty(at)).collect();
        for row in &mut self.rows {
            let mut kept = kept.iter();
            row.cells.retain(|_| kept.next().is_none_or(|kept| *kept));
        }
        let mut kept = kept.iter();
        self.columns.retain(|_| kept.next().is_none_or(|kept| *kept));
        self
    }
}
