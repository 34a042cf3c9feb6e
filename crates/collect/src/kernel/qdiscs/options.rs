//! The options of disciplines that limit a rate or a queue. Rates are bytes per second in the kernel, bits here.

use super::{Qdisc, handle};
use narrows_sys::netlink::{Attribute, attributes, find, u32_at};

/// `struct tc_ratespec` is 12 bytes, its rate the last word.
const RATESPEC_RATE: usize = 8;

fn bits(bytes_per_second: u64) -> Option<u64> {
    (bytes_per_second > 0).then(|| bytes_per_second.saturating_mul(8))
}

/// A 32-bit rate, or its 64-bit form if it does not fit.
fn rate(spec: Option<u32>, wide: Option<Attribute<'_>>) -> Option<u64> {
    bits(wide.and_then(|wide| wide.u64()).filter(|wide| *wide > 0).or(spec.map(u64::from))?)
}

pub(super) fn qdisc(qdisc: &mut Qdisc, number: u32, options: &Attribute<'_>) {
    let payload = options.payload;
    match qdisc.kind.as_str() {
        "tbf" => {
            // TCA_TBF_PARMS: struct tc_tbf_qopt { rate, peakrate, limit, buffer, mtu }; TCA_TBF_RATE64.
            let parms = find(payload, 1).map(|parms| parms.payload).unwrap_or_default();
            qdisc.rate_bps = rate(u32_at(parms, RATESPEC_RATE), find(payload, 4));
            qdisc.limit_bytes = u32_at(parms, 24);
        }
        "htb" => {
            // TCA_HTB_INIT: struct tc_htb_glob { version, rate2quantum, defcls, … }
            let default = find(payload, 2).and_then(|glob| u32_at(glob.payload, 8)).filter(|minor| *minor != 0);
            qdisc.default_class = default.map(|minor| handle(number & 0xffff_0000 | minor & 0xffff));
        }
        "fq" => {
            // TCA_FQ_PLIMIT, TCA_FQ_FLOW_MAX_RATE (all ones: no limit)
            qdisc.limit_packets = find(payload, 1).and_then(|limit| limit.u32());
            let flow = find(payload, 7).and_then(|rate| rate.u32()).filter(|rate| *rate != u32::MAX);
            qdisc.rate_bps = flow.and_then(|rate| bits(rate.into()));
        }
        "cake" => {
            // TCA_CAKE_BASE_RATE64, TCA_CAKE_MEMORY
            qdisc.rate_bps = find(payload, 2).and_then(|rate| bits(rate.u64()?));
            qdisc.limit_bytes = find(payload, 10).and_then(|memory| memory.u32()).filter(|memory| *memory != 0);
        }
        "netem" => {
            // struct tc_netem_qopt { latency, limit, loss, gap, duplicate, jitter }, then TCA_NETEM_RATE, TCA_NETEM_RATE64
            qdisc.limit_packets = u32_at(payload, 4);
            let rest = payload.get(24..).unwrap_or_default();
            qdisc.rate_bps = rate(find(rest, 6).and_then(|rate| rate.u32()), find(rest, 8));
        }
        "pfifo" | "pfifo_head_drop" => qdisc.limit_packets = u32_at(payload, 0),
        "bfifo" => qdisc.limit_bytes = u32_at(payload, 0),
        // struct tc_sfq_qopt { quantum, perturb_period, limit, … }
        "sfq" => qdisc.limit_packets = u32_at(payload, 8),
        // TCA_CODEL_LIMIT, TCA_FQ_CODEL_LIMIT, TCA_PIE_LIMIT, TCA_FQ_PIE_LIMIT
        "codel" | "fq_codel" | "pie" => {
            let limit = attributes(payload).find(|attribute| attribute.kind == 2);
            qdisc.limit_packets = limit.and_then(|limit| limit.u32());
        }
        "fq_pie" => qdisc.limit_packets = find(payload, 1).and_then(|limit| limit.u32()),
        _ => {}
    }
}

/// The maximum rate of a class, in bits per second.
pub(super) fn class_ceil(kind: &str, options: &Attribute<'_>) -> Option<u64> {
    if kind != "htb" {
        return None;
    }
    // TCA_HTB_PARMS: struct tc_htb_opt { rate, ceil, … }; TCA_HTB_CEIL64
    let parms = options.find(1).map(|parms| parms.payload).unwrap_or_default();
    rate(u32_at(parms, 12 + RATESPEC_RATE), options.find(7))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_sys::netlink::Builder;
    use proptest::prelude::*;

    fn read(kind: &str, payload: &[u8]) -> Qdisc {
        let mut found = Qdisc { kind: kind.into(), ..Qdisc::default() };
        qdisc(&mut found, 0x1_0000, &Attribute { kind: 2, payload });
        found
    }

    #[test]
    fn tbf_has_a_rate_and_a_limit() {
        let mut parms = vec![0; 36];
        parms[8..12].copy_from_slice(&1_250_000_u32.to_ne_bytes());
        parms[24..28].copy_from_slice(&30_000_u32.to_ne_bytes());
        let mut options = Builder::new();
        options.bytes(1, &parms);
        let tbf = read("tbf", &options.clone().finish().expect("short"));
        assert_eq!((tbf.rate_bps, tbf.limit_bytes), (Some(10_000_000), Some(30_000)));
        options.u64(4, 12_500_000_000);
        assert_eq!(read("tbf", &options.finish().expect("short")).rate_bps, Some(100_000_000_000));
    }

    #[test]
    fn fq_without_a_rate_has_none() {
        let mut options = Builder::new();
        options.u32(1, 10_000).u32(7, u32::MAX);
        let fq = read("fq", &options.finish().expect("short"));
        assert_eq!((fq.rate_bps, fq.limit_packets), (None, Some(10_000)));
    }

    #[test]
    fn htb_names_its_default_class() {
        let mut glob = vec![0; 20];
        glob[8] = 0x20;
        let mut options = Builder::new();
        options.bytes(2, &glob);
        assert_eq!(read("htb", &options.finish().expect("short")).default_class.as_deref(), Some("1:20"));
    }

    proptest! {
        #[test]
        fn no_options_panic(which in 0_usize..12, payload in proptest::collection::vec(any::<u8>(), 0..120)) {
            let kinds = ["tbf", "htb", "fq", "cake", "netem", "pfifo", "bfifo", "sfq", "codel", "pie", "fq_pie", "x"];
            read(kinds[which], &payload);
            class_ceil("htb", &Attribute { kind: 2, payload: &payload });
        }
    }
}
