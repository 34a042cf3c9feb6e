//! A report on a terminal.

use super::page::Page;
use super::{Block, Doc, Pair};
use crate::style::{Style, Tone};
use crate::table;
use crate::words::{columns, left, right};

impl Doc {
    pub fn text(&self, style: Style) -> String {
        let mut page = Page::new(style);
        self.write(&mut page);
        page.finish()
    }

    fn write(&self, page: &mut Page) {
        let words = self.blocks.iter().map(|it| if let Block::Lead { word, .. } = it { columns(word) } else { 0 });
        let widest = words.max().unwrap_or(0);
        let mut before: Option<&Block> = None;
        for block in &self.blocks {
            match block {
                Block::Verdict { word, tone, says } => page.painted_label(word, *tone, says),
                Block::Plain(says) => page.labelled("", says, None),
                Block::Paragraph(says) => page.labelled("  ", says, None),
                Block::Pairs(all) => {
                    if !within_section(before) {
                        page.blank();
                    }
                    pairs(page, all);
                }
                Block::Commands { at, run } => {
                    if !at.is_empty() {
                        page.labelled("  ", &format!("{at}:"), None);
                    }
                    for command in run {
                        let run = page.style().paint(Tone::Strong, command);
                        page.line(&format!("    {run}"));
                    }
                }
                Block::Lead { word, says, tone, below } => {
                    page.labelled(&format!("{}  ", left(word, widest)), says, Some(*tone));
                    if let Some(below) = below {
                        page.labelled(&" ".repeat(widest + 2), below, None);
                    }
                }
                Block::Headline(says) => page.labelled("", says, Some(Tone::Strong)),
                Block::Heading { title, remark, marks } => {
                    let words: Vec<&str> =
                        [remark, marks].into_iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
                    let remark = if words.is_empty() { String::new() } else { format!("({})", words.join("; ")) };
                    page.heading(title, &remark);
                }
                Block::Sentences(all) => {
                    for it in all {
                        page.labelled(if it.listed { "  - " } else { "  " }, &it.says, it.tone);
                    }
                }
                Block::Table(table) => {
                    // A table without a title stands below what is before it in its section.
                    if !(table.title.is_empty() && within_section(before)) {
                        page.blank();
                    }
                    table::text(page, table);
                }
                Block::Drawing(draw) => {
                    if !within_section(before) {
                        page.blank();
                    }
                    draw(page.width().saturating_sub(2)).iter().for_each(|line| page.line(&format!("  {line}")));
                }
                Block::OnPaper(_) | Block::OnPage(_) | Block::Picture(_) => {}
                Block::Part(doc) => {
                    page.blank();
                    page.line(&page.style().paint(Tone::Strong, &format!("==== {} ====", doc.name)));
                    page.blank();
                    doc.write(page);
                }
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
            before = Some(block);
        }
    }
}

/// Whether what follows belongs to the section of this block.
const fn within_section(before: Option<&Block>) -> bool {
    matches!(before, Some(Block::Heading { .. } | Block::Sentences(_) | Block::Paragraph(_) | Block::Pairs(_)))
}

fn pairs(page: &mut Page, all: &[Pair]) {
    let widest = |of: fn(&Pair) -> &str| all.iter().map(|it| columns(of(it))).max().unwrap_or(0);
    let wide = widest(|it| &it.lead).min(page.width() / 2 - 4);
    let figure = widest(|it| it.figure.as_deref().unwrap_or_default());
    for it in all {
        // A long name has lines of its own.
        let long = columns(&it.lead) > wide;
        if long {
            page.labelled("  ", &it.lead, None);
        }
        let mut lead = format!("  {}  ", left(if long { "" } else { &it.lead }, wide));
        if let Some(words) = &it.figure {
            lead += &format!("{}  ", right(words, figure));
        }
        page.labelled(&lead, &it.says, it.tone);
    }
}
