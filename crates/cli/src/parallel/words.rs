//! Which numbers of an object packets add to, so that what several workers added can be summed.

use std::collections::BTreeSet;

use millrace_check::Checked;
use millrace_check::facts::Op;
use millrace_control::merged::Word;
use millrace_object::insn::Insn;
use millrace_object::program::{ObjectId, Program};

/// The words of the object's values that are stored to: as wide as the instructions that do it.
pub fn of(checked: &Checked, program: &Program, object: ObjectId) -> Vec<Word> {
    let steps = checked.running(program).flat_map(|r| &r.flow.steps);
    let mut words = BTreeSet::new();
    for step in steps.filter(|s| s.reached) {
        let Op::Plain(Insn::Store { size, .. } | Insn::Atomic { size, .. }) = step.op else {
            continue;
        };
        let bytes = size.bytes() as usize;
        for extent in step.extents.iter().filter(|e| e.object == object) {
            let (from, to) = (extent.from as usize, extent.to as usize);
            let places = (from..to).step_by(bytes.max(1));
            words.extend(places.map(|offset| Word { offset, bytes }));
        }
    }
    words.into_iter().collect()
}
