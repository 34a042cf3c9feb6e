//! The receiver's half: from the wire to the receive call.

use super::accounting::Accounting;
use super::claim::{Claim, Entry};
use super::sending::ReportedDrops;
use narrows_model::keys;

pub(super) fn entries(accounting: &Accounting, remarks: &mut Vec<String>) -> Vec<Entry> {
    let checksum = checksum(accounting);
    let corrupt = checksum.claim.dropped();
    vec![
        device(accounting, remarks),
        softnet(accounting),
        filter(accounting, remarks),
        reassembly(accounting, remarks),
        checksum,
        socket(accounting, corrupt, remarks),
    ]
}

fn entry(accounting: &Accounting, id: &'static str, claim: Claim, source: impl Into<String>) -> Entry {
    Entry { id, at: accounting.flow.receiver(), claim, source: source.into() }
}

/// Packets that the receiver's device took and that are not of this flow.
fn others(accounting: &Accounting) -> u64 {
    let ours =
        accounting.delivered.saturating_add(accounting.duplicated).saturating_add(accounting.socket_drops.unwrap_or(0));
    accounting.got(keys::NIC_COUNTER_RX_PACKETS).unwrap_or(0).saturating_sub(ours)
}

/// Statistics of drivers that count packets for which the card had no receive descriptor or buffer: mlx5, ixgbe, i40e, ice.
const RING: [&str; 5] =
    ["rx_out_of_buffer", "rx_discards_phy", "rx_no_dma_resources", "port.rx_dropped", "rx_dropped.nic"];

fn device(accounting: &Accounting, remarks: &mut Vec<String>) -> Entry {
    let Some(missed) = accounting.got(keys::NIC_COUNTER_RX_MISSED_ERRORS) else {
        return entry(accounting, "nic-rx", Claim::unknown(), "the device gave no counters");
    };
    // Drivers count one and the same event under one of these names, some under two.
    let fifo = accounting.got(keys::NIC_COUNTER_RX_FIFO_ERRORS).unwrap_or(0);
    let over = accounting.got(keys::NIC_COUNTER_RX_OVER_ERRORS).unwrap_or(0);
    let driver = RING.iter().filter_map(|name| accounting.got(format!("nic.stat.{name}"))).max().unwrap_or(0);
    let ring = missed.max(fifo).max(over).max(driver);
    let dropped = accounting.got(keys::NIC_COUNTER_RX_DROPPED).unwrap_or(0);
    let beyond = dropped.saturating_sub(accounting.got(keys::SOFTNET_DROPPED).unwrap_or(0));
    if beyond > 0 {
        remarks.push(format!(
            "rx_dropped of the receiver grew by {beyond} that no other counter has; it mixes unknown protocols and VLANs with \
             drops, so it is not counted here"
        ));
    }
    entry(
        accounting,
        "nic-rx",
        Claim::exactly(ring).shared_with(accounting.delivered.max(1), others(accounting)),
        format!("{ring} rx_missed, rx_fifo or rx_over errors of the device"),
    )
}

/// Of an overflowing backlog each dropped packet counts.
fn softnet(accounting: &Accounting) -> Entry {
    let Some(drops) = accounting.backlog() else {
        return entry(accounting, "softnet", Claim::unknown(), "softnet_stat could not be read");
    };
    let all = accounting.got(keys::SOFTNET_DROPPED).unwrap_or(drops);
    let mut source = format!("{drops} in the column dropped of softnet_stat");
    if all > drops {
        source.push_str(&format!("; {} more were of other network namespaces of the machine", all - drops));
    }
    let mut claim = match accounting.fragments_each() {
        1 => Claim::batches(drops, accounting.batch_got()),
        parts => Claim { low: drops.div_ceil(parts), ..Claim::batches(drops, 1) },
    };
    // What a virtual pair's peer refused, the sender got an error for, datagram by datagram.
    let reported = ReportedDrops::of(accounting).device;
    if reported > 0 && accounting.one_kernel && accounting.sent(keys::NIC_COUNTER_TX_DROPPED).unwrap_or(0) <= drops {
        claim.close_at(reported);
    }
    claim = claim.shared_with(accounting.delivered.max(1), others(accounting));
    if accounting.both_ways && accounting.one_kernel {
        claim.shared = claim.low; // of either way
    }
    entry(accounting, "softnet", claim, source)
}

