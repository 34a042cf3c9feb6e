//! The first view: what is worst now, with its cause and since when; then the grid. And what is known of a host.

use super::action::{Action, form};
use super::{Reader, address, shell, time};
use crate::doc::capitalised;
use crate::style::Tone;
use crate::words::clean;
use maud::{Markup, html};
use narrows_model::run::fleet::{AgentState, FleetHost, FleetIncident, FleetMute, FleetStatus};
use narrows_model::run::grid::{CellState, Grid, GridMetric};
use narrows_model::words::date;

/// Something that is bad, and what can be done about it here.
#[derive(Debug, Clone, Default)]
pub struct Trouble {
    /// Of an incident.
    pub number: Option<u64>,
    pub element: String,
    pub says: String,
    /// Its cause and fix, where they are known.
    pub cause: Option<String>,
    pub since_unix_ms: u64,
    pub acknowledged: Option<String>,
    /// It is neither bad nor well, as far as is known.
    pub is_undecided: bool,
    /// What says more: its name and address.
    pub links: Vec<(String, String)>,
}

/// The first view.
#[derive(Debug, Clone, Default)]
pub struct Front {
    pub word: &'static str,
    pub tone: Option<Tone>,
    pub says: String,
    pub at_unix_ms: u64,
    /// The host that the page is of; `None`: it is of a fleet.
    pub host: Option<String>,
    /// The worst first.
    pub troubles: Vec<Trouble>,
    pub warnings: Vec<String>,
    /// Of what nothing is reported now.
    pub mutes: Vec<FleetMute>,
    /// Whether tests can be paused here.
    pub pauses: bool,
    pub paused: bool,
    /// The stored mesh that the grid is of: its run, and when it began.
    pub mesh: Option<(String, u64)>,
}

/// The first view of a fleet.
pub fn of_fleet(status: &FleetStatus) -> Front {
    let (word, tone) = crate::fleet::word(status);
    let trouble = |it: &FleetIncident| Trouble {
        number: Some(it.number),
        element: it.element.clone(),
        says: it.says.clone(),
        cause: it.diagnosis.clone(),
        since_unix_ms: it.since_unix_ms,
        acknowledged: it.acknowledged.clone(),
        is_undecided: false,
        links: links(&it.element, &status.hosts),
    };
    let mut troubles: Vec<Trouble> = status.incidents.iter().map(trouble).collect();
    // What somebody has in hand asks for less attention than what nobody has, a silent agent for less than a slow network, and a path for
    // less than a host or a group; of these the oldest is first.
    troubles.sort_by_key(|it| {
        (it.acknowledged.is_some(), it.element.starts_with("agent "), narrowness(&it.element), it.since_unix_ms)
    });
    let paused =
        status.paused_until_unix_ms.map(|until| format!("paused: no test begins before {}", date::utc(until / 1_000)));
    let trouble = status.trouble.as_ref().map(|why| format!("the controller's store fails: {why}"));
    Front {
        word,
        tone: Some(tone),
        says: crate::fleet::sentence(status),
        at_unix_ms: status.at_unix_ms,
        host: None,
        troubles,
        paused: paused.is_some(),
        warnings: paused.into_iter().chain(trouble).chain(status.alerts_trouble.clone()).collect(),
        mutes: status.muted.clone(),
        pauses: true,
        mesh: None,
    }
}

/// How little of a fleet an element is: 0 is all of it.
fn narrowness(element: &str) -> usize {
    let wide: [&[&str]; 3] =
        [&["all "], &["the paths ", "the network between ", "the agents of ", "router "], &["host "]];
    wide.iter().position(|begins| begins.iter().any(|it| element.starts_with(it))).unwrap_or(wide.len())
}

/// The hosts that an element names, and the path between two.
fn links(element: &str, hosts: &[FleetHost]) -> Vec<(String, String)> {
    let is = |word: &str| hosts.iter().any(|host| host.name == word);
    let words = element.split([' ', '(', ')', ',']).filter(|word| is(word));
    let named: Vec<&str> = words.collect();
    let mut links: Vec<(String, String)> =
        named.iter().map(|name| (format!("host {name}"), address("host", &[("name", name)]))).collect();
    if let [from, to] = named[..] {
        links.push((format!("{from} to {to}"), address("path", &[("from", from), ("to", to)])));
    }
    links
}

