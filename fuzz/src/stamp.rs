//! STAMP: requests at a reflector, replies at a sender, extensions.
use narrows_wire::stamp::clock::ClockError;
use narrows_wire::stamp::reflect::{Seen, Session, reflect, session_of};
use narrows_wire::stamp::{Key, Reply, Request};

pub(crate) fn run(bytes: &[u8]) {
    let seen = Seen { at_ns: 1, ttl: 64, class: 0, may_mark: true };
    for key in [None, Key::new(b"0123456789abcdef")] {
        let key = key.as_ref();
        let _ = (Reply::decode(bytes, key), session_of(bytes, key));
        // As they are, and behind a datagram whose code is right.
        let whole = Request::default().encode(key, bytes);
        for bytes in [bytes, &whole] {
            if let Ok(answer) = reflect(bytes, key, seen, &mut Session::default(), ClockError::default(), || 2) {
                assert_eq!(answer.bytes.len(), bytes.len(), "an answer is as long as its request");
            }
        }
    }
}
