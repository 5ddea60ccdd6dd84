//! Facts handed to later stages: kinds, accesses, arguments, outcomes, and loads that carry a proof.

use millrace_assemble::assemble;
use millrace_check::facts::{Access, ArgFact, Extent, Flow, FrameId, Kind, Op, Outcomes, Step};
use millrace_check::{Options, check};
use millrace_object::insn::Insn;
use millrace_object::program::ObjectId;

fn flow(text: &str) -> Flow {
    check(&assemble(text), &Options::default())
        .unwrap()
        .flows
        .remove(0)
}

/// The step of the entry's instruction `pc`.
fn at(flow: &Flow, pc: usize) -> &Step {
    flow.steps
        .iter()
        .find(|s| s.frame == FrameId(0) && s.pc == pc)
        .unwrap()
}

#[test]
fn kinds_before_and_after() {
    let f = flow(
        "r2 = *(u32 *)(r1 + 4)\nr1 = *(u32 *)(r1 + 0)\nr3 = r1\nr3 += 14\nif r3 > r2 goto out\nr0 = *(u8 *)(r1 + 0)\nout:\nr0 = 0\nexit",
    );
    assert_eq!(at(&f, 0).after, Kind::PacketEnd);
    assert_eq!(at(&f, 0).access, Some(Access::Context { offset: 4 }));
    assert_eq!(at(&f, 4).before[1], Kind::Packet);
    assert_eq!(at(&f, 4).before[3], Kind::Packet);
    assert_eq!(
        at(&f, 4).outcomes,
        Outcomes {
            holds: true,
            fails: true
        }
    );
    assert_eq!(at(&f, 5).access, Some(Access::Packet));
    assert_eq!(
        at(&f, 0).before[10],
        Kind::Stack {
            frame: FrameId(0),
            offset: Some(0)
        }
    );
}

#[test]
fn what_no_execution_reaches() {
    let f = flow("r2 = 3\nif r2 > 5 goto dead\nr0 = 0\nexit\ndead:\nr0 = 1\nexit");
    assert_eq!(
        at(&f, 1).outcomes,
        Outcomes {
            holds: false,
            fails: true
        }
    );
    assert!(at(&f, 2).reached && !at(&f, 4).reached && !at(&f, 5).reached);
}

#[test]
fn a_lookup_and_its_arguments() {
    let f = flow(
        "object table hash key=4 value=16\nr6 = *(u32 *)(r1 + 12)\n*(u32 *)(r10 - 4) = r6\nr2 = r10\nr2 += -4\nr1 = object table\ncall map_lookup_elem\nif r0 == 0 goto out\nr1 = 1\nlock *(u64 *)(r0 + 8) += r1\nout:\nr0 = 1\nexit",
    );
    let key = Access::Stack {
        frame: FrameId(0),
        from: -4,
        to: 0,
    };
    assert_eq!(
        at(&f, 5).args,
        [
            ArgFact::Object(ObjectId(0)),
            ArgFact::Memory {
                access: key,
                bytes: Some(4)
            }
        ]
    );
    assert_eq!(at(&f, 5).after, Kind::Value(ObjectId(0)));
    assert_eq!(at(&f, 8).access, Some(Access::Value(ObjectId(0))));
    let adds = Extent {
        object: ObjectId(0),
        from: 8,
        to: 16,
    };
    assert_eq!(at(&f, 8).extents, [adds]);
    assert!(at(&f, 5).extents.is_empty());
    assert_eq!(
        at(&f, 3).after,
        Kind::Stack {
            frame: FrameId(0),
            offset: Some(-4)
        }
    );
    assert_eq!(f.frames[0].stack_bytes, 4);
}

#[test]
fn the_bytes_that_an_index_leads_to() {
    // Elements of 4 bytes from byte 8 on, by a number below 4.
    let f = flow(
        "object table hash key=4 value=64\nr6 = *(u32 *)(r1 + 12)\n*(u32 *)(r10 - 4) = r6\nr6 &= 3\nr6 <<= 2\nr2 = r10\nr2 += -4\nr1 = object table\ncall map_lookup_elem\nif r0 == 0 goto out\nr0 += r6\nr1 = *(u32 *)(r0 + 8)\nout:\nr0 = 1\nexit",
    );
    let element = Extent {
        object: ObjectId(0),
        from: 8,
        to: 24,
    };
    assert_eq!(at(&f, 10).extents, [element]);
}

#[test]
fn joins_of_kinds() {
    // Null or a value: still a value. A number or a value: mixed.
    let with = |n: i32| {
        format!(
            "object t global value=16\nr6 = *(u32 *)(r1 + 12)\nr0 = {n}\nr3 = r0\nif r6 == 0 goto on\nr3 = value t\non:\nr6 = r3\nr1 = 1\nr1 = 2\nr1 = 3\nr0 = 0\nexit"
        )
    };
    assert_eq!(at(&flow(&with(0)), 5).before[3], Kind::Value(ObjectId(0)));
    assert_eq!(at(&flow(&with(7)), 5).before[3], Kind::Mixed);
    let two = flow(
        "r6 = *(u32 *)(r1 + 12)\nr3 = r10\nr3 += -8\nif r6 == 0 goto on\nr3 += -8\non:\n*(u64 *)(r3 + 0) = 1\nr0 = 0\nexit",
    );
    assert_eq!(
        at(&two, 5).before[3],
        Kind::Stack {
            frame: FrameId(0),
            offset: None
        }
    );
    assert_eq!(
        at(&two, 5).access,
        Some(Access::Stack {
            frame: FrameId(0),
            from: -16,
            to: 0
        })
    );
    assert_eq!(two.frames[0].stack_bytes, 16);
}