const fn class(tone: Option<Tone>) -> &'static str {
    match tone {
        Some(Tone::Good) => "good",
        Some(Tone::Bad) => "bad",
        _ => "mark",
    }
}

/// The first view as a page.
pub fn front(reader: &Reader<'_>, front: &Front, grid: &Grid, metrics: &[GridMetric]) -> String {
    let main = html! {
        div data-live=(address("", &[])) { (worst(reader, front)) }
        @if let Some(host) = &front.host {
            p.links { a href=(address("host", &[("name", host)])) { "This host: what limits its connections now, its settings and runs" } }
            @if reader.key.is_some() { p.links { a href=(address("test", &[])) { "Test a path of this host" } } }
        }
        @if grid.hosts.len() > 1 { (drawn(grid, metrics, front.mesh.as_ref())) }
        @if front.pauses && reader.key.is_some() { (pause(reader, front)) }
    };
    shell(reader, reader.site, &main)
}

/// What is worst now.
fn worst(reader: &Reader<'_>, front: &Front) -> Markup {
    let class = format!("says {}", class(front.tone));
    html! {
        p class=(class) { strong { (front.word) } span { (clean(&front.says)) } }
        p.at { "As of " (time(front.at_unix_ms)) }
        @for warning in &front.warnings { p.says.mark { strong { "Note" } span { (clean(warning)) } } }
        @for it in &front.mutes { (mute(reader, it)) }
        @if !front.troubles.is_empty() {
            h2.first { @if front.troubles.iter().all(|it| it.is_undecided) { "Not decided" } @else { "Worst now" } }
            ol.troubles { @for it in front.troubles.iter().take(SHOWN) { (trouble(reader, it)) } }
            @if front.troubles.len() > SHOWN {
                @let others = &front.troubles[SHOWN..];
                details.others {
                    summary { (others.len()) " others" }
                    ul { @for it in others.iter().take(LISTED) { li { (clean(&it.element)) ": " (clean(&it.says)) ", since " (time(it.since_unix_ms)) } } }
                    @if others.len() > LISTED { p { "and " (others.len() - LISTED) " more; the report has all" } }
                }
            }
        }
    }
}

/// Of what nothing is reported, until when, and how to end that.
fn mute(reader: &Reader<'_>, it: &FleetMute) -> Markup {
    html! {
        div.says.mark {
            strong { "Muted" }
            div {
                (clean(&it.element)) " until " (time(it.until_unix_ms))
                @if let Some(key) = reader.key {
                    div.acts {
                        (form(key, Action::Unmute, &html! {
                            input type="hidden" name="element" value=(clean(&it.element));
                            button { "Report again" span.sr { " " (clean(&it.element)) } }
                        }))
                    }
                }
            }
        }
    }
}

/// What is worst is shown with all that is known of it; then a line each.
const SHOWN: usize = 8;
const LISTED: usize = 100;

fn trouble(reader: &Reader<'_>, it: &Trouble) -> Markup {
    html! {
        li class=[it.is_undecided.then_some("open")] {
            h3 { (capitalised(&clean(&it.element))) }
            p { (clean(&it.says)) }
            @if let Some(cause) = &it.cause { p.cause { strong { "Cause: " } (clean(cause)) } }
            p.meta {
                "since " (time(it.since_unix_ms))
                @if let Some(number) = it.number { " · incident " (number) }
                @if let Some(who) = &it.acknowledged { " · " (clean(who)) " has it in hand" }
                @for (word, to) in &it.links { " · " a href=(to) { (clean(word)) } }
            }
            @if let Some(key) = reader.key.filter(|_| it.number.is_some() || it.element.ends_with('*')) {
                div.acts {
                    @if let Some(number) = it.number.filter(|_| it.acknowledged.is_none()) {
                        (form(key, Action::Acknowledge, &html! {
                            input type="hidden" name="incident" value=(number);
                            label { "Your name " input name="who" required maxlength="60" autocomplete="nickname"; }
                            button { "Acknowledge" span.sr { " incident " (number) } }
                        }))
                    }
                    (form(key, Action::Mute, &html! {
                        input type="hidden" name="element" value=(clean(&it.element));
                        label { "For " select name="hours" { option value="1" { "1 hour" } option value="4" { "4 hours" } option value="24" { "1 day" } } }
                        button { "Mute" span.sr { " " (clean(&it.element)) } }
                    }))
                }
            }
        }
    }
}

