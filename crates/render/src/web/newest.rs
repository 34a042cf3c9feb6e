//! The first view of a store: what its newest runs say of each path.

use super::address;
use super::front::{Front, Trouble};
use crate::fleet::time;
use crate::style::Tone;
use crate::words::plural;
use narrows_model::run::history::{Headline, StoredRun};
use std::collections::BTreeMap;
use std::iter;

/// What a run says of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    Well,
    Bad,
    /// The evidence did not suffice, or a host had no CPU time left.
    Undecided,
    /// A diagnosis found a limit, and a later load carried as much or more: whether the limit is still there is not known.
    Past,
    /// A plain measurement.
    Nothing,
    /// It ended before it could say anything.
    Cut,
}

fn judged(run: &StoredRun) -> Judged {
    // As `limited: tcp-receive-window`.
    match (run.command.as_str(), run.verdict.split(": ").next().unwrap_or_default()) {
        (_, "interrupted" | "ended early") => Judged::Cut,
        (_, "" | "complete") => Judged::Nothing,
        (_, "healthy" | "even") => Judged::Well,
        (_, "unknown" | "out of CPU") => Judged::Undecided,
        _ if run.verdict.ends_with(": tester-limited") => Judged::Undecided,
        // A trace is listed with the harm that it found.
        (_, "limited" | "suspected" | "failed" | "slow" | "loses" | "nothing measured") | ("trace", _) => Judged::Bad,
        // As a class of responsiveness, which is a figure.
        _ => Judged::Nothing,
    }
}

/// The cause that a verdict names; of what is undecided all of it.
fn cause(run: &StoredRun, how: Judged) -> String {
    let cause = run.verdict.split_once(": ").map(|(_, cause)| cause).filter(|_| how == Judged::Bad);
    cause.unwrap_or(&run.verdict).to_owned()
}

/// The part of a diagnosed goodput that a later load carries at least where the path is no worse.
const AS_MUCH: f64 = 0.9;

fn goodput<'a>(run: &'a StoredRun, name: &str) -> Option<&'a Headline> {
    run.figures.iter().find(|it| it.name.starts_with(name))
}

/// What the newest load since a diagnosis says of its limit: a load of the same path, direction and protocol. `newer`: the newest first.
fn since(run: &StoredRun, newer: &[StoredRun], now_unix_ms: u64) -> Option<(Judged, String)> {
    let found_a_limit = run.verdict.starts_with("limited") || run.verdict.starts_with("suspected");
    if run.command != "diagnose" || !found_a_limit {
        return None;
    }
    let then = goodput(run, "goodput").filter(|then| then.value > 0.0)?;
    let is_udp = run.figures.iter().any(|it| it.name.starts_with("sent"));
    let command = if is_udp { "measure udp" } else { "measure tcp" };
    let (load, now) = newer.iter().find_map(|it| {
        let is_later = it.command == command && it.verdict == "complete";
        let is_same = [&it.client, &it.server] == [&run.client, &run.server];
        let carried = goodput(it, &then.name);
        carried.filter(|_| is_later && is_same).map(|carried| (it, carried))
    })?;
    let ago = |of: &StoredRun| time(now_unix_ms.saturating_sub(of.started_unix_us / 1_000));
    let part = now.value / then.value;
    // Another load meets other limits: more of it proves nothing.
    let (how, more) =
        if part >= AS_MUCH { (Judged::Past, "; whether the limit remains is not known") } else { (Judged::Bad, "") };
    let word = format!("{part:.2} times as much as then{more}");
    let way = if now.name == "goodput down" { " --direction down" } else { "" };
    let udp = if is_udp { " --udp" } else { "" };
    let says = format!(
        "diagnosed {} ago; the last load since then, {} ago: {} {}, {word}; `narrows diagnose{udp} {}{way}` on {} judges it anew",
        ago(run),
        ago(load),
        now.name,
        crate::history::value(now.unit, now.value),
        run.server,
        run.client,
    );
    Some((how, says))
}

