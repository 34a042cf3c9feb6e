//! The packet ledger: where the datagrams of a flow went, from the send call to the receive call, in double entry.
//!
//! Each stage's drops come from counters of that stage. What left the sending device and did not reach the receiving one was
//! lost on the path. What no counter accounts for is *unexplained*; it is printed, never hidden.
//!
//! What makes it hard, and what is done about it (measured on Linux 6.18):
//!
//! - **Super-packets.** With `UDP_SEGMENT` and `UDP_GRO` a counter may count a batch of datagrams once. A queueing discipline
//!   counts segments sent but batches dropped; a virtual device and the packet filter count batches; a socket with
//!   `UDP_GRO` drops batches. Only the counters of ECN marks (`IpExt.InNoECTPkts` and its sisters) count each segment on
//!   arrival, and not even they where a TUN device or a hypervisor made the batch; the bytes of the devices are then what is left. A count of batches is a range; the ranges are closed by those counters, and by what is missing.
//! - **A local drop may come back.** Where the socket has `IP_RECVERR`, a drop of the queueing discipline, of the device or
//!   of a virtual peer's backlog is also `ENOBUFS` at the send call. It is booked where it happened, and once.
//! - **Several hosts in one kernel.** `softnet_stat`, and the reasons of drops where no BPF program counts them, are those of all
//!   network namespaces of a machine: of the receiver, the sender of a lab, routers, containers. A host is charged with no more of them
//!   than counters of its own namespace miss (`reasons`).
//! - **`rx_dropped`** mixes unknown protocols, stray VLANs and the backlog's own drops. It is named, not booked.
//!
//! Source: kernel `net/core/dev.c`, `net/ipv4/{udp,ip_input,ip_output}.c`, `net/sched/sch_generic.c`, `drivers/net/veth.c`.

mod accounting;
mod claim;
pub(crate) mod reasons;
mod receiving;
mod sending;
mod tcp;
mod wire;

pub use tcp::tcp_ledger;

pub(crate) use accounting::Accounting;
use claim::Entry;
use narrows_model::diagnosis::ledger::{Ledger, ONE_END_SILENT, Stage};
use narrows_model::load::udp::UdpTrial;
use narrows_model::{FactKey, Flow, keys};
pub(crate) use tcp::sent_and_arrived;

/// The facts that the ledger reads, each where a host gives it.
pub const NEEDS: &[FactKey] = &[
    keys::HOST_BOOT,
    keys::QDISC_DROPS,
    keys::QDISC_SENT_PACKETS,
    keys::NIC_COUNTER_TX_PACKETS,
    keys::NIC_COUNTER_TX_BYTES,
    keys::NIC_COUNTER_TX_DROPPED,
    keys::NIC_COUNTER_TX_ERRORS,
    keys::LAYER_NAME,
    keys::LAYER_TX_DROPPED,
    keys::LAYER_QDISC_DROPS,
    keys::NIC_COUNTER_RX_PACKETS,
    keys::NIC_COUNTER_RX_BYTES,
    keys::NIC_COUNTER_RX_DROPPED,
    keys::NIC_COUNTER_RX_MISSED_ERRORS,
    keys::NIC_COUNTER_RX_FIFO_ERRORS,
    keys::NIC_COUNTER_RX_OVER_ERRORS,
    keys::NIC_STAT,
    keys::SOFTNET_DROPPED,
    keys::DROP_LOST_RECORDS,
    keys::DROP_ELSEWHERE,
    keys::FILTER_DROP_PACKETS,
    keys::FILTER_DROP_BYTES,
    keys::NETSTAT_TCP_EXT_IP_REVERSE_PATH_FILTER,
    keys::NETSTAT_IP_EXT_IN_NO_ECT_PKTS,
    keys::NETSTAT_IP_EXT_IN_ECT0_PKTS,
    keys::NETSTAT_IP_EXT_IN_ECT1_PKTS,
    keys::NETSTAT_IP_EXT_IN_CE_PKTS,
    keys::SNMP_IP_FRAG_OKS,
    keys::SNMP_IP_FRAG_CREATES,
    keys::SNMP_IP_REASM_REQDS,
    keys::SNMP_IP_REASM_OKS,
    keys::SNMP_IP_REASM_FAILS,
    keys::SNMP_ICMP_IN_MSGS,
    keys::SNMP6_ICMP6_IN_MSGS,
    keys::SNMP_TCP_IN_SEGS,
    keys::SNMP_TCP_OUT_SEGS,
    keys::SNMP_TCP_RETRANS_SEGS,
    keys::SNMP_UDP_IN_DATAGRAMS,
    keys::SNMP_UDP_NO_PORTS,
    keys::SNMP_UDP_IN_CSUM_ERRORS,
    keys::SNMP_UDP_RCVBUF_ERRORS,
    keys::SNMP_UDP_MEM_ERRORS,
    keys::SNMP6_IP6_FRAG_OKS,
    keys::SNMP6_IP6_FRAG_CREATES,
    keys::SNMP6_IP6_REASM_REQDS,
    keys::SNMP6_IP6_REASM_OKS,
    keys::SNMP6_IP6_REASM_FAILS,
    keys::SNMP6_UDP6_IN_CSUM_ERRORS,
];

