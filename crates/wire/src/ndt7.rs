//! ndt7, the Network Diagnostic Tool of Measurement Lab (specification v0.11): what a server says of a test in text messages, and the record
//! that is made of it. The data are binary messages of WebSocket, over TLS.

use crate::iperf3::far::stream;
use narrows_model::{Direction, Limit, Transport, ZeroCopy};
use narrows_model::{Flow, LoadPlan, LoadRecord, Place, TcpEndRecord, TcpInfo, TcpPlan, TcpSample, TcpStreamRecord};
use serde_json::Value;

/// The subprotocol that both ends name.
pub const PROTOCOL: &str = "net.measurementlab.ndt.v7";
/// The largest binary message.
pub const MESSAGE_MAX: usize = 1 << 24;
/// Servers end a test then.
pub const LONGEST_MS: u64 = 10_000;
/// How the far end moved its data.
const METHOD: &str = "ndt7";

/// The place of a test.
pub const fn path(flow: Flow) -> &'static str {
    match flow {
        Flow::Up => "/ndt/v7/upload",
        Flow::Down => "/ndt/v7/download",
    }
}

/// The bytes of a message with this plan: a power of two between those that the specification wants, and not so large that handing it on in
/// parts moves its rest many times.
pub fn message_bytes(plan: &TcpPlan) -> usize {
    (plan.message_bytes as usize).clamp(1 << 13, 1 << 18).next_power_of_two()
}

/// The bytes of the header of a client's message, with its mask (RFC 6455 section 5.2).
pub const fn header_bytes(message_bytes: usize) -> u64 {
    match message_bytes {
        0..126 => 6,
        126..65_536 => 8,
        _ => 14,
    }
}

/// What a server said of its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// Since the test began there, microseconds.
    pub at_us: u64,
    /// Bytes of data that it sent or received, where it counts them.
    pub bytes: Option<u64>,
    pub tcp: TcpInfo,
    /// Whether its congestion control is BBR.
    pub is_bbr: bool,
}

impl Said {
    /// Takes a text message; `None`: it says nothing of a time.
    pub fn parse(text: &str) -> Option<Self> {
        let all: Value = serde_json::from_str(text).ok()?;
        let part = |name: &str| all.get(name).filter(|it| it.is_object());
        let (app, tcp) = (part("AppInfo"), part("TCPInfo"));
        let of = |part: Option<&Value>, name: &str| part?.get(name)?.as_u64();
        let at_us = of(tcp, "ElapsedTime").or_else(|| of(app, "ElapsedTime"))?;
        let tcp = |name: &str| of(tcp, name);
        // The names of github.com/m-lab/tcp-info.
        let tcp = TcpInfo {
            ca_state: tcp("CAState"),
            snd_mss_bytes: tcp("SndMSS"),
            rcv_mss_bytes: tcp("RcvMSS"),
            unacked: tcp("Unacked"),
            sacked: tcp("Sacked"),
            lost: tcp("Lost"),
            pmtu_bytes: tcp("PMTU"),
            rtt_us: tcp("RTT"),
            rttvar_us: tcp("RTTVar"),
            snd_ssthresh: tcp("SndSsThresh"),
            snd_cwnd: tcp("SndCwnd"),
            reordering: tcp("Reordering"),
            rcv_rtt_us: tcp("RcvRTT"),
            rcv_space_bytes: tcp("RcvSpace"),
            total_retrans: tcp("TotalRetrans"),
            pacing_rate_bytes_s: tcp("PacingRate"),
            max_pacing_rate_bytes_s: tcp("MaxPacingRate"),
            bytes_acked: tcp("BytesAcked"),
            bytes_received: tcp("BytesReceived"),
            segs_out: tcp("SegsOut"),
            segs_in: tcp("SegsIn"),
            notsent_bytes: tcp("NotsentBytes"),
            min_rtt_us: tcp("MinRTT"),
            data_segs_in: tcp("DataSegsIn"),
            data_segs_out: tcp("DataSegsOut"),
            delivery_rate_bytes_s: tcp("DeliveryRate"),
            busy_time_us: tcp("BusyTime"),
            rwnd_limited_us: tcp("RWndLimited"),
            sndbuf_limited_us: tcp("SndBufLimited"),
            delivered: tcp("Delivered"),
            delivered_ce: tcp("DeliveredCE"),
            bytes_sent: tcp("BytesSent"),
            bytes_retrans: tcp("BytesRetrans"),
            dsack_dups: tcp("DSackDups"),
            reord_seen: tcp("ReordSeen"),
            ..TcpInfo::default()
        };
        let is_bbr = of(part("BBRInfo"), "BW").is_some_and(|rate| rate > 0);
        Some(Self { at_us, bytes: of(app, "NumBytes"), tcp, is_bbr })
    }
}

