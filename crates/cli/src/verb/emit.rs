//! `millrace emit`: the generated code itself.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use millrace::{Asked, Proved};
use millrace_emit::target::xdp::shard::{self, Shards};
use millrace_emit::target::{self, File, Input, TARGETS};
use millrace_place::Strategy;
use millrace_steer::sequence::{Form, MAX_GAP, Shape};

use crate::failure::{DONE, Failure};
use crate::{budget, function, screen};

/// Workers of a plan for the kernel: the loader has room for so many.
const MOST_WORKERS: usize = 64;

/// Print the code that is generated for a function.
#[derive(Args)]
#[command(after_help = "\
Targets: c, C for one core, the reference; verilog, a sequencer in hardware and its test bench; xdp, a sequencer and \
replicas for the kernel, or, with --strategy shard, workers on processors of the kernel and a loader; p4, a sequencer for a switch (docs/targets.md). Those of a sequencer need a function that can be \
replicated: exit status 1, with the line, where it cannot.")]
pub struct Emit {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name
    /// of a folder in ./nfs, $MILLRACE_NFS or share/millrace/nfs
    nf: String,

    /// What to generate
    #[arg(long, value_name = "TARGET", value_parser = targets(), default_value = "c")]
    target: String,

    /// Of xdp: `replicate`, a sequencer and replicas, or `shard`, a worker for each core, and packets go to the worker that has their
    /// part of the state
    #[arg(long, value_name = "STRATEGY", value_parser = ["replicate", "shard"], default_value = "replicate")]
    strategy: String,

    /// Cores that packets are sent to: of a sequencer in turn, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 2)]
    cores: u16,

    /// Of a sequencer: rows that a packet carries, at most 64; one for each core, unless said otherwise
    #[arg(long, value_name = "N")]
    slots: Option<u16>,

    /// Of a sequencer: a heartbeat comes this long after the last row, in ns, at most 2^38
    #[arg(long, value_name = "NS", default_value_t = MAX_GAP)]
    period: u64,

    /// Give a setting another value than the author's
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Write the files of the target into this folder instead of printing them
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Print one JSON document: `name`, `target`, `text`, and `files` of a target with several
    #[arg(long)]
    pub json: bool,
}

/// The words of targets.
fn targets() -> PossibleValuesParser {
    let names = TARGETS.iter().map(|t| t.name());
    PossibleValuesParser::new(std::iter::once("c").chain(names))
}

impl Emit {
    /// Prints it, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let written = function::read(&self.nf, &function::make(&self.set, &[], None)?)?;
        let proved = written.check(budget::begin())?;
        let shards = self.strategy == "shard";
        if shards && self.target != "xdp" {
            return Err(Failure::wrong(format!(
                "--strategy shard: target {} is for what is replicated, or for one core",
                self.target
            ))
            .help("give --target xdp, or leave --strategy out"));
        }
        let files = match TARGETS.iter().find(|t| t.name() == self.target) {
            _ if shards => self.sharded(&proved)?,
            None => vec![File {
                name: "module.c".into(),
                text: proved.emit()?,
            }],
            Some(target) => {
                let input = Input {
                    program: &written.program,
                    checked: &proved.checked,
                    cores: self.cores,
                    slots: self.slots.unwrap_or(self.cores),
                    period: self.period,
                };
                self.formed(&input)?;
                target.files(&input).map_err(|e| {
                    Failure::no(e.to_string()).help(
                        "docs/targets.md says what each target can express; `millrace model NF --history` shows the row",
                    )
                })?
            }
        };
        if let Some(folder) = &self.out {
            let wrong = |path: &PathBuf, e: std::io::Error| {
                Failure::wrong(format!("{}: {e}", path.display()))
                    .help("name a folder that can be written to")
            };
            std::fs::create_dir_all(folder).map_err(|e| wrong(folder, e))?;
            for file in &files {
                let path = folder.join(&file.name);
                std::fs::write(&path, &file.text).map_err(|e| wrong(&path, e))?;
            }
        }
        let name = &written.program.name;
        if self.json {
            let text: String = files.iter().map(|f| f.text.as_str()).collect();
            let each = files
                .iter()
                .map(|f| serde_json::json!({ "name": f.name, "text": f.text }));
            let each: Vec<_> = each.collect();
            screen::document(&serde_json::json!({
                "name": name, "target": self.target, "text": text, "files": each,
            }));
        } else if let Some(folder) = &self.out {
            for file in &files {
                screen::out(&folder.join(&file.name).display().to_string());
            }
        } else {
            for file in &files {
                screen::out(file.text.trim_end());
            }
        }
        Ok(DONE)
    }

    /// The files of a plan that shards, for the kernel.
    fn sharded(&self, proved: &Proved<'_>) -> Result<Vec<File>, Failure> {
        let cores = usize::from(self.cores);
        if !(1..=MOST_WORKERS).contains(&cores) {
            return Err(Failure::wrong(format!(
                "--cores {cores}: 1 to {MOST_WORKERS} workers"
            )));
        }
        let budget = budget::begin();
        let asked = Asked {
            cores,
            strategy: Some(Strategy::Shard),
            budget: Some(budget),
            ..Asked::default()
        };
        let within = (millrace_model::SECONDS, budget);
        let mut model = proved.model_for(asked.purpose(), within, &mut || {
            function::planning(&proved.program.name);
        });
        let arranged = proved.arrange(&mut model, &asked)?.several(cores)?;
        for reason in &arranged.reasons {
            screen::err(reason);
        }
        let shards = Shards {
            program: proved.program,
            checked: &proved.checked,
            workers: cores as u32,
            steering: &arranged.placement.steering,
        };
        shard::files(&shards).map_err(|e| {
            Failure::no(e.to_string()).help("docs/targets.md says what the kernel can be given")
        })
    }

    /// Whether there is a sequencer of these numbers.
    fn formed(&self, input: &Input) -> Result<(), Failure> {
        let wrong = |e: &dyn std::fmt::Display| {
            Failure::wrong(e.to_string()).help("see --cores, --slots and --period")
        };
        // A program without rows is refused by the target itself, with the line.
        let circuit = target::circuit(input).ok();
        let row = circuit.map_or(1, |c| c.row_bytes());
        let shape = Shape::new(row, None).map_err(|e| wrong(&e))?;
        Form::new(self.cores, usize::from(input.slots), shape).map_err(|e| wrong(&e))?;
        let state = millrace_steer::sequence::State::new(self.cores, self.period);
        state.map_err(|e| wrong(&e))?;
        Ok(())
    }
}
