//! A report on a terminal.

use super::{Block, Doc};
use crate::style::{Style, Tone};
use crate::table;
use crate::text::page::Page;
use crate::words::{columns, left};

impl Doc {
    pub(crate) fn text(&self, style: Style) -> String {
        let mut page = Page::new(style);
        let words = self.blocks.iter().map(|it| if let Block::Lead { word, .. } = it { columns(word) } else { 0 });
        let widest = words.max().unwrap_or(0);
        for (at, block) in self.blocks.iter().enumerate() {
            match block {
                Block::Lead { word, says, tone, below } => {
                    page.labelled(&format!("{}  ", left(word, widest)), says, Some(*tone));
                    if let Some(below) = below {
                        page.labelled(&" ".repeat(widest + 2), below, None);
                    }
                }
                Block::Headline(says) => page.labelled("", says, Some(Tone::Strong)),
                Block::Heading(title) => page.heading(title, ""),
                Block::Sentences(all) => all.iter().for_each(|it| page.labelled("  ", &it.says, it.tone)),
                Block::Table(table) => {
                    // A table without a title stands below the heading before it.
                    if !matches!(self.blocks.get(at.wrapping_sub(1)), Some(Block::Heading(_))) {
                        page.blank();
                    }
                    table::text(&mut page, table);
                }
                Block::Drawing(draw) => {
                    page.blank();
                    draw(page.width().saturating_sub(2)).iter().for_each(|line| page.line(&format!("  {line}")));
                }
                Block::Picture(_) => {}
                Block::Warnings(all) if all.is_empty() => {}
                Block::Warnings(all) => {
                    page.blank();
                    all.iter().for_each(|it| page.labelled("! ", it, Some(Tone::Mark)));
                }
                Block::Method(says) => {
                    page.blank();
                    page.labelled("", says, Some(Tone::Faint));
                }
            }
        }
        page.finish()
    }
}
