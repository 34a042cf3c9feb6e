//! The two sockets of each connection, side by side, and whether they are the ends of one.

use narrows_model::load::tcp::TcpStreamRecord;
use narrows_model::{Flow, TcpInfo, TcpTrial};

/// The first samples of each stream at both ends, sender first.
pub(crate) fn pairs(trial: TcpTrial<'_>, flow: Flow) -> Vec<[&TcpInfo; 2]> {
    let (Some(sending), Some(receiving)) = (trial.end(flow.sender()), trial.end(flow.receiver())) else {
        return Vec::new();
    };
    let of_flow = sending.streams.iter().filter(|stream| stream.flow == flow);
    let both = of_flow.filter_map(|sent| {
        let got = receiving.streams.iter().find(|got| got.id == sent.id && got.flow == flow)?;
        Some([first(sent)?, first(got)?])
    });
    both.collect()
}

fn first(stream: &TcpStreamRecord) -> Option<&TcpInfo> {
    stream.samples.first().map(|sample| &sample.tcp)
}

/// The window scale that a socket announced and the one that it got, where both were negotiated (RFC 7323 section 2).
fn scales(tcp: &TcpInfo) -> Option<[u64; 2]> {
    let scale = tcp.wscale.filter(|_| tcp.negotiated(TcpInfo::OPT_WSCALE) == Some(true))?;
    Some([scale >> 4, scale & 15])
}

/// Why the two sockets cannot be the ends of one connection, where that is so: nothing could rewrite a window scale without rewriting the
/// window of each segment.
pub(crate) fn split(trial: TcpTrial<'_>, flow: Flow) -> Option<String> {
    pairs(trial, flow).into_iter().find_map(|[sender, receiver]| {
        let ([sent, got], [peer_sent, peer_got]) = (scales(sender)?, scales(receiver)?);
        let (from, to) = (flow.sender(), flow.receiver());
        let ways = [(from, to, sent, peer_got), (to, from, peer_sent, got)];
        let (from, to, sent, got) = ways.into_iter().find(|(_, _, sent, got)| sent != got)?;
        Some(format!("the {from} announced a window scale of {sent}, and the {to} got {got}"))
    })
}
