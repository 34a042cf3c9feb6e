//! One order on its channel, and the answer.

use super::order::{MAX_ORDER, Refusal};
use narrows_sys::channel::Channel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::os::fd::OwnedFd;

/// Reads the order of a channel, carries it out and answers.
pub(super) fn one_order<O: DeserializeOwned, T: Serialize>(
    channel: &Channel,
    carry_out: impl FnOnce(O, Option<OwnedFd>) -> Result<T, Refusal>,
) {
    let Ok(Some((bytes, descriptor))) = channel.receive(MAX_ORDER) else { return };
    match serde_json::from_slice(&bytes) {
        Ok(order) => answer(channel, &carry_out(order, descriptor)),
        Err(error) => answer::<()>(channel, &Err(Refusal::NotAllowed(format!("invalid order: {error}")))),
    }
}

/// Answers. A network process that does not read it has no use for it.
pub(super) fn answer<T: Serialize>(channel: &Channel, answer: &Result<T, Refusal>) {
    if let Ok(bytes) = serde_json::to_vec(answer) {
        let _ = channel.send(&bytes, None);
    }
}
