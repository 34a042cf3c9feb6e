//! A measurement while it runs: the rate of each direction over time, the delay, and the intervals.

use super::{Key, Scroll, View};
use crate::figures::tick;
use crate::words::{columns, left, sparkline};
use narrows_model::run::live::{LiveKind, LivePoint};
use narrows_model::words::units::grouped;
use narrows_model::{Flow, Place};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, Gauge, GraphType, Widget as _};
use std::collections::BTreeMap;

/// Points of a curve; older ones are dropped.
const POINTS: usize = 2_000;

/// One curve: what one end says of one direction.
#[derive(Debug, Clone, Default)]
struct Curve {
    rates: Vec<(f64, f64)>,
    delays_ms: Vec<f64>,
    lost: Option<u64>,
}

/// A measurement while it runs.
#[derive(Debug, Clone)]
pub struct MeasureLive {
    kind: LiveKind,
    head: String,
    lines: String,
    curves: BTreeMap<(Flow, Place), Curve>,
    scroll: Scroll,
    /// The part of the trial that is over.
    part: Option<f64>,
    /// The whole report, once it is there.
    report: Option<String>,
}

impl MeasureLive {
    pub fn new(kind: LiveKind) -> Self {
        let (head, lines) = (String::new(), String::new());
        Self { kind, head, lines, curves: BTreeMap::new(), scroll: Scroll::at_end(), part: None, report: None }
    }

    /// A trial begins: its title, and the heading of its lines.
    pub fn begin(&mut self, head: &str) {
        head.clone_into(&mut self.head);
        (self.lines, self.curves) = (String::new(), BTreeMap::new());
    }

    /// Adds lines of intervals.
    pub fn add(&mut self, lines: &str) {
        self.lines += lines;
    }

    pub fn point(&mut self, point: &LivePoint) {
        let curve = self.curves.entry((point.flow, point.place)).or_default();
        curve.rates.push((point.at_s, point.rate));
        curve.delays_ms.extend(point.delay_ms);
        curve.lost = point.lost.or(curve.lost);
        if curve.rates.len() > POINTS {
            curve.rates.remove(0);
        }
        if curve.delays_ms.len() > POINTS {
            curve.delays_ms.remove(0);
        }
    }

    /// A new trial of a diagnosis begins: its curves are its own.
    pub fn step(&mut self, line: &str) {
        self.lines += line;
        (self.curves, self.part) = (BTreeMap::new(), None);
    }

    /// How much of the trial is over, 0 to 1.
    pub fn part(&mut self, part: f64) {
        self.part = Some(part.clamp(0.0, 1.0));
    }

    /// It is over: the report takes the place of all.
    pub fn report(&mut self, report: String) {
        (self.report, self.scroll) = (Some(report), Scroll::default());
    }

    /// It is over: the summary follows the lines.
    pub fn end(&mut self, summary: &str) {
        self.lines += summary;
        self.scroll = Scroll::at_end();
    }

    fn flows(&self) -> Vec<Flow> {
        let mut flows: Vec<Flow> = self.curves.keys().map(|(flow, _)| *flow).collect();
        flows.dedup();
        flows
    }

    /// Of the receiver if it reports, else of the sender.
    fn rates(&self, flow: Flow) -> &[(f64, f64)] {
        let of = |place| self.curves.get(&(flow, place)).map(|curve| curve.rates.as_slice());
        of(flow.receiver()).or_else(|| of(flow.sender())).unwrap_or_default()
    }

