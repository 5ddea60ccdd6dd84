//! Cases: `.pkt` files.

use std::fmt;

use super::error::{Error, Fault};
use super::lex;
use super::statement::Line;
use super::steps::Steps;

/// A parameter that a case sets before its first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where it stands.
    pub line: usize,
    /// The parameter.
    pub name: String,
    /// Its value as written.
    pub value: String,
}

/// How many ports a case gives a function that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Where it stands.
    pub line: usize,
    /// How many, 2 to 256.
    pub count: u32,
}

/// A port, as a case names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Port {
    /// By its name in `PORTS`.
    Name(String),
    /// By its number.
    Number(u32),
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It leaves at this port: as these bytes, or unchanged.
    Forward(Port, Option<Vec<u8>>),
    /// It is dropped: for this reason, or for any.
    Drop(Option<String>),
    /// It leaves, unchanged, at every port but its own.
    Flood,
    /// It goes to the host.
    Pass,
    /// The function keeps it.
    Consume,
    /// The function fails on it.
    Abort,
}

/// What a case expects of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Where it stands.
    pub line: usize,
    /// What it expects.
    pub fate: Fate,
}

/// Something that happens, or something that must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A packet enters.
    Packet {
        /// Where.
        port: Port,
        /// The frame.
        bytes: Vec<u8>,
        /// What must become of it; without one it must only not be aborted.
        expectation: Option<Expectation>,
    },
    /// An entry is set from outside.
    Map {
        /// The object.
        object: String,
        /// Its key, as written.
        key: String,
        /// Its value, as written.
        value: String,
    },
    /// A state object holds this many live entries.
    State {
        /// The object.
        object: String,
        /// How many.
        count: u64,
    },
    /// So many records have come out of a ring buffer since the case began.
    Records {
        /// The ring buffer.
        object: String,
        /// How many.
        count: u64,
    },
}

/// An action, when it happens and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its line.
    pub line: usize,
    /// The round of the `repeat` that it is in, from 0.
    pub round: Option<u64>,
    /// The clock, in nanoseconds since the case began. It never goes backwards.
    pub time_ns: u64,
    /// What happens.
    pub action: Action,
}

/// A case.
///
/// Reading one finds every error in its lines, except those that only some rounds of a `repeat` make:
/// the first and the last round are tried, and [`Case::steps`] reports what a round between them does.
#[derive(Clone, Debug)]
pub struct Case {
    pub(super) file: String,
    title: String,
    settings: Vec<Setting>,
    ports: Option<Ports>,
    pub(super) blocks: Vec<Block>,
}

/// Lines that are gone through `rounds` times, or once.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) rounds: Option<u64>,
    pub(super) lines: Vec<(usize, String)>,
}

impl Case {
    /// Reads a case; `file` names it in errors.
    ///
    /// # Errors
    /// Where and what is wrong, and what is allowed there.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let mut case = Self {
            file: file.to_owned(),
            title: String::new(),
            settings: Vec::new(),
            ports: None,
            blocks: Vec::new(),
        };
        let mut repeat = None;
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            if case.title.is_empty()
                && let Some(comment) = lex::comment(text)
            {
                case.title = comment.to_owned();
            }
            case.line(line, text, &mut repeat)
                .map_err(|fault| fault.at(file, line, None))?;
        }
        if let Some(line) = repeat {
            return Err(Fault::new(1, "a `repeat` without its `end`").at(file, line, None));
        }
        for step in Steps::new(&case, true) {
            step?;
        }
        Ok(case)
    }

    /// Takes a line in; `repeat` is the line of the one that is open.
    fn line(&mut self, line: usize, text: &str, repeat: &mut Option<usize>) -> Result<(), Fault> {
        // A round of 0 stands in for the one that is not known yet.
        let words = lex::words(text, repeat.map(|_| 0))?;
        let Some(first) = words.first() else {
            return Ok(());
        };
        let cursor = Line::new(&words, text);
        match first.text.as_str() {
            "set" => {
                if repeat.is_some() || !self.blocks.is_empty() {
                    let message = "`set` stands before the first packet and outside `repeat`";
                    return Err(Fault::new(first.column, message));
                }
                let (name, value) = cursor.setting()?;
                self.settings.push(Setting { line, name, value });
            }
            "ports" => {
                if repeat.is_some() || !self.blocks.is_empty() || self.ports.is_some() {
                    let message = "`ports` stands once, before the first packet";
                    return Err(Fault::new(first.column, message));
                }
                let count = cursor.ports()?;
                self.ports = Some(Ports { line, count });
            }
            "repeat" if repeat.is_some() => {
                let message = "a `repeat` inside a `repeat`; use $(i/N) and $(i%N) of one instead";
                return Err(Fault::new(first.column, message));
            }
            "repeat" => {
                let rounds = cursor.rounds()?;
                self.blocks.push(Block {
                    rounds: Some(rounds),
                    lines: Vec::new(),
                });
                *repeat = Some(line);
            }
            "end" => {
                cursor.nothing_after(1)?;
                if repeat.take().is_none() {
                    return Err(Fault::new(first.column, "an `end` without its `repeat`"));
                }
            }
            _ => {
                let open = self.blocks.last_mut();
                match open.filter(|block| repeat.is_some() || block.rounds.is_none()) {
                    Some(block) => block.lines.push((line, text.to_owned())),
                    None => self.blocks.push(Block {
                        rounds: None,
                        lines: vec![(line, text.to_owned())],
                    }),
                }
            }
        }
        Ok(())
    }

    /// The file, as it was named.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The first comment; empty if there is none.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The parameters that it sets.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// How many ports there are, if it says so.
    pub fn ports(&self) -> Option<Ports> {
        self.ports
    }

    /// What happens, in order, every round of a `repeat` by itself. After an error there is no more.
    pub fn steps(&self) -> Steps<'_> {
        Steps::new(self, false)
    }
}
