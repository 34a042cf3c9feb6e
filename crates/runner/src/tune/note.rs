//! Old values of the journal in words: it has the options of a queueing discipline as the bytes that the kernel dumped.
//!
//! Source: include/uapi/linux/pkt_sched.h; iproute2 `tc/q_tbf.c`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use narrows_model::words::figures::float;
use narrows_model::words::units::{bps, bytes, micros};
use narrows_model::{Change, Setting};
use narrows_sys::netlink::{find, u32_at};

/// What was there before a change, for people.
pub fn before(change: &Change) -> String {
    words(&change.set, &change.before)
}

/// A note of what this setting sets, for people.
pub(super) fn words(set: &Setting, note: &str) -> String {
    match (set, note.split(' ').collect::<Vec<_>>().as_slice()) {
        (Setting::RootQdisc { .. }, [kind, _, options]) => {
            let options = STANDARD.decode(options).unwrap_or_default();
            options_of(kind, &options).map_or_else(|| (*kind).to_owned(), |options| format!("{kind} {options}"))
        }
        _ => note.to_owned(),
    }
}

/// The options that matter most of the kinds that may be replaced.
fn options_of(kind: &str, options: &[u8]) -> Option<String> {
    let number = |kind| find(options, kind)?.u32();
    let packets = |limit: u32| format!("limit {limit} packets");
    match kind {
        "tbf" => tbf(options),
        "pfifo" => u32_at(options, 0).map(packets),
        "bfifo" => u32_at(options, 0).map(|limit| format!("limit {}", bytes(limit.into()))),
        "sfq" => u32_at(options, 8).map(packets),
        // TCA_CODEL_LIMIT, TCA_FQ_CODEL_LIMIT, TCA_PIE_LIMIT
        "codel" | "fq_codel" | "pie" => number(2).map(packets),
        // TCA_FQ_FLOW_MAX_RATE (all ones: none), TCA_FQ_PLIMIT
        "fq" => {
            let rate = number(7).filter(|rate| *rate != u32::MAX).map(|rate| format!("maxrate {}", bits(rate.into())));
            let all: Vec<String> = rate.into_iter().chain(number(1).map(packets)).collect();
            (!all.is_empty()).then(|| all.join(" "))
        }
        // TCA_CAKE_BASE_RATE64
        "cake" => {
            let rate = find(options, 2)?.u64().filter(|rate| *rate > 0);
            Some(rate.map_or_else(|| "unlimited".to_owned(), |rate| format!("bandwidth {}", bits(rate))))
        }
        _ => None,
    }
}

fn bits(bytes_per_second: u64) -> String {
    bps(float(bytes_per_second) * 8.0)
}

/// The kernel's unit of the time that a bucket lasts, ns (`PSCHED_SHIFT`).
const TICK_NS: f64 = 64.0;

/// `struct tc_tbf_qopt` { rate, peakrate, limit, buffer, mtu }, `TCA_TBF_RATE64`.
fn tbf(options: &[u8]) -> Option<String> {
    let parms = find(options, 1)?.payload;
    let wide = find(options, 4).and_then(|rate| rate.u64());
    let rate = wide.or_else(|| u32_at(parms, 8).map(u64::from)).filter(|rate| *rate > 0)?;
    let (limit, ticks) = (u32_at(parms, 24)?, u32_at(parms, 28)?);
    let bucket_s = f64::from(ticks) * TICK_NS / 1e9;
    let burst = (bucket_s * float(rate)).round() as u64;
    let latency_us = ((f64::from(limit) / float(rate) - bucket_s).max(0.0) * 1e6).round() as u64;
    Some(format!(
        "rate {} burst {} latency {} (limit {})",
        bits(rate),
        bytes(burst),
        micros(latency_us),
        bytes(limit.into())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_qdisc_is_named_with_its_options() {
        let of = |note: &str| words(&Setting::RootQdisc { device: "eth0".into(), kind: "default".into() }, note);
        // `tc qdisc replace dev eth0 root tbf rate 50mbit burst 64k limit 200k`, as Linux 6.18 dumps it.
        assert_eq!(
            of("tbf 833b0000 KAABAAABAAAAAAAAEF5fAAAAAAAAAAAAAAAAAAAgAwAAgAIAAAAAAA=="),
            "tbf rate 50.0 Mbit/s burst 64 KiB latency 22.3 ms (limit 200 KiB)"
        );
        assert_eq!(of("pfifo 120000 ewAAAA=="), "pfifo limit 123 packets");
        assert_eq!((of("default"), of("mq 0 "), of("tbf 1 ?")), ("default".into(), "mq".into(), "tbf".into()));
        let sysctl = Setting::Sysctl { key: "net.ipv4.tcp_rmem".into(), value: "1 2 3".into() };
        assert_eq!(words(&sysctl, "4096 131072 262144"), "4096 131072 262144");
    }
}
