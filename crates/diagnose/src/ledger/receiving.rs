//! The receiver's half: from the wire to the receive call.

use super::Entry;
use super::books::Books;
use super::claim::Claim;
use super::sending::Told;

pub(super) fn entries(books: &Books, remarks: &mut Vec<String>) -> Vec<Entry> {
    let checksum = checksum(books);
    let corrupt = checksum.claim.dropped();
    vec![
        device(books, remarks),
        softnet(books),
        filter(books, remarks),
        reassembly(books, remarks),
        checksum,
        socket(books, corrupt, remarks),
    ]
}

fn entry(books: &Books, id: &'static str, claim: Claim, source: impl Into<String>) -> Entry {
    Entry { id, at: books.flow.receiver(), claim, source: source.into() }
}

/// Packets that the receiver's device took and that are not of this flow.
fn others(books: &Books) -> u64 {
    let ours = books.delivered.saturating_add(books.duplicated).saturating_add(books.socket_drops.unwrap_or(0));
    books.got("nic.counter.rx_packets").unwrap_or(0).saturating_sub(ours)
}

fn device(books: &Books, remarks: &mut Vec<String>) -> Entry {
    let Some(missed) = books.got("nic.counter.rx_missed_errors") else {
        return entry(books, "nic-rx", Claim::unknown(), "the device gave no counters");
    };
    // Drivers count one and the same event under one of these names, some under two.
    let fifo = books.got("nic.counter.rx_fifo_errors").unwrap_or(0);
    let over = books.got("nic.counter.rx_over_errors").unwrap_or(0);
    let ring = missed.max(fifo).max(over);
    let dropped = books.got("nic.counter.rx_dropped").unwrap_or(0);
    let beyond = dropped.saturating_sub(books.got("softnet.dropped").unwrap_or(0));
    if beyond > 0 {
        remarks.push(format!(
            "rx_dropped of the receiver grew by {beyond} that no other counter has; it mixes unknown protocols and VLANs with \
             drops, so it is not booked"
        ));
    }
    entry(books, "nic-rx", Claim::exactly(ring), format!("{ring} rx_missed, rx_fifo or rx_over errors of the device"))
}

/// Of an overflowing backlog each dropped packet counts; one kernel has one count for all of its hosts.
fn softnet(books: &Books) -> Entry {
    let Some(drops) = books.got("softnet.dropped") else {
        return entry(books, "softnet", Claim::unknown(), "softnet_stat could not be read");
    };
    let mut source = format!("{drops} in the column dropped of softnet_stat");
    if books.one_kernel {
        source.push_str(", which both ends share");
    }
    let mut claim = match books.fragments_each() {
        1 => Claim::batches(drops, books.batch_got()),
        parts => Claim { low: drops.div_ceil(parts), ..Claim::batches(drops, 1) },
    };
    // What a virtual pair's peer refused, the sender was told datagram by datagram.
    let told = Told::of(books).device;
    if told > 0 && books.one_kernel && books.sent("nic.counter.tx_dropped").unwrap_or(0) <= drops {
        claim.close_at(told);
    }
    claim = claim.shared_with(books.delivered.max(1), others(books));
    if books.both_ways && books.one_kernel {
        claim.shared = claim.low; // of either way
    }
    entry(books, "softnet", claim, source)
}

/// Header of IP and UDP in front of each datagram of a plain packet.
const fn header_bytes(books: &Books) -> u64 {
    if books.ipv6 { 48 } else { 28 }
}

