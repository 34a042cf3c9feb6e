//! `TCP_INFO`, read by the length that the kernel returned: a field beyond it is missing, not zero.
//!
//! Source: `include/uapi/linux/tcp.h`, `struct tcp_info`: 232 bytes in 5.4, 240 in 6.2, 248 in 6.7, 280 in 6.18.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reads one field at an offset, by its width.
trait Field: Sized {
    fn at(bytes: &[u8], offset: usize) -> Option<u64>;
}

macro_rules! field {
    ($($width:ty),*) => {$(
        impl Field for $width {
            fn at(bytes: &[u8], offset: usize) -> Option<u64> {
                let end = offset + size_of::<$width>();
                Some(u64::from(<$width>::from_ne_bytes(bytes.get(offset..end)?.try_into().ok()?)))
            }
        }
    )*};
}
field!(u8, u16, u32, u64);

/// The table: one line a field. Name, width and offset in the kernel's structure, and what it is.
macro_rules! tcp_info {
    ($($name:ident: $width:ty = $offset:literal, $doc:literal;)*) => {
        /// The kernel's view of one connection. Each field is `None` where the kernel did not return it.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct TcpInfo {
            $(
                #[doc = $doc]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<u64>,
            )*
        }

        impl TcpInfo {
            /// The names of all fields, in the kernel's order.
            pub const FIELDS: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Takes the structure apart; `bytes` is exactly as long as what the kernel returned.
            pub fn from_bytes(bytes: &[u8]) -> Self {
                Self { $($name: <$width as Field>::at(bytes, $offset),)* }
            }
        }
    };
}

tcp_info! {
    state: u8 = 0, "Connection state; 1 is established.";
    ca_state: u8 = 1, "0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (after a timeout).";
    retransmits: u8 = 2, "Timeouts in a row without progress.";
    probes: u8 = 3, "Window probes without an answer.";
    backoff: u8 = 4, "Exponent of the retransmission timer.";
    options: u8 = 5, "Bits of what was negotiated: see the `OPT_` constants.";
    wscale: u8 = 6, "Window scales: the peer's in the low half, ours in the high half.";
    flags: u8 = 7, "Bit 0: the delivery rate was limited by the application.";
    rto_us: u32 = 8, "Retransmission timeout, microseconds.";
    ato_us: u32 = 12, "Delayed-acknowledgement timeout, microseconds.";
    snd_mss_bytes: u32 = 16, "Payload of a full segment that is sent, bytes.";
    rcv_mss_bytes: u32 = 20, "Estimate of the payload of received segments, bytes.";
    unacked: u32 = 24, "Segments in flight.";
    sacked: u32 = 28, "Of them, selectively acknowledged.";
    lost: u32 = 32, "Of them, taken for lost.";
    retrans: u32 = 36, "Of them, retransmitted and still in flight.";
    last_data_sent_ms: u32 = 44, "Since the last data was sent, milliseconds.";
    last_data_recv_ms: u32 = 52, "Since the last data was received, milliseconds.";
    last_ack_recv_ms: u32 = 56, "Since the last acknowledgement was received, milliseconds.";
    pmtu_bytes: u32 = 60, "Path MTU in force, bytes.";
    rcv_ssthresh_bytes: u32 = 64, "The window that the receiver is willing to announce, bytes.";
    rtt_us: u32 = 68, "Smoothed round-trip time, microseconds.";
    rttvar_us: u32 = 72, "Its mean deviation, microseconds.";
    snd_ssthresh: u32 = 76, "Slow-start threshold, segments.";
    snd_cwnd: u32 = 80, "Congestion window, segments.";
    advmss_bytes: u32 = 84, "The MSS that we announced, bytes.";
    reordering: u32 = 88, "Reordering that is tolerated before a segment counts as lost, segments.";
    rcv_rtt_us: u32 = 92, "Round-trip time as the receiver guesses it, microseconds.";
    rcv_space_bytes: u32 = 96, "What the application read in the last round trip, bytes: drives receive autotuning.";
    total_retrans: u32 = 100, "Segments retransmitted so far.";
    pacing_rate_bytes_s: u64 = 104, "Pacing rate in force, bytes per second; all ones: none.";
    max_pacing_rate_bytes_s: u64 = 112, "Cap on the pacing rate, bytes per second; all ones: none.";
    bytes_acked: u64 = 120, "Payload acknowledged so far.";
    bytes_received: u64 = 128, "Payload received in order so far.";
    segs_out: u32 = 136, "Segments sent so far, empty ones included.";
    segs_in: u32 = 140, "Segments received so far, empty ones included.";
    notsent_bytes: u32 = 144, "Written by the application and not yet sent, bytes.";
    min_rtt_us: u32 = 148, "Smallest round-trip time of the last minutes, microseconds.";
    data_segs_in: u32 = 152, "Segments with payload received so far.";
    data_segs_out: u32 = 156, "Segments with payload sent so far.";
    delivery_rate_bytes_s: u64 = 160, "Most recent delivery rate, bytes per second.";
    busy_time_us: u64 = 168, "Time with data to send so far, microseconds; it CONTAINS the next two.";
    rwnd_limited_us: u64 = 176, "Of it, time held back by the receiver's window.";
    sndbuf_limited_us: u64 = 184, "Of it, time held back by the send buffer.";
    delivered: u32 = 192, "Segments delivered so far.";
    delivered_ce: u32 = 196, "Of them, with a congestion mark.";
    bytes_sent: u64 = 200, "Payload sent so far, retransmissions included.";
    bytes_retrans: u64 = 208, "Payload retransmitted so far.";
    dsack_dups: u32 = 216, "Duplicates that the receiver reported.";
    reord_seen: u32 = 220, "Reordering events seen.";
    rcv_ooopack: u32 = 224, "Segments received out of order.";
    snd_wnd_bytes: u32 = 228, "The peer's announced window after scaling, bytes.";
    rcv_wnd_bytes: u32 = 232, "Our announced window after scaling, bytes (6.2).";
    rehash: u32 = 236, "Times the flow's hash was changed after a timeout (6.2).";
    total_rto: u16 = 240, "Timeouts so far (6.7).";
    total_rto_recoveries: u16 = 242, "Recoveries after timeouts so far (6.7).";
    total_rto_time_ms: u32 = 244, "Time spent in those recoveries, milliseconds (6.7).";
    received_ce: u32 = 248, "Segments received with a congestion mark (6.18).";
}

