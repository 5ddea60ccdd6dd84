//! Type information, lines and CO-RE relocations alone: the sections `.BTF` and `.BTF.ext` of otherwise
//! sound objects.

/// An object whose other sections are as a compiler made them.
const OBJECT: &[u8] = include_bytes!("../../../crates/object/tests/programs/counter.elf");

/// One with CO-RE relocations of every kind.
const CORE: &[u8] = include_bytes!("../../../crates/object/tests/programs/core.elf");

const SECTION_HEADER: usize = 64;

/// `data` is a change to the sections as they were compiled, so that no seeds are needed: the first
/// two bytes say how many of the rest are combined (exclusive or) with `.BTF`, and what follows is
/// with `.BTF.ext`. A section grows when its part is longer.
pub fn run(data: &[u8]) {
    let Some((length, data)) = data.split_first_chunk::<2>() else {
        return;
    };
    let (types, lines) = data.split_at(usize::from(u16::from_le_bytes(*length)).min(data.len()));
    for object in [OBJECT, CORE] {
        let mut object = object.to_vec();
        change(&mut object, b".BTF\0", types);
        change(&mut object, b".BTF.ext\0", lines);
        super::elf::run(&object);
    }
}

fn number(bytes: &[u8], at: usize, width: usize) -> usize {
    let digits = bytes[at..at + width].iter().rev();
    digits.fold(0, |n, digit| n << 8 | usize::from(*digit))
}

/// The header of the section of this name.
fn header(object: &[u8], name: &[u8]) -> usize {
    let (headers, count, names) = (
        number(object, 0x28, 8),
        number(object, 0x3c, 2),
        number(object, 0x3e, 2),
    );
    let header = |index: usize| headers + index * SECTION_HEADER;
    let strings = number(object, header(names) + 24, 8);
    let named = |at: &usize| object[strings + number(object, *at, 4)..].starts_with(name);
    (0..count)
        .map(header)
        .find(named)
        .expect("the object has the section")
}

/// Moves the section of this name behind the file, combined with `change`.
fn change(object: &mut Vec<u8>, name: &[u8], change: &[u8]) {
    let at = header(object, name);
    let (start, size) = (number(object, at + 24, 8), number(object, at + 32, 8));
    let mut content = object[start..start + size].to_vec();
    content.resize(size.max(change.len()), 0);
    for (byte, change) in content.iter_mut().zip(change) {
        *byte ^= change;
    }
    let offset = object.len() as u64;
    object[at + 24..at + 32].copy_from_slice(&offset.to_le_bytes());
    object[at + 32..at + 40].copy_from_slice(&(content.len() as u64).to_le_bytes());
    object.extend_from_slice(&content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_read_with_the_changes() {
        let mut object = OBJECT.to_vec();
        change(&mut object, b".BTF.ext\0", b"");
        change(&mut object, b".BTF\0", b"\0\0\0\0");
        assert!(millrace_object::load(&object, "x").is_ok());
        change(&mut object, b".BTF\0", b"\0\x01");
        let error = millrace_object::load(&object, "x").unwrap_err();
        assert_eq!(error.section.as_deref(), Some(".BTF"), "{error}");
        run(b"");
        run(&[0xff; 5000]);
    }
}
