//! The verdict on a connection from both of its ends.
//!
//! The sending end knows what it waits for, but not why the receiver's window is small: there the receiving end shows whether its
//! application leaves data unread, or its buffer ends the window.

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
        (Limit::ReceiveWindow, _) => {
            (Limit::ReceiveWindow, format!("{}, and the receiving application keeps up", sender.why))
        }
        (limit, _) => (limit, sender.why.clone()),
    }
}
