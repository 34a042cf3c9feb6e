//! The highest rate: interleaved rounds, in each of which every contender sends once.

use super::bare;
use super::own::{self, Both, Family};
use super::peers::{self, Peer};
use super::setup::{Bench, WORKERS};
use crate::figures::order;

pub(super) enum Contender {
    Narrows(Family),
    /// The pair of empty programs: the machine's limit.
    Empty,
    Peer(Peer),
}

#[derive(Debug, Clone)]
pub(super) struct Figure {
    pub(super) pps: f64,
    pub(super) frame_bytes: f64,
    pub(super) books: Option<Both>,
}

/// All rounds of one contender; `None` where it failed.
pub(super) struct Row {
    pub(super) contender: Contender,
    pub(super) rounds: Vec<Option<Figure>>,
    pub(super) failure: Option<String>,
}

pub(super) struct Rate {
    pub(super) rows: Vec<Row>,
    /// A sentence for each that could not be measured.
    pub(super) left_out: Vec<String>,
}

impl Contender {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Narrows(family) => format!("narrows, {}", family.word()),
            Self::Empty => "empty pair".to_owned(),
            Self::Peer(peer) => peer.name.to_owned(),
        }
    }

    fn measure(&self, bench: &Bench<'_>) -> Result<Figure, String> {
        let seconds = bench.args.frame_seconds();
        match self {
            Self::Narrows(family) => {
                let both = own::trial(bench, *family, seconds, &format!("--workers {WORKERS}"), "")?;
                Ok(Figure { pps: both.received_pps, frame_bytes: both.frame_bytes, books: Some(both) })
            }
            Self::Empty => {
                let pps = bare::measure(&bench.network, seconds)?;
                Ok(Figure { pps, frame_bytes: 64.0, books: None })
            }
            Self::Peer(peer) => {
                let arrived = peer.measure(bench, seconds)?;
                Ok(Figure { pps: arrived.pps, frame_bytes: arrived.frame_bytes, books: None })
            }
        }
    }
}

pub(super) fn measure(bench: &Bench<'_>) -> Rate {
    let (peers, mut left_out) = peers::available(bench);
    let mut contenders = vec![Contender::Narrows(Family::Ipv4), Contender::Narrows(Family::Ipv6), Contender::Empty];
    contenders.extend(peers.into_iter().map(Contender::Peer));
    let row = |contender| Row { contender, rounds: Vec::new(), failure: None };
    let mut rows: Vec<Row> = contenders.into_iter().map(row).collect();
    for number in 0..bench.args.frame_rounds() {
        for index in order(rows.len(), number) {
            let row = &mut rows[index];
            let name = row.contender.name();
            eprint!("\rbench: frames, round {} of {}: {name:<24}", number + 1, bench.args.frame_rounds());
            match row.contender.measure(bench) {
                Ok(figure) => row.rounds.push(Some(figure)),
                Err(why) => {
                    eprintln!("\nbench: {name}: {why}");
                    row.rounds.push(None);
                    row.failure = Some(why);
                }
            }
        }
        eprintln!();
    }
    for row in rows.iter().filter(|row| row.rounds.iter().all(Option::is_none)) {
        left_out.extend(row.failure.as_ref().map(|why| format!("{}: {why}", row.contender.name())));
    }
    Rate { rows, left_out }
}
