//! A question as SMT-LIB 2 text.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::expr::walk::cone;
use crate::expr::{Arena, Bin, ExprId, Node, Rel, SymId};

/// A question, and what to ask for when it holds.
pub struct Query {
    /// declarations, definitions and assertions
    pub text: String,
    /// symbols in it
    pub symbols: Vec<SymId>,
    /// constant offsets of packet bytes in it
    pub bytes: Vec<i64>,
    /// bytes at offsets that are no constants: the base's and the byte's definitions
    pub far: Vec<ExprId>,
}

impl Query {
    /// The logic that it is in: arrays only where a byte's offset is no constant.
    #[must_use]
    pub fn logic(&self) -> &'static str {
        if self.far.is_empty() {
            "QF_BV"
        } else {
            "QF_ABV"
        }
    }
}

/// Writes a question.
#[must_use]
pub fn query(arena: &Arena, all: &[ExprId]) -> Query {
    let ids = cone(arena, all, |_| false);
    let mut symbols = BTreeSet::new();
    let mut bytes = BTreeSet::new();
    let mut far = Vec::new();
    for id in &ids {
        match arena.node(*id) {
            Node::Sym(s) => {
                symbols.insert(*s);
            }
            Node::Byte { base: None, at } => {
                bytes.insert(*at);
            }
            Node::Byte { .. } => far.push(*id),
            _ => {}
        }
    }
    let mut text = String::new();
    for s in &symbols {
        let symbol = arena.symbol(*s);
        // Names hold those of maps, which are whatever an object says: a line of theirs would be a command.
        let _ = writeln!(text, "; {}", symbol.name.escape_default());
        let _ = writeln!(text, "(declare-const s{} (_ BitVec {}))", s.0, symbol.width);
    }
    if far.is_empty() {
        for at in &bytes {
            let _ = writeln!(text, "(declare-const p{at} (_ BitVec 8))");
        }
    } else {
        text.push_str("(declare-const pkt (Array (_ BitVec 16) (_ BitVec 8)))\n");
        for at in &bytes {
            let _ = writeln!(
                text,
                "(define-fun p{at} () (_ BitVec 8) (select pkt (_ bv{} 16)))",
                *at as u64 & 0xffff
            );
        }
    }
    for id in &ids {
        let _ = writeln!(
            text,
            "(define-fun e{} () (_ BitVec {}) {})",
            id.0,
            arena.width(*id),
            definition(arena, *id)
        );
    }
    for e in all {
        let _ = writeln!(text, "(assert (= e{} #b1))", e.0);
    }
    Query {
        text,
        symbols: symbols.into_iter().collect(),
        bytes: bytes.into_iter().collect(),
        far,
    }
}

fn definition(arena: &Arena, id: ExprId) -> String {
    let width = arena.width(id);
    match arena.node(id) {
        Node::Const(c) => format!("(_ bv{c} {width})"),
        Node::Sym(s) => format!("s{}", s.0),
        Node::Byte { base: None, at } => format!("p{at}"),
        Node::Byte { base: Some(b), at } => format!(
            "(select pkt ((_ extract 15 0) (bvadd e{} (_ bv{} 64))))",
            b.0, *at as u64
        ),
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
        let text = query(&arena, &[flag]).text;
        let commands = ["; ", "(declare-const ", "(define-fun ", "(assert "];
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            assert!(commands.iter().any(|c| line.starts_with(c)), "{text}");
        }
    }
}
