//! The answer of a reflector that keeps state (RFC 8762 section 4.3, RFC 8972 section 4). It is never longer than the request.

use super::clock::ClockError;
use super::tlv::{self, ClassOfService, HEAD, INTEGRITY, MALFORMED, Tlv, Type, UNKNOWN};
use super::{Key, Reply, Request, StampError};

/// How a request arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When, ns since the Unix epoch.
    pub at_ns: u64,
    /// Its TTL or hop limit; 0 where unknown.
    pub ttl: u8,
    /// Its DSCP and ECN: the traffic class byte.
    pub class: u8,
    /// Whether its sender may choose the DSCP of the reply.
    pub may_mark: bool,
}

/// What a reflector knows of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Session {
    pub received: u32,
    /// Replies so far: the sequence number of the next one.
    pub sent: u32,
    /// When the last reply had left, ns since the Unix epoch.
    pub last_ns: Option<u64>,
}

/// A reply, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub bytes: Vec<u8>,
    /// The DSCP that the sender wants in it.
    pub dscp: Option<u8>,
}

/// The session's id, of a request that has not been looked at yet.
pub fn session_of(bytes: &[u8], key: Option<&Key>) -> u16 {
    let at = if key.is_some() { 26 } else { 14 };
    bytes.get(at..at + 2).map_or(0, |id| u16::from_be_bytes([id[0], id[1]]))
}

/// Answers a request, and counts it in its session. `now_ns`: the time of sending, ns since the Unix epoch, as late as possible.
/// Errors: the request is too short for a reply of its length, or forged: then there is no answer.
pub fn reflect(
    bytes: &[u8],
    key: Option<&Key>,
    seen: Seen,
    session: &mut Session,
    error: ClockError,
    now_ns: impl FnOnce() -> u64,
) -> Result<Answer, StampError> {
    let (of, rest) = Request::decode(bytes, key)?;
    session.received = session.received.wrapping_add(1);
    let sequence = session.sent;
    let whole = key.is_none_or(|key| tlv::is_whole(rest, key, of.sequence));
    let mut extensions = rest.to_vec();
    let mut dscp = None;
    let mut end = 0;
    for one in tlv::read(rest) {
        end = one.at + HEAD + one.value.len();
        if whole {
            dscp = dscp.or(answer(&mut extensions, one, seen, session, error));
        } else {
            extensions[one.at] |= INTEGRITY;
        }
    }
    // A head without its value.
    if let Some(flags) = extensions.get_mut(end) {
        *flags |= MALFORMED;
    }
    // The code is of the reply's own number and values.
    if let (true, Some(key)) = (whole, key)
        && let Some(code) = tlv::read(rest).find(|one| one.kind == Some(Type::Hmac))
    {
        let new = tlv::code(key, sequence, &extensions[..code.at]);
        extensions[code.at + HEAD..code.at + HEAD + new.len()].copy_from_slice(&new);
    }
    session.sent = session.sent.wrapping_add(1);
    let reply = Reply {
        sequence,
        error: error.write(),
        session: of.session,
        received: error.clock.write(seen.at_ns),
        of,
        ttl: seen.ttl,
        sent: error.clock.write(now_ns()),
    };
    Ok(Answer { bytes: reply.encode(key, &extensions), dscp })
}

