//! The statements of a case, word by word.

use super::case::{Expectation, Fate, Port};
use super::cursor::number;
use super::error::Fault;
use super::lex::{self, Word};
use super::read;

/// Ports that a case may have.
const MAX_PORTS: u64 = 256;

/// Rounds of one `repeat`.
const MAX_ROUNDS: u64 = 1 << 24;

/// The arrow on a line, if it is one.
pub(super) fn expectation(
    number: usize,
    text: &str,
    round: Option<u64>,
) -> Result<Option<Expectation>, Fault> {
    let words = lex::words(text, round)?;
    let line = Line::new(&words, text);
    if line.word(0) != "->" {
        return Ok(None);
    }
    let simple = match line.word(1) {
        "flood" => Some(Fate::Flood),
        "pass" => Some(Fate::Pass),
        "consume" => Some(Fate::Consume),
        "abort" => Some(Fate::Abort),
        _ => None,
    };
    let fate = if let Some(fate) = simple {
        line.nothing_after(2)?;
        fate
    } else if line.word(1) == "drop" {
        line.nothing_after(3)?;
        let reason = line.word(2);
        if !reason.is_empty() && !is_name(reason) {
            return line.expected(2, "the name of a drop reason");
        }
        Fate::Drop((!reason.is_empty()).then(|| reason.to_owned()))
    } else if line.word(1).ends_with(':') {
        let (port, bytes) = line.packet(1)?;
        Fate::Forward(port, Some(bytes))
    } else {
        line.nothing_after(2)?;
        let Some(port) = port(line.word(1)) else {
            let what =
                "a port (`WAN`, or `WAN: PACKET`), or one of: drop, flood, pass, consume, abort";
            return line.expected(1, what);
        };
        Fate::Forward(port, None)
    };
    Ok(Some(Expectation { line: number, fate }))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text
            .chars()
            .all(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '-' | '.'))
}

fn port(text: &str) -> Option<Port> {
    if let Some(number) = number(text) {
        return u32::try_from(number).ok().map(Port::Number);
    }
    is_name(text).then(|| Port::Name(text.to_owned()))
}

/// The words of a statement.
pub(super) struct Line<'a> {
    words: &'a [Word],
    end: usize,
}

impl<'a> Line<'a> {
    pub(super) fn new(words: &'a [Word], text: &str) -> Self {
        Self {
            words,
            end: text.chars().count() + 1,
        }
    }

    pub(super) fn word(&self, at: usize) -> &str {
        self.words
            .get(at)
            .filter(|word| !word.quoted)
            .map_or("", |word| word.text.as_str())
    }

    pub(super) fn column(&self, at: usize) -> usize {
        self.words.get(at).map_or(self.end, |word| word.column)
    }

    fn expected<T>(&self, at: usize, what: &str) -> Result<T, Fault> {
        let found = match self.words.get(at) {
            None => "the line ends".to_owned(),
            Some(word) if word.quoted => "here stands a text in quotes".to_owned(),
            Some(word) => format!(
                "here stands `{}`",
                word.text.chars().take(40).collect::<String>()
            ),
        };
        Err(Fault::new(
            self.column(at),
            format!("{found}; expected {what}"),
        ))
    }

    pub(super) fn nothing_after(&self, count: usize) -> Result<(), Fault> {
        match self.words.get(count) {
            None => Ok(()),
            Some(_) => self.expected(count, "the end of the line"),
        }
    }

    /// `NAME=VALUE`, with or without spaces around the sign.
    fn equation(&self) -> Option<(String, String)> {
        let words: Vec<_> = self
            .words
            .iter()
            .skip(1)
            .map(|word| word.text.as_str())
            .collect();
        let joined = words.join(" ");
        let (name, value) = joined.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let one = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
        (is_name(name) && one(value)).then(|| (name.to_owned(), value.to_owned()))
    }

    pub(super) fn setting(&self) -> Result<(String, String), Fault> {
        match self.equation() {
            Some(setting) => Ok(setting),
            None => self.expected(1, "NAME=VALUE, as in `set timeout=60`"),
        }
    }

