//! What limits one connection between two readings of its counters.

use narrows_model::words::figures::float;
use narrows_model::words::units;
use narrows_model::{ConnectionLimit as Limit, ConnectionSample, ConnectionShares, TcpInfo};

/// Half of the time names what limits: nothing else can have more.
const HALF: f64 = 0.5;
/// A receiver uses its window where what arrives in one RTT is this part of it.
const WINDOW_FULL: f64 = 0.75;
/// Unread data of this part of the receive buffer stays because the application does not read.
const UNREAD: f64 = 0.25;
/// A rate this close to the cap of the socket is that of the cap.
const AT_CAP: f64 = 0.85;
/// Loss that a loss-based congestion control notices (see the cause `random-loss`), and one that BBR does.
const LOSSY: f64 = 1e-3;
const LOSSY_BBR: f64 = 0.02;
/// An RTT above its least by this part and this time is a queue.
const QUEUE: f64 = 0.25;
const QUEUE_US: f64 = 500.0;

/// One connection between two readings.
pub(super) struct Interval<'a> {
    seconds: f64,
    before: &'a TcpInfo,
    now: &'a TcpInfo,
    sample: &'a ConnectionSample,
}

impl<'a> Interval<'a> {
    pub(super) fn of(before: &'a ConnectionSample, sample: &'a ConnectionSample) -> Option<Self> {
        let us = sample.at_us.checked_sub(before.at_us).filter(|us| *us > 0)?;
        Some(Self { seconds: float(us) / 1e6, before: &before.tcp, now: &sample.tcp, sample })
    }

    fn grew(&self, of: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        Some(float(of(self.now)?.saturating_sub(of(self.before)?)))
    }

    pub(super) fn bps(&self, of: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        Some(self.grew(of)? * 8.0 / self.seconds)
    }

    /// Part of the interval that a limited-time counter grew by.
    fn share(&self, of: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        Some((self.grew(of)? / 1e6 / self.seconds).clamp(0.0, 1.0))
    }

    pub(super) fn shares(&self) -> Option<ConnectionShares> {
        let busy = self.share(|tcp| tcp.busy_time_us)?;
        let receive_window = self.share(|tcp| tcp.rwnd_limited_us)?.min(busy);
        let send_buffer = self.share(|tcp| tcp.sndbuf_limited_us)?.min(busy - receive_window);
        Some(ConnectionShares {
            application: 1.0 - busy,
            receive_window,
            send_buffer,
            network: busy - receive_window - send_buffer,
        })
    }

    pub(super) fn retransmitted(&self) -> Option<f64> {
        let sent = self.grew(|tcp| tcp.data_segs_out)?;
        Some(if sent > 0.0 { (self.grew(|tcp| tcp.total_retrans)? / sent).min(1.0) } else { 0.0 })
    }

    /// What limits the sender; the sentence is the evidence.
    fn sending(&self) -> (Limit, String) {
        let tcp = self.now;
        if let Some(timeouts) = tcp.retransmits.filter(|timeouts| *timeouts > 0) {
            let times = units::grouped(i128::from(timeouts));
            return (Limit::Loss, format!("nothing was acknowledged after {times} retransmission timeouts"));
        }
        if tcp.snd_wnd_bytes == Some(0) || tcp.probes.is_some_and(|probes| probes > 0) {
            return (Limit::ReceiveWindow, "the peer's window is zero: its application does not read".to_owned());
        }
        let Some(shares) = self.shares() else {
            return (Limit::Unknown, "the kernel does not report what the sender waited for".to_owned());
        };
        let part = |share: f64| units::percent(share);
        if shares.receive_window >= HALF * (1.0 - shares.application) && shares.receive_window > shares.application {
            let window = tcp.snd_wnd_bytes.map_or_else(String::new, |window| format!(" of {}", units::bytes(window)));
            return (
                Limit::ReceiveWindow,
                format!("the peer's window{window} was full {} of the time", part(shares.receive_window)),
            );
        }
        if shares.send_buffer >= HALF * (1.0 - shares.application) && shares.send_buffer > shares.application {
            let size = self
                .sample
                .memory
                .map_or_else(String::new, |memory| format!(" of {}", units::bytes(memory.sndbuf_bytes.into())));
            return (
                Limit::SendBuffer,
                format!("the send buffer{size} was full {} of the time", part(shares.send_buffer)),
            );
        }
        if shares.application >= HALF {
            return (Limit::Application, format!("nothing to send {} of the time", part(shares.application)));
        }
        self.by_network()
    }

