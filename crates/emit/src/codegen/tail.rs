//! Tail calls: a program ends with another one of the module, which gives the verdict.
//!
//! `tail` is one function with every program inlined. A chain of them nests at most
//! `MR_TAIL_CALLS` deep, the kernel's limit, which the instance counts; packets begin at 0.

use std::fmt::Write;

use millrace_object::helper::{Helper, TAIL_AWAY, TAIL_CALL};

use super::c::{Code, Statement};
use super::module::{Entry, takes_packets};
use crate::c;

/// Whether a program makes tail calls.
pub fn among(helpers: &[&Helper]) -> bool {
    helpers.iter().any(|h| is(h) || is_away(h))
}

/// Whether functions make tail calls, so that programs must leave their verdicts behind.
pub fn away_among(helpers: &[&Helper]) -> bool {
    helpers.iter().any(|h| is_away(h))
}

/// Whether this is the helper for tail calls in functions.
pub fn is_away(helper: &Helper) -> bool {
    helper.number == TAIL_AWAY.number
}

/// Whether this is the helper.
pub fn is(helper: &Helper) -> bool {
    helper.number == TAIL_CALL.number
}

/// What the instance counts with.
pub const MEMBER: &str = "u32 tail_calls; /* so far, of the packet at hand */";

/// Where programs leave their verdicts, if functions make tail calls.
pub const VERDICT: &str = "u64 verdict; /* of the program that ended last */";

/// What a packet begins with.
pub const BEGIN: &str = "self->tail_calls = 0;";

/// Before the programs.
pub const DECLARATION: &str =
    "\nstatic void tail(struct mr_instance *self, struct mr_packet *pkt, u64 next);\n";

/// In a program: `lookup` gives the next one's number or 0.
pub fn statements(lookup: &Code) -> Vec<Statement> {
    called(lookup, &["return;"])
}

/// In a function: `lookup` gives the next program's number or 0; `gone` becomes what `tail_away` says.
pub fn statements_away(lookup: &Code) -> Vec<Statement> {
    let mut out = called(lookup, &["gone = 1ull << 32 | (u32)self->verdict;"]);
    out.insert(1, "u64 gone = 0;".into());
    out
}

fn called(lookup: &Code, then: &[&str]) -> Vec<Statement> {
    let call = ["self->tail_calls++;", "tail(self, pkt, next);"];
    let call = call.iter().chain(then).map(|s| Statement::from(*s));
    vec![
        c!("const u64 next = {};", lookup).into(),
        "".into(),
        Statement::Block(
            "if (next && self->tail_calls < MR_TAIL_CALLS)".into(),
            call.collect(),
        ),
    ]
}

/// Behind the programs.
pub fn dispatch(entries: &[Entry], away: bool) -> String {
    let mut out = String::from(
        "\n/* The program with this number, from 1. */\nstatic __attribute__((noinline)) void tail(struct mr_instance *self, struct mr_packet *pkt, u64 next)\n{\n\tswitch (next) {\n",
    );
    let programs = entries.iter().filter(|e| takes_packets(e.role));
    for (number, entry) in (1..).zip(programs) {
        let slot = if entry.slotted { ", NULL" } else { "" };
        let _ = writeln!(
            out,
            "\tcase {number}:\n\t\t{}(self, pkt{slot});\n\t\tbreak;",
            entry.function
        );
    }
    out.push_str("\tdefault:\n");
    if away {
        out.push_str("\t\tself->verdict = MR_XDP_ABORTED;\n");
    }
    out.push_str("\t\tmr_verdict_xdp(pkt, MR_XDP_ABORTED);\n\t\tbreak;\n\t}\n}\n");
    out
}
