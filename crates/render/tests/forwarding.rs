//! The forwarding benchmark: its view, tables, pictures and page.

mod samples;

use narrows_model::forwarding::{CounterSource, ForwardingRecord, OutageOfSize, ResetTest, Test};
use narrows_model::forwarding_report::{Derived, ForwardingReport};
use narrows_model::search::{Outcome, TesterLimit};
use narrows_render::{Style, forwarding, json};
use proptest::prelude::*;
use samples::forwarding::sample;

fn built() -> ForwardingReport {
    let (record, derived) = sample();
    forwarding::build(&record, derived)
}

/// IPv4 alone, the three sizes that a small demonstration has, limited by the tester at the first.
fn small() -> (ForwardingRecord, Derived) {
    let (mut record, mut derived) = sample();
    record.plan.traffic.truncate(1);
    let traffic = &mut record.plan.traffic[0];
    traffic.sizes = vec![64, 128, 512];
    traffic.mix.clear();
    traffic.bidirectional = true;
    record.plan.tests.throughput.as_mut().expect("asked for").goals.truncate(1);
    for search in &mut record.searches {
        search.record.plan.goals.truncate(1);
    }
    record.searches[0].record.results[0].outcome = Outcome::TesterLimited(TesterLimit::AtMaximum);
    record.searches[1].record.results[0].outcome = Outcome::MinLoadFails;
    record.searches[1].record.results[0].lower_pps = None;
    record.searches.retain(|it| it.traffic == 0 && it.size != Some(512));
    for trial in &mut record.trials {
        let back = trial.directions[0].clone();
        trial.directions.push(back);
    }
    derived.bursts[0].at_least = true;
    derived.bursts[0].corrected_ns = None;
    record.ended = Some("the device under test no longer answers".into());
    (record, derived)
}

#[test]
fn as_text() {
    insta::assert_snapshot!(forwarding::text::report(&built(), Style::default()));
}

#[test]
fn what_is_not_plain_has_its_reason() {
    let (record, derived) = small();
    let report = forwarding::build(&record, derived);
    insta::assert_snapshot!(forwarding::text::report(&report, Style::default()));
    insta::assert_snapshot!("small.svg", forwarding::svg::throughput(&report).expect("a picture"));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(forwarding::markdown::report(&built()));
}

#[test]
fn as_a_page() {
    let page = forwarding::html::report(&built());
    insta::assert_snapshot!("page.html", page);
    assert!(!page.contains("<script") && !page.contains("http://www.w3.org/1999"), "nothing runs");
    assert!(!page.contains("src=") && !page.contains("url(") && !page.contains("@import"), "nothing is fetched");
}

#[test]
fn pictures() {
    let pictures = forwarding::svg::pictures(&built());
    let names: Vec<&str> = pictures.iter().map(|it| it.0.as_str()).collect();
    let books = ["books-1", "books-2", "books-3", "books-4"];
    assert_eq!(names, [&["throughput", "loss", "latency", "back-to-back"][..], &books].concat());
    for (name, svg) in pictures {
        insta::assert_snapshot!(format!("{name}.svg"), svg);
    }
}

#[test]
fn as_json_it_reads_back() {
    let report = built();
    let text = json::pretty(&report).expect("json");
    assert_eq!(serde_json::from_str::<ForwardingReport>(&text).expect("it reads back"), report);
    assert_eq!(report.schema, "narrows.forwarding/1");
}

#[test]
fn every_size_has_its_figures() {
    let report = built();
    let first = &report.traffic[0].sizes[0];
    assert!((first.line.pps - 1_488_095.238).abs() < 0.001, "{:?}", first.line);
    let goal = &first.throughput.as_ref().expect("searched").goals[0];
    let lower = goal.lower.expect("found");
    assert!((lower.wire_bps - 565_000.0 * 672.0).abs() < 1.0, "84 bytes on the wire: {lower:?}");
    assert!(!goal.is_at_least());
    let confirmed = first.confirmation.as_ref().expect("confirmed");
    assert_eq!((confirmed.passed, confirmed.repetitions, confirmed.planned, confirmed.all_passed), (5, 5, 5, true));
    let lossy = report.traffic[1].sizes[0].confirmation.as_ref().expect("tried");
    assert_eq!((lossy.passed, lossy.all_passed, lossy.lost.map(|it| it.max)), (4, false, Some(14.0)));
    let worst = first.worst_case.as_ref().expect("tried");
    assert_eq!((worst.repetitions, worst.invalid), (3, 1), "an invalid trial has no part in the median");
    let mix = report.traffic[0].sizes.last().expect("the mix");
    assert!(mix.size.is_none() && mix.estimate.is_some() && (mix.frame_bytes - 353.833).abs() < 0.001);
}

