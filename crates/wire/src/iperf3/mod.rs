//! The protocol of iperf3, as both ends speak it: one TCP control connection with one-byte states and JSON, and data connections that
//! begin with the cookie of their test.
//!
//! Source: traffic of iperf3 3.12 and the public description of its states; `docs/iperf3.md` has what narrows supports.

pub mod control;
pub mod datagram;
pub mod errors;
pub mod far;
pub mod own;
pub mod params;
pub mod results;

pub use control::{Cookie, Inbox, State, json};
pub use params::{Params, ParamsError, Protocol};
pub use results::{Results, StreamResult};

/// The port of iperf3, TCP and UDP.
pub const PORT: u16 = 5201;
/// The longest parameters of a test, in bytes of JSON.
pub const MAX_PARAMS: usize = 8192;
/// The longest results, in bytes of JSON: 256 streams and the server's output.
pub const MAX_RESULTS: usize = 4 << 20;
/// The longest results of a client, in bytes: 256 streams of less than 250 bytes each.
pub const MAX_OWN_RESULTS: usize = 64 << 10;
/// The most streams of one direction.
pub const MAX_STREAMS: u32 = 128;

/// The id of the stream at this position: iperf3 has no 2.
pub const fn stream_id(position: u32) -> u32 {
    if position == 0 { 1 } else { position + 2 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn stream_ids_leave_out_two() {
        assert_eq!([0, 1, 2, 3].map(super::stream_id), [1, 3, 4, 5]);
    }
}
