//! The counters of two devices in the network of the calling thread: of a hop, or of this host for a client.

use narrows_collect::{Host, Live, Missing, device_state, drops_by_reason, link_counters};
use narrows_wire::api::frames::{LinkPackets, LinksAnswer};
use std::net::IpAddr;

/// Reads them, with the host's state if `state`. `peer`: whose packets may be counted as well.
pub fn counters(input: &str, output: &str, state: bool, peer: Option<IpAddr>) -> Result<LinksAnswer, Missing> {
    let packets = |device: &str| {
        let counters = link_counters(device)?;
        Ok::<_, Missing>(LinkPackets { rx_packets: counters.rx_packets, tx_packets: counters.tx_packets })
    };
    let host: &dyn Host = &Live::new();
    let leads_by = peer.and_then(|peer| host.route(Some(peer)).ok()).map(|route| route.device);
    Ok(LinksAnswer::Read {
        input: packets(input)?,
        output: packets(output)?,
        drops: drops_by_reason(&[input, output])?,
        state: if state { Some(Box::new(device_state(&[input, output])?)) } else { None },
        counts_itself: leads_by.is_some_and(|device| device == input || device == output),
    })
}
