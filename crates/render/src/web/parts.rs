//! The other views: login, a path over time, the list of runs, two runs side by side, and what a search finds.

use super::action::{Action, form};
use super::{Reader, address, downloads, head, shell, time};
use crate::doc::capitalised;
use crate::history::value;
use crate::page;
use crate::words::clean;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use narrows_model::run::history::{HistoryReport, StoredRun};

/// Asks for a token.
pub fn login(next: &str, why: Option<&str>, which: &str) -> String {
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
                    p #which { small { (clean(which)) } }
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
            // Of a longer time little is new in a minute.
            @let live = ["6", "24"].contains(&hours).then(|| of("path", hours));
            div data-live=[live] data-each="60" { (PreEscaped(page::content(series))) }
            (downloads(&["json", "csv", "svg"].map(|it| (it, of(&format!("path.{it}"), hours)))))
            @if let Some(key) = reader.key {
                div.acts { (form(key, Action::Test, &html! {
                    input type="hidden" name="from" value=(clean(from));
                    input type="hidden" name="to" value=(clean(to));
                    button { "Test this path now" }
                })) }
            }
        }
        @if let Some(list) = list {
            @let shown = list.runs.len() as u64;
            h2 { "Runs between them" }
            (comparable(list))
            @if list.total > shown { p.links { a rel="next" href=(listing([from, to], shown)) { "Older" } } }
        }
    };
    shell(reader, &format!("Path {from} to {to}"), &main)
}

/// Where the list of runs of a host, or between two, goes on.
fn listing([host, peer]: [&str; 2], offset: u64) -> String {
    address("runs", &[("host", host), ("peer", peer), ("offset", &offset.to_string())])
}

/// The list of runs: of a host, or between two.
pub fn runs(reader: &Reader<'_>, report: &HistoryReport, hosts: [&str; 2]) -> String {
    let shown = report.runs.len() as u64;
    let page = |offset: u64| listing(hosts, offset);
    let main = html! {
        form.acts action=(address("runs", &[])) {
            label { "Host " input name="host" value=(clean(hosts[0])) maxlength="200"; }
            label { "Other host " input name="peer" value=(clean(hosts[1])) maxlength="200"; }
            button { "Show" }
        }
        (comparable(report))
        p.links {
            @if report.offset > 0 { a rel="prev" href=(page(report.offset.saturating_sub(50))) { "Newer" } " " }
            @if report.offset + shown < report.total { a rel="next" href=(page(report.offset + shown)) { "Older" } }
        }
    };
    shell(reader, "Runs", &main)
}

/// The list of runs, without a page around it.
pub fn listed(report: &HistoryReport) -> String {
    html! { main { h2 { "Runs" } (comparable(report)) } }.into_string()
}

/// A report that has no page of its own, as it is on a terminal.
pub fn as_text(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    html! { main { pre tabindex="0" { (lines.join("\n")) } } }.into_string()
}

/// Runs of which two can be compared.
fn comparable(report: &HistoryReport) -> Markup {
    html! { form action=(address("compare", &[])) {
        (runs_table(report))
        @if report.runs.len() > 1 { p { button { "Compare the two that are marked" } } }
    } }
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
            caption { "Runs, the newest first " small { (report.runs.len()) " of " (report.total) } }
            thead { tr { td {} @for it in ["began", "command", "hosts", "figure", "verdict"] { th scope="col" { (it) } } } }
            tbody { @for run in &report.runs { (row(run)) } }
        } }
    }
}

/// A test of this host that a reader started.
#[derive(Debug, Clone, Default)]
pub struct Test {
    /// What it is: `diagnosis of the path to b`.
    pub says: String,
    pub by: String,
    pub began_unix_ms: u64,
    /// What it has said so far.
    pub lines: Vec<String>,
    /// How it ended; `None`: it goes on.
    pub ended: Option<String>,
    /// The id of its run.
    pub run: Option<String>,
}

