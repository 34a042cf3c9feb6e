//! What the kernel writes: netlink messages, control messages of sockets, samples of perf, formats of tracefs.

use narrows_sys::udp::receive::read_control;
use narrows_sys::{netlink, perf};

pub(crate) fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => assert!(netlink::read_any(bytes) <= bytes.len()),
        1 => narrows_collect::kernel::decode_any(bytes),
        2 => {
            assert!(perf::raw(bytes).is_none_or(|raw| raw.len() + 4 <= bytes.len()));
            let (stamp, segment) = read_control(bytes);
            assert!(bytes.len() >= 20 || (stamp.is_none() && segment.is_none()));
        }
        _ => {
            let text = String::from_utf8_lossy(bytes);
            let (format, sample) = text.split_once('\0').unwrap_or((&text, ""));
            assert!(
                narrows_collect::drop_watch::read_any(format, sample.as_bytes()).is_none_or(|name| !name.is_empty())
            );
        }
    }
}
