//! `millrace model`: what a function can do.

mod check;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millrace::Make;
use millrace_check::Budget;
use millrace_history::History;
use millrace_model::Limits;
use millrace_report::{dot, html, text};
use serde::Serialize;

use crate::failure::{DONE, Failure, NO};
use crate::{budget, function, screen};

/// Show every path of a function: its guard, its accesses to state, its packet writes, its verdict.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 done, also where the paths are not all (the answer says so), 1 refused, or with --check \
something is not as the model says, or with --history the function cannot be replicated, 2 wrong use.")]
pub struct Model {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name
    /// of a folder in ./nfs, $MILLRACE_NFS or share/millrace/nfs
    nf: String,

    /// Only this program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Give a state object this many entries; `*` stands for all whose author left it to the loader
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// Most paths, finished or waiting
    #[arg(long, value_name = "N", default_value_t = 16384)]
    paths: usize,

    /// Most time, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = millrace_model::SECONDS)]
    time: u64,

    /// Most instructions followed, on all paths together
    #[arg(long, value_name = "N", default_value_t = 2_000_000)]
    steps: u64,

    /// Most expressions kept, about 200 bytes each: the bound on memory
    #[arg(long, value_name = "N", default_value_t = 4_000_000)]
    expressions: usize,

    /// Most time for one question to the solver, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    question: u64,

    /// Ask Z3, by this command, instead of the solver that is built in
    #[arg(long, value_name = "COMMAND")]
    solver: Option<PathBuf>,

    /// Write each question to the solver to a file in this folder, as SMT-LIB text
    #[arg(long, value_name = "FOLDER")]
    dump: Option<PathBuf>,

    /// Write the report to a file as one page with the decisions as a tree, for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the decisions to a file as a graph, for Graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,

    /// Hold the model against executions: each path from its assignment, then packets one after another
    #[arg(long)]
    check: bool,

    /// With --check: how many packets to send one after another
    #[arg(long, value_name = "N", default_value_t = 4000, requires = "check")]
    packets: u64,

    /// With --check: a capture whose frames packets are made from, besides those of the paths
    #[arg(long = "in", value_name = "FILE", requires = "check")]
    input: Vec<PathBuf>,

    /// With --check: what the packets are drawn from
    #[arg(long, value_name = "N", default_value_t = 1, requires = "check")]
    seed: u64,

    /// Print what of a packet reaches state instead: the row by which every core repeats what a packet does to its own
    /// copy of the state, its fields, and the line that each is for; with --json beside the rest
    #[arg(long, conflicts_with = "check")]
    history: bool,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// A report with the history of its function.
#[derive(Serialize)]
struct WithHistory<'a> {
    #[serde(flatten)]
    report: &'a millrace_report::Report,
    history: &'a History,
}

impl Model {
    /// Prints it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        if self.check {
            return self.check();
        }
        let written = function::read(&self.nf, &self.make()?)?;
        let budget = budget::begin();
        let proved = written.check(budget)?;
        let history = self
            .history
            .then(|| History::of(&written.program, &proved.checked));
        let status = match &history {
            Some(history) if !history.refusals.is_empty() => NO,
            _ => DONE,
        };
        if let Some(history) = history.as_ref().filter(|_| !self.json) {
            screen::out(millrace_history::text::text(history).trim_end());
            return Ok(status);
        }
        let model = proved.model(&self.limits(budget)?);
        let report = millrace_report::report(&model, &written.program, &written.types);
        let write = |file: &Option<PathBuf>, text: &dyn Fn() -> String| match file {
            Some(f) => std::fs::write(f, text())
                .map_err(|e| Failure::wrong(format!("{}: {e}", f.display()))),
            None => Ok(()),
        };
        write(&self.html, &|| html::html(&report))?;
        write(&self.dot, &|| dot::dot(&report))?;
        if let Some(history) = &history {
            screen::document(&WithHistory {
                report: &report,
                history,
            });
        } else if self.json {
            screen::document(&report);
        } else {
            let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            screen::out(text::text(&report, colours).trim_end());
        }
        Ok(status)
    }

    fn make(&self) -> Result<Make, Failure> {
        function::make(&[], &self.capacity, self.program.as_ref())
    }

    /// How far to go, as the options say.
    fn limits(&self, budget: Budget) -> Result<Limits, Failure> {
        if let Some(folder) = &self.dump {
            std::fs::create_dir_all(folder)
                .map_err(|e| Failure::wrong(format!("{}: {e}", folder.display())))?;
        }
        Ok(Limits {
            paths: self.paths,
            steps: self.steps,
            expressions: self.expressions,
            time: Duration::from_secs(self.time),
            question: Duration::from_millis(self.question),
            solver: self.solver.clone(),
            dump: self.dump.clone(),
            budget: Some(budget),
            ..Limits::default()
        })
    }
}
