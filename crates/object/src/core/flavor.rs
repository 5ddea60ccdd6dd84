//! The target of a type, and of a place in it. A name `NAME___FLAVOR` is one program's view of the type
//! `NAME`; its members are found there by name.

use std::collections::HashMap;
use std::mem::discriminant;

use super::walk::{Place, Step};
use crate::btf::{Btf, Enumerator, Kind, Member};

/// How deep anonymous members may nest.
const MAX_DEPTH: u32 = 32;

/// The name without its flavour.
pub(super) fn essential(name: &str) -> &str {
    match name.rfind("___") {
        Some(at) if at > 0 => name.get(..at).unwrap_or(name),
        _ => name,
    }
}

/// Findings, and the remaining budget of the search.
pub(super) struct Flavors {
    found: HashMap<u32, Option<u32>>,
    left: u32,
}

impl Flavors {
    pub fn new(left: u32) -> Flavors {
        Flavors {
            found: HashMap::new(),
            left,
        }
    }

    fn visit(&mut self) -> Result<(), String> {
        let left = self.left.checked_sub(1);
        self.left = left.ok_or("needs more of the type information than is looked at")?;
        Ok(())
    }

    /// The target of a type: itself, or for a flavour the type of its essential name.
    pub fn target(&mut self, btf: &Btf, ty: u32) -> Result<Option<u32>, String> {
        let name = btf.name(ty);
        let wanted = essential(name);
        if wanted == name {
            return Ok(btf.get(ty).map(|_| ty));
        }
        if let Some(found) = self.found.get(&ty) {
            return Ok(*found);
        }
        let kind = btf.get(ty).map(|t| discriminant(&t.kind));
        let mut found = None;
        for (id, candidate) in btf.types() {
            self.visit()?;
            let same_kind = Some(discriminant(&candidate.kind)) == kind;
            if same_kind && btf.string(candidate.name) == wanted {
                found = Some(id);
                break;
            }
        }
        self.found.insert(ty, found);
        Ok(found)
    }

    /// The same place in the target; none if it lacks a step.
    pub fn place(
        &mut self,
        btf: &Btf,
        local: Place,
        ty: u32,
        target: u32,
    ) -> Result<Option<Place>, String> {
        if ty == target {
            return Ok(Some(local));
        }
        let mut steps = local.steps.iter();
        let Some(Step::Element(first)) = steps.next() else {
            return Ok(None);
        };
        let mut place = Place::begin(btf, target, *first)?;
        for step in steps {
            match (*step, btf.stripped(place.ty)) {
                (Step::Element(index), Some(Kind::Array { element, count })) => {
                    if index >= *count && *count != 0 {
                        return Ok(None);
                    }
                    place.element(btf, *element, index)?;
                }
                (Step::Member(name, ty), Some(Kind::Struct { members, .. })) => {
                    let Some((offset, member)) = self.member(btf, members, name, MAX_DEPTH)? else {
                        return Ok(None);
                    };
                    if !compatible(btf, ty, member.ty) {
                        return Ok(None);
                    }
                    place.member(member.name, member.ty, offset, member.bits)?;
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(place))
    }

    /// A member by name, also within anonymous members; and its distance from the outer one in bits.
    pub fn member<'b>(
        &mut self,
        btf: &'b Btf,
        members: &'b [Member],
        name: u32,
        depth: u32,
    ) -> Result<Option<(u32, &'b Member)>, String> {
        let wanted = btf.string(name);
        for member in members {
            self.visit()?;
            let found = btf.string(member.name);
            if found == wanted {
                return Ok(Some((member.offset, member)));
            }
            let inner = btf.stripped(member.ty);
            if let ("", Some(Kind::Struct { members, .. }), 1..) = (found, inner, depth)
                && let Some((offset, inner)) = self.member(btf, members, name, depth - 1)?
            {
                let offset = member.offset.checked_add(offset);
                return Ok(offset.map(|offset| (offset, inner)));
            }
        }
        Ok(None)
    }

    /// The enumerator of the same essential name.
    pub fn enumerator<'b>(
        &mut self,
        btf: &Btf,
        values: &'b [Enumerator],
        name: u32,
    ) -> Result<Option<&'b Enumerator>, String> {
        let wanted = essential(btf.string(name));
        for value in values {
            self.visit()?;
            if essential(btf.string(value.name)) == wanted {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Whether the target has all that the local type names: each member with a compatible type, each
    /// enumerator.
    pub fn matches(&mut self, btf: &Btf, local: u32, target: u32) -> Result<bool, String> {
        if local == target {
            return Ok(true);
        }
        match (btf.stripped(local), btf.stripped(target)) {
            (
                Some(Kind::Struct {
                    members, union: a, ..
                }),
                Some(Kind::Struct {
                    members: others,
                    union: b,
                    ..
                }),
            ) if a == b => {
                for member in members {
                    let found = self.member(btf, others, member.name, MAX_DEPTH)?;
                    if !found.is_some_and(|(_, m)| compatible(btf, member.ty, m.ty)) {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Some(Kind::Enum { values, .. }), Some(Kind::Enum { values: others, .. })) => {
                for value in values {
                    if self.enumerator(btf, others, value.name)?.is_none() {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Some(a), Some(b)) => Ok(discriminant(a) == discriminant(b)),
            _ => Ok(false),
        }
    }
}

/// Whether a field of one type may stand for one of the other (`bpf_core_fields_are_compat`).
fn compatible(btf: &Btf, mut local: u32, mut target: u32) -> bool {
    // Arrays are compared by their elements.
    for _ in 0..MAX_DEPTH {
        let (a, b) = (btf.strip(local), btf.strip(target));
        match (btf.stripped(a), btf.stripped(b)) {
            (Some(Kind::Array { element: a, .. }), Some(Kind::Array { element: b, .. })) => {
                (local, target) = (*a, *b);
            }
            (Some(Kind::Enum { .. }), Some(Kind::Enum { .. })) => {
                let (a, b) = (essential(btf.name(a)), essential(btf.name(b)));
                return a.is_empty() || b.is_empty() || a == b;
            }
            (Some(a), Some(b)) => return discriminant(a) == discriminant(b),
            _ => return false,
        }
    }
    false
}
