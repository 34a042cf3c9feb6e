//! What was asked for.

use super::super::section::Section;
use super::super::words;
use crate::data::report::ForwardingReport;
use crate::data::{Test, TesterPort};
use narrows_model::words::show::nominal;
use narrows_model::words::units::bps;
use narrows_render::figures::pps;
use narrows_render::table::{Cell, Column, Row, Table};
use narrows_render::words::clean;

/// The plan, a line each.
pub(in super::super) fn plan(report: &ForwardingReport, sections: &[Section]) -> Table {
    let plan = &report.plan;
    let mut table = Table::new("Plan", "", &[Column::words(""), Column::words("")]);
    let mut line = |name: &str, text: String| table.rows.push(Row::new(vec![Cell::new(name), Cell::new(text)]));
    let link = nominal(&bps(plan.link_bps as f64));
    let most = plan.max_load_pps.map(|most| format!(", maximum load {}", pps(most))).unwrap_or_default();
    line("link", format!("100 % load is {link} on the wire{most}"));
    line("generator", port(&plan.generator));
    line("receiver", port(&plan.receiver));
    for hop in &plan.hops {
        let what = if hop.under_test { "device under test" } else { "switch" };
        line(what, format!("{}, input {}, output {}, counters: {}", hop.name, hop.input, hop.output, hop.counters));
    }
    for it in &report.traffic {
        let sizes: Vec<String> = it.traffic.sizes.iter().map(u32::to_string).collect();
        let mix =
            if it.traffic.mix.is_empty() { String::new() } else { format!("; a mix of {}", words::mix(&it.traffic)) };
        line(&it.name, format!("{}; {} B{mix}", it.what, sizes.join(", ")));
    }
    for test in Test::PROCEDURES {
        let asked = sections.iter().flat_map(|section| section.asked).find(|(of, _)| of == test);
        if let Some(text) = asked.and_then(|(_, asked)| asked(&plan.tests)) {
            line(test.title(), text);
        }
    }
    line("each trial", plan.conditions.words());
    table
}

fn port(of: &TesterPort) -> String {
    let place = of.host.as_ref().map(|host| format!(" of {}", clean(host))).unwrap_or_default();
    let second = of.second.map(|pair| format!(", as {} by {}", pair.address, pair.gateway)).unwrap_or_default();
    format!("on {}{place} as {} by {}{second}", of.device, of.address, of.gateway)
}
