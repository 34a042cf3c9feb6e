//! The forwarding benchmark: its view, tables, pictures and page.

#![allow(clippy::panic)] // a test that fails loudly

use crate::samples;

use narrows_forwarding::data::modifiers::{BroadcastSeen, ManagementSeen, ModifierSeen, RoutesSeen};
use narrows_forwarding::data::plan::Row;
use narrows_forwarding::data::report::ForwardingReport;
use narrows_forwarding::data::{
    AccountLine, Accounting, CounterSource, ForwardingRecord, ForwardingTrial, OutageOfSize, ResetTest, SearchOfSize,
    Test,
};
use narrows_forwarding::views::{AccountOfTrial, Derived, build, report};
use narrows_forwarding::writing;
use narrows_model::CpuTimes;
use narrows_model::host::device_state::DeviceSeen;
use narrows_model::host::snmp::{Secret, SnmpAccess, SnmpAgent};
use narrows_model::load::frame_traffic::{Modifier, Traffic};
use narrows_model::run::search::{Outcome, TesterLimit};
use narrows_render::{Style, json};
use proptest::prelude::*;
use samples::{again, sample};

fn built() -> ForwardingReport {
    build(sample())
}

/// IPv4 alone, the three sizes that a small demonstration has, limited by the tester at the first.
fn small() -> Derived {
    let mut derived = sample();
    let record = &mut derived.record;
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
    record.ended = Some("the device under test no longer answers".into());
    let mut derived = again(derived);
    let first = derived.results.get_mut(&Row { traffic: 0, size: Some(64) }).expect("the first");
    let bursts = first.back_to_back.bursts.as_mut().expect("bursts");
    (bursts.at_least, bursts.corrected_ns) = (true, None);
    derived
}

#[test]
fn as_text() {
    insta::assert_snapshot!(writing::text(&built(), Style::default()));
}

#[test]
fn what_is_not_plain_has_its_reason() {
    let report = build(small());
    insta::assert_snapshot!(writing::text(&report, Style::default()));
    let pictures = writing::svg::pictures(&report);
    insta::assert_snapshot!("small.svg", pictures.iter().find(|it| it.0 == "throughput").expect("a picture").1);
}

