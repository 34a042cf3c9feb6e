//! Colours that are distinct with every kind of colour vision (Okabe and Ito, *Color Universal Design*, 2008), and line styles.

use super::canvas::Stroke;

pub const PAPER: &str = "#ffffff";
pub const INK: &str = "#1f2933";
pub const MUTED: &str = "#5f6c7b";
pub const GRID: &str = "#e4e8ed";
pub const AXIS: &str = "#9aa5b1";

pub const BLUE: &str = "#0072b2";
pub const VERMILION: &str = "#d55e00";
pub const GREEN: &str = "#009e73";
pub const PURPLE: &str = "#cc79a7";
pub const ORANGE: &str = "#e69f00";
pub const SKY: &str = "#56b4e9";

/// The shape that marks the points of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
}

/// How one series is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub color: &'static str,
    pub marker: Marker,
    pub dash: &'static str,
}

impl Look {
    /// The n-th series of a picture: colour and marker both change.
    pub const fn nth(n: usize) -> Self {
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

    pub const fn dashed(self, dash: &'static str) -> Self {
        Self { dash, ..self }
    }

    pub const fn stroke(self, width: f64) -> Stroke {
        Stroke { color: self.color, width, dash: self.dash }
    }
}
