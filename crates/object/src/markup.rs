//! Names of objects and configurations, which are other people's, in pages and drawings.

use crate::program::clean;

/// Text in a page, or in an attribute of one: markup, control characters and what turns the direction of
/// text are shown as characters.
#[must_use]
pub fn escaped(text: &str) -> String {
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

/// Text as a quoted string of the DOT language of Graphviz.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{escaped, quoted};

    #[test]
    fn no_text_is_markup() {
        assert_eq!(escaped("<'\">&"), "&lt;&#39;&quot;&gt;&amp;");
        assert_eq!(escaped("a\u{202e}b\n"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn no_text_ends_a_string() {
        assert_eq!(quoted("a\"b\\\n\u{1}"), "\"a\\\"b\\\\\\n\u{fffd}\"");
    }
}