fn filter(books: &Books, remarks: &mut Vec<String>) -> Entry {
    let ruled = books.got("filter.drop.packets");
    let spoofed = books.got("netstat.TcpExt.IPReversePathFilter").unwrap_or(0);
    // A watch sees the whole kernel: what the sender's own filter refused is booked there.
    let elsewhere = if books.one_kernel { books.unsent.not_permitted } else { 0 };
    let reason = |name| books.reason(false, name);
    let watched = reason("NETFILTER_DROP").map(|n| n.saturating_sub(elsewhere));
    let early = reason("TC_INGRESS").unwrap_or(0).saturating_add(reason("XDP").unwrap_or(0));
    if ruled.is_none() && watched.is_none() {
        return entry(
            books,
            "receive-filter",
            Claim::unknown(),
            "neither rule counters nor reasons of drops could be read",
        );
    }
    let by_rules = ruled.unwrap_or(0);
    let dropped = by_rules.max(watched.unwrap_or(0));
    let all = dropped.saturating_add(spoofed).saturating_add(early);
    let mut claim = Claim::batches(all, books.batch_got());
    let mut source = match (ruled, watched) {
        (Some(rules), Some(watched)) => format!("{rules} by counters of rules that drop, {watched} NETFILTER_DROP"),
        (Some(rules), None) => format!("{rules} by counters of rules that drop"),
        (None, _) => format!("{dropped} NETFILTER_DROP"),
    };
    if spoofed > 0 {
        source.push_str(&format!(", {spoofed} IPReversePathFilter"));
    }
    if early > 0 {
        source.push_str(&format!(", {early} TC_INGRESS or XDP"));
    }
    if !claim.closed
        && all == by_rules
        && let (Some(bytes), Some(size)) = (books.got("filter.drop.bytes"), books.payload)
    {
        // A batch has one header and the payload of all of its datagrams.
        claim.close_at(bytes.saturating_sub(all.saturating_mul(header_bytes(books))) / size.max(1));
    }
    if watched.is_some_and(|watched| watched > by_rules) && by_rules > 0 {
        remarks.push("some rules that drop have no counter: the reasons of drops say more than the rules".to_owned());
    }
    entry(books, "receive-filter", claim, source)
}

/// Fragments: a datagram with a fragment missing is lost as a whole, here.
fn reassembly(books: &Books, remarks: &mut Vec<String>) -> Entry {
    let parts = books.fragments_each();
    if parts == 1 {
        return entry(books, "reassembly", Claim::exactly(0), "no datagram was sent in fragments");
    }
    let (sent, whole) = (books.fragments(true, "FragOKs"), books.fragments(false, "ReasmOKs"));
    let (Some(sent), Some(whole)) = (sent, whole) else {
        return entry(books, "reassembly", Claim::unknown(), "the counters of reassembly could not be read");
    };
    let lost = books
        .fragments(true, "FragCreates")
        .zip(books.fragments(false, "ReasmReqds"))
        .map_or(0, |(sent, got)| sent.saturating_sub(got));
    remarks.push(format!(
        "each datagram travelled in {parts} fragments, and the loss of one costs all: {lost} fragments never arrived"
    ));
    let source = format!("{sent} datagrams were sent in fragments, {whole} were put together again");
    entry(books, "reassembly", Claim::exactly(sent.saturating_sub(whole)), source)
}

fn checksum(books: &Books) -> Entry {
    match books.udp("InCsumErrors") {
        Some(n) => entry(books, "checksum", Claim::exactly(n), format!("{n} InCsumErrors of UDP")),
        None => entry(books, "checksum", Claim::unknown(), "the counters of UDP could not be read"),
    }
}

/// The receive buffer: by the sockets themselves, which also count what was corrupt; else by UDP's counters of the
/// host, which also count other sockets.
fn socket(books: &Books, corrupt: u64, remarks: &mut Vec<String>) -> Entry {
    let own = books.socket_drops.map(|drops| drops.saturating_sub(corrupt));
    let host = books.udp("RcvbufErrors").map(|full| full.saturating_add(books.udp("MemErrors").unwrap_or(0)));
    let foreign = books
        .udp("InDatagrams")
        .map(|all| all.saturating_sub(books.delivered).saturating_sub(books.duplicated))
        .filter(|_| !books.coalesced)
        .unwrap_or(0);
    if let Some(ports) = books.udp("NoPorts").filter(|n| *n > 0) {
        remarks.push(format!("{ports} datagrams found no socket at the receiver (NoPorts)"));
    }
    let most = if books.coalesced { books.batch_most } else { 1 };
    let (claim, source) = match (own, host) {
        (Some(own), Some(host)) if host > own => (
            Claim::batches(host, most).shared_with(books.delivered.max(1), foreign),
            format!("{own} told by the sockets, {host} RcvbufErrors and MemErrors of the host"),
        ),
        (Some(own), _) => (Claim::batches(own, most), format!("{own} told by the sockets (SO_RXQ_OVFL)")),
        (None, Some(host)) => (
            Claim::batches(host, most).shared_with(books.delivered.max(1), foreign),
            format!("{host} RcvbufErrors and MemErrors of the host"),
        ),
        (None, None) => (Claim::unknown(), "neither the sockets nor the host tell".to_owned()),
    };
    entry(books, "receive-buffer", claim, source)
}
