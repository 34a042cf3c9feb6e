//! The ledger of TCP: segments with payload that one socket sent and the other one got, retransmissions included.

use super::accounting::{Accounting, lowest};
use super::claim::Entry;
use super::{receiving, sending, settle, wire};
use crate::connection;
use crate::ledger::claim::Claim;
use narrows_model::diagnosis::ledger::Ledger;
use narrows_model::load::tcp::{TcpEndRecord, TcpStreamRecord};
use narrows_model::{Direction, Flow, TcpInfo, TcpTrial, keys};

/// Bytes of the largest packet that the kernel holds as one.
const PACKET_MOST: u64 = 65_535;

/// The ledger of a flow of TCP; `None` where the sockets do not tell their segments (before Linux 4.6), or the trial does not
/// have the flow.
///
/// Segments that were sent and did not reach the other socket, from `tcpi_data_segs_out` and `tcpi_data_segs_in`, or from the
/// bytes of both where the latter counts batches; what was on its way when the last sample was taken is not offered yet. Hosts hand TCP down in batches, so counts of drops are
/// ranges here more often than with UDP.
pub fn tcp_ledger(trial: TcpTrial<'_>, flow: Flow) -> Option<Ledger> {
    let (sending, receiving) = (trial.end(flow.sender())?, trial.end(flow.receiver())?);
    let (offered, delivered) = sent_and_arrived(trial, flow)?;
    let kernel = |end: &TcpEndRecord| end.after.text(keys::HOST_BOOT).map(str::to_owned);
    let first = sending.streams.iter().find(|stream| stream.flow == flow)?;
    let mss = u64::from(first.mss_bytes.unwrap_or(1448).max(1));
    let (sender, receiver) =
        (sending.after.counts_since(&sending.before), receiving.after.counts_since(&receiving.before));
    let accounting = Accounting {
        offered,
        accepted: offered,
        delivered,
        segmented: true,
        coalesced: true,
        batch_most: (PACKET_MOST / mss).max(1),
        payload: Some(mss),
        tcp: true,
        ipv6: first.remote.starts_with('['),
        both_ways: trial.plan.direction == Direction::Both,
        one_kernel: kernel(sending).is_some() && kernel(sending) == kernel(receiving),
        lowest: lowest(&sending.after),
        sender,
        receiver,
        ..Accounting::empty(flow)
    };
    let mut remarks = Vec::new();
    let mut entries = sending::entries(&accounting);
    entries.extend(receiving::entries(&accounting, &mut remarks));
    // Stages of UDP alone; TCP has counters of its own for them.
    entries.retain(|entry| !matches!(entry.id, "unsent" | "send-buffer" | "reassembly"));
    for entry in &mut entries {
        match entry.id {
            "checksum" => *entry = counted(&accounting, "checksum", &["snmp.Tcp.InCsumErrors"]),
            "receive-buffer" => *entry = counted(&accounting, "receive-buffer", &DROPS),
            _ => {}
        }
    }
    remarks.retain(|remark| !remark.contains("NoPorts"));
    let blurred = wire::book(&accounting, &mut entries, i128::from(offered) - i128::from(delivered), &mut remarks);
    Some(settle(&accounting, entries, remarks, blurred, "segments"))
}

/// Segments of a flow that were sent, and those of them that reached the other socket; of those that were on their way when the sender was
/// sampled last nothing is known, so they are not among the sent ones. `None` as of [`tcp_ledger`].
pub(crate) fn sent_and_arrived(trial: TcpTrial<'_>, flow: Flow) -> Option<(u64, u64)> {
    // The sockets of two connections count other segments.
    if connection::split(trial, flow).is_some() {
        return None;
    }
    let (sending, receiving) = (trial.end(flow.sender())?, trial.end(flow.receiver())?);
    let mut sum = None;
    for stream in sending.streams.iter().filter(|stream| stream.flow == flow) {
        let peer = receiving.streams.iter().find(|peer| peer.id == stream.id && peer.flow == flow)?;
        let (out, came) = segments(stream, peer)?;
        let out = out - on_its_way(stream, out - came);
        let (sent, arrived): (u64, u64) = sum.unwrap_or_default();
        sum = Some((sent.saturating_add(out), arrived.saturating_add(came)));
    }
    sum
}

