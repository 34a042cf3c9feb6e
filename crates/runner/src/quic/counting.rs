//! A congestion control that also counts what was acknowledged: the library tells what was sent and lost only.

use narrows_wire::quic::{CONGESTION_CONTROLS, data_bytes};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Packets that were acknowledged, and their bytes.
#[derive(Debug, Default)]
pub(super) struct Acked {
    bytes: AtomicU64,
    packets: AtomicU64,
    /// All data, once it is acknowledged.
    whole: AtomicU64,
}

impl Acked {
    /// Bytes of data so far.
    pub(super) fn data(&self) -> u64 {
        match self.whole.load(Ordering::Relaxed) {
            0 => data_bytes(self.bytes.load(Ordering::Relaxed), self.packets.load(Ordering::Relaxed)),
            whole => whole,
        }
    }

    /// All data is acknowledged.
    pub(super) fn is_whole(&self, bytes: u64) {
        self.whole.store(bytes, Ordering::Relaxed);
    }
}

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Makes congestion controls that count.
struct Counters {
    inner: Factory,
    acked: Arc<Acked>,
}

/// The name of the congestion control of a plan, and what makes it.
pub(super) fn factory(asked: Option<&str>, acked: Arc<Acked>) -> (&'static str, Factory) {
    let [cubic, reno, bbr] = CONGESTION_CONTROLS;
    let (name, inner): (_, Factory) = match asked {
        Some(it) if it == reno => (reno, Arc::new(NewRenoConfig::default())),
        Some(it) if it == bbr => (bbr, Arc::new(BbrConfig::default())),
        _ => (cubic, Arc::new(CubicConfig::default())),
    };
    (name, Arc::new(Counters { inner, acked }))
}

impl ControllerFactory for Counters {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, current_mtu);
        Box::new(Counting { inner, acked: Arc::clone(&self.acked) })
    }
}

struct Counting {
    inner: Box<dyn Controller>,
    acked: Arc<Acked>,
}

impl Controller for Counting {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.acked.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.acked.packets.fetch_add(1, Ordering::Relaxed);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.inner.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), acked: Arc::clone(&self.acked) })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