/// Packets that XDP programs dropped in the receiver's device, which no reason of a drop counts: by its driver, for each queue (veth,
/// virtio), for all of them, or both (mlx5).
fn dropped_by_xdp(accounting: &Accounting) -> u64 {
    let is_of = |key: &String, of_queue: bool| {
        let ends = key.ends_with("xdp_drop") || key.ends_with("xdp_drops");
        ends && keys::NIC_STAT.covers(key) && key.contains(|c: char| c.is_ascii_digit()) == of_queue
    };
    let sum = |of_queue| {
        let counts = accounting.receiver.iter().filter(|(key, _)| is_of(key, of_queue));
        counts.fold(0_u64, |sum, (_, n)| sum.saturating_add(*n))
    };
    sum(true).max(sum(false))
}

/// Packets of a trial that IP drops without counting them anywhere: multicast that nobody joined (net/ipv4/route.c, `ip_route_input_mc`),
/// twenty a second on a busy network.
const UNCOUNTED: u64 = 200;

fn filter(accounting: &Accounting, remarks: &mut Vec<String>) -> Entry {
    let ruled = accounting.got(keys::FILTER_DROP_PACKETS);
    let spoofed = accounting.got(keys::NETSTAT_TCP_EXT_IP_REVERSE_PATH_FILTER).unwrap_or(0);
    let reason = |name| accounting.reason(false, name);
    let watched = reason("NETFILTER_DROP");
    // Without privilege neither rules nor reasons can be read, but what IP misses can.
    let missing = accounting.received_and_dropped().filter(|_| ruled.is_none() && watched.is_none());
    let by_xdp = reason("XDP").unwrap_or(0).max(dropped_by_xdp(accounting));
    let early = reason("TC_INGRESS").unwrap_or(0).saturating_add(by_xdp);
    if ruled.is_none() && watched.is_none() && missing.is_none() && spoofed == 0 {
        return entry(
            accounting,
            "receive-filter",
            Claim::unknown(),
            "neither rule counters nor drop reasons could be read",
        );
    }
    let by_rules = ruled.unwrap_or(0);
    let dropped = by_rules.max(watched.or(missing).unwrap_or(0));
    let all = dropped.saturating_add(spoofed).saturating_add(early);
    let mut claim = Claim::batches(all, accounting.batch_got());
    claim.shared = missing.unwrap_or(0).min(UNCOUNTED);
    let mut source = match (ruled, watched) {
        (Some(0), Some(watched)) if watched > 0 => {
            format!("{watched} NETFILTER_DROP; no counter of a rule that drops grew (named ones are not read)")
        }
        (Some(rules), Some(watched)) => format!("{rules} by counters of rules that drop, {watched} NETFILTER_DROP"),
        (Some(rules), None) => format!("{rules} by counters of rules that drop"),
        (None, Some(watched)) => format!("{watched} NETFILTER_DROP"),
        (None, None) => format!("{dropped} packets that IP received and neither delivered nor forwarded"),
    };
    if spoofed > 0 {
        source.push_str(&format!(", {spoofed} IPReversePathFilter"));
    }
    if early > 0 {
        source.push_str(&format!(", {early} TC_INGRESS or XDP"));
    }
    if !claim.closed
        && all == by_rules
        && let (Some(bytes), Some(size)) = (accounting.got(keys::FILTER_DROP_BYTES), accounting.payload)
    {
        // A batch has one header and the payload of all of its datagrams.
        claim.close_at(bytes.saturating_sub(all.saturating_mul(accounting.header_bytes())) / size.max(1));
    }
    if watched.is_some_and(|watched| watched > by_rules) && by_rules > 0 {
        remarks.push("some rules that drop have no counter: the drop reasons say more than the rules".to_owned());
    }
    entry(accounting, "receive-filter", claim, source)
}