/// IPv4 at 64 and 512 bytes, plain and under each modifier; the router is watched.
fn modified() -> Derived {
    let mut derived = sample();
    let mut record = derived.record.clone();
    let plain = Traffic { sizes: vec![64, 512], mix: vec![], ..record.plan.traffic[0].clone() };
    let access = SnmpAccess::V2c { community: Secret::new("s3cret-community") };
    let agent = SnmpAgent { agent: "198.18.0.1:161".into(), access };
    let modifiers = [
        Modifier::Broadcast { every: 100 },
        Modifier::Management { agent },
        Modifier::Routes { every_ms: 30_000, networks: 25 },
    ];
    record.plan.tests.throughput.as_mut().expect("asked for").goals.truncate(1);
    record.plan.traffic = vec![plain.clone()];
    record.plan.traffic.extend(modifiers.map(|modifier| Traffic { modifier: Some(modifier), ..plain.clone() }));
    let keep = |traffic: usize, size: Option<u32>| traffic == 0 && [Some(64), Some(512)].contains(&size);
    record.searches.retain(|it| keep(it.traffic, it.size));
    record.tester.retain(|it| keep(it.traffic, it.size));
    record.trials.retain(|it| keep(it.traffic, it.size) && it.test == Test::Confirmation);
    record.curves.clear();
    record.outages.clear();
    derived.results.clear();
    derived.not_measured.clear();
    let to_all = BroadcastSeen { due: 56_500, handed: 56_500, sent: 56_500, received: 0 };
    let seen = [
        ModifierSeen::Broadcast { directions: vec![to_all] },
        ModifierSeen::Management(ManagementSeen {
            asked: 10,
            answered: 9,
            wrong: 0,
            answer_ns: (1..10).map(|n| 200_000 * n).collect(),
            why: Some("no answer from the SNMP agent 198.18.0.1:161 to sysUpTime within 950 ms".into()),
        }),
        ModifierSeen::Routes(RoutesSeen { announced: 1, learned: Some(0), ..RoutesSeen::default() }),
    ];
    let (searches, trials) = (record.searches.clone(), record.trials.clone());
    for (at, seen) in (1..).zip(seen) {
        for search in &searches {
            let mut search = SearchOfSize { traffic: at, ..search.clone() };
            if search.size == Some(64) {
                let result = &mut search.record.results[0];
                result.lower_pps = result.lower_pps.map(|pps| pps * (1.0 - 0.01 * at as f64));
            }
            record.searches.push(search);
        }
        let with =
            |trial: &ForwardingTrial| ForwardingTrial { traffic: at, modifier: Some(seen.clone()), ..trial.clone() };
        record.trials.extend(trials.iter().map(with));
    }
    let device = |at: u64| DeviceSeen {
        hop: "r".into(),
        source: "the kernel of r".into(),
        shared: true,
        took_us: 10_000_000,
        up_ms: Some(3_600_000 + at),
        interrupts: Some(40_000 + 100 * at),
        net_rx: Some(90_000),
        cpus: 2,
        busiest: Some(CpuTimes {
            cpu: 1,
            user_us: 0,
            system_us: 0,
            irq_us: 100_000 * (at % 5),
            softirq_us: 8_000_000,
            steal_us: 0,
            idle_us: 2_000_000,
        }),
        ..DeviceSeen::default()
    };
    for (at, trial) in (0..).zip(&mut record.trials) {
        trial.devices = vec![device(at)];
    }
    let trial = record.trials.last_mut().expect("some");
    trial.devices[0].links = vec!["the link of r-out came or went 2 times".into()];
    let line = |hop: &str, input, output, not_forwarded| AccountLine {
        hop: hop.into(),
        input,
        output,
        drops: vec![],
        lost_before: input.map(|_| 0),
        not_forwarded,
        unexplained: (input.is_some() && output.is_some()).then_some(0),
        uncertainty: 0,
        trouble: None,
    };
    let (all, left) = (Some(5_650_000), Some(5_593_500));
    let books = Accounting {
        lines: vec![line("generator", None, all, 0), line("r", all, left, 56_500), line("receiver", left, None, 0)],
        lost: 0,
        broadcast: Some(to_all),
        found: vec![],
        disagreement: None,
    };
    let trial = record.trials.iter().position(|trial| trial.traffic == 1).expect("one");
    derived.accounts = vec![AccountOfTrial { trial, direction: 0, account: books }];
    again(Derived { record, ..derived })
}

#[test]
fn modifiers_stand_beside_the_same_frames_without_them() {
    let report = build(modified());
    insta::assert_snapshot!(writing::text(&report, Style::default()));
    let names: Vec<&str> = report.traffic.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["IPv4", "IPv4, 1 % broadcast", "IPv4, SNMP queries", "IPv4, RIP updates"]);
    assert!(report.traffic[0].sizes.iter().all(|it| it.modified.is_none()));
    let ratio = |at: usize| report.traffic[at].sizes[0].modified.as_ref().and_then(|it| it.ratio).expect("both found");
    assert!((ratio(1) - 0.99).abs() < 1e-9 && (ratio(3) - 0.97).abs() < 1e-9);
    let full = report.traffic[2].sizes[1].modified.as_ref().expect("modified");
    assert_eq!((full.ratio, full.remark.clone()), (Some(1.0), None), "both pass at line rate");
    let device = &report.traffic[3].sizes[1].devices[0];
    assert_eq!((device.link_changes, device.resets, device.shared), (1, 0, true));
    let all = [json::pretty(&report).expect("json"), writing::html::report(&report), writing::markdown(&report)];
    assert!(all.iter().all(|text| !text.contains("s3cret")), "no door is opened");
    assert!(all[1].contains("Device under test") && all[2].contains("RIP updates"));
    let again: ForwardingReport = serde_json::from_str(&all[0]).expect("it reads back");
    assert_eq!(json::pretty(&again).expect("json"), all[0]);
}

