//! A sending stream: a plain loop of blocking calls.

use super::application::{Burn, Pace, nanos_since};
use super::counters::Counters;
use super::outcome::Outcome;
use super::payload::Payload;
use crate::common::limits::{CALL_LIMIT, STALL};
use crate::common::threads::Control;
use narrows_sys::{clock, tcp};
use std::io::ErrorKind;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The clock is read after this many bytes at the latest: reading it costs a part of what a small call does.
const CLOCK_EVERY_BYTES: usize = 64 << 10;

/// The payload's method does not work on this kernel, and nothing was sent yet.
struct Impossible;

/// Everything a sending thread needs.
pub(super) struct Sender<'a> {
    pub(super) socket: &'a TcpStream,
    pub(super) counters: &'a Counters,
    pub(super) control: &'a Control<'a>,
    pub(super) payload: &'a Payload,
    /// Made when the payload's method turns out to be impossible.
    pub(super) plain: &'a OnceLock<Payload>,
    pub(super) message_bytes: usize,
    /// Stop writing then.
    pub(super) deadline: Option<Instant>,
    /// Write exactly this many bytes, then close the sending side and wait for the acknowledgement.
    pub(super) total_bytes: Option<u64>,
    pub(super) pace: Option<&'a Pace>,
    pub(super) cpu_us_per_mib: u32,
    pub(super) start: Instant,
}

impl Sender<'_> {
    /// Sends until the trial ends; how it ended and by which method.
    pub(super) fn run(&self) -> (Outcome, &'static str) {
        match self.send(self.payload) {
            Ok(outcome) => (outcome, self.payload.method()),
            Err(Impossible) => {
                let plain = self.plain.get_or_init(|| Payload::buffer(self.message_bytes));
                (self.send(plain).unwrap_or(Outcome::Complete), plain.method())
            }
        }
    }

    fn send(&self, payload: &Payload) -> Result<Outcome, Impossible> {
        let socket = self.socket.as_fd();
        let portion = self.pace.map_or(self.message_bytes, |pace| pace.portion(self.message_bytes));
        let room = payload.room(self.message_bytes);
        let mut burn = Burn::new(self.cpu_us_per_mib);
        let (mut sent, mut calls, mut unclocked, mut at) = (0u64, 0u64, 0usize, 0usize);
        let mut moved_at = clock::now();
        loop {
            let left = self.total_bytes.map_or(u64::MAX, |total| total - sent);
            if left == 0 {
                return Ok(self.finish());
            }
            let mut message = usize::try_from(left).unwrap_or(usize::MAX).min(portion);
            burn.spend(message, || self.is_over());
            if let Some(pace) = self.pace
                && !self.wait_until(pace.claim(nanos_since(self.start), message))
            {
                return Ok(self.ended());
            }
            if at + message > room {
                at = 0;
            }
            while message > 0 {
                match payload.send(socket, at, message) {
                    Ok(taken) => {
                        calls += 1;
                        sent += taken as u64;
                        self.counters.publish(sent, calls);
                        at += taken;
                        message -= taken;
                        unclocked += taken;
                        if self.total_bytes.is_some() {
                            moved_at = clock::now();
                        }
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                        if self.total_bytes.is_some() && moved_at.elapsed() > STALL {
                            return Ok(Outcome::Stalled(STALL.as_secs()));
                        }
                    }
                    Err(error) if calls == 0 && payload.is_impossible(&error) => return Err(Impossible),
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Outcome::Closed),
                    Err(error) => return Ok(Outcome::Broken(error)),
                }
                // A call that took a part has reached its time limit.
                if unclocked >= CLOCK_EVERY_BYTES || message > 0 {
                    unclocked = 0;
                    if self.is_over() {
                        return Ok(self.ended());
                    }
                }
            }
            if self.control.is_over() {
                return Ok(self.ended());
            }
        }
    }

    fn is_over(&self) -> bool {
        self.control.is_over() || self.deadline.is_some_and(|deadline| clock::now() >= deadline)
    }

    fn ended(&self) -> Outcome {
        if self.control.stop.is_set() { Outcome::Stopped } else { Outcome::Complete }
    }

    /// Sleeps until an instant of the pace; false when the trial is over before it.
    fn wait_until(&self, due_ns: u64) -> bool {
        loop {
            if self.is_over() {
                return false;
            }
            let left = Duration::from_nanos(due_ns.saturating_sub(nanos_since(self.start)));
            if left.is_zero() {
                return true;
            }
            let until_end =
                self.deadline.map_or(CALL_LIMIT, |deadline| deadline.saturating_duration_since(clock::now()));
            clock::sleep(left.min(CALL_LIMIT).min(until_end));
        }
    }

    /// Closes the sending side and waits until the peer has everything, or until nothing moves any more.
    fn finish(&self) -> Outcome {
        if let Err(error) = self.socket.shutdown(Shutdown::Write) {
            return Outcome::Broken(error);
        }
        let (mut queued_before, mut moved_at) = (u32::MAX, clock::now());
        loop {
            if self.control.is_over() {
                return self.ended();
            }
            match (tcp::queued_out(self.socket), self.socket.take_error()) {
                (_, Ok(Some(error))) => return Outcome::Broken(error),
                // Once both sides are closed there is no queue to read.
                (Ok(0) | Err(_), _) => return Outcome::Complete,
                (Ok(queued), _) if queued < queued_before => (queued_before, moved_at) = (queued, clock::now()),
                (Ok(queued), _) if moved_at.elapsed() > STALL => return Outcome::Unacknowledged(queued),
                _ => {}
            }
            clock::sleep(Duration::from_millis(1));
        }
    }
}
