//! The other views: login, a path over time, the list of runs, two runs side by side, and what a search finds.

use super::{Reader, address, downloads, head, shell, time};
use crate::history::value;
use crate::page;
use crate::words::clean;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use narrows_model::run::history::{HistoryReport, StoredRun};

/// Asks for a token.
pub fn login(next: &str, why: Option<&str>) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head("Log in"))
            body.web { main #main {
                h1 { "narrows" }
                @if let Some(why) = why { p.says.bad role="alert" { strong { "Error" } span { (clean(why)) } } }
                form.login method="post" action=(address("login", &[])) {
                    input type="hidden" name="next" value=(clean(next));
                    label for="token" { "Token" }
                    input #token type="password" name="token" required autofocus autocomplete="current-password" maxlength="200" aria-describedby="which";
                    p #which { small { "The token of its users lets you acknowledge, mute and pause; that of a reader shows the page and changes nothing." } }
                    button { "Log in" }
                }
            } }
        }
    };
    page.into_string()
}

/// Times that a path is shown of, as addresses and readers have them.
const SPANS: [(&str, &str); 4] = [("6", "6 hours"), ("24", "a day"), ("168", "a week"), ("744", "a month")];

/// A path over time. `series`: its report as HTML, where there is one; `runs`: those of the store between its hosts.
pub fn path(
    reader: &Reader<'_>,
    [from, to]: [&str; 2],
    hours: &str,
    series: Option<&str>,
    list: Option<&HistoryReport>,
) -> String {
    let of = |path: &str, hours: &str| address(path, &[("from", from), ("to", to), ("hours", hours)]);
    let main = html! {
        p.links {
            a href=(address("host", &[("name", from)])) { (clean(from)) } " to "
            a href=(address("host", &[("name", to)])) { (clean(to)) } " · "
            a href=(address("path", &[("from", to), ("to", from), ("hours", hours)])) { "the other direction" }
        }
        @if let Some(series) = series {
            p.links {
                @for (word, name) in SPANS { a href=(of("path", word)) aria-current=[(word == hours).then_some("true")] { (name) } " " }
            }
            (PreEscaped(page::content(series)))
            (downloads(&["json", "csv", "svg"].map(|it| (it, of(&format!("path.{it}"), hours)))))
        }
        @if let Some(list) = list { h2 { "Runs between them" } (runs_table(list)) }
    };
    shell(reader, &format!("Path {from} to {to}"), &main)
}

/// The list of runs.
pub fn runs(reader: &Reader<'_>, report: &HistoryReport, host: &str) -> String {
    let shown = report.runs.len() as u64;
    let page = |offset: u64| address("runs", &[("host", host), ("offset", &offset.to_string())]);
    let main = html! {
        form.acts action=(address("runs", &[])) {
            label { "Host " input name="host" value=(clean(host)) maxlength="200"; }
            button { "Show" }
        }
        form action=(address("compare", &[])) {
            (runs_table(report))
            @if shown > 1 { p { button { "Compare the two that are marked" } } }
        }
        p.links {
            @if report.offset > 0 { a rel="prev" href=(page(report.offset.saturating_sub(50))) { "Newer" } " " }
            @if report.offset + shown < report.total { a rel="next" href=(page(report.offset + shown)) { "Older" } }
        }
    };
    shell(reader, "Runs", &main)
}

/// The list of runs, without a page around it.
pub fn listed(report: &HistoryReport) -> String {
    html! { main { h2 { "Runs" } (runs_table(report)) } }.into_string()
}

fn runs_table(report: &HistoryReport) -> Markup {
    if report.runs.is_empty() {
        return html! { p { "There are none in the store." } };
    }
    let row = |run: &StoredRun| {
        let figure = run.figures.first().map(|it| format!("{}: {}", it.name, value(it.unit, it.value)));
        let id = clean(&run.id);
        html! { tr {
            td { input type="checkbox" name="id" value=(id) aria-label={ "mark run " (id) }; }
            td { a href=(address("run", &[("id", &run.id)])) { (time(run.started_unix_us / 1_000)) } }
            td { (clean(&run.command)) }
            td { (clean(&run.client)) @if !run.server.is_empty() { " to " (clean(&run.server)) } }
            td { (clean(&figure.unwrap_or_default())) }
            td class=(if run.verdict.starts_with("limited") { "bad" } else { "" }) { (clean(&run.verdict)) }
        } }
    };
    html! {
        div.table role="group" aria-label="table" tabindex="0" { table {
            caption { "Runs, the newest first " small { "of " (report.total) } }
            thead { tr { td {} @for it in ["began", "command", "hosts", "figure", "verdict"] { th scope="col" { (it) } } } }
            tbody { @for run in &report.runs { (row(run)) } }
        } }
    }
}

/// Two runs side by side; `diff`: what differs, where both are diagnoses.
pub fn side_by_side(reader: &Reader<'_>, runs: [(&str, &str); 2], diff: Option<&str>) -> String {
    let main = html! {
        @if let Some(diff) = diff { section { (PreEscaped(page::content(diff))) } }
        div.sides {
            @for (id, document) in runs { section {
                h2 { a href=(address("run", &[("id", id)])) { (clean(id)) } }
                (PreEscaped(page::content(document)))
            } }
        }
    };
    shell(reader, "Two runs", &main)
}

/// What a search finds: names and addresses.
pub fn found(reader: &Reader<'_>, asked: &str, found: &[(String, String)]) -> String {
    let main = html! {
        @if found.is_empty() { p { "Nothing is called “" (clean(asked)) "”: a search finds hosts, two hosts (a path) and ids of runs." } }
        @else { (list(found)) }
    };
    shell(reader, "Search", &main)
}

/// Links below each other.
fn list(links: &[(String, String)]) -> Markup {
    html! { ul { @for (word, to) in links { li { a href=(to) { (clean(word)) } } } } }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, is_text};
    use super::*;
    use narrows_model::run::history::SCHEMA;

    #[test]
    fn what_others_said_is_text_in_every_view() {
        let reader = Reader { site: HOSTILE, name: HOSTILE, key: Some("k"), out: Some("k") };
        let text = || HOSTILE.to_owned();
        let run = StoredRun {
            id: text(),
            started_unix_us: 1,
            who: text(),
            client: text(),
            server: text(),
            server_name: text(),
            family: text(),
            command: text(),
            plan: text(),
            tags: vec![text()],
            figures: Vec::new(),
            verdict: text(),
            made_by: text(),
            raw_bytes: 1,
            stored_bytes: 1,
        };
        let report = HistoryReport { schema: SCHEMA.to_owned(), offset: 1, total: 99, runs: vec![run] };
        for page in [
            login(HOSTILE, Some(HOSTILE)),
            path(&reader, [HOSTILE; 2], HOSTILE, Some("<main></main>"), Some(&report)),
            runs(&reader, &report, HOSTILE),
            side_by_side(&reader, [(HOSTILE, "<main></main>"); 2], None),
            found(&reader, HOSTILE, &[]),
            found(&reader, HOSTILE, &[(text(), address("run", &[("id", HOSTILE)]))]),
        ] {
            is_text(&page);
        }
    }
}
