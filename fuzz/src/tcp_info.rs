//! TCP_INFO of any length and content: what the kernel's answer becomes.
use narrows_model::TcpInfo;

pub(crate) fn run(bytes: &[u8]) {
    let info = TcpInfo::from_bytes(bytes);
    let _ = (info.max_pacing_bps(), info.negotiated(TcpInfo::OPT_SACK), info.delivery_rate_app_limited());
}