/// What TCP drops for want of room (`Documentation/networking/snmp_counter.rst`).
const DROPS: [&str; 3] =
    ["netstat.TcpExt.TCPBacklogDrop", "netstat.TcpExt.TCPRcvQDrop", "netstat.TcpExt.TCPZeroWindowDrop"];

fn counted(accounting: &Accounting, id: &'static str, keys: &[&str]) -> Entry {
    let counts: Vec<(&str, u64)> = keys.iter().filter_map(|key| Some((*key, accounting.got(key)?))).collect();
    let claim = if counts.is_empty() {
        Claim::unknown()
    } else {
        Claim::exactly(counts.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n)))
    };
    let words: Vec<String> =
        counts.iter().map(|(key, n)| format!("{n} {}", key.rsplit('.').next().unwrap_or(key))).collect();
    let source = if words.is_empty() { "the counters of TCP could not be read".to_owned() } else { words.join(", ") };
    Entry { id, at: accounting.flow.receiver(), claim, source }
}

/// Segments with payload that a stream sent, and those of them that reached the other socket.
///
/// Both sockets count from the first segment of the connection. Their first samples are of different moments, so neither is a beginning
/// for the other: what the sender had sent before its first one is left out of both.
///
/// A receiver counts a batch by its `gso_segs` (`tcp_segs_in`, include/net/tcp.h), which is 0 in what comes from a TUN device or
/// a hypervisor: such a batch counts as one segment. No segment carries more than the MSS, so bytes that do not fit into the
/// segments show it; then what is missing is what was sent and did not arrive, less what came twice (DSACK).
fn segments(sent: &TcpStreamRecord, received: &TcpStreamRecord) -> Option<(u64, u64)> {
    let mss = u64::from(sent.mss_bytes.unwrap_or(1448).max(1));
    let before = sent.samples.first()?.tcp.data_segs_out.unwrap_or(0);
    let offered = last(sent, |tcp| tcp.data_segs_out)?.saturating_sub(before);
    let counted = last(received, |tcp| tcp.data_segs_in)?;
    let arrived = last(received, |tcp| tcp.bytes_received);
    let came = if arrived.is_none_or(|bytes| bytes <= counted.saturating_mul(mss)) {
        // What the sender knows to have arrived did, whenever the receiver was sampled.
        let acked = last(sent, |tcp| tcp.bytes_acked).zip(arrived);
        let later = acked.map_or(0, |(acked, arrived)| acked.saturating_sub(arrived) / mss);
        counted.saturating_sub(before).saturating_add(later)
    } else {
        let missing = last(sent, |tcp| tcp.bytes_sent)?.saturating_sub(arrived?).div_ceil(mss);
        let twice = last(sent, |tcp| tcp.dsack_dups).unwrap_or(0);
        offered.saturating_sub(missing.saturating_sub(twice))
    };
    Some((offered, came.min(offered)))
}

/// Of the segments that are missing, those that were on their way when the sender was sampled last: no more than were in flight then, and
/// none of those that it sent again because they were lost. A socket that was closed with data in flight has dropped its queue
/// (`tcp_write_queue_purge`), and counts none as in flight; the bytes that it sent and that nobody acknowledged remain.
fn on_its_way(sent: &TcpStreamRecord, missing: u64) -> u64 {
    let Some(tcp) = sent.samples.last().map(|sample| &sample.tcp) else { return 0 };
    let unanswered = || {
        let bytes = tcp.bytes_sent?.checked_sub(tcp.bytes_retrans?)?.saturating_sub(tcp.bytes_acked?);
        Some(bytes.div_ceil(u64::from(sent.mss_bytes.unwrap_or(1448).max(1))))
    };
    let in_flight = match tcp.in_flight() {
        None | Some(0) => unanswered().unwrap_or(0),
        Some(segments) => segments,
    };
    in_flight.min(missing.saturating_sub(tcp.lost_so_far().unwrap_or(0)))
}

