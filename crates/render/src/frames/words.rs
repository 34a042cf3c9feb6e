//! The words for frames and their rates.

use crate::figures::{grouped, of_line, pps};
use narrows_model::load::frame_words::{protocol, sizes, walk};
use narrows_model::load::frames::{Endpoints, FrameFormat, FrameLoad};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::words::units::bps;
use std::net::IpAddr;

/// `14.9 Mpps, 10.0 Gbit/s on the wire, 100 % of line rate`.
pub(crate) fn rate(rate: &FrameRate) -> String {
    let line = rate.of_line.map(|part| format!(", {} of line rate", of_line(part)));
    format!("{}, {} on the wire{}", pps(rate.pps), bps(rate.wire_bps), line.unwrap_or_default())
}

pub(crate) fn load(load: FrameLoad) -> String {
    match load {
        FrameLoad::FramesPerSecond(rate) => pps(rate),
        FrameLoad::Max => "as fast as possible".to_owned(),
    }
}

/// The format of the frames: `IPv4 UDP, 64 B, 2,000 flows in turn`.
pub(crate) fn format(format: &FrameFormat) -> String {
    let vlan = format.vlan.map(|vlan| format!(", VLAN {vlan}")).unwrap_or_default();
    let flows = match flows(format) {
        Some(1) => "1 flow".to_owned(),
        Some(n) => format!("{} flows {}", grouped(n), walk(format.walk)),
        None => format!("too many flows to count, {}", walk(format.walk)),
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
