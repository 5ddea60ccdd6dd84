//! Damaged objects: a thousand ways to break a file, none of which may panic or hang.

use crate::common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use millrace_object::load;

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Numbers at which readers go wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

const SECTION_HEADER: usize = 64;

/// Where the section headers are, and how many.
fn section_headers(bytes: &[u8]) -> (usize, usize) {
    let offset = u64::from_le_bytes(bytes[0x28..0x30].try_into().unwrap()) as usize;
    let count = u16::from_le_bytes(bytes[0x3c..0x3e].try_into().unwrap()) as usize;
    (offset, count)
}

fn overwrite(bytes: &mut [u8], at: usize, value: u64, width: usize) {
    for (byte, from) in bytes[at..].iter_mut().zip(&value.to_le_bytes()[..width]) {
        *byte = *from;
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let (headers, count) = section_headers(bytes);
    let length = bytes.len();
    match random.below(7) {
        0 => {
            let at = random.below(length);
            bytes[at] ^= 1 << random.below(8);
        }
        1 => {
            let at = random.below(length);
            bytes[at] = random.next() as u8;
        }
        2 => {
            let (at, edge) = (random.below(length), EDGES[random.below(EDGES.len())]);
            overwrite(bytes, at, edge, 1 << random.below(4));
        }
        // A field of a section header.
        3 => {
            let at = headers + random.below(count) * SECTION_HEADER + random.below(16) * 4;
            let edge = match random.below(3) {
                0 => EDGES[random.below(EDGES.len())],
                1 => random.below(length) as u64,
                _ => random.below(count) as u64,
            };
            overwrite(bytes, at, edge, 4 << random.below(2));
        }
        // Two section headers change places.
        4 => {
            let (a, b) = (random.below(count), random.below(count));
            for i in 0..SECTION_HEADER {
                bytes.swap(
                    headers + a * SECTION_HEADER + i,
                    headers + b * SECTION_HEADER + i,
                );
            }
        }
        // Bytes of one place in another.
        5 => {
            let (from, to) = (random.below(length), random.below(length));
            let size = random.below(64).min(length - from).min(length - to);
            bytes.copy_within(from..from + size, to);
        }
        _ => {
            let at = 64 + random.below(length - 64);
            let size = random.below(16).min(length - at);
            bytes.drain(at..at + size);
        }
    }
}

/// Loads and, if that succeeds, prints; gives the rule that was broken.
fn survive(bytes: &[u8], what: &str) -> &'static str {
    let start = Instant::now();
    let rule = match load(bytes, "hostile") {
        Ok(program) => {
            assert!(!program.to_string().is_empty());
            for object in &program.objects {
                assert!((object.kind.validate)(object).is_ok());
            }
            "none"
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            error.rule
        }
    };
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{what} took {:?}",
        start.elapsed()
    );
    rule
}

#[test]
fn mutations() {
    let mut rules: BTreeMap<&str, u32> = BTreeMap::new();
    for name in ["core", "counter", "gate"] {
        let original = std::fs::read(common::program(&format!("{name}.elf"))).unwrap();
        for seed in 0..30_000 {
            let mut random = Random(seed);
            let mut bytes = original.clone();
            for _ in 0..=random.below(4) {
                if bytes.len() > 1024 && bytes.starts_with(b"\x7fELF") {
                    let (headers, count) = section_headers(&bytes);
                    if count == 0 || count.saturating_mul(64).saturating_add(headers) > bytes.len()
                    {
                        break;
                    }
                    mutate(&mut bytes, &mut random);
                }
            }
            *rules
                .entry(survive(&bytes, &format!("{name} seed {seed}")))
                .or_default() += 1;
        }
    }
    // Otherwise the mutations would all be of one kind and show nothing.
    assert!(rules.len() >= 15, "{rules:?}");
    assert!(rules.contains_key("none"), "{rules:?}");
}

#[test]
fn truncations() {
    for name in ["core", "counter", "gate"] {
        let bytes = std::fs::read(common::program(&format!("{name}.elf"))).unwrap();
        for length in 0..bytes.len() {
            survive(&bytes[..length], &format!("{name} cut to {length}"));
        }
    }
}

#[test]
fn random_bytes() {
    let original = std::fs::read(common::program("counter.elf")).unwrap();
    let mut random = Random(7);
    for _ in 0..2000 {
        // A true ELF header, so that the reader goes on.
        let mut bytes = original[..64].to_vec();
        bytes.extend((0..random.below(4096)).map(|_| random.next() as u8));
        survive(&bytes, "random bytes");
    }
}

/// The offset of the header of the section with this name.
fn header_of(bytes: &[u8], name: &[u8]) -> usize {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (headers, count) = section_headers(bytes);
    let names = u16::from_le_bytes(bytes[0x3e..0x40].try_into().unwrap()) as usize;
    let strings = number(headers + names * SECTION_HEADER + 24);
    let header = |i| headers + i * SECTION_HEADER;
    let named = |at: &usize| {
        let start = strings + (number(*at) & 0xffff_ffff);
        bytes[start..].starts_with(name) && bytes[start + name.len()] == 0
    };
    (0..count).map(header).find(named).unwrap()
}

/// Makes a section consist of other bytes, behind the file.
fn replace(bytes: &mut Vec<u8>, name: &[u8], content: &[u8]) {
    let header = header_of(bytes, name);
    let offset = bytes.len() as u64;
    overwrite(bytes, header + 24, offset, 8);
    overwrite(bytes, header + 32, content.len() as u64, 8);
    bytes.extend_from_slice(content);
}

