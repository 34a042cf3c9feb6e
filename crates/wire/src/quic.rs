//! A load over QUIC (RFC 9000) by its protocol `perf` (draft-banks-quic-performance-00): each stream begins with eight bytes that say how
//! many the server is to send, and the record of a far end that shows nothing but its acknowledgements.

use crate::iperf3::far::{far_sample, stream};
use narrows_model::{
    Application, Flow, LoadPlan, LoadRecord, Place, TcpEndRecord, TcpStreamRecord, Transport, ZeroCopy,
};

/// The protocol that both ends name (ALPN).
pub const PROTOCOL: &[u8] = b"perf";
/// Where servers listen that are asked for no other port.
pub const PORT: u16 = 4433;
/// What is asked for where only time ends a test: more than passes in a day.
pub const ENDLESS: u64 = 1 << 60;
/// The congestion controls that both ends have in their program.
pub const CONGESTION_CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
/// How the far end moved its data.
const METHOD: &str = "quic";

/// What a full packet has beside data, about: flags, the connection's number of 8 bytes, the packet's of 2, the tag of 16 (RFC 9001 section
/// 5.3), and the header of its STREAM frame with an offset of 4 or 8 (RFC 9000 sections 17.3.1 and 19.8).
const HEADER_BYTES: u64 = 35;

/// The first bytes of a stream: how many the server is to send.
pub const fn request(bytes: u64) -> [u8; 8] {
    bytes.to_be_bytes()
}

/// Bytes of data in packets that were acknowledged.
pub const fn data_bytes(bytes: u64, packets: u64) -> u64 {
    bytes.saturating_sub(packets.saturating_mul(HEADER_BYTES))
}

/// What a test over QUIC cannot be, in a sentence.
pub fn refuses(plan: &LoadPlan) -> Option<String> {
    let LoadPlan::Tcp(plan) = plan else { return Some("QUIC has no such load".to_owned()) };
    let app = &plan.application;
    let checks = [
        (plan.transport != Transport::Quic, "a server of QUIC has no TCP"),
        (plan.zero_copy == ZeroCopy::On, "QUIC encrypts what it sends; drop --zero-copy"),
        (plan.mss_bytes.is_some(), "QUIC finds the size of its packets itself; drop --mss"),
        (plan.pacing_bps.is_some(), "QUIC paces its packets itself; drop --pacing-rate"),
        (
            plan.send_buffer_bytes.is_some() || plan.receive_buffer_bytes.is_some(),
            "QUIC has windows instead of buffers of sockets; drop --send-buffer and --receive-buffer",
        ),
        (plan.dscp > 0, "QUIC's packets have no DSCP here; drop --dscp"),
        (
            *app != Application::default(),
            "a test over QUIC imitates no application; drop the flags that begin with --app",
        ),
    ];
    if let Some((_, why)) = checks.into_iter().find(|(is, _)| *is) {
        return Some(why.to_owned());
    }
    let name = plan.congestion_control.as_deref().filter(|name| !CONGESTION_CONTROLS.contains(name))?;
    let known = CONGESTION_CONTROLS.join(", ");
    Some(format!("QUIC has no congestion control {}; it has {known}", name.escape_default()))
}

/// The far end's record: of what goes up, what it acknowledged.
pub fn record(plan: &LoadPlan, own: &LoadRecord) -> LoadRecord {
    let mut record = plan.partial_record(Place::Server, &[], String::new());
    if let (LoadRecord::Tcp(TcpEndRecord { streams, remarks, .. }), LoadRecord::Tcp(own)) = (&mut record, own) {
        remarks.clear();
        *streams = own.streams.iter().map(far).collect();
    }
    record
}

fn far(own: &TcpStreamRecord) -> TcpStreamRecord {
    let samples = match own.flow {
        Flow::Up => own.samples.iter().filter_map(far_sample).collect(),
        Flow::Down => Vec::new(),
    };
    stream(own, METHOD, samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Load as _, TcpInfo, TcpPlan, TcpSample};

    fn over_quic(plan: TcpPlan) -> TcpPlan {
        TcpPlan { transport: Transport::Quic, ..plan }
    }

    #[test]
    fn the_far_end_has_what_it_acknowledged_and_no_more_than_was_sent() {
        let sample = |at_us, bytes, acked| TcpSample {
            at_us,
            bytes,
            tcp: TcpInfo { bytes_acked: Some(acked), ..TcpInfo::default() },
            ..TcpSample::default()
        };
        let samples = vec![sample(0, 0, 0), sample(1_000, 900, 700), sample(2_000, 1_000, 1_010)];
        let bytes = |flow| {
            let streams = vec![TcpStreamRecord { flow, samples: samples.clone(), ..TcpStreamRecord::default() }];
            let own = TcpEndRecord { streams, ..TcpPlan::partial_record(Place::Client, Vec::new(), String::new()) };
            let far = record(&over_quic(TcpPlan::default()).into(), &own.into());
            let far: &TcpEndRecord = far.get().expect("TCP");
            far.streams[0].samples.iter().map(|it| (it.at_us, it.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(bytes(Flow::Up), [(0, 0), (1_000, 700), (2_000, 1_000)]);
        assert_eq!(bytes(Flow::Down), []);
        // A hundred full packets of 1,452 bytes.
        assert_eq!(data_bytes(145_200, 100), 141_700);
        assert_eq!(data_bytes(10, 100), 0);
    }

    #[test]
    fn what_quic_has_not_is_refused() {
        let refused = |plan: TcpPlan| refuses(&over_quic(plan).into());
        assert_eq!(refused(TcpPlan::default()), None);
        for name in CONGESTION_CONTROLS {
            let plan = TcpPlan { congestion_control: Some(name.to_owned()), ..TcpPlan::default() };
            assert_eq!(refused(plan), None, "{name}");
        }
        let other = TcpPlan { congestion_control: Some("dctcp".to_owned()), ..TcpPlan::default() };
        assert!(refused(other).is_some_and(|why| why.ends_with("it has cubic, reno, bbr")));
        for plan in [
            TcpPlan { zero_copy: ZeroCopy::On, ..TcpPlan::default() },
            TcpPlan { mss_bytes: Some(1_400), ..TcpPlan::default() },
            TcpPlan { dscp: 46, ..TcpPlan::default() },
            TcpPlan { receive_buffer_bytes: Some(1 << 20), ..TcpPlan::default() },
        ] {
            assert!(refused(plan.clone()).is_some(), "{plan:?}");
        }
        assert!(refuses(&TcpPlan::default().into()).is_some(), "TCP");
    }

    #[test]
    fn a_stream_begins_with_what_is_asked_for() {
        assert_eq!(request(258), [0, 0, 0, 0, 0, 0, 1, 2]);
    }
}
