//! The ledger of TCP: segments with payload that one socket sent and the other one got, retransmissions included.

use super::books::Books;
use super::{Entry, receiving, sending, settle, wire};
use crate::ledger::claim::Claim;
use narrows_model::ledger::Ledger;
use narrows_model::trial::{EndRecord, StreamSample};
use narrows_model::{Direction, Flow, TcpInfo, Trial};

/// Bytes of the largest packet that the kernel holds as one.
const PACKET_MOST: u64 = 65_535;

/// The ledger of a flow of TCP; `None` where the sockets do not tell their segments (before Linux 4.6), or the trial does not
/// have the flow.
///
/// Segments that were sent and did not reach the other socket, from `tcpi_data_segs_out` and `tcpi_data_segs_in`; what was
/// on its way when the last sample was taken counts as missing. Hosts hand TCP down in batches, so counts of drops are
/// ranges here more often than with UDP.
#[must_use]
pub fn tcp_ledger(trial: &Trial, flow: Flow) -> Option<Ledger> {
    let (sending, receiving) = (trial.end(flow.sender())?, trial.end(flow.receiver())?);
    let offered = segments(sending, flow, |tcp| tcp.data_segs_out)?;
    let delivered = segments(receiving, flow, |tcp| tcp.data_segs_in)?;
    let kernel = |end: &EndRecord| end.after.text("host.boot").map(str::to_owned);
    let mss = sending.streams.iter().find(|stream| stream.flow == flow).and_then(|stream| stream.mss_bytes);
    let (sender, receiver) =
        (sending.after.counts_since(&sending.before), receiving.after.counts_since(&receiving.before));
    let books = Books {
        offered,
        accepted: offered,
        delivered,
        segmented: true,
        coalesced: true,
        batch_most: (PACKET_MOST / u64::from(mss.unwrap_or(1448).max(1))).max(1),
        tcp: true,
        both_ways: trial.plan.direction == Direction::Both,
        one_kernel: kernel(sending).is_some() && kernel(sending) == kernel(receiving),
        sender,
        receiver,
        ..Books::empty(flow)
    };
    let mut remarks = Vec::new();
    let mut entries = sending::entries(&books);
    entries.extend(receiving::entries(&books, &mut remarks));
    // Stages of UDP alone; TCP has counters of its own for them.
    entries.retain(|entry| !matches!(entry.id, "unsent" | "send-buffer" | "send-filter" | "reassembly"));
    for entry in &mut entries {
        match entry.id {
            "checksum" => *entry = counted(&books, "checksum", &["snmp.Tcp.InCsumErrors"]),
            "receive-buffer" => *entry = counted(&books, "receive-buffer", &DROPS),
            _ => {}
        }
    }
    remarks.retain(|remark| !remark.contains("NoPorts"));
    let blurred = wire::book(&books, &mut entries, i128::from(offered) - i128::from(delivered), &mut remarks);
    Some(settle(&books, entries, remarks, blurred, "segments"))
}

/// What TCP drops for want of room (`Documentation/networking/snmp_counter.rst`).
const DROPS: [&str; 3] =
    ["netstat.TcpExt.TCPBacklogDrop", "netstat.TcpExt.TCPRcvQDrop", "netstat.TcpExt.TCPZeroWindowDrop"];

fn counted(books: &Books, id: &'static str, keys: &[&str]) -> Entry {
    let told: Vec<(&str, u64)> = keys.iter().filter_map(|key| Some((*key, books.got(key)?))).collect();
    let claim = if told.is_empty() {
        Claim::unknown()
    } else {
        Claim::exactly(told.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n)))
    };
    let words: Vec<String> =
        told.iter().map(|(key, n)| format!("{n} {}", key.rsplit('.').next().unwrap_or(key))).collect();
    let source = if words.is_empty() { "the counters of TCP could not be read".to_owned() } else { words.join(", ") };
    Entry { id, at: books.flow.receiver(), claim, source }
}

fn segments(end: &EndRecord, flow: Flow, of: fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
    let mut sum = None;
    for stream in end.streams.iter().filter(|stream| stream.flow == flow) {
        let at = |sample: Option<&StreamSample>| of(&sample?.tcp);
        let grown = at(stream.samples.last())?.saturating_sub(at(stream.samples.first()).unwrap_or(0));
        sum = Some(grown.saturating_add(sum.unwrap_or(0)));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn segments_that_the_queue_dropped_are_its_own_and_the_rest_is_the_paths() {
        let mut trial = Scene { sender_counts: vec![("qdisc.drops", 20)], ..Scene::default() }.trial();
        // The sockets' own counts: 600,000 sent, 500 of them never arrived.
        for sample in &mut trial.server.streams[0].samples {
            sample.tcp.data_segs_in = Some(0);
        }
        if let Some(last) = trial.server.streams[0].samples.last_mut() {
            last.tcp.data_segs_in = Some(599_500);
        }
        let ledger = tcp_ledger(&trial, Flow::Up).expect("segments");
        let of = |id: &str| ledger.stages.iter().find(|stage| stage.id == id).expect("a stage").dropped;
        assert_eq!((ledger.offered, ledger.delivered, ledger.unexplained), (600_000, 599_500, 0));
        assert!((20..=500).contains(&of("qdisc")), "{ledger:#?}");
        assert_eq!(of("qdisc") + of("path"), 500);
        assert!(ledger.unit == "segments" && ledger.stages.iter().all(|stage| stage.id != "unsent"));
        assert_eq!(tcp_ledger(&trial, Flow::Down), None);
    }
}
