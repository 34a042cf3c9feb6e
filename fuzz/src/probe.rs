//! The datagrams of a UDP trial.
use narrows_wire::probe::{HELLO_BYTES, Header, Hello, Reply, go_bytes};
use narrows_wire::{Key, profile};

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(header) = Header::decode(bytes) {
        assert_eq!(header.encode()[..], bytes[..header.encode().len()]);
        let _ = Reply::decode(bytes, header.stream);
    }
    if let Ok(hello) = Hello::decode(bytes) {
        assert!(bytes.len() >= HELLO_BYTES);
        assert_eq!(Hello::decode(&hello.encode(bytes.len())), Ok(hello));
        assert!(hello.no(bytes.len(), "why").len() <= bytes.len());
    }
    let _ = go_bytes(bytes);
    // The key that a fuzzer finds at once.
    let key = Key([0; 32]);
    if let Some((note, time_ns)) = profile::decode(bytes, &key) {
        assert_eq!(profile::decode(&profile::encode(&note, &key, time_ns), &key), Some((note, time_ns)));
    }
}