fn pause(reader: &Reader<'_>, front: &Front) -> Markup {
    let Some(key) = reader.key else { return html! {} };
    html! {
        h2 { "Tests" }
        div.acts {
            @if front.paused {
                (form(key, Action::Resume, &html! { button { "Begin tests again" } }))
            } @else {
                (form(key, Action::Pause, &html! {
                    label { "For " select name="hours" { option value="1" { "1 hour" } option value="4" { "4 hours" } } }
                    button { "Pause all tests" }
                }))
            }
        }
    }
}

/// The grid, which the script draws, with its legend and its other forms.
fn drawn(grid: &Grid, metrics: &[GridMetric], mesh: Option<&(String, u64)>) -> Markup {
    let metric = grid.metric;
    html! {
        section.paths aria-labelledby="paths" {
            h2 #paths { "Paths" }
            @if let Some((id, at)) = mesh { p.at { "From the " a href=(address("run", &[("id", id)])) { "mesh" } " of " (time(*at)) } }
            p.links {
                @for it in metrics {
                    @let to = address("", &[("metric", it.word())]);
                    @if *it == metric { a href=(to) aria-current="true" { (title(*it)) } } @else { a href=(to) { (title(*it)) } }
                    " "
                }
                a href=(address("table", &[("metric", metric.word())])) { "As tables" }
                " "
                a href=(address("paths.csv", &[("metric", metric.word())])) { "CSV" }
            }
            p { small { (says(metric)) } }
            ul.legend { @for state in CellState::ALL { li { i class={ "c-" (state.letter()) } aria-hidden="true" {} " " (words(state, metric)) } } }
            div.grid data-grid=(address("grid.json", &[("metric", metric.word())])) data-path=(address("path", &[]))
                data-host=(address("host", &[])) data-bad=(words(CellState::Bad, metric)) {
                noscript { p { "The grid is drawn by a script; " a href=(address("table", &[("metric", metric.word())])) { "the tables" } " say the same." } }
            }
        }
    }
}

pub(super) const fn title(metric: GridMetric) -> &'static str {
    match metric {
        GridMetric::Goodput => "Goodput",
        GridMetric::RoundTrip => "Round trip",
        GridMetric::Loss => "Loss",
    }
}

/// What the grid shows, in a sentence beside it.
pub(super) const fn says(metric: GridMetric) -> &'static str {
    match metric {
        GridMetric::Goodput => {
            "A row is what a host sends, a column what a host receives: the last load of each path, Mbit/s."
        }
        GridMetric::RoundTrip => {
            "A row is the host that sends, a column the one that answers: the median of the last probe, ms."
        }
        GridMetric::Loss => {
            "A row is the host that sends, a column the one that receives: lost packets of the last probe, %."
        }
    }
}

pub(super) const fn words(state: CellState, metric: GridMetric) -> &'static str {
    match (state, metric) {
        (CellState::Bad, GridMetric::Loss) => "loses packets",
        (CellState::Bad, _) => "slow",
        (CellState::Failed, _) => "failed",
        (CellState::Missing, _) => "missing",
        (CellState::Monitor, _) => "monitor's fault (no CPU time)",
        (CellState::NotTested, _) => "not tested",
        (CellState::Good, _) => "good",
    }
}

