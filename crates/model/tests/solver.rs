//! Answers of the solver, checked, and the behaviour without a solver.

use std::path::PathBuf;
use std::time::Duration;

use millrace_check::moment::Moment;

use millrace_model::expr::{Arena, Bin, Origin, Rel};
use millrace_model::solver::{Answer, Oracle, Z3};

fn oracle(command: &str) -> Oracle {
    let z3 = Z3::new(PathBuf::from(command), Duration::from_secs(5));
    Oracle::new(Box::new(z3), Moment::now() + Duration::from_secs(20))
}

fn has_z3() -> bool {
    let found = std::process::Command::new("z3")
        .arg("--version")
        .output()
        .is_ok();
    if !found {
        eprintln!("skipped: there is no z3 (Debian: apt-get install z3)");
    }
    found
}

#[test]
fn z3_says_what_holds_and_what_does_not() {
    if !has_z3() {
        return;
    }
    let mut a = Arena::new();
    let x = a.sym("x", 32, Origin::Helper);
    let three = a.number(3, 32);
    let product = a.binary(Bin::Mul, x, three);
    let want = a.number(0x1234_5677, 32);
    let equal = a.compare(Rel::Eq, product, want);
    let mut o = oracle("z3");
    let Answer::Holds(m) = o.holds(&a, &[equal]) else {
        panic!("3 has an inverse modulo 2^32");
    };
    assert_eq!(m.value(&a, product), 0x1234_5677);
    let one = a.number(1, 32);
    let odd = a.binary(Bin::And, x, one);
    let odd = a.compare(Rel::Eq, odd, one);
    let even = a.not(odd);
    assert!(matches!(o.holds(&a, &[odd, even]), Answer::Fails));
    assert_eq!(o.unanswered, 0);
}

#[test]
fn without_a_solver_nothing_is_said() {
    let mut a = Arena::new();
    let x = a.sym("x", 32, Origin::Helper);
    let c = a.number(7, 32);
    let equal = a.compare(Rel::Eq, x, c);
    let mut o = oracle("/nonexistent/z3");
    let Answer::Unknown(why) = o.holds(&a, &[equal]) else {
        panic!("nobody could know");
    };
    assert!(why.contains("apt-get install z3"), "{why}");
}
