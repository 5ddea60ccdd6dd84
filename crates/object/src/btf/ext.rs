//! `.BTF.ext`: which source line, which function type and which CO-RE relocation belongs to which
//! instruction.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Btf, header, part, relocated};
use crate::bytes::{u32_at, until_zero};
use crate::decode::SLOT;
use crate::elf::Elf;
use crate::error::LoadError;
use crate::program::Line;

/// Most bytes of a source line or file name that are kept.
const MAX_TEXT: usize = 1024;

/// Content of `.BTF.ext`, by section name and byte offset of the instruction.
#[derive(Default)]
pub(crate) struct Ext {
    /// ascending by offset
    lines: HashMap<String, Vec<LineRecord>>,
    /// offset and BTF function
    functions: HashMap<String, HashMap<u32, u32>>,
    /// by offset
    relocations: HashMap<String, HashMap<u32, CoreRecord>>,
}

/// One CO-RE relocation (`struct bpf_core_relo`).
#[derive(Clone, Copy)]
pub(crate) struct CoreRecord {
    /// the type that the access begins with
    pub ty: u32,
    /// string: the way through the type, as numbers between colons
    pub access: u32,
    /// `enum bpf_core_relo_kind`
    pub kind: u32,
}

struct LineRecord {
    offset: u32,
    file: u32,
    text: u32,
    line: u32,
    column: u32,
}

impl Ext {
    /// Reads the section `.BTF.ext` if the file has one.
    pub fn of(elf: &Elf<'_>, btf: &Btf) -> Result<Ext, LoadError> {
        let Some((_, section)) = elf.section_named(".BTF.ext") else {
            return Ok(Ext::default());
        };
        Ext::parse(&relocated(elf, section), btf).map_err(|e| {
            LoadError::malformed(format!("line information {e}")).in_section(".BTF.ext")
        })
    }

    /// Reads line and function information whose relocations are applied.
    pub fn parse(bytes: &[u8], btf: &Btf) -> Result<Ext, String> {
        let start = header(bytes)?;
        let field = |at| u32_at(bytes, at).ok_or("shorter than its header");
        let functions = part(bytes, start, field(8)?, field(12)?)
            .ok_or("names functions beyond the end of the section")?;
        let lines = part(bytes, start, field(16)?, field(20)?)
            .ok_or("names lines beyond the end of the section")?;
        let mut ext = Ext::default();
        records(functions, 8, |section, record| {
            if let (Some(offset), Some(id)) = (u32_at(record, 0), u32_at(record, 4)) {
                let section = btf.string(section).to_owned();
                ext.functions.entry(section).or_default().insert(offset, id);
            }
        })?;
        records(lines, 16, |section, record| {
            let word = |at| u32_at(record, at);
            let (Some(offset), Some(file), Some(text), Some(place)) =
                (word(0), word(4), word(8), word(12))
            else {
                return;
            };
            let section = btf.string(section).to_owned();
            ext.lines.entry(section).or_default().push(LineRecord {
                offset,
                file,
                text,
                line: place >> 10,
                column: place & 0x3ff,
            });
        })?;
        // The first headers, of 24 bytes, knew no relocations.
        let core = match start {
            32.. => part(bytes, start, field(24)?, field(28)?)
                .ok_or("names relocations beyond the end of the section")?,
            _ => &[],
        };
        let mut twice = false;
        records(core, 16, |section, record| {
            let word = |at| u32_at(record, at);
            let (Some(offset), Some(ty), Some(access), Some(kind)) =
                (word(0), word(4), word(8), word(12))
            else {
                return;
            };
            let section = ext
                .relocations
                .entry(btf.string(section).to_owned())
                .or_default();
            let record = CoreRecord { ty, access, kind };
            twice |= section.insert(offset, record).is_some();
        })?;
        if twice {
            return Err("relocates an instruction twice".to_owned());
        }
        for records in ext.lines.values_mut() {
            // One record an instruction, the last: functions may overlap, and each looks at the
            // records of its bytes.
            records.retain(|r| u64::from(r.offset).is_multiple_of(SLOT));
            records.sort_by_key(|r| r.offset);
            records.dedup_by(|next, kept| {
                let same = next.offset == kept.offset;
                if same {
                    std::mem::swap(next, kept);
                }
                same
            });
        }
        Ok(ext)
    }

    /// The BTF function that begins at this byte of the section.
    pub fn function(&self, section: &str, offset: u64) -> Option<u32> {
        let offset = u32::try_from(offset).ok()?;
        self.functions.get(section)?.get(&offset).copied()
    }

