//! The advice for a benchmark on a terminal.

use crate::style::{Style, Tone};
use crate::text::page::Page;
use crate::words::left;
use narrows_model::advice::{Advice, AdviceRole, Handbook};

/// A handbook, of one role or of all: why, what to type, how to take it back, and where it comes from.
#[must_use]
pub fn text(handbook: &Handbook, role: Option<AdviceRole>, style: Style) -> String {
    let mut page = Page::new(style);
    let chosen: Vec<&Advice> =
        handbook.advice.iter().filter(|advice| role.is_none_or(|role| advice.roles.contains(&role))).collect();
    let title = handbook.system.title();
    if chosen.is_empty() {
        let role = role.map_or("", AdviceRole::word);
        page.beside("", &format!("There is no advice for a {role} with {title}."), None);
        return page.finish();
    }
    let whom = role.map_or_else(String::new, |role| format!(" as {}", role.word()));
    page.heading(&format!("Before a benchmark: {title}{whom}"), "so that nothing moves but the test frames");
    page.beside("Typed ", &format!("{}.", handbook.typed), None);
    let lines = || chosen.iter().flat_map(|advice| advice.commands.iter().chain(advice.undo));
    let used = handbook.words.iter().filter(|(word, _)| lines().any(|line| line.contains(word)));
    for (word, means) in used {
        page.beside(&format!("  {}", left(word, 9)), means, Some(Tone::Faint));
    }
    for advice in chosen {
        one(&mut page, advice);
    }
    page.finish()
}

fn one(page: &mut Page, advice: &Advice) {
    let roles: Vec<&str> = advice.roles.iter().map(|role| role.word()).collect();
    let set = if advice.presets.is_empty() { "" } else { "; narrows can set it" };
    page.heading(advice.id, &format!("({}{set})", roles.join(", ")));
    page.beside("  ", advice.why, None);
    // Commands are copied: a long one is not broken.
    for command in advice.commands {
        page.line(&format!("    {command}"));
    }
    for (at, command) in advice.undo.iter().enumerate() {
        let lead = if at == 0 { "  undo: " } else { "        " };
        page.line(&format!("{lead}{command}"));
    }
    page.beside("  ", advice.source, Some(Tone::Faint));
}
