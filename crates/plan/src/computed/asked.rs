//! Effort of finding the packets that have the same key.

use std::ops::AddAssign;

use millrace_steer::keys::Asking;
use serde::Serialize;

/// Questions to a solver about an object whose keys are computed from fields: which packets have the same key.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Asked {
    /// questions
    pub questions: usize,
    /// of them those that it did not answer in time
    pub unanswered: usize,
    /// dimensions of the pairs of packets that it left open: they are taken to meet, which they need not
    pub open: usize,
    /// dimensions of the pairs that equations over bits alone would have had to bring together, and that need not meet
    pub gained: usize,
}

impl AddAssign<Asking> for Asked {
    fn add_assign(&mut self, asking: Asking) {
        self.questions += asking.asked;
        self.unanswered += asking.unknown;
        self.open += asking.open;
        self.gained += asking.gained;
    }
}

impl Asked {
    /// In words.
    pub(crate) fn text(&self) -> String {
        let questions = match self.questions {
            1 => "1 question".to_owned(),
            n => format!("{n} questions"),
        };
        if self.questions == 0 {
            return "found without a question to the solver".to_owned();
        }
        if self.open == 0 {
            return format!("asked of the solver: {questions}");
        }
        format!(
            "the solver was asked {questions} and left {} of them unanswered in its time; with more (--solver-time) more \
             may be said",
            self.unanswered
        )
    }
}
