//! A report as one page that needs no other file: no script, no font, no external picture. It follows the reader's choice of light or
//! dark, prints on white, and has a table for each picture.

use crate::words::clean;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The page may fetch and run nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// What may be wider than the screen.
const SCROLLS_OPEN: &str = "<div class=\"table\" role=\"group\" aria-label=\"table\" tabindex=\"0\">";
const PRE_OPEN: &str = "<pre tabindex=\"0\">";

/// A whole page: its name, a line below it, and its content.
pub(crate) fn document(name: &str, below: Option<&str>, main: &Markup) -> String {
    let name = clean(name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (name) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { (name) }
                    @if let Some(below) = below { p.run { (clean(below)) } }
                }
                main { (main) }
            }
        }
    };
    page.into_string()
}

/// A picture in the page; empty without one.
pub(crate) fn figure(svg: Option<String>) -> Markup {
    html! { @if let Some(svg) = svg { figure { (PreEscaped(svg)) } } }
}

/// Lines of the verdict under one word: a paragraph, or a list where there are several.
pub(crate) fn says(class: &str, what: &str, lines: &[String]) -> Markup {
    let class = format!("says {class}");
    html! {
        @match lines {
            [] => {}
            [one] => p class=(class) { strong { (clean(what)) } span { (clean(one)) } },
            all => div class=(class) { strong { (clean(what)) } ul { @for line in all { li { (clean(line)) } } } },
        }
    }
}

/// A page of a report in Markdown, with a picture above it. The first heading is its name.
pub(crate) fn of_markdown(markdown: &str, picture: Option<String>) -> String {
    let (mut name, mut body, mut in_name) = (String::new(), String::new(), false);
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {
            in_name = true;
            None
        }
        Event::End(TagEnd::Heading(HeadingLevel::H1)) => {
            in_name = false;
            None
        }
        Event::Text(words) | Event::Code(words) if in_name => {
            name += &words;
            None
        }
        // A report holds no HTML: what looks like it came from a host's words.
        Event::Html(words) | Event::InlineHtml(words) => Some(vec![Event::Text(words)]),
        Event::Start(Tag::Table(columns)) => {
            Some(vec![Event::Html(SCROLLS_OPEN.into()), Event::Start(Tag::Table(columns))])
        }
        Event::End(TagEnd::Table) => Some(vec![Event::End(TagEnd::Table), Event::Html("</div>".into())]),
        event => Some(vec![event]),
    });
    pulldown_cmark::html::push_html(&mut body, events.flatten());
    // A screen reader announces each head of a column: an empty one is none. What is wider than the screen is scrolled with keys, too.
    let body = body.replace("<th></th>", "<td></td>").replace("<pre>", PRE_OPEN);
    document(&name, None, &html! { (figure(picture)) (PreEscaped(body)) })
}

/// A page of a report in plain text, with a picture above it.
pub(crate) fn of_text(name: &str, text: &str, picture: Option<String>) -> String {
    document(name, None, &html! { (figure(picture)) pre tabindex="0" { (clean_lines(text)) } })
}

fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_a_page_and_html_in_it_text() {
        let page = of_markdown(
            "# Slow: `x`\n\nOn <script>alert(1)</script>.\n\n| a | b |\n| --- | ---: |\n| 1 | 2 |\n",
            Some("<svg></svg>".into()),
        );
        assert!(page.contains("<title>Slow: x</title>") && page.contains("<figure><svg></svg></figure>"), "{page}");
        assert!(page.contains("tabindex=\"0\"><table>") && !page.contains("<script"), "{page}");
        assert!(of_text("n", "a < b", None).contains("<pre tabindex=\"0\">a &lt; b</pre>"));
    }
}
