//! The text.

use std::fmt::Write;

use millrace_history::circuit::{Circuit, Gate, Wire};

use super::{BITS, Layout, REGISTERS, STAGES, lengths};
use crate::codegen::comment_text;
use crate::target::Input;

fn name(circuit: &Circuit, wire: Wire) -> String {
    match circuit.gates.gate(wire) {
        Gate::Number(n) => format!("{}w{n:#x}", circuit.gates.width(wire)),
        Gate::Length => "meta.length".into(),
        Gate::Port => "port".into(),
        Gate::Time => "stamp".into(),
        _ => format!("w{}", wire.0),
    }
}

/// How wide a wire's name is.
fn width(circuit: &Circuit, wire: Wire) -> u32 {
    match circuit.gates.gate(wire) {
        Gate::Length | Gate::Port => 16,
        Gate::Time => 64,
        _ => circuit.gates.width(wire),
    }
}

/// A wire as so many bits.
fn cast(circuit: &Circuit, wire: Wire, bits: u32) -> String {
    match circuit.gates.gate(wire) {
        Gate::Number(n) => {
            let low = u64::MAX >> (64 - bits.clamp(1, 64));
            format!("{bits}w{:#x}", n & low)
        }
        _ if width(circuit, wire) == bits => name(circuit, wire),
        _ => format!("(bit<{bits}>){}", name(circuit, wire)),
    }
}

fn value(circuit: &Circuit, wire: Wire) -> Option<String> {
    let bits = width(circuit, wire);
    Some(match circuit.gates.gate(wire) {
        Gate::Number(_) | Gate::Length | Gate::Port | Gate::Time => return None,
        Gate::Byte(at) => byte(circuit, *at),
        Gate::Shl(a, b) => format!("{} << {}", cast(circuit, *a, bits), name(circuit, *b)),
        Gate::Shr(a, b) => format!(
            "(bit<{bits}>)({} >> {})",
            name(circuit, *a),
            name(circuit, *b)
        ),
        Gate::Bits(a, from, count) => format!("{}[{}:{from}]", name(circuit, *a), from + count - 1),
        Gate::Concat(parts) => {
            let have: u32 = parts.iter().map(|(_, b)| b).sum();
            let all: Vec<String> = parts
                .iter()
                .rev()
                .map(|(w, b)| cast(circuit, *w, *b))
                .collect();
            let all = all.join(" ++ ");
            match have == bits {
                true => all,
                false => format!("(bit<{bits}>)({all})"),
            }
        }
        Gate::Select(c, a, b) => format!(
            "({} == 1w1) ? {} : {}",
            name(circuit, *c),
            cast(circuit, *a, bits),
            cast(circuit, *b, bits)
        ),
        gate => {
            let (sign, a, b) = gate.infix()?;
            let compares = matches!(gate, Gate::Equal(..) | Gate::Less(..));
            let wide = match compares {
                true => width(circuit, a).max(width(circuit, b)),
                false => bits,
            };
            let both = format!(
                "{} {sign} {}",
                cast(circuit, a, wide),
                cast(circuit, b, wide)
            );
            match compares {
                true => format!("({both}) ? 1w1 : 1w0"),
                false => both,
            }
        }
    })
}

/// A byte of the packet, where its offset has few values.
fn byte(circuit: &Circuit, at: Wire) -> String {
    let window = circuit.window();
    let place = |n: u64| {
        let low = 8 * (window - 1 - n as usize);
        format!("meta.head[{}:{low}]", low + 7)
    };
    if let Some(n) = circuit.gates.constant(at) {
        return place(n);
    }
    let values = circuit.gates.values(at).cloned().unwrap_or_default();
    let bits = width(circuit, at);
    let last = values.last().copied().unwrap_or(0);
    let mut text = String::new();
    let mut open = 0;
    for n in values.iter().filter(|n| **n != last) {
        let _ = write!(
            text,
            "({} == {bits}w{n}) ? {} : (",
            name(circuit, at),
            place(*n)
        );
        open += 1;
    }
    format!("{text}{}{}", place(last), ")".repeat(open))
}