/// Fills in what the reflector knows; the DSCP that the reply is to have.
fn answer(to: &mut [u8], one: Tlv<'_>, seen: Seen, session: &Session, error: ClockError) -> Option<u8> {
    let kind = one.kind?;
    to[one.at] &= !UNKNOWN;
    if kind.bytes().is_some_and(|bytes| bytes != one.value.len()) {
        to[one.at] |= MALFORMED;
        return None;
    }
    let mut fill = |value: &[u8], from: usize| {
        let at = one.at + HEAD + from;
        to[at..at + value.len()].copy_from_slice(value);
    };
    // Of where times come from: NTP (1) or a free clock (5); by software of this host (2).
    let source = if error.synchronised { 1 } else { 5 };
    match kind {
        Type::Padding | Type::Hmac => None,
        Type::TimestampInfo => {
            fill(&[source, 2, source, 2], 0);
            None
        }
        Type::ClassOfService => {
            let wanted_dscp = one.value[0] >> 2;
            let (dscp, ecn) = (seen.class >> 2, seen.class & 3);
            fill(&ClassOfService { wanted_dscp, dscp, ecn, refused: !seen.may_mark }.write(), 0);
            seen.may_mark.then_some(wanted_dscp)
        }
        Type::DirectMeasurement => {
            fill(&[session.received.to_be_bytes(), session.sent.to_be_bytes()].concat(), 4);
            None
        }
        Type::FollowUp => {
            if let Some(last_ns) = session.last_ns {
                fill(&session.sent.wrapping_sub(1).to_be_bytes(), 0);
                fill(&error.clock.write(last_ns).to_be_bytes(), 4);
                fill(&[2], 12);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Clock;
    use super::*;
    use proptest::prelude::*;

    const SEEN: Seen = Seen { at_ns: 1_700_000_000_000_000_000, ttl: 61, class: 46 << 2 | 1, may_mark: true };

    fn ask(key: Option<&Key>, extensions: &[u8], session: &mut Session) -> Reply {
        let request = Request { sequence: 9, sent: 77, error: 1, session: 5 }.encode(key, extensions);
        let answer =
            reflect(&request, key, SEEN, session, ClockError::default(), || SEEN.at_ns + 1_000).expect("an answer");
        assert_eq!(answer.bytes.len(), request.len());
        Reply::decode(&answer.bytes, key).expect("a reply").0
    }

    #[test]
    fn it_counts_by_itself_and_copies_the_rest() {
        let mut session = Session { sent: 3, received: 4, last_ns: None };
        let reply = ask(None, &[], &mut session);
        assert_eq!((reply.sequence, reply.of.sequence, reply.of.sent, reply.session, reply.ttl), (3, 9, 77, 5, 61));
        assert_eq!(Clock::Ntp.read(reply.sent) - Clock::Ntp.read(reply.received), 1_000);
        assert_eq!(session, Session { sent: 4, received: 5, last_ns: None });
    }

    #[test]
    fn extensions_are_filled_in_and_sealed_anew() {
        let key = Key::new(b"0123456789abcdef");
        for key in [None, key.as_ref()] {
            let mut asked = Vec::new();
            let cos = ClassOfService { wanted_dscp: 10, dscp: 0, ecn: 0, refused: false };
            tlv::append(&mut asked, Type::ClassOfService, &cos.write());
            tlv::append(&mut asked, Type::DirectMeasurement, &[0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0]);
            tlv::append(&mut asked, Type::FollowUp, &[0; 16]);
            asked.extend_from_slice(&[UNKNOWN, 2, 0, 2, 7, 7]);
            if let Some(key) = key {
                tlv::append_code(&mut asked, key, 9);
            }
            let mut session = Session { sent: 3, received: 4, last_ns: Some(SEEN.at_ns - 5) };
            let request = Request { sequence: 9, ..Request::default() }.encode(key, &asked);
            let answer = reflect(&request, key, SEEN, &mut session, ClockError::default(), || 0).expect("an answer");
            assert_eq!((answer.bytes.len(), answer.dscp), (request.len(), Some(10)));
            let (reply, rest) = Reply::decode(&answer.bytes, key).expect("whole");
            assert!(key.is_none_or(|key| tlv::is_whole(rest, key, reply.sequence)));
            let all: Vec<_> = tlv::read(rest).collect();
            assert_eq!(ClassOfService::read(all[0].value), Some(ClassOfService { dscp: 46, ecn: 1, ..cos }));
            assert_eq!(all[1].value, [0, 0, 0, 10, 0, 0, 0, 5, 0, 0, 0, 3]);
            assert_eq!(all[2].value[..4], [0, 0, 0, 2]);
            assert_eq!((all[3].flags, all[3].value), (UNKNOWN, &[7, 7][..]));
            assert!(all[..3].iter().all(|one| one.flags == 0));
        }
    }

    #[test]
    fn what_is_broken_is_marked() {
        let key = Key::new(b"0123456789abcdef");
        let mut asked = Vec::new();
        tlv::append(&mut asked, Type::DirectMeasurement, &[0; 3]);
        asked.extend_from_slice(&[UNKNOWN, 4, 0, 200, 1]);
        let flags = |key: Option<&Key>| {
            let request = Request::default().encode(key, &asked);
            let answer =
                reflect(&request, key, SEEN, &mut Session::default(), ClockError::default(), || 0).expect("an answer");
            let rest = Reply::decode(&answer.bytes, key).expect("whole").1.to_vec();
            [rest[0], rest[7]]
        };
        assert_eq!(flags(None), [MALFORMED, UNKNOWN | MALFORMED]);
        assert_eq!(flags(key.as_ref()), [UNKNOWN | INTEGRITY, UNKNOWN | MALFORMED]);
        assert_eq!(
            reflect(&[0; 43], None, SEEN, &mut Session::default(), ClockError::default(), || 0),
            Err(StampError::Short(43, 44))
        );
    }

    proptest! {
        #[test]
        fn an_answer_is_as_long_as_its_request(bytes: Vec<u8>, extensions: Vec<u8>) {
            for key in [None, Key::new(b"k")] {
                let request = Request::default().encode(key.as_ref(), &extensions);
                for bytes in [&bytes, &request] {
                    let session = &mut Session::default();
                    if let Ok(answer) = reflect(bytes, key.as_ref(), SEEN, session, ClockError::default(), || 0) {
                        prop_assert_eq!(answer.bytes.len(), bytes.len());
                    }
                }
            }
        }
    }
}
