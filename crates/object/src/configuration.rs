//! Variables of the kernel's configuration (`extern … __kconfig`). libbpf keeps them in one read-only map, `.kconfig`, and
//! takes their values from the running kernel. A function that runs here has no kernel beneath it: a variable has the
//! value that [`VALUES`] says, else 0, and is a setting, as a `const volatile` number is.
//!
//! No section of the file holds them: their symbols are undefined, and BTF alone says their types.

use crate::btf::{Btf, Kind};
use crate::elf::{Elf, Section, SymbolKind};

/// The section that BTF lists them in, and the state object that they become.
pub(crate) const SECTION: &str = ".kconfig";

/// What is not 0: the version is that of Debian 12's kernel, the ticks are those of `bpf_jiffies64`, and what XDP
/// programs need of a kernel is there.
const VALUES: &[(&str, u64)] = &[
    ("LINUX_KERNEL_VERSION", 6 << 16 | 1 << 8),
    ("LINUX_HAS_BPF_COOKIE", 1),
    ("LINUX_HAS_SYSCALL_WRAPPER", 1),
    ("CONFIG_HZ", 250),
    ("CONFIG_HZ_250", 1),
    ("CONFIG_64BIT", 1),
    ("CONFIG_BPF", 1),
    ("CONFIG_BPF_JIT", 1),
    ("CONFIG_BPF_SYSCALL", 1),
    ("CONFIG_DEBUG_INFO_BTF", 1),
    ("CONFIG_INET", 1),
    ("CONFIG_IPV6", 1),
    ("CONFIG_NET", 1),
    ("CONFIG_SMP", 1),
    ("CONFIG_XDP_SOCKETS", 1),
];

/// Appends a section of the variables that BTF lists and defines their symbols in it.
pub(crate) fn define(elf: &mut Elf<'_>, btf: &Btf) {
    let index = elf.sections.len();
    let mut size = 0_u64;
    for variable in btf.variables(SECTION) {
        let mut symbols = elf.symbols.iter_mut();
        let Some(symbol) = symbols.find(|s| s.undefined && s.name == variable.name) else {
            continue;
        };
        // A type without a size stays undefined, and is refused by its name where it is used.
        let Some(bytes) = btf.bytes(variable.ty).filter(|bytes| *bytes > 0) else {
            continue;
        };
        let place = size.next_multiple_of(8);
        let Some(end) = place.checked_add(bytes).filter(|end| *end < 1 << 32) else {
            continue;
        };
        symbol.section = Some(index);
        symbol.undefined = false;
        symbol.kind = SymbolKind::Object;
        symbol.value = place;
        size = end;
    }
    if size > 0 {
        elf.sections.push(Section {
            name: SECTION,
            size,
            loaded: true,
            ..Section::default()
        });
    }
}

/// Writes the variables' values into the bytes of their section.
pub(crate) fn fill(elf: &Elf<'_>, btf: &Btf, bytes: &mut [u8]) {
    for variable in btf.variables(SECTION) {
        let known = VALUES.iter().find(|(name, _)| *name == variable.name);
        let symbol = elf.symbols.iter().find(|s| s.name == variable.name);
        let (Some((_, value)), Some(symbol)) = (known, symbol) else {
            continue;
        };
        let (Some(size), Ok(place)) = (btf.bytes(variable.ty), usize::try_from(symbol.value))
        else {
            continue;
        };
        let number = matches!(
            btf.stripped(variable.ty),
            Some(Kind::Int { .. } | Kind::Enum { .. })
        );
        let end = usize::try_from(size)
            .ok()
            .and_then(|n| place.checked_add(n));
        let room = end.and_then(|end| bytes.get_mut(place..end));
        if let (true, Some(room)) = (number, room) {
            // libbpf gives a `char` the letter that stands in the configuration.
            let letter = btf.written(variable.ty).ends_with("char") && *value == 1;
            let value = if letter { u64::from(b'y') } else { *value };
            for (byte, from) in room.iter_mut().zip(value.to_le_bytes()) {
                *byte = from;
            }
        }
    }
}
