//! A report as one page that needs no other file: no script, no font, no external picture. It follows the reader's choice of light or
//! dark, prints on white, and has a table for each picture.

use crate::words::clean;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The page may fetch and run nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The style of reports.
pub(crate) const STYLE: &str = include_str!("page.css");

/// A whole page: its name, a line below it, and its content.
pub fn document(name: &str, below: Option<&str>, main: &Markup) -> String {
    let name = clean(name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (name) }
                style { (PreEscaped(STYLE)) }
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

/// The content of a whole page, for another page; what reports say is escaped, so nothing in it looks like the ends.
pub fn content(document: &str) -> &str {
    let after = document.split_once("<main>").map_or("", |(_, after)| after);
    after.rsplit_once("</main>").map_or("", |(content, _)| content)
}

/// A picture in the page; empty without one.
pub fn figure(svg: Option<String>) -> Markup {
    html! { @if let Some(svg) = svg { figure tabindex="0" { (PreEscaped(svg)) } } }
}

/// Lines of the verdict under one word: a paragraph, or a list where there are several.
pub fn says(class: &str, what: &str, lines: &[String]) -> Markup {
    let class = format!("says {class}");
    html! {
        @match lines {
            [] => {}
            [one] => p class=(class) { strong { (clean(what)) } span { (clean(one)) } },
            all => div class=(class) { strong { (clean(what)) } ul { @for line in all { li { (clean(line)) } } } },
        }
    }
}
