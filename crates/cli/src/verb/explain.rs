//! `millrace explain`: what happened to one packet, in the author's lines.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use millrace::{Function, Ports};
use millrace_chain::connect::{Connected, Named, connect};
use millrace_chain::{Description, What, file};
use millrace_control::contents;
use millrace_explain::{
    Case, Comments, ExplainError, Filter, Part, Which, comments, explain, text, write_pcapng,
};
use millrace_object::types::entry_types;
use millrace_topology::Topology;
use millrace_traffic::split::Split;

use super::run::chain;
use crate::failure::{DONE, Failure, NO};
use crate::{budget, function, screen};

static STOP: AtomicBool = AtomicBool::new(false);

/// Show what happened to one packet: the lines it went through, what decided each branch, what it found and wrote in
/// state and by which earlier packet that was, what was rewritten, and the verdict.
#[derive(Args)]
#[command(after_help = "\
A filter is words joined by `and`, with `not` before a word: `drop [REASON]`, `forward [PORT]`, `pass`, `flood`, `consume`, \
`abort`, `in PORT`, `host ADDRESS`, `src ADDRESS`, `dst ADDRESS`, `port N`, `sport N`, `dport N`, `ip`, `ip6`, `tcp`, `udp`, \
`icmp`, `icmp6`, `any`.

Exit status: 0 explained, 1 no packet fits, it cannot be explained, or emitted code and the interpreter disagree, 2 wrong use. docs/explain.md says \
what is shown.")]
pub struct Explain {
    /// The functions, in a row, or a chain file: sources (.c), objects (.o, FILE.o:PROGRAM), folders with NAME.c, or names
    /// of folders in ./nfs, $MILLRACE_NFS or share/millrace/nfs
    #[arg(required = true)]
    nf: Vec<String>,

    /// Captures, one for each port, in order; or one, with --split
    #[arg(
        long = "in",
        value_name = "FILE",
        value_delimiter = ',',
        required = true
    )]
    inputs: Vec<String>,

    /// Let one capture enter at two ports: packets sent from these prefixes enter at this port, as in lan=10.0.0.0/8
    #[arg(long, value_name = "PORT=CIDR[,CIDR]")]
    split: Option<Split>,

    /// The packet of this number: from 0, over all inputs by time
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "condition",
        required_unless_present = "condition"
    )]
    packet: Option<u64>,

    /// The first packet that fits a filter, as in 'drop no_flow and src 10.0.0.1'
    #[arg(long = "where", value_name = "FILTER")]
    condition: Option<String>,

    /// With --where: the last one that fits
    #[arg(long, requires = "condition", conflicts_with = "nth")]
    last: bool,

    /// With --where: the n-th one that fits, from 1
    #[arg(long, value_name = "N", requires = "condition", value_parser = clap::value_parser!(u64).range(1..))]
    nth: Option<u64>,

    /// Write the packet to a capture, with these lines as comments that Wireshark and tshark show
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,

    /// Set a parameter of the function; of several functions, NF:NAME=VALUE
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Give a state object room for this many entries; of several functions, NF:OBJECT=N
    #[arg(long = "capacity", value_name = "OBJECT=N")]
    capacity: Vec<String>,

    /// What a map holds before the first packet, from a file; of several functions, NF:NAME=FILE
    #[arg(long = "map", value_name = "NAME=FILE")]
    maps: Vec<String>,

    /// Which program of an object that holds several
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Seed of sketches and random draws, as of `run`
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// An element that was made.
struct Made {
    name: String,
    function: Function,
    entries: Vec<millrace_dataplane::module::Entry>,
    types: millrace::Types,
}

