//! The parts of an ELF file that a BPF program is made of, copied out of the `object` crate's view
//! with every index checked.

use object::elf;
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SymbolSection,
};

use crate::error::LoadError;

/// The largest file that is read. Programs with full debug information stay below one hundredth.
pub(crate) const MAX_FILE: usize = 64 << 20;

/// One relocatable BPF file.
pub(crate) struct Elf<'a> {
    /// by ELF section index; index 0 is the empty section of the format
    pub sections: Vec<Section<'a>>,
    /// by ELF symbol index
    pub symbols: Vec<Symbol<'a>>,
}

#[derive(Default)]
pub(crate) struct Section<'a> {
    pub name: &'a str,
    /// what the file holds; empty for `.bss`
    pub data: &'a [u8],
    /// bytes in memory; differs from `data` only for `.bss`
    pub size: u64,
    pub executable: bool,
    pub loaded: bool,
    /// ascending by offset
    pub relocations: Vec<Relocation>,
}

#[derive(Clone, Copy)]
pub(crate) struct Relocation {
    /// bytes from the start of the section
    pub offset: u64,
    /// `R_BPF_*`
    pub kind: u32,
    /// index of the symbol
    pub symbol: usize,
    /// RELA's explicit addend; REL, which compilers write, has it in the section instead
    pub addend: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolKind {
    Function,
    Object,
    Section,
    Other,
}

pub(crate) struct Symbol<'a> {
    pub name: &'a str,
    /// the section it is defined in; `None` for undefined, absolute and common symbols
    pub section: Option<usize>,
    pub undefined: bool,
    pub value: u64,
    pub size: u64,
    pub kind: SymbolKind,
    /// global or weak
    pub global: bool,
    /// weak: where it is defined nowhere, its address is 0
    pub weak: bool,
}

impl<'a> Elf<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Elf<'a>, LoadError> {
        if bytes.len() > MAX_FILE {
            return Err(LoadError::new(
                "file-size",
                format!("the file has {} bytes", bytes.len()),
                format!("at most {MAX_FILE} bytes are read"),
            ));
        }
        check_identity(bytes)?;
        let file = ElfFile64::<LittleEndian>::parse(bytes)
            .map_err(|e| LoadError::malformed(format!("not a readable ELF file ({e})")))?;
        let header = file.elf_header();
        if header.e_machine(LittleEndian) != elf::EM_BPF {
            return Err(LoadError::new(
                "not-bpf",
                "the object file is not for BPF",
                "compile with `clang -O2 -g -target bpf -mcpu=v4 -c`",
            ));
        }
        if header.e_type(LittleEndian) != elf::ET_REL {
            return Err(LoadError::new(
                "not-relocatable",
                "the file is not a relocatable object",
                "give the file that `clang -c` writes",
            ));
        }
        let mut names = Names {
            left: bytes.len().saturating_mul(4),
        };
        let sections = sections(&file, bytes.len(), &mut names)?;
        let symbols = symbols(&file, &sections, &mut names)?;
        Ok(Elf { sections, symbols })
    }

    pub fn section_named(&self, name: &str) -> Option<(usize, &Section<'a>)> {
        let mut all = self.sections.iter().enumerate();
        all.find(|(_, section)| section.name == name)
    }

    pub fn section(&self, index: usize) -> Result<&Section<'a>, LoadError> {
        let missing = || LoadError::malformed(format!("section {index} does not exist"));
        self.sections.get(index).ok_or_else(missing)
    }

    pub fn symbol(&self, index: usize) -> Result<&Symbol<'a>, LoadError> {
        let missing = || LoadError::malformed(format!("symbol {index} does not exist"));
        self.symbols.get(index).ok_or_else(missing)
    }

    /// The section's name, for messages.
    pub fn section_name(&self, index: usize) -> &'a str {
        self.sections.get(index).map_or("", |section| section.name)
    }
}

impl Section<'_> {
    /// The relocation at exactly this offset.
    pub fn relocation_at(&self, offset: u64) -> Option<Relocation> {
        let index = self
            .relocations
            .binary_search_by_key(&offset, |r| r.offset)
            .ok()?;
        self.relocations.get(index).copied()
    }
}

