//! The grid as a browser gets it: folded by group first, then the cells between two groups at a time; and as tables without a script.

use super::front::{says, title, words};
use super::{Reader, address, shell, time};
use crate::words::clean;
use maud::{Markup, html};
use narrows_model::run::grid::{CellState, Grid, GridCell, GridGroup, GridMetric};
use narrows_model::words::units::{bps, grouped, percent};
use serde_json::{Value, json};

/// Cells that one answer has at most: what a large screen shows at a time.
const CELLS_MAX: usize = 40_000;

/// How many paths are so, in the order of their states.
#[derive(Clone, Default)]
struct Count([u32; 6]);

impl Count {
    fn add(&mut self, state: CellState) {
        self.0[state as usize] += 1;
    }

    /// Each state that is there but for untested paths, the worst first, and how many are so.
    fn known(&self) -> impl Iterator<Item = (CellState, u32)> {
        let all = CellState::ALL.into_iter().filter(|it| *it != CellState::NotTested);
        all.map(move |it| (it, self.0[it as usize])).filter(|(_, number)| *number > 0)
    }

    /// The same as a browser gets it: `b1f1599`.
    fn letters(&self) -> String {
        self.known().map(|(state, number)| format!("{}{number}", state.letter())).collect()
    }

    /// The same in words: `1 slow, 1,599 failed of 1,600`.
    fn says(&self, metric: GridMetric) -> String {
        let each = |(state, number): (CellState, u32)| format!("{} {}", grouped(number), words(state, metric));
        let all: Vec<String> = self.known().map(each).collect();
        let total: u32 = self.known().map(|(_, number)| number).sum();
        match all[..] {
            [] => words(CellState::NotTested, metric).to_owned(),
            _ => format!("{} of {}", all.join(", "), grouped(total)),
        }
    }

    /// What is shown of all of them: a single bad or failed one; else what most are, since of many paths some are always missing.
    fn shown(&self) -> CellState {
        let is = |state: &CellState| self.0[*state as usize] > 0;
        let first = [CellState::Bad, CellState::Failed].into_iter().find(is);
        let others = [CellState::Good, CellState::Monitor, CellState::Missing].into_iter().filter(is);
        first.or(others.max_by_key(|it| self.0[*it as usize])).unwrap_or(CellState::NotTested)
    }
}

/// The names, and for each two groups how many paths are in which state.
pub fn fold(grid: &Grid) -> String {
    let groups = &grid.groups;
    let mut of = vec![Count::default(); groups.len() * groups.len()];
    let place: Vec<usize> =
        groups.iter().enumerate().flat_map(|(nth, it)| vec![nth; it.hosts[1].saturating_sub(it.hosts[0])]).collect();
    for ([from, to], cell) in &grid.cells {
        let Some((from, to)) = place.get(*from).zip(place.get(*to)) else { continue };
        of[from * groups.len() + to].add(cell.state);
    }
    let names: Vec<Value> = groups.iter().map(|it| json!([clean(&it.name), it.hosts[0], it.hosts[1]])).collect();
    let hosts: Vec<String> = grid.hosts.iter().map(|it| clean(it)).collect();
    json!({
        "metric": grid.metric.word(), "hosts": hosts, "groups": names,
        "counts": of.iter().map(Count::letters).collect::<Vec<_>>(),
    })
    .to_string()
}

/// The cells between groups: a letter, a figure in words and its time for each. Pairs that are not there, or too many, are left out.
pub fn blocks(grid: &Grid, wanted: &[(usize, usize)]) -> String {
    let mut room = CELLS_MAX;
    let mut all = Vec::new();
    for (g, h) in wanted {
        let Some((from, to)) = grid.groups.get(*g).zip(grid.groups.get(*h)) else { continue };
        let cells = (from.hosts[1] - from.hosts[0]) * (to.hosts[1] - to.hosts[0]);
        if cells > room {
            break;
        }
        room -= cells;
        let ways = || (from.hosts[0]..from.hosts[1]).flat_map(|a| (to.hosts[0]..to.hosts[1]).map(move |b| [a, b]));
        let letters: String = ways().map(|[a, b]| grid.state(a, b).letter()).collect();
        let of = |way: [usize; 2]| grid.cells.get(&way);
        let figures: Vec<String> =
            ways().map(|way| of(way).map_or_else(String::new, |cell| short(cell, grid.metric))).collect();
        let says: Vec<String> =
            ways().map(|way| of(way).map_or_else(String::new, |cell| long(cell, grid.metric))).collect();
        let times: Vec<u64> = ways().map(|way| of(way).and_then(|it| it.at_unix_ms).unwrap_or(0) / 1_000).collect();
        all.push(json!({ "of": [g, h], "s": letters, "v": figures, "w": says, "t": times }));
    }
    Value::Array(all).to_string()
}

