//! A STAMP session with any reflector: the target, the key, the session.

use narrows_model::Family;
use narrows_sys::files;
pub use narrows_traffic::stamp::run as measure;
pub use narrows_views::stamp::report;
pub use narrows_wire::stamp::{Key, PORT, base_bytes};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A key has this many bytes at least (RFC 8762 section 4.4 wants 128 bits).
const LEAST_KEY: usize = 16;

/// Why there is no session.
#[derive(Debug, Error)]
pub enum StampFailure {
    /// The target has no address.
    #[error("cannot resolve `{0}`: {1}")]
    Unknown(String, String),
    /// The key cannot be read.
    #[error("cannot read the key: {0}")]
    KeyFile(#[source] narrows_sys::Error),
    /// The key is none.
    #[error("cannot use {} as a key: it must hold at least 32 hexadecimal digits and nothing else", .0.display())]
    Key(PathBuf),
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
}

/// A key from a file of hexadecimal digits.
/// Errors: the file cannot be read, or holds something else.
pub fn read_key(file: &Path) -> Result<Key, StampFailure> {
    let text = files::read_text(file).map_err(StampFailure::KeyFile)?;
    let digits = text.trim();
    let byte = |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let bytes = bytes.filter(|bytes| bytes.len() >= LEAST_KEY && digits.bytes().all(|it| it.is_ascii_hexdigit()));
    bytes.and_then(|bytes| Key::new(&bytes)).ok_or_else(|| StampFailure::Key(file.to_owned()))
}

/// The address of `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`.
/// Errors: no such host, or none of this family.
pub fn resolve(word: &str, family: Option<Family>) -> Result<SocketAddr, StampFailure> {
    let unknown = |why: &str| StampFailure::Unknown(word.to_owned(), why.to_owned());
    let bare = word.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<SocketAddr> = match (bare.parse(), word.rsplit_once(':')) {
        (Ok(ip), _) => vec![SocketAddr::new(ip, PORT)],
        (Err(_), Some((host, port))) => {
            let port = port.parse().map_err(|_| unknown("the port must be a number from 1 to 65535"))?;
            let host = host.trim_start_matches('[').trim_end_matches(']');
            (host, port).to_socket_addrs().map_err(|error| unknown(&error.to_string()))?.collect()
        }
        (Err(_), None) => (word, PORT).to_socket_addrs().map_err(|error| unknown(&error.to_string()))?.collect(),
    };
    let fits = |address: &&SocketAddr| match family {
        Some(Family::Ipv4) => address.is_ipv4(),
        Some(Family::Ipv6) => address.is_ipv6(),
        None => true,
    };
    found.iter().find(fits).copied().ok_or_else(|| unknown("it has no address of this family"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_a_port_or_the_usual_one() {
        let at = |word: &str| resolve(word, None).map(|address| address.to_string()).map_err(|error| error.to_string());
        assert_eq!(at("192.0.2.7"), Ok("192.0.2.7:862".into()));
        assert_eq!(at("192.0.2.7:20000"), Ok("192.0.2.7:20000".into()));
        assert_eq!(at("2001:db8::7"), Ok("[2001:db8::7]:862".into()));
        assert_eq!(at("[2001:db8::7]:20000"), Ok("[2001:db8::7]:20000".into()));
        assert!(at("192.0.2.7:x").unwrap_err().contains("the port must be a number"));
        assert!(resolve("192.0.2.7", Some(Family::Ipv6)).is_err());
    }

    #[test]
    fn a_key_is_hexadecimal_and_long_enough() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("key");
        let read = |text: &str| {
            files::write_whole(&file, text.as_bytes(), 0o600).expect("written");
            read_key(&file).map_err(|error| error.to_string())
        };
        assert_eq!(
            read("000102030405060708090a0b0c0d0e0f\n"),
            Ok(Key::new(&(0..16).collect::<Vec<u8>>()).expect("a key"))
        );
        for wrong in [
            "",
            "0001",
            "000102030405060708090a0b0c0d0e0",
            "+0+1+2+3+4+5+6+7+8+9+a+b+c+d+e+f",
            "secret secret secret secret secre",
        ] {
            assert!(read(wrong).unwrap_err().contains("32 hexadecimal digits"), "{wrong}");
        }
    }
}
