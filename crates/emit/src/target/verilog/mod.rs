//! `--target verilog`: the sequencer as hardware.
//!
//! The row is taken by one combinational module that is printed gate by gate from the circuit
//! (`millrace_history::circuit`); `core.v` is what all programs have in common: numbers, the ring of rows, the prefix, as the
//! paper's sequencer for NetFPGA (Xu et al., section 3.3.2, figure 4c). `bench.v` holds it against a sequenced capture.

use std::fmt::Write;

use millrace_history::circuit::{Circuit, Gate, Wire};

use super::{File, Input, Target, circuit};
use crate::codegen::comment_text;
use crate::error::Error;

/// The target.
pub struct Verilog;

const CORE: &str = include_str!("core.v");
const BENCH: &str = include_str!("bench.v");
/// Bytes of a word where nobody says otherwise: 512 bits, 128 Gbit/s at 250 MHz.
const BUS: u32 = 64;

impl Target for Verilog {
    fn name(&self) -> &'static str {
        "verilog"
    }

    fn about(&self) -> &'static str {
        "a sequencer in Verilog, and its test bench"
    }

    fn files(&self, input: &Input) -> Result<Vec<File>, Error> {
        let circuit = circuit(input)?;
        let top = top(&circuit, input);
        Ok(vec![
            File {
                name: "sequencer.v".into(),
                text: format!("{}\n{top}\n{CORE}", extract(&circuit)),
            },
            File {
                name: "bench.v".into(),
                text: bench(&circuit, input),
            },
        ])
    }
}

/// `[high:0] ` of a wire; nothing for one bit.
fn range(bits: u32) -> String {
    match bits {
        1 => String::new(),
        bits => format!("[{}:0] ", bits - 1),
    }
}

/// How a wire is written where it is used.
fn name(circuit: &Circuit, wire: Wire) -> String {
    match circuit.gates.gate(wire) {
        Gate::Number(n) => format!("{}'h{n:x}", circuit.gates.width(wire)),
        Gate::Length => "length".into(),
        Gate::Port => "port".into(),
        Gate::Time => "stamp".into(),
        _ => format!("w{}", wire.0),
    }
}

/// The right side of a wire's assignment; none where the wire has a name already.
fn value(circuit: &Circuit, wire: Wire) -> Option<String> {
    let of = |w: &Wire| name(circuit, *w);
    Some(match circuit.gates.gate(wire) {
        Gate::Number(_) | Gate::Length | Gate::Port | Gate::Time => return None,
        Gate::Byte(at) => byte(circuit, *at),
        Gate::Bits(a, from, 1) => format!("{}[{from}]", of(a)),
        Gate::Bits(a, from, bits) => format!("{}[{}:{from}]", of(a), from + bits - 1),
        Gate::Concat(parts) => {
            let part = |(w, bits): &(Wire, u32)| {
                let have = circuit.gates.width(*w);
                match circuit.gates.constant(*w) {
                    Some(n) => format!("{bits}'h{n:x}"),
                    None if have < *bits => format!("{}'h0, {}", bits - have, of(w)),
                    None => of(w),
                }
            };
            let all: Vec<String> = parts.iter().rev().map(part).collect();
            format!("{{{}}}", all.join(", "))
        }
        Gate::Select(c, a, b) => format!("{} ? {} : {}", of(c), of(a), of(b)),
        gate => {
            let (sign, a, b) = gate.infix()?;
            format!("{} {sign} {}", of(&a), of(&b))
        }
    })
}

/// A byte of the packet: where its offset has few values, a selection of one of these places.
fn byte(circuit: &Circuit, at: Wire) -> String {
    let gates = &circuit.gates;
    let place = |n: u64| format!("head[{}:{}]", 8 * n + 7, 8 * n);
    if let Some(n) = gates.constant(at) {
        return place(n);
    }
    let offset = name(circuit, at);
    let Some(values) = gates.values(at) else {
        return format!("head[8*{offset} +: 8]");
    };
    let width = gates.width(at);
    let last = values.last().copied().unwrap_or(0);
    let mut text = String::new();
    for n in values.iter().filter(|n| **n != last) {
        let _ = write!(text, "{offset} == {width}'h{n:x} ? {} : ", place(*n));
    }
    text + &place(last)
}