#[test]
fn the_books_name_the_hop_and_the_reason() {
    let report = built();
    let most = &report.losses[0];
    assert_eq!((most.hop.as_str(), most.reason.as_str(), most.trials), ("r", "rx_missed r-in", 4));
    let it = report.reconciliation;
    assert_eq!((it.books, it.balanced, it.disagree, it.invalid), (79, 78, 1, 1));
    let invalid = &report.invalid[0];
    assert!(invalid.disagreement.as_ref().is_some_and(|why| why.starts_with("sw counted")), "{invalid:?}");
    assert_eq!(report.books[0].telling, "the counters disagree", "what is wrong comes first");
    assert!(!report.losses.iter().any(|it| it.hop.starts_with("before")), "counters that disagree lost nothing");
}

#[test]
fn a_disagreement_makes_a_trial_invalid_even_where_no_one_said_so() {
    let (mut record, derived) = sample();
    for trial in &mut record.trials {
        trial.invalid = None;
    }
    assert_eq!(forwarding::build(&record, derived).invalid.len(), 1);
}

#[test]
fn what_is_secret_stays_where_it_is() {
    let (mut record, derived) = sample();
    let command = ["power-switch", "--password", "s3cret-word"].map(str::to_owned).into();
    record.plan.tests.reset = Some(ResetTest { command, within_ms: 60_000 });
    let CounterSource::Snmp { name, .. } = &record.plan.hops[0].source else { panic!("the switch") };
    assert!(name.contains("s3cret"), "there is something to hide");
    let report = forwarding::build(&record, derived);
    let text = forwarding::text::report(&report, Style { full: true, ..Style::default() });
    assert!(text.contains("power-switch"), "{text}");
    let all = [json::pretty(&report).expect("json"), text, forwarding::html::report(&report)];
    assert!(all.iter().all(|text| !text.contains("s3cret")));
}

#[test]
fn nothing_measured_is_told_and_drawn_as_nothing() {
    let (record, _) = sample();
    let plan = record.plan;
    let none = ForwardingRecord {
        plan,
        tester: vec![],
        trials: vec![],
        searches: vec![],
        curves: vec![],
        bursts: vec![],
        outages: vec![OutageOfSize {
            test: Test::Reset,
            traffic: 9,
            size: None,
            outage_ns: Some(u64::MAX),
            between_ns: None,
            since_ns: None,
            remarks: Vec::new(),
        }],
        ended: Some("interrupted".into()),
    };
    let report = forwarding::build(&none, Derived::default());
    assert!(forwarding::svg::pictures(&report).is_empty());
    let text = forwarding::text::report(&report, Style::default());
    assert!(text.contains("where frames were lost is not known"), "{text}");
    assert!(text.contains("the benchmark ended before: interrupted"), "{text}");
    assert!(forwarding::html::report(&report).contains("Not measured"));
}

/// The benchmark in which every word that comes from outside is this one.
fn named(word: &str) -> ForwardingReport {
    let (mut record, mut derived) = small();
    let own = || word.to_owned();
    record.plan.name = own();
    record.plan.generator.device = own();
    record.ended = Some(own());
    for hop in &mut record.plan.hops {
        (hop.name, hop.input) = (own(), own());
        hop.source = CounterSource::Namespace { name: own() };
    }
    for it in &mut record.tester {
        it.method = own();
    }
    for search in &mut record.searches {
        search.record.plan.goals[0].name = own();
        search.record.results[0].goal = own();
    }
    for books in &mut derived.books {
        for line in &mut books.books.lines {
            line.hop = own();
            line.trouble = Some(own());
            line.drops.iter_mut().for_each(|drop| drop.reason = own());
        }
        books.books.found = vec![own()];
        books.books.disagreement = books.books.disagreement.take().map(|_| own());
    }
    derived.remarks = vec![own()];
    derived.not_measured[0].what = own();
    derived.not_measured[0].why = own();
    if let Some(run) = &mut derived.run {
        (run.id, run.made_by) = (own(), own());
    }
    let mut report = forwarding::build(&record, derived);
    report.traffic[0].name = own();
    report
}

/// The tags of a page, without their attributes' values.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).map(|rest| rest.split([' ', '>', '\n']).next().unwrap_or("")).collect()
}

/// Whether nothing of it starts an escape sequence or turns the direction of writing.
fn unarmed(text: &str) -> bool {
    !text.contains(['\u{1b}', '\u{202e}'])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_word_from_outside_leaves_its_element(word in "x[<>\"'&a-z|`*\\u{1b}\\u{202e}\\n/ ]{0,40}") {
        let (plain, odd) = (named("x"), named(&word));
        let (page, usual) = (forwarding::html::report(&odd), forwarding::html::report(&plain));
        prop_assert!(tags(&page) == tags(&usual), "the same elements, whatever the words");
        for (_, svg) in forwarding::svg::pictures(&odd) {
            let known = ["svg", "title", "desc", "rect", "line", "polyline", "polygon", "circle", "text"];
            prop_assert!(tags(&svg).iter().all(|tag| known.contains(&tag.trim_matches('/'))));
            prop_assert!(unarmed(&svg));
        }
        prop_assert!(unarmed(&page));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal(word in "\\PC{0,120}", width in 80usize..160) {
        let text = forwarding::text::report(&named(&word), Style { width, full: true, ..Style::default() });
        for line in text.lines() {
            prop_assert!(line.chars().count() <= width, "{}: {}", line.chars().count(), line);
        }
    }
}
