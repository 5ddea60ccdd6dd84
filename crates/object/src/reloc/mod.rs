//! Relocations: what the compiler left for the loader to fill in. One file a family; adding one is
//! a file here, an arm where its instruction is linked (`link.rs`), and a line in [`NAMES`].

pub(crate) mod call;
pub(crate) mod imm64;
pub(crate) mod pointer;

use crate::elf::{Elf, Relocation, Symbol, SymbolKind};
use crate::error::LoadError;

/// 64-bit immediate load: the address of a variable, a map or a function.
pub(crate) const R_BPF_64_64: u32 = 1;
/// 8 bytes of data: an address.
pub(crate) const R_BPF_64_ABS64: u32 = 2;
/// 4-byte immediate of a call.
pub(crate) const R_BPF_64_32: u32 = 10;

/// Every type that LLVM defines.
const NAMES: &[(u32, &str)] = &[
    (0, "R_BPF_NONE"),
    (R_BPF_64_64, "R_BPF_64_64"),
    (R_BPF_64_ABS64, "R_BPF_64_ABS64"),
    (3, "R_BPF_64_ABS32"),
    (4, "R_BPF_64_NODYLD32"),
    (R_BPF_64_32, "R_BPF_64_32"),
];

pub(crate) fn name(kind: u32) -> String {
    match NAMES.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("the unknown type {kind}"),
    }
}

/// A relocation that stands where its type has no meaning.
pub(crate) fn misplaced(relocation: Relocation, place: &str) -> LoadError {
    LoadError::new(
        "unknown-relocation",
        format!("{place} has a relocation of {}", name(relocation.kind)),
        "compile with clang 14 to 19 for `-target bpf`",
    )
}

/// Where a relocation points: a section and an offset in it.
pub(crate) struct Target<'a> {
    pub section: usize,
    pub offset: i64,
    pub symbol: &'a Symbol<'a>,
}

/// The place that symbol and addend name.
pub(crate) fn target<'a>(
    elf: &'a Elf<'a>,
    relocation: Relocation,
    addend: i64,
) -> Result<Target<'a>, LoadError> {
    let symbol = elf.symbol(relocation.symbol)?;
    let Some(section) = symbol.section else {
        return Err(undefined(symbol));
    };
    let offset = (symbol.value as i64)
        .wrapping_add(addend)
        .wrapping_add(relocation.addend);
    if elf.section(section)?.name.is_empty() && symbol.kind == SymbolKind::Section {
        return Err(LoadError::malformed(
            "a relocation names a section without a name",
        ));
    }
    Ok(Target {
        section,
        offset,
        symbol,
    })
}

/// Whether libbpf takes a symbol's value from the kernel's configuration, or from its version.
fn is_configuration(name: &str) -> bool {
    ["CONFIG_", "LINUX_KERNEL_VERSION", "LINUX_HAS_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn undefined(symbol: &Symbol<'_>) -> LoadError {
    let name = crate::error::printable(symbol.name);
    if symbol.undefined && is_configuration(symbol.name) {
        LoadError::new(
            "undefined-symbol",
            format!(
                "`{name}` is a variable of the kernel's configuration (`__kconfig`) whose type is not known"
            ),
            format!(
                "compile with -g, and declare it with a type that has a size: `--set {name}=VALUE` changes it"
            ),
        )
    } else if symbol.undefined {
        LoadError::new(
            "undefined-symbol",
            format!("`{name}` is declared but defined nowhere in this object"),
            format!(
                "define `{name}` in the same file, or link the objects with `bpftool gen object`"
            ),
        )
    } else {
        LoadError::new(
            "undefined-symbol",
            format!("`{name}` has no section"),
            "give the variable an initial value, or compile with -fno-common",
        )
    }
}
