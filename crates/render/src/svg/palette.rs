//! Colours that are distinct with every kind of colour vision (Okabe and Ito, *Color Universal Design*, 2008), and line styles.

use super::canvas::Stroke;

pub(crate) const PAPER: &str = "#ffffff";
pub(crate) const INK: &str = "#1f2933";
pub(crate) const MUTED: &str = "#5f6c7b";
pub(crate) const GRID: &str = "#e4e8ed";
pub(crate) const AXIS: &str = "#9aa5b1";

pub(crate) const BLUE: &str = "#0072b2";
pub(crate) const VERMILION: &str = "#d55e00";
pub(crate) const GREEN: &str = "#009e73";
pub(crate) const PURPLE: &str = "#cc79a7";
pub(crate) const ORANGE: &str = "#e69f00";
pub(crate) const SKY: &str = "#56b4e9";

/// The shape that marks the points of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
}

/// How one series is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) color: &'static str,
    pub(crate) marker: Marker,
    pub(crate) dash: &'static str,
}

impl Look {
    /// The n-th series of a picture: colour and marker both change.
    pub(crate) const fn nth(n: usize) -> Self {
        const ALL: [(&str, Marker); 6] = [
            (BLUE, Marker::Circle),
            (VERMILION, Marker::Square),
            (GREEN, Marker::Diamond),
            (PURPLE, Marker::Up),
            (ORANGE, Marker::Down),
            (SKY, Marker::Circle),
        ];
        let (color, marker) = ALL[n % ALL.len()];
        Self { color, marker, dash: "" }
    }

    pub(crate) const fn dashed(self, dash: &'static str) -> Self {
        Self { dash, ..self }
    }

    pub(crate) const fn stroke(self, width: f64) -> Stroke {
        Stroke { color: self.color, width, dash: self.dash }
    }
}
