//! Type and line information alone: the sections `.BTF` and `.BTF.ext` of an otherwise sound object.

/// An object whose other sections are as a compiler made them.
const OBJECT: &[u8] = include_bytes!("../../crates/object/tests/programs/counter.elf");

const SECTION_HEADER: usize = 64;

/// The first two bytes of `data` say how many of the rest are `.BTF`; what follows is `.BTF.ext`.
pub fn run(data: &[u8]) {
    let Some((length, data)) = data.split_first_chunk::<2>() else {
        return;
    };
    let (types, lines) = data.split_at(usize::from(u16::from_le_bytes(*length)).min(data.len()));
    let mut object = OBJECT.to_vec();
    replace(&mut object, b".BTF\0", types);
    replace(&mut object, b".BTF.ext\0", lines);
    super::elf::run(&object);
}

fn number(bytes: &[u8], at: usize, width: usize) -> usize {
    let digits = bytes[at..at + width].iter().rev();
    digits.fold(0, |n, digit| n << 8 | usize::from(*digit))
}

/// Puts `content` behind the file and makes the section of this name consist of it.
fn replace(object: &mut Vec<u8>, name: &[u8], content: &[u8]) {
    let (headers, count, names) = (
        number(object, 0x28, 8),
        number(object, 0x3c, 2),
        number(object, 0x3e, 2),
    );
    let header = |index: usize| headers + index * SECTION_HEADER;
    let strings = number(object, header(names) + 24, 8);
    for at in (0..count).map(header) {
        let start = strings + number(object, at, 4);
        if object[start..].starts_with(name) {
            let (offset, size) = (object.len() as u64, content.len() as u64);
            object[at + 24..at + 32].copy_from_slice(&offset.to_le_bytes());
            object[at + 32..at + 40].copy_from_slice(&size.to_le_bytes());
            object.extend_from_slice(content);
            return;
        }
    }
    unreachable!("the object has the section");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_read_with_the_sections_given() {
        let mut object = OBJECT.to_vec();
        assert!(millrace_object::load(&object, "x").is_ok());
        replace(&mut object, b".BTF.ext\0", b"");
        replace(&mut object, b".BTF\0", b"\x9f\xeb\x02");
        let error = millrace_object::load(&object, "x").unwrap_err();
        assert_eq!(error.section.as_deref(), Some(".BTF"), "{error}");
        run(b"");
        run(b"\x04\x00\x9f\xeb\x01");
    }
}