    fn chart(&self, area: Rect, buffer: &mut Buffer) {
        let flows = self.flows();
        let points = || flows.iter().flat_map(|flow| self.rates(*flow));
        let high = points().map(|(_, rate)| *rate).fold(1.0, f64::max) * 1.05;
        let (first, last) =
            points().fold((f64::INFINITY, 1.0_f64), |(first, last), (at, _)| (first.min(*at), last.max(*at)));
        let first = if first < last { first } else { 0.0 };
        let data: Vec<Dataset<'_>> = flows
            .iter()
            .map(|flow| {
                let data = Dataset::default().data(self.rates(*flow)).marker(Marker::Braille);
                data.graph_type(GraphType::Line).style(color(*flow))
            })
            .collect();
        let faint = Style::new().dim();
        let x = [first, f64::midpoint(first, last), last].map(|at| format!("{at:.0} s"));
        let y = [0.0, high / 2.0, high].map(|rate| self.kind.rate(rate));
        Chart::new(data)
            .x_axis(Axis::default().bounds([first, last]).labels(x).style(faint))
            .y_axis(Axis::default().bounds([0.0, high]).labels(y).style(faint))
            .render(area, buffer);
    }

    /// The newest figures of a direction, in its colour, with its delay so far.
    fn figures(&self, flow: Flow, area: Rect, buffer: &mut Buffer) {
        let rate = self.rates(flow).last().map_or_else(|| "–".to_owned(), |(_, rate)| self.kind.rate(*rate));
        let [delay, lost] = self.kind.words();
        let by = |place| self.curves.get(&(flow, place));
        let curves = || [flow.sender(), flow.receiver()].into_iter().filter_map(by);
        let delays = curves().map(|curve| curve.delays_ms.as_slice()).find(|all| !all.is_empty()).unwrap_or_default();
        let mut words = format!("{} {}", left(flow.direction().word(), 4), left(&rate, 13));
        if let Some(count) = curves().find_map(|curve| curve.lost) {
            words += &left(&format!("{lost} {}", grouped(i128::from(count))), lost.len() + 9);
        }
        if let Some(last) = delays.last() {
            words += &left(&format!("{delay} {} ms", tick(*last)), delay.len() + 10);
        }
        let room = usize::from(area.width).saturating_sub(columns(&words));
        let words = Span::styled(words, color(flow));
        Line::from(vec![words, Span::raw(sparkline(delays, room, None))]).render(area, buffer);
    }
}

fn color(flow: Flow) -> Style {
    Style::new().fg(if flow == Flow::Up { Color::Cyan } else { Color::Magenta })
}

impl View for MeasureLive {
    fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        if let Some(report) = &self.report {
            self.scroll.draw(report, area, buffer);
            return;
        }
        let flows = self.flows();
        let heads = u16::try_from(self.head.lines().count()).unwrap_or(0);
        let figures = flows.len() as u16;
        let [title, chart, now, head, rest] = Layout::vertical([
            Constraint::Length(heads.min(1)),
            Constraint::Percentage(45),
            Constraint::Length(figures),
            Constraint::Length(heads.saturating_sub(1)),
            Constraint::Min(3),
        ])
        .areas(area);
        for (line, row) in super::lines(&self.head, area.width).iter().zip(title.rows().chain(head.rows())) {
            line.render(row, buffer);
        }
        if let Some(part) = self.part {
            let bar = Rect { x: title.x + title.width.saturating_sub(30), width: title.width.min(30), ..title };
            Gauge::default().ratio(part).gauge_style(Style::new().fg(Color::Green)).render(bar, buffer);
        }
        self.chart(chart, buffer);
        for (flow, row) in flows.iter().zip(now.rows()) {
            self.figures(*flow, row, buffer);
        }
        self.scroll.draw(&self.lines, rest, buffer);
    }

    fn key(&mut self, key: Key) -> bool {
        self.scroll.key(key)
    }

    fn legend(&self) -> &'static [&'static str] {
        match self.kind {
            LiveKind::Tcp => &[
                "chart: goodput of each direction, as its receiver counts it",
                "Retr: segments that the sender retransmitted; RTT: smoothed, of the sender, with its history",
            ],
            LiveKind::Udp => &[
                "chart: received payload of each direction",
                "lost: datagrams so far; delay variation: RFC 3550, of the receiver, with its history",
            ],
            LiveKind::Rr => &["chart: transactions per second", "latency: mean of each interval, with its history"],
        }
    }
}