impl Explain {
    /// Explains it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let which = self.which()?;
        let chain = self.described()?;
        let made = self.made(&chain)?;
        let named: Vec<Named> = (made.iter())
            .map(|m| Named {
                ports: m.function.ports.clone(),
                guest: false,
            })
            .collect();
        let connected = connect(&chain, &named).map_err(chain::wrong)?;
        let captures = Ports::captures(&self.inputs, self.split.as_ref());
        let (order, names) = match &connected {
            Some(Connected { order, ports, .. }) => (order.clone(), captures.names(ports)?),
            None => {
                let own = made.first().map_or(&[][..], |m| &m.function.ports);
                (vec![0], captures.names(own)?)
            }
        };
        let topology = match connected {
            Some(connected) => connected.topology,
            None => Topology::alone(names.len()),
        };
        let budget = budget::begin();
        let proved = made.iter().map(|m| m.function.check(budget));
        let proved = proved.collect::<Result<Vec<_>, _>>()?;
        let mut parts = Vec::new();
        let mut drawing = 0;
        for (index, of) in order.iter().enumerate() {
            let (Some(m), Some(proved)) = (made.get(*of), proved.get(*of)) else {
                continue;
            };
            let own = topology.ports(index).len();
            let ports = match m.function.ports.as_slice() {
                [] => (0..own.max(1)).map(|i| i.to_string()).collect(),
                ports => ports.to_vec(),
            };
            let seed = m.function.seed(self.seed, &mut drawing);
            parts.push(Part {
                name: m.name.clone(),
                program: proved.program,
                checked: &proved.checked,
                exposed: &m.function.exposed,
                types: &m.types,
                module: m.function.module.clone(),
                config: m.function.state(seed, m.entries.clone()),
                entry: m.function.entry,
                ports: if topology.is_alone() {
                    names.clone()
                } else {
                    ports
                },
            });
        }
        let models = millrace::models();
        let case = Case {
            parts: &parts,
            topology: &topology,
            ports: &names,
            models: models.as_deref(),
        };
        let mut trace = captures.trace(&names, &STOP)?;
        let (explanation, packet) = explain(&case, &mut trace, &which).map_err(failure)?;
        if let Some(path) = &self.pcapng {
            let bytes = write_pcapng(&[Comments {
                interface: &explanation.packet.port,
                time: packet.time,
                wire: packet.wire,
                frame: &packet.frame,
                lines: &comments(&explanation),
            }]);
            std::fs::write(path, bytes)
                .map_err(|e| Failure::wrong(format!("{}: {e}", path.display())))?;
        }
        if self.json {
            screen::document(&explanation);
        } else {
            let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            screen::out(text(&explanation, colours).trim_end());
        }
        Ok(if explanation.agrees { DONE } else { NO })
    }

    fn which(&self) -> Result<Which, Failure> {
        let Some(condition) = &self.condition else {
            return Ok(Which::Number(self.packet.unwrap_or(0)));
        };
        let filter = Filter::parse(condition).map_err(|e| {
            Failure::wrong(format!("--where: {e}"))
                .help(format!("words are {}", millrace_explain::WORDS))
        })?;
        Ok(match (self.last, self.nth) {
            (true, _) => Which::Last(filter),
            (false, Some(n)) => Which::Nth(filter, n),
            (false, None) => Which::First(filter),
        })
    }

    fn described(&self) -> Result<Description, Failure> {
        match self.nf.as_slice() {
            [one] if file::is_file(one) => file::read(Path::new(one)).map_err(chain::wrong),
            words => Ok(Description::line(words, chain::called)),
        }
    }

    fn made(&self, chain: &Description) -> Result<Vec<Made>, Failure> {
        let mut made = Vec::new();
        for element in &chain.elements {
            let What::Function(asked) = &element.what else {
                return Err(Failure::wrong(format!(
                    "{}: a guest is a program of its own, which has no lines here",
                    element.name
                ))
                .help("explain the functions before and behind it, each with what comes to it"));
            };
            let both = |file: &[String], line: &[String]| -> Result<Vec<String>, Failure> {
                let own = chain::of(chain, element, line)?;
                Ok(file.iter().cloned().chain(own).collect())
            };
            let program = self.program.as_ref().or(asked.program.as_ref());
            let make = function::make(
                &both(&asked.set, &self.set)?,
                &both(&asked.capacity, &self.capacity)?,
                program,
            )?;
            let word = chain::path(chain, &asked.word);
            let function = function::load(&word, &make)?;
            if function.program.is_none() {
                return Err(
                    Failure::wrong(format!("{word}: a module alone has no lines"))
                        .help("give its source or its object"),
                );
            }
            let mut entries = chain::entries(chain, element, &function.exposed)?;
            let maps = chain::of(chain, element, &self.maps)?;
            entries.extend(contents::entries(&maps, &function.exposed)?);
            let bytes = function
                .object
                .as_ref()
                .and_then(|o| millrace_object::read_file(o).ok());
            made.push(Made {
                name: element.name.clone(),
                types: bytes.map(|b| entry_types(&b)).unwrap_or_default(),
                function,
                entries,
            });
        }
        Ok(made)
    }
}

fn failure(error: ExplainError) -> Failure {
    match error {
        ExplainError::NoPacket { what, help } => Failure {
            kind: millrace::Kind::No,
            ..Failure::wrong(what).help(help)
        },
        ExplainError::Trace(e) => Failure::wrong(&e.what).help(e.help),
        error @ ExplainError::Failed { .. } => Failure {
            kind: millrace::Kind::No,
            ..Failure::wrong(error).help(
                "what became of each packet, without the reasons: `millrace run` with --fates",
            )
        },
        other => Failure::wrong(other),
    }
}
