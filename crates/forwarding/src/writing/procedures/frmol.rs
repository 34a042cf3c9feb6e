//! Forwarding rate at maximum offered load.

use super::super::section::{Mark, Section};
use super::super::sized::{Figure, of_sizes, share};
use super::super::words::{time, times};
use crate::data::procedures::frmol::FrmolView;
use crate::data::report::ForwardingReport;
use crate::data::{Test, Tests};
use narrows_model::run::sweep::Spread;
use narrows_render::figures::{precise, ratio};
use narrows_render::style::Tone;
use narrows_render::svg::{Look, Marker, palette};
use narrows_render::table::{Cell, Column, Table};

pub(super) const SECTION: Section = Section {
    asked: &[(Test::Frmol, asked)],
    mark: Some(Mark {
        rate: |it| it.frmol.rate.as_ref()?.received,
        legend: "received at maximum offered load",
        hint: "received at maximum offered load",
        look: Look { color: palette::ORANGE, marker: Marker::Down, dash: "" },
    }),
    ..Section::of("worst-case", "Forwarding rate at maximum offered load (FRMOL)", |it| vec![frmol(it)])
};

fn asked(tests: &Tests) -> Option<String> {
    tests.frmol.as_ref().map(|it| format!("{} of {}", times(it.repetitions), time(it.duration_ms)))
}

/// What is said of trials that say nothing.
fn left_out(invalid: u32) -> Option<String> {
    let are = if invalid == 1 { "trial is" } else { "trials are" };
    (invalid > 0).then(|| format!("{invalid} more {are} invalid and excluded"))
}

/// What arrived at line rate.
fn frmol(report: &ForwardingReport) -> Table {
    let rate =
        |of: Option<Spread>, what: fn(&Spread) -> f64| Cell::maybe(of.as_ref().map(|it| precise(what(it), "pps", 4)));
    let figures: [Figure<'_, FrmolView>; 7] = [
        (Column::figures("sent"), &|it| rate(it.offered_pps, |it| it.median)),
        (Column::figures("received min").spare(1), &|it| rate(it.received_pps, |it| it.min)),
        (Column::figures("median"), &|it| rate(it.received_pps, |it| it.median).tone(Tone::Strong)),
        (Column::figures("max").spare(1), &|it| rate(it.received_pps, |it| it.max)),
        (Column::figures("of line"), &|it| share(it.received)),
        (Column::figures("lost"), &|it| Cell::maybe(it.loss_ratio.map(ratio))),
        (Column::figures("trials").spare(2), &|it| Cell::new(it.repetitions.to_string())),
    ];
    let words = ["Forwarding rate at maximum offered load (FRMOL)", "received at the maximum offered load (RFC 2285)"];
    of_sizes(report, words, |it| it.results.frmol.rate.as_ref(), &figures, |it| left_out(it.invalid))
}
