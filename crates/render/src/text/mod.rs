//! A diagnosis on a terminal: the verdict first, on one screen.

pub(crate) mod budget;
mod experiments;
pub(crate) mod hosts;
pub(crate) mod page;
pub(crate) mod roofline;
pub(crate) mod rounds;
mod verdict;

use crate::style::Style;
use narrows_model::{Place, Report};
use page::Page;

/// The whole report. At 100 columns it usually has at most 45 lines, unless `style.full` is set.
#[must_use]
pub fn report(report: &Report, style: Style) -> String {
    let mut page = Page::new(style);
    verdict::write(&mut page, report);
    roofline::write(&mut page, report);
    budget::write(&mut page, report);
    crate::ledger::text::write(&mut page, report);
    experiments::write(&mut page, report);
    rounds::write(&mut page, report);
    hosts::write(&mut page, report);
    page.finish()
}

/// `on the server (flits)`, `on the path`.
fn on(place: Place, report: &Report) -> String {
    let name = match place {
        Place::Client => &report.hosts.client.name,
        Place::Server => &report.hosts.server.name,
        Place::Path => "",
    };
    if name.is_empty() {
        format!("on the {place}")
    } else {
        format!("on the {place} ({})", crate::words::fit(&crate::words::clean(name), 40))
    }
}
