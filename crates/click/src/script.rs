//! Scripts of handlers: the language of Script and DriverManager.
//!
//! Instructions stand in arguments: `print [>FILE] TEXT`, `printn`, `printq`, `read H`, `readq`, `write H V`, `writeq`,
//! `set X V`, `init`, `export`, `wait TIME`, `wait_time`, `wait_stop`, `pause`, `label L`, `goto L [CONDITION]`, `loop`,
//! `return [V]`, `returnq`, `exit`, `end`, `stop`, `error`, `save H FILE`, `append`. `$(…)` calls a function or a read
//! handler.

mod functions;
mod run;

use std::collections::HashMap;

use crate::language::args;

pub use run::{Next, Why};

/// A program of instructions, its variables, and where it is.
#[derive(Default)]
pub struct Script {
    instructions: Vec<(String, String)>,
    /// variables
    pub variables: HashMap<String, String>,
    at: usize,
    /// stops that a `wait_stop` still waits for
    pub stops: u32,
    jumps: u32,
}

/// Jumps without a wait, at most.
const MOST_JUMPS: u32 = 1_000_000;

impl Script {
    /// A program from its arguments.
    #[must_use]
    pub fn new(arguments: &[String]) -> Self {
        let instruction = |a: &String| {
            let (word, rest) = args::first_word(a);
            (word.to_owned(), rest.to_owned())
        };
        Self {
            instructions: arguments.iter().map(instruction).collect(),
            ..Self::default()
        }
    }

    /// `$1`, `$2`, … and `$args` of a call.
    pub fn arguments(&mut self, text: &str) {
        let mut words = args::words(text).into_iter();
        for number in 1..10 {
            let word = words.next().unwrap_or_default();
            self.variables.insert(number.to_string(), word);
        }
        self.variables.insert("args".into(), text.to_owned());
    }

    /// Whether it changes elements by their handlers.
    #[must_use]
    pub fn writes(&self) -> bool {
        let writes = |word: &str| matches!(word, "write" | "writeq");
        self.instructions.iter().any(|i| writes(&i.0))
    }

    /// From its first instruction again.
    pub fn rewind(&mut self) {
        (self.at, self.jumps) = (0, 0);
    }

    /// Whether there is nothing left to do.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.at >= self.instructions.len()
    }

    fn label(&self, name: &str) -> Option<usize> {
        match name {
            "begin" | "loop" => return Some(0),
            "end" | "exit" | "stop" => return None,
            _ => {}
        }
        let labels = self.instructions.iter();
        labels
            .enumerate()
            .find(|(_, i)| i.0 == "label" && i.1 == name)
            .map(|(at, _)| at)
    }
}
