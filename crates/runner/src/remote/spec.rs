//! The server as the user names it: `host`, `host:port`, `[address]:port`, `ssh://user@host:port`.

use super::error::RemoteError;
use narrows_model::Family;
use narrows_wire::Token;
use std::net::IpAddr;

/// The server, as the user asks for it.
#[derive(Debug, Clone)]
pub struct TargetSpec {
    pub asked: String,
    /// The family, where the user insists on one.
    pub family: Option<Family>,
    /// The port where the word names none.
    pub port: u16,
    /// The token, where there is one.
    pub token: Option<Token>,
}

/// A host that ssh reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshServer {
    /// As ssh takes it: `user@host`.
    pub destination: String,
    /// The port of sshd, where the word names one.
    pub port: Option<u16>,
}

/// What the word means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A server that listens.
    Direct { host: String, port: u16 },
    /// A server that ssh starts. The destination is as ssh takes it: `user@host`.
    Ssh { destination: String, host: String, port: Option<u16> },
}

impl TargetSpec {
    /// That the word makes sense.
    pub fn check(&self) -> Result<(), RemoteError> {
        self.meaning().map(drop)
    }

    /// Host and port of the server that listens there; and the way by ssh, where the word names that.
    pub fn server(&self) -> Result<(String, u16, Option<SshServer>), RemoteError> {
        Ok(match self.meaning()? {
            Meaning::Direct { host, port } => (host, port, None),
            Meaning::Ssh { destination, host, port } => (host, self.port, Some(SshServer { destination, port })),
        })
    }

    pub(super) fn meaning(&self) -> Result<Meaning, RemoteError> {
        let bad = |why: &str| RemoteError::BadTarget(self.asked.escape_default().to_string(), why.to_owned());
        let word = self.asked.trim();
        if let Some(rest) = word.strip_prefix("ssh://") {
            let rest = rest.strip_suffix('/').unwrap_or(rest);
            let (user, place) = rest.rsplit_once('@').map_or((None, rest), |(user, place)| (Some(user), place));
            let (host, port) = split(place).ok_or_else(|| bad("the port must be from 1 to 65535"))?;
            if !is_name(&host) || user.is_some_and(|user| !is_name(user)) {
                return Err(bad("write ssh://user@host or ssh://user@host:port"));
            }
            let destination = user.map_or_else(|| host.clone(), |user| format!("{user}@{host}"));
            return Ok(Meaning::Ssh { destination, host, port });
        }
        if word.contains("://") {
            return Err(bad("write a host, an address or ssh://user@host"));
        }
        let (host, port) = split(word).ok_or_else(|| bad("the port must be from 1 to 65535"))?;
        if !is_name(&host) {
            return Err(bad("neither a host name nor an address"));
        }
        Ok(Meaning::Direct { host, port: port.unwrap_or(self.port) })
    }
}

/// Letters, digits and what addresses need; no leading `-`, which a command would take for an option.
fn is_name(word: &str) -> bool {
    let sound = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    (1..=255).contains(&word.len()) && !word.starts_with('-') && word.chars().all(sound)
}

/// Host and port. An IPv6 address with a port stands in brackets, and may without one.
fn split(place: &str) -> Option<(String, Option<u16>)> {
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host.to_owned(), Some(number(port)?))),
            None if rest.is_empty() => Some((host.to_owned(), None)),
            None => None,
        };
    }
    match place.split_once(':') {
        Some((host, port)) if !port.contains(':') => Some((host.to_owned(), Some(number(port)?))),
        // Several colons: an IPv6 address alone.
        _ => Some((place.to_owned(), None)),
    }
}

/// The family of an address.
pub(crate) const fn family_of(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::Ipv4,
        IpAddr::V6(_) => Family::Ipv6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(asked: &str) -> Result<Meaning, String> {
        let spec = TargetSpec { asked: asked.to_owned(), family: None, port: 5220, token: None };
        spec.meaning().map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_read_as_users_write_them() {
        let direct = |host: &str, port| Ok(Meaning::Direct { host: host.to_owned(), port });
        assert_eq!(meaning("db7.example.org"), direct("db7.example.org", 5220));
        assert_eq!(meaning("db7:6000"), direct("db7", 6000));
        assert_eq!(meaning("10.0.0.1:6000"), direct("10.0.0.1", 6000));
        assert_eq!(meaning("fd00::1"), direct("fd00::1", 5220));
        assert_eq!(meaning("[fd00::1]:6000"), direct("fd00::1", 6000));
        assert_eq!(meaning("fe80::1%eth0"), direct("fe80::1%eth0", 5220));
        let ssh = |destination: &str, host: &str, port| {
            Ok(Meaning::Ssh { destination: destination.to_owned(), host: host.to_owned(), port })
        };
        assert_eq!(meaning("ssh://ops@db7"), ssh("ops@db7", "db7", None));
        assert_eq!(meaning("ssh://db7:2222"), ssh("db7", "db7", Some(2222)));
    }

    #[test]
    fn a_bad_word_is_named() {
        for asked in ["", "db7:99999", "db7:0", "http://db7", "ssh://-oProxyCommand=x", "ssh://-o@db7", "a b", "[::1"] {
            let error = meaning(asked).expect_err(asked);
            assert!(error.starts_with(&format!("invalid target `{asked}`")), "{error}");
        }
    }
}
