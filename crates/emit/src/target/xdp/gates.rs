//! The circuit of a row in C.

use std::fmt::Write;

use millrace_history::circuit::{Circuit, Gate, Wire};

fn name(circuit: &Circuit, wire: Wire) -> String {
    match circuit.gates.gate(wire) {
        Gate::Number(n) => format!("{n:#x}ull"),
        Gate::Length => "(u64)length".into(),
        Gate::Port => "(u64)port".into(),
        _ => format!("w{}", wire.0),
    }
}

fn value(circuit: &Circuit, wire: Wire) -> Option<String> {
    let of = |w: &Wire| name(circuit, *w);
    Some(match circuit.gates.gate(wire) {
        Gate::Number(_) | Gate::Length | Gate::Port => return None,
        // The target refuses it.
        Gate::Time => "0".into(),
        Gate::Byte(at) => match circuit.gates.constant(*at) {
            Some(n) => format!("head[{n}]"),
            None => format!("head[{} & (HEAD - 1)]", of(at)),
        },
        Gate::Bits(a, from, bits) => {
            let mask = u64::MAX >> (64 - bits.clamp(&1, &64));
            format!("{} >> {from} & {mask:#x}", of(a))
        }
        Gate::Concat(parts) => {
            let (mut at, mut all) = (0, Vec::new());
            for (wire, bits) in parts {
                if circuit.gates.constant(*wire) != Some(0) {
                    all.push(format!("{} << {at}", of(wire)));
                }
                at += bits;
            }
            all.join(" | ")
        }
        Gate::Select(c, a, b) => format!("{} ? {} : {}", of(c), of(a), of(b)),
        gate => {
            let (sign, a, b) = gate.infix()?;
            format!("{} {sign} {}", of(&a), of(&b))
        }
    })
}

/// The function that takes a row from a packet's first bytes, zeros behind its end; 0: it has none.
pub fn extract(circuit: &Circuit) -> String {
    let mut out = format!(
        "/* The row of a packet, {} bits; 0: it has none. `head` holds its first WINDOW bytes, zeros behind its end. */\n",
        circuit.bits
    );
    out.push_str("INLINE u64 extract(const u8 *head, u32 length, u32 port, u8 *row)\n{\n");
    for wire in circuit.live() {
        if let Some(value) = value(circuit, wire) {
            let _ = writeln!(out, "\tconst u64 w{} = {value};", wire.0);
        }
    }
    out.push('\n');
    for (at, wire) in circuit.row.iter().enumerate() {
        let _ = writeln!(out, "\trow[{at}] = {};", name(circuit, *wire));
    }
    let _ = writeln!(
        out,
        "\t(void)port;\n\treturn {};\n}}",
        name(circuit, circuit.touch)
    );
    out
}
