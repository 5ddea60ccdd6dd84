//! `millrace test`: the packet tests of functions.

use std::path::{Path, PathBuf};

use clap::Args;
use millrace::packet_test::{Failed, execute};
use millrace::{Function, Make};
use millrace_control::contents;
use millrace_dataplane::module::Entry;
use millrace_dataplane::runner::BURST;
use millrace_object::file;
use millrace_traffic::language::Case;
use serde::Serialize;

use crate::failure::{DONE, Failure, NO};
use crate::{function, routing, sanitize, screen};

/// Bytes of a packet test, at most.
const MOST_CASE: u64 = 64 << 20;

/// Run the packet tests of functions (docs/packet-tests.md).
#[derive(Args)]
#[command(after_help = "\
Each case runs twice, packet by packet and in bursts of 32, against a fresh copy of the function.

Exit status: 0 all passed, 1 some failed, 2 wrong use.")]
pub struct Test {
    /// The functions; the cases of each are in its folder, tests/*.pkt, of a configuration NAME.click in tests/NAME/*.pkt
    #[arg(required = true)]
    nf: Vec<String>,

    /// Run these cases instead
    #[arg(long, value_name = "FILE.pkt")]
    case: Vec<PathBuf>,

    /// What a map holds at the start of each case, from a file as `run --map` reads it
    #[arg(long = "map", value_name = "NAME=FILE")]
    maps: Vec<String>,

    /// Which program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Compile with AddressSanitizer and UndefinedBehaviorSanitizer
    #[arg(long)]
    sanitize: bool,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    passed: usize,
    failed: usize,
    cases: Vec<CaseResult>,
}

#[derive(Serialize)]
struct CaseResult {
    nf: String,
    file: String,
    title: String,
    passed: bool,
    /// where it failed
    line: Option<usize>,
    /// how
    message: Option<String>,
}

impl Test {
    /// Runs them, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        if self.sanitize {
            sanitize::ensure()?;
        }
        let mut cases = Vec::new();
        for word in &self.nf {
            let make = Make {
                sanitize: self.sanitize,
                ..function::make(&[], &[], self.program.as_ref())?
            };
            let function = function::load(word, &make)?;
            let files = self.files(word, &function.folder)?;
            let (function, routes) = routing::of_cases(function, word, &make, &files)?;
            let entries = contents::entries(&self.maps, &function.exposed)?;
            for (file, routes) in files.iter().zip(routes) {
                let entries = [&entries[..], &routes].concat();
                let result = Self::one(&function, &entries, file);
                let line = result.line.map_or(String::new(), |l| format!(":{l}"));
                if let Some(message) = &result.message {
                    screen::report(self.json, &format!("{}{line}: {message}", result.file));
                }
                cases.push(result);
            }
        }
        let failed = cases.iter().filter(|c| !c.passed).count();
        let document = Document {
            passed: cases.len() - failed,
            failed,
            cases,
        };
        screen::report(
            self.json,
            &format!("{} passed, {failed} failed", document.passed),
        );
        if self.json {
            screen::document(&document);
        }
        Ok(if failed == 0 { DONE } else { NO })
    }

    /// The cases of a function, by name.
    fn files(&self, word: &str, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        if !self.case.is_empty() {
            return Ok(self.case.clone());
        }
        let mut folder = folder.join("tests");
        // A folder of configurations has a folder of cases for each.
        if Path::new(word).extension().is_some_and(|e| e == "click")
            && let Some(own) = Path::new(word).file_stem().map(|name| folder.join(name))
            && own.is_dir()
        {
            folder = own;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|e| e == "pkt"))
            .collect();
        files.sort();
        if files.is_empty() {
            return Err(
                Failure::wrong(format!("{word}: no packet tests in {}", folder.display()))
                    .help("write one as docs/packet-tests.md says, or name it with --case"),
            );
        }
        Ok(files)
    }

    fn one(function: &Function, entries: &[Entry], file: &Path) -> CaseResult {
        let name = file.display().to_string();
        let case = file::read_text(file, MOST_CASE).map_err(|e| Failed::new(0, e.to_string()));
        let case = case
            .and_then(|text| Case::parse(&name, &text).map_err(|e| Failed::new(e.line, e.message)));
        let (title, result) = match case {
            Err(failed) => (String::new(), Err(failed)),
            Ok(case) => {
                let run = |burst| execute(function, &case, entries, burst);
                // What differs only in a burst is the prefetching or the host: worth telling apart.
                let in_burst = |f: Failed| Failed {
                    message: format!("{} (only in a burst of {BURST})", f.message),
                    ..f
                };
                (
                    case.title().to_owned(),
                    run(1).and_then(|()| run(BURST).map_err(in_burst)),
                )
            }
        };
        let failed = result.err();
        CaseResult {
            nf: function.name.clone(),
            file: name,
            title,
            passed: failed.is_none(),
            line: failed.as_ref().map(|f| f.line).filter(|l| *l > 0),
            message: failed.map(|f| f.message),
        }
    }
}
