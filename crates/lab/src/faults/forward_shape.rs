//! # forward-shape
//!
//! The router's output is slower than its input, behind a queue: a token bucket filter (tc-tbf(8)) on `out0` that passes N
//! frames of one size per second, with a queue of Q frames. A device of known throughput and known buffer.
//!
//! The filter counts bytes: a frame without its FCS, L − 4. The bucket is as small as the kernel's timers allow, since tokens
//! that are not used in time are lost. A bucketful leaves as one burst, so the bucket is part of the queue: together they
//! hold Q frames. Frames of another size get another rate.
//!
//! The kernel sets a timer for each frame that waits. If timers are expensive (some 10 µs in a virtual machine), above about
//! 20,000 frames/s they saturate the core that forwards, and a load above the rate is delayed by that rather than dropped:
//! *forward-police* loses the same frames at any rate, without a queue.
//!
//! Truth, for N frames per second and a queue of Q:
//! - in the long run N frames/s leave, whatever the load above that;
//! - the highest load without loss over a trial of T seconds is N + Q ÷ T: for a throughput within 1 % of N, Q must be below
//!   N × T ÷ 100;
//! - the longest burst without loss that comes at M frames/s is Q ÷ (1 − N ÷ M), and its corrected buffer time
//!   (RFC 9004, section 6.4) Q ÷ M;
//! - the queueing discipline drops the excess and counts it.

use super::local_shaper::set_root_of;
use super::{takes, Fault, ROUTER, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;
use narrows_model::load::frames::{FCS_BYTES, MIN_FRAME_BYTES, MAX_FRAME_BYTES};
use narrows_sys::rtnl::Qdisc;

pub(super) const FAULT: Fault = Fault {
    id: "forward-shape",
    about: "the router shapes its output to a rate in frames/s, with a queue in frames",
    places: ROUTER,
    parameter: takes(Unit::Numbers(&["frames/s", "bytes a frame", "frames of queue"]), "20000x64x1000", "rate x frame size with FCS x queue"),
    host: Some(inject),
    ..Fault::NONE
};

/// How late the kernel's timer may fire.
const LATENESS_NS: u64 = 250_000;

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    let [frames_per_second, frame_bytes, queue_frames] = value.numbers();
    let refused = |cause: &str| Err(FAULT.refused(&format!("{frames_per_second}x{frame_bytes}x{queue_frames}"), cause));
    if !(u64::from(MIN_FRAME_BYTES)..=u64::from(MAX_FRAME_BYTES)).contains(&frame_bytes) {
        return refused(&format!("a frame has {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} bytes with its FCS"));
    }
    match discipline(frames_per_second, frame_bytes, queue_frames) {
        Some(qdisc) => set_root_of(host, "out0", &qdisc),
        None => refused("the queue is at least 2 frames, and the kernel counts its bytes in 32 bits"),
    }
}

/// `None`: an impossible queue.
fn discipline(frames_per_second: u64, frame_bytes: u64, queue_frames: u64) -> Option<Qdisc> {
    let on_device = frame_bytes - u64::from(FCS_BYTES);
    let bucket_frames = (frames_per_second * LATENESS_NS / 1_000_000_000).clamp(1, queue_frames.max(2) / 2);
    let waiting_frames = queue_frames.checked_sub(bucket_frames).filter(|frames| *frames > 0)?;
    let bytes = |frames: u64| u32::try_from(frames.checked_mul(on_device)?).ok();
    Some(Qdisc::TokenBucket {
        rate_bps: frames_per_second.checked_mul(on_device * 8)?,
        burst_bytes: bytes(bucket_frames)?,
        limit_bytes: bytes(waiting_frames)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_and_queue_hold_the_frames_together() {
        for (rate, frame, queue) in [(200_000, 64, 1000), (1_000, 1518, 20), (1_000_000, 64, 2), (10, 64, 3)] {
            let Some(Qdisc::TokenBucket { rate_bps, burst_bytes, limit_bytes }) = discipline(rate, frame, queue) else {
                panic!("{rate} x {frame} x {queue}")
            };
            assert_eq!(rate_bps, rate * (frame - 4) * 8);
            assert_eq!(u64::from(burst_bytes) + u64::from(limit_bytes), queue * (frame - 4), "{rate} {frame} {queue}");
            assert!(u64::from(burst_bytes.min(limit_bytes)) >= frame - 4);
        }
        let fifty = discipline(200_000, 64, 1000);
        assert!(
            matches!(fifty, Some(Qdisc::TokenBucket { burst_bytes: 3000, .. })),
            "250 us at 200 kpps are 50 frames"
        );
        assert_eq!(discipline(1000, 64, 1), None);
        assert_eq!(discipline(1000, 1518, 1_000_000_000), None);
    }
}