/// The module that takes the row.
fn extract(circuit: &Circuit) -> String {
    let (window, row) = (circuit.window(), circuit.row_bytes());
    let mut out = format!(
        "// The row of a packet of {}: what of it reaches state, {} bits in {row} bytes, from its first {window} bytes.\n",
        comment_text(&circuit.name),
        circuit.bits
    );
    if circuit.time.is_some() {
        out.push_str("// Bits 39:0 are the time, which the core sets.\n");
    }
    for (at, bits, what) in &circuit.fields {
        let _ = writeln!(
            out,
            "// Bits {}:{at} are {}.",
            at + bits - 1,
            comment_text(what)
        );
    }
    let _ = write!(
        out,
        "module millrace_extract (
    input wire [{}:0] head, // the first byte lowest, zeros behind the packet's end
    input wire [15:0] length,
    input wire [15:0] port,
    input wire [63:0] stamp,
    output wire touch,
    output wire [{}:0] row
);
",
        8 * window - 1,
        8 * row - 1
    );
    for wire in circuit.live() {
        if let Some(value) = value(circuit, wire) {
            let range = range(circuit.gates.width(wire));
            let _ = writeln!(out, "    wire {range}w{} = {value};", wire.0);
        }
    }
    let _ = writeln!(out, "    assign touch = {};", name(circuit, circuit.touch));
    for (at, wire) in circuit.row.iter().enumerate() {
        let (high, low) = (8 * at + 7, 8 * at);
        let _ = writeln!(
            out,
            "    assign row[{high}:{low}] = {};",
            name(circuit, *wire)
        );
    }
    out.push_str("endmodule\n");
    out
}

/// Core and extraction together.
fn top(circuit: &Circuit, input: &Input) -> String {
    format!(
        "// The sequencer of {name}; its core says what the signals are.
module millrace_sequencer #(
    parameter BUS = {BUS},
    parameter SLOTS = {slots},
    parameter CORES = {cores},
    parameter [63:0] PERIOD = 64'd{period}
) (
    input wire clk,
    input wire reset,
    input wire in_valid,
    output wire in_ready,
    input wire [8*BUS-1:0] in_data,
    input wire [15:0] in_length,
    input wire [15:0] in_port,
    input wire [63:0] in_time,
    input wire now_valid,
    input wire [63:0] now,
    output wire out_valid,
    input wire out_ready,
    output wire [8*BUS-1:0] out_data,
    output wire [15:0] out_bytes,
    output wire out_last,
    output wire [15:0] out_core,
    output wire stopped
);
    localparam WINDOW = {window};
    localparam HEAD = (WINDOW + BUS - 1) / BUS;
    wire [8*HEAD*BUS-1:0] head;
    wire [15:0] length, port;
    wire [63:0] stamp;
    wire touch;
    wire [{row_high}:0] row;

    millrace_extract extract (
        .head(head[8*WINDOW-1:0]), .length(length), .port(port), .stamp(stamp), .touch(touch), .row(row)
    );
    millrace_core #(
        .BUS(BUS), .WINDOW(WINDOW), .ROW({row}), .SLOTS(SLOTS), .CORES(CORES), .TIME({time}), .PERIOD(PERIOD)
    ) core (
        .clk(clk), .reset(reset),
        .in_valid(in_valid), .in_ready(in_ready), .in_data(in_data),
        .in_length(in_length), .in_port(in_port), .in_time(in_time),
        .now_valid(now_valid), .now(now),
        .head(head), .length(length), .port(port), .stamp_next(stamp), .touch(touch), .row(row),
        .out_valid(out_valid), .out_ready(out_ready), .out_data(out_data),
        .out_bytes(out_bytes), .out_last(out_last), .out_core(out_core),
        .stopped(stopped)
    );
endmodule
",
        name = comment_text(&circuit.name),
        slots = input.slots,
        cores = input.cores,
        period = input.period,
        window = circuit.window(),
        row_high = 8 * circuit.row_bytes() - 1,
        row = circuit.row_bytes(),
        time = circuit.time.map_or("-1".into(), |at| at.to_string()),
    )
}

fn bench(circuit: &Circuit, input: &Input) -> String {
    let given = format!(
        "    parameter BUS = {BUS};
    parameter SLOTS = {};
    parameter CORES = {};
    parameter [63:0] PERIOD = 64'd{};
    localparam ROW = {};
",
        input.slots,
        input.cores,
        input.period,
        circuit.row_bytes()
    );
    BENCH.trim_start().replace(
        "module millrace_bench;\n",
        &format!("module millrace_bench;\n{given}"),
    )
}
