//! An arena as it is written, and back: nodes in their order, from which all else follows, and what rules have found out.

use serde::{Deserialize, Serialize};

use super::build::residue::Residue;
use super::{Arena, ExprId, Node, Symbol, walk};

/// Residues that have one remainder of a width, and what it is, by their fingerprint.
type Remainders = Vec<((u64, u32), Vec<(Residue, ExprId)>)>;

/// What is written of it.
#[derive(Serialize, Deserialize)]
pub struct Written {
    symbols: Vec<Symbol>,
    nodes: Vec<(Node, u32)>,
    extracts: Vec<((ExprId, u32, u32), ExprId)>,
    remainders: Remainders,
    congruent: bool,
    rules: u64,
}

impl From<Arena> for Written {
    fn from(arena: Arena) -> Self {
        let entries = arena.entries.into_iter();
        let mut extracts: Vec<_> = arena.extracts.into_iter().collect();
        let mut remainders: Vec<_> = arena.remainders.into_iter().collect();
        // One arena, one text, whatever order a table has.
        extracts.sort_unstable();
        remainders.sort_unstable_by_key(|(of, _)| *of);
        Self {
            symbols: arena.symbols,
            nodes: entries.map(|e| (e.node, e.width)).collect(),
            extracts,
            remainders,
            congruent: arena.congruent,
            rules: arena.effort.rules(),
        }
    }
}

impl TryFrom<Written> for Arena {
    type Error = String;

    /// # Errors
    /// No arena was written so.
    fn try_from(written: Written) -> Result<Self, String> {
        let mut arena = Arena::telling_congruent_sums(written.congruent);
        for symbol in written.symbols {
            let key = (symbol.name.clone(), symbol.width, symbol.origin);
            let id = super::SymId(arena.symbols.len() as u32);
            if arena.names.insert(key, id).is_some() {
                return Err(format!("symbol {} is there twice", symbol.name));
            }
            arena.symbols.push(symbol);
        }
        for (at, (node, width)) in written.nodes.into_iter().enumerate() {
            let mut known = (1..=64).contains(&width);
            walk::each_child(&node, |child| known &= (child.0 as usize) < at);
            if let Node::Sym(symbol) = node {
                known &= (symbol.0 as usize) < arena.symbols.len();
            }
            if !known || arena.add(node, width).0 as usize != at {
                return Err(format!("expression {at} is none"));
            }
        }
        let made = |e: ExprId| (e.0 as usize) < arena.entries.len();
        let extracts = written.extracts.iter();
        let remainders = written.remainders.iter().flat_map(|(_, of)| of);
        if !extracts
            .into_iter()
            .all(|((of, ..), is)| made(*of) && made(*is))
            || !remainders.into_iter().all(|(_, is)| made(*is))
        {
            return Err("a rule's result is no expression of it".to_owned());
        }
        arena.extracts = written.extracts.into_iter().collect();
        arena.remainders = written.remainders.into_iter().collect();
        arena.effort.set_rules(written.rules);
        Ok(arena)
    }
}
