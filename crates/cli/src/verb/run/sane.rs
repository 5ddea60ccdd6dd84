//! Options of a command line that exclude each other.

use millrace_chain::{Description, What};
use millrace_dataplane::port::{self, Way};

use super::Run;
use crate::failure::Failure;
use crate::screen;

/// More workers than any machine has cores are a mistake.
const MAX_CORES: usize = 1024;

/// As many as an indirection table commonly has entries.
const MAX_CLASSES: u16 = 128;

impl Run {
    /// Whether packets come from anywhere.
    pub(super) fn fed(&self, chain: &Description) -> Result<(), Failure> {
        if !self.between().receiving().is_empty() {
            return Ok(());
        }
        let what = "no port is named: where do packets come from?";
        Err(Failure::wrong(what).help(match chain.file {
            Some(_) => {
                "write ports = [\"KIND:NAME\", …] into the chain file, or give --ports or --in"
            }
            None => "give --ports PORT,PORT or --in PORT (docs/ports.md)",
        }))
    }

    /// Tells of ports that nothing comes from or goes to: `declared` are the names of all. A function of two ports
    /// behind one of them is seldom meant.
    pub(super) fn hint(&self, declared: &[String]) {
        let both = !self.ports.is_empty();
        let given = if both { &self.ports } else { &self.inputs };
        let (Some(first), Some(rest)) = (declared.first(), declared.get(given.len()..)) else {
            return;
        };
        // An XDP program may as well take packets at one port alone.
        let numbers = declared.iter().all(|name| name.parse::<u32>().is_ok());
        if rest.is_empty() || numbers || self.split.is_some() {
            return;
        }
        let names = rest.join(", ");
        screen::err(&match (both, given.as_slice()) {
            (true, _) => format!(
                "note: nothing serves {names}: what is sent there is accounted, and lost; --ports takes a word for each of {}",
                declared.join(", ")
            ),
            (false, [_]) => format!(
                "note: all packets enter at {first}, and none at {names}: give --split {}=PREFIX, or one --in for each",
                first.to_lowercase()
            ),
            (false, _) => format!("note: no packets enter at {names}: give one --in for each"),
        });
    }

    /// Mistakes in the words of the ports, which are not opened.
    pub fn spelled(&self) -> impl Iterator<Item = Failure> {
        let of = |words: &[String], way| words.iter().map(move |w| (w.clone(), way)).collect();
        let words: [Vec<(String, Way)>; 4] = [
            of(&self.ports, Way::Both),
            of(&self.inputs, Way::In),
            of(&self.outputs, Way::Out),
            of(self.pass.as_slice(), Way::Out),
        ];
        // Where the kernel runs the function is judged for itself.
        let words = words.into_iter().flatten();
        let words = words.filter(|(word, way)| *way == Way::Both || !port::xdp::names(word));
        words.filter_map(|(word, way)| Some(port::spelled(&word, way).err()?.into()))
    }

    /// Whether what was asked for goes together.
    pub fn fits(&self, chain: &Description) -> Result<(), Failure> {
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
        if self.balance.is_some() && (self.cores < 2 || several) {
            return Err(
                Failure::wrong("--balance is for one function on several cores")
                    .help("give --cores, or leave --balance out"),
            );
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