impl TcpInfo {
    /// Timestamps were negotiated.
    pub const OPT_TIMESTAMPS: u64 = 1;
    /// Selective acknowledgements were negotiated.
    pub const OPT_SACK: u64 = 2;
    /// Window scaling was negotiated.
    pub const OPT_WSCALE: u64 = 4;

    /// Whether an option was negotiated; `None` where the kernel does not say.
    pub fn negotiated(&self, option: u64) -> Option<bool> {
        self.options.map(|options| options & option != 0)
    }

    /// Whether the delivery rate was limited by the application; `None` where the kernel does not say.
    pub fn delivery_rate_app_limited(&self) -> Option<bool> {
        self.flags.map(|flags| flags & 1 != 0)
    }

    /// The cap on the pacing rate in bits per second, where there is one.
    pub fn max_pacing_bps(&self) -> Option<u64> {
        // ~0UL says "no cap"; on 32-bit kernels it is ~0U.
        self.max_pacing_rate_bytes_s
            .filter(|&rate| rate < u64::from(u32::MAX) || (rate > u64::from(u32::MAX) && rate < u64::MAX))
            .map(|rate| rate.saturating_mul(8))
    }

    /// Segments on their way, as the kernel reckons (`tcp_packets_in_flight`, `include/net/tcp.h`): not those that it takes for lost.
    pub fn in_flight(&self) -> Option<u64> {
        let gone = self.sacked.unwrap_or(0).saturating_add(self.lost.unwrap_or(0));
        Some(self.unacked?.saturating_sub(gone).saturating_add(self.retrans.unwrap_or(0)))
    }

    /// Segments lost so far, as the sender knows: those that it sent again for a reason, and those that it takes for lost and has not sent
    /// again yet.
    pub fn lost_so_far(&self) -> Option<u64> {
        let repaired = self.total_retrans?.saturating_sub(self.dsack_dups.unwrap_or(0));
        Some(repaired.saturating_add(self.lost.unwrap_or(0).saturating_sub(self.retrans.unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_answer_leaves_later_fields_missing() {
        let mut bytes = vec![0u8; 232];
        bytes[68..72].copy_from_slice(&35_000u32.to_ne_bytes());
        bytes[228..232].copy_from_slice(&160_000u32.to_ne_bytes());
        let info = TcpInfo::from_bytes(&bytes);
        assert_eq!(info.rtt_us, Some(35_000));
        assert_eq!(info.snd_wnd_bytes, Some(160_000));
        assert_eq!(info.rcv_wnd_bytes, None);
        assert_eq!(TcpInfo::from_bytes(&[]), TcpInfo::default());
    }

    #[test]
    fn a_field_cut_in_half_is_missing() {
        assert_eq!(TcpInfo::from_bytes(&[0; 234]).rcv_wnd_bytes, None);
        assert_eq!(TcpInfo::from_bytes(&[0; 236]).rcv_wnd_bytes, Some(0));
    }

    #[test]
    fn what_is_taken_for_lost_is_not_in_flight_and_counts_once() {
        // A path that lets nothing pass: twelve segments, the first one sent four times more, the last time not known to be lost yet.
        let info = |retrans| TcpInfo {
            unacked: Some(12),
            sacked: Some(0),
            lost: Some(12),
            retrans: Some(retrans),
            total_retrans: Some(4),
            ..TcpInfo::default()
        };
        assert_eq!((info(0).in_flight(), info(0).lost_so_far()), (Some(0), Some(16)));
        assert_eq!((info(1).in_flight(), info(1).lost_so_far()), (Some(1), Some(15)));
        let spurious = TcpInfo { dsack_dups: Some(3), lost: None, retrans: None, ..info(0) };
        assert_eq!((spurious.in_flight(), spurious.lost_so_far()), (Some(12), Some(1)));
        assert_eq!(TcpInfo::default().lost_so_far(), None);
    }

    #[test]
    fn all_ones_is_no_pacing_cap() {
        let info = TcpInfo { max_pacing_rate_bytes_s: Some(u64::MAX), ..TcpInfo::default() };
        assert_eq!(info.max_pacing_bps(), None);
        let info = TcpInfo { max_pacing_rate_bytes_s: Some(12_500_000), ..TcpInfo::default() };
        assert_eq!(info.max_pacing_bps(), Some(100_000_000));
    }
}