/// Half a million symbols, each of whose names is megabytes long because they share their bytes.
#[test]
fn names_that_overlap() {
    let mut bytes = std::fs::read(common::program("counter.elf")).unwrap();
    let mut names = vec![b'a'; 8 << 20];
    names.push(0);
    let mut symbols = Vec::new();
    for name in 0..500_000_u32 {
        symbols.extend_from_slice(&name.to_le_bytes());
        // A global function of section 3 at as many different places.
        symbols.extend_from_slice(&[0x12, 0, 3, 0]);
        symbols.extend_from_slice(&u64::from(name * 8).to_le_bytes());
        symbols.extend_from_slice(&8_u64.to_le_bytes());
    }
    replace(&mut bytes, b".symtab", &symbols);
    // The names of sections are in the same section as those of symbols: theirs become long too.
    replace(&mut bytes, b".strtab", &names);
    assert_eq!(survive(&bytes, "overlapping names"), "malformed");
}

/// A map that is called as a section of variables is: whichever is meant where a name stands, it may be the other.
#[test]
fn two_objects_of_one_name() {
    let text = r#"
#include <linux/bpf.h>
static volatile int total;
struct { int (*type)[BPF_MAP_TYPE_ARRAY]; int (*max_entries)[1]; int *key, *value; } four
    __attribute__((section(".maps"), used));
__attribute__((section("xdp"), used)) int prog(struct xdp_md *context)
{
    int zero = 0, *value = ((void *(*)(void *, int *))1)(&four, &zero);
    total++;
    return value ? *value : 0;
}
"#;
    let flags = ["-O2", "-g"];
    let Some(mut bytes) = common::compile_text("clang-19", text, &flags) else {
        return;
    };
    let program = load(&bytes, "honest").unwrap();
    let mut names: Vec<_> = program.objects.iter().map(|o| o.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [".bss", "four"]);
    let ours = |w: &[u8]| w == b"\0four\0";
    while let Some(at) = bytes.windows(6).position(ours) {
        bytes[at + 1..at + 5].copy_from_slice(b".bss");
    }
    assert_eq!(survive(&bytes, "one name twice"), "malformed");
}

/// Millions of line records for one instruction.
#[test]
fn lines_without_number() {
    let mut bytes = std::fs::read(common::program("counter.elf")).unwrap();
    let records: u32 = 2_000_000;
    let mut ext = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
    for word in [0, 0, 0, 12 + records * 16, 16, 1, records] {
        ext.extend_from_slice(&u32::to_le_bytes(word));
    }
    for record in 0..records {
        for word in [0, record % 700, record % 699, 1 << 10] {
            ext.extend_from_slice(&u32::to_le_bytes(word));
        }
    }
    replace(&mut bytes, b".BTF.ext", &ext);
    let header = header_of(&bytes, b".rel.BTF.ext");
    overwrite(&mut bytes, header + 32, 0, 8);
    assert_eq!(survive(&bytes, "many lines"), "none");
}

/// Variables of more bytes than any machine has, which the file need not hold.
#[test]
fn sections_larger_than_the_file() {
    let original = std::fs::read(common::program("counter.elf")).unwrap();
    for (size, rule) in [
        (64 << 20, "absurd-size"),
        (1 << 40, "absurd-size"),
        (u64::MAX, "absurd-size"),
        (1 << 20, "none"),
    ] {
        let mut bytes = original.clone();
        let header = header_of(&bytes, b".bss");
        overwrite(&mut bytes, header + 32, size, 8);
        assert_eq!(survive(&bytes, "large .bss"), rule, "{size}");
    }
}

/// Functions that overlap, so that linking each would take the square of the file's size.
#[test]
fn functions_that_overlap() {
    let mut bytes = std::fs::read(common::program("counter.elf")).unwrap();
    let slots = 200_000_u32;
    // r0 = 0, and a return at the end and where `second` itself ends.
    let mut code = [0xb7, 0, 0, 0, 0, 0, 0, 0].repeat(slots as usize + 2);
    let end = code.len() - 8;
    code[end] = 0x95;
    code[6 * 8] = 0x95;
    let header = header_of(&bytes, b"other/name");
    let index = ((header - section_headers(&bytes).0) / SECTION_HEADER) as u8;
    let old = header_of(&bytes, b".symtab");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let mut symbols = bytes[word(old + 24)..word(old + 24) + word(old + 32)].to_vec();
    // The name of `second`, whose type says that it takes an XDP context.
    let second = symbols
        .chunks(24)
        .find(|s| s[6] == index && s[4] == 0x12)
        .unwrap();
    let name: [u8; 4] = second[..4].try_into().unwrap();
    for slot in 2..slots {
        symbols.extend_from_slice(&name);
        symbols.extend_from_slice(&[0x12, 0, index, 0]);
        symbols.extend_from_slice(&u64::from(slot * 8).to_le_bytes());
        symbols.extend_from_slice(&u64::from((slots + 2 - slot) * 8).to_le_bytes());
    }
    replace(&mut bytes, b"other/name", &code);
    replace(&mut bytes, b".symtab", &symbols);
    let relocations = header_of(&bytes, b".relother/name");
    overwrite(&mut bytes, relocations + 32, 0, 8);
    assert_eq!(survive(&bytes, "overlapping functions"), "program-size");
}
