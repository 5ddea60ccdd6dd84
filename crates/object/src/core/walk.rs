//! Access strings: `0:2:1` is element 0 of a pointer's target, its member 2, of that member 1.

use crate::btf::{Btf, Kind};

/// Most numbers of a string (`BPF_CORE_SPEC_MAX_LEN`).
const MAX_STEPS: usize = 64;

/// The numbers of an access string.
pub(super) fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || "has no valid access string".to_owned();
    let mut numbers = Vec::new();
    for word in text.split(':') {
        let digits = word.bytes().all(|b| b.is_ascii_digit());
        if !digits || numbers.len() == MAX_STEPS {
            return Err(wrong());
        }
        numbers.push(word.parse().map_err(|_| wrong())?);
    }
    Ok(numbers)
}

/// A step that the target must have too; steps into anonymous members are none.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Element(u32),
    /// string: the member's name; and its type
    Member(u32, u32),
}

/// Where in a type an access ends.
pub(super) struct Place {
    /// from the start of the type that it began with
    pub bits: u64,
    /// the type there
    pub ty: u32,
    /// of a bit field, its bits; else 0
    pub width: u32,
    /// the last step was into a named member, not an array's element
    pub is_member: bool,
    pub steps: Vec<Step>,
}

impl Place {
    /// The first step, an element of the type that the access begins with.
    pub fn begin(btf: &Btf, ty: u32, index: u32) -> Result<Place, String> {
        let mut place = Place {
            bits: 0,
            ty,
            width: 0,
            is_member: false,
            steps: Vec::new(),
        };
        place.element(btf, ty, index)?;
        Ok(place)
    }

    /// Goes to an element of an array of this type.
    pub fn element(&mut self, btf: &Btf, ty: u32, index: u32) -> Result<(), String> {
        let bytes = btf.bytes(ty).or((index == 0).then_some(0));
        let bits = bytes
            .and_then(|b| b.checked_mul(u64::from(index))?.checked_mul(8))
            .and_then(|b| b.checked_add(self.bits));
        self.bits = bits.ok_or("names an element of a type without a size")?;
        (self.ty, self.width, self.is_member) = (ty, 0, false);
        self.steps.push(Step::Element(index));
        Ok(())
    }

    /// Goes to a member at so many bits.
    pub fn member(&mut self, name: u32, ty: u32, offset: u32, width: u32) -> Result<(), String> {
        let bits = self.bits.checked_add(u64::from(offset));
        self.bits = bits.ok_or("names a member beyond all memory")?;
        (self.ty, self.width) = (ty, width);
        if name != 0 {
            self.is_member = true;
            self.steps.push(Step::Member(name, ty));
        }
        Ok(())
    }
}

/// Follows an access string from a type.
pub(super) fn walk(btf: &Btf, ty: u32, access: &str) -> Result<Place, String> {
    let numbers = numbers(access)?;
    let (first, rest) = numbers
        .split_first()
        .ok_or("has an access string without a number")?;
    let mut place = Place::begin(btf, ty, *first)?;
    for &number in rest {
        match btf.stripped(place.ty) {
            Some(Kind::Struct { members, .. }) => {
                let member = members
                    .get(number as usize)
                    .ok_or_else(|| format!("names member {number} of {}", members.len()))?;
                let name = match btf.string(member.name) {
                    "" => 0,
                    _ => member.name,
                };
                place.member(name, member.ty, member.offset, member.bits)?;
            }
            Some(Kind::Array { element, count }) => {
                // An array of 0 is the flexible one at a structure's end.
                if number >= *count && *count != 0 {
                    return Err(format!("names element {number} of {count}"));
                }
                place.element(btf, *element, number)?;
            }
            _ => return Err("goes into a type that has no members".to_owned()),
        }
    }
    Ok(place)
}