/// In a cell.
fn short(cell: &GridCell, metric: GridMetric) -> String {
    let digits = |value: f64| format!("{value:.*}", usize::from(value < 99.95) + usize::from(value < 9.995));
    cell.value.map_or_else(String::new, |value| match metric {
        GridMetric::Goodput => digits(value / 1e6),
        GridMetric::RoundTrip => digits(value / 1e3),
        GridMetric::Loss => digits(value * 100.0),
    })
}

/// Beside its name.
fn long(cell: &GridCell, metric: GridMetric) -> String {
    let figure = cell.value.map(|value| match metric {
        GridMetric::Goodput => bps(value),
        GridMetric::RoundTrip => format!("{:.2} ms", value / 1e3),
        GridMetric::Loss => format!("{} lost", percent(value)),
    });
    let expected = cell.expected.map(|it| format!("of about {} expected", bps(it)));
    let why = (!cell.why.is_empty()).then(|| clean(&cell.why));
    figure.into_iter().chain(expected).chain(why).collect::<Vec<_>>().join(", ")
}

/// The same as tables: groups by groups, or the hosts of two groups. `metrics`: those that have a table.
pub fn table(reader: &Reader<'_>, grid: &Grid, metrics: &[GridMetric], of: Option<(usize, usize)>) -> String {
    let two = of.and_then(|(g, h)| Some((grid.groups.get(g)?, grid.groups.get(h)?)));
    let one = grid.groups.first().filter(|_| grid.groups.len() == 1);
    let main = html! {
        p { (says(grid.metric)) }
        p.links { @for it in metrics { a href=(address("table", &[("metric", it.word())])) aria-current=[(*it == grid.metric).then_some("true")] { (title(*it)) } " " } }
        @match (two, one) {
            (Some((from, to)), _) => {
                p.links { a href=(address("table", &[("metric", grid.metric.word())])) { "All groups" } }
                (hosts(grid, from, to))
            }
            (None, Some(only)) => (hosts(grid, only, only)),
            (None, None) => (groups(grid)),
        }
    };
    shell(reader, &format!("Paths: {}", title(grid.metric).to_lowercase()), &main)
}

fn square(caption: &str, columns: &[&str], rows: &[(&str, Vec<Markup>)]) -> Markup {
    html! {
        div.table role="group" aria-label="table" tabindex="0" { table.square {
            caption { (caption) }
            thead { tr { th scope="col" { "from \\ to" } @for it in columns { th scope="col" { (clean(it)) } } } }
            tbody { @for (name, cells) in rows { tr { th scope="row" { (clean(name)) } @for cell in cells { td { (cell) } } } } }
        } }
    }
}

/// Each two groups.
fn groups(grid: &Grid) -> Markup {
    let names: Vec<&str> = grid.groups.iter().map(|it| it.name.as_str()).collect();
    let mut of = vec![vec![Count::default(); names.len()]; names.len()];
    let place = |host: &usize| grid.groups.partition_point(|it| it.hosts[1] <= *host);
    for ([from, to], cell) in &grid.cells {
        of[place(from)][place(to)].add(cell.state);
    }
    let cell = |g: usize, h: usize| {
        let count = &of[g][h];
        let to = address("table", &[("metric", grid.metric.word()), ("of", &format!("{g}-{h}"))]);
        html! { i class={ "c-" (count.shown().letter()) } aria-hidden="true" {} " " a href=(to) { (count.says(grid.metric)) } }
    };
    let row = |g: usize| (names[g], (0..names.len()).map(|h| cell(g, h)).collect());
    square(
        "groups: how many paths of each two are in which state",
        &names,
        &(0..names.len()).map(row).collect::<Vec<_>>(),
    )
}

