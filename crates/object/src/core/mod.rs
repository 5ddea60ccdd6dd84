//! CO-RE relocations: values in instructions that depend on the types of the kernel that a program
//! will run in (Linux, Documentation/bpf/llvm_reloc.rst; what each kind means is libbpf's,
//! src/relo_core.c).
//!
//! There is no kernel here, and the types that a packet program meets are those of the kernel's user
//! API, which do not change: the context and packet headers. So the target of a relocation is the type
//! as the object itself has it; a flavour (`struct xdp_md___new`) is looked for in the type of the name
//! before the underscores. A question whether a type, field or enumerator exists is answered yes for
//! types of the user API that [`known`] lists and no for all others, as they are a kernel's inside.
//!
//! | file | question |
//! | --- | --- |
//! | [`walk`] | which field do an access string's numbers name? |
//! | [`flavor`] | which type and field is that in the target? |
//! | [`known`] | does the type exist here? |
//! | [`value`] | what number does the relocation stand for? |
//! | [`patch`] | how does an instruction hold it? |

mod flavor;
mod known;
mod patch;
mod value;
mod walk;

use crate::btf::Btf;
use crate::btf::ext::{CoreRecord, Ext};
use crate::decode::Slot;
use crate::error::{LoadError, printable};
use crate::helper;

/// Members and types that may be looked at for all relocations of an object together: those of a large
/// program with the whole kernel's types are a tenth. Structures may hold each other in ways that have
/// exponentially many members.
const MAX_VISITS: u32 = 1 << 22;

/// The relocations of one object.
pub(crate) struct Core<'a> {
    btf: Option<&'a Btf>,
    ext: &'a Ext,
    flavors: flavor::Flavors,
}

/// Result of a relocation for an instruction.
pub(crate) enum Relocated {
    /// this slot, and for 64-bit loads the upper half of the number
    Slot(Slot, Option<i32>),
    /// a field or value that the target lacks: whatever executes it is refused
    Absent,
}

impl Relocated {
    /// The call that stands for an absent field: of a helper that no kernel has.
    pub const ABSENT: u32 = helper::ABSENT;
}

impl<'a> Core<'a> {
    pub fn new(btf: Option<&'a Btf>, ext: &'a Ext) -> Core<'a> {
        Core {
            btf,
            ext,
            flavors: flavor::Flavors::new(MAX_VISITS),
        }
    }

    /// Relocates the instruction at a byte of a section; `high` is the second half's number if it is a
    /// 64-bit load.
    pub fn apply(
        &mut self,
        section: &str,
        offset: u64,
        slot: Slot,
        high: i32,
    ) -> Result<Relocated, LoadError> {
        let (Some(btf), Some(record)) = (self.btf, self.ext.relocation(section, offset)) else {
            return Ok(Relocated::Slot(slot, None));
        };
        let place = |problem: String| {
            let name = printable(btf.name(record.ty));
            LoadError::new(
                "core-relocation",
                format!("the CO-RE relocation of this instruction (type `{name}`) {problem}"),
                "compile the program again with clang 14 to 19 and -g",
            )
        };
        let worth = self.value(btf, record).map_err(place)?;
        patch::patch(slot, high, &worth).map_err(place)
    }

    fn value(&mut self, btf: &Btf, record: CoreRecord) -> Result<value::Worth, String> {
        value::of(btf, &mut self.flavors, record)
    }
}
