//! Compressed answers and events: a small input must not become a large one.

use narrows_wire::pack::{Packer, Unpacker};
use std::cell::RefCell;

const MOST: usize = 1 << 16;

thread_local! {
    /// One stream of all inputs: the tables of a new one would take most of the time.
    static STREAM: RefCell<(Packer, Unpacker)> = RefCell::default();
}

pub(crate) fn run(bytes: &[u8]) {
    let mut unpacker = Unpacker::default();
    for part in bytes.chunks(64) {
        match unpacker.unpack(part, MOST) {
            Ok(plain) => assert!(plain.len() <= MOST),
            Err(_) => break,
        }
    }
    STREAM.with_borrow_mut(|(packer, unpacker)| {
        let packed = packer.pack(bytes);
        assert_eq!(unpacker.unpack(&packed, bytes.len().max(1)).expect("its own form"), bytes);
    });
}
