//! The interfaces of both ends, and the history of each.

use super::{Key, Scroll, View};
use crate::style::{Style, Tone};
use crate::watch::{LEGEND, active, frame};
use crate::words::{clean, left, sparkline};
use narrows_model::{Place, WatchView};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::collections::BTreeMap;

/// Rates of one direction of an interface that are kept.
const KEPT: usize = 600;
/// Columns before a history.
const NAME: usize = 20;

/// The interfaces of both ends.
#[derive(Debug, Clone)]
pub struct WatchLive {
    view: Option<WatchView>,
    full: bool,
    /// By end, interface, and whether it goes out.
    history: BTreeMap<(Place, String, bool), Vec<f64>>,
    scroll: Scroll,
}

impl WatchLive {
    /// Nothing read yet. `full`: with interfaces without traffic.
    pub fn new(full: bool) -> Self {
        Self { view: None, full, history: BTreeMap::new(), scroll: Scroll::default() }
    }

    pub fn show(&mut self, view: &WatchView) {
        for end in &view.ends {
            for (row, out) in end.interfaces.iter().flat_map(|row| [(row, false), (row, true)]) {
                let rates = self.history.entry((end.place, row.name.clone(), out)).or_default();
                rates.extend(if out { row.tx } else { row.rx }.now_bps);
                if rates.len() > KEPT {
                    rates.remove(0);
                }
            }
        }
        self.view = Some(view.clone());
    }

    fn text(&self, width: usize) -> String {
        let Some(view) = &self.view else { return "reading the counters\n".to_owned() };
        let style = Style { color: true, width, full: self.full, wide: false };
        let mut text = frame(view, style);
        for end in &view.ends {
            let rows: Vec<_> = end.interfaces.iter().filter(|row| active(row)).collect();
            if !rows.is_empty() {
                text += &format!("\n{}\n", style.paint(Tone::Strong, &format!("history, {}", end.place)));
            }
            for (row, out) in rows.iter().flat_map(|row| [(row, false), (row, true)]) {
                let rates =
                    self.history.get(&(end.place, row.name.clone(), out)).map(Vec::as_slice).unwrap_or_default();
                let name = left(&if out { String::new() } else { clean(&row.name) }, NAME - 5);
                let way = if out { "out" } else { "in " };
                text += &format!("{name} {way} {}\n", sparkline(rates, style.columns() - NAME, Some(0.0)));
            }
        }
        text
    }
}

impl View for WatchLive {
    fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        let text = self.text(area.width.into());
        self.scroll.draw(&text, area, buffer);
    }

    fn key(&mut self, key: Key) -> bool {
        self.scroll.key(key)
    }

    fn legend(&self) -> &'static [&'static str] {
        &LEGEND
    }
}
