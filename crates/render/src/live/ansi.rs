//! Text of this crate, with the colours of its [`crate::Style`], as lines of a buffer.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// The lines of a text in at most so many columns. A longer one ends in `…`: a cut figure would be a wrong one.
pub(super) fn lines(text: &str, wide: u16) -> Vec<Line<'static>> {
    text.lines().map(|line| one(line, wide.into())).collect()
}

fn one(text: &str, wide: usize) -> Line<'static> {
    let (mut spans, mut style): (Vec<Span<'static>>, _) = (Vec::new(), Style::new());
    for (at, part) in text.split('\x1b').enumerate() {
        let part = match part.strip_prefix('[').and_then(|rest| rest.split_once('m')) {
            Some((codes, rest)) if at > 0 => {
                style = codes.split(';').fold(style, sgr);
                rest
            }
            _ => part,
        };
        spans.push(Span::styled(part.to_owned(), style));
    }
    spans.retain(|span| !span.content.is_empty());
    let long = |span: &Span<'_>| span.content.chars().count();
    if spans.iter().map(long).sum::<usize>() > wide {
        let mut left = wide.saturating_sub(1);
        for span in &mut spans {
            let kept = long(span).min(left);
            span.content = span.content.chars().take(kept).collect::<String>().into();
            left -= kept;
        }
        spans.extend((wide > 0).then(|| Span::raw("…")));
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