/// The whole program.
pub fn program(input: &Input, circuit: &Circuit, layout: Layout) -> String {
    let mut out = head(input, circuit, layout);
    out.push_str(&parser(circuit));
    out.push_str(&ingress(input, circuit, layout));
    out.push_str(TAIL);
    out
}

fn head(input: &Input, circuit: &Circuit, layout: Layout) -> String {
    let most = Layout::most(layout.row);
    let marks = layout.slots.div_ceil(8);
    let mut out = format!(
        "/* {}: emitted by millrace, target p4 (docs/targets.md). Not compiled: run by the interpreter of its tests.
 *
 * A row has {} bits. In {} registers of {BITS} bits ({} stages of {REGISTERS}, behind the first) {most} such rows fit; this
 * ring has {}, in {} registers:
 *
",
        comment_text(&circuit.name),
        layout.row,
        (STAGES - 1) * REGISTERS,
        STAGES - 1,
        layout.slots,
        layout.words()
    );
    for word in 0..layout.words() {
        let mut held = Vec::new();
        for slot in 0..layout.slots {
            for piece in layout.pieces(slot).iter().filter(|p| p.word == word) {
                let low = piece.from + 1 - piece.bits;
                held.push(format!("bits {}:{low} of slot {slot}", piece.from));
            }
        }
        let _ = writeln!(
            out,
            " *   stage {:2}, register {}: word{word}, {}",
            Layout::stage(word),
            word % REGISTERS,
            held.join(", ")
        );
    }
    let _ = write!(
        out,
        " *
 * A register that two rows share is written under a mask.
 */
#include <core.p4>
#include <v1model.p4>

const bit<64> PERIOD = 64w{}; // of heartbeats, ns
const bit<16> CORES = 16w{};
const bit<16> SLOTS = 16w{};
const bit<32> PREFIX = 32w{};
const bit<9> TICK = 9w510; // the port by which frames come that become heartbeats, one for each core

header carrier_t {{
    bit<32> to;
    bit<16> core;
    bit<32> from;
    bit<16> port;
    bit<16> type;
    bit<4> version;
    bit<4> flags;
    bit<8> slots;
    bit<8> row_bytes;
    bit<8> index;
    bit<64> sequence;
    bit<64> stamp;
    bit<{}> marks;
",
        input.period,
        input.cores,
        input.slots,
        34 + marks + layout.slots * layout.row / 8,
        8 * marks
    );
    for slot in 0..layout.slots {
        let _ = writeln!(out, "    bit<{}> row{slot};", layout.row);
    }
    let _ = write!(
        out,
        "}}

struct headers {{
    carrier_t carrier;
}}

struct metadata {{
    bit<16> length;
    bit<{}> head; // the packet's first bytes, as far as they are there
}}
",
        8 * circuit.window()
    );
    out
}

/// Looks at the packet's first bytes, and takes none: the packet stays whole behind the carrier.
fn parser(circuit: &Circuit) -> String {
    let window = circuit.window();
    let lengths = lengths(circuit);
    let mut out = String::from(
        "
parser looking(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start {
        meta.length = (bit<16>)standard.packet_length;
        meta.head = 0;
        transition select(meta.length) {
",
    );
    for (at, from) in lengths.iter().enumerate() {
        let to = lengths.get(at + 1).map_or(0xffff, |n| n - 1);
        let _ = writeln!(out, "            16w{from} .. 16w{to}: head{from};");
    }
    out.push_str("            default: accept;\n        }\n    }\n");
    for from in &lengths {
        let (bits, rest) = (8 * from, 8 * (window - from));
        let zeros = match rest {
            0 => String::new(),
            rest => format!(" ++ {rest}w0"),
        };
        let _ = write!(
            out,
            "    state head{from} {{
        meta.head = packet.lookahead<bit<{bits}>>(){zeros};
        transition accept;
    }}
"
        );
    }
    out.push_str("}\n");
    out
}

fn ingress(input: &Input, circuit: &Circuit, layout: Layout) -> String {
    let _ = input;
    let words = layout.words();
    let mut out = String::from(
        "
control checking(inout headers hdr, inout metadata meta) {
    apply { }
}

control sequencing(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    register<bit<64>>(1) clock_base; // what is added to the switch's clock, ns; the control plane sets it
    register<bit<64>>(1) sequence_;
    register<bit<64>>(1) row_time_;
    register<bit<64>>(1) stamp_;
    register<bit<16>>(1) turn_;
    register<bit<16>>(1) index_; // sequence mod SLOTS
    register<bit<16>>(1) beats_; // cores that still have no copy of the last heartbeat
    register<bit<64>>(1) marks_;
",
    );
    for word in 0..words {
        let _ = writeln!(out, "    register<bit<{BITS}>>(1) word{word};");
    }
    out.push_str(
        "
    apply {
        @atomic {
            bit<16> port = (bit<16>)standard.ingress_port;
            bit<64> base = 0;
            bit<64> sequence = 0;
            bit<64> row_time = 0;
            bit<64> last = 0;
            bit<16> turn = 0;
            bit<16> index = 0;
            bit<16> beats = 0;
            bit<64> marks = 0;
            clock_base.read(base, 0);
            sequence_.read(sequence, 0);
            row_time_.read(row_time, 0);
            stamp_.read(last, 0);
            turn_.read(turn, 0);
            index_.read(index, 0);
            beats_.read(beats, 0);
            marks_.read(marks, 0);
            bit<64> now = base + (bit<64>)standard.ingress_global_timestamp;
            bit<64> stamp = (now > last) ? now : last;
            bit<64> due = row_time + PERIOD;
            bool tick = standard.ingress_port == TICK;

            // the row
",
    );
    for wire in circuit.live() {
        if let Some(value) = value(circuit, wire) {
            let _ = writeln!(
                out,
                "            bit<{}> w{} = {value};",
                width(circuit, wire),
                wire.0
            );
        }
    }
    let _ = write!(
        out,
        "            bool touch = {} == 1w1 && !tick;

            // step() of crates/steer
            bool refused = false;
            bit<16> core = turn;
            if (tick) {{
                if (beats == 0) {{
                    if (sequence == 0 || due > now) {{
                        refused = true;
                    }} else {{
                        beats = CORES;
                        stamp = due;
                    }}
                }} else {{
                    stamp = last;
                }}
                core = CORES - beats;
            }} else {{
                if (beats != 0 || (sequence != 0 && due <= stamp)) {{
                    refused = true;
                }}
            }}
            bool steps = touch || (tick && core == 0);
            if (steps && sequence == 64w0xfffffffffffffffe) {{
                refused = true;
                beats = 0;
            }}
",
        cast(circuit, circuit.touch, 1)
    );
    for word in 0..words {
        let _ = writeln!(out, "            bit<{BITS}> v{word} = 0;");
    }
    for word in 0..words {
        let _ = writeln!(out, "            word{word}.read(v{word}, 0);");
    }
    out.push_str("            if (!refused && steps) {\n");
    let row = row(circuit);
    let _ = writeln!(out, "                bit<{}> row = {row};", layout.row);
    out.push_str("                if (tick) {\n");
    let _ = writeln!(out, "                    row = {};", beat(circuit));
    out.push_str("                }\n");
    for slot in 0..layout.slots {
        let keyword = if slot == 0 { "if" } else { "} else if" };
        let _ = writeln!(out, "                {keyword} (index == 16w{slot}) {{");
        for p in layout.pieces(slot) {
            let _ = writeln!(
                out,
                "                    v{}[{}:{}] = row[{}:{}];",
                p.word,
                p.high,
                p.high + 1 - p.bits,
                p.from,
                p.from + 1 - p.bits
            );
        }
        let _ = writeln!(
            out,
            "                    marks[{slot}:{slot}] = tick ? 1w1 : 1w0;"
        );
    }
    out.push_str(
        "                }
                sequence = sequence + 1;
                row_time = stamp;
                index = (index + 1 == SLOTS) ? 16w0 : index + 1;
            }
            if (refused) {
                mark_to_drop(standard);
            } else {
                if (tick) {
                    beats = beats - 1;
                } else {
                    turn = (turn + 1 == CORES) ? 16w0 : turn + 1;
                }
                last = stamp;
            }
            sequence_.write(0, sequence);
            row_time_.write(0, row_time);
            stamp_.write(0, last);
            turn_.write(0, turn);
            index_.write(0, index);
            beats_.write(0, beats);
            marks_.write(0, marks);
",
    );
    for word in 0..words {
        let _ = writeln!(out, "            word{word}.write(0, v{word});");
    }
    let marks = layout.slots.div_ceil(8);
    // The first slot's mark is the lowest bit of the first byte.
    let shown: Vec<String> = (0..marks)
        .map(|b| format!("marks[{}:{}]", 8 * b + 7, 8 * b))
        .collect();
    let _ = write!(
        out,
        "
            // the prefix
            hdr.carrier.setValid();
            hdr.carrier.to = 32w0x024d5200;
            hdr.carrier.core = core;
            hdr.carrier.from = 32w0x024d5201;
            hdr.carrier.port = tick ? 16w0 : port;
            hdr.carrier.type = 16w0x88b5;
            hdr.carrier.version = 4w1;
            hdr.carrier.flags = tick ? 4w2 : (touch ? 4w1 : 4w0);
            hdr.carrier.slots = 8w{};
            hdr.carrier.row_bytes = 8w{};
            hdr.carrier.index = (bit<8>)index;
            hdr.carrier.sequence = sequence;
            hdr.carrier.stamp = stamp;
            hdr.carrier.marks = {};
",
        layout.slots,
        layout.row / 8,
        shown.join(" ++ ")
    );
    for slot in 0..layout.slots {
        let pieces = layout.pieces(slot);
        let parts: Vec<String> = pieces
            .iter()
            .map(|p| format!("v{}[{}:{}]", p.word, p.high, p.high + 1 - p.bits))
            .collect();
        let _ = writeln!(
            out,
            "            hdr.carrier.row{slot} = {};",
            parts.join(" ++ ")
        );
    }
    out.push_str(
        "            standard.egress_spec = (bit<9>)core;
            if (tick) {
                truncate(PREFIX);
            }
        }
    }
}
",
    );
    out
}

/// The row's bytes, the first the highest; the time is the stamp's.
fn row(circuit: &Circuit) -> String {
    let bytes = circuit
        .row
        .iter()
        .enumerate()
        .map(|(at, wire)| match circuit.time {
            Some(time) if (time..time + 5).contains(&at) => {
                let low = 8 * (4 - (at - time));
                format!("stamp[{}:{low}]", low + 7)
            }
            _ => cast(circuit, *wire, 8),
        });
    bytes.collect::<Vec<_>>().join(" ++ ")
}

/// A heartbeat's.
fn beat(circuit: &Circuit) -> String {
    let bytes = (0..circuit.row_bytes()).map(|at| match circuit.time {
        Some(time) if (time..time + 5).contains(&at) => {
            let low = 8 * (4 - (at - time));
            format!("stamp[{}:{low}]", low + 7)
        }
        _ => "8w0".into(),
    });
    bytes.collect::<Vec<_>>().join(" ++ ")
}

const TAIL: &str = "
control leaving(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply { }
}

control summing(inout headers hdr, inout metadata meta) {
    apply { }
}

control writing(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.carrier);
    }
}

V1Switch(looking(), checking(), sequencing(), leaving(), summing(), writing()) main;
";
