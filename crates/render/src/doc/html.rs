//! A report as one page.

use super::{Block, Doc, Pair, capitalised};
use crate::style::Tone;
use crate::{page, table};
use maud::{Markup, html};

impl Doc {
    pub fn html(&self) -> String {
        page::document(&self.name, None, &html! { @for block in &self.blocks { (written(block)) } })
    }
}

fn written(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Drawing(_) => {},
            Block::Verdict { word, tone, says } => @if !says.is_empty() { (verdict(word, *tone, says)) },
            Block::Lead { word, says, below, .. } => {
                p { strong { (word) } ": " (says) @if let Some(below) = below { br; (below) } }
            }
            Block::Headline(says) => p { strong { (says) } },
            Block::Plain(says) | Block::Paragraph(says) => p { (says) },
            Block::Heading { title, remark, .. } => {
                h2 { (capitalised(title)) }
                @if !remark.is_empty() { p { small { (capitalised(remark)) "." } } }
            }
            Block::Sentences(all) => @if !all.is_empty() { ul { @for it in all { li { (it.says) } } } },
            Block::Pairs(all) => (pairs(all)),
            Block::Commands { at, run } => {
                @if !at.is_empty() { p { (capitalised(at)) ":" } }
                pre tabindex="0" { code { (run.join("\n")) } }
            }
            Block::Table(table) | Block::OnPaper(table) | Block::OnPage(table) => (table::html(table)),
            Block::Picture(svg) => (page::figure(Some(svg.clone()))),
            Block::Part(doc) => section { h2 { (doc.name) } @for block in &doc.blocks { (written(block)) } },
            Block::Warnings(all) => @if !all.is_empty() { h2 { "Warnings" } ul { @for it in all { li { (it) } } } },
            Block::Method(says) => p { small { (says) } },
        }
    }
}

fn verdict(word: &str, tone: Tone, words: &str) -> Markup {
    let class = match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        _ => "mark",
    };
    page::says(class, word, &[words.to_owned()])
}

/// What goes on with a pair stands below it.
fn pairs(all: &[Pair]) -> Markup {
    html! {
        ul {
            @for group in all.chunk_by(|_, next| next.lead.is_empty()) {
                li {
                    @for (at, it) in group.iter().enumerate() {
                        @if at == 0 && !it.lead.is_empty() { em { (it.lead) } ": " }
                        @if at > 0 { br; }
                        @if let Some(figure) = &it.figure { strong { (figure) } " " }
                        (it.says)
                    }
                }
            }
        }
    }
}
