//! `millrace sequence`: sequenced captures, made and checked.

use std::path::PathBuf;

use clap::Args;
use millrace_history::History;
use millrace_history::circuit::Circuit;
use millrace_steer::sequence::{Form, Key, Kind, MAX_GAP, Shape, State};
use millrace_traffic::capture;
use millrace_traffic::sequenced::{self, Step};
use serde_json::json;

use crate::failure::{DONE, Failure};
use crate::quantity::grouped;
use crate::{budget, function, screen};

/// Make a sequenced capture of a capture, or check one: packets with the rows by which every core repeats what they do to
/// state, as a sequencer in front of the cores gives them (docs/replication.md).
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 done, 1 refused, or with --check the capture is not what the sequencer gives, 2 wrong use.")]
pub struct Sequence {
    /// The function: a source (.c), an object (.o, FILE.o:PROGRAM), a folder with NAME.c, or the name
    /// of a folder in ./nfs, $MILLRACE_NFS or share/millrace/nfs
    nf: String,

    /// The capture; the interface of a packet is its port
    #[arg(
        long = "in",
        value_name = "FILE",
        required_unless_present = "check",
        conflicts_with = "check"
    )]
    input: Option<PathBuf>,

    /// Where the sequenced capture goes
    #[arg(
        long = "out",
        value_name = "FILE",
        required_unless_present = "check",
        conflicts_with = "check"
    )]
    output: Option<PathBuf>,

    /// Check this sequenced capture: each record against the sequencer, each row against the function
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,

    /// Cores that packets are sent to in turn, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 2, conflicts_with = "check")]
    cores: u16,

    /// Rows that a packet carries, its own and those before it, at most 64; one for each core, unless said otherwise
    #[arg(long, value_name = "N", conflicts_with = "check")]
    slots: Option<usize>,

    /// A heartbeat comes this long after the last row, in ns, at most 2^38
    #[arg(long, value_name = "NS", default_value_t = MAX_GAP, conflicts_with = "check")]
    period: u64,

    /// A file of 16 bytes, the secret of sequencer and cores: each packet is tagged with it
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Give a setting another value than the author's
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// With --check: print each step
    #[arg(long, requires = "check", conflicts_with = "json")]
    list: bool,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

impl Sequence {
    /// Makes or checks, and gives the exit status.
    pub fn perform(&self) -> Result<u8, Failure> {
        let make = function::make(&self.set, &[], None)?;
        let written = function::read(&self.nf, &make)?;
        let proved = written.check(budget::begin())?;
        let circuit = circuit(&written.program, &proved.checked)?;
        match (&self.check, &self.input, &self.output) {
            (Some(check), ..) => self.check(&circuit, check),
            (None, Some(input), Some(output)) => self.make(&circuit, input, output),
            _ => Err(Failure::wrong("nothing to read").help("write --in A.pcap --out B.pcap")),
        }
    }

    fn key(&self) -> Result<Option<Key>, Failure> {
        let Some(path) = &self.key else {
            return Ok(None);
        };
        let wrong = |what: String| {
            Failure::wrong(format!("--key {}: {what}", path.display()))
                .help("a key is a file of exactly 16 bytes: head -c 16 /dev/urandom > FILE")
        };
        let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
        match <[u8; 16]>::try_from(bytes.as_slice()) {
            Ok(key) => Ok(Some(Key(key))),
            Err(_) => Err(wrong(format!("it has {} bytes", bytes.len()))),
        }
    }

    fn make(&self, circuit: &Circuit, input: &PathBuf, output: &PathBuf) -> Result<u8, Failure> {
        let wrong = |e: &dyn std::fmt::Display| Failure::wrong(e.to_string());
        let shape = shape(circuit)?;
        let slots = self.slots.unwrap_or(usize::from(self.cores));
        let mut form = Form::new(self.cores, slots, shape).map_err(|e| wrong(&e))?;
        if let Some(key) = self.key()? {
            form = form.with_key(key);
        }
        let state = State::new(self.cores, self.period).map_err(|e| wrong(&e))?;
        let mut from = capture::Reader::open(input).map_err(|e| wrong(&e))?;
        let counts = std::cell::Cell::new((0_u64, 0_u64));
        let rows = |frame: &[u8], port: u16, time: u64, row: &mut [u8]| {
            let touch = circuit.extract(frame, port, time, row);
            let (packets, rows) = counts.get();
            counts.set((packets + 1, rows + u64::from(touch)));
            touch
        };
        let (state, written) = sequenced::sequence(
            &mut from,
            (shape, rows),
            state,
            form.clone(),
            |form, state| sequenced::Writer::create(output, form, state),
        )
        .map_err(|e| wrong(&e))?;
        let (packets, rows) = counts.get();
        let beats = state.sequence() - rows;
        if self.json {
            screen::document(&json!({
                "name": circuit.name,
                "cores": form.cores(),
                "slots": form.slots(),
                "row_bytes": shape.row_bytes(),
                "prefix_bytes": form.prefix_bytes(),
                "tagged": form.key().is_some(),
                "packets": packets,
                "rows": rows,
                "heartbeats": beats,
                "back": state.back(),
                "written": written.packets,
            }));
        } else {
            screen::out(&format!(
                "{}: {} packets, {} rows of {} bytes, {} heartbeats, over {} cores; {} bytes with {} rows before each packet",
                circuit.name,
                grouped(packets),
                grouped(rows),
                shape.row_bytes(),
                grouped(beats),
                form.cores(),
                form.prefix_bytes(),
                form.slots(),
            ));
        }
        Ok(DONE)
    }

