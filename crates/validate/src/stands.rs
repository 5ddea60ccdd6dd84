//! The meaning of a path's symbols, from their names and from where the path has them.

use std::collections::BTreeMap;

use millrace_model::expr::{Arena, ExprId, Node, Origin, SymId};
use millrace_model::model::Path;
use millrace_object::program::ObjectId;

use crate::chart::symbols;

/// Meaning of a symbol of a path.
#[derive(Clone, Debug)]
pub(crate) enum Stands {
    /// whether the entry of a place is there
    Present(usize),
    /// whether there was no room for the entry of a place
    Full(usize),
    /// bytes of what a place held before
    Bytes(usize, usize, usize),
    /// the number that the n-th lease of an object gave
    Leased(ObjectId, usize),
    /// whether an object had no number left to lease
    NoneFree(ObjectId),
    /// whether there was no room for the n-th record or prefix of an object
    NoRoom(ObjectId, usize),
    /// whether the n-th prefix that was to be removed from an object was there
    Removed(ObjectId, usize),
    /// the n-th estimate, or class, of an object
    Estimate(ObjectId, usize),
    /// the n-th answer of a helper
    Answer(String, usize),
}

/// The helper of which a symbol is an answer.
fn name(arena: &Arena, e: ExprId) -> Option<&str> {
    match arena.node(e) {
        Node::Sym(s) => Some(arena.symbol(*s).name.rsplit_once('#')?.0),
        _ => None,
    }
}

/// Meanings of a path's symbols.
pub(crate) fn stand(arena: &Arena, path: &Path, own: &[SymId]) -> Vec<(SymId, Stands)> {
    let mut out = Vec::new();
    let answers = |object: ObjectId| {
        path.accesses
            .iter()
            .filter(move |a| a.object == object && a.answer.is_some())
    };
    // Symbols of one helper are numbered in the order of its calls.
    let mut calls: BTreeMap<&str, Vec<(u32, SymId)>> = BTreeMap::new();
    let mut leases: BTreeMap<ObjectId, Vec<(u32, SymId)>> = BTreeMap::new();
    let mut records: BTreeMap<ObjectId, Vec<(u32, SymId)>> = BTreeMap::new();
    let mut removed: BTreeMap<ObjectId, Vec<(u32, SymId)>> = BTreeMap::new();
    for s in own {
        let symbol = arena.symbol(*s);
        let Origin::State(object) = symbol.origin else {
            if let Some((helper, n)) = symbol.name.rsplit_once('#') {
                // Draws that decide nothing of a path count.
                let of_helper = |e: &&ExprId| name(arena, **e).is_some_and(|n| n == helper);
                let mut draws = path.drawn.iter().filter(of_helper);
                if let Some(n) = draws.position(|e| *arena.node(*e) == Node::Sym(*s)) {
                    out.push((*s, Stands::Answer(helper.to_owned(), n)));
                    continue;
                }
                let calls = calls.entry(helper).or_default();
                calls.push((n.parse().unwrap_or(u32::MAX), *s));
            }
            continue;
        };
        let object = ObjectId(object);
        let is_in = |e: &ExprId| symbols(arena, &[*e]).contains(s);
        if let Some(n) = answers(object).position(|a| a.answer.as_ref().is_some_and(is_in)) {
            out.push((*s, Stands::Estimate(object, n)));
            continue;
        }
        let place = path.places.iter().enumerate().find_map(|(i, p)| {
            let rest = symbol.name.strip_prefix(p.stem.as_str())?;
            (p.object == object).then_some(())?;
            match rest {
                ".present" => Some(Stands::Present(i)),
                ".full" => Some(Stands::Full(i)),
                _ => {
                    let range = rest.strip_prefix('[')?.strip_suffix(']')?;
                    let (from, to) = range.split_once("..")?;
                    Some(Stands::Bytes(i, from.parse().ok()?, to.parse().ok()?))
                }
            }
        });
        if let Some(stands) = place {
            out.push((*s, stands));
        } else if let Some((_, n)) = symbol.name.rsplit_once(".leased#") {
            let leases = leases.entry(object).or_default();
            leases.push((n.parse().unwrap_or(u32::MAX), *s));
        } else if symbol.name.ends_with(".full") {
            // A lease that fails touches no entry.
            out.push((*s, Stands::NoneFree(object)));
        } else if let Some((_, n)) = symbol.name.rsplit_once(".full#") {
            let records = records.entry(object).or_default();
            records.push((n.parse().unwrap_or(u32::MAX), *s));
        } else if let Some((_, n)) = symbol.name.rsplit_once(".removed#") {
            let removed = removed.entry(object).or_default();
            removed.push((n.parse().unwrap_or(u32::MAX), *s));
        }
    }
    let numbered = |mut all: Vec<(u32, SymId)>| {
        all.sort_unstable();
        all.into_iter().map(|a| a.1).enumerate()
    };
    for (helper, all) in calls {
        let stands = |n| Stands::Answer(helper.to_owned(), n);
        out.extend(numbered(all).map(|(n, s)| (s, stands(n))));
    }
    for (object, all) in records {
        out.extend(numbered(all).map(|(n, s)| (s, Stands::NoRoom(object, n))));
    }
    for (object, all) in removed {
        out.extend(numbered(all).map(|(n, s)| (s, Stands::Removed(object, n))));
    }
    for (object, all) in leases {
        out.extend(numbered(all).map(|(n, s)| (s, Stands::Leased(object, n))));
    }
    out
}
