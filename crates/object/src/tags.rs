//! Notes that authors attach to functions with `__attribute__((btf_decl_tag("…")))`.
//!
//! Nothing is proved with them and nothing runs by them: suites of test programs say there what they expect.

use std::collections::BTreeMap;

use crate::btf::{Btf, Kind};
use crate::elf::Elf;
use crate::error::{LoadError, printable};
use crate::functions::Functions;

/// A function that has notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// its name
    pub function: String,
    /// the section it is in
    pub section: String,
    /// the notes in the order of the type information; one of more than 1,024 bytes is empty
    pub tags: Vec<String>,
}

/// Every function of the file with a note, in the order of the file.
///
/// # Errors
/// The file is not ELF, or its type information contradicts its format.
pub fn tagged(file: &[u8]) -> Result<Vec<Tagged>, LoadError> {
    let elf = Elf::parse(file)?;
    let Some(btf) = Btf::of(&elf)? else {
        return Ok(Vec::new());
    };
    let mut tags: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (_, ty) in btf.types() {
        let Kind::DeclTag { of } = ty.kind else {
            continue;
        };
        if let Some(Kind::Function { .. }) = btf.get(of).map(|t| &t.kind) {
            let text = btf.string(ty.name).to_owned();
            tags.entry(btf.name(of)).or_default().push(text);
        }
    }
    let spans = Functions::of(&elf).spans.into_iter();
    let tagged = spans.filter_map(|span| {
        Some(Tagged {
            tags: tags.remove(span.name)?,
            function: printable(span.name),
            section: printable(span.section_name),
        })
    });
    Ok(tagged.collect())
}
