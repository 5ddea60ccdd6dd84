//! Instructions without an object file: decoded as they are in one, and hostile bytes are errors.

use millrace_object::Insn;
use millrace_object::raw::{RESULT, functions, functions_of_elf, program};

const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn a_local_call_begins_a_function() {
    // call +1; exit; r0 = 3; exit
    let mut code = vec![0x85, 0x10, 0, 0, 1, 0, 0, 0];
    code.extend(EXIT);
    code.extend([0xb7, 0, 0, 0, 3, 0, 0, 0]);
    code.extend(EXIT);
    let functions = functions(&code, "call").unwrap();
    assert_eq!(functions.len(), 2);
    assert_eq!(functions[1].name, "function_2");
    assert_eq!(functions[1].slots, [2, 3]);
    assert!(matches!(functions[0].insns[0], Insn::CallLocal { function } if function.0 == 1));

    let program = program("call", functions, &[1, 2, 3]);
    assert_eq!(program.entries[0].function.0, 2);
    assert_eq!(program.objects[RESULT.0].value_bytes, 8);
    assert_eq!(program.objects[1].initial.as_deref(), Some(&[1, 2, 3][..]));
}

#[test]
fn a_jump_stays_in_its_function() {
    // call +2; r0 = 0; goto +1, which is beyond the function that begins at 3
    let mut code = vec![0x85, 0x10, 0, 0, 2, 0, 0, 0];
    code.extend([0xb7, 0, 0, 0, 0, 0, 0, 0]);
    code.extend([0x05, 0, 1, 0, 0, 0, 0, 0]);
    code.extend(EXIT);
    code.extend(EXIT);
    let error = functions(&code, "jump").unwrap_err();
    assert_eq!((error.rule, error.slot), ("jump-target", Some(2)));
}

#[test]
fn hostile_bytes_are_errors() {
    // A linear congruential generator with Knuth's MMIX constants; its upper bits.
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    // Opcodes that have to do with targets and lengths come often.
    let likely = [0x18, 0x85, 0x05, 0x15, 0x06, 0x95, 0xb7, 0x8d];
    let mut decoded = 0;
    for _ in 0..40_000 {
        let mut code: Vec<u8> = Vec::new();
        for _ in 0..next() % 6 {
            let opcode = if next() % 4 == 0 {
                next()
            } else {
                likely[usize::from(next()) % 8]
            };
            let source = (u8::from(opcode == 0x85) * (next() % 3)) << 4;
            let (offset, imm) = (next() % 5, next() % 5);
            let sign = if next() % 2 == 0 { 0 } else { 0xff };
            code.extend(match opcode {
                0x15 | 0x05 => [opcode, 0, offset ^ sign, sign, 0, 0, 0, 0],
                _ => [opcode, source, 0, 0, imm ^ sign, sign, sign, sign],
            });
        }
        code.extend(EXIT);
        code.truncate(code.len() - usize::from(next() % 64 == 0));
        decoded += u32::from(functions(&code, "hostile").is_ok());
        assert!(functions_of_elf(&code, "hostile").is_err());
    }
    assert!(decoded > 100 && decoded < 39_000, "{decoded}");
}