/// The ids of the stages, in the order of the way.
pub const STAGES: [&str; 13] = [
    "unsent", "send-buffer", "send-filter", "qdisc", "nic-tx", "path", "nic-rx", "softnet", "receive-filter",
    "reassembly", "checksum", "receive-buffer", "delivered",
];

/// The ledger of one flow of a trial. A flow that the trial does not have gives an empty ledger that says so.
///
/// `offered` is what the application handed over, refused datagrams included; those that it gave up itself for want of time
/// (`skipped`) were never handed over, and those that the receiver did not count any more (`uncounted`) are left out. It holds that `offered = Σ dropped + delivered + unexplained`.
pub fn ledger(trial: UdpTrial<'_>, flow: Flow) -> Ledger {
    let Some(accounting) = Accounting::of(trial, flow) else {
        let remarks = vec![format!("the trial sent nothing {}", flow.direction())];
        return Ledger { flow, unit: "datagrams".to_owned(), remarks, ..Ledger::default() };
    };
    let mut remarks = Vec::new();
    if accounting.uncounted > 0 {
        let n = accounting.uncounted;
        remarks.push(format!("left out: {n} datagrams, sent when the receiver may have stopped counting"));
    }
    let mut entries = sending::entries(&accounting);
    entries.extend(receiving::entries(&accounting, &mut remarks));
    let missing = i128::from(accounting.offered) - i128::from(accounting.delivered);
    let blurred = wire::book(&accounting, &mut entries, missing, &mut remarks);
    if accounting.silent(flow.sender()) || accounting.silent(flow.receiver()) {
        remarks.push(ONE_END_SILENT.to_owned());
    }
    settle(&accounting, entries, remarks, blurred, "datagrams")
}

/// Closes the book: what came in, what ended at each stage, and what is left over.
fn settle(accounting: &Accounting, entries: Vec<Entry>, remarks: Vec<String>, blurred: u64, unit: &str) -> Ledger {
    let mut stages: Vec<Stage> = Vec::with_capacity(entries.len() + 1);
    let mut entered = accounting.offered;
    for entry in entries {
        let dropped = entry.claim.dropped();
        stages.push(Stage {
            id: entry.id.to_owned(),
            at: entry.at,
            entered,
            dropped,
            uncertainty: entry.claim.uncertainty(),
            counted: entry.claim.counted,
            source: entry.source,
        });
        entered = entered.saturating_sub(dropped);
    }
    stages.push(Stage {
        id: "delivered".to_owned(),
        at: accounting.flow.receiver(),
        entered,
        dropped: 0,
        uncertainty: 0,
        counted: true,
        source: "sequence numbers that the receiving application saw, each once".to_owned(),
    });
    let booked: i128 = stages.iter().map(|stage| i128::from(stage.dropped)).sum();
    let unexplained = i128::from(accounting.offered) - i128::from(accounting.delivered) - booked;
    Ledger {
        flow: accounting.flow,
        unit: unit.to_owned(),
        offered: accounting.offered,
        uncertainty: stages.iter().fold(blurred, |sum, stage| sum.saturating_add(stage.uncertainty)),
        stages,
        delivered: accounting.delivered,
        duplicated: accounting.duplicated,
        unexplained: i64::try_from(unexplained).unwrap_or(if unexplained < 0 { i64::MIN } else { i64::MAX }),
        remarks,
    }
}

#[cfg(test)]
mod tests;
