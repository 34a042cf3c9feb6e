//! Text of this crate, with the colours of its [`crate::Style`], as lines of a buffer.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// The lines of a text in at most so many columns. A longer one ends in `…`: a cut figure would be a wrong one.
pub(super) fn lines(text: &str, wide: u16) -> Vec<Line<'static>> {
    text.lines().map(|line| one(line, wide.into())).collect()
}

fn one(text: &str, wide: usize) -> Line<'static> {
    let (mut spans, mut style, mut used) = (Vec::new(), Style::new(), 0);
    for (at, part) in text.split('\x1b').enumerate() {
        let part = match part.strip_prefix('[').and_then(|rest| rest.split_once('m')) {
            Some((codes, rest)) if at > 0 => {
                style = codes.split(';').fold(style, sgr);
                rest
            }
            _ => part,
        };
        let mut shown: String = part.chars().take(wide - used).collect();
        used += shown.chars().count();
        if used == wide && shown.len() < part.len() {
            shown.pop();
            shown.push('…');
            spans.push(Span::styled(shown, style));
            break;
        }
        spans.push(Span::styled(shown, style));
    }
    Line::from(spans)
}

/// One code of SGR (ECMA-48), of those that [`crate::Style::paint`] writes.
fn sgr(style: Style, code: &str) -> Style {
    match code {
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.add_modifier(Modifier::DIM),
        "31" => style.fg(Color::Red),
        "32" => style.fg(Color::Green),
        "33" => style.fg(Color::Yellow),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_styles_and_long_lines_are_visibly_cut() {
        let line = one("a \x1b[1;31mbad\x1b[0m end", 40);
        let spans: Vec<_> = line.spans.iter().map(|span| (span.content.as_ref(), span.style)).collect();
        let bad = Style::new().add_modifier(Modifier::BOLD).fg(Color::Red);
        assert_eq!(spans, [("a ", Style::new()), ("bad", bad), (" end", Style::new())]);
        for (wide, shown) in [(9, "a bad end"), (8, "a bad e…"), (5, "a ba…"), (1, "…"), (0, "")] {
            assert_eq!(one("a \x1b[1;31mbad\x1b[0m end", wide).to_string(), shown, "{wide}");
        }
    }
}
