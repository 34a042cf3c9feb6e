//! The whole benchmark as one page that needs nothing beside it: no script, no font, no picture from elsewhere. The verdict
//! stands first. It follows the reader's choice of light or dark, and prints on white.

use super::svg;
use super::tables;
use super::text::{findings, reconciliation};
use super::words;
use crate::figures::pps;
use crate::frames::words::of_line;
use crate::html::escape;
use crate::table::{Table, html};
use narrows_model::forwarding::report::{ForwardingReport, SizeView};
use narrows_model::words::units::{bps, micros};

/// Nothing of the page may be fetched or run, should anything ever slip through the escaping.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Invalid trials that are listed; JSON has them all.
const INVALID: usize = 200;

/// The page.
#[must_use]
pub fn report(report: &ForwardingReport) -> String {
    let run = report.run.as_ref().map(|run| {
        let took = micros(crate::udp::text::rounded(run.elapsed_s * 1e6));
        let when = words::moment(run.started_unix_us);
        format!("{when} · run {} by {}, {took}", run.id, run.made_by)
    });
    let mut main = "<section id=\"verdict\">\n".to_owned();
    verdict(&mut main, report);
    main += "</section>\n";
    let sections = sections(report);
    let links: String =
        sections.iter().map(|it| format!("<a href=\"#{}\">{}</a>\n", it.id, escape(it.title))).collect();
    main += &format!("<nav>{links}</nav>\n");
    for it in sections {
        main += &format!("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", it.id, escape(it.title), it.body);
    }
    document(&format!("Forwarding benchmark of {}", report.name), &run.unwrap_or_default(), &main)
}

/// A whole page: its name, a line below it, and what stands in it.
pub(super) fn document(name: &str, below: &str, main: &str) -> String {
    let name = escape(name);
    let below = if below.is_empty() { String::new() } else { format!("<p class=\"run\">{}</p>\n", escape(below)) };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name}</title>\n<style>\n{}</style>\n\
         </head>\n<body>\n<header>\n<h1>{name}</h1>\n{below}</header>\n<main>\n{main}</main>\n</body>\n</html>\n",
        include_str!("page.css"),
    )
}

fn verdict(out: &mut String, report: &ForwardingReport) {
    for traffic in &report.traffic {
        let tiles: String = traffic.sizes.iter().filter_map(tile).collect();
        if !tiles.is_empty() {
            let each = if traffic.traffic.bidirectional { ", each way" } else { "" };
            *out += &format!(
                "<h3>Throughput, {}{each}</h3>\n<div class=\"tiles\">\n{tiles}</div>\n",
                escape(&traffic.name)
            );
        }
    }
    let lost = report.reconciliation.lost > 0 || report.reconciliation.books == 0;
    says(out, if lost { "mark" } else { "good" }, "Lost", &report.verdict.losses);
    says(out, "bad", "Invalid", &report.verdict.invalid);
    let books = if report.reconciliation.books == 0 || report.reconciliation.disagree > 0 { "mark" } else { "good" };
    says(out, books, "Books", &[reconciliation(report)]);
    says(out, "mark", "Note", &report.remarks);
    says(out, "bad", "Ended early", report.ended.as_slice());
}

/// One size: its throughput in large, and how much of the line that is.
fn tile(of: &SizeView) -> Option<String> {
    let goal = of.throughput.as_ref()?.goals.first()?;
    let size = escape(&words::size(of.size));
    let Some(lower) = goal.lower else {
        return Some(format!(
            "<div class=\"tile\"><span class=\"size\">{size}</span><b>none</b><span>{}</span></div>\n",
            escape(&goal.word)
        ));
    };
    let more = if goal.is_at_least() { "≥ " } else { "" };
    let part = lower.of_line.unwrap_or(0.0).clamp(0.0, 1.0) * 100.0;
    let line = lower.of_line.map(|part| format!("{} of line", of_line(part))).unwrap_or_default();
    let confirmed = of.confirmation.as_ref().map(|it| {
        let planned = (it.repetitions - it.invalid).max(it.planned);
        format!("<span class=\"{}\">confirmed {}/{planned}</span>", if it.holds { "good" } else { "bad" }, it.passed)
    });
    Some(format!(
        "<div class=\"tile\"><span class=\"size\">{size}</span><b>{more}{}</b><span>{}</span><span>{}</span>{}<i><u style=\"width:{part:.1}%\"></u></i></div>\n",
        escape(&pps(lower.pps)),
        escape(&bps(lower.wire_bps)),
        escape(&line),
        confirmed.unwrap_or_default(),
    ))
}

/// Lines of the verdict. `what` is as it shall stand, `lines` are escaped.
pub(super) fn says(out: &mut String, class: &str, what: &str, lines: &[String]) {
    let what = escape(what);
    match lines {
        [] => {}
        [one] => {
            *out += &format!("<p class=\"says {class}\"><strong>{what}</strong><span>{}</span></p>\n", escape(one));
        }
        all => {
            let items: String = all.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
            *out += &format!("<div class=\"says {class}\"><strong>{what}</strong><ul>{items}</ul></div>\n");
        }
    }
}

struct Section {
    id: &'static str,
    title: &'static str,
    body: String,
}

/// What there is to show, in the order of the text.
fn sections(report: &ForwardingReport) -> Vec<Section> {
    let figure = |picture: Option<String>| picture.map(|svg| format!("<figure>{svg}</figure>\n")).unwrap_or_default();
    let one = |table: Table| html(&table.trimmed());
    // Under a heading that says the same, the caption has the remark alone.
    let alone = |table: Table| one(Table { title: String::new(), ..table });
    let loss: String = tables::loss(report).into_iter().map(one).collect();
    let mut all = vec![
        Section {
            id: "throughput",
            title: "Throughput",
            body: figure(svg::throughput(report))
                + &one(tables::throughput(report))
                + &one(tables::confirmation(report)),
        },
        Section {
            id: "latency",
            title: "Latency",
            body: figure(svg::latency(report)) + &alone(tables::latency(report)),
        },
        Section { id: "loss", title: "Frame loss rate", body: figure(svg::loss(report)) + &loss },
        Section {
            id: "back-to-back",
            title: "Back-to-back",
            body: figure(svg::back_to_back(report)) + &alone(tables::back_to_back(report)),
        },
        Section { id: "worst-case", title: "Worst case", body: alone(tables::worst_case(report)) },
        Section { id: "outages", title: "Recovery and reset", body: alone(tables::outages(report)) },
        Section { id: "modifiers", title: "Modifiers", body: alone(tables::modifiers(report)) },
        Section { id: "devices", title: "The device meanwhile", body: alone(tables::devices(report)) },
        Section { id: "books", title: "Books", body: books(report) },
        Section { id: "invalid", title: "Invalid trials", body: alone(tables::invalid(report, INVALID)) },
        Section { id: "tester", title: "The tester", body: alone(tables::tester(report)) },
        Section { id: "not-measured", title: "Not measured", body: alone(tables::not_measured(report)) },
        Section { id: "plan", title: "What was asked for", body: alone(tables::plan(report)) },
    ];
    all.retain(|section| !section.body.is_empty());
    all
}

fn books(report: &ForwardingReport) -> String {
    let mut out = html(&tables::losses(report));
    for view in &report.books {
        // The picture has the title, and why the trial is invalid; the list of those has it at length.
        out += &format!("<figure>{}</figure>\n", svg::books(view));
        out += &format!("<p>{}</p>\n", escape(&findings(view).join("; ")));
        out += &html(&tables::books(view));
    }
    out
}