fn check_identity(bytes: &[u8]) -> Result<(), LoadError> {
    const COMPILE: &str = "compile with `clang -O2 -g -target bpf -mcpu=v4 -c`";
    if bytes.get(..4) != Some(&elf::ELFMAG[..]) {
        return Err(LoadError::new("not-elf", "not an ELF file", COMPILE));
    }
    if bytes.get(5) == Some(&2) {
        return Err(LoadError::new(
            "big-endian",
            "the object file is for big-endian BPF",
            "compile with `-target bpfel`",
        ));
    }
    if bytes.get(4) != Some(&2) {
        return Err(LoadError::new("not-bpf", "not a 64-bit ELF file", COMPILE));
    }
    Ok(())
}

/// A budget for names: they may share their bytes, so that a file of many long ones would take the
/// square of its size to read.
struct Names {
    left: usize,
}

impl Names {
    fn take<'a>(&mut self, name: object::Result<&'a str>) -> Result<&'a str, LoadError> {
        let name = name.unwrap_or("");
        self.left = self
            .left
            .checked_sub(name.len())
            .ok_or_else(|| LoadError::malformed("its names overlap"))?;
        Ok(name)
    }
}

fn sections<'a>(
    file: &ElfFile64<'a, LittleEndian>,
    file_bytes: usize,
    names: &mut Names,
) -> Result<Vec<Section<'a>>, LoadError> {
    let damaged = |what: &str, e: object::Error| LoadError::malformed(format!("{what}: {e}"));
    let mut sections: Vec<Section<'a>> = Vec::new();
    let mut relocations_left = file_bytes / 16;
    for section in file.sections() {
        let index = section.index().0;
        // Section headers are in the file, so their number is bounded by its size.
        while sections.len() <= index {
            sections.push(Section::default());
        }
        let Some(slot) = sections.get_mut(index) else {
            continue;
        };
        slot.name = names.take(section.name())?;
        slot.size = section.size();
        let flags = section.elf_section_header().sh_flags(LittleEndian);
        slot.executable = flags.contains(elf::SHF_EXECINSTR);
        slot.loaded = flags.contains(elf::SHF_ALLOC);
        if slot.name.starts_with(".debug_") {
            continue;
        }
        let name = slot.name;
        slot.data = section
            .data()
            .map_err(|e| damaged("section data", e).in_section(name))?;
        for (offset, relocation) in section.relocations() {
            // Two headers may name the same bytes; an entry is 16 of them.
            relocations_left = relocations_left.checked_sub(1).ok_or_else(|| {
                LoadError::malformed("relocation sections overlap").in_section(name)
            })?;
            let (RelocationTarget::Symbol(symbol), RelocationFlags::Elf { r_type }) =
                (relocation.target(), relocation.flags())
            else {
                return Err(LoadError::malformed(format!(
                    "relocation at {offset:#x} names no symbol"
                ))
                .in_section(name));
            };
            slot.relocations.push(Relocation {
                offset,
                kind: r_type.0,
                symbol: symbol.0,
                addend: if relocation.has_implicit_addend() {
                    0
                } else {
                    relocation.addend()
                },
            });
        }
        slot.relocations.sort_by_key(|r| r.offset);
    }
    Ok(sections)
}

fn symbols<'a>(
    file: &ElfFile64<'a, LittleEndian>,
    sections: &[Section<'a>],
    names: &mut Names,
) -> Result<Vec<Symbol<'a>>, LoadError> {
    let mut symbols = Vec::new();
    for symbol in file.symbols() {
        let index = symbol.index().0;
        while symbols.len() <= index {
            symbols.push(Symbol {
                name: "",
                section: None,
                undefined: true,
                value: 0,
                size: 0,
                kind: SymbolKind::Other,
                global: false,
                weak: false,
            });
        }
        let Some(slot) = symbols.get_mut(index) else {
            continue;
        };
        slot.name = names.take(symbol.name())?;
        slot.section = match symbol.section() {
            SymbolSection::Section(section) => Some(section.0),
            _ => None,
        };
        slot.undefined = symbol.is_undefined();
        slot.value = symbol.address();
        slot.size = symbol.size();
        slot.kind = match symbol.kind() {
            object::SymbolKind::Text => SymbolKind::Function,
            object::SymbolKind::Data => SymbolKind::Object,
            object::SymbolKind::Section => SymbolKind::Section,
            _ => SymbolKind::Other,
        };
        slot.global = symbol.is_global() || symbol.is_weak();
        slot.weak = symbol.is_weak();
        if slot.kind == SymbolKind::Section && slot.name.is_empty() {
            let section = slot.section.and_then(|index| sections.get(index));
            slot.name = section.map_or("", |section| section.name);
        }
    }
    Ok(symbols)
}