/// What is known of a host.
#[derive(Debug, Default)]
pub struct Host<'a> {
    pub name: &'a str,
    pub of_fleet: Option<&'a FleetHost>,
    pub troubles: Vec<&'a Trouble>,
    /// What limits its connections now, as a page of a report, and when that was read.
    pub connections: Option<(String, u64)>,
    /// Its settings and interfaces, as a page of a report.
    pub settings: Option<String>,
    /// Runs of the store that it took part in, as a page of a report.
    pub runs: Option<String>,
    /// Changes of its settings that can be undone here: their ids, and what they are.
    pub changes: Vec<(String, String)>,
    /// Each other host, with how the path to it and the path from it are.
    pub paths: Vec<(&'a str, [CellState; 2])>,
}

/// The page of a host.
pub fn host(reader: &Reader<'_>, host: &Host<'_>) -> String {
    let to = |from: &str, to: &str, state: CellState| {
        let here = address("path", &[("from", from), ("to", to)]);
        html! { i class={ "c-" (state.letter()) } aria-hidden="true" {} " " a href=(here) { (words(state, GridMetric::Goodput)) span.sr { ": " (clean(from)) " to " (clean(to)) } } }
    };
    let main = html! {
        @if let Some(it) = host.of_fleet {
            p {
                (agent(it.state))
                @if !it.group.is_empty() { ", group " (clean(&it.group)) }
                @if let Some(address) = &it.address { ", from " (clean(address)) }
                @if let Some(version) = &it.version { ", narrows " (clean(version)) }
                @if let Some(heard) = it.heard_unix_ms { ", last heard of " (time(heard)) }
            }
        }
        @if !host.troubles.is_empty() {
            h2 { "Incidents" }
            ol.troubles { @for it in &host.troubles { (trouble(reader, it)) } }
        }
        @if !host.paths.is_empty() {
            h2 { "Paths" }
            div.table role="group" aria-label="table" tabindex="0" { table {
                thead { tr { th scope="col" { "host" } th scope="col" { "to it" } th scope="col" { "from it" } } }
                tbody { @for (other, [there, back]) in &host.paths {
                    tr { td { a href=(address("host", &[("name", other)])) { (clean(other)) } } td { (to(host.name, other, *there)) } td { (to(other, host.name, *back)) } }
                } }
            } }
        }
        @if !host.changes.is_empty() {
            h2 { "Settings that narrows changed" }
            ul { @for (id, says) in &host.changes { li {
                (clean(says)) " "
                @if let Some(key) = reader.key {
                    (form(key, Action::Undo, &html! {
                        input type="hidden" name="change" value=(clean(id));
                        button { "Undo" span.sr { " " (clean(says)) } }
                    }))
                }
            } } }
        }
        @if let Some((part, at)) = &host.connections {
            h2 { "Connections now" }
            p.at { "Read at " (time(*at)) }
            (maud::PreEscaped(crate::page::content(part)))
        }
        @for part in [&host.settings, &host.runs].into_iter().flatten() { (maud::PreEscaped(crate::page::content(part))) }
    };
    shell(reader, &format!("Host {}", host.name), &main)
}

