//! A trace that goes on: its hops, each with the RTTs of its last probes.

use super::{Key, Scroll, View};
use crate::style::Style;
use crate::trace::{LEGEND, frame};
use narrows_model::TraceReport;
use narrows_model::run::live::HopHistory;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A trace that goes on.
#[derive(Debug, Clone, Default)]
pub struct TraceLive {
    shown: Option<(TraceReport, HopHistory)>,
    scroll: Scroll,
}

impl TraceLive {
    /// The trace so far.
    pub fn show(&mut self, report: TraceReport, history: HopHistory) {
        self.shown = Some((report, history));
    }
}

impl View for TraceLive {
    fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        let style = Style { color: true, width: area.width.into(), full: false, wide: false };
        let text = match &self.shown {
            Some((report, history)) => frame(report, style, Some(history)),
            None => "sending the first probes\n".to_owned(),
        };
        self.scroll.draw(&text, area, buffer);
    }

    fn key(&mut self, key: Key) -> bool {
        self.scroll.key(key)
    }

    fn legend(&self) -> &'static [&'static str] {
        &LEGEND
    }
}
