//! A diagnosis on a terminal: the verdict first, on one screen.

pub(crate) mod budget;
mod experiments;
pub(crate) mod hosts;
pub(crate) mod latency;
pub(crate) mod page;
pub(crate) mod path_profile;
pub(crate) mod roofline;
pub(crate) mod rounds;
pub(crate) mod verdict;
mod weighed;

use crate::style::Style;
use narrows_model::Report;
use page::Page;
pub use weighed::weighed;

/// The whole report. At 100 columns it usually has at most 45 lines, unless `style.full` is set.
pub fn report(report: &Report, style: Style) -> String {
    let mut page = Page::new(style);
    verdict::write(&mut page, report);
    roofline::write(&mut page, report);
    path_profile::write(&mut page, report);
    latency::write(&mut page, report);
    budget::write(&mut page, report);
    crate::ledger::text::write(&mut page, report);
    experiments::write(&mut page, report);
    rounds::write(&mut page, report);
    hosts::write(&mut page, report);
    page.finish()
}
