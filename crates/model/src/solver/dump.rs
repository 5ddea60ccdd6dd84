//! Each question written to a file as SMT-LIB text, with what became of it, for other solvers and for people.

use std::path::PathBuf;
use std::time::Instant;

use super::smt::query;
use super::{Question, Said, Solve};
use crate::expr::Arena;

/// A solver whose questions are kept.
pub(super) struct Dump {
    solver: Box<dyn Solve>,
    folder: PathBuf,
    questions: u64,
}

impl Dump {
    pub(super) fn new(solver: Box<dyn Solve>, folder: PathBuf) -> Self {
        Self {
            solver,
            folder,
            questions: 0,
        }
    }
}

impl Solve for Dump {
    fn solve(&mut self, arena: &Arena, question: &Question<'_>) -> Said {
        self.questions += 1;
        let file = self.folder.join(format!("{:05}.smt2", self.questions));
        let text = query(arena, question.all, question.lemmas).text;
        let text = format!("(set-logic QF_BV)\n{text}(check-sat)\n");
        let began = Instant::now();
        let said = self.solver.solve(arena, question);
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let word = match &said {
            Said::Holds(_) => "sat",
            Said::Roughly(_) => "sat if products were any numbers",
            Said::Fails(_) => "unsat",
            Said::Unknown(_) => "unknown",
        };
        match std::fs::write(&file, format!("{text}; {word} after {ms:.3} ms\n")) {
            Ok(()) => said,
            Err(e) => Said::Unknown(format!("{}: {e}", file.display())),
        }
    }
}
