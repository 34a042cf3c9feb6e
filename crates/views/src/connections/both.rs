//! The verdict on a connection from both of its ends.
//!
//! The sending end knows what it waits for, but not why the receiver's window is small: there the receiving end shows whether its
//! application leaves data unread, or its buffer ends the window.

use super::limit::is_left;
use narrows_model::words::units;
use narrows_model::{ConnectionEnds, ConnectionLimit as Limit, ConnectionView, ConnectionsView};
use std::collections::HashMap;

/// Puts the other end, as its own host sees it, beside each connection, and gives the verdict of both.
pub fn join(near: &mut ConnectionsView, far: ConnectionsView) {
    // The far end's names of the addresses are the other way round.
    let key = |one: &ConnectionView| (one.remote.clone(), one.local.clone());
    let mut far: HashMap<_, _> = far.connections.into_iter().map(|one| (key(&one), one)).collect();
    for one in &mut near.connections {
        let Some(other) = far.remove(&(one.local.clone(), one.remote.clone())) else { continue };
        let (limit, why) = verdict(one, &other);
        let (limit, why) = (std::mem::replace(&mut one.limit, limit), std::mem::replace(&mut one.why, why));
        one.ends = Some(Box::new(ConnectionEnds { limit, why, far: other }));
    }
    let alone = near.connections.iter().filter(|one| one.ends.is_none()).count();
    if alone > 0 {
        near.remarks.push(format!(
            "the other host does not report {alone} of them: address translated, from another address of this host, or just closed"
        ));
    }
}

/// The peer's window is zero: its buffer is full. A prompt reader opens it again before it is noticed.
fn is_closed(sender: &ConnectionView) -> bool {
    sender.ceilings.iter().any(|ceiling| ceiling.limit == Limit::ReceiveWindow && ceiling.bps == 0.0)
}

fn verdict(near: &ConnectionView, far: &ConnectionView) -> (Limit, String) {
    let sent = |one: &ConnectionView| one.send_bps.unwrap_or(0.0);
    // Without acknowledged data the one that waits is the sender.
    let waits = |one: &ConnectionView| !matches!(one.limit, Limit::Idle | Limit::Unknown);
    let near_sends = if sent(near) == sent(far) { waits(near) || !waits(far) } else { sent(near) > sent(far) };
    let (sender, receiver) = if near_sends { (near, far) } else { (far, near) };
    match (sender.limit, receiver.limit) {
        // An application that always finds data to read does not wait for the network, unless it waits for more of what comes slowly.
        (Limit::Application | Limit::Idle, _) => (sender.limit, sender.why.clone()),
        (Limit::Loss, _) if sender.send_bps == Some(0.0) => (sender.limit, sender.why.clone()),
        (_, Limit::ReceivingApplication) => (receiver.limit, format!("{}; the sender: {}", receiver.why, sender.why)),
        (Limit::Unknown, Limit::ReceiveWindow) => (receiver.limit, receiver.why.clone()),
        (Limit::ReceiveWindow, _) if is_closed(sender) && is_left(receiver.unread_bytes, sent(sender)) => (
            Limit::ReceivingApplication,
            format!(
                "{} are received and not read, and the window is closed; the sender: {}",
                units::bytes(receiver.unread_bytes.into()),
                sender.why
            ),
        ),
        (Limit::ReceiveWindow, _) => {
            (Limit::ReceiveWindow, format!("{}, and the receiving application keeps up", sender.why))
        }
        (limit, _) => (limit, sender.why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::ConnectionCeiling;

    fn view(limit: Limit, send_bps: f64) -> ConnectionView {
        ConnectionView {
            id: String::new(),
            local: String::new(),
            remote: String::new(),
            process: None,
            uid: 0,
            limit,
            why: "the peer's window was full 97 % of the time".to_owned(),
            shares: None,
            send_bps: Some(send_bps),
            receive_bps: None,
            rtt_ms: None,
            min_rtt_ms: None,
            retransmitted: None,
            retransmitted_total: None,
            ceilings: Vec::new(),
            congestion_control: None,
            unread_bytes: 0,
            unsent_bytes: None,
            ends: None,
        }
    }

    #[test]
    fn a_closed_window_and_unread_data_are_a_slow_reader() {
        let of = |window_bps, unread_bytes, send_bps| {
            let ceilings = vec![ConnectionCeiling { limit: Limit::ReceiveWindow, bps: window_bps }];
            let sender = ConnectionView { ceilings, ..view(Limit::ReceiveWindow, send_bps) };
            verdict(&sender, &ConnectionView { unread_bytes, ..view(Limit::Unknown, 0.0) })
        };
        let (limit, why) = of(0.0, 29_000, 4e6);
        assert_eq!(limit, Limit::ReceivingApplication, "{why}");
        assert!(why.starts_with("28.3 KiB are received and not read, and the window is closed"), "{why}");
        // Nothing is unread, the window is open, or 29,000 bytes wait for less than half a millisecond.
        for (window_bps, unread_bytes, send_bps) in [(0.0, 0, 4e6), (5e6, 29_000, 4e6), (0.0, 29_000, 1e9)] {
            assert_eq!(of(window_bps, unread_bytes, send_bps).0, Limit::ReceiveWindow);
        }
    }
}
