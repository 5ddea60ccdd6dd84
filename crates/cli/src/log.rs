//! Messages on standard error: levels, as text for people or as a JSON document a line.
//!
//! A message is one write, so that lines of several threads do not mix. As text it begins with its level, but for
//! what is no message of its own (a report, the text of another program).

use std::io::Write;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use serde_json::{Map, Value};

/// How grave a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// what ended the run, or will make its exit status 2
    Error,
    /// packets are lost, or a guest has failed; the run goes on
    Warning,
    /// what begins, ends and changes
    #[default]
    Info,
    /// the course of it, in detail
    Debug,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// for people: `warning: …`, and a second line `help: …`
    #[default]
    Text,
    /// a JSON document a line
    Json,
}

static SETTINGS: OnceLock<(Level, Format)> = OnceLock::new();

/// Sets the least grave level that is written, and the format; once a process, before the first message.
pub fn set(level: Level, format: Format) {
    // A second call is the same run's, on one core.
    let _ = SETTINGS.set((level, format));
}

fn settings() -> (Level, Format) {
    SETTINGS.get().copied().unwrap_or_default()
}

impl Level {
    /// As JSON has it.
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// In front of a message for people.
    fn prefix(self) -> &'static str {
        match self {
            Self::Error => "error: ",
            Self::Warning => "warning: ",
            Self::Info => "note: ",
            Self::Debug => "debug: ",
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    level: Level,
    /// it has no level in front of it as text
    plain: bool,
    /// what it is about: an element, a port
    about: Option<(&'static str, String)>,
    /// it is a line that an element has printed there
    stream: Option<&'static str>,
    /// a longer text, which people get first
    detail: Option<String>,
    what: String,
    help: Option<String>,
}

impl Message {
    /// Of a level.
    pub fn new(level: Level, what: impl Into<String>) -> Self {
        Self {
            level,
            plain: false,
            about: None,
            stream: None,
            detail: None,
            what: what.into(),
            help: None,
        }
    }

    /// What it is about: `("element", NAME)` or `("port", WORD)`.
    pub fn about(self, kind: &'static str, name: impl Into<String>) -> Self {
        Self {
            about: Some((kind, name.into())),
            ..self
        }
    }

    /// A longer text that belongs to it.
    pub fn detail(self, detail: Option<String>) -> Self {
        Self { detail, ..self }
    }

    /// What to do.
    pub fn help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()).filter(|h: &String| !h.is_empty()),
            ..self
        }
    }

    /// For people.
    fn text(&self) -> String {
        let prefix = if self.plain { "" } else { self.level.prefix() };
        let about = self.about.as_ref();
        let about = about.map_or_else(String::new, |(_, name)| format!("{name}: "));
        let help = self.help.as_ref();
        let help = help.map_or_else(String::new, |help| format!("\nhelp: {help}"));
        let detail = self.detail.as_ref();
        let detail = detail.map_or_else(String::new, |text| format!("{}\n", text.trim_end()));
        format!("{detail}{prefix}{about}{}{help}\n", self.what)
    }

    /// For programs; `time` is since the epoch, milliseconds.
    fn json(&self, time: u128) -> String {
        let mut members = Map::new();
        let mut put = |name: &str, text: &str| members.insert(name.into(), Value::from(text));
        put("time", &rfc3339(time));
        put("level", self.level.name());
        put("message", self.what.trim_matches('\n'));
        if let Some((kind, name)) = &self.about {
            put(kind, name);
        }
        if let Some(stream) = self.stream {
            put("stream", stream);
        }
        if let Some(help) = &self.help {
            put("help", help);
        }
        if let Some(detail) = &self.detail {
            put("detail", detail.trim_end());
        }
        format!("{}\n", Value::Object(members))
    }

    /// Writes it, if its level is written. A reader that has gone away is no error.
    pub fn say(&self) {
        let (level, format) = settings();
        // What an element prints is output of its own, whatever level messages have.
        if self.level > level && self.stream.is_none() {
            return;
        }
        let line = match format {
            Format::Text => self.text(),
            Format::Json => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                self.json(since.map_or(0, |d| d.as_millis()))
            }
        };
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// An error, and what to do.
pub fn error(what: impl Into<String>, help: impl Into<String>) {
    Message::new(Level::Error, what).help(help).say();
}

/// Something to know.
pub fn note(what: impl Into<String>) {
    Message::new(Level::Info, what).say();
}

/// Text without a level in front of it.
pub fn plain(what: impl Into<String>) {
    let message = Message::new(Level::Info, what);
    Message {
        plain: true,
        ..message
    }
    .say();
}

/// A line that a guest has printed, where messages are documents.
pub fn printed(element: &str, stream: &'static str, line: &str) -> Option<Message> {
    let message = Message::new(Level::Info, line).about("element", element);
    let stream = Some(stream);
    (settings().1 == Format::Json).then_some(Message { stream, ..message })
}

/// Milliseconds since the epoch as RFC 3339 has them, in UTC. Days become a date as in Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn rfc3339(ms: u128) -> String {
    let seconds = (ms / 1000) as i64;
    let (days, second) = (seconds.div_euclid(86400), seconds.rem_euclid(86400));
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let (day, month) = (
        day_of_year - (153 * month + 2) / 5 + 1,
        if month < 10 { month + 3 } else { month - 9 },
    );
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let ms = ms % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_two_lines_for_people_and_one_document_for_programs() {
        let message = Message::new(Level::Warning, "failed: a \"null\" pointer")
            .about("element", "tap")
            .help("run it alone");
        assert_eq!(
            message.text(),
            "warning: tap: failed: a \"null\" pointer\nhelp: run it alone\n"
        );
        let line = message.json(1_764_054_921_007);
        assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
        let document: Value = serde_json::from_str(&line).unwrap_or_default();
        assert_eq!(document["time"], "2025-11-25T07:15:21.007Z");
        assert_eq!(document["level"], "warning");
        assert_eq!(document["element"], "tap");
        assert_eq!(document["message"], "failed: a \"null\" pointer");
        assert_eq!(document["help"], "run it alone");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1000), date);
        }
    }

    #[test]
    fn levels_are_ordered_by_gravity() {
        assert!(Level::Error < Level::Warning && Level::Info < Level::Debug);
        assert_eq!(Level::default(), Level::Info);
    }
}