/// A counter of a socket at its last sample.
fn last(stream: &TcpStreamRecord, of: fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
    of(&stream.samples.last()?.tcp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, tcp_end};

    #[test]
    fn segments_that_the_queue_dropped_are_its_own_and_the_rest_is_the_paths() {
        let mut trial = Scene { sender_counts: vec![("qdisc.drops", 20)], ..Scene::default() }.trial();
        // The sockets' own counts: 600,000 sent, 500 of them never arrived, none on its way.
        tcp_end(&mut trial.client).streams[0].samples.last_mut().expect("samples").tcp.unacked = Some(0);
        for sample in &mut tcp_end(&mut trial.server).streams[0].samples {
            sample.tcp.data_segs_in = Some(0);
        }
        if let Some(last) = tcp_end(&mut trial.server).streams[0].samples.last_mut() {
            last.tcp.data_segs_in = Some(599_500);
        }
        let ledger = tcp_ledger(trial.of().expect("TCP"), Flow::Up).expect("segments");
        let of = |id: &str| ledger.stages.iter().find(|stage| stage.id == id).expect("a stage").dropped;
        assert_eq!((ledger.offered, ledger.delivered, ledger.unexplained), (600_000, 599_500, 0));
        assert!((20..=500).contains(&of("qdisc")), "{ledger:#?}");
        assert_eq!(of("qdisc") + of("path"), 500);
        assert!(ledger.unit == "segments" && ledger.stages.iter().all(|stage| stage.id != "unsent"));
        assert_eq!(tcp_ledger(trial.of().expect("TCP"), Flow::Down), None);
    }

    #[test]
    fn what_a_shaper_sent_of_other_packets_is_not_of_the_flow_and_its_drops_are_not_the_paths() {
        // As seen behind the client's own TBF, with a path that lost nothing: 143 batches of 165 segments; it sent 13,493 of the flow, and
        // 152 acknowledgements and segments of the control connection.
        let others = 152;
        let sent = 13_493 + others;
        let mut scene = Scene { segments: 13_658, lost: 165, ..Scene::default() };
        scene.sender_counts = vec![
            ("qdisc.drops", 143),
            ("qdisc.sent.packets", sent),
            ("snmp.Tcp.OutSegs", 13_658 + others),
            ("snmp.Tcp.InSegs", 3_500),
            ("nic.counter.tx_packets", sent),
        ];
        scene.receiver_counts = vec![("nic.counter.rx_packets", sent - 72)];
        let of = |scene: &Scene| {
            let mut trial = scene.trial();
            tcp_end(&mut trial.client).streams[0].samples.last_mut().expect("samples").tcp.unacked = Some(0);
            let samples = &mut tcp_end(&mut trial.server).streams[0].samples;
            samples.iter_mut().for_each(|it| (it.tcp.data_segs_in, it.tcp.bytes_received) = (Some(0), None));
            samples.last_mut().expect("samples").tcp.data_segs_in = Some(13_493);
            let ledger = tcp_ledger(trial.of().expect("TCP"), Flow::Up).expect("segments");
            let of = |id: &str| ledger.stages.iter().find(|stage| stage.id == id).expect("a stage").dropped;
            (ledger.offered - ledger.delivered, of("qdisc"), of("path"), ledger.unexplained)
        };
        assert_eq!(of(&scene), (165, 165, 0, 0));
        // Two packets that are not TCP's do not make a loss of the path, either.
        scene.sender_counts[1].1 = sent + 2;
        assert_eq!(of(&scene), (165, 165, 0, 0));
        // Nor does traffic by another device of the host make more drops than are missing.
        scene.sender_counts[2].1 += 40;
        assert_eq!(of(&scene), (165, 165, 0, 0));
    }

    #[test]
    fn a_few_batches_that_the_devices_miss_hold_the_segments_that_are_missing() {
        // As seen in front of a policer: 337 segments missing, and 15 of 5,743 packets, batches of up to 44.
        let scene = Scene {
            segments: 19_874,
            lost: 337,
            sender_counts: vec![("nic.counter.tx_packets", 5_743), ("nic.counter.tx_bytes", 29_188_784)],
            receiver_counts: vec![("nic.counter.rx_packets", 5_728), ("nic.counter.rx_bytes", 28_586_920)],
            ..Scene::default()
        };
        let of = |scene: &Scene| {
            let mut trial = scene.trial();
            tcp_end(&mut trial.client).streams[0].samples.last_mut().expect("samples").tcp.unacked = Some(0);
            let samples = &mut tcp_end(&mut trial.server).streams[0].samples;
            samples.iter_mut().for_each(|it| (it.tcp.data_segs_in, it.tcp.bytes_received) = (Some(0), None));
            samples.last_mut().expect("samples").tcp.data_segs_in = Some(19_537);
            let ledger = tcp_ledger(trial.of().expect("TCP"), Flow::Up).expect("segments");
            let path = ledger.stages.iter().find(|stage| stage.id == "path").expect("a stage");
            (path.dropped, ledger.unexplained)
        };
        assert_eq!(of(&scene), (337, 0));
        // As many packets left as arrived: then it was not the path.
        let receiver_counts = vec![("nic.counter.rx_packets", 5_743), ("nic.counter.rx_bytes", 28_586_920)];
        assert_eq!(of(&Scene { receiver_counts, ..scene }), (0, 337));
    }

    #[test]
    fn what_is_on_its_way_at_the_end_is_not_lost() {
        let mut trial = Scene { lost: 0, ..Scene::default() }.trial();
        let sent = tcp_end(&mut trial.client).streams[0].samples.last_mut().expect("samples");
        (sent.tcp.unacked, sent.tcp.sacked) = (Some(104), Some(0));
        let segments = sent.tcp.data_segs_out.expect("segments");
        let ledger = |trial: &mut narrows_model::Trial, came: u64| {
            let samples = &mut tcp_end(&mut trial.server).streams[0].samples;
            samples
                .iter_mut()
                .for_each(|sample| (sample.tcp.data_segs_in, sample.tcp.bytes_received) = (Some(0), None));
            samples.last_mut().expect("samples").tcp.data_segs_in = Some(came);
            let ledger = tcp_ledger(trial.of().expect("TCP"), Flow::Up).expect("segments");
            (ledger.offered - ledger.delivered, ledger.unexplained)
        };
        assert_eq!(ledger(&mut trial, segments - 103), (0, 0));
        assert_eq!(ledger(&mut trial, segments - 150), (46, 0));
        // What the sender sent again was lost.
        let samples = &mut tcp_end(&mut trial.client).streams[0].samples;
        samples.first_mut().expect("samples").tcp.total_retrans = Some(0);
        samples.last_mut().expect("samples").tcp.total_retrans = Some(100);
        assert_eq!(ledger(&mut trial, segments - 103), (100, 0));
    }

    #[test]
    fn what_a_closed_socket_had_in_flight_is_not_lost() {
        let mut trial = Scene { lost: 0, ..Scene::default() }.trial();
        let sent = tcp_end(&mut trial.client).streams[0].samples.last_mut().expect("samples");
        // 28 segments were behind a queue when the load ended, and the kernel threw its own copy of them away.
        let (segments, mss) = (sent.tcp.data_segs_out.expect("segments"), 1448);
        (sent.tcp.unacked, sent.tcp.sacked, sent.tcp.lost, sent.tcp.retrans) = (Some(0), Some(0), Some(0), Some(0));
        (sent.tcp.bytes_sent, sent.tcp.bytes_retrans) = (Some(segments * mss), Some(0));
        sent.tcp.bytes_acked = Some((segments - 28) * mss);
        let samples = &mut tcp_end(&mut trial.server).streams[0].samples;
        samples.iter_mut().for_each(|sample| (sample.tcp.data_segs_in, sample.tcp.bytes_received) = (Some(0), None));
        samples.last_mut().expect("samples").tcp.data_segs_in = Some(segments - 28);
        let ledger = tcp_ledger(trial.of().expect("TCP"), Flow::Up).expect("segments");
        assert_eq!((ledger.offered - ledger.delivered, ledger.unexplained), (0, 0));
    }

    #[test]
    fn first_samples_of_different_moments_lose_nothing() {
        // As seen at 24 Gbit/s: the receiver was sampled first when 85 segments had arrived already; both counted 8,031,246 at the end.
        let mut trial = Scene { lost: 0, ..Scene::default() }.trial();
        let sent = &mut tcp_end(&mut trial.client).streams[0].samples;
        sent.first_mut().expect("samples").tcp.data_segs_out = Some(1);
        let last = &mut sent.last_mut().expect("samples").tcp;
        (last.data_segs_out, last.unacked, last.bytes_acked) = (Some(8_031_246), Some(0), Some(11_559_370_755));
        let got = &mut tcp_end(&mut trial.server).streams[0].samples;
        let first = &mut got.first_mut().expect("samples").tcp;
        (first.data_segs_in, first.bytes_received) = (Some(86), Some(122_611));
        let last = &mut got.last_mut().expect("samples").tcp;
        (last.data_segs_in, last.bytes_received) = (Some(8_031_246), Some(11_559_370_755));
        let of = |trial: &narrows_model::Trial| {
            let ledger = tcp_ledger(trial.of().expect("TCP"), Flow::Up).expect("segments");
            (ledger.offered, ledger.delivered, ledger.unexplained)
        };
        assert_eq!(of(&trial), (8_031_245, 8_031_245, 0));
        // A receiver that was sampled last before 100 more segments arrived, which the sender knows.
        let last = &mut tcp_end(&mut trial.server).streams[0].samples.last_mut().expect("samples").tcp;
        (last.data_segs_in, last.bytes_received) = (Some(8_031_146), Some(11_559_370_755 - 100 * 1_448));
        assert_eq!(of(&trial), (8_031_245, 8_031_245, 0));
    }

    #[test]
    fn all_that_a_black_hole_takes_is_offered_and_lost() {
        // As seen on veth: twelve segments and four repeats, in ten packets of the device.
        let mut scene = Scene { goodput_bps: 0.0, ..Scene::default() };
        scene.sender_counts =
            vec![("nic.counter.tx_packets", 30), ("nic.counter.tx_bytes", 25_810), ("nic.counter.tx_dropped", 0)];
        scene.receiver_counts = vec![("nic.counter.rx_packets", 20), ("nic.counter.rx_bytes", 1_820)];
        let mut trial = scene.trial();
        for sample in &mut tcp_end(&mut trial.client).streams[0].samples {
            let tcp = &mut sample.tcp;
            let now = |then: u64| Some(if sample.at_us > 0 { then } else { 0 });
            (tcp.data_segs_out, tcp.total_retrans, tcp.bytes_acked) = (now(16).map(|n| n + 1), now(4), Some(45));
            (tcp.unacked, tcp.lost, tcp.sacked, tcp.retrans) = (now(12), now(12), Some(0), Some(0));
        }
        for sample in &mut tcp_end(&mut trial.server).streams[0].samples {
            (sample.tcp.data_segs_in, sample.tcp.bytes_received) = (Some(1), Some(44));
        }
        let ledger = tcp_ledger(trial.of().expect("TCP"), Flow::Up).expect("segments");
        assert_eq!((ledger.offered, ledger.delivered, ledger.unexplained), (16, 0, 0));
        let path = ledger.stages.iter().find(|stage| stage.id == "path").expect("a stage");
        assert_eq!((path.dropped, path.uncertainty), (16, 0), "{ledger:#?}");
        let says = "30 packets left the sender's device, 20 reached the receiver's (a batch of segments counts as one)";
        assert_eq!(path.source, says);
        let view = crate::evidence::tcp::FlowView::of(trial.of().expect("TCP"), Flow::Up).expect("a flow");
        let loss = view.loss_whole.expect("segments");
        assert_eq!((loss.sent, loss.lost(), loss.is_few(20)), (16, 16, false));
    }

    #[test]
    fn batches_of_a_tun_device_are_told_by_their_bytes() {
        let mut trial = Scene::default().trial();
        let sent = tcp_end(&mut trial.client).streams[0].samples.last_mut().expect("samples");
        let segments = sent.tcp.data_segs_out.expect("segments");
        let bytes = segments * 1_448;
        (sent.tcp.bytes_sent, sent.tcp.dsack_dups, sent.tcp.unacked) = (Some(bytes), Some(10), Some(0));
        for sample in &mut tcp_end(&mut trial.server).streams[0].samples {
            (sample.tcp.data_segs_in, sample.tcp.bytes_received) = (Some(0), Some(0));
        }
        let got = tcp_end(&mut trial.server).streams[0].samples.last_mut().expect("samples");
        // Nine segments in each; 40 segments did not come, and ten of these came before.
        (got.tcp.data_segs_in, got.tcp.bytes_received) = (Some(segments / 9), Some(bytes - 40 * 1_448));
        let ledger = tcp_ledger(trial.of().expect("TCP"), Flow::Up).expect("segments");
        assert_eq!((ledger.offered, ledger.delivered, ledger.unexplained), (segments, segments - 30, 0));
        // Without the bytes of the sender there is nothing to tell.
        let sent = tcp_end(&mut trial.client).streams[0].samples.last_mut().expect("samples");
        sent.tcp.bytes_sent = None;
        assert_eq!(tcp_ledger(trial.of().expect("TCP"), Flow::Up), None);
    }
}