#[test]
fn each_call_names_its_object() {
    let f = flow(
        "object a hash key=4 value=16\nobject b hash key=8 value=16\nr6 = *(u32 *)(r1 + 12)\n*(u64 *)(r10 - 8) = r6\nr1 = object a\nif r6 == 0 goto on\nr1 = object b\non:\nr2 = r10\nr2 += -8\ncall map_lookup_elem\nif r0 == 0 goto out\nr0 = *(u64 *)(r0 + 0)\nout:\nr0 = 1\nexit",
    );
    let called = |s: &&Step| matches!(s.op, Op::Plain(Insn::Call { .. }));
    let calls: Vec<&Step> = f.steps.iter().filter(called).collect();
    let reached: Vec<&&Step> = calls.iter().filter(|s| s.reached).collect();
    assert_eq!((calls.len(), reached.len()), (3, 2));
    for (step, (object, bytes)) in reached.iter().zip([(0, 4), (1, 8)]) {
        let object = ObjectId(object);
        assert_eq!(step.pc, 7);
        assert_eq!(step.before[1], Kind::Object(object));
        assert_eq!(step.after, Kind::Value(object));
        assert_eq!(step.args[0], ArgFact::Object(object));
        assert!(
            matches!(step.args[1], ArgFact::Memory { bytes: Some(n), .. } if n == bytes),
            "{:?}",
            step.args
        );
    }
    // What was found may be of either.
    assert_eq!(at(&f, 9).before[0], Kind::Pointer);
    assert_eq!(at(&f, 9).access, Some(Access::Several));
}

#[test]
fn each_call_path_has_its_frame() {
    let f = flow(
        "r1 = 3\ncall fn f\nr1 = 4\ncall fn f\nexit\nfn f\n*(u64 *)(r10 - 8) = r1\nr0 = *(u64 *)(r10 - 8)\nexit",
    );
    assert_eq!(f.frames.len(), 3);
    assert!(
        f.frames[1..]
            .iter()
            .all(|x| x.caller == Some(FrameId(0)) && x.stack_bytes == 8)
    );
    let Op::Enter { frame, target } = at(&f, 3).op else {
        panic!()
    };
    assert_eq!((frame, f.steps[target.0].frame), (FrameId(2), FrameId(2)));
    let leave = f.steps.iter().rfind(|s| s.frame == FrameId(2)).unwrap();
    assert!(matches!(leave.op, Op::Leave { target } if f.steps[target.0].pc == 4));
}

#[test]
fn loads_that_carry_a_proof() {
    let head = "r6 = r1\nr2 = *(u32 *)(r6 + 4)\nr1 = *(u32 *)(r6 + 0)\nr3 = r1\nr3 += 40\nif r3 > r2 goto out\n";
    let tail = "\nout:\nr0 = 0\nexit";
    // The length is bounded and then added: loading it again could give another.
    let f = flow(&format!(
        "{head}r4 = *(u8 *)(r1 + 0)\nr5 = *(u8 *)(r1 + 1)\nif r4 > 30 goto out\nr1 += r4\nr0 = *(u8 *)(r1 + 0)\nr0 += r5{tail}"
    ));
    assert!(at(&f, 6).load_once);
    assert!(!at(&f, 7).load_once && !at(&f, 10).load_once);
    // By way of the stack, and of another number that bounds it.
    let f = flow(&format!(
        "{head}r4 = *(u8 *)(r1 + 0)\n*(u64 *)(r10 - 8) = r4\nr5 = *(u8 *)(r1 + 1)\nif r5 > 30 goto out\nr4 = *(u64 *)(r10 - 8)\nif r4 > r5 goto out\nr1 += r4\nr0 = *(u8 *)(r1 + 0){tail}"
    ));
    assert!(at(&f, 6).load_once && at(&f, 8).load_once);
    assert!(!at(&f, 10).load_once, "the stack is nobody else's");
}

#[test]
fn the_same_program_gives_the_same_facts() {
    let text = "object t global value=64\nr6 = r1\nr2 = 0\nr0 = 0\nagain:\nr3 = *(u32 *)(r6 + 12)\nr3 &= 63\nr4 = value t\nr4 += r3\nr5 = *(u8 *)(r4 + 0)\nr0 += r5\nr2 += 1\nif r2 < 50 goto again\nexit";
    assert_eq!(format!("{:?}", flow(text)), format!("{:?}", flow(text)));
}

#[test]
fn an_address_of_no_bytes_is_of_the_frame() {
    for at in [0, -8, -512] {
        let text = format!(
            "r1 = r10\nr1 += {at}\nr2 = 0\nr3 = 0\nr4 = 0\nr5 = 0\ncall csum_diff\nr0 = 0\nexit"
        );
        let checked = check(&assemble(&text), &Options::default()).unwrap();
        let flow = &checked.flows[0];
        let mut arguments = flow.steps.iter().flat_map(|s| &s.args);
        let Some(ArgFact::Memory { access, bytes }) = arguments.next() else {
            panic!("no fact about the address");
        };
        assert_eq!(*bytes, Some(0));
        let Access::Stack { from, to, .. } = *access else {
            panic!("{access:?}");
        };
        assert!(from < to && to <= 0, "{from}..{to}");
        assert!(i64::from(flow.frames[0].stack_bytes) >= -i64::from(from));
    }
}
