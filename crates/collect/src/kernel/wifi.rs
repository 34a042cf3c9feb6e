//! The stations of a wireless interface: `NL80211_CMD_GET_STATION`. Source: kernel `include/uapi/linux/nl80211.h`, `genetlink.h`.

use super::{Sockets, links};
use crate::Missing;
use narrows_sys::netlink::{Attribute, Builder, DUMP, Family, Message, find};
use serde::{Deserialize, Serialize};

/// The station that an interface talks to: its access point, or on an access point the one with most packets sent to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wifi {
    /// Bit rate of the last frames sent to it, bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_bps: Option<u64>,
    /// Bit rate of the last frame from it, bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_bps: Option<u64>,
    /// Strength of its signal, dBm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_dbm: Option<i8>,
    /// Packets sent to it so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_packets: Option<u32>,
    /// Transmissions that had to be made again so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_retries: Option<u32>,
    /// Packets that were given up after all retries so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_failed: Option<u32>,
}

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// `struct genlmsghdr`
const HEADER: usize = 4;

const GET_STATION: u8 = 17;
const IFINDEX: u16 = 3;
const STATION: u16 = 21;

pub(super) fn of(sockets: &Sockets, device: &str) -> Result<Wifi, Missing> {
    let what = format!("the stations of {device} (NL80211_CMD_GET_STATION)");
    let index = links::by_name(sockets, device)?.index;
    let mut request = Builder::with_header(&[GET_FAMILY, 1, 0, 0]);
    request.text(FAMILY_NAME, "nl80211");
    let payload = request.finish().map_err(|error| Missing::netlink(&what, &error))?;
    let replies = sockets.request(Family::Generic, &what, CONTROL, 0, &payload)?;
    let id = replies.first().and_then(|reply| find(reply.payload.get(HEADER..)?, FAMILY_ID)?.u16());
    let id = id.ok_or_else(|| Missing::Kernel { what: what.clone(), why: "this kernel has no nl80211".to_owned() })?;
    let mut request = Builder::with_header(&[GET_STATION, 0, 0, 0]);
    request.u32(IFINDEX, index);
    let payload = request.finish().map_err(|error| Missing::netlink(&what, &error))?;
    let stations = sockets.request(Family::Generic, &what, id, DUMP, &payload)?;
    let busiest = stations.iter().filter_map(decode).max_by_key(|station| station.tx_packets);
    busiest.ok_or_else(|| Missing::Kernel { what, why: "it is connected to no station".to_owned() })
}

pub(super) fn decode(message: &Message) -> Option<Wifi> {
    let station = find(message.payload.get(HEADER..)?, STATION)?;
    let mut wifi = Wifi::default();
    for attribute in station.nested() {
        match attribute.kind {
            7 => wifi.signal_dbm = attribute.u8().map(|dbm| i8::from_ne_bytes([dbm])),
            8 => wifi.tx_bps = rate(&attribute),
            14 => wifi.rx_bps = rate(&attribute),
            10 => wifi.tx_packets = attribute.u32(),
            11 => wifi.tx_retries = attribute.u32(),
            12 => wifi.tx_failed = attribute.u32(),
            _ => {}
        }
    }
    Some(wifi)
}

/// `NL80211_RATE_INFO_BITRATE32`, else the older `NL80211_RATE_INFO_BITRATE`: units of 100 kbit/s.
fn rate(info: &Attribute<'_>) -> Option<u64> {
    let (mut new, mut old) = (None, None);
    for attribute in info.nested() {
        match attribute.kind {
            5 => new = attribute.u32().map(u64::from),
            1 => old = attribute.u16().map(u64::from),
            _ => {}
        }
    }
    new.or(old).filter(|units| *units > 0).map(|units| units * 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(fill: impl FnOnce(&mut Builder)) -> Message {
        let mut body = Builder::with_header(&[19, 0, 0, 0]);
        body.u32(IFINDEX, 3).nest(STATION, fill);
        Message { kind: 28, payload: body.finish().expect("short") }
    }

    #[test]
    fn a_station_is_read_with_the_newer_rate_first() {
        let station = decode(&message(|station| {
            station.u8(7, (-71_i8).to_ne_bytes()[0]).u32(10, 41_200).u32(11, 30_100).u32(12, 12);
            station.nest(8, |rate| {
                rate.u16(1, 0).u32(5, 8_667);
            });
            station.nest(14, |rate| {
                rate.u16(1, 60);
            });
        }));
        let expected = Wifi {
            tx_bps: Some(866_700_000),
            rx_bps: Some(6_000_000),
            signal_dbm: Some(-71),
            tx_packets: Some(41_200),
            tx_retries: Some(30_100),
            tx_failed: Some(12),
        };
        assert_eq!(station, Some(expected));
    }

    #[test]
    fn an_answer_that_is_short_or_of_another_kind_is_no_station() {
        assert_eq!(decode(&Message { kind: 28, payload: vec![0; 3] }), None);
        assert_eq!(decode(&Message { kind: 28, payload: vec![0; 64] }), None);
        assert_eq!(decode(&message(|_| {})), Some(Wifi::default()));
    }
}
