//! Options of a command line that exclude each other.

use millrace_chain::{Description, What};
use millrace_dataplane::port;

use super::Run;
use crate::failure::Failure;

/// More workers than any machine has cores are a mistake.
const MAX_CORES: usize = 1024;

/// As many as an indirection table commonly has entries.
const MAX_CLASSES: u16 = 128;

impl Run {
    /// Whether what was asked for goes together.
    pub(super) fn sane(&self, chain: &Description) -> Result<(), Failure> {
        let several = chain.elements.len() > 1;
        if !(1..=MAX_CORES).contains(&self.cores) {
            return Err(
                Failure::wrong(format!("--cores {}: no number of cores", self.cores))
                    .help(format!("give 1 to {MAX_CORES}")),
            );
        }
        if !self.cpus.is_empty() && self.cpus.len() != self.cores {
            let (cpus, cores) = (self.cpus.len(), self.cores);
            return Err(
                Failure::wrong(format!("--cpus names {cpus}, --cores says {cores}"))
                    .help("name one processor for each worker"),
            );
        }
        if let Some(classes) = self.classes {
            let guests = |e: &millrace_chain::Element| matches!(e.what, What::Guest(_));
            if self.cores < 2 || !chain.elements.iter().any(guests) {
                return Err(Failure::wrong("--classes is for guests on several cores")
                    .help("give --cores, or leave --classes out"));
            }
            if !(1..=MAX_CLASSES).contains(&classes) {
                return Err(
                    Failure::wrong(format!("--classes {classes}: no number of classes"))
                        .help(format!("give 1 to {MAX_CLASSES}")),
                );
            }
        }
        if self.trace.is_some() && (self.cores < 2 || several) {
            return Err(
                Failure::wrong("--trace is for one function on several cores")
                    .help("give --cores, or leave --trace out"),
            );
        }
        if !self.steer.is_empty() && (self.cores < 2 || several) {
            return Err(
                Failure::wrong("--steer is for one function on several cores")
                    .help("give --cores, or leave --steer out"),
            );
        }
        if several {
            if self.program.is_some() {
                return Err(Failure::wrong("--program is for one function")
                    .help("write FILE.o:PROGRAM for each of several"));
            }
            let flag = self.routes.as_ref().map(|_| "--routes");
            if let Some(flag) = flag.or(self.outside.of_one()) {
                return Err(Failure::wrong(format!("{flag} is for one function"))
                    .help("leave it out, or run the functions one by one"));
            }
        }
        if self.json && self.takes_stdout() {
            return Err(
                Failure::wrong("--json and packets cannot both go to standard output")
                    .help("write the packets to a file"),
            );
        }
        if self.loops.is_some() && !self.inputs.iter().any(|w| port::loops(w)) {
            return Err(Failure::wrong("--loops: no input can begin again")
                .help("name the capture mem:FILE to loop it from memory"));
        }
        Ok(())
    }
}
