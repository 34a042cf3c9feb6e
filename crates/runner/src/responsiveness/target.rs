//! The server of a test as the user names it.

use super::ResponsivenessFailure as Failure;
use narrows_wire::responsiveness::{PORT, Url, WELL_KNOWN};

/// A server to test against.
#[derive(Debug, Clone)]
pub struct Target {
    pub asked: String,
    pub url: Url,
}

/// The server that a word means: `HOST[:PORT]` is a test server with the usual port and path, a URL names the configuration or a host.
pub fn parse(word: &str) -> Result<Target, Failure> {
    let bad = |why: String| Failure::Target(word.escape_default().to_string(), why);
    let url = match word.contains("://") {
        true => Url::parse(word),
        false => {
            let bare = word.parse::<std::net::Ipv6Addr>().map_or_else(|_| word.to_owned(), |it| format!("[{it}]"));
            Url::parse(&format!("https://{bare}")).map(|url| match bare.rsplit_once(':') {
                Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => url,
                _ => Url { port: PORT, ..url },
            })
        }
    };
    let mut url = url.map_err(|error| bad(error.to_string()))?;
    if url.path == "/" {
        WELL_KNOWN.clone_into(&mut url.path);
    }
    Ok(Target { asked: word.to_owned(), url })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_usual_port_and_urls_that_of_https() {
        let at = |word: &str| parse(word).map(|it| format!("{} {}", it.url.authority(), it.url.path));
        for (word, meant) in [
            ("far", "far:4043 /.well-known/nq"),
            ("far:8443", "far:8443 /.well-known/nq"),
            ("192.0.2.7", "192.0.2.7:4043 /.well-known/nq"),
            ("2001:db8::7", "[2001:db8::7]:4043 /.well-known/nq"),
            ("[2001:db8::7]", "[2001:db8::7]:4043 /.well-known/nq"),
            ("[2001:db8::7]:1", "[2001:db8::7]:1 /.well-known/nq"),
            ("https://far", "far /.well-known/nq"),
            ("https://far:4043/", "far:4043 /.well-known/nq"),
            ("https://far/config?x", "far /config?x"),
        ] {
            assert_eq!(at(word).expect(word), meant);
        }
        for wrong in ["", "http://far/", "far:x", "far:0", "a b", "ssh://far"] {
            assert!(matches!(at(wrong), Err(Failure::Target(..))), "{wrong}");
        }
    }
}