/// What a test of ndt7 cannot be, in a sentence.
pub fn refuses(plan: &LoadPlan) -> Option<&'static str> {
    let LoadPlan::Tcp(plan) = plan else { return Some("ndt7 has no such load: only tcp can be measured against it") };
    let app = &plan.application;
    let own = TcpPlan::default();
    let sends = (plan.pacing_bps, plan.send_buffer_bytes, plan.no_delay) != (None, None, false)
        || plan.congestion_control.is_some();
    let checks = [
        (plan.streams != 1, "ndt7 has one stream; drop --streams"),
        (plan.direction == Direction::Both, "ndt7 has one direction at a time; give --direction up or down"),
        (matches!(plan.limit, Limit::BytesPerStream(_)), "ndt7 ends by time; give --duration instead of --bytes"),
        (
            matches!(plan.limit, Limit::DurationMs(ms) if ms > LONGEST_MS),
            "a server of ndt7 ends a test after 10 s; give --duration up to 10s",
        ),
        (plan.transport != Transport::Tcp, "ndt7 has plain TCP; drop --mptcp"),
        (
            plan.direction == Direction::Down && (sends || plan.message_bytes != own.message_bytes),
            "a server of ndt7 sends as it does; drop --pacing-rate, --congestion-control, --send-buffer, --no-delay and --size",
        ),
        (plan.zero_copy == ZeroCopy::On, "ndt7 encrypts what it sends; drop --zero-copy"),
        (
            app.write_bps + app.read_bps > 0 || app.write_cpu_us_per_mib + app.read_cpu_us_per_mib > 0,
            "ndt7 imitates no application; drop the flags that begin with --app",
        ),
    ];
    checks.into_iter().find(|(is, _)| *is).map(|(_, why)| why)
}

/// The part of a TCP payload that is data: messages have a header, the records of TLS 1.3 a header, a type and a tag (RFC 8446 section 5.2).
fn part_of_data(message_bytes: usize, is_encrypted: bool) -> f64 {
    let records = if is_encrypted { 16_384.0 / (16_384.0 + 22.0) } else { 1.0 };
    message_bytes as f64 / (message_bytes as f64 + header_bytes(message_bytes) as f64) * records
}

/// The far end's record: what it said, and up to its end what it acknowledged of this end's data.
pub fn record(plan: &LoadPlan, own: &LoadRecord, said: &[Said], is_encrypted: bool) -> LoadRecord {
    let mut record = plan.partial_record(Place::Server, &[], String::new());
    if let (LoadRecord::Tcp(TcpEndRecord { streams, remarks, .. }), LoadRecord::Tcp(own), LoadPlan::Tcp(plan)) =
        (&mut record, own, plan)
    {
        remarks.clear();
        let up = part_of_data(message_bytes(plan), is_encrypted);
        *streams = own.streams.iter().map(|stream| far(stream, said, up)).collect();
    }
    record
}