    fn check(&self, circuit: &Circuit, path: &PathBuf) -> Result<u8, Failure> {
        let shape = shape(circuit)?;
        let no = |e: sequenced::Error| Failure::no(e.to_string()).help(ASK);
        let mut reader = sequenced::Reader::open(path, self.key()?).map_err(no)?;
        let form = reader.form().clone();
        if form.shape() != shape {
            return Err(Failure::no(format!(
                "{}: rows of {} bytes, and those of {} have {}, or another place of the time",
                path.display(),
                form.shape().row_bytes(),
                circuit.name,
                shape.row_bytes()
            ))
            .help(ASK));
        }
        let (mut packets, mut rows, mut beats) = (0_u64, 0_u64, 0_u64);
        while let Some(step) = reader.next().map_err(no)? {
            if self.list {
                screen::out(&step.to_string());
            }
            match step.header.kind {
                Kind::Beat => beats += 1,
                Kind::Touch => rows += 1,
                Kind::Plain => {}
            }
            packets += u64::from(step.header.kind != Kind::Beat);
            if let Some(why) = differs(circuit, shape, &step) {
                return Err(Failure::no(format!(
                    "{}: record {}: {why}",
                    path.display(),
                    step.record
                ))
                .help(ASK));
            }
        }
        if self.json {
            screen::document(&json!({
                "name": circuit.name,
                "equal": true,
                "cores": form.cores(),
                "slots": form.slots(),
                "row_bytes": shape.row_bytes(),
                "tagged": form.key().is_some(),
                "packets": packets,
                "rows": rows,
                "heartbeats": beats,
            }));
        } else {
            screen::out(&format!(
                "{}: as the sequencer gives it: {} packets, {} rows of {}, {} heartbeats",
                path.display(),
                grouped(packets),
                grouped(rows),
                circuit.name,
                grouped(beats)
            ));
        }
        Ok(DONE)
    }
}

/// What the function's row has that the step's has not.
fn differs(circuit: &Circuit, shape: Shape, step: &Step) -> Option<String> {
    if step.header.kind == Kind::Beat {
        return None;
    }
    let mut expected = vec![0; shape.row_bytes()];
    let (port, stamp) = (step.header.port, step.header.stamp);
    let touch = circuit.extract(&step.frame, port, stamp, &mut expected);
    let Some(row) = &step.row else {
        return touch.then(|| "the packet has no row, and the function gives it one".into());
    };
    if !touch {
        return Some("the packet has a row, and the function gives it none".into());
    }
    // The time is the sequencer's, which the reader has compared.
    let time = shape
        .time()
        .map_or(0..0, |at| at..at + millrace_steer::sequence::TIME_BYTES);
    let each = expected.iter().zip(row.bytes()).enumerate();
    let mut each = each.filter(|(at, (a, b))| !time.contains(at) && a != b);
    let (at, (expected, found)) = each.next()?;
    Some(format!(
        "byte {at} of its row is {found:#04x}, and the function gives {expected:#04x}"
    ))
}

const ASK: &str = "docs/replication.md has the format; `millrace sequence NF --in A.pcap --out B.pcap` makes such a capture";

/// Rows of the circuit.
fn shape(circuit: &Circuit) -> Result<Shape, Failure> {
    Shape::new(circuit.row_bytes(), circuit.time).map_err(|e| Failure::wrong(e.to_string()))
}

/// The circuit that fills a function's rows, or the refusals with their lines.
pub fn circuit(
    program: &millrace_object::Program,
    checked: &millrace_check::Checked,
) -> Result<Circuit, Failure> {
    let history = History::of(program, checked);
    Circuit::of(program, checked, &history).map_err(|refusals| {
        let said = refusals.iter().map(|r| {
            let line = r.line.as_ref();
            let place = line.map_or_else(String::new, |l| format!("{}:{}: ", l.file, l.line));
            let object = r
                .object
                .as_ref()
                .map_or_else(String::new, |o| format!("{o}: "));
            let text = line.map_or_else(String::new, |l| format!("\n    {}", l.text));
            format!("{place}{object}{}{text}", r.reason)
        });
        let detail = said.collect::<Vec<_>>().join("\n");
        Failure {
            detail: Some(detail),
            ..Failure::no(format!("{}: no sequencer can be made of it", program.name))
                .help("docs/replication.md says what a sequencer can compute")
        }
    })
}
