//! Words in GitHub-flavoured Markdown.

use crate::words::clean;

/// A word in running text, with Markdown and HTML escaped.
pub fn text(word: &str) -> String {
    let mut out = String::new();
    for c in clean(word).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A word between backticks, without backticks of its own.
pub fn code(word: &str) -> String {
    clean(word).replace('`', "'").replace('|', "\\|")
}