/// Fragments: a datagram with a fragment missing is lost as a whole, here.
fn reassembly(accounting: &Accounting, remarks: &mut Vec<String>) -> Entry {
    let parts = accounting.fragments_each();
    if parts == 1 {
        return entry(accounting, "reassembly", Claim::exactly(0), "no datagram was sent in fragments");
    }
    let (sent, whole) = (accounting.fragments(true, "FragOKs"), accounting.fragments(false, "ReasmOKs"));
    let (Some(sent), Some(whole)) = (sent, whole) else {
        return entry(accounting, "reassembly", Claim::unknown(), "the counters of reassembly could not be read");
    };
    let lost = accounting
        .fragments(true, "FragCreates")
        .zip(accounting.fragments(false, "ReasmReqds"))
        .map_or(0, |(sent, got)| sent.saturating_sub(got));
    remarks.push(format!(
        "each datagram travelled in {parts} fragments, and the loss of one costs all: {lost} fragments never arrived"
    ));
    let source = format!("{sent} datagrams were sent in fragments, {whole} were put together again");
    entry(accounting, "reassembly", Claim::exactly(sent.saturating_sub(whole)), source)
}

fn checksum(accounting: &Accounting) -> Entry {
    match accounting.udp("InCsumErrors") {
        Some(n) => entry(accounting, "checksum", Claim::exactly(n), format!("{n} InCsumErrors of UDP")),
        None => entry(accounting, "checksum", Claim::unknown(), "the counters of UDP could not be read"),
    }
}

/// The receive buffer: by the sockets themselves, which also count what was corrupt; else by UDP's counters of the
/// host, which also count other sockets.
fn socket(accounting: &Accounting, corrupt: u64, remarks: &mut Vec<String>) -> Entry {
    let own = accounting.socket_drops.map(|drops| drops.saturating_sub(corrupt));
    let host = accounting.udp("RcvbufErrors").map(|full| full.saturating_add(accounting.udp("MemErrors").unwrap_or(0)));
    let foreign = accounting
        .udp("InDatagrams")
        .map(|all| all.saturating_sub(accounting.delivered).saturating_sub(accounting.duplicated))
        .filter(|_| !accounting.coalesced)
        .unwrap_or(0);
    if let Some(ports) = accounting.udp("NoPorts").filter(|n| *n > 0) {
        remarks.push(format!("{ports} datagrams found no socket at the receiver (NoPorts)"));
    }
    let most = if accounting.coalesced { accounting.batch_most } else { 1 };
    let (claim, source) = match (own, host) {
        // The sockets count each batch once, and so the host's count of datagrams may be the better one; other sockets of it drop, too.
        (Some(own), Some(host)) if host > own && accounting.coalesced => (
            Claim::batches(host, most).shared_with(accounting.delivered.max(1), foreign),
            format!("{own} reported by the sockets, {host} RcvbufErrors and MemErrors of the host"),
        ),
        (Some(own), _) => (Claim::batches(own, most), format!("{own} reported by the sockets (SO_RXQ_OVFL)")),
        (None, Some(host)) => (
            Claim::batches(host, most).shared_with(accounting.delivered.max(1), foreign),
            format!("{host} RcvbufErrors and MemErrors of the host"),
        ),
        (None, None) => (Claim::unknown(), "neither the sockets nor the host report drops".to_owned()),
    };
    entry(accounting, "receive-buffer", claim, source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Flow;

    #[test]
    fn what_a_program_in_the_device_drops_is_of_the_filter() {
        let of = |counts: &[(&str, u64)]| {
            let counts = [&[("filter.drop.packets", 0)], counts].concat();
            let receiver = counts.iter().map(|(key, n)| ((*key).to_owned(), *n)).collect();
            let accounting = Accounting { receiver, ..Accounting::empty(Flow::Up) };
            filter(&accounting, &mut Vec::new()).claim.dropped()
        };
        assert_eq!(of(&[("nic.stat.rx_queue_0_xdp_drops", 90), ("nic.stat.rx_queue_1_xdp_drops", 80)]), 170);
        assert_eq!(of(&[("nic.stat.rx_xdp_drop", 170), ("nic.stat.rx0_xdp_drop", 170)]), 170);
        assert_eq!(of(&[("nic.stat.rx_xdp_redirect", 170), ("nic.stat.rx_queue_0_drops", 30)]), 0);
    }
}
