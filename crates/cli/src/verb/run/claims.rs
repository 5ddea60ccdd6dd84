//! Interfaces that another process serves, too.

use millrace_dataplane::port::claim::Claims;
use millrace_dataplane::port::{self, claim::Other};

use crate::failure::Failure;
use crate::screen;

/// The interfaces of a run, as others see them while this lives.
pub struct Held {
    _claims: Claims,
    others: Vec<(String, Other)>,
}

impl Held {
    /// Those of these ports.
    pub fn of<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut claims = Claims::default();
        let mut others = Vec::new();
        for word in words {
            let Some(interface) = port::interface(word) else {
                continue;
            };
            if let Some(other) = claims.add(interface) {
                others.push((word.to_owned(), other));
            }
        }
        Self {
            _claims: claims,
            others,
        }
    }

    /// Tells of those that could be opened all the same: two processes that receive from one interface by packet sockets
    /// get every packet each, and both send it on.
    pub fn note(&self) {
        for (word, other) in &self.others {
            screen::err(&format!(
                "note: {word}: {other} serves this interface, too: what both receive both send on"
            ));
        }
    }

    /// A failure of a port that another process may be the cause of.
    pub fn told(&self, failure: Failure) -> Failure {
        let mut others = self.others.iter();
        match others.find(|(word, _)| failure.what.contains(word.as_str())) {
            Some((word, other)) => {
                let usual = failure.help.clone().unwrap_or_default();
                failure.help(format!(
                    "{other} serves {word}: end it, or use another interface (`millrace ctl runs` lists runs); or {usual}"
                ))
            }
            None => failure,
        }
    }
}
