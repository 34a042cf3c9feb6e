//! The one SNMP SET of the lab: how long net-snmp's agent caches interface counters. Source: RFC 3416 (messages), X.690
//! (encoding), NET-SNMP-AGENT-MIB (`nsCacheTimeout`).

/// `nsCacheTimeout` (1.3.6.1.4.1.8072.1.5.3.1.2) of `ifTable` (1.3.6.1.2.1.2.2); `ifXTable` shares its cache.
const CACHE_TIMEOUT_OF_INTERFACES: [u8; 20] = [0x2b, 6, 1, 4, 1, 0xbf, 0x08, 1, 5, 3, 1, 2, 1, 3, 6, 1, 2, 1, 2, 2];

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const RESPONSE: u8 = 0xa2;
const SET_REQUEST: u8 = 0xa3;
/// The version number of SNMPv2c in a message.
const VERSION_2C: u8 = 1;

/// A value of fewer than 128 bytes, so that its length takes one byte.
fn encode(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap_or(u8::MAX);
    [&[tag, length], value].concat()
}

/// The request that sets `seconds`; `community` is short.
pub(super) fn interface_cache_timeout(community: &str, seconds: u8) -> Vec<u8> {
    let number = |value: u8| encode(INTEGER, &[value]);
    let binding = [encode(OBJECT_IDENTIFIER, &CACHE_TIMEOUT_OF_INTERFACES), number(seconds)].concat();
    let bindings = encode(SEQUENCE, &encode(SEQUENCE, &binding));
    let (request_id, error_status, error_index) = (number(1), number(0), number(0));
    let request = encode(SET_REQUEST, &[request_id, error_status, error_index, bindings].concat());
    encode(SEQUENCE, &[number(VERSION_2C), encode(OCTET_STRING, community.as_bytes()), request].concat())
}

/// The error status of a response; `None`: not a response.
pub(super) fn error_status(message: &[u8]) -> Option<u8> {
    let (body, _) = decode(SEQUENCE, message)?;
    let (_, rest) = decode(INTEGER, body)?;
    let (_, rest) = decode(OCTET_STRING, rest)?;
    let (response, _) = decode(RESPONSE, rest)?;
    let (_, rest) = decode(INTEGER, response)?;
    let (status, _) = decode(INTEGER, rest)?;
    match status {
        [status] => Some(*status),
        _ => None,
    }
}

/// A value with that tag, and the bytes after it; lengths of one and two bytes.
fn decode(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    let [found, length] = *head;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_request_matches_the_standard() {
        let bytes = interface_cache_timeout("ab", 1);
        let expected = [
            &[0x30, 47, 2, 1, 1, 4, 2, b'a', b'b', 0xa3, 38, 2, 1, 1, 2, 1, 0, 2, 1, 0, 0x30, 27, 0x30, 25, 6, 20][..],
            &CACHE_TIMEOUT_OF_INTERFACES,
            &[2, 1, 1],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn a_response_has_an_error_status() {
        let mut answer = interface_cache_timeout("ab", 1);
        assert_eq!(error_status(&answer), None, "a request is no response");
        answer[9] = 0xa2;
        assert_eq!(error_status(&answer), Some(0));
        answer[16] = 17;
        assert_eq!(error_status(&answer), Some(17));
        for end in 0..17 {
            assert_eq!(error_status(&answer[..end]), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            error_status(&bytes);
        }
    }
}