    /// What of the network limits a sender that has data, a window and a buffer.
    fn by_network(&self) -> (Limit, String) {
        let tcp = self.now;
        let bps = self.bps(|tcp| tcp.bytes_acked).unwrap_or(0.0);
        if let Some(cap) = tcp.max_pacing_bps().map(float).filter(|cap| bps >= AT_CAP * cap) {
            return (
                Limit::PacingCap,
                format!("{} of the cap of {} (SO_MAX_PACING_RATE)", units::percent(bps / cap), units::bps(cap)),
            );
        }
        let bbr = self.sample.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"));
        let lost = self.retransmitted().unwrap_or(0.0);
        let queue = tcp.rtt_us.zip(tcp.min_rtt_us).map(|(rtt, least)| (float(rtt) - float(least), float(least)));
        let queued = queue.filter(|(queue, least)| *queue > QUEUE * least && *queue > QUEUE_US);
        if lost >= if bbr { LOSSY_BBR } else { LOSSY } && queued.is_none() {
            return (Limit::Loss, format!("{} of the segments were sent again, without a queue", units::percent(lost)));
        }
        if let Some((queue, _)) = queued {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive microseconds
            let queue = units::micros(queue as u64);
            return (
                Limit::Path,
                format!("the RTT is {queue} above its least: a queue on the path or of this host is full"),
            );
        }
        let (unacked, window) = (tcp.unacked.unwrap_or(0), tcp.snd_cwnd.unwrap_or(0));
        if tcp.delivery_rate_app_limited() == Some(true) && tcp.notsent_bytes == Some(0) && unacked.saturating_mul(4) < window.saturating_mul(3) {
            return (Limit::Application, "the application writes less than the congestion window carries".to_owned());
        }
        if bbr {
            return (Limit::Path, "BBR sends at the rate that it measured on the path".to_owned());
        }
        if window > 0 && unacked.saturating_mul(10) >= window.saturating_mul(7) {
            let window = units::grouped(i128::from(window));
            return (
                Limit::CongestionWindow,
                format!("the congestion window of {window} segments was full, without a queue and without loss"),
            );
        }
        (Limit::Unknown, "the sender waited for the network; its counters do not show for what".to_owned())
    }

    /// What limits the receiver, as far as this end knows it.
    fn receiving(&self) -> (Limit, String) {
        let buffer = self.sample.memory.map(|memory| float(memory.rcvbuf_bytes.into()));
        let unread = float(self.sample.unread_bytes.into());
        if buffer.is_some_and(|buffer| unread >= UNREAD * buffer) {
            let unread = units::bytes(self.sample.unread_bytes.into());
            return (Limit::ReceivingApplication, format!("{unread} are received and not read by the application"));
        }
        let per_rtt = |rtt: f64| self.grew(|tcp| tcp.bytes_received).unwrap_or(0.0) / self.seconds * rtt / 1e6;
        // The RTT of a connection that only receives is that of its handshake, mostly: without the queue that it makes.
        let rtt = self.now.min_rtt_us.or(self.now.rtt_us).map(float).filter(|rtt| *rtt > 0.0);
        if let Some((rtt, window)) = rtt.zip(self.now.rcv_wnd_bytes.map(float).filter(|window| *window > 0.0))
            && per_rtt(rtt) >= WINDOW_FULL * window
        {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a window
            let bytes = units::bytes(window as u64);
            return (
                Limit::ReceiveWindow,
                format!(
                    "{} of this host's window of {bytes} arrive in each RTT",
                    units::percent((per_rtt(rtt) / window).min(1.0))
                ),
            );
        }
        (Limit::Unknown, "only the sending end sees what limits it".to_owned())
    }

    pub(super) fn limit(&self) -> (Limit, String) {
        let sent = self.grew(|tcp| tcp.bytes_sent).or_else(|| self.grew(|tcp| tcp.bytes_acked)).unwrap_or(0.0);
        let received = self.grew(|tcp| tcp.bytes_received).unwrap_or(0.0);
        let waits = self.now.unacked.unwrap_or(0) > 0 || self.now.notsent_bytes.unwrap_or(0) > 0;
        if received > sent && received > 0.0 {
            return self.receiving();
        }
        if sent == 0.0 && !waits {
            return (Limit::Idle, "no data".to_owned());
        }
        self.sending()
    }
}
