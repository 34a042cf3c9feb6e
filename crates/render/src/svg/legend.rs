//! The legend above a plot: samples of the lines and their names, in rows.

use super::canvas::{Canvas, Font};
use super::palette::Look;

pub struct Entry {
    pub name: String,
    pub kind: Kind,
}

/// The sample of an entry.
pub enum Kind {
    /// A line with its marker.
    Line(Look),
    /// A line without markers.
    Plain(Look),
    /// A marker without a line.
    Point(Look),
}

impl Entry {
    pub fn line(name: impl Into<String>, look: Look) -> Self {
        Self { name: name.into(), kind: Kind::Line(look) }
    }

    pub fn plain(name: impl Into<String>, look: Look) -> Self {
        Self { name: name.into(), kind: Kind::Plain(look) }
    }

    pub fn point(name: impl Into<String>, look: Look) -> Self {
        Self { name: name.into(), kind: Kind::Point(look) }
    }
}

const ROW: f64 = 20.0;

/// Draws the legend with its first line at `y`; returns its height.
pub fn legend(canvas: &mut Canvas, (left, y): (f64, f64), right: f64, entries: &[Entry]) -> f64 {
    let (mut x, mut row) = (left, y);
    for entry in entries {
        let sample = match entry.kind {
            Kind::Line(_) | Kind::Plain(_) => 30.0,
            Kind::Point(_) => 10.0,
        };
        let wide = sample + 7.0 + Font::LABEL.width(&entry.name) + 22.0;
        if x > left && x + wide > right {
            (x, row) = (left, row + ROW);
        }
        match entry.kind {
            Kind::Line(look) => {
                canvas.line([x, row - 4.0, x + sample, row - 4.0], look.stroke(2.0));
                canvas.marker(look.marker, (x + sample / 2.0, row - 4.0), 4.0, look.color, "");
            }
            Kind::Plain(look) => canvas.line([x, row - 4.0, x + sample, row - 4.0], look.stroke(2.0)),
            Kind::Point(look) => canvas.marker(look.marker, (x + sample / 2.0, row - 4.0), 4.5, look.color, ""),
        }
        canvas.text((x + sample + 7.0, row), &entry.name, Font::LABEL);
        x += wide;
    }
    row - y + ROW
}
