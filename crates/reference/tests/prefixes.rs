//! Tables of prefixes, seen from outside.

use millrace_assemble::assemble;
use millrace_object::program::{FunctionId, ObjectId, Role};
use millrace_object::state;
use millrace_reference::{End, Machine};

#[test]
fn a_prefix_is_found_whatever_its_bits_beyond_the_length_are() {
    let mut program = assemble("object routes hash key=8 value=8\nr0 = 2\nexit");
    program.objects[0].kind = state::by_name("lpm_trie").unwrap();
    let routes = ObjectId(0);
    let key = |bits: u8, address: [u8; 4]| [&[bits, 0, 0, 0], address.as_slice()].concat();
    let mut machine = Machine::exact(&program);
    machine.set(routes, &key(24, [192, 0, 2, 9]), &[7; 8]);
    let found = |bits, address| machine.peek(routes, &key(bits, address));
    assert_eq!(found(24, [192, 0, 2, 0]), Some(vec![7; 8]));
    assert_eq!(found(24, [192, 0, 2, 200]), Some(vec![7; 8]));
    assert_eq!(found(24, [192, 0, 3, 9]), None);
    // As a lookup finds the longest that covers the key, and is no longer than it.
    assert_eq!(found(32, [192, 0, 2, 9]), Some(vec![7; 8]));
    assert_eq!(found(23, [192, 0, 2, 9]), None);
    machine.set(routes, &key(30, [192, 0, 2, 8]), &[9; 8]);
    let found = |bits, address| machine.peek(routes, &key(bits, address));
    assert_eq!(found(32, [192, 0, 2, 9]), Some(vec![9; 8]));
    assert_eq!(found(29, [192, 0, 2, 9]), Some(vec![7; 8]));
}

/// Registers that a helper takes nothing in hold what was there before: a number that an object could have is no object.
#[test]
fn what_is_left_in_a_register_is_no_table() {
    let mut program =
        assemble("object routes hash key=8 value=8\nr1 = 0\ncall ktime_get_ns\nr0 = 2\nexit");
    program.objects[0].kind = state::by_name("lpm_trie").unwrap();
    let mut machine = Machine::exact(&program);
    let end = machine.run(FunctionId(0), Role::Xdp, 100).map_err(|v| v.0);
    assert_eq!(end, Ok(End::Verdict(2)));
}
