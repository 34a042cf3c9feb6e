//! Responsiveness: the configuration of a server, and the host that a client calls a server by; what a server of ndt7 says.
use narrows_wire::responsiveness::{Configuration, Url, configuration};

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(read) = Configuration::parse(bytes) {
        assert_eq!(read.large.host, read.upload.host, "all URLs are of one host");
    }
    let text = String::from_utf8_lossy(bytes);
    let _ = Url::parse(&text);
    let _ = narrows_wire::ndt7::Said::parse(&text);
    if let Some(json) = configuration(&text) {
        Configuration::parse(json.as_bytes()).expect("what is published is valid");
    }
}
