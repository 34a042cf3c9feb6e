//! A campaign that runs: how far it is, its results so far, and what was said on the way.

use super::{Key, Scroll, View};
use crate::campaign;
use crate::style::{Style, Tone};
use crate::words::{clean, fit};
use narrows_model::run::campaign::CampaignReport;
use narrows_model::run::live::CampaignStep;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::collections::VecDeque;

/// Lines of progress that are kept.
const KEPT: usize = 200;

/// A campaign that runs.
#[derive(Debug, Clone, Default)]
pub struct CampaignLive {
    step: Option<CampaignStep>,
    results: Option<CampaignReport>,
    said: VecDeque<String>,
    full: bool,
    scroll: Scroll,
}

impl CampaignLive {
    /// Nothing done yet. `full`: with all combinations and interactions.
    pub fn new(full: bool) -> Self {
        Self { full, ..Self::default() }
    }

    pub fn begins(&mut self, step: &CampaignStep) {
        self.step = Some(step.clone());
    }

    /// The results so far.
    pub fn results(&mut self, report: CampaignReport) {
        self.results = Some(report);
    }

    pub fn say(&mut self, line: &str) {
        self.said.push_back(clean(line));
        if self.said.len() > KEPT {
            self.said.pop_front();
        }
    }

    fn text(&self, width: usize) -> String {
        let style = Style { color: true, width, full: self.full, wide: false };
        let mut text = String::new();
        if let Some(step) = &self.step {
            let begins = clean(&format!("{}: {}", step.place(), step.cell));
            text += &format!("{}\n{}\n\n", bar(step, width), style.paint(Tone::Strong, &fit(&begins, width)));
        }
        // The newest is nearest to the step.
        let said: String = self.said.iter().rev().map(|line| fit(line, width) + "\n").collect();
        match &self.results {
            Some(report) if !report.runs.is_empty() => {
                text + &campaign::doc(report, style.full).text(style) + if said.is_empty() { "" } else { "\n" } + &said
            }
            _ => text + &said,
        }
    }
}

/// How many steps are done, and how long those that are left will take.
fn bar(step: &CampaignStep, width: usize) -> String {
    let minutes = step.left_s / 60;
    let left = match step.left_s {
        0..120 => format!("{} s", step.left_s),
        120..7_200 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    };
    let words = format!(" {} of {} runs, {left} left", step.done, step.of);
    let wide = width.saturating_sub(words.len()).min(60);
    let done = wide * step.done / step.of.max(1);
    format!("{}{}{words}", "█".repeat(done), "░".repeat(wide - done))
}

impl View for CampaignLive {
    fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        let text = self.text(area.width.into());
        self.scroll.draw(if text.is_empty() { "connecting\n" } else { &text }, area, buffer);
    }

    fn key(&mut self, key: Key) -> bool {
        match key {
            Key::Char('a') => self.full = !self.full,
            _ => return self.scroll.key(key),
        }
        true
    }

    fn keys(&self) -> &'static [[&'static str; 2]] {
        &[["a", "all combinations"], ["↑ ↓", "scroll"], ["PgUp PgDn", "page"]]
    }

    fn legend(&self) -> &'static [&'static str] {
        &[
            "Results are those of the runs so far, also of an earlier start of the same plan.",
            "Quitting keeps all runs and rolls back all settings; the same command continues.",
        ]
    }
}
