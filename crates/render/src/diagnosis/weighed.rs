//! What was weighed for and against one cause.

use crate::doc::page::Page;
use crate::style::Style;
use crate::words::clean;
use narrows_model::run::report::Weighed;
use narrows_model::words::units::bps;

/// A heading for each place, with what was read and said there.
pub fn weighed(id: &str, all: &[Weighed], style: Style) -> String {
    let mut page = Page::new(style);
    for one in all {
        page.heading(&format!("{} at the {}", clean(id), one.at), &format!("the evidence {}", clean(&one.word)));
        one.says.iter().for_each(|says| page.labelled("  - ", &clean(says), None));
        if let Some(ceiling) = &one.ceiling {
            let [low, high] = ceiling.interval_bps.map(bps);
            page.labelled(
                "  ceiling  ",
                &format!("{} ({low} to {high}): {}", bps(ceiling.bps), clean(&ceiling.how)),
                None,
            );
        }
        for (key, value) in &one.read {
            let value = value.as_deref().map_or_else(|| "not known".to_owned(), clean);
            page.labelled("  read     ", &format!("{key} = {value}"), None);
        }
    }
    page.finish()
}
