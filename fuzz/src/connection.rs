//! The first bytes of a connection: what they are taken for, the hello of a data connection with its answer, and the header of a
//! request over UDP.
use narrows_wire::{Answer, DataHello, Kind, classify, first, rr};

pub(crate) fn run(bytes: &[u8]) {
    if bytes.len() >= first::MAX_BYTES {
        assert_ne!(classify(bytes), Kind::NeedMore);
    }
    if let Ok(hello) = DataHello::decode(bytes) {
        assert_eq!(hello.encode()[..], bytes[..hello.encode().len()]);
    }
    let _ = Answer::decode(bytes);
    if let Ok(header) = rr::Header::decode(bytes) {
        assert_eq!(header.encode()[..], bytes[..rr::LENGTH]);
    }
}
