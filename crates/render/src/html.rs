//! Words on a page.

use crate::words::clean;

/// A text as HTML holds it, in an element or in an attribute between quotes: it cannot leave either.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_where_they_are() {
        assert_eq!(escape("</td><script>'\"&\x1b"), "&lt;/td&gt;&lt;script&gt;&#39;&quot;&amp;?");
    }
}
