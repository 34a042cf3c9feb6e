//! The network process's end: a line to a helper, and one call on it for each order.

use super::order::{MAX_ANSWER, Refusal};
use crate::lock;
use narrows_sys::channel::Channel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// For an order that is carried out at once: the slowest is an inventory of a large host.
pub(super) const AT_ONCE: Duration = Duration::from_secs(30);

/// Orders of this kind at the same time: a client that floods the server with requests leaves the helper room for others.
const AT_THE_SAME_TIME: usize = 16;

/// A line to a helper.
#[derive(Debug, Clone)]
pub(crate) struct Line(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    channel: Mutex<Channel>,
    running: Mutex<usize>,
    ended: Condvar,
}

/// Room for an order, until it is dropped.
struct Turn<'a>(&'a Ends);

impl Ends {
    fn turn(&self) -> Turn<'_> {
        let wait = self.ended.wait_while(lock(&self.running), |running| *running >= AT_THE_SAME_TIME);
        *wait.unwrap_or_else(PoisonError::into_inner) += 1;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.running) -= 1;
        self.0.ended.notify_one();
    }
}

/// An order that is being carried out. It ends with this value.
#[derive(Debug)]
pub(crate) struct Call(Channel);

fn failed(error: impl std::fmt::Display) -> Refusal {
    Refusal::Failed(format!("cannot reach the helper with privileges: {error}"))
}

impl Line {
    pub(super) fn new(channel: Channel) -> Self {
        // A helper that takes no orders must not hold up the server.
        let _ = channel.set_limit(Some(AT_ONCE));
        Self(Arc::new(Ends { channel: Mutex::new(channel), running: Mutex::default(), ended: Condvar::new() }))
    }

    pub(super) fn open(&self, order: &impl Serialize, descriptor: Option<BorrowedFd<'_>>) -> Result<Call, Refusal> {
        let (ours, theirs) = Channel::pair().map_err(failed)?;
        let theirs = OwnedFd::from(theirs);
        lock(&self.0.channel).send(&[], Some(theirs.as_fd())).map_err(failed)?;
        let call = Call(ours);
        call.send_with(order, descriptor)?;
        Ok(call)
    }

    /// Ends it, and with it the helper.
    pub(super) fn close(&self) {
        lock(&self.0.channel).close();
    }

    /// Gives an order and waits for its answer.
    pub(super) fn call<T: DeserializeOwned>(&self, order: &impl Serialize) -> Result<T, Refusal> {
        self.call_for(order, None)
    }

    /// The same for the socket that comes with the order.
    pub(super) fn call_for<T: DeserializeOwned>(
        &self,
        order: &impl Serialize,
        socket: Option<BorrowedFd<'_>>,
    ) -> Result<T, Refusal> {
        let _turn = self.0.turn();
        self.open(order, socket)?.answer(AT_ONCE)
    }
}

impl Call {
    fn send_with(&self, message: &impl Serialize, descriptor: Option<BorrowedFd<'_>>) -> Result<(), Refusal> {
        let bytes = serde_json::to_vec(message).map_err(failed)?;
        self.0.send(&bytes, descriptor).map_err(failed)
    }

    pub(super) fn send(&self, message: &impl Serialize) -> Result<(), Refusal> {
        self.send_with(message, None)
    }

    pub(super) fn is_answered(&self, within: Duration) -> Result<bool, Refusal> {
        self.0.is_readable(within).map_err(failed)
    }

    pub(super) fn answer<T: DeserializeOwned>(&self, within: Duration) -> Result<T, Refusal> {
        self.0.set_limit(Some(within)).map_err(failed)?;
        let (bytes, _) = self.0.receive(MAX_ANSWER).map_err(failed)?.ok_or_else(|| failed("it has closed the line"))?;
        serde_json::from_slice::<Result<T, Refusal>>(&bytes).map_err(failed)?
    }
}
