//! Identifies a connection by its first bytes. A TLS record of type handshake begins with 0x16 (RFC 8446, section 5.1); a
//! data hello begins with a byte that is neither that nor ASCII; a plain HTTP request begins with its method.

use crate::hello;

/// The kind of a connection, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A TLS handshake: the control connection.
    Tls,
    Data,
    /// HTTP without TLS: answered with a sentence.
    PlainHttp,
    Unknown,
    /// Not enough bytes yet.
    NeedMore,
}

/// The methods that identify a plain HTTP request, or the preface of HTTP/2 (`PRI`).
const METHODS: &[&[u8]] =
    &[b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"CONNECT ", b"TRACE ", b"PATCH ", b"PRI "];

/// The number of bytes after which [`classify`] never needs more.
pub const MAX_BYTES: usize = 8;

/// Identifies a connection. Never returns [`Kind::NeedMore`] for [`MAX_BYTES`] bytes or more.
pub fn classify(bytes: &[u8]) -> Kind {
    match bytes.first() {
        None => return Kind::NeedMore,
        Some(0x16) => return Kind::Tls,
        Some(_) => {}
    }
    if let Some(kind) = prefix(bytes, &hello::MAGIC, Kind::Data) {
        return kind;
    }
    METHODS.iter().filter_map(|method| prefix(bytes, method, Kind::PlainHttp)).next().unwrap_or(Kind::Unknown)
}

fn prefix(bytes: &[u8], wanted: &[u8], kind: Kind) -> Option<Kind> {
    if bytes.starts_with(wanted) {
        Some(kind)
    } else if wanted.starts_with(bytes) {
        Some(Kind::NeedMore)
    } else {
        None
    }
}

/// The answer to a plain HTTP request on the port.
pub fn plain_http_answer(port: u16) -> String {
    let body = format!(
        "This port speaks TLS. Use narrows, or: curl -k https://HOST:{port}/v1/hello -H 'Authorization: Bearer SECRET' \
         (SECRET is the last part of the token).\n"
    );
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_is_known_by_its_first_bytes() {
        assert_eq!(classify(&[0x16, 3, 1]), Kind::Tls);
        assert_eq!(classify(&hello::MAGIC), Kind::Data);
        assert_eq!(classify(b"GET / HTTP/1.1\r\n"), Kind::PlainHttp);
        assert_eq!(classify(b"SSH-2.0-x"), Kind::Unknown);
        assert_eq!(classify(b""), Kind::NeedMore);
        assert_eq!(classify(b"PO"), Kind::NeedMore);
        assert_eq!(classify(&hello::MAGIC[..2]), Kind::NeedMore);
        assert_eq!(classify(b"PUSH"), Kind::Unknown);
    }

    proptest! {
        #[test]
        fn enough_bytes_always_identify(bytes in proptest::collection::vec(any::<u8>(), MAX_BYTES..64)) {
            prop_assert_ne!(classify(&bytes), Kind::NeedMore);
        }

        #[test]
        fn more_bytes_never_change_the_answer(bytes in proptest::collection::vec(any::<u8>(), 0..12), more in any::<u8>()) {
            let early = classify(&bytes);
            let mut longer = bytes;
            longer.push(more);
            prop_assert!(early == Kind::NeedMore || early == classify(&longer));
        }
    }
}
