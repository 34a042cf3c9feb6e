//! The advice for a benchmark on a terminal.

use crate::data::advice::{Advice, AdviceFound, AdviceRole, Handbook, SettingState};
use narrows_model::Change;
use narrows_render::doc::page::Page;
use narrows_render::style::{Style, Tone};
use narrows_render::words::left;

/// A handbook, for one role or for all: the reason, the commands, how to undo them, and the source.
pub fn text(handbook: &Handbook, role: Option<AdviceRole>, style: Style) -> String {
    let mut page = Page::new(style);
    let chosen: Vec<&Advice> =
        handbook.advice.iter().filter(|advice| role.is_none_or(|role| advice.roles.contains(&role))).collect();
    let title = handbook.system.title();
    if chosen.is_empty() {
        let role = role.map_or("", AdviceRole::word);
        page.labelled("", &format!("There is no advice for a {role} with {title}."), None);
        return page.finish();
    }
    let whom = role.map_or_else(String::new, |role| format!(" as {}", role.word()));
    page.heading(&format!("Before a benchmark: {title}{whom}"), "so that nothing moves but the test frames");
    page.labelled("Typed ", &format!("{}.", handbook.typed), None);
    let lines = || chosen.iter().flat_map(|advice| advice.commands.iter().chain(&advice.undo));
    let used = handbook.words.iter().filter(|(word, _)| lines().any(|line| line.contains(word.as_str())));
    for (word, means) in used {
        page.labelled(&format!("  {}", left(word, 9)), means, Some(Tone::Faint));
    }
    for advice in chosen {
        one(&mut page, advice);
    }
    page.finish()
}

fn one(page: &mut Page, advice: &Advice) {
    let roles: Vec<&str> = advice.roles.iter().map(|role| role.word()).collect();
    let set = if advice.presets.is_empty() { "" } else { "; narrows can set it" };
    page.heading(&advice.id, &format!("({}{set})", roles.join(", ")));
    page.labelled("  ", &advice.why, None);
    // Commands are copied: a long one is not broken.
    for command in &advice.commands {
        page.line(&format!("    {command}"));
    }
    for (at, command) in advice.undo.iter().enumerate() {
        let lead = if at == 0 { "  undo: " } else { "        " };
        page.line(&format!("{lead}{command}"));
    }
    page.labelled("  ", &advice.source, Some(Tone::Faint));
}

/// The settings that narrows would make on a host, or has made, each with its state. `made` is `None` where nothing was applied.
pub fn found(found: &AdviceFound, made: Option<&[Change]>, style: Style) -> String {
    let mut page = Page::new(style);
    let (role, interfaces) = (found.role.word(), found.interfaces.join(", "));
    let (title, to_set) = match made {
        None => (format!("What narrows would set on this {role}"), "to set"),
        Some(_) => (format!("What narrows set on this {role}"), "set"),
    };
    page.heading(&title, &interfaces);
    let widest = found.items.iter().map(|item| item.advice.len()).max().unwrap_or(0);
    let mut before = "";
    for item in &found.items {
        let id = if item.advice == before { "" } else { item.advice.as_str() };
        before = &item.advice;
        let (word, rest) = match &item.state {
            SettingState::AsAdvised => ("is so", item.what.clone()),
            SettingState::Differs(now) => (to_set, format!("{}  (before: {now})", item.what)),
            SettingState::Unavailable(why) => ("not here", format!("{}: {why}", item.what)),
        };
        // Commands are copied: a long one is not broken.
        page.line(&format!("  {}  {}  {rest}", left(id, widest), left(word, 8)));
    }
    page.blank();
    let differs = found.to_set().len();
    let conclusion = match made {
        None if differs == 0 => "Nothing is left to set here.".to_owned(),
        None => format!("Nothing was changed. --apply sets what is marked `to set` ({differs})."),
        Some([]) => "Nothing was left to set.".to_owned(),
        Some(made) => format!(
            "Set: {}. `narrows rfc2544 advise --undo` sets them back, as does `narrows tune undo all`; so does the next boot.",
            made.len()
        ),
    };
    page.labelled("", &conclusion, None);
    if !found.manual.is_empty() {
        let manual = found.manual.join(", ");
        page.labelled(
            "Left to you: ",
            &format!("{manual}; `narrows rfc2544 advise linux --role {role}` has the commands."),
            None,
        );
    }
    page.finish()
}
