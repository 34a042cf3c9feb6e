//! What requests and responses over TCP are filled with.

/// The first byte of a response is never that of a text answer.
pub(super) static FILL: [u8; 64 << 10] = [0xA5; 64 << 10];