#[test]
fn what_cannot_be_compared_has_its_reason() {
    let mut derived = modified();
    let record = &mut derived.record;
    record.searches.retain(|it| (it.traffic, it.size) != (0, Some(64)));
    for search in record.searches.iter_mut().filter(|it| it.size == Some(512)) {
        search.record.results[0].outcome = Outcome::TesterLimited(TesterLimit::AtMaximum);
    }
    let report = build(again(derived));
    let remark = |size: usize| report.traffic[1].sizes[size].modified.as_ref().and_then(|it| it.remark.clone());
    assert_eq!(remark(0).as_deref(), Some("no throughput found without the modifier"));
    assert_eq!(remark(1).as_deref(), Some("both passed at all offered loads: neither is the device's limit"));
}

#[test]
fn without_a_throughput_it_is_compared_what_arrives_at_line_rate() {
    let mut derived = modified();
    derived.record.plan.tests.throughput = None;
    derived.record.searches.clear();
    let mut report = build(again(derived.clone()));
    let none = report.traffic[1].sizes[0].modified.clone().expect("modified");
    assert_eq!((none.ratio, none.remark), (None, None));
    for trial in &mut derived.record.trials {
        trial.test = Test::Frmol;
    }
    report = build(again(derived));
    let some = report.traffic[1].sizes[0].modified.clone().expect("modified");
    assert_eq!(some.ratio, Some(1.0));
    assert!(some.remark.is_some_and(|why| why.starts_with("forwarding rate at maximum offered load (FRMOL)")));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(writing::markdown(&built()));
}

#[test]
fn as_a_page() {
    let page = writing::html::report(&built());
    // The page has no line breaks between elements; the snapshot has, to be read.
    insta::assert_snapshot!("page.html", page.replace("><", ">\n<"));
    assert!(!page.contains("<script") && !page.contains("http://www.w3.org/1999"), "nothing runs");
    assert!(!page.contains("src=") && !page.contains("url(") && !page.contains("@import"), "nothing is fetched");
}