    /// The CO-RE relocation of the instruction at this byte of the section.
    pub fn relocation(&self, section: &str, offset: u64) -> Option<CoreRecord> {
        let offset = u32::try_from(offset).ok()?;
        self.relocations.get(section)?.get(&offset).copied()
    }

    /// The line records of bytes `start..end` of a section, to be asked in ascending order.
    fn range(&self, section: &str, start: u64, end: u64) -> &[LineRecord] {
        let Some(records) = self.lines.get(section) else {
            return &[];
        };
        let from = records.partition_point(|r| u64::from(r.offset) < start);
        let to = records.partition_point(|r| u64::from(r.offset) < end);
        records.get(from..to).unwrap_or(&[])
    }
}

/// Calls `each` with the section's name and the bytes of every record of a table: records of one
/// size, grouped by section.
fn records(bytes: &[u8], least: usize, mut each: impl FnMut(u32, &[u8])) -> Result<(), String> {
    if bytes.is_empty() {
        return Ok(());
    }
    let cut = || "ends inside a record".to_owned();
    let size = u32_at(bytes, 0).ok_or_else(cut)? as usize;
    if size < least || !size.is_multiple_of(4) {
        return Err(format!("has records of {size} bytes instead of {least}"));
    }
    let mut at = 4;
    while at < bytes.len() {
        let section = u32_at(bytes, at).ok_or_else(cut)?;
        let count = u32_at(bytes, at + 4).ok_or_else(cut)? as usize;
        let length = count.checked_mul(size).ok_or_else(cut)?;
        let end = (at + 8).checked_add(length).ok_or_else(cut)?;
        for record in bytes.get(at + 8..end).ok_or_else(cut)?.chunks_exact(size) {
            each(section, record);
        }
        at = end;
    }
    Ok(())
}

/// Turns records into [`Line`]s; equal strings are kept once.
pub(crate) struct Lines<'a> {
    btf: Option<&'a Btf>,
    ext: &'a Ext,
    strings: HashMap<u32, Arc<str>>,
    /// bytes that further strings may take: compilers write each string once, so that all of them
    /// together are no more than the section
    left: usize,
}

impl<'a> Lines<'a> {
    pub fn new(btf: Option<&'a Btf>, ext: &'a Ext) -> Lines<'a> {
        Lines {
            btf,
            ext,
            strings: HashMap::new(),
            left: btf.map_or(0, |btf| btf.strings.len()),
        }
    }

    fn string(&mut self, offset: u32) -> Arc<str> {
        let Some(btf) = self.btf else {
            return Arc::from("");
        };
        let left = &mut self.left;
        let text = self.strings.entry(offset).or_insert_with(|| {
            let tail = btf.strings.get(offset as usize..).unwrap_or(&[]);
            let bytes = until_zero(tail, 0).unwrap_or(&[]);
            let bytes = bytes.get(..MAX_TEXT).unwrap_or(bytes);
            let bytes = if bytes.len() <= *left { bytes } else { &[] };
            *left -= bytes.len();
            Arc::from(String::from_utf8_lossy(bytes).trim())
        });
        Arc::clone(text)
    }

    fn line(&mut self, record: &LineRecord) -> Line {
        Line {
            file: self.string(record.file),
            line: record.line,
            column: record.column,
            text: self.string(record.text),
        }
    }

    /// For each of the ascending byte offsets within `start..end`: the line of the last record at
    /// or before it.
    pub fn inherit(
        &mut self,
        section: &str,
        start: u64,
        end: u64,
        offsets: &[u64],
    ) -> Vec<Option<Line>> {
        let ext = self.ext;
        let mut records = ext.range(section, start, end).iter().peekable();
        let mut current = None;
        let mut lines = Vec::with_capacity(offsets.len());
        for &offset in offsets {
            while let Some(record) = records.next_if(|r| u64::from(r.offset) <= offset) {
                // Line 0 is code without a source line, e.g. merged from several.
                if record.line != 0 {
                    current = Some(self.line(record));
                }
            }
            lines.push(current.clone());
        }
        lines
    }

    /// The first line of bytes `start..end`: where a function is.
    pub fn first(&mut self, section: &str, start: u64, end: u64) -> Option<Line> {
        let ext = self.ext;
        let record = ext
            .range(section, start, end)
            .iter()
            .find(|r| r.line != 0)?;
        Some(self.line(record))
    }

    /// The line of the instruction at an offset of the function `start..end`.
    pub fn at(&mut self, section: &str, start: u64, end: u64, offset: u64) -> Option<Line> {
        self.inherit(section, start, end, &[offset]).pop().flatten()
    }
}
