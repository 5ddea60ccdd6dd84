//! Errors in a description: place, cause, fix.

use std::ops::Range;
use std::path::PathBuf;

/// A place in a chain file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// the line, from 1
    pub line: usize,
    /// what stands in the line
    pub text: String,
    /// which bytes of it are meant
    pub marked: Range<usize>,
}

impl Place {
    /// The place of a range of bytes of a text; of a range over several lines, its part of the first one.
    #[must_use]
    pub fn of(text: &str, span: &Range<usize>) -> Self {
        let bytes = text.as_bytes();
        let start = span.start.min(bytes.len());
        let before = bytes.get(..start).unwrap_or_default();
        let begin = before
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let rest = text.get(begin..).unwrap_or_default();
        let text = rest.lines().next().unwrap_or_default();
        let end = span.end.clamp(start, begin + text.len().max(start - begin));
        Self {
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            marked: (start - begin).min(text.len())..(end - begin).min(text.len()),
            text: text.to_owned(),
        }
    }

    /// A whole line of a text, from 1.
    #[must_use]
    pub fn line(text: &str, line: usize) -> Self {
        let found = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let indent = found.len() - found.trim_start().len();
        Self {
            line,
            marked: indent..found.trim_end().len().max(indent),
            text: found.to_owned(),
        }
    }
}

/// An error in a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", before(.file, .place))]
pub struct ChainError {
    /// the file; none for a command line
    pub file: Option<PathBuf>,
    /// where in it
    pub place: Option<Place>,
    /// what is wrong
    pub what: String,
    /// what to do
    pub help: String,
}

impl ChainError {
    /// The line of the file, from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.line)
    }
}

fn before(file: &Option<PathBuf>, place: &Option<Place>) -> String {
    match (file, place) {
        (Some(file), Some(place)) => format!("{}:{}: ", file.display(), place.line),
        (Some(file), None) => format!("{}: ", file.display()),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_and_what_is_marked_in_it() {
        let text = "a = 1\n  b = [\n 2]\n";
        let place = Place::of(text, &(12..18));
        assert_eq!((place.line, place.text.as_str()), (2, "  b = ["));
        assert_eq!(place.text.get(place.marked), Some("["));
        let whole = Place::line(text, 2);
        assert_eq!(whole.text.get(whole.marked), Some("b = ["));
        for span in [0..0, 5..6, 19..19, 40..50] {
            let place = Place::of(text, &span);
            assert!(place.text.get(place.marked).is_some(), "{span:?}");
        }
        assert_eq!(Place::line(text, 9).text, "");
    }
}
