//! The configuration of a responsiveness test server: the JSON object at `/.well-known/nq` (draft-ietf-ippm-responsiveness-09,
//! section *Well-Known URI*), and the URLs in it.

use serde::Deserialize;
use thiserror::Error;

/// Where the configuration is.
pub const WELL_KNOWN: &str = "/.well-known/nq";
/// The port of test servers where none is named: that of Apple's and of goresponsiveness.
pub const PORT: u16 = 4043;
/// The objects of narrows' own server.
pub const LARGE_PATH: &str = "/nq/large";
pub const SMALL_PATH: &str = "/nq/small";
pub const UPLOAD_PATH: &str = "/nq/upload";
/// A longer configuration is not read.
pub const MAX_BYTES: usize = 64 << 10;
/// A longer URL is invalid.
const MAX_URL: usize = 2_048;

/// Why there is no test.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConfigurationError {
    #[error("not the JSON object of a responsiveness test: {0}")]
    Json(String),
    #[error("version {0} of the configuration is not supported")]
    Version(u64),
    /// A URL that cannot be used.
    #[error("the URL `{0}` is invalid: {1}")]
    Url(String, &'static str),
    /// URLs of several hosts.
    #[error("its URLs name several hosts")]
    Hosts,
}

/// An `https` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Name or address, without brackets.
    pub host: String,
    /// The port: 443 where none is named.
    pub port: u16,
    /// Path and query, from `/`.
    pub path: String,
}

impl Url {
    /// Errors: it is none, or one without TLS.
    pub fn parse(word: &str) -> Result<Self, ConfigurationError> {
        let bad =
            |why| ConfigurationError::Url(word.chars().take(200).collect::<String>().escape_default().to_string(), why);
        if word.len() > MAX_URL || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("it must be of printable ASCII characters, at most 2048"));
        }
        let rest = word.strip_prefix("https://").ok_or_else(|| bad("it must begin with https://"))?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        let (host, port) = match place.strip_prefix('[') {
            Some(inside) => inside.split_once(']').ok_or_else(|| bad("an address without its closing bracket"))?,
            None => place.split_at(place.find(':').unwrap_or(place.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => {
                digits.parse().ok().filter(|port| *port > 0).ok_or_else(|| bad("the port must be from 1 to 65535"))?
            }
            None if port.is_empty() => 443,
            None => return Err(bad("neither a host nor a host with a port")),
        };
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || host.len() > 255 || !host.chars().all(sound) {
            return Err(bad("invalid host"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { host: host.to_owned(), port, path })
    }

    /// Host and port as a request names them.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == 443 { host } else { format!("{host}:{}", self.port) }
    }
}

/// The URLs of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// At least 8 GB.
    pub large: Url,
    pub small: Url,
    pub upload: Url,
    /// The host to connect to, if it is not that of the URLs.
    pub endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Urls {
    large_download_url: Option<String>,
    small_download_url: Option<String>,
    upload_url: Option<String>,
    // As earlier versions of the draft name them.
    large_https_download_url: Option<String>,
    small_https_download_url: Option<String>,
    https_upload_url: Option<String>,
}

#[derive(Deserialize)]
struct Object {
    version: u64,
    urls: Urls,
    test_endpoint: Option<String>,
}

impl Configuration {
    /// Reads a configuration. Unknown names are ignored; those that appear twice make it invalid, as the draft demands.
    pub fn parse(json: &[u8]) -> Result<Self, ConfigurationError> {
        let object: Object =
            serde_json::from_slice(json).map_err(|error| ConfigurationError::Json(error.to_string()))?;
        if object.version != 1 {
            return Err(ConfigurationError::Version(object.version));
        }
        let urls = object.urls;
        let url = |name: &str, new: Option<String>, old: Option<String>| {
            let word = new.or(old).ok_or_else(|| ConfigurationError::Json(format!("it has no `{name}`")))?;
            Url::parse(&word)
        };
        let large = url("large_download_url", urls.large_download_url, urls.large_https_download_url)?;
        let small = url("small_download_url", urls.small_download_url, urls.small_https_download_url)?;
        let upload = url("upload_url", urls.upload_url, urls.https_upload_url)?;
        let same = |other: &Url| (&other.host, other.port) == (&large.host, large.port);
        if !same(&small) || !same(&upload) {
            return Err(ConfigurationError::Hosts);
        }
        let endpoint = object.test_endpoint.filter(|endpoint| !endpoint.is_empty());
        if let Some(endpoint) = &endpoint {
            Url::parse(&format!("https://{endpoint}/"))?;
        }
        Ok(Self { large, small, upload, endpoint })
    }
}

/// The configuration of narrows' own server, for a client that called it by this host and port; `None`: that is no host. It has the
/// names of earlier versions, too: goresponsiveness reads no others, and clients ignore what they do not know.
pub fn configuration(authority: &str) -> Option<String> {
    let authority = Url::parse(&format!("https://{authority}/")).ok().filter(|url| url.path == "/")?.authority();
    let url = |path| format!("https://{authority}{path}");
    let json = serde_json::json!({
        "version": 1,
        "urls": {
            "large_download_url": url(LARGE_PATH),
            "small_download_url": url(SMALL_PATH),
            "upload_url": url(UPLOAD_PATH),
            "large_https_download_url": url(LARGE_PATH),
            "small_https_download_url": url(SMALL_PATH),
            "https_upload_url": url(UPLOAD_PATH),
        },
    });
    Some(format!("{json}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_the_server_publishes_is_what_the_client_reads() {
        for authority in ["far:4043", "192.0.2.7", "[2001:db8::7]:4043"] {
            let read = Configuration::parse(configuration(authority).expect("a host").as_bytes()).expect("valid");
            assert_eq!((read.small.authority(), read.small.path.as_str()), (authority.to_owned(), SMALL_PATH));
            assert_eq!((read.large.path.as_str(), read.upload.path.as_str()), (LARGE_PATH, UPLOAD_PATH));
        }
        for wrong in ["", "a b", "far/x", "far\"", "far:0", "[::1", "far:99999", "x@y"] {
            assert_eq!(configuration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let parse = |json: &str| Configuration::parse(json.as_bytes()).map_err(|error| error.to_string());
        let of = |version, small| {
            format!(
                r#"{{"version": {version}, "x": 1, "urls": {{"large_download_url": "https://a/l", "small_download_url": "{small}", "upload_url": "https://a/u"}}, "test_endpoint": "b"}}"#
            )
        };
        assert_eq!(parse(&of(1, "https://a/s")).expect("valid").endpoint.as_deref(), Some("b"));
        assert_eq!(parse(&of(2, "https://a/s")), Err("version 2 of the configuration is not supported".into()));
        assert_eq!(parse(&of(1, "https://c/s")), Err("its URLs name several hosts".into()));
        assert!(parse(&of(1, "http://a/s")).unwrap_err().contains("must begin with https://"));
        assert!(parse("{}").unwrap_err().starts_with("not the JSON object"));
        let twice = of(1, "https://a/s").replacen('{', r#"{"version": 1, "#, 1);
        assert!(
            parse(&of(1, "https://a/s").replace("upload_url", "x")).unwrap_err().ends_with("it has no `upload_url`")
        );
        assert!(parse(&twice).unwrap_err().contains("duplicate field"));
    }

    proptest! {
        #[test]
        fn no_text_is_a_surprise(text in ".{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Configuration::parse(&bytes);
            if let Ok(url) = Url::parse(&format!("https://{text}")) {
                prop_assert_eq!(Url::parse(&format!("https://{}{}", url.authority(), url.path)), Ok(url));
            }
        }
    }
}
