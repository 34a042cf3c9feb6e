//! The whole text, page and picture of a trace with everything that it can show.

use super::{doc, frame, picture};
use crate::Style;
use crate::fits::{NARROWEST, fits};
use narrows_model::{
    AnswerKind, Ending, MplsLabel, ProbePurpose, TraceAnswer, TracePlan, TraceProbe, TraceProtocol, TraceRecord,
    TraceReport,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

const START: u64 = 1_800_000_000_000_000;

fn plan() -> TracePlan {
    TracePlan {
        asked: "server".into(),
        target: IpAddr::from([10, 0, 7, 2]),
        protocol: TraceProtocol::Udp,
        port: 33_434,
        first_ttl: 1,
        max_ttl: 30,
        gap: 5,
        rounds: 6,
        continuous: false,
        flows: 64,
        interval_ms: 500,
        wait_ms: 1_000,
        probe_bytes: 64,
        ports: Vec::new(),
        mtu: true,
        names: true,
    }
}

/// Six hops: two nodes at the second, a smaller MTU behind the third, silence, a black hole, loss and a filter at the end.
pub(crate) fn sample() -> TraceReport {
    let mut probes = Vec::new();
    let mut probe = |purpose, flow: u16, ttl: u8, bytes, answer: Option<(u8, AnswerKind)>| {
        let sent_us = START + 5_000 * probes.len() as u64;
        let answer = answer.map(|(hop, kind)| {
            let node = if hop == 2 && flow % 2 == 1 { 3 } else { 2 };
            let label = MplsLabel { label: 24_015, class: 0, ttl: 1 };
            TraceAnswer {
                at_us: sent_us + 400 * u64::from(ttl) + 100 * u64::from(flow),
                from: IpAddr::from([10, 0, hop, node]),
                kind,
                reply_ttl: Some(if hop >= 3 { 248 - hop } else { 65 - hop }),
                mtu: (kind == AnswerKind::TooBig).then_some(1400),
                mpls: if hop == 3 { vec![label] } else { vec![] },
                refused: false,
            }
        });
        probes.push(TraceProbe { purpose, flow, ttl, bytes, sent_us, answer });
    };
    for flow in 0..6 {
        for ttl in 1..=3 {
            probe(ProbePurpose::Sample, flow, ttl, 64, Some((ttl, AnswerKind::TimeExceeded)));
        }
        probe(ProbePurpose::Sample, flow, 4, 64, None);
        probe(ProbePurpose::Sample, flow, 5, 64, (flow % 3 > 0).then_some((5, AnswerKind::TimeExceeded)));
        probe(ProbePurpose::Sample, flow, 6, 64, (flow % 3 > 0).then_some((5, AnswerKind::Prohibited)));
    }
    probe(ProbePurpose::Mtu, 0, 6, 1500, Some((3, AnswerKind::TooBig)));
    probe(ProbePurpose::Mtu, 0, 6, 1400, None);
    probe(ProbePurpose::Mtu, 0, 3, 1400, Some((3, AnswerKind::TimeExceeded)));
    probe(ProbePurpose::Mtu, 0, 6, 1300, Some((5, AnswerKind::Prohibited)));
    let names = BTreeMap::from([(IpAddr::from([10, 0, 1, 2]), "gateway.example\u{1b}[31m".to_owned())]);
    narrows_views::trace::report(&TraceRecord {
        plan: plan(),
        started_unix_us: START,
        probes,
        forgotten: 0,
        unmatched: 2,
        other_ports: BTreeMap::new(),
        first_link_mtu: Some(1500),
        mtu_done: true,
        names,
        ending: Ending::Interrupted,
        back: None,
    })
}

#[test]
fn as_text() {
    insta::assert_snapshot!(doc(&sample()).text(Style::default()));
}

#[test]
fn as_a_frame_of_80_columns() {
    let history = [(1, vec![Some(0.4), Some(0.5), None, Some(0.4)]), (4, vec![None; 30])].into();
    insta::assert_snapshot!(frame(&sample(), Style { width: 80, ..Style::default() }, Some(&history)));
}

#[test]
fn it_fits_the_narrowest_terminal() {
    fits("trace", &doc(&sample()).text(Style { width: NARROWEST, ..Style::default() }));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(doc(&sample()).markdown());
}

#[test]
fn as_a_picture() {
    insta::assert_snapshot!(picture(&sample()));
}