const fn agent(state: AgentState) -> &'static str {
    match state {
        AgentState::Up => "Its agent answers",
        AgentState::Silent => "Its agent is silent",
        AgentState::Never => "Its agent was never seen",
        AgentState::Drained => "It is drained: it gets no tests",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, is_text};
    use super::*;
    use narrows_model::run::grid::GridGroup;
    use std::collections::BTreeMap;

    #[test]
    fn silent_agents_are_one_trouble_and_all_words_are_text() {
        let incident = |number: u64| FleetIncident {
            number,
            element: format!("agent {HOSTILE}{number}"),
            says: HOSTILE.to_owned(),
            since_unix_ms: number,
            acknowledged: None,
            diagnosis: Some(HOSTILE.to_owned()),
            reported: true,
        };
        let mut troubles: Vec<Trouble> = (0..50)
            .map(incident)
            .map(|it| Trouble { number: Some(it.number), element: it.element, says: it.says, ..Trouble::default() })
            .collect();
        let other = Trouble { cause: Some(HOSTILE.to_owned()), ..troubles[0].clone() };
        troubles.extend(vec![other; 30]);
        let mutes = vec![FleetMute { element: HOSTILE.to_owned(), until_unix_ms: 90_000 }];
        let it = Front { word: "BAD", says: HOSTILE.to_owned(), troubles, mutes, pauses: true, ..Front::default() };
        let groups = vec![GridGroup { name: HOSTILE.to_owned(), hosts: [0, 2] }];
        let hosts = vec![HOSTILE.to_owned(); 2];
        let grid = Grid { metric: GridMetric::Loss, hosts, groups, cells: BTreeMap::new() };
        for key in [None, Some("k")] {
            let reader = Reader { site: HOSTILE, name: HOSTILE, key, out: key, said: None };
            let page = front(&reader, &it, &grid, &GridMetric::ALL);
            is_text(&page);
            assert_eq!(page.contains("method=\"post\" action=\"/web/do\""), key.is_some(), "only who may changes");
        }
    }

    #[test]
    fn what_is_muted_has_a_button_that_ends_it_for_who_may() {
        let mutes = vec![FleetMute { element: "group <west>".to_owned(), until_unix_ms: 90_000 }];
        let it = Front { mutes, ..Front::default() };
        let grid = Grid { metric: GridMetric::Loss, hosts: Vec::new(), groups: Vec::new(), cells: BTreeMap::new() };
        let shown = |key| front(&Reader { site: "x", name: "x", key, out: key, said: None }, &it, &grid, &[]);
        let says = "<div class=\"says mark\"><strong>Muted</strong><div>group &lt;west&gt; until \
                    <time datetime=\"1970-01-01T00:01:30Z\">1970-01-01 00:01 UTC</time>";
        let acts = "<div class=\"acts\"><form method=\"post\" action=\"/web/do\">\
                    <input type=\"hidden\" name=\"key\" value=\"k\">\
                    <input type=\"hidden\" name=\"what\" value=\"unmute\">\
                    <input type=\"hidden\" name=\"element\" value=\"group &lt;west&gt;\">\
                    <button>Report again<span class=\"sr\"> group &lt;west&gt;</span></button></form></div>";
        assert!(shown(Some("k")).contains(&format!("{says}{acts}</div></div>")), "{}", shown(Some("k")));
        assert!(shown(None).contains(&format!("{says}</div></div>")), "{}", shown(None));
    }

    #[test]
    fn what_is_not_decided_is_not_called_the_worst() {
        let reader = Reader { site: "x", name: "x", key: None, out: None, said: None };
        let grid = Grid { metric: GridMetric::Loss, hosts: Vec::new(), groups: Vec::new(), cells: BTreeMap::new() };
        let shown = |all: &[bool]| {
            let troubles = all.iter().map(|it| Trouble { is_undecided: *it, ..Trouble::default() }).collect();
            front(&reader, &Front { troubles, ..Front::default() }, &grid, &[])
        };
        assert!(shown(&[true]).contains(">Not decided</h2>"), "{}", shown(&[true]));
        assert!(shown(&[false, true]).contains(">Worst now</h2>"), "{}", shown(&[false, true]));
    }

    #[test]
    fn what_is_shown_of_then_has_its_time() {
        let reader = Reader { site: "x", name: "x", key: None, out: None, said: None };
        let names = || vec!["a".to_owned(), "b".to_owned()];
        let grid = Grid { metric: GridMetric::Loss, hosts: names(), groups: Vec::new(), cells: BTreeMap::new() };
        let mut it = Front { mesh: Some(("m7".to_owned(), 90_000)), ..Front::default() };
        let page = front(&reader, &it, &grid, &GridMetric::ALL);
        assert!(page.contains("/web/run?id=m7") && page.contains("1970-01-01 00:01 UTC"), "{page}");
        it.mesh = None;
        assert!(!front(&reader, &it, &grid, &GridMetric::ALL).contains("From the"));
        let connections = Some(("<main>none</main>".to_owned(), 90_000));
        let page = host(&reader, &Host { name: "a", connections, ..Host::default() });
        let read = "Read at <time datetime=\"1970-01-01T00:01:30Z\">1970-01-01 00:01 UTC</time></p>none";
        assert!(page.contains(read), "{page}");
    }
}
