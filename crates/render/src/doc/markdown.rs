//! A report for a ticket or a wiki: GitHub-flavoured Markdown.

use super::{Block, Doc};
use crate::markdown::text as word;
use crate::table;

impl Doc {
    pub(crate) fn markdown(&self) -> String {
        let mut out = format!("# {}\n", word(&self.name));
        let (mut level, mut in_list) = (2, false);
        for block in &self.blocks {
            let is_list = matches!(block, Block::Lead { .. } | Block::Sentences(_));
            if is_list && !in_list {
                out.push('\n');
            }
            in_list = is_list;
            let list = |all: Vec<String>| all.iter().map(|it| format!("- {it}\n")).collect::<String>();
            match block {
                Block::Lead { word: lead, says, below, .. } => {
                    let below = below.as_ref().map_or_else(String::new, |below| format!(": {}", word(below)));
                    out += &format!("- **{}**: {}{below}\n", word(lead), word(says));
                }
                Block::Headline(says) | Block::Method(says) => out += &format!("\n{}\n", word(says)),
                Block::Heading(title) => {
                    level = 3;
                    out += &format!("\n## {}\n", word(title));
                }
                Block::Sentences(all) => out += &list(all.iter().map(|it| word(&it.says)).collect()),
                Block::Table(table) => {
                    if table.title.is_empty() && !table.rows.is_empty() {
                        out.push('\n');
                    }
                    out += &table::markdown(table, level);
                }
                Block::Drawing(_) | Block::Picture(_) => {}
                Block::Warnings(all) if all.is_empty() => {}
                Block::Warnings(all) => {
                    out += &format!("\n## Warnings\n\n{}", list(all.iter().map(|it| word(it)).collect()));
                }
            }
        }
        out
    }
}
