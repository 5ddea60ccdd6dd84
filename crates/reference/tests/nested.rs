//! Maps that are found in other maps: where helpers draw their results, an admitted use of one never steps outside.

use millrace_assemble::assemble;
use millrace_check::{Options, check};
use millrace_object::program::{Nesting, ObjectId, Role};
use millrace_object::state;
use millrace_reference::{End, Machine};

/// Finds a map, looks up in it, reads the value, and deletes the entry.
const USE: &str = "object outer hash
object shape hash value=16
*(u32 *)(r10 - 4) = 1
r1 = object outer
r2 = r10
r2 += -4
call map_lookup_elem
if r0 == 0 goto out
*(u64 *)(r10 - 16) = r0
r1 = r0
r2 = r10
r2 += -4
call map_lookup_elem
if r0 == 0 goto out
r3 = *(u64 *)(r0 + 8)
r1 = *(u64 *)(r10 - 16)
r2 = r10
r2 += -4
call map_delete_elem
out:
r0 = 2
exit";

#[test]
fn a_map_that_was_found_is_used_like_one_of_its_shape() {
    let mut program = assemble(USE);
    let (outer, shape) = (ObjectId(0), ObjectId(1));
    program.objects[0].kind = state::by_name("hash_of_maps").unwrap();
    program.objects[0].value_bytes = 4;
    let values = Vec::new();
    program.objects[0].nesting = Some(Nesting::Holds { shape, values });
    program.objects[1].nesting = Some(Nesting::Shape(outer));
    check(&program, &Options::default()).unwrap();
    let entry = program.entries[0].function;
    for seed in 0..200 {
        let mut machine = Machine::new(&program, &[0; 20], seed);
        let end = machine.run(entry, Role::Xdp, 100).unwrap();
        assert_eq!(end, End::Verdict(2));
    }
}
