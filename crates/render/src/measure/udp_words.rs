//! UDP plans and counts in words.

use crate::figures::{float, grouped, pps};
use narrows_model::words::units::bps;
use narrows_model::{DatagramSizes, UdpRate, Unsent};

/// `1.00 Gbit/s`, `86.3 kpps`, `as fast as possible`.
pub(crate) fn rate(rate: UdpRate) -> String {
    match rate {
        UdpRate::Bps(asked) => bps(float(asked)),
        UdpRate::Pps(asked) => pps(asked),
        UdpRate::Max => "as fast as possible".to_owned(),
    }
}

/// `largest unfragmented datagrams`, `datagrams of 64 B`, `datagrams of 64, 570 and 1518 B in turn`.
pub(crate) fn sizes(sizes: &DatagramSizes) -> String {
    match sizes {
        DatagramSizes::Largest => "the largest datagrams that pass unfragmented".to_owned(),
        DatagramSizes::Sequence(list) => match list.as_slice() {
            [] => "datagrams".to_owned(),
            [one] => format!("datagrams of {one} B"),
            [few @ .., last] if few.len() < 5 => {
                let few: Vec<String> = few.iter().map(u32::to_string).collect();
                format!("datagrams of {} and {last} B in turn", few.join(", "))
            }
            many => {
                let (least, most) = (many.iter().min().unwrap_or(&0), many.iter().max().unwrap_or(&0));
                format!("a mix of {} datagrams from {least} to {most} B", many.len())
            }
        },
    }
}

/// Each reason that occurred: `queue of the device full (ENOBUFS) 12, …`.
pub(crate) fn unsent(unsent: &Unsent) -> String {
    let reasons = [
        ("queue of the device full (ENOBUFS)", unsent.no_buffers),
        ("send buffer full (EAGAIN)", unsent.would_block),
        ("larger than the path MTU (EMSGSIZE)", unsent.too_big),
        ("refused by a filter (EPERM)", unsent.not_permitted),
        ("port closed (ECONNREFUSED)", unsent.refused),
        ("other errors", unsent.other),
    ];
    let named: Vec<_> =
        reasons.iter().filter(|(_, n)| *n > 0).map(|(reason, n)| format!("{reason} {}", grouped(*n))).collect();
    named.join(", ")
}