/// The last test of this host as it goes on, and a form for another one. `ends`: where to, as far as this host has tokens; `to`: the one
/// that is asked for.
pub fn live_test(reader: &Reader<'_>, test: Option<&Test>, ends: &[String], to: &str) -> String {
    let goes_on = test.is_some_and(|it| it.ended.is_none());
    let main = html! {
        @if let Some(it) = test {
            @let events = address("test/events", &[("began", &it.began_unix_ms.to_string()), ("after", &it.lines.len().to_string())]);
            h2 { (capitalised(&clean(&it.says))) }
            p.meta { "Begun " (time(it.began_unix_ms)) " with the token “" (clean(&it.by)) "”" @if goes_on { "; it is under way" } }
            pre.log role="log" tabindex="0" aria-label="What it says" data-events=[goes_on.then_some(&events)] {
                @for line in &it.lines { (clean(line)) "\n" }
            }
            @if let Some(ended) = &it.ended { p { strong { "Ended: " } (clean(ended)) } }
            @if let Some(id) = &it.run { p.links { a href=(address("run", &[("id", id)])) { "Its report, run " (clean(id)) } } }
        }
        @match reader.key {
            Some(key) if goes_on => div.acts { (form(key, Action::Stop, &html! {
                // Not another one that has begun meanwhile.
                @if let Some(it) = test { input type="hidden" name="began" value=(it.began_unix_ms); }
                button { "Stop it" }
            })) },
            Some(key) => {
                h2 { "Test a path" }
                @if ends.is_empty() { p { "This host has no other one’s token: store it once with " code { "narrows trust HOST --token-file FILE" } ", as the user of this server and with its " code { "NARROWS_STATE" } "." } }
                @else {
                p { small { "A diagnosis of about twenty seconds, with load. The other end is a host whose token this host has." } }
                div.acts { (form(key, Action::Test, &html! {
                    label { "Other end " select name="to" { @for end in ends { option selected[end == to] { (clean(end)) } } } }
                    label { "Data " select name="down" { option value="0" { "from here to it" } option value="1" { "from it to here" } } }
                    button { "Diagnose" }
                })) }
                }
            },
            None => p { "Only who may change something here starts tests." },
        }
    };
    shell(reader, "Test", &main)
}

/// A report beside another one: its ids, and the links to them, begin with its side. What reports say is escaped, so that nothing else of it
/// looks like them.
fn of_side(document: &str, side: &str) -> String {
    let own = page::content(document).replace(" id=\"", &format!(" id=\"{side}-"));
    own.replace("href=\"#", &format!("href=\"#{side}-"))
}

/// Two runs side by side; `diff`: what differs, where both are diagnoses.
pub fn side_by_side(reader: &Reader<'_>, runs: [(&str, &str); 2], diff: Option<&str>) -> String {
    let main = html! {
        @if let Some(diff) = diff { section { (PreEscaped(page::content(diff))) } }
        div.sides {
            @for ((id, document), side) in runs.into_iter().zip(["a", "b"]) { section {
                h2 { a href=(address("run", &[("id", id)])) { (clean(id)) } }
                (PreEscaped(of_side(document, side)))
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
        let reader = Reader { site: HOSTILE, name: HOSTILE, key: Some("k"), out: Some("k"), said: Some(HOSTILE) };
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
            login(HOSTILE, Some(HOSTILE), HOSTILE),
            path(&reader, [HOSTILE; 2], HOSTILE, Some("<main></main>"), Some(&report)),
            runs(&reader, &report, [HOSTILE; 2]),
            side_by_side(&reader, [(HOSTILE, "<main></main>"); 2], None),
            found(&reader, HOSTILE, &[]),
            live_test(&reader, None, &[text()], HOSTILE),
            live_test(
                &reader,
                Some(&Test {
                    says: text(),
                    by: text(),
                    lines: vec![text(); 3],
                    ended: Some(text()),
                    run: Some(text()),
                    ..Test::default()
                }),
                &[],
                "",
            ),
            live_test(&Reader { key: None, ..reader }, Some(&Test { lines: vec![text()], ..Test::default() }), &[], ""),
            found(&reader, HOSTILE, &[(text(), address("run", &[("id", HOSTILE)]))]),
        ] {
            is_text(&page);
        }
    }

    #[test]
    fn links_within_a_report_stay_on_its_side() {
        let reader = Reader { site: "x", name: "x", key: None, out: None, said: None };
        let mesh = "<main><a href=\"#load-0-1\">1</a><tr id=\"load-0-1\"></tr><p>id=&quot;x&quot;</p></main>";
        let page = side_by_side(&reader, [("m", mesh), ("n", mesh)], None);
        for once in ["id=\"a-load-0-1\"", "id=\"b-load-0-1\"", "href=\"#a-load-0-1\"", "href=\"#b-load-0-1\""] {
            assert_eq!(page.matches(once).count(), 1, "{once} in {page}");
        }
        assert!(!page.contains("\"load-0-1\"") && page.contains("<p>id=&quot;x&quot;</p>"), "{page}");
    }

    #[test]
    fn a_path_with_more_runs_than_are_shown_leads_to_the_others() {
        let reader = Reader { site: "x", name: "x", key: None, out: None, said: None };
        let of = |total| HistoryReport { schema: SCHEMA.to_owned(), offset: 0, total, runs: Vec::new() };
        let shown = |total| path(&reader, ["a", "b"], "24", None, Some(&of(total)));
        assert!(shown(3).contains("/web/runs?host=a&amp;peer=b&amp;offset=0"), "{}", shown(3));
        assert!(!shown(0).contains("Older"));
    }
}