    pub(super) fn count(&self) -> Result<(String, u64), Fault> {
        let counted = self
            .equation()
            .and_then(|(name, value)| Some((name, number(&value)?)));
        match counted {
            Some(counted) => Ok(counted),
            None => self.expected(1, "OBJECT = N, as in `state flows = 1`"),
        }
    }

    /// `OBJECT KEY = VALUE`, the sign between spaces: keys and values may have several words.
    pub(super) fn entry(&self) -> Result<(String, String, String), Fault> {
        let words = self.words.get(2..).unwrap_or(&[]);
        // What begins with a bracket is JSON, to which its strings' quotes belong.
        let text = |words: &[Word]| {
            let json = words
                .first()
                .is_some_and(|word| !word.quoted && word.text.starts_with(['{', '[']));
            let words: Vec<_> = words.iter().map(|word| word.written(json)).collect();
            words.join(" ")
        };
        let mut sides = words.split(|word| word.text == "=" && !word.quoted);
        let sides = (sides.next(), sides.next(), sides.next());
        match sides {
            (Some(key), Some(value), None)
                if is_name(self.word(1)) && !key.is_empty() && !value.is_empty() =>
            {
                Ok((self.word(1).to_owned(), text(key), text(value)))
            }
            _ => self.expected(
                1,
                "OBJECT KEY = VALUE, as in `map stations 02:00:00:00:00:0a = 1`",
            ),
        }
    }

    pub(super) fn ports(&self) -> Result<u32, Fault> {
        self.nothing_after(2)?;
        match number(self.word(1)) {
            Some(count @ 2..=MAX_PORTS) => Ok(count as u32),
            _ => self.expected(1, &format!("how many: 2 to {MAX_PORTS}")),
        }
    }

    pub(super) fn rounds(&self) -> Result<u64, Fault> {
        self.nothing_after(2)?;
        match number(self.word(1)) {
            Some(rounds @ 1..=MAX_ROUNDS) => Ok(rounds),
            _ => self.expected(1, &format!("how often: 1 to {MAX_ROUNDS}")),
        }
    }

    pub(super) fn packet(&self, at: usize) -> Result<(Port, Vec<u8>), Fault> {
        let Some(port) = self.word(at).strip_suffix(':').and_then(port) else {
            let what = if at == 0 {
                "a statement: `PORT: PACKET`, `->`, at, after, map, state, records, repeat, end, set, ports"
            } else {
                "a port and a colon"
            };
            return self.expected(at, what);
        };
        let words = self.words.get(at + 1..).unwrap_or(&[]);
        let packet = read::read(words, self.end)?;
        Ok((port, packet.into_bytes()))
    }

    /// A time in nanoseconds.
    pub(super) fn time(&self, at: usize) -> Result<u64, Fault> {
        match time(self.word(at)) {
            Some(time) => Ok(time),
            None => self.expected(at, "a time, as in 60, 0.5, 60s, 100ms, 20us or 1ns"),
        }
    }
}

/// A decimal number of seconds, or of the unit after it, in whole nanoseconds.
fn time(text: &str) -> Option<u64> {
    let units = [("ns", 0), ("us", 3), ("ms", 6), ("s", 9), ("", 9)];
    let (digits, zeros) = units
        .iter()
        .find_map(|(unit, zeros)| text.strip_suffix(unit).map(|digits| (digits, *zeros)))?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || fraction.len() > zeros || digits.ends_with('.') {
        return None;
    }
    if !whole
        .bytes()
        .chain(fraction.bytes())
        .all(|digit| digit.is_ascii_digit())
    {
        return None;
    }
    let power = |zeros: usize| 10_u64.checked_pow(u32::try_from(zeros).ok()?);
    let whole = whole.parse::<u64>().ok()?.checked_mul(power(zeros)?)?;
    let fraction = match fraction {
        "" => 0,
        digits => digits
            .parse::<u64>()
            .ok()?
            .checked_mul(power(zeros - digits.len())?)?,
    };
    whole.checked_add(fraction)
}
