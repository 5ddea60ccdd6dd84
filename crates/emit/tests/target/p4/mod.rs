//! The sequencer in P4, by an interpreter of the subset that is printed: it gives the golden captures byte for byte.

mod run;
mod syntax;

use millrace_emit::target::p4::{Layout, P4};
use millrace_emit::target::{Input, Target};

use super::rows::circuit;
use super::verilog::files;
use super::{FUNCTIONS, captures, carriers};
use crate::support::{Bench, facts, nf};

const TICK: u16 = 510;

/// Runs a program over the packets of a golden capture; the first record that it gives otherwise.
fn differs(text: &str, name: &str) -> Option<usize> {
    let program = syntax::read(text);
    let mut switch = run::Switch::new(&program);
    let carriers = carriers(&captures().join(format!("{name}.pcap")));
    for (n, carrier) in carriers.iter().enumerate() {
        // The switch's clock has 48 bits; what is above them the control plane sets.
        let (high, low) = (carrier.stamp >> 48 << 48, carrier.stamp & ((1 << 48) - 1));
        switch
            .registers
            .insert("clock_base".into(), run::bits(u128::from(high), 64));
        let tick = carrier.flags == 2;
        let frame = if tick {
            vec![0xee; 60]
        } else {
            carrier.packet.clone()
        };
        let port = if tick { TICK } else { 0 };
        let found = switch.packet(port, low, &frame);
        if found != Some((carrier.core, carrier.whole.clone())) {
            return Some(n);
        }
    }
    None
}

#[test]
fn the_interpreted_sequencer_gives_the_golden_captures() {
    let bench = Bench::new();
    for (name, slots) in FUNCTIONS {
        let program = nf::load(&bench, name);
        let files = files(&P4, &program, 3, *slots);
        assert_eq!(differs(&files[0].text, name), None, "{name}");
    }
}

/// It can fail: with one constant, one place in the ring or one byte of the row changed.
#[test]
fn the_interpreter_finds_what_differs() {
    let bench = Bench::new();
    let program = nf::load(&bench, "portknock");
    let text = &files(&P4, &program, 3, 12)[0].text;
    for (from, to) in [
        ("16w0x88b5", "16w0x88b6"),
        ("const bit<16> CORES = 16w3", "const bit<16> CORES = 16w4"),
        ("v1[15:0] = row[47:32]", "v1[15:0] = row[31:16]"),
        ("sequence = sequence + 1", "sequence = sequence + 2"),
        ("marks[0:0] = tick ? 1w1 : 1w0", "marks[0:0] = 1w0"),
        ("meta.head[415:408]", "meta.head[407:400]"),
    ] {
        assert!(text.contains(from), "{from}");
        let changed = text.replace(from, to);
        assert!(differs(&changed, "portknock").is_some(), "{from}");
    }
}

/// How many rows fit: those of the paper's programs (44, 29, 11, 9, 6), and no more are taken.
#[test]
fn rows_that_do_not_fit_the_registers_are_refused() {
    let bench = Bench::new();
    for (name, most) in [
        ("ddos", 44),
        ("portknock", 29),
        ("heavyhitter", 11),
        ("tokenbucket", 9),
        ("conntrack", 6),
    ] {
        let program = nf::load(&bench, name);
        let row = 8 * circuit(&program).unwrap().row_bytes();
        assert_eq!(Layout::most(row), most, "{name}");
        let checked = facts(&program);
        let input = |slots| Input {
            program: &program,
            checked: &checked,
            cores: 2,
            slots,
            period: 1 << 38,
        };
        P4.files(&input(most as u16)).unwrap();
        let error = P4.files(&input(most as u16 + 1)).unwrap_err().to_string();
        assert!(error.contains(&format!("in which {most} fit")), "{error}");
    }
}
