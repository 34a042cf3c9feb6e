//! The server's own report, for clients that want it (`--get-server-output`): a line for each stream.

use narrows_model::words::units;
use narrows_wire::iperf3::{Params, Protocol, Results};
use std::fmt::Write as _;
use std::net::SocketAddr;

/// The report as text.
pub(super) fn text(peer: SocketAddr, params: &Params, results: &Results) -> String {
    let mut text = format!("narrows {}: test of {peer}\n", crate::VERSION);
    for (position, stream) in (0..).zip(&results.streams) {
        let receives = !params.reverse && (!params.bidirectional || position < params.parallel);
        let role = if receives { "receiver" } else { "sender" };
        let bps = stream.bytes as f64 * 8.0 / stream.seconds.1.max(1e-3);
        let id = stream.id;
        let _ = write!(
            text,
            "[{id:3}] {:.2} s  {}  {}  {role}",
            stream.seconds.1,
            units::bytes(stream.bytes),
            units::bps(bps)
        );
        match (params.protocol, receives) {
            (Protocol::Tcp, false) => {
                let _ = write!(text, "  {} retransmitted", stream.retransmits.unwrap_or(0));
            }
            (Protocol::Udp, true) => {
                let (omitted_lost, omitted) = stream.omitted.unwrap_or_default();
                let (lost, packets) =
                    (stream.lost.saturating_sub(omitted_lost), stream.packets.saturating_sub(omitted));
                let _ = write!(text, "  jitter {:.3} ms  lost {lost}/{packets}", stream.jitter_s * 1e3);
            }
            _ => {}
        }
        text.push('\n');
    }
    text
}
