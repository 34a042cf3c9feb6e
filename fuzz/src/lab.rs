//! The protocol of a lab's processes, its faults' values, and the frames that its emulator forwards.

use narrows_lab::emulator::{frame::Frame, too_big};
use narrows_lab::protocol::{Order, Reply, Request, State};

pub(crate) fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 5 {
        0 => {
            if let Ok(request) = serde_json::from_slice::<Request>(bytes) {
                let text = serde_json::to_string(&request).expect("a request");
                assert!(serde_json::from_str::<Request>(&text).is_ok());
            }
        }
        1 => drop(serde_json::from_slice::<Reply>(bytes)),
        2 => drop(serde_json::from_slice::<Order>(bytes)),
        3 => drop(serde_json::from_slice::<State>(bytes)),
        _ => {
            if let Some(frame) = Frame::parse(bytes) {
                let segments = frame.segments.min(64);
                assert!(frame.wire_bytes(0, segments) > 0);
            }
            let _ = too_big::answer(bytes, 1_280);
        }
    }
}
