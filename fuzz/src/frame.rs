//! A frame that a receiver hears, and the signature in it.
use narrows_wire::frame::{Seen, Signature};

pub(crate) fn run(bytes: &[u8]) {
    if let Some(signature) = Signature::decode(bytes) {
        assert_eq!(signature.encode()[..], bytes[..16]);
    }
    if let Some(seen) = Seen::parse(bytes) {
        assert!(bytes.len() >= 58, "Ethernet, IPv4, UDP and the signature");
        assert!(seen.frame_bytes >= 64);
        assert!(bytes.windows(16).any(|part| part == seen.signature.encode()));
    }
}
