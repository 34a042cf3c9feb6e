//! A report for a ticket or a wiki: GitHub-flavoured Markdown.

use super::{Block, Doc, Pair, capitalised};
use crate::markdown::text as word;
use crate::table;

impl Doc {
    pub fn markdown(&self) -> String {
        self.below(1)
    }

    /// With its name as a heading of this level.
    fn below(&self, top: usize) -> String {
        let mark = |level: usize| "#".repeat(level.min(6));
        let mut out = format!("{} {}\n", mark(top), word(&self.name));
        let (mut level, mut in_list) = (top + 1, false);
        for block in &self.blocks {
            let is_list = matches!(block, Block::Lead { .. } | Block::Sentences(_) | Block::Pairs(_));
            if is_list && !in_list {
                out.push('\n');
            }
            in_list = is_list;
            let list = |all: Vec<String>| all.iter().map(|it| format!("- {it}\n")).collect::<String>();
            match block {
                Block::Drawing(_) | Block::OnPage(_) | Block::Picture(_) => {}
                // What is its name stands above.
                Block::Verdict { says, .. } if says.is_empty() => {}
                Block::Verdict { word: it, says, .. } => out += &format!("\n**{}**: {}\n", word(it), word(says)),
                Block::Lead { word: lead, says, below, .. } => {
                    let below = below.as_ref().map_or_else(String::new, |below| format!(": {}", word(below)));
                    out += &format!("- **{}**: {}{below}\n", word(lead), word(says));
                }
                Block::Headline(says) | Block::Method(says) | Block::Plain(says) | Block::Paragraph(says) => {
                    out += &format!("\n{}\n", word(says));
                }
                Block::Heading { title, remark, .. } => {
                    level = top + 2;
                    out += &format!("\n{} {}\n", mark(top + 1), word(&capitalised(title)));
                    if !remark.is_empty() {
                        out += &format!("\n{}.\n", word(&capitalised(remark)));
                    }
                }
                Block::Sentences(all) => out += &list(all.iter().map(|it| word(&it.says)).collect()),
                Block::Pairs(all) => out += &all.iter().map(pair).collect::<String>(),
                Block::Commands { at, run } => {
                    if !at.is_empty() {
                        out += &format!("\n{}:\n", word(&capitalised(at)));
                    }
                    let run = run.join("\n");
                    let fence = if run.contains("```") { "````" } else { "```" };
                    out += &format!("\n{fence}sh\n{run}\n{fence}\n");
                }
                Block::Table(table) | Block::OnPaper(table) => {
                    if table.title.is_empty() && !table.rows.is_empty() {
                        out.push('\n');
                    }
                    out += &table::markdown(table, level);
                }
                Block::Part(doc) => out += &format!("\n{}", doc.below(top + 1)),
                Block::Warnings(all) if all.is_empty() => {}
                Block::Warnings(all) => {
                    let all = list(all.iter().map(|it| word(it)).collect());
                    out += &format!("\n{} Warnings\n\n{all}", mark(top + 1));
                }
            }
        }
        out
    }
}

fn pair(it: &Pair) -> String {
    let figure = it.figure.as_ref().map_or_else(String::new, |figure| format!("**{}** ", word(figure)));
    if it.lead.is_empty() {
        format!("  - {}\n", word(&it.says))
    } else {
        format!("- *{}*: {figure}{}\n", word(&it.lead), word(&it.says))
    }
}
