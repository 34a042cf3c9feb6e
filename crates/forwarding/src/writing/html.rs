//! The whole benchmark as one page that needs no other file: no script, no font, no external picture. The verdict comes
//! first. The page follows the reader's choice of light or dark, and prints on white.

use super::procedures::ALL;
use super::summary::{findings, reconciliation};
use super::{accounts_svg, tables, words};
use crate::data::report::{ForwardingReport, SizeView};
use maud::{Markup, html};
use narrows_model::words::units::{bps, micros};
use narrows_render::figures::{of_line, pps};
use narrows_render::page::{document, figure, says};
use narrows_render::table::{Table, html as table};
use narrows_render::words::clean;

/// Maximum number of invalid trials on the page; JSON has all of them.
const MAX_INVALID: usize = 200;

pub fn report(report: &ForwardingReport) -> String {
    let run = report.run.as_ref().map(|run| {
        let took = micros(narrows_render::words::rounded(run.elapsed_s * 1e6));
        let when = words::moment(run.started_unix_us);
        format!("{when} · run {} by {}, {took}", run.id, run.made_by)
    });
    let sections = sections(report);
    let main = html! {
        section #verdict { (verdict(report)) }
        // The blanks are where a long line of links breaks.
        nav { @for it in &sections { a href={ "#" (it.id) } { (it.title) } " " } }
        @for it in &sections { section id=(it.id) { h2 { (it.title) } (it.body) } }
    };
    document(&format!("Forwarding benchmark of {}", report.name), run.as_deref(), &main)
}

fn verdict(report: &ForwardingReport) -> Markup {
    let reconciled = &report.reconciliation;
    let lost = if reconciled.lost > 0 || reconciled.books == 0 { "mark" } else { "good" };
    let books = if reconciled.books == 0 || reconciled.disagree > 0 { "mark" } else { "good" };
    html! {
        @for traffic in &report.traffic {
            @let tiles: Vec<Markup> = traffic.sizes.iter().filter_map(tile).collect();
            @if !tiles.is_empty() {
                h2.first { "Throughput, " (clean(&traffic.name)) @if traffic.traffic.bidirectional { ", each way" } }
                div.tiles { @for tile in &tiles { (tile) } }
            }
        }
        (says(lost, "Lost", &report.verdict.losses))
        (says("bad", "Invalid", &report.verdict.invalid))
        (says(books, "Accounting", &[reconciliation(report)]))
        (says("mark", "Note", &report.remarks))
        (says("bad", "Ended early", report.ended.as_slice()))
    }
}

/// One size: its throughput in large, and its share of the line rate.
fn tile(of: &SizeView) -> Option<Markup> {
    let goal = of.results.throughput.search.as_ref()?.goals.first()?;
    let size = words::size(of.size);
    let Some(lower) = goal.lower else {
        let rate = goal.unproven.map_or_else(|| "none".to_owned(), |it| format!("≥ {}?", pps(it.pps)));
        return Some(html! { div.tile { span.size { (size) } b { (rate) } span { (clean(&goal.word)) } } });
    };
    let width = lower.of_line.unwrap_or(0.0).clamp(0.0, 1.0) * 100.0;
    Some(html! {
        div.tile {
            span.size { (size) }
            b { @if goal.is_at_least() { "≥ " } (pps(lower.pps)) }
            span { (bps(lower.wire_bps)) }
            span { @if let Some(part) = lower.of_line { (of_line(part)) " of line" } }
            @if let Some(it) = &of.results.throughput.confirmation {
                span class=(if it.holds { "good" } else { "bad" }) {
                    "confirmed " (it.passed) "/" ((it.repetitions - it.invalid).max(it.planned))
                }
            }
            i { u style=(format!("width:{width:.1}%")) {} }
        }
    })
}

struct Section {
    id: &'static str,
    title: &'static str,
    body: Markup,
}

/// What there is to show, in the order of the text.
fn sections(report: &ForwardingReport) -> Vec<Section> {
    let section = |id, title, body| Section { id, title, body };
    let of = |it: &super::section::Section| {
        let caption = if it.captions { one } else { alone };
        let picture = it.picture.and_then(|picture| picture(report, ALL));
        let body = html! { (figure(picture)) @for of in (it.tables)(report) { (caption(of)) } };
        section(it.id, it.title, body)
    };
    let mut all: Vec<Section> = ALL.iter().map(of).collect();
    all.extend([
        section("books", "Accounting", accounts(report)),
        section("invalid", "Invalid trials", alone(tables::invalid(report, MAX_INVALID))),
        section("tester", "The tester", alone(tables::tester(report))),
        section("not-measured", "Not measured", alone(tables::not_measured(report))),
        section("plan", "Plan", alone(tables::plan(report, ALL))),
    ]);
    all.retain(|section| !section.body.0.is_empty());
    all
}

fn one(it: Table) -> Markup {
    table(&it.trimmed())
}

/// Under a heading of the same words, the caption has only the remark.
fn alone(it: Table) -> Markup {
    one(Table { title: String::new(), ..it })
}

fn accounts(report: &ForwardingReport) -> Markup {
    html! {
        (table(&tables::losses(report)))
        @for view in &report.books {
            // The picture has the title and why the trial is invalid; the list of invalid trials has it in full.
            (figure(Some(accounts_svg::picture(view))))
            p { (clean(&findings(view).join("; "))) }
            (table(&tables::account(view)))
        }
    }
}
