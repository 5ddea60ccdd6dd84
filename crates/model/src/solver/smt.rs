//! A question as SMT-LIB 2 text.

use std::fmt::Write;

use crate::expr::walk::cone;
use crate::expr::{Arena, Bin, ExprId, Node, Rel};

/// A question, and what to ask for when it holds.
pub struct Query {
    /// declarations, definitions and assertions
    pub text: String,
    /// the symbols and packet bytes in it
    pub leaves: Vec<ExprId>,
}

/// Writes a question in the logic of bit-vectors (QF_BV): all of these hold, and the bytes of each pair
/// are equal if their offsets are.
#[must_use]
pub fn query(arena: &Arena, all: &[ExprId], lemmas: &[(ExprId, ExprId)]) -> Query {
    let roots: Vec<ExprId> = all
        .iter()
        .copied()
        .chain(lemmas.iter().flat_map(|l| [l.0, l.1]))
        .collect();
    let ids = cone(arena, &roots, |_| false);
    let mut text = String::new();
    let mut leaves = Vec::new();
    for id in &ids {
        let (width, n) = (arena.width(*id), id.0);
        let leaf = match arena.node(*id) {
            Node::Sym(s) => {
                // Names hold those of maps, which are whatever an object says: a line of theirs would be a
                // command.
                let name = arena.symbol(*s).name.escape_default();
                Some(format!("; {name}"))
            }
            Node::Byte { base: None, at } => Some(format!("; byte {at}")),
            Node::Byte { base: Some(b), at } => Some(format!("; byte {at} after e{}", b.0)),
            _ => None,
        };
        if let Some(comment) = leaf {
            leaves.push(*id);
            let _ = writeln!(text, "{comment}\n(declare-const e{n} (_ BitVec {width}))");
        } else {
            let as_what = definition(arena, *id);
            let _ = writeln!(text, "(define-fun e{n} () (_ BitVec {width}) {as_what})");
        }
    }
    for e in all {
        let _ = writeln!(text, "(assert (= e{} #b1))", e.0);
    }
    for (a, b) in lemmas {
        let _ = writeln!(
            text,
            "(assert (=> (= {} {}) (= e{} e{})))",
            offset(arena, *a),
            offset(arena, *b),
            a.0,
            b.0
        );
    }
    Query { text, leaves }
}

/// Where a packet byte is, in 16 bits.
fn offset(arena: &Arena, byte: ExprId) -> String {
    match arena.node(byte) {
        Node::Byte { base: Some(b), at } => format!(
            "((_ extract 15 0) (bvadd e{} (_ bv{} 64)))",
            b.0, *at as u64
        ),
        Node::Byte { base: None, at } => format!("(_ bv{} 16)", *at as u64 & 0xffff),
        _ => "(_ bv0 16)".to_owned(),
    }
}

fn definition(arena: &Arena, id: ExprId) -> String {
    let width = arena.width(id);
    match arena.node(id) {
        Node::Const(c) => format!("(_ bv{c} {width})"),
        // Declared, not defined.
        Node::Sym(_) | Node::Byte { .. } => format!("e{}", id.0),
        Node::Concat(parts) => {
            let names: Vec<String> = parts.iter().map(|p| format!("e{}", p.0)).collect();
            format!("(concat {})", names.join(" "))
        }
        Node::Extract { of, low } => format!("((_ extract {} {low}) e{})", low + width - 1, of.0),
        Node::SignExtend(x) => format!("((_ sign_extend {}) e{})", width - arena.width(*x), x.0),
        Node::Ite(c, x, y) => format!("(ite (= e{} #b1) e{} e{})", c.0, x.0, y.0),
        Node::Cmp(rel, x, y) => {
            let op = match rel {
                Rel::Eq => "=",
                Rel::Less => "bvult",
                Rel::SignedLess => "bvslt",
            };
            format!("(ite ({op} e{} e{}) #b1 #b0)", x.0, y.0)
        }
        Node::Bin(op, x, y) => binary(*op, *x, *y, width),
    }
}

fn binary(op: Bin, x: ExprId, y: ExprId, width: u32) -> String {
    let (x, y) = (x.0, y.0);
    let plain = |name: &str| format!("({name} e{x} e{y})");
    let zero = format!("(_ bv0 {width})");
    match op {
        Bin::Add => plain("bvadd"),
        Bin::Mul => plain("bvmul"),
        Bin::And => plain("bvand"),
        Bin::Or => plain("bvor"),
        Bin::Xor => plain("bvxor"),
        Bin::Shl => plain("bvshl"),
        Bin::Shr => plain("bvlshr"),
        Bin::Sar => plain("bvashr"),
        // SMT-LIB divides by zero to all ones; BPF says 0, and its remainder is what SMT-LIB says.
        Bin::Div => format!("(ite (= e{y} {zero}) {zero} (bvudiv e{x} e{y}))"),
        Bin::SignedDiv => format!("(ite (= e{y} {zero}) {zero} (bvsdiv e{x} e{y}))"),
        Bin::Rem => plain("bvurem"),
        Bin::SignedRem => plain("bvsrem"),
        Bin::MulHigh => format!(
            "((_ extract {} {width}) (bvmul ((_ zero_extend {width}) e{x}) ((_ zero_extend {width}) e{y})))",
            2 * width - 1
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::query;
    use crate::expr::{Arena, Origin};

    #[test]
    fn a_name_cannot_become_a_command() {
        let mut arena = Arena::default();
        let hostile = "map\n(set-option :regular-output-channel \"/tmp/x\")\r#1";
        let flag = arena.sym(hostile, 1, Origin::Random);
        let text = query(&arena, &[flag], &[]).text;
        let commands = ["; ", "(declare-const ", "(define-fun ", "(assert "];
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            assert!(commands.iter().any(|c| line.starts_with(c)), "{text}");
        }
    }
}
