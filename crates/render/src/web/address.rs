//! Addresses of the page.

/// Where the page is.
pub const AT: &str = "/web/";

/// An address of the page, with what is asked of it.
pub fn address(path: &str, query: &[(&str, &str)]) -> String {
    let pair = |(key, value): &(&str, &str)| format!("{key}={}", encoded(value));
    let query: Vec<String> = query.iter().map(pair).collect();
    format!("{AT}{path}{}{}", if query.is_empty() { "" } else { "?" }, query.join("&"))
}

/// As RFC 3986 encodes what is not plain.
fn encoded(word: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    word.bytes().map(byte).collect()
}
