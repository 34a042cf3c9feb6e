//! The words for frames and their rates.

use crate::figures::{digits, grouped, pps};
use narrows_model::Family;
use narrows_model::load::frames::{Endpoints, FrameFormat, FrameLoad, Transport, Walk};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::words::units::bps;
use std::net::IpAddr;

/// A share of the line rate: `68.7 %`, `9.41 %`; only all of it is `100 %`.
#[must_use]
pub fn of_line(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        p if !p.is_finite() => "–".to_owned(),
        p if (99.9..99.995).contains(&p) => "99.9 %".to_owned(),
        p if p >= 99.995 => format!("{p:.0} %"),
        p if p >= 9.995 => format!("{p:.1} %"),
        p => format!("{} %", digits(p)),
    }
}

/// `14.9 Mpps, 10.0 Gbit/s on the wire, 100 % of line rate`.
pub(crate) fn rate(rate: &FrameRate) -> String {
    let line = rate.of_line.map(|part| format!(", {} of line rate", of_line(part)));
    format!("{}, {} on the wire{}", pps(rate.pps), bps(rate.wire_bps), line.unwrap_or_default())
}

/// The intended load.
pub(crate) fn load(load: FrameLoad) -> String {
    match load {
        FrameLoad::FramesPerSecond(rate) => pps(rate),
        FrameLoad::Max => "as fast as possible".to_owned(),
    }
}

pub(crate) const fn family(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "IPv4",
        Family::Ipv6 => "IPv6",
    }
}

/// `IPv4 UDP`, `IPv6 TCP SYN`.
pub(crate) fn protocol(of: Family, transport: Transport) -> String {
    let transport = match transport {
        Transport::Udp => "UDP",
        Transport::TcpSyn => "TCP SYN",
    };
    format!("{} {transport}", family(of))
}

pub(crate) const fn walk(walk: Walk) -> &'static str {
    match walk {
        Walk::Odometer => "in turn",
        Walk::Random { .. } => "at random",
    }
}

/// `64 B`, `64, 128, 256 B`; for a long list its length and mean.
pub(crate) fn sizes(sizes: &[u32]) -> String {
    match sizes {
        [] => "no size".to_owned(),
        [..] if sizes.iter().all(|size| Some(size) == sizes.first()) => format!("{} B", sizes[0]),
        [..] if sizes.len() <= 8 => {
            format!("{} B in turn", sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        }
        [..] => {
            let mean =
                sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / crate::figures::float(sizes.len() as u64);
            format!("{} sizes in turn, {mean:.1} B in the mean", sizes.len())
        }
    }
}

/// The format of the frames: `IPv4 UDP, 64 B, 2,000 flows in turn`.
pub(crate) fn format(format: &FrameFormat) -> String {
    let vlan = format.vlan.map(|vlan| format!(", VLAN {vlan}")).unwrap_or_default();
    let flows = match flows(format) {
        Some(1) => "1 flow".to_owned(),
        Some(n) => format!("{} flows {}", grouped(n), walk(format.walk)),
        None => format!("more flows than can be counted, {}", walk(format.walk)),
    };
    format!("{}, {} with FCS{vlan}, {flows}", protocol(format.family, format.transport), sizes(&format.sizes))
}

/// `198.18.0.1:2000-198.18.0.20:2019`, as the command takes it.
pub(crate) fn endpoints(of: &Endpoints) -> String {
    narrows_model::load::frame_words::endpoints_word(of)
}

/// The number of combinations of addresses and ports; `None` beyond 2^64.
fn flows(format: &FrameFormat) -> Option<u64> {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let side = |of: &Endpoints| {
        let more = number(of.addresses[1]).checked_sub(number(of.addresses[0]))?;
        let addresses = more.checked_shr(of.stride_bits.into()).unwrap_or(0).checked_add(1)?;
        let ports = u128::from(of.ports[1].checked_sub(of.ports[0])?) + 1;
        addresses.checked_mul(ports)
    };
    u64::try_from(side(&format.source)?.checked_mul(side(&format.destination)?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_of_the_line_is_all_of_it() {
        assert_eq!(of_line(1.0), "100 %");
        assert_eq!(of_line(0.9996), "99.9 %");
        assert_eq!(of_line(0.687_4), "68.7 %");
        assert_eq!(of_line(0.000_5), "0.050 %");
        assert_eq!(of_line(f64::NAN), "–");
    }

    #[test]
    fn mixes_are_short() {
        assert_eq!(sizes(&[64, 64]), "64 B");
        assert_eq!(sizes(&[64, 570]), "64, 570 B in turn");
        let imix = [vec![64; 7], vec![570; 4], vec![1518]].concat();
        assert_eq!(sizes(&imix), "12 sizes in turn, 353.8 B in the mean");
    }
}