/// Each two hosts of two groups.
fn hosts(grid: &Grid, from: &GridGroup, to: &GridGroup) -> Markup {
    let names: Vec<&str> = grid.hosts[to.hosts[0]..to.hosts[1]].iter().map(String::as_str).collect();
    let cell = |a: usize, b: usize| {
        let (state, here) = (grid.state(a, b), address("path", &[("from", &grid.hosts[a]), ("to", &grid.hosts[b])]));
        let known = grid.cells.get(&[a, b]);
        html! {
            @if a == b { "·" } @else {
                i class={ "c-" (state.letter()) } aria-hidden="true" {}
                " " a href=(here) { (words(state, grid.metric)) }
                @if let Some(it) = known { " " small { (long(it, grid.metric)) @if let Some(at) = it.at_unix_ms { ", " (time(at)) } } }
            }
        }
    };
    let row = |a: usize| (grid.hosts[a].as_str(), (to.hosts[0]..to.hosts[1]).map(|b| cell(a, b)).collect());
    let rows: Vec<(&str, Vec<Markup>)> = (from.hosts[0]..from.hosts[1]).map(row).collect();
    square("hosts", &names, &rows)
}

/// Each path that is known, a line each.
pub fn csv(grid: &Grid) -> serde_json::Result<String> {
    let row = |([from, to], cell): (&[usize; 2], &GridCell)| {
        json!({
            "from": grid.hosts[*from], "to": grid.hosts[*to], "state": words(cell.state, grid.metric),
            "value": cell.value, "expected": cell.expected, "at_unix_ms": cell.at_unix_ms, "why": cell.why,
        })
    };
    let value = match grid.metric {
        GridMetric::Goodput => "goodput_bps=value",
        GridMetric::RoundTrip => "rtt_p50_us=value",
        GridMetric::Loss => "loss=value",
    };
    crate::csv::table(&["from", "to", "state", value, "expected", "at_unix_ms", "why"], grid.cells.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, is_text};
    use super::*;
    use std::collections::BTreeMap;

    pub(in super::super) fn grid(names: &[&str]) -> Grid {
        let cell =
            |state, value| GridCell { state, value, expected: None, at_unix_ms: Some(7_000), why: HOSTILE.to_owned() };
        Grid {
            metric: GridMetric::Goodput,
            hosts: names.iter().map(|it| (*it).to_owned()).collect(),
            groups: vec![
                GridGroup { name: HOSTILE.to_owned(), hosts: [0, 1] },
                GridGroup { name: "b".to_owned(), hosts: [1, names.len()] },
            ],
            cells: BTreeMap::from([
                ([0, 1], cell(CellState::Good, Some(94.1e6))),
                ([0, 2], cell(CellState::Bad, Some(9.41e6))),
                ([1, 0], cell(CellState::Failed, None)),
            ]),
        }
    }

    #[test]
    fn groups_are_folded_to_their_worst_and_opened_cell_by_cell() {
        let grid = grid(&["a", "b", "c"]);
        let fold: Value = serde_json::from_str(&fold(&grid)).unwrap();
        assert_eq!(fold["counts"], json!(["", "b1g1", "f1", ""]));
        let blocks: Value = serde_json::from_str(&blocks(&grid, &[(0, 1), (7, 7)])).unwrap();
        assert_eq!(
            (blocks[0]["s"].as_str(), &blocks[0]["v"], blocks.as_array().map(Vec::len)),
            (Some("gb"), &json!(["94.1", "9.41"]), Some(1))
        );
    }

    #[test]
    fn names_and_reasons_of_others_are_text() {
        let grid = grid(&[HOSTILE, "b", "c"]);
        let reader = Reader { site: "x", name: "x", key: None, out: None, said: None };
        for page in
            [table(&reader, &grid, &GridMetric::ALL, None), table(&reader, &grid, &GridMetric::ALL, Some((0, 1)))]
        {
            is_text(&page);
        }
        assert!(!csv(&grid).unwrap().contains('\x1b') || csv(&grid).unwrap().contains("\"<img"));
    }

    #[test]
    fn a_table_of_groups_counts_each_state_and_links_what_there_is() {
        let mut many = Count::default();
        many.add(CellState::Bad);
        (0..1_599).for_each(|_| many.add(CellState::Failed));
        assert_eq!(many.says(GridMetric::Goodput), "1 slow, 1,599 failed of 1,600");
        let reader = Reader { site: "x", name: "x", key: None, out: None, said: None };
        let page = table(&reader, &grid(&["a", "b", "c"]), &[GridMetric::Goodput], None);
        let cell = "<i class=\"c-b\" aria-hidden=\"true\"></i> <a href=\"/web/table?metric=goodput&amp;of=0-1\">1 slow, 1 good of 2</a>";
        assert!(page.contains(cell) && page.contains(">not tested</a>"), "{page}");
        assert!(!page.contains("0 paths") && !page.contains("metric=rtt"), "{page}");
    }
}
