//! Where functions begin and end, and what their types say.

use std::collections::HashMap;

use crate::btf::Btf;
use crate::btf::ext::Ext;
use crate::elf::{Elf, SymbolKind};
use crate::error::LoadError;

/// Bytes `start..end` of an executable section.
#[derive(Clone)]
pub(crate) struct Span<'a> {
    pub section: usize,
    pub section_name: &'a str,
    pub start: u64,
    pub end: u64,
    pub name: &'a str,
    /// global or weak; others are static
    pub global: bool,
}

/// Every function of an object.
pub(crate) struct Functions<'a> {
    /// ascending by section and start
    pub spans: Vec<Span<'a>>,
    by_start: HashMap<(usize, u64), usize>,
}

impl<'a> Functions<'a> {
    pub fn of(elf: &Elf<'a>) -> Functions<'a> {
        let mut spans: Vec<Span<'a>> = Vec::new();
        for symbol in &elf.symbols {
            let Some(section) = symbol.section else {
                continue;
            };
            let Some(header) = elf.sections.get(section) else {
                continue;
            };
            // Assembly, and the first compilers, leave out a function's type; local symbols without
            // one are labels.
            let is_function = match symbol.kind {
                SymbolKind::Function => true,
                SymbolKind::Other => symbol.global && !symbol.name.is_empty(),
                SymbolKind::Object | SymbolKind::Section => false,
            };
            if !is_function || !header.executable {
                continue;
            }
            spans.push(Span {
                section,
                section_name: header.name,
                start: symbol.value,
                end: symbol.value.saturating_add(symbol.size),
                name: symbol.name,
                global: symbol.global,
            });
        }
        // Of several names of one function the global one is kept.
        spans.sort_by_key(|s| (s.section, s.start, !s.global));
        spans.dedup_by_key(|s| (s.section, s.start));
        // Assembly may leave out sizes: then a function ends where the next begins.
        for i in (0..spans.len()).rev() {
            let next = spans.get(i + 1).map(|s| (s.section, s.start));
            let Some(span) = spans.get_mut(i) else {
                continue;
            };
            let section = elf.sections.get(span.section);
            let limit = section.map_or(0, |s| s.data.len() as u64);
            if span.end == span.start {
                span.end = match next {
                    Some((section, start)) if section == span.section => start,
                    _ => limit,
                };
            }
            span.end = span.end.min(limit);
        }
        let starts = spans.iter().map(|s| (s.section, s.start));
        let by_start = starts.zip(0..).collect();
        Functions { spans, by_start }
    }

    /// Index into `spans` of the function that begins at this byte.
    pub fn at(&self, elf: &Elf<'_>, section: usize, offset: i64) -> Result<usize, LoadError> {
        let start = u64::try_from(offset).ok();
        let found = start.and_then(|start| self.by_start.get(&(section, start)));
        found.copied().ok_or_else(|| {
            LoadError::new(
                "no-such-function",
                format!(
                    "byte {offset} of section {} is called, where no function begins",
                    crate::error::printable(elf.section_name(section))
                ),
                "compile the program again; do not strip the symbols",
            )
        })
    }
}

/// Facts about a function's type.
pub(crate) struct Signature<'b> {
    btf: &'b Btf,
    pub returns: u32,
    pub params: &'b [u32],
}

impl<'b> Signature<'b> {
    /// By its place if the object says so, else by its name.
    pub fn of(btf: Option<&'b Btf>, ext: &Ext, span: &Span<'_>) -> Option<Signature<'b>> {
        let btf = btf?;
        let id = ext
            .function(span.section_name, span.start)
            .or_else(|| btf.function(span.name))?;
        let (returns, params) = btf.signature(id)?;
        Some(Signature {
            btf,
            returns,
            params,
        })
    }

    /// Whether the only parameter is a pointer, and if a structure is named, to that.
    pub fn takes_pointer(&self, structure: Option<&str>) -> bool {
        let [param] = self.params else { return false };
        let Some(to) = self.btf.pointee(*param) else {
            return false;
        };
        structure.is_none_or(|name| self.btf.name(self.btf.strip(to)) == name)
    }

    /// Whether it returns an integer or enumeration of so many bytes.
    pub fn returns_number(&self, bytes: u64) -> bool {
        use crate::btf::Kind;
        let kind = self.btf.stripped(self.returns);
        matches!(kind, Some(Kind::Int { .. } | Kind::Enum { .. }))
            && self.btf.bytes(self.returns) == Some(bytes)
    }

    /// The signature in C.
    pub fn text(&self) -> String {
        let spell = |id: &u32| match self.btf.pointee(*id) {
            Some(to) => format!("{} *", self.btf.written(to)),
            None => self.btf.written(*id),
        };
        let params: Vec<String> = self.params.iter().take(6).map(spell).collect();
        let params = if params.is_empty() {
            "void".to_owned()
        } else {
            params.join(", ")
        };
        format!("{} (*)({params})", spell(&self.returns))
    }
}
