//! Results of `bpf_loop`, and a callback that is no function.

use millrace_assemble::assemble;
use millrace_check::facts::Op;
use millrace_check::{Options, Rule, check};
use millrace_object::insn::{Imm64, Insn};
use millrace_object::program::{FunctionId, Role};
use millrace_reference::{End, Machine};

#[test]
fn without_the_rule_something_else_is_called() {
    let text = "r1 = function f\n*(u64 *)(r10 - 8) = r1\nr5 = r10\nr5 += -8\n*(u64 *)(r5 + 0) = 7\nr1 = 4\nr2 = *(u64 *)(r10 - 8)\nr3 = r10\nr4 = 0\ncall loop\nr0 = 0\nexit\nfn f\nr0 = 0\nexit";
    let program = assemble(text);
    let options = Options {
        disabled: vec![Rule::Callback],
        ..Options::default()
    };
    check(&program, &options).unwrap();
    let mut machine = Machine::new(&program, &[0; 20], 1);
    machine.run(FunctionId(0), Role::Xdp, 1000).unwrap_err();
}

#[test]
fn flags_and_too_many_rounds() {
    let result = |n: &str, flags: &str| {
        let program = assemble(&format!(
            "r1 = {n} ll\nr2 = function f\nr3 = 0\n{flags}\ncall loop\nexit\nfn f\nr0 = 0\nexit"
        ));
        check(&program, &Options::default()).unwrap();
        let end = Machine::new(&program, &[], 1).run(FunctionId(0), Role::Xdp, 1 << 20);
        match end.unwrap() {
            End::Verdict(v) => v as i64,
            End::OutOfSteps => panic!("it goes on"),
        }
    };
    assert_eq!(result("5", "r4 = 0"), 5);
    // The number is one of 32 bits.
    assert_eq!(result("4294967301", "r4 = 0"), 5);
    assert_eq!(result("5", "r4 = 2"), -22);
    assert_eq!(result("8388609", "r4 = 2"), -22);
    // What the kernel puts in the call's place gives the error at 32 bits.
    assert_eq!(result("8388609", "r4 = 0"), 0xffff_fff9);
    assert_eq!(result("8388609", "r4 = 1\nr4 += -1"), -7);
}

/// Constant flags that a caller passes on are no constant of the instruction: the proof and the interpreter say so.
#[test]
fn flags_of_a_caller_are_not_those_of_the_call() {
    let program = assemble(
        "r1 = 0\ncall fn g\nexit\nfn g\nr4 = r1\nr1 = 8388609 ll\nr2 = function f\nr3 = 0\ncall loop\nexit\n\
         fn f\nr0 = 0\nexit",
    );
    let checked = check(&program, &Options::default()).unwrap();
    let steps = checked.flows.iter().flat_map(|flow| &flow.steps);
    let answers = steps.filter_map(|step| match step.op {
        Op::Plain(Insn::LoadImm {
            value: Imm64::Number(n),
            ..
        }) if n as u32 as i32 == -7 => Some(n),
        _ => None,
    });
    let answers: Vec<u64> = answers.collect();
    let end = Machine::new(&program, &[], 1).run(FunctionId(0), Role::Xdp, 1 << 20);
    let End::Verdict(verdict) = end.unwrap() else {
        panic!("it goes on")
    };
    assert_eq!((verdict as i64, answers), (-7, vec![-7_i64 as u64]));
}