/// The first view of a store: the newest run of each two hosts that is not well, with since when it is so. `runs`: the newest first.
pub fn of_runs(name: &str, runs: &[StoredRun], now_unix_ms: u64) -> Front {
    let mut seen: BTreeMap<[&str; 3], (Trouble, Judged, bool)> = BTreeMap::new();
    for (nth, run) in runs.iter().enumerate().filter(|(_, run)| !run.server.is_empty()) {
        let how = judged(run);
        // The run before it still holds.
        if how == Judged::Cut {
            continue;
        }
        let (since_unix_ms, cause) = (run.started_unix_us / 1_000, cause(run, how));
        let of = [run.client.as_str(), run.server.as_str(), run.command.as_str()];
        if let Some((trouble, _, goes_on)) = seen.get_mut(&of) {
            // It began with the first run that said the same.
            *goes_on &= trouble.cause.as_ref() == Some(&cause);
            if *goes_on {
                trouble.since_unix_ms = since_unix_ms;
            }
            continue;
        }
        let later = since(run, &runs[..nth], now_unix_ms).filter(|_| how == Judged::Bad);
        let (how, later) = later.map_or((how, String::new()), |(how, says)| (how, format!("; {says}")));
        let figure = run.figures.first().map(|it| format!("{}: {}", it.name, crate::history::value(it.unit, it.value)));
        let is_mesh = run.command == "mesh";
        let of_both = || address("path", &[("from", &run.client), ("to", &run.server)]);
        let both = (!is_mesh).then(|| ("all runs between them".to_owned(), of_both()));
        let trouble = Trouble {
            element: match is_mesh {
                true => format!("mesh of {}", run.server),
                false => format!("path {} to {}", run.client, run.server),
            },
            says: iter::once(run.command.clone()).chain(figure).collect::<Vec<_>>().join(", ") + &later,
            cause: Some(cause),
            since_unix_ms,
            is_undecided: how != Judged::Bad,
            links: iter::once((format!("run {}", run.id), address("run", &[("id", &run.id)]))).chain(both).collect(),
            ..Trouble::default()
        };
        seen.insert(of, (trouble, how, true));
    }
    let count = |how: Judged| seen.values().filter(|it| it.1 == how).count() as u64;
    let [bad, undecided, past, well] = [Judged::Bad, Judged::Undecided, Judged::Past, Judged::Well].map(count);
    let (word, tone, says) = match [bad, undecided, past, well] {
        [0, 0, 0, 0] if runs.is_empty() => ("NOTHING MEASURED", Tone::Mark, "no run is in the store".to_owned()),
        [0, 0, 0, 0] => {
            ("NOT JUDGED", Tone::Mark, "no newest run of a path has a verdict; a diagnosis gives one".to_owned())
        }
        [0, 0, 0, _] => ("WELL", Tone::Good, format!("the newest verdicts on {} name no limit", plural(well, "path"))),
        [0, 0, ..] => {
            let of = plural(past, "path");
            (
                "UNDECIDED",
                Tone::Mark,
                format!("{of} with a limit that was found, and loads since then that carried as much or more"),
            )
        }
        [0, ..] => {
            ("UNDECIDED", Tone::Mark, format!("{} that the newest run could not judge", plural(undecided, "path")))
        }
        _ => ("BAD", Tone::Bad, format!("{} with a limit that was found, or a run that failed", plural(bad, "path"))),
    };
    let rank = |how: Judged| [Judged::Bad, Judged::Undecided, Judged::Past].iter().position(|it| *it == how);
    let mut open: Vec<(usize, Trouble)> =
        seen.into_values().filter_map(|(trouble, how, _)| Some((rank(how)?, trouble))).collect();
    open.sort_by_key(|(rank, it)| (*rank, it.since_unix_ms));
    let troubles = open.into_iter().map(|(_, it)| it).collect();
    let (says, host) = (format!("{name}: {says}"), Some(name.to_owned()));
    Front { word, tone: Some(tone), says, at_unix_ms: now_unix_ms, host, troubles, ..Front::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, at_s: u64, command: &str, verdict: &str) -> StoredRun {
        StoredRun {
            id: id.to_owned(),
            started_unix_us: at_s * 1_000_000,
            who: String::new(),
            client: "a".to_owned(),
            server: "b".to_owned(),
            server_name: String::new(),
            family: String::new(),
            command: command.to_owned(),
            plan: String::new(),
            tags: Vec::new(),
            figures: Vec::new(),
            verdict: verdict.to_owned(),
            made_by: String::new(),
            raw_bytes: 0,
            stored_bytes: 0,
        }
    }

    #[test]
    fn a_path_is_bad_since_the_first_run_that_said_the_same() {
        let of = |id: &str, at_s: u64, verdict: &str| run(id, at_s, "diagnose", verdict);
        let runs =
            [of("4", 40, "limited: x"), of("3", 30, "limited: x"), of("2", 20, "healthy"), of("1", 10, "limited: x")];
        let front = of_runs("here", &runs, 50_000);
        let [trouble] = &front.troubles[..] else { panic!("one trouble: {:?}", front.troubles) };
        assert_eq!((trouble.since_unix_ms, trouble.cause.as_deref(), front.word), (30_000, Some("x"), "BAD"));
        assert!(of_runs("here", &runs[2..], 50_000).troubles.is_empty(), "it was mended since");
        let cut = of_runs("here", &[&[of("5", 45, "interrupted")], &runs[..]].concat(), 50_000);
        assert_eq!((cut.word, cut.troubles[0].since_unix_ms), ("BAD", 30_000), "what was cut off mends nothing");
    }

    #[test]
    fn what_a_later_load_carried_makes_a_limit_past_but_what_was_not_measured_again_stays() {
        let with = |run: StoredRun, name: &str, bps: f64| StoredRun {
            figures: vec![Headline::new(name, bps, narrows_model::Unit::BitsPerSecond)],
            ..run
        };
        let found = with(run("1", 10, "diagnose", "limited: x"), "goodput up", 1e8);
        let of = |load: StoredRun| {
            let front = of_runs("here", &[load, found.clone()], 90_000_000);
            (front.word, front.troubles[0].is_undecided, front.troubles[0].says.clone())
        };
        let load = |name: &str, bps: f64| with(run("2", 86_400, "measure tcp", "complete"), name, bps);
        let says = "diagnose, goodput up: 100 Mbit/s; diagnosed 1 day ago; the last load since then, 1 h ago: goodput up 1.00 Gbit/s, 10.00 times \
                    as much as then; whether the limit remains is not known; `narrows diagnose b` on a judges it anew";
        assert_eq!(of(load("goodput up", 1e9)), ("UNDECIDED", true, says.to_owned()));
        let (word, _, same) = of(load("goodput up", 0.95e8));
        assert!(word == "UNDECIDED" && same.contains("0.95 times as much as then; whether"), "{same}");
        let (word, is_undecided, less) = of(load("goodput up", 0.5e8));
        assert!(
            (word, is_undecided) == ("BAD", false) && less.contains("50.0 Mbit/s, 0.50 times as much as then;"),
            "{less}"
        );
        for other in [
            load("goodput down", 1e9),
            StoredRun { server: "c".to_owned(), ..load("goodput up", 1e9) },
            StoredRun { verdict: "interrupted".to_owned(), ..load("goodput up", 1e9) },
            StoredRun { command: "measure udp".to_owned(), ..load("goodput up", 1e9) },
        ] {
            assert_eq!(of(other), ("BAD", false, "diagnose, goodput up: 100 Mbit/s".to_owned()));
        }
        let older = [found.clone(), load("goodput up", 1e9)];
        assert_eq!(of_runs("here", &older, 90_000_000).word, "BAD", "a load before it says nothing");
        let bad = StoredRun { server: "c".to_owned(), ..run("3", 86_400, "diagnose", "limited: y") };
        let front = of_runs("here", &[bad, load("goodput up", 1e9), found.clone()], 90_000_000);
        let first = front.troubles.iter().map(|it| it.element.as_str()).collect::<Vec<_>>();
        assert_eq!((front.word, first), ("BAD", vec!["path a to c", "path a to b"]), "the worst is first");
    }

    #[test]
    fn it_is_well_only_by_a_verdict() {
        let says = |runs: &[(&str, &str)]| {
            let all: Vec<StoredRun> = runs.iter().map(|(command, verdict)| run("1", 10, command, verdict)).collect();
            let front = of_runs("here", &all, 50_000);
            (front.word, front.tone.expect("a tone"), front.troubles.len())
        };
        assert_eq!(says(&[]), ("NOTHING MEASURED", Tone::Mark, 0));
        let judge_nothing = [("measure tcp", "complete"), ("trace", "complete"), ("measure responsiveness", "poor")];
        assert_eq!(says(&judge_nothing), ("NOT JUDGED", Tone::Mark, 0));
        assert_eq!(says(&[("diagnose", "interrupted"), ("trace", "ended early")]), ("NOT JUDGED", Tone::Mark, 0));
        assert_eq!(says(&[("diagnose", "healthy: link-speed"), ("measure tcp", "complete")]), ("WELL", Tone::Good, 0));
        for undecided in [("diagnose", "unknown"), ("diagnose", "limited: tester-limited"), ("mesh", "out of CPU: h2")]
        {
            assert_eq!(says(&[undecided, ("measure tcp", "failed")]), ("BAD", Tone::Bad, 2));
            assert_eq!(says(&[undecided, ("search", "even")]), ("UNDECIDED", Tone::Mark, 1));
        }
        for bad in [("trace", "mtu-black-hole"), ("mesh", "slow: host h2"), ("mesh", "nothing measured")] {
            assert_eq!(says(&[bad, ("diagnose", "healthy")]), ("BAD", Tone::Bad, 1), "{bad:?}");
        }
    }
}
