//! Checks of every text and document.

/// The narrowest terminal for which a text is made.
pub(crate) const NARROWEST: usize = 40;

/// Fails where a line of the text is wider than the narrowest terminal; a command, which a reader copies, may be.
pub(crate) fn fits(what: &str, text: &str) {
    assert!(!text.trim().is_empty(), "{what}: no text");
    for line in text.lines().filter(|line| !["$ ", "    sysctl ", "    ethtool "].iter().any(|of| line.contains(of))) {
        let wide = line.chars().count();
        assert!(wide <= NARROWEST, "{what}: {wide} columns: {line}\n{text}");
    }
}
