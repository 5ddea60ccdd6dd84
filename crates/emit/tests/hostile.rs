//! Names come from files: whatever they are, what is emitted is the same program.

use crate::support;

use millrace_object::program::{Line, ObjectId, Param, StateObject};
use millrace_object::state;
use support::asm::{R0, exit, movi};
use support::{Bench, Packet, Way, function, program};

const NAMES: &[&str] = &[
    "*/ #error out of the comment /*",
    "\"; } int x; \\",
    "new\nline\r\n#error",
    "??/",
    "\\",
    "tab\tand \u{202e}other \u{fffd} letters",
    "%s%n",
    "",
    "int",
    "self",
];

#[test]
fn names_cannot_become_code() {
    let mut insns = vec![movi(R0, 2), exit()];
    insns.resize(2, exit());
    let mut functions: Vec<_> = NAMES
        .iter()
        .map(|name| function(name, insns.clone()))
        .collect();
    for (function, name) in functions.iter_mut().zip(NAMES) {
        let line = Line {
            file: (*name).into(),
            line: u32::MAX,
            column: 0,
            text: (*name).into(),
        };
        function.lines = vec![
            Some(Line {
                line: 0,
                ..line.clone()
            }),
            Some(line),
        ];
    }
    let mut program = program(functions, NAMES.len());
    program.name = NAMES[0].into();
    let global = &state::global::KIND;
    for (index, name) in NAMES.iter().enumerate() {
        program.objects.push(StateObject {
            initial: Some(vec![1; 8]),
            read_only: index % 2 == 0,
            ..StateObject::new(*name, global, 0, 8, 1)
        });
        program.params.push(Param {
            name: (*name).into(),
            object: ObjectId(index),
            offset: 0,
            bytes: 8,
            signed: false,
            type_name: (*name).into(),
        });
    }
    let bench = Bench::new();
    let module = bench.module(&program, false);
    let packets: Vec<Packet> = (0..NAMES.len() as u32)
        .map(|program| Packet {
            program,
            port: 0,
            time: 1,
            bytes: vec![0; 14],
        })
        .collect();
    let way = Way {
        sanitize: false,
        plain: false,
        burst: 4,
    };
    let (outcomes, _) = bench.run(&program, &module, way, &packets);
    assert!(outcomes.iter().all(|o| o.fate == 2));
}