fn far(own: &TcpStreamRecord, said: &[Said], up: f64) -> TcpStreamRecord {
    let last = own.samples.last().cloned().unwrap_or_default();
    let whole = |it: &TcpSample| it.tcp.bytes_received.filter(|bytes| *bytes > 0);
    // What this end took tells how much of a server's bytes are data.
    let down = whole(&last).map_or(1.0, |bytes| (last.bytes as f64 / bytes as f64).min(1.0));
    let (part, most) = if own.flow == Flow::Up { (up, last.bytes) } else { (down, u64::MAX) };
    let of = |bytes: u64| ((bytes as f64 * part) as u64).min(most);
    let counted = |said: &Said| match own.flow {
        Flow::Up => said.bytes.map(|bytes| bytes.min(most)).or_else(|| said.tcp.bytes_received.map(of)),
        Flow::Down => said.bytes.or_else(|| said.tcp.bytes_acked.map(of)),
    };
    let mut samples = vec![TcpSample::default()];
    for said in said {
        let before = samples.last().map_or((0, 0), |it| (it.at_us, it.bytes));
        let sample = |bytes: u64| TcpSample { at_us: said.at_us, bytes, tcp: said.tcp.clone(), ..TcpSample::default() };
        // A clock or a count that goes back is none. What it says after the end counts time without data.
        let is_next = |bytes: &u64| said.at_us > before.0 && said.at_us < last.at_us && *bytes >= before.1;
        samples.extend(counted(said).filter(is_next).map(sample));
    }
    // Its last word comes up to 0.6 s before the end.
    if let (Flow::Up, Some(acked)) = (own.flow, last.tcp.bytes_acked) {
        let (at_us, bytes) = samples.last().map_or((0, 0), |it| (it.at_us, it.bytes));
        let end = TcpSample { at_us: last.at_us, bytes: of(acked), ..TcpSample::default() };
        samples.extend(Some(end).filter(|end| end.at_us > at_us && end.bytes >= bytes));
    }
    let congestion_control = said.iter().any(|it| it.is_bbr).then(|| "bbr".to_owned());
    TcpStreamRecord { congestion_control, ..stream(own, METHOD, samples) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Load as _;

    fn said(at_us: u64, received: u64) -> Said {
        let text = format!(
            r#"{{"ConnectionInfo":{{"Client":"a","Server":"b"}},"TCPInfo":{{"BytesReceived":{received},"BytesAcked":{received},
                "RTT":2500,"MinRTT":1000,"RWndLimited":7,"SndBufLimited":-1,"ElapsedTime":{at_us}}}}}"#
        );
        Said::parse(&text).expect("a time")
    }

    #[test]
    fn a_message_says_what_the_kernel_there_says() {
        let it = said(250_000, 1_000);
        assert_eq!((it.at_us, it.bytes, it.tcp.rtt_us), (250_000, None, Some(2_500)));
        assert_eq!((it.tcp.rwnd_limited_us, it.tcp.sndbuf_limited_us), (Some(7), None));
        let counted = Said::parse(r#"{"AppInfo":{"ElapsedTime":5,"NumBytes":9}}"#).expect("a time");
        assert_eq!((counted.at_us, counted.bytes, counted.tcp), (5, Some(9), TcpInfo::default()));
        for nothing in ["", "7", "{}", r#"{"TCPInfo":7}"#, r#"{"TCPInfo":{"ElapsedTime":"soon"}}"#] {
            assert_eq!(Said::parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_far_end_received_data_not_headers_and_no_more_than_was_sent() {
        let sample = |at_us, bytes, acked: u64| TcpSample {
            at_us,
            bytes,
            tcp: TcpInfo { bytes_acked: Some(acked), bytes_received: Some(acked), ..TcpInfo::default() },
            ..TcpSample::default()
        };
        let own = |flow, bytes| {
            let samples = vec![sample(0, 0, 0), sample(1_000_000, bytes, 1_001_400)];
            let stream = TcpStreamRecord { flow, samples, ..TcpStreamRecord::default() };
            let streams = vec![stream];
            LoadRecord::from(TcpEndRecord {
                streams,
                ..TcpPlan::partial_record(Place::Client, Vec::new(), String::new())
            })
        };
        let heard = [said(500_000, 500_700), said(400_000, 600_000), said(600_000, 400_000)];
        let bytes = |flow, bytes| {
            let far = record(&TcpPlan::default().into(), &own(flow, bytes), &heard, true);
            let far: &TcpEndRecord = far.get().expect("TCP");
            far.streams[0].samples.iter().map(|it| (it.at_us, it.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(bytes(Flow::Up, 1_200_000), [(0, 0), (500_000, 499_975), (1_000_000, 999_950)]);
        assert_eq!(bytes(Flow::Up, 900_000)[2], (1_000_000, 900_000));
        assert_eq!(bytes(Flow::Down, 1_000_000), [(0, 0), (500_000, 500_000)]);
    }

    #[test]
    fn what_ndt7_has_not_is_refused() {
        let refused = |plan: TcpPlan| refuses(&plan.into());
        assert_eq!(refused(TcpPlan::default()), None);
        for plan in [
            TcpPlan { streams: 2, ..TcpPlan::default() },
            TcpPlan { direction: Direction::Both, ..TcpPlan::default() },
            TcpPlan { limit: Limit::DurationMs(10_001), ..TcpPlan::default() },
            TcpPlan { limit: Limit::BytesPerStream(1), ..TcpPlan::default() },
            TcpPlan { zero_copy: ZeroCopy::On, ..TcpPlan::default() },
        ] {
            assert!(refused(plan.clone()).is_some(), "{plan:?}");
        }
        let down = TcpPlan { direction: Direction::Down, ..TcpPlan::default() };
        assert_eq!(refused(down.clone()), None);
        assert!(refused(TcpPlan { pacing_bps: Some(1_000_000), ..down }).is_some());
    }
}
