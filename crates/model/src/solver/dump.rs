//! Each question written to a file as SMT-LIB text, with what became of it, for other solvers and for people.

use std::path::PathBuf;
use std::time::Instant;

use super::far::Lemma;
use super::smt::query;
use super::{Said, Solve};
use crate::expr::eval::Assignment;
use crate::expr::{Arena, ExprId};

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
    fn solve(
        &mut self,
        arena: &Arena,
        all: &[ExprId],
        lemmas: &[Lemma],
        near: Option<&Assignment>,
    ) -> Said {
        self.questions += 1;
        let file = self.folder.join(format!("{:05}.smt2", self.questions));
        let text = query(arena, all, lemmas).text;
        let text = format!("(set-logic QF_BV)\n{text}(check-sat)\n");
        let began = Instant::now();
        let said = self.solver.solve(arena, all, lemmas, near);
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let word = match &said {
            Said::Holds(_) => "sat",
            Said::Fails => "unsat",
            Said::Unknown(_) => "unknown",
        };
        match std::fs::write(&file, format!("{text}; {word} after {ms:.3} ms\n")) {
            Ok(()) => said,
            Err(e) => Said::Unknown(format!("{}: {e}", file.display())),
        }
    }
}
