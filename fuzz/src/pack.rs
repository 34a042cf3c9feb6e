//! Compressed answers and events: a small input must not become a large one.

use narrows_wire::pack::{Packer, Unpacker};

const MOST: usize = 1 << 16;

pub(crate) fn run(bytes: &[u8]) {
    let mut unpacker = Unpacker::default();
    for part in bytes.chunks(64) {
        match unpacker.unpack(part, MOST) {
            Ok(plain) => assert!(plain.len() <= MOST),
            Err(_) => break,
        }
    }
    let packed = Packer::default().finish(bytes);
    assert_eq!(Unpacker::default().unpack(&packed, bytes.len().max(1)).expect("its own form"), bytes);
}
