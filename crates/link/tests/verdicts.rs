//! Verdicts of XDP elements, and answers of `bpf_redirect` among them.

use millrace_assemble::assemble;
use millrace_link::Reason;
use millrace_object::insn::Insn;
use millrace_object::program::{Dialect, Program};

use crate::rows::linked;

/// An XDP program that drops all, or redirects to the other of two ports.
fn xdp(text: &str) -> Program {
    let program = assemble(text);
    assert_eq!(program.dialect, Dialect::Xdp);
    program
}

/// Why a row of this element and one that drops all is refused.
fn refused(text: &str) -> Option<Reason> {
    let drop = xdp("r0 = 1\n exit");
    linked(&[xdp(text), drop]).err().map(|e| e.reason)
}

#[test]
fn an_answer_may_be_moved_to_the_end() {
    for text in [
        "r1 = 2\n r2 = 0\n call redirect\n exit",
        "r1 = 2\n r2 = 0\n call redirect\n r1 = r0\n w0 = w1\n exit",
        "r6 = r1\n r1 = 2\n r2 = 0\n call redirect\n r7 = r0\n call ktime_get_ns\n r0 = r7\n exit",
        "r6 = 1\n r1 = *(u32 *)(r1 + 12)\n if r1 == 2 goto out\n r1 = 2\n r2 = 0\n call redirect\n r6 = r0\n out:\n r0 = r6\n exit",
        // A function that is called may give it back.
        "call fn on\n exit\n fn on\n r1 = 2\n r2 = 0\n call redirect\n exit",
        // The packet passes whatever was named before.
        "r1 = 2\n r2 = 0\n call redirect\n r0 = 2\n exit",
        "r6 = r1\n call fn on\n r0 = 1\n exit\n fn on\n r1 = 2\n r2 = 0\n call redirect\n exit",
    ] {
        assert_eq!(refused(text), None, "{text}");
    }
}

#[test]
fn an_answer_is_no_number() {
    for text in [
        "r1 = 2\n r2 = 0\n call redirect\n if r0 == 4 goto out\n r0 = 1\n out:\n exit",
        "r1 = 2\n r2 = 0\n call redirect\n r0 += 0\n exit",
        "r1 = 2\n r2 = 0\n call redirect\n *(u64 *)(r10 - 8) = r0\n r0 = 1\n exit",
        "r1 = 2\n r2 = 0\n call redirect\n r0 = 4\n exit",
        // The second call names another target than the first.
        "r1 = 2\n r2 = 0\n call redirect\n r6 = r0\n r1 = 1\n r2 = 0\n call redirect\n r0 = r6\n exit",
        // It comes from a function that is called.
        "call fn on\n if r0 == 4 goto out\n r0 = 1\n out:\n exit\n fn on\n r1 = 2\n r2 = 0\n call redirect\n exit",
        "call fn on\n r0 = 4\n exit\n fn on\n r1 = 2\n r2 = 0\n call redirect\n r0 = 0\n exit",
    ] {
        assert_eq!(refused(text), Some(Reason::Redirect), "{text}");
    }
    // One of both, at one end.
    let either = "call get_prandom_u32\n r6 = r0\n if r0 == 7 goto out\n r1 = 2\n r2 = 0\n call redirect\n r6 = r0\n out:\n r0 = r6\n exit";
    assert_eq!(refused(either), Some(Reason::Verdicts));
    // A byte is no verdict of handlers.
    let byte = either.replace("if r0 == 7", "r6 &= 3\n if r0 == 7");
    assert_eq!(refused(&byte), None);
}

/// In a row an element begins its draws anew each time that the packet comes to it.
#[test]
fn an_element_that_draws_is_no_element_that_packets_come_back_to() {
    let draws = xdp(
        "r1 = *(u32 *)(r1 + 12)\n r6 = 1\n if r1 == 2 goto on\n r6 = 2\n on:\n call get_prandom_u32\n r0 &= 1\n \
         if r0 == 1 goto out\n r1 = r6\n r2 = 0\n call redirect\n exit\n out:\n r0 = 1\n exit",
    );
    let back = xdp("r0 = 3\n exit");
    let on = xdp(
        "r1 = *(u32 *)(r1 + 12)\n r6 = 1\n if r1 == 2 goto on\n r6 = 2\n on:\n r1 = r6\n r2 = 0\n call redirect\n exit",
    );
    let why = |row: &[Program]| linked(row).err().map(|e| (e.element, e.reason));
    let again = |name: &str| Some((name.to_owned(), Reason::DrawsAgain));
    assert_eq!(why(&[draws.clone(), back.clone()]), again("e0"));
    assert_eq!(why(&[draws.clone(), on.clone(), back.clone()]), again("e0"));
    assert_eq!(why(&[back, draws.clone()]), again("e1"));
    assert_eq!(why(&[draws.clone(), on.clone()]), None);
    assert_eq!(why(&[on, draws]), None);
}

/// `0x01000001` is no verdict of XDP, but one of handlers.
#[test]
fn a_number_that_is_no_verdict_is_cut() {
    let text = "call get_prandom_u32\n exit";
    let drop = xdp("r0 = 1\n exit");
    let row = linked(&[xdp(text), drop.clone()]).unwrap();
    let ends = |row: &Program| {
        let first = row.functions.iter().find(|f| f.name.starts_with("e0:"));
        let insns = &first.unwrap().insns;
        let exits = insns.iter().filter(|i| matches!(i, Insn::Exit));
        (insns.len(), exits.count())
    };
    // A jump in the place of the end, and four instructions behind it.
    assert_eq!(ends(&row), (6, 1));
    let known = linked(&[xdp("r0 = 2\n exit"), drop]).unwrap();
    assert_eq!(ends(&known), (2, 1));
}