#[test]
fn pictures() {
    let pictures = writing::svg::pictures(&built());
    let names: Vec<&str> = pictures.iter().map(|it| it.0.as_str()).collect();
    let books = ["books-1", "books-2", "books-3", "books-4"];
    assert_eq!(names, [&["throughput", "latency", "loss", "back-to-back"][..], &books].concat());
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
fn a_search_that_was_made_twice_says_so() {
    let mut derived = sample();
    derived.record.searches[0].not_confirmed_pps = Some(600_000.0);
    let report = build(again(derived));
    let goal = &report.traffic[0].sizes[0].results.throughput.search.as_ref().expect("searched").goals[0];
    let why = goal.why.as_deref().expect("a reason");
    assert_eq!(why, "searched again: the repetitions did not confirm the first result, 600 kpps");
}

#[test]
fn every_size_has_its_figures() {
    let report = built();
    let first = &report.traffic[0].sizes[0];
    assert!((first.line.pps - 1_488_095.238).abs() < 0.001, "{:?}", first.line);
    let goal = &first.results.throughput.search.as_ref().expect("searched").goals[0];
    let lower = goal.lower.expect("found");
    assert!((lower.wire_bps - 565_000.0 * 672.0).abs() < 1.0, "84 bytes on the wire: {lower:?}");
    assert!(!goal.is_at_least());
    let confirmed = first.results.throughput.confirmation.as_ref().expect("confirmed");
    assert_eq!((confirmed.passed, confirmed.repetitions, confirmed.planned, confirmed.all_passed), (5, 5, 5, true));
    let lossy = report.traffic[1].sizes[0].results.throughput.confirmation.as_ref().expect("tried");
    assert_eq!((lossy.passed, lossy.all_passed, lossy.lost.map(|it| it.max)), (4, false, Some(14.0)));
    let worst = first.results.frmol.rate.as_ref().expect("tried");
    assert_eq!((worst.repetitions, worst.invalid), (3, 1), "an invalid trial has no part in the median");
    let mix = report.traffic[0].sizes.last().expect("the mix");
    assert!(
        mix.size.is_none() && mix.results.throughput.estimate.is_some() && (mix.frame_bytes - 353.833).abs() < 0.001
    );
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
fn what_is_secret_stays_where_it_is() {
    let mut derived = sample();
    let record = &mut derived.record;
    let command = ["power-switch", "--password", "s3cret-word"].map(str::to_owned).into();
    record.plan.tests.reset = Some(ResetTest { command, within_ms: 60_000 });
    let CounterSource::Snmp(agent) = &record.plan.hops[0].source else { panic!("the switch") };
    let SnmpAccess::V2c { community } = &agent.access else { panic!("a community") };
    assert!(community.expose().contains("s3cret"), "there is something to hide");
    let stored = serde_json::to_string(&record).expect("JSON");
    assert!(!stored.contains("s3cret-community"), "records hold no secrets");
    let report = build(again(derived));
    let text = writing::text(&report, Style { full: true, ..Style::default() });
    assert!(text.contains("power-switch"), "{text}");
    let all = [json::pretty(&report).expect("json"), text, writing::html::report(&report)];
    assert!(all.iter().all(|text| !text.contains("s3cret")));
}

#[test]
fn nothing_measured_is_told_and_drawn_as_nothing() {
    let none = ForwardingRecord {
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
        ..ForwardingRecord::of(sample().record.plan)
    };
    let report = report(&none);
    assert!(writing::svg::pictures(&report).is_empty());
    let text = writing::text(&report, Style::default());
    assert!(text.contains("place of loss unknown: no accounting"), "{text}");
    assert!(text.contains("the benchmark ended first: interrupted"), "{text}");
    assert!(writing::html::report(&report).contains("Not measured"));
}

/// The benchmark in which every word that comes from outside is this one.
fn named(word: &str) -> ForwardingReport {
    let mut derived = small();
    let own = || word.to_owned();
    let record = &mut derived.record;
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
    for books in &mut derived.accounts {
        for line in &mut books.account.lines {
            line.hop = own();
            line.trouble = Some(own());
            line.drops.iter_mut().for_each(|drop| drop.reason = own());
        }
        books.account.found = vec![own()];
        books.account.disagreement = books.account.disagreement.take().map(|_| own());
    }
    derived.remarks = vec![own()];
    derived.not_measured[0].what = own();
    derived.not_measured[0].why = own();
    if let Some(run) = &mut derived.run {
        (run.id, run.made_by) = (own(), own());
    }
    let mut report = build(again(derived));
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
        let (page, usual) = (writing::html::report(&odd), writing::html::report(&plain));
        prop_assert!(tags(&page) == tags(&usual), "the same elements, whatever the words");
        for (_, svg) in writing::svg::pictures(&odd) {
            let known = ["svg", "title", "desc", "rect", "line", "polyline", "polygon", "circle", "text"];
            prop_assert!(tags(&svg).iter().all(|tag| known.contains(&tag.trim_matches('/'))));
            prop_assert!(unarmed(&svg));
        }
        prop_assert!(unarmed(&page));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal(word in "\\PC{0,120}", width in 80usize..160) {
        let text = writing::text(&named(&word), Style { width, full: true, ..Style::default() });
        for line in text.lines() {
            prop_assert!(line.chars().count() <= width, "{}: {}", line.chars().count(), line);
        }
    }
}
