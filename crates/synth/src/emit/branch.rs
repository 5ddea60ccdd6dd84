//! Branches as C: comparisons of a field that was read once, and proofs that headers are there.

use std::collections::BTreeMap;

use super::{Emitter, Known, MOST_COMPARED, condition};
use crate::diagram::Id;
use crate::field::Var;

impl Emitter<'_> {
    pub(super) fn branch(&mut self, var: Var, kids: &[(u64, Id)], known: Known, depth: usize) {
        let origin = kids
            .iter()
            .skip(1)
            .chain(kids.first())
            .find_map(|k| self.of.origins.get(&(var, k.0)).copied());
        if let Some(element) = origin {
            self.at(element);
        }
        match var {
            Var::Length => return self.lengths(kids, depth),
            Var::Checked(at, sum) => return self.checked(at, sum, kids, known, depth),
            Var::Room(at, cut) => return self.rooms((at, cut), kids, known, depth),
            _ => {}
        }
        let (ranges, held) = self.graded(var, kids, known, depth);
        let left: Vec<(u64, Id)> = ranges.iter().map(|r| (r.0, r.2)).collect();
        let kids = left.as_slice();
        let value = match &held {
            Some(name) => name.clone(),
            None => self.read(var, known, depth),
        };
        if kids.len() > MOST_COMPARED {
            let name = held.unwrap_or_else(|| self.local(var, &value, depth));
            return self.halves(&name, var, kids, depth);
        }
        // The default is what most intervals lead to, and of these what needs most code.
        let mut groups: BTreeMap<Id, Vec<(u64, u64)>> = BTreeMap::new();
        for (first, last, id) in ranges {
            groups.entry(id).or_default().push((first, last));
        }
        let weight = |id: &Id| self.of.store.reachable(*id).len();
        let default = groups
            .iter()
            .max_by_key(|(id, ranges)| (ranges.len(), weight(id)))
            .map(|g| *g.0);
        let Some(default) = default else {
            return;
        };
        let tests: usize = groups
            .iter()
            .filter(|g| *g.0 != default)
            .map(|g| g.1.len())
            .sum();
        let value = match held.is_none() && (tests > 1 || groups.values().flatten().count() > 3) {
            true => self.local(var, &value, depth),
            false => value,
        };
        let mut rest: Vec<_> = groups.into_iter().filter(|g| g.0 != default).collect();
        rest.sort_by_key(|g| g.1.first().copied());
        for (id, ranges) in rest {
            let test = condition::any(var, &value, &ranges);
            self.say(depth, &format!("if ({test}) {{"));
            self.block(id, depth + 1, false);
            self.say(depth, "}");
        }
        self.block(default, depth, false);
    }

    /// A search by halves.
    pub(super) fn halves(&mut self, name: &str, var: Var, kids: &[(u64, Id)], depth: usize) {
        if kids.iter().all(|k| Some(k.1) == kids.first().map(|f| f.1)) {
            if let Some((_, id)) = kids.first() {
                self.block(*id, depth, false);
            }
            return;
        }
        let (below, above) = kids.split_at(kids.len() / 2);
        let cut = above.first().map_or(0, |k| k.0);
        let cut = condition::number(var, cut);
        self.say(depth, &format!("if ({name} < {cut}) {{"));
        self.halves(name, var, below, depth + 1);
        self.say(depth, "}");
        self.halves(name, var, above, depth);
    }

    /// A variable with a field's value.
    pub(super) fn local(&mut self, var: Var, value: &str, depth: usize) -> String {
        let name = condition::name(var);
        let kind = if var.most() > u64::from(u32::MAX) {
            "__u64"
        } else {
            "__u32"
        };
        self.locals.insert(name.clone(), kind);
        self.say(depth, &format!("{name} = {value};"));
        name
    }

    pub(super) fn lengths(&mut self, kids: &[(u64, Id)], depth: usize) {
        for pair in kids.windows(2) {
            let [(_, shorter), (bytes, _)] = pair else {
                continue;
            };
            self.locals.insert("*longer".into(), "__u8");
            self.say(depth, &format!("longer = packet_bytes(p, 0, {bytes});"));
            self.say(depth, "if (!longer) {");
            self.block(*shorter, depth + 1, false);
            self.say(depth, "}");
            self.say(depth, "frame = longer;");
            self.locals.insert("*frame".into(), "__u8");
        }
        if let Some((_, last)) = kids.last() {
            self.block(*last, depth, false);
        }
    }

    pub(super) fn checked(
        &mut self,
        at: u16,
        sum: bool,
        kids: &[(u64, Id)],
        known: Known,
        depth: usize,
    ) {
        let [(_, wrong), (_, right)] = kids else {
            return;
        };
        self.locals.insert("*frame".into(), "__u8");
        self.locals.insert("*ip".into(), "struct ipv4");
        let bytes = u32::from(at) + 20;
        let function = if sum { "ipv4_at" } else { "ipv4_without_sum" };
        self.needs.loose |= !sum;
        let check = format!("ip = {function}(p, {at});");
        if known.frame < bytes {
            self.say(depth, &format!("longer = packet_bytes(p, 0, {bytes});"));
            self.locals.insert("*longer".into(), "__u8");
            self.say(depth, "if (!longer) {");
            self.block(*wrong, depth + 1, false);
            self.say(depth, "}");
            self.say(depth, &check);
            self.say(depth, "if (!ip) {");
            self.block(*wrong, depth + 1, false);
            self.say(depth, "}");
            self.say(depth, "frame = longer;");
        } else {
            self.say(depth, &check);
            self.say(depth, "if (!ip) {");
            self.block(*wrong, depth + 1, false);
            self.say(depth, "}");
        }
        self.block(*right, depth, false);
    }

    pub(super) fn rooms(
        &mut self,
        (at, cut): (u16, bool),
        kids: &[(u64, Id)],
        known: Known,
        depth: usize,
    ) {
        self.locals.insert("*upper".into(), "__u8");
        self.locals.insert("*more".into(), "__u8");
        let whole = known.ip == Some(at) || known.frame >= u32::from(at) + 20;
        if whole {
            self.lead_to_header(at, known, depth);
        }
        let header = match whole {
            true => "ipv4_header_bytes(ip)".to_owned(),
            // The frame ends within the header; its length is that of a shorter one, or nothing follows.
            false => format!("(frame[{at}] & 15) * 4u"),
        };
        self.needs.cut_room |= cut;
        for pair in kids.windows(2) {
            let [(_, fewer), (bytes, _)] = pair else {
                continue;
            };
            self.say(
                depth,
                &match cut {
                    true => format!("more = transport_within(p, ip, {at}, {bytes});"),
                    false => format!("more = packet_bytes(p, {at} + {header}, {bytes});"),
                },
            );
            self.say(depth, "if (!more) {");
            self.block(*fewer, depth + 1, false);
            self.say(depth, "}");
            // A pointer to more bytes stays.
            if *bytes > u64::from(known.upper) {
                self.say(depth, "upper = more;");
            }
        }
        if let Some((_, last)) = kids.last() {
            self.block(*last, depth, false);
        }
    }
}
