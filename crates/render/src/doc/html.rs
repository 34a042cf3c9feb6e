//! A report as one page.

use super::{Block, Doc};
use crate::{page, table};
use maud::{Markup, html};

impl Doc {
    pub(crate) fn html(&self) -> String {
        page::document(&self.name, None, &html! { @for block in &self.blocks { (written(block)) } })
    }
}

fn written(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Lead { word, says, below, .. } => {
                p { strong { (word) } ": " (says) @if let Some(below) = below { br; (below) } }
            }
            Block::Headline(says) => p { strong { (says) } },
            Block::Heading(title) => h2 { (title) },
            Block::Sentences(all) => @if !all.is_empty() { ul { @for it in all { li { (it.says) } } } },
            Block::Table(table) => (table::html(table)),
            Block::Drawing(_) => {},
            Block::Picture(svg) => (page::figure(Some(svg.clone()))),
            Block::Warnings(all) => @if !all.is_empty() { h2 { "Warnings" } ul { @for it in all { li { (it) } } } },
            Block::Method(says) => p { small { (says) } },
        }
    }
}
