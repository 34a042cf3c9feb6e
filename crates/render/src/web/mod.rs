//! The page that a fleet's controller and a server show a browser: written here as HTML, with one style sheet and one script of its own.
//! Nothing is loaded from elsewhere, and everything but the drawn grid works without the script.

mod action;
mod address;
mod front;
mod grid;
mod newest;
mod parts;

pub use action::Action;
pub use address::{AT, address};
pub use front::{Front, Host, Trouble, front, host, of_fleet};
pub use grid::{blocks, csv, fold, table};
pub use newest::of_runs;
pub use parts::{Test, as_text, found, listed, live_test, login, path, runs, side_by_side};

use crate::page;
use crate::words::clean;
use maud::{DOCTYPE, Markup, html};
use narrows_model::words::date;

/// Of reports, and of what only this page has.
pub fn style() -> String {
    [page::STYLE, include_str!("page.css")].concat()
}

/// The script, without its comments and indents.
pub fn script() -> String {
    let lines = include_str!("page.js").lines().map(str::trim_start);
    lines.filter(|line| !line.is_empty() && !line.starts_with("// ")).flat_map(|line| [line, "\n"]).collect()
}

/// Who reads the page.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    /// What the page is of.
    pub site: &'a str,
    /// Who it is, for the eye.
    pub name: &'a str,
    /// What a form must show; `None`: it may only be read.
    pub key: Option<&'a str>,
    /// What the form must show that ends the session; `None`: there is none.
    pub out: Option<&'a str>,
    /// What the reader's last action did, where no page has shown it yet.
    pub said: Option<&'a str>,
}

/// A time in UTC; the script adds that of the reader's zone.
fn time(unix_ms: u64) -> Markup {
    let utc = date::utc(unix_ms / 1_000);
    html! { time datetime=(utc) { (utc.get(..16).unwrap_or_default().replace('T', " ")) " UTC" } }
}

/// A page of the site.
fn shell(reader: &Reader<'_>, title: &str, main: &Markup) -> String {
    let title = clean(title);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title))
            body.web {
                a.skip href="#main" { "To the content" }
                header {
                    a.home href=(AT) { "narrows " strong { (clean(reader.site)) } }
                    form.search action=(address("search", &[])) role="search" {
                        input type="search" name="q" aria-label="Search hosts, paths and runs" placeholder="host, path or run ( / )" maxlength="200";
                    }
                    nav aria-label="pages" {
                        a href=(AT) { "Now" }
                        a href=(address("runs", &[])) { "Runs" }
                        a href=(address("report", &[])) { "Report" }
                    }
                    @if let Some(key) = reader.out {
                        form.out method="post" action=(address("logout", &[])) {
                            input type="hidden" name="key" value=(clean(key));
                            button title=(clean(reader.name)) { "Log out" }
                        }
                    }
                }
                main id="main" {
                    h1 { (title) }
                    @if let Some(said) = reader.said { p.says.good role="status" { strong { "Done" } span { (clean(said)) } } }
                    (main)
                }
            }
        }
    };
    page.into_string()
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (title) " – narrows" }
            link rel="stylesheet" href=(address("page.css", &[]));
            link rel="icon" href="data:,";
            script src=(address("page.js", &[])) defer {}
        }
    }
}

/// A report in words, as a terminal has them. `document`: as HTML.
pub fn report(reader: &Reader<'_>, title: &str, document: &str, links: &[(&str, String)]) -> String {
    let main = html! {
        @if !links.is_empty() { (downloads(links)) }
        (maud::PreEscaped(page::content(document)))
    };
    shell(reader, title, &main)
}

/// Why something is not shown.
pub fn refused(reader: &Reader<'_>, why: &str) -> String {
    let main = html! {
        p.says.bad role="alert" { strong { "Error" } span { (clean(why)) } }
        p.links { a href=(AT) { "Home" } }
    };
    shell(reader, "Not shown", &main)
}

fn downloads(links: &[(&str, String)]) -> Markup {
    html! { p.links { @for (word, to) in links { a href=(to) { (word) } " " } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&\u{202e}\x1b[31m";

    pub(super) fn is_text(page: &str) {
        for wrong in ["<img", "\x1b", "\u{202e}", "onerror=alert(1)>\""] {
            assert!(!page.contains(wrong), "{wrong:?} in {page}");
        }
        // What the policy of the page forbids, so that it would not work.
        for wrong in [" style=", "<style", " onclick", "javascript:"] {
            assert!(!page.contains(wrong), "{wrong} in {page}");
        }
    }

    #[test]
    fn script_and_style_are_small() {
        let script = script();
        assert!(script.len() <= 20 << 10, "{} bytes of script", script.len());
        assert!(include_str!("page.css").len() <= 10 << 10, "{} bytes of style", include_str!("page.css").len());
        for wrong in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "http://", "https://"] {
            assert!(!script.contains(wrong), "{wrong} in the script");
        }
    }

    #[test]
    fn words_in_an_address_stay_words() {
        assert_eq!(
            address("path", &[("from", "a&b=c/?#"), ("to", "ü")]),
            "/web/path?from=a%26b%3Dc%2F%3F%23&to=%C3%BC"
        );
        let hostile = Some(HOSTILE);
        let reader = Reader { site: HOSTILE, name: HOSTILE, key: hostile, out: hostile, said: hostile };
        is_text(&report(&reader, HOSTILE, "<main><p>x</p></main>", &[("JSON", address("x", &[("id", HOSTILE)]))]));
        is_text(&refused(&reader, HOSTILE));
    }
}
