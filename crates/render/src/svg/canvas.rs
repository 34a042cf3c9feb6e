//! The sheet that pictures are drawn on: shapes in, SVG 1.1 out.

use super::palette::{self, Marker};
use crate::words::clean;
use std::fmt::Write as _;

/// How a line is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Stroke {
    pub color: &'static str,
    pub width: f64,
    /// `stroke-dasharray`; empty: solid.
    pub dash: &'static str,
}

impl Stroke {
    pub const fn new(color: &'static str, width: f64) -> Self {
        Self { color, width, dash: "" }
    }
}

/// The alignment of a text at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The font of a text.
#[derive(Debug, Clone, Copy)]
pub struct Font {
    pub size: f64,
    pub bold: bool,
    pub color: &'static str,
    pub anchor: Anchor,
}

impl Font {
    pub const TITLE: Self = Self { size: 18.0, bold: true, color: palette::INK, anchor: Anchor::Start };
    pub const SUBTITLE: Self = Self { size: 12.5, bold: false, color: palette::MUTED, anchor: Anchor::Start };
    pub const LABEL: Self = Self { size: 12.0, bold: false, color: palette::INK, anchor: Anchor::Start };
    pub const SMALL: Self = Self { size: 11.0, bold: false, color: palette::MUTED, anchor: Anchor::Start };

    pub const fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub const fn color(self, color: &'static str) -> Self {
        Self { color, ..self }
    }

    /// The approximate width of a text in a sans-serif font of this size, in pixels.
    pub fn width(self, text: &str) -> f64 {
        let em: f64 = text
            .chars()
            .map(|c| match c {
                'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' => 0.29,
                'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.35,
                'm' | 'w' | 'M' | 'W' | '%' => 0.86,
                c if c.is_uppercase() => 0.69,
                _ => 0.56,
            })
            .sum();
        em * self.size * if self.bold { 1.06 } else { 1.0 }
    }

    /// The text cut to about this many pixels.
    pub fn fit(self, text: &str, pixels: f64) -> String {
        if self.width(text) <= pixels {
            return text.to_owned();
        }
        let mut cut = String::new();
        for c in text.chars() {
            if self.width(&cut) + self.size > pixels {
                break;
            }
            cut.push(c);
        }
        cut.trim_end().to_owned() + "…"
    }
}

/// A picture that grows shape by shape.
pub struct Canvas {
    out: String,
}

impl Canvas {
    /// An empty sheet. `title` and `description` are for screen readers.
    pub fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
             font-family=\"'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif\">\n<title>{}</title>\n\
             <desc>{}</desc>\n<rect width=\"{w}\" height=\"{h}\" fill=\"{}\"/>\n",
            escape(title),
            escape(description),
            palette::PAPER,
            w = number(width),
            h = number(height),
        );
        Self { out }
    }

    /// A sheet with its title and what is below it.
    pub fn titled(width: f64, height: f64, title: &str, subtitle: &str) -> Self {
        let mut canvas = Self::new(width, height, title, subtitle);
        canvas.text((24.0, 34.0), title, Font::TITLE);
        canvas.text((24.0, 54.0), subtitle, Font::SUBTITLE);
        canvas
    }

    /// An element with its coordinates, then attributes as they are, and the hint that viewers show under the pointer.
    fn shape(&mut self, name: &str, at: &[(&str, f64)], attributes: &str, hint: &str) {
        let at: String = at.iter().map(|(key, value)| format!(" {key}=\"{}\"", number(*value))).collect();
        let end = if hint.is_empty() { "/>".to_owned() } else { format!("><title>{}</title></{name}>", escape(hint)) };
        let _ = writeln!(self.out, "<{name}{at}{attributes}{end}");
    }

    pub fn rect(&mut self, [x, y, wide, high]: [f64; 4], fill: &str, hint: &str) {
        let at = [("x", x), ("y", y), ("width", wide.max(0.0)), ("height", high.max(0.0))];
        self.shape("rect", &at, &format!(" fill=\"{fill}\""), hint);
    }

    pub fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], stroke: Stroke) {
        self.shape("line", &[("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)], &style(stroke), "");
    }

    pub fn polyline(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        if points.len() >= 2 {
            let joins = "fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\"";
            self.shape("polyline", &[], &format!("{} {joins}{}", path(points), style(stroke)), "");
        }
    }

    pub fn polygon(&mut self, points: &[(f64, f64)], fill: &str, opacity: f64) {
        if points.len() >= 3 {
            let fill = format!(" fill=\"{fill}\" fill-opacity=\"{}\"", number(opacity));
            self.shape("polygon", &[], &(path(points) + &fill), "");
        }
    }

    /// A marker around a point, with a thin rim in the paper's colour that separates it from its neighbours.
    pub fn marker(&mut self, marker: Marker, (x, y): (f64, f64), radius: f64, fill: &str, hint: &str) {
        let fill = format!(" fill=\"{fill}\" stroke=\"{}\" stroke-width=\"1\"", palette::PAPER);
        let corners: &[(f64, f64)] = match marker {
            Marker::Circle => return self.shape("circle", &[("cx", x), ("cy", y), ("r", radius)], &fill, hint),
            Marker::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Marker::Diamond => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            Marker::Up => &[(0.0, -1.3), (1.15, 0.85), (-1.15, 0.85)],
            Marker::Down => &[(0.0, 1.3), (1.15, -0.85), (-1.15, -0.85)],
        };
        let points: Vec<_> = corners.iter().map(|(dx, dy)| (x + dx * radius, y + dy * radius)).collect();
        self.shape("polygon", &[], &(path(&points) + &fill), hint);
    }

    pub fn text(&mut self, (x, y): (f64, f64), text: &str, font: Font) {
        let anchor = match font.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let weight = if font.bold { " font-weight=\"600\"" } else { "" };
        let _ = writeln!(
            self.out,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{weight}{anchor}>{}</text>",
            number(x),
            number(y),
            number(font.size),
            font.color,
            escape(text)
        );
    }

    pub fn finish(self) -> String {
        self.out + "</svg>\n"
    }
}

fn style(stroke: Stroke) -> String {
    let dash = if stroke.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", stroke.dash) };
    format!(" stroke=\"{}\" stroke-width=\"{}\"{dash}", stroke.color, number(stroke.width))
}

fn path(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
    format!(" points=\"{}\"", points.join(" "))
}

/// A coordinate with at most two decimals. NaN and infinities become 0, so that the file stays valid.
fn number(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A text escaped for XML.
fn escape(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        assert_eq!(number(12.0), "12");
        assert_eq!(number(1.0 / 3.0), "0.33");
        assert_eq!(number(-0.001), "0");
        assert_eq!(number(f64::NAN), "0");
    }

    #[test]
    fn words_stay_in_their_element() {
        let mut canvas = Canvas::new(10.0, 10.0, "a<b", "\"");
        canvas.text((0.0, 0.0), "</text><script>\x1b", Font::LABEL);
        let text = canvas.finish();
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;?"), "{text}");
    }

    #[test]
    fn a_text_is_cut_to_its_room() {
        assert_eq!(Font::LABEL.fit("abc", 100.0), "abc");
        let cut = Font::LABEL.fit(&"m".repeat(50), 100.0);
        assert!(cut.ends_with('…') && Font::LABEL.width(&cut) < 110.0, "{cut}");
    }
}
